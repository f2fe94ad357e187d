// qplan_session_step_output: what a step has written, for step_end hooks. A file of its own, so that programs
// without such hooks do not link it.
#include "capi/plan_handle.h"
#include "qplan/qplan.h"
#include "src/runtime/session.h"
#include "src/runtime/structs.h"

namespace {

const flatbuffers::Vector<uint32_t>* outputs_of(const qplan::format::PlanView& plan, uint32_t step) {
  const qplan::format::NpuStep* npu = plan.npu_step(step);
  return npu != nullptr ? npu->outputs() : plan.step(step).outputs();
}

}  // namespace

qplan_status qplan_session_step_output(qplan_session* session, uint32_t index, qplan_tensor_info* info,
                                       DLTensor* view) {
  if (session == nullptr || session->tag != qplan::Session::kLive || view == nullptr)
    return QPLAN_INVALID_ARGUMENT;
  if (session->state != qplan::SessionState::kRunning || session->ended_step == qplan::Session::kNoStep)
    return QPLAN_INVALID_STATE;
  const auto* outputs = outputs_of(session->plan, session->step_index(session->ended_step));
  if (index >= qplan::format::count_of(outputs)) return QPLAN_NOT_FOUND;
  const uint32_t tensor = outputs->Get(index);
  qplan_tensor_info found = qplan::tensor_info(session->plan, tensor);
  if (found.num_scales == 0 && session->plan.inner_quantization(tensor, &found.scales, &found.zero_points)) {
    found.num_scales = 1;
  }
  if (info != nullptr && !qplan::fill_fields(found, info)) return QPLAN_INVALID_ARGUMENT;
  *view = {};
  view->data = session->data[tensor];
  view->device.device_type = kDLCPU;
  view->ndim = found.ndim;
  view->dtype = found.dtype;
  view->shape = const_cast<int64_t*>(found.shape);  // NOLINT: DLPack has no const
  return QPLAN_OK;
}
