#include "src/base/error.h"
#include "src/runtime/npu/client.h"

namespace qplan {
namespace {

// One line: what failed, where, why; the caller says what became of it.
Error& put_failure(const Session& session, const NpuRegion& region, const char* why, Error* error) {
  const uint32_t index = session.step_index(region.step);
  const NpuDevice& device = *region.device;
  return *error << "npu: region" << Named{session.plan.step_name(index)} << " (step " << index
                << ") failed on " << Quoted{name_of_target(session, device)} << ", driver "
                << Quoted{device.driver->name} << ": " << why << " (status " << device.last_status << ")";
}

void reset_device(NpuDevice* device) {
  ++device->resets;
  const qplan_npu_status status = device->driver->reset(device->device);
  if (status >= 0) return;
  device->state = QPLAN_NPU_CLASS(status) >= QPLAN_NPU_CLASS_GONE ? uint32_t{QPLAN_DEVICE_ABSENT}
                                                                  : uint32_t{QPLAN_DEVICE_QUARANTINED};
}

// What a failed job does to the region and the device. needs_reset: it may have left the device in disorder.
void take_failure(qplan_npu_status status, bool needs_reset, NpuRegion* region) {
  NpuDevice* device = region->device;
  switch (QPLAN_NPU_CLASS(status)) {
    case QPLAN_NPU_CLASS_MISTAKE:
      region->status = QPLAN_DEVICE_ERROR;
      return;
    case QPLAN_NPU_CLASS_CPU_NOW:
      // Not after a reset that failed: only that of qplan_session_recover_device brings it back.
      if (device->takes_jobs()) device->state = QPLAN_DEVICE_DEGRADED;
      return;
    case QPLAN_NPU_CLASS_RESET:
      if (device->takes_jobs()) device->state = QPLAN_DEVICE_DEGRADED;
      // Somebody else's reset ended the job: neither this device's failure, nor to be answered with another
      // reset.
      if (status == QPLAN_NPU_E_RESET) return;
      if (needs_reset) reset_device(device);
      if (++device->failures_in_a_row >= device->max_failures && device->takes_jobs()) {
        device->state = QPLAN_DEVICE_QUARANTINED;
      }
      return;
    default:
      device->state = QPLAN_DEVICE_ABSENT;
  }
}

// The end of one attempt: a submission that was refused, or what became of the job.
struct JobEnd {
  qplan_npu_status status = QPLAN_NPU_OK;  // QPLAN_NPU_PENDING: the job is in flight
  qplan_npu_report report = {};            // its text says why, where the driver does
  bool is_run_cancelled = false;           // ended as asked: the application has cancelled the run
  // False for a late job that its cancel, or a reset, has ended.
  bool needs_reset = true;
};

void end_job(qplan_npu_status status, const char* why, JobEnd* end) {
  end->status = status;
  uint32_t i = 0;
  for (; i + 1 < sizeof(end->report.text) && why[i] != '\0'; ++i) end->report.text[i] = why[i];
  end->report.text[i] = '\0';
}

// Another attempt, the CPU's steps, the error of the run, or its end that the application has asked for.
enum class AfterFailure : uint32_t { kTryAgain, kCpu, kFail, kCancelled };

AfterFailure take_failed_job(Session* session, NpuRegion* region, const JobEnd& end) {
  NpuState& npu = *session->npu;
  NpuDevice* device = region->device;
  const qplan_npu_status status = end.status;
  const char* why = text_or_status(end.report.text, status);
  ++device->failed_jobs;
  ++region->failures;
  device->last_status = status;
  put_text(why, device->text);
  put_text(why, region->text);
  if (status == QPLAN_NPU_E_TIMEOUT) ++device->timeouts;
  take_failure(status, end.needs_reset && !npu.is_reset, region);

  const bool is_worth_another =
      QPLAN_NPU_CLASS(status) == QPLAN_NPU_CLASS_CPU_NOW || QPLAN_NPU_CLASS(status) == QPLAN_NPU_CLASS_RESET;
  const bool is_cancelled = session->is_cancelled();
  const bool tries_again = npu.policy == QPLAN_NPU_RETRY && npu.attempts == 0 && is_worth_another &&
                           device->takes_jobs() && !is_cancelled;
  if (!is_cancelled && !tries_again && !may_run_on_cpu(*session, *region)) {
    const qplan_status result = status == QPLAN_NPU_E_TIMEOUT ? QPLAN_DEVICE_TIMEOUT : QPLAN_DEVICE_ERROR;
    session->error.set(result, static_cast<int32_t>(session->step_index(region->step)));
    put_failure(*session, *region, why, &session->error);
    return AfterFailure::kFail;
  }
  if (session->platform.log != nullptr && session->platform.log_level >= QPLAN_LOG_WARNING) {
    Error line;
    put_failure(*session, *region, why, &line) << (is_cancelled  ? "; the run was cancelled"
                                                   : tries_again ? "; it is tried once more"
                                                                 : "; it runs on the CPU instead");
    log_text(session->platform, QPLAN_LOG_WARNING, line.text());
  }
  if (is_cancelled) return AfterFailure::kCancelled;
  if (!tries_again) {
    ++device->fallbacks;
    return AfterFailure::kCpu;
  }
  ++npu.attempts;
  ++device->retries;
  return AfterFailure::kTryAgain;
}

// The driver's status for the outputs of a job that ended well.
qplan_npu_status take_completed_job(Session* session, NpuRegion* region, const qplan_npu_report& report) {
  NpuDevice* device = region->device;
  device->cycles += report.cycles;
  const qplan_npu_status status = fetch_outputs(session, region);
  if (status < 0) return status;
  // Not after a reset that failed, whatever became of the job.
  if (device->takes_jobs()) {
    device->state = QPLAN_DEVICE_PRESENT;
    device->failures_in_a_row = 0;
  }
  ++region->device_runs;
  region->last_cycles = report.cycles;
  return QPLAN_NPU_OK;
}

constexpr uint64_t kNsPerMs = 1'000'000, kSecondNs = 1000 * kNsPerMs;

// How long a job may take if the application does not state it: a second, or 16 times what the plan or
// the driver estimates at the device's clock (100 MHz if it states none, as the packer assumes) if that is
// more, but no more than ten minutes, since plans are untrusted.
uint64_t default_timeout_ns(const NpuRegion& region) {
  constexpr uint64_t kSlack = 16, kMostMs = 600'000;
  const uint64_t clock_khz = region.device->clock_khz == 0 ? 100'000 : region.device->clock_khz;
  const uint64_t ms = region.estimated_cycles / clock_khz;
  if (ms >= kMostMs / kSlack) return kMostMs * kNsPerMs;
  const uint64_t ns = (ms + 1) * kSlack * kNsPerMs;
  return ns > kSecondNs ? ns : kSecondNs;
}

// How long a job may take to end after a cancel, and again after a reset: these take no longer for a long
// job.
uint64_t stop_timeout_ns(const NpuState& npu) {
  return npu.given_timeout_ns != 0 ? npu.given_timeout_ns : kSecondNs;
}

// Pending, or refused.
JobEnd submit_job(Session* session, NpuRegion* region) {
  NpuState& npu = *session->npu;
  NpuDevice* device = region->device;
  JobEnd end;
  JobBinds binds;
  qplan_npu_reason why = {};
  npu.is_cancelled = npu.is_reset = false;
  npu.timeout_ns = npu.given_timeout_ns != 0 ? npu.given_timeout_ns : default_timeout_ns(*region);
  ++device->jobs;
  qplan_npu_status status = bring_inputs(session, region, &binds);
  if (status >= 0) {
    qplan_npu_submit submit = {};
    submit.struct_size = sizeof(submit);
    submit.num_binds = binds.count;
    submit.program = region->program;
    submit.binds = binds.bind;
    status = device->driver->submit(device->device, &submit, &npu.job, &why);
  }
  terminate_text(&why);
  if (status < 0) {
    end_job(status, why.text, &end);
    return end;
  }
  npu.has_job = true;
  npu.started_ns = now_ns(*session);
  npu.waited_ns = 0;
  end.status = QPLAN_NPU_PENDING;
  return end;
}

// Since the job was submitted, or cancelled. A driver that is asked to wait and says PENDING has waited that
// long, whatever the clock says.
uint64_t elapsed_ns(const Session& session) {
  const NpuState& npu = *session.npu;
  const uint64_t now = now_ns(session);
  const uint64_t elapsed = now > npu.started_ns ? now - npu.started_ns : 0;
  return elapsed > npu.waited_ns ? elapsed : npu.waited_ns;
}

// A driver waits no longer at a time, so that a wait ends soon after the application has cancelled the run.
constexpr uint64_t kMaxSliceNs = 10'000'000;

// After the timeout, or when the run is cancelled, the job is cancelled; after stop_timeout_ns the
// device is reset, which ends it. False: not even that did.
bool job_overdue(Session* session, NpuDevice* device) {
  NpuState& npu = *session->npu;
  if (!npu.is_cancelled) {
    npu.is_cancelled = true;
    (void)device->driver->cancel(device->device, npu.job);
  } else if (!npu.is_reset) {
    npu.is_reset = true;
    reset_device(device);
  } else {
    return false;
  }
  npu.timeout_ns = stop_timeout_ns(npu);
  npu.started_ns = now_ns(*session);
  npu.waited_ns = 0;
  return true;
}

// Waits for the job in flight, as long as the caller wants to.
JobEnd wait_for_job(Session* session, NpuRegion* region, NpuWait* wait) {
  NpuState& npu = *session->npu;
  NpuDevice* device = region->device;
  JobEnd end;
  for (;;) {
    if (session->is_cancelled() && !npu.is_cancelled) (void)job_overdue(session, device);
    const uint64_t elapsed = elapsed_ns(*session), before = now_ns(*session);
    const uint64_t left = elapsed < npu.timeout_ns ? npu.timeout_ns - elapsed : 0;
    uint64_t slice = left < wait->remaining_ns ? left : wait->remaining_ns;
    if (slice > kMaxSliceNs) slice = kMaxSliceNs;
    end.report.struct_size = sizeof(end.report);
    end.status = device->driver->wait(device->device, npu.job, slice, &end.report);
    terminate_text(&end.report);
    if (end.status != QPLAN_NPU_PENDING) {
      npu.has_job = false;
      if (end.status >= 0 || !npu.is_cancelled || QPLAN_NPU_CLASS(end.status) == QPLAN_NPU_CLASS_GONE)
        return end;
      // What else became of the job is a failure of the device, which the application's cancel does not hide.
      if (session->is_cancelled()) {
        end.is_run_cancelled =
            end.status == QPLAN_NPU_E_CANCELLED || (end.status == QPLAN_NPU_E_RESET && npu.is_reset);
        return end;
      }
      // A job that was still in the queue is late too: the device is in order, and a reset would end the job
      // of another session that it waited for.
      end.needs_reset = end.status != QPLAN_NPU_E_CANCELLED && end.status != QPLAN_NPU_E_RESET;
      end_job(QPLAN_NPU_E_TIMEOUT, "the job did not end in time", &end);
      return end;
    }
    npu.waited_ns += slice;
    if (wait->remaining_ns != UINT64_MAX) {
      const uint64_t now = now_ns(*session);
      const uint64_t spent = now > before && now - before > slice ? now - before : slice;
      wait->remaining_ns -= spent < wait->remaining_ns ? spent : wait->remaining_ns;
    }
    if (elapsed_ns(*session) >= npu.timeout_ns && !job_overdue(session, device)) {
      npu.has_job = false;
      device->has_lost_job = true;
      if (writes_shared_memory(*session, *region)) device->lost_job_writes = true;
      end_job(QPLAN_NPU_E_LOST,
              device->lost_job_writes ? "the job ended neither by cancel nor by reset, it may still write to "
                                        "the session's memory"
                                      : "the job ended neither by cancel nor by reset",
              &end);
      return end;
    }
    if (wait->remaining_ns == 0) return end;
  }
}

}  // namespace

NpuRun run_region(Session* session, NpuRegion* region, NpuWait* wait) {
  NpuState& npu = *session->npu;
  NpuDevice* device = region->device;
  NpuWait forever = {UINT64_MAX};
  for (;;) {  // attempts
    JobEnd end;
    if (!npu.has_job) {
      end = submit_job(session, region);
      // Who does not wait at all is told at once, also of a second attempt.
      if (npu.has_job && device->is_asynchronous && wait->remaining_ns == 0) return NpuRun::kPending;
    }
    if (npu.has_job) end = wait_for_job(session, region, device->is_asynchronous ? wait : &forever);
    if (end.status == QPLAN_NPU_PENDING) return NpuRun::kPending;
    if (end.is_run_cancelled) return NpuRun::kCancelled;
    if (end.status >= 0) {
      end.status = take_completed_job(session, region, end.report);
      if (end.status >= 0) return NpuRun::kDone;
      end.report.text[0] = '\0';
    }
    switch (take_failed_job(session, region, end)) {
      case AfterFailure::kTryAgain:
        break;
      case AfterFailure::kCpu:
        return NpuRun::kCpu;
      case AfterFailure::kFail:
        return NpuRun::kFailed;
      case AfterFailure::kCancelled:
        return NpuRun::kCancelled;
    }
  }
}

void remember_outputs(Session* session, NpuRegion* region) {
  fetch_kept_outputs(session, region);
  region->checksum = checksum_of_outputs(*session, *region);
}

void compare_region(Session* session, NpuRegion* region) {
  if (checksum_of_outputs(*session, *region) == region->checksum) return;
  ++region->mismatches;
  region->keeps_outputs = false;
  put_text("the device's bytes differed from the CPU's", region->text);
  Error line;
  const uint32_t index = session->step_index(region->step);
  line << "npu: region" << Named{session->plan.step_name(index)} << " (step " << index << ") differs on "
       << Quoted{name_of_target(*session, *region->device)} << " from the CPU result; using the CPU result";
  log_text(session->platform, QPLAN_LOG_WARNING, line.text());
}

void stop_job(Session* session) {
  NpuState& npu = *session->npu;
  if (!npu.has_job) return;
  const NpuRegion& region = *session->steps[npu.next_step].region;
  const qplan_npu_driver& driver = *region.device->driver;
  (void)driver.cancel(region.device->device, npu.job);
  qplan_npu_status status = driver.wait(region.device->device, npu.job, stop_timeout_ns(npu), nullptr);
  if (status == QPLAN_NPU_PENDING) {
    ++region.device->resets;
    (void)driver.reset(region.device->device);
    status = driver.wait(region.device->device, npu.job, stop_timeout_ns(npu), nullptr);
  }
  if (status == QPLAN_NPU_PENDING) region.device->has_lost_job = true;
  npu.has_job = false;
}

}  // namespace qplan
