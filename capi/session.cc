// qplan_session_*: argument checks of the C API around src/runtime.
#include "src/runtime/session.h"

#include "qplan/qplan.h"
#include "src/base/error.h"
#include "src/runtime/structs.h"

using qplan::Error;
using qplan::Session;
using qplan::SessionState;
using qplan::format::PlanView;

namespace {

// Null for NULL and for a session that was taken down.
Session* live(qplan_session* session) {
  return session != nullptr && session->tag == Session::kLive ? session : nullptr;
}
const Session* live(const qplan_session* session) {
  return session != nullptr && session->tag == Session::kLive ? session : nullptr;
}

// Every error of a living session passes here. That somebody cancelled a run is news, not a failure.
qplan_status finish(Session* session, qplan_status status) {
  if (status >= 0) return status;
  const uint32_t level = status == QPLAN_CANCELLED ? QPLAN_LOG_INFO : QPLAN_LOG_ERROR;
  qplan::log_text(session->platform, level, session->error.text());
  return status;
}

qplan_status finish(const Error& error, qplan_error* to) {
  error.copy_to(to);
  return error.status();
}

constexpr uint64_t kForEver = UINT64_MAX;

qplan_status came_back(Session* session, qplan_status status) {
  session->state = status == QPLAN_PENDING ? SessionState::kWaiting : SessionState::kDone;
  session->last_run = status;
  if (status == QPLAN_OK) qplan::commit_states(session);
  return finish(session, status);
}

// verb: what the caller called.
qplan_status submit(qplan_session* session, const char* verb, uint64_t wait_ns) {
  Session* s = live(session);
  if (s == nullptr) return QPLAN_INVALID_ARGUMENT;
  if (s->is_running()) {
    return finish(s, s->error.set(QPLAN_INVALID_STATE) << verb << ": the session is running");
  }
  s->begin_running();
  s->set_cancelled(false);
  qplan::NpuWait wait = {wait_ns};
  return came_back(s, qplan::begin_run(s, &wait));
}

qplan_status poll(qplan_session* session, const char* verb, uint64_t wait_ns) {
  Session* s = live(session);
  if (s == nullptr) return QPLAN_INVALID_ARGUMENT;
  if (s->state == SessionState::kRunning) return QPLAN_PENDING;  // a hook asks
  if (s->state == SessionState::kWaiting) {
    s->begin_running();
    qplan::NpuWait wait = {wait_ns};
    return came_back(s, qplan::continue_run(s, &wait));
  }
  if (s->state == SessionState::kReady) {
    return finish(s, s->error.set(QPLAN_INVALID_STATE) << verb << ": nothing was submitted");
  }
  return s->last_run;
}

}  // namespace

qplan_status qplan_session_memory_needs(const qplan_plan* plan, const qplan_session_config* config,
                                        qplan_memory_need* needs, uint32_t* count, qplan_error* error) {
  Error result;
  const PlanView view = qplan::get_view(plan);
  if (!view.is_open() || count == nullptr) {
    result.set(QPLAN_INVALID_ARGUMENT)
        << "session: " << (count == nullptr ? "count is NULL" : "the plan is not open");
  } else {
    (void)qplan::memory_needs(view, config, needs, count, &result);
  }
  return finish(result, error);
}

uint32_t qplan_plan_memory_class(const qplan_plan* plan, uint32_t bank) {
  const PlanView view = qplan::get_view(plan);
  return view.is_open() && bank < view.num_banks() ? uint32_t{view.bank(bank).memory_class()} : 0;
}

qplan_status qplan_session_init(const qplan_plan* plan, const qplan_session_config* config,
                                const qplan_memory* memories, uint32_t num_memories, qplan_session** session,
                                qplan_error* error) {
  Error result;
  if (session != nullptr) *session = nullptr;
  const PlanView view = qplan::get_view(plan);
  if (!view.is_open() || session == nullptr) {
    result.set(QPLAN_INVALID_ARGUMENT)
        << "session: " << (session == nullptr ? "session is NULL" : "the plan is not open");
    return finish(result, error);
  }
  Session* placed = nullptr;
  if (qplan::session_init(view, config, memories, num_memories, &placed, &result) == QPLAN_OK) {
    *session = static_cast<qplan_session*>(placed);
  }
  return finish(result, error);
}

qplan_status qplan_session_deinit(qplan_session* session) {
  Session* s = live(session);
  if (s == nullptr) return QPLAN_INVALID_ARGUMENT;
  qplan_status status = QPLAN_OK;
  if (s->npu != nullptr && s->npu->client != nullptr) status = s->npu->client->deinit(s);
  s->tag = 0;
  return status;
}

qplan_status qplan_session_view(qplan_session* session, int direction, uint32_t index, DLTensor* view) {
  Session* s = live(session);
  if (s == nullptr) return QPLAN_INVALID_ARGUMENT;
  return finish(s, qplan::view_tensor(s, direction, index, view));
}

qplan_status qplan_session_bind(qplan_session* session, int direction, uint32_t index,
                                const DLTensor* tensor) {
  Session* s = live(session);
  if (s == nullptr) return QPLAN_INVALID_ARGUMENT;
  return finish(s, qplan::bind_tensor(s, direction, index, tensor));
}

qplan_status qplan_session_write(qplan_session* session, uint32_t input, const DLTensor* tensor) {
  Session* s = live(session);
  if (s == nullptr) return QPLAN_INVALID_ARGUMENT;
  return finish(s, qplan::write_input(s, input, tensor));
}

qplan_status qplan_session_read(qplan_session* session, uint32_t output, const DLTensor* tensor) {
  Session* s = live(session);
  if (s == nullptr) return QPLAN_INVALID_ARGUMENT;
  return finish(s, qplan::read_output(s, output, tensor));
}

qplan_status qplan_session_submit(qplan_session* session) { return submit(session, "submit", 0); }

qplan_status qplan_session_poll(qplan_session* session) { return poll(session, "poll", 0); }

qplan_status qplan_session_wait(qplan_session* session, uint32_t timeout_us) {
  return poll(session, "wait", timeout_us == UINT32_MAX ? kForEver : uint64_t{timeout_us} * 1000);
}

qplan_status qplan_session_invoke(qplan_session* session) { return submit(session, "invoke", kForEver); }

qplan_status qplan_session_cancel(qplan_session* session) {
  Session* s = live(session);
  if (s == nullptr) return QPLAN_INVALID_ARGUMENT;
  s->set_cancelled(true);
  return QPLAN_OK;
}

qplan_status qplan_session_reset_state(qplan_session* session) {
  Session* s = live(session);
  if (s == nullptr) return QPLAN_INVALID_ARGUMENT;
  if (s->is_running()) {
    return finish(s, s->error.set(QPLAN_INVALID_STATE) << "reset_state: the session is running");
  }
  qplan::reset_states(s);
  return QPLAN_OK;
}

qplan_status qplan_session_get_info(const qplan_session* session, qplan_session_info* info) {
  const Session* s = live(session);
  if (s == nullptr || info == nullptr) return QPLAN_INVALID_ARGUMENT;
  qplan_session_info found = {};
  found.num_steps = s->num_steps();
  found.num_threads = s->pool.num_threads;
  found.isa = s->isa;
  found.isa_name = qplan_isa_name(s->isa);
  found.macs = s->macs;
  found.memory_bytes = s->memory_bytes;
  found.work = s->work;
  return qplan::fill_fields(found, info) ? QPLAN_OK : QPLAN_INVALID_ARGUMENT;
}

qplan_status qplan_session_step_info(const qplan_session* session, uint32_t index, qplan_event* event) {
  const Session* s = live(session);
  if (s == nullptr || event == nullptr || index >= s->num_steps()) return QPLAN_INVALID_ARGUMENT;
  return qplan::fill_fields(qplan::step_event(*s, index), event) ? QPLAN_OK : QPLAN_INVALID_ARGUMENT;
}

void qplan_session_last_error(const qplan_session* session, qplan_error* error) {
  if (const Session* s = live(session)) {
    s->error.copy_to(error);
    return;
  }
  Error none;
  none.set(QPLAN_INVALID_ARGUMENT) << "session: NULL or taken down";
  none.copy_to(error);
}

// ---- what a step has written, for step_end hooks

namespace {

const flatbuffers::Vector<uint32_t>* outputs_of(const PlanView& plan, uint32_t step) {
  const qplan::format::NpuStep* npu = plan.npu_step(step);
  return npu != nullptr ? npu->outputs() : plan.step(step).outputs();
}

}  // namespace

qplan_status qplan_session_step_output(qplan_session* session, uint32_t index, qplan_tensor_info* info,
                                       DLTensor* view) {
  const Session* s = live(session);
  if (s == nullptr || view == nullptr) return QPLAN_INVALID_ARGUMENT;
  if (s->state != SessionState::kRunning || s->ended_step == Session::kNoStep) return QPLAN_INVALID_STATE;
  const auto* outputs = outputs_of(s->plan, s->step_index(s->ended_step));
  if (index >= qplan::format::count_of(outputs)) return QPLAN_NOT_FOUND;
  const uint32_t tensor = outputs->Get(index);
  qplan_tensor_info found = qplan::tensor_info(s->plan, tensor);
  if (found.num_scales == 0 && s->plan.inner_quantization(tensor, &found.scales, &found.zero_points)) {
    found.num_scales = 1;
  }
  if (info != nullptr && !qplan::fill_fields(found, info)) return QPLAN_INVALID_ARGUMENT;
  *view = {};
  view->data = s->data[tensor];
  view->device.device_type = kDLCPU;
  view->ndim = found.ndim;
  view->dtype = found.dtype;
  view->shape = const_cast<int64_t*>(found.shape);  // NOLINT: DLPack has no const
  return QPLAN_OK;
}
