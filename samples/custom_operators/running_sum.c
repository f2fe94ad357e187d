/* An operator that keeps something from run to run: y = x + all x before, on float32. */
#include <qplan/custom_operator.h>

static qplan_status prepare(const qplan_custom_operator* self, const qplan_custom_call* call,
                            qplan_custom_needs* needs) {
  (void)self;
  if (call->num_inputs != 1 || call->num_outputs != 1)
    return qplan_custom_refuse(needs, "expected 1 input and 1 output");
  if (call->inputs[0].dtype.code != kDLFloat || call->outputs[0].dtype.code != kDLFloat ||
      call->inputs[0].size_bytes != call->outputs[0].size_bytes)
    return qplan_custom_refuse(needs, "input and output must be float32, with as many elements");
  needs->state_bytes = call->inputs[0].size_bytes;
  needs->work = call->inputs[0].size_bytes / sizeof(float);
  return QPLAN_OK;
}

static void run(const qplan_custom_operator* self, const qplan_custom_call* call) {
  const unsigned char* before = (const unsigned char*)call->state; /* bytes: not aligned to floats */
  unsigned char* after = (unsigned char*)call->next_state;
  const uint64_t count = call->inputs[0].size_bytes / sizeof(float);
  uint64_t i, b;
  (void)self;
  for (i = 0; i < count; i++) {
    union {
      float number;
      unsigned char bytes[sizeof(float)];
    } sum;
    for (b = 0; b < sizeof(float); b++) sum.bytes[b] = before[i * sizeof(float) + b];
    sum.number += ((const float*)call->inputs[0].data)[i];
    ((float*)call->outputs[0].data)[i] = sum.number;
    for (b = 0; b < sizeof(float); b++) after[i * sizeof(float) + b] = sum.bytes[b];
  }
}

const qplan_custom_operator running_sum_operator = {
    sizeof(qplan_custom_operator), 0, "RunningSum", NULL, NULL, prepare, run};
