// qplan_session_self_check: the plan's self-checks (format/self_check.h), on the session as it is. A file of
// its own, so that programs which do not check themselves do not link it.
#include "format/self_check.h"

#include "qplan/qplan.h"
#include "src/base/error.h"
#include "src/runtime/session.h"

namespace qplan {
namespace {

// One run. Its hook replaces the application's, and its log and clock call the application's.
struct Run {
  Session* session;
  const format::SelfCheck* check;
  qplan_platform application;
  uint32_t wrong_step = Session::kNoStep;  // the first one, of the function
  uint32_t found = 0;                      // its checksum
};

void pass_on_log(void* user, uint32_t level, const char* text) {
  const qplan_platform& to = static_cast<Run*>(user)->application;
  to.log(to.user, level, text);
}

uint64_t pass_on_clock(void* user) {
  const qplan_platform& to = static_cast<Run*>(user)->application;
  return to.now_ns(to.user);
}

void pass_on_yield(void* user) {
  const qplan_platform& to = static_cast<Run*>(user)->application;
  to.yield(to.user);
}

const flatbuffers::Vector<uint32_t>* inputs_of(const Session& session, uint32_t i) {
  const format::NpuStep* npu = session.plan.npu_step(session.step_index(i));
  return npu != nullptr ? npu->inputs() : session.plan.step(session.step_index(i)).inputs();
}

const flatbuffers::Vector<uint32_t>* outputs_of(const Session& session, uint32_t i) {
  const format::NpuStep* npu = session.plan.npu_step(session.step_index(i));
  return npu != nullptr ? npu->outputs() : session.plan.step(session.step_index(i)).outputs();
}

uint32_t outputs_checksum(const Session& session, uint32_t i) {
  format::Crc32 crc;
  const auto* outputs = outputs_of(session, i);
  for (uint32_t k = 0; k < format::count_of(outputs); ++k) {
    const uint32_t tensor = outputs->Get(k);
    crc.update(session.data[tensor], static_cast<size_t>(session.plan.tensor(tensor).size()));
  }
  return crc.value();
}

// The state that the tensor is the input of, where it has an initial value in the plan.
const format::State* initial_state_of(const Session& session, uint32_t tensor) {
  const auto* states = session.function->states();
  for (uint32_t k = 0; k < format::count_of(states); ++k) {
    const format::State* state = states->Get(k);
    if (state->input() == tensor && state->initial() != format::kNoTensorIndex) return state;
  }
  return nullptr;
}

// The checksum of the step's constants. A cancel ends it early, with another value.
uint32_t constants_checksum(const Session& session, uint32_t i) {
  constexpr size_t kPiece = size_t{64} << 10;  // bytes between two looks at the request to cancel
  format::Crc32 crc;
  const auto add = [&](uint32_t tensor) {
    if (!session.plan.is_constant(tensor)) return;
    const auto* bytes = static_cast<const uint8_t*>(session.address(tensor));  // of its copy, if it has one
    const auto size = static_cast<size_t>(session.plan.tensor(tensor).size());
    for (size_t at = 0; at < size && !session.is_cancelled(); at += kPiece)
      crc.update(bytes + at, size - at < kPiece ? size - at : kPiece);
  };
  const format::NpuStep* npu = session.plan.npu_step(session.step_index(i));
  if (npu != nullptr) add(npu->blob());
  const auto* inputs = inputs_of(session, i);
  for (uint32_t k = 0; k < format::count_of(inputs); ++k) {
    add(inputs->Get(k));
    if (const format::State* state = initial_state_of(session, inputs->Get(k))) add(state->initial());
  }
  return crc.value();
}

// The name, in messages, of what constants_checksum sums up.
const char* constants_name(const Session& session, uint32_t i) {
  const auto* inputs = inputs_of(session, i);
  for (uint32_t k = 0; k < format::count_of(inputs); ++k) {
    if (initial_state_of(session, inputs->Get(k)) != nullptr) return "constants and initial states";
  }
  return "constants";
}

// A region that failed on its device has no outputs yet: the steps of its fallback run next, and are
// compared.
void look_at_step(void* user, const qplan_event*, qplan_status status) {
  auto* run = static_cast<Run*>(user);
  if (status != QPLAN_OK || run->wrong_step != Session::kNoStep) return;
  const uint32_t i = run->session->ended_step;
  const uint32_t found = outputs_checksum(*run->session, i);
  if (found == run->check->outputs()->Get(i)) return;
  run->wrong_step = i;
  run->found = found;
}

Error& begin_failure(Session* session, uint32_t i) {
  const uint32_t index = session->step_index(i);
  return session->error.set(QPLAN_SELF_CHECK_FAILED, static_cast<int32_t>(index))
         << "self-check: step " << index << Named{session->plan.step_name(index)};
}

qplan_status check_constants(Session* session) {
  for (uint32_t i = 0; i < session->num_steps(); ++i) {
    const uint32_t found = constants_checksum(*session, i);
    const uint32_t index = session->step_index(i);
    if (session->is_cancelled()) {
      return session->error.set(QPLAN_CANCELLED, static_cast<int32_t>(index))
             << "self-check: cancelled at step " << index << Named{session->plan.step_name(index)}
             << ", whose constants were compared";
    }
    const uint32_t expected = session->function->constant_checksums()->Get(i);
    if (found == expected) continue;
    return begin_failure(session, i) << ": its " << constants_name(*session, i) << " have checksum " << found
                                     << ", expected " << expected
                                     << ": they are damaged; copy the plan again";
  }
  return QPLAN_OK;
}

void write_inputs(const Session& session, uint32_t seed) {
  format::SelfCheckInputs inputs(seed);
  for (uint32_t k = 0; k < format::count_of(session.function->inputs()); ++k) {
    const uint32_t tensor = session.function->inputs()->Get(k);
    const format::Tensor& type = session.plan.tensor(tensor);
    inputs.fill(type.type_code(), type.type_bits(), session.data[tensor], static_cast<size_t>(type.size()));
  }
}

// A run as by qplan_session_invoke, which would forget a request to cancel that came between two runs. States
// are not kept: the next run begins with their initial values.
qplan_status invoke(Run* run) {
  Session* session = run->session;
  write_inputs(*session, run->check->seed());
  session->platform.user = run;
  if (session->platform.log != nullptr) session->platform.log = pass_on_log;
  if (session->platform.now_ns != nullptr) session->platform.now_ns = pass_on_clock;
  if (session->platform.yield != nullptr) session->platform.yield = pass_on_yield;
  session->platform.step_begin = nullptr;
  session->platform.step_end = look_at_step;
  session->begin_running();
  NpuWait wait = {UINT64_MAX};
  const qplan_status status = begin_run(session, &wait);
  session->state = SessionState::kDone;
  session->last_run = status;
  session->platform = run->application;
  return status;
}

qplan_status check_outputs(Session* session, uint32_t number) {
  Run run = {session, session->function->self_checks()->Get(number), session->platform};
  reset_states(session);
  const qplan_status status = invoke(&run);
  // A wrong step may be why the run then failed.
  if (run.wrong_step == Session::kNoStep || status == QPLAN_CANCELLED) return status;
  const bool is_region = session->plan.npu_step(session->step_index(run.wrong_step)) != nullptr;
  const char* where = is_region ? "its device" : session->steps[run.wrong_step].variant->name;
  return begin_failure(session, run.wrong_step)
         << ": its outputs of self-check " << number << " have checksum " << run.found << ", expected "
         << run.check->outputs()->Get(run.wrong_step) << "; its " << constants_name(*session, run.wrong_step)
         << " are intact: " << where << ", the processor or its memory computes something else";
}

qplan_status self_check(Session* session) {
  const uint32_t count = format::count_of(session->function->self_checks());
  if (count == 0) {
    return session->error.set(QPLAN_NOT_FOUND)
           << "self-check: the plan has none; pack it with --self-check 1";
  }
  for (uint32_t k = 0; k < format::count_of(session->function->inputs()); ++k) {
    const uint32_t tensor = session->function->inputs()->Get(k);
    if (session->data[tensor] == session->planned_address(tensor)) continue;
    return session->error.set(QPLAN_INVALID_STATE, -1, static_cast<int32_t>(tensor))
           << "self-check: input " << k << " is bound to a buffer, which is only read; unbind it first";
  }
  session->set_cancelled(false);
  qplan_status status = check_constants(session);
  for (uint32_t i = 0; i < count && status == QPLAN_OK; ++i) {
    status = check_outputs(session, i);
    if (status == QPLAN_OK && session->is_cancelled()) {
      status = session->error.set(QPLAN_CANCELLED)
               << "self-check: cancelled after run " << i + 1 << " of " << count;
    }
  }
  reset_states(session);
  return status;
}

}  // namespace
}  // namespace qplan

qplan_status qplan_session_self_check(qplan_session* session) {
  if (session == nullptr || session->tag != qplan::Session::kLive) return QPLAN_INVALID_ARGUMENT;
  qplan_status status;
  if (session->is_running()) {
    status = session->error.set(QPLAN_INVALID_STATE) << "self-check: the session is running";
  } else {
    status = qplan::self_check(session);
  }
  if (status < 0) {
    const uint32_t level = status == QPLAN_CANCELLED ? QPLAN_LOG_INFO : QPLAN_LOG_ERROR;
    qplan::log_text(session->platform, level, session->error.text());
  }
  return status;
}
