/* Compiled as C99, C11 and C++17 with warnings as errors. */
#include <qplan/custom_operator.h>

static qplan_status refuse(const qplan_custom_operator* self, const qplan_custom_call* call,
                           qplan_custom_needs* needs) {
  (void)self;
  return qplan_custom_refuse(needs, qplan_custom_text(call, "why", "no"));
}

static void run(const qplan_custom_operator* self, const qplan_custom_call* call) {
  (void)self;
  (void)call;
}

const qplan_custom_operator* const* header_custom_operator(uint32_t* count);
const qplan_custom_operator* const* header_custom_operator(uint32_t* count) {
  static qplan_custom_operator op;
  static const qplan_custom_operator* const operators[] = {&op};
  qplan_custom_operators_entry_fn entry = header_custom_operator;
  op.struct_size = (uint32_t)sizeof(op);
  op.name = QPLAN_CUSTOM_OPERATORS_ENTRY_NAME;
  op.prepare = refuse;
  op.run = run;
  *count = entry == NULL ? 0 : 1;
  return operators;
}
