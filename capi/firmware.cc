// What C written by `qplan emit-c` calls (qplan/firmware.h): a session in one memory, without digest and
// devices, so that firmware links neither.
#include "qplan/firmware.h"

#include "src/runtime/session.h"

using qplan::Error;
using qplan::Session;
using qplan::format::PlanView;

namespace {

Session* live(void* memory) {
  auto* session = static_cast<qplan_session*>(memory);
  return session != nullptr && session->tag == Session::kLive ? session : nullptr;
}

qplan_kernel_set kernels_of(const qplan_firmware_model& model) {
  return {reinterpret_cast<const qplan::KernelFamily* const*>(model.families), model.num_families};
}

// What has no copies links no code for them.
enum class Copies { kNone, kOfConstants };

template <Copies kCopies>
int32_t init_in_areas(const qplan_firmware_model* model, const qplan_firmware_memory* memories,
                      uint32_t num_memories) {
  static_assert(sizeof(qplan_firmware_memory) == sizeof(qplan_memory) &&
                    offsetof(qplan_firmware_memory, size) == offsetof(qplan_memory, size),
                "the same struct under another name");
  Error error;
  PlanView plan;
  qplan_status status = plan.open_for_cpu(model->plan, model->plan_bytes, &error);
  if (kCopies == Copies::kOfConstants && status == QPLAN_OK) status = plan.open_copies(&error);
  if (status != QPLAN_OK) return status;
  const qplan_kernel_set kernels = kernels_of(*model);
  Session* session = nullptr;
  status = qplan::session_init_for_cpu(plan, &kernels, reinterpret_cast<const qplan_memory*>(memories),
                                       num_memories, &session, &error);
  if (kCopies == Copies::kOfConstants && status == QPLAN_OK) {
    qplan::copy_constants(session);
    qplan::keep_args(session, qplan::kAllTensors);
  }
  return status;
}

}  // namespace

extern const uint32_t qplan_firmware_kernels_3 = 1;

int32_t qplan_firmware_init(const qplan_firmware_model* model, void* memory, size_t size) {
  const qplan_firmware_memory only = {memory, size};
  return qplan_firmware_init_in_areas(model, &only, 1);
}

int32_t qplan_firmware_init_in_areas(const qplan_firmware_model* model, const qplan_firmware_memory* memories,
                                     uint32_t num_memories) {
  return init_in_areas<Copies::kNone>(model, memories, num_memories);
}

int32_t qplan_firmware_init_with_copies(const qplan_firmware_model* model,
                                        const qplan_firmware_memory* memories, uint32_t num_memories) {
  return init_in_areas<Copies::kOfConstants>(model, memories, num_memories);
}

int32_t qplan_firmware_init_in_arena(const qplan_firmware_model* model, void* memory, size_t size,
                                     void* arena, size_t arena_size) {
  Error error;
  PlanView plan;
  const qplan_status status = plan.open_for_cpu(model->plan, model->plan_bytes, &error);
  if (status != QPLAN_OK) return status;
  const qplan_kernel_set kernels = kernels_of(*model);
  Session* session = nullptr;
  return qplan::session_init_in_arena(plan, &kernels, {memory, size}, {arena, arena_size}, &session, &error);
}

int32_t qplan_firmware_run(void* memory) {
  Session* session = live(memory);
  return session == nullptr ? qplan_status{QPLAN_INVALID_STATE} : qplan::run_steps(session);
}

int32_t qplan_firmware_run_yielding(void* memory, uint32_t work, void (*yield)(void* user), void* user) {
  Session* session = live(memory);
  if (session == nullptr) return QPLAN_INVALID_STATE;
  session->platform.user = user;
  session->platform.yield = yield;
  session->platform.yield_work = work;
  // Where arguments are kept, they hold the number of work items of a piece.
  qplan::keep_args(session, qplan::kAllTensors);
  const qplan_status status = qplan::run_steps(session);
  session->platform.user = nullptr;
  session->platform.yield = nullptr;
  qplan::keep_args(session, qplan::kAllTensors);
  return status;
}

void qplan_firmware_reset_state(void* memory) {
  Session* session = live(memory);
  if (session != nullptr) qplan::reset_states(session);
}

void* qplan_firmware_tensor(void* memory, int is_output, uint32_t index) {
  Session* session = live(memory);
  if (session == nullptr) return nullptr;
  const auto* tensors = is_output != 0 ? session->function->outputs() : session->function->inputs();
  return index < qplan::format::count_of(tensors) ? session->data[tensors->Get(index)] : nullptr;
}
