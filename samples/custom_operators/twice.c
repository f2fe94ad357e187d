/* The smallest custom operator: y = factor * x on float32, where the option "factor" is 2 by default. */
#include <qplan/custom_operator.h>

static qplan_status infer(const qplan_custom_operator* self, const qplan_custom_call* call,
                          qplan_custom_type* outputs, qplan_custom_needs* needs) {
  int32_t i;
  (void)self;
  if (call->num_inputs != 1 || call->num_outputs != 1 || call->inputs[0].ndim > 6)
    return qplan_custom_refuse(needs, "expected 1 input and 1 output");
  outputs[0].dtype = call->inputs[0].dtype;
  outputs[0].ndim = call->inputs[0].ndim;
  for (i = 0; i < call->inputs[0].ndim; i++) outputs[0].shape[i] = call->inputs[0].shape[i];
  return QPLAN_OK;
}

/* Everything that run() relies on is checked here, since plans and models may come from anybody. */
static qplan_status prepare(const qplan_custom_operator* self, const qplan_custom_call* call,
                            qplan_custom_needs* needs) {
  (void)self;
  if (call->num_inputs != 1 || call->num_outputs != 1)
    return qplan_custom_refuse(needs, "expected 1 input and 1 output");
  if (call->inputs[0].dtype.code != kDLFloat || call->outputs[0].dtype.code != kDLFloat)
    return qplan_custom_refuse(needs, "input and output must be float32");
  if (call->inputs[0].size_bytes != call->outputs[0].size_bytes)
    return qplan_custom_refuse(needs, "input and output must have as many elements");
  needs->work = call->inputs[0].size_bytes / sizeof(float);
  return QPLAN_OK;
}

static void run(const qplan_custom_operator* self, const qplan_custom_call* call) {
  const float* x = (const float*)call->inputs[0].data;
  float* y = (float*)call->outputs[0].data;
  const float factor = (float)qplan_custom_number(call, "factor", 2);
  const uint64_t count = call->inputs[0].size_bytes / sizeof(float);
  uint64_t i;
  (void)self;
  for (i = 0; i < count; i++) y[i] = factor * x[i];
}

const qplan_custom_operator twice_operator = {
    sizeof(qplan_custom_operator), 0, "Twice", NULL, infer, prepare, run};
