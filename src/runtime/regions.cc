// The session's side of regions: their records, the order of things around them, and what happens without
// devices.
#include <new>

#include "src/base/error.h"
#include "src/runtime/session.h"

namespace qplan {
namespace {

uint32_t num_fallback_steps(const Session& session, const NpuRegion& region) {
  return session.plan.npu_step(session.step_index(region.step))->num_alternative_steps();
}

const char* target_name(const Session& session, const NpuRegion& region) {
  return session.plan.plan().targets()->Get(region.device->target)->name()->c_str();
}

Error& begin_line(const Session& session, const NpuRegion& region, Error* line) {
  const uint32_t index = session.step_index(region.step);
  return *line << "npu: region" << Named{session.plan.step_name(index)} << " (step " << index << ") ";
}

// For a region without CPU steps.
const char* what_to_do(const Session& session, const NpuRegion& region) {
  const NpuState& npu = *session.npu;
  const NpuDevice& device = *region.device;
  if ((npu.flags & QPLAN_NPU_OFF) != 0 || npu.lacks_client)
    return "pack the source model with --fallback cpu";
  if (device.driver == nullptr) return "open that device, or pack the source model with --fallback cpu";
  if (device.takes_jobs()) return "pack the source model for this device, or with --fallback cpu";
  if (device.state == QPLAN_DEVICE_QUARANTINED)
    return "recover that device, or pack the source model with --fallback cpu";
  return "open that device again, or pack the source model with --fallback cpu";
}

qplan_status no_device(const Session& session, const NpuRegion& region, Error* error) {
  error->set(region.status == QPLAN_OK ? qplan_status{QPLAN_DEVICE_ERROR} : region.status,
             static_cast<int32_t>(session.step_index(region.step)));
  const NpuDevice& device = *region.device;
  begin_line(session, region, error) << "does not run on " << Quoted{target_name(session, region)} << ": "
                                     << (device.lost_job_writes ? device.text
                                                                : region_reason(session, region));
  if (device.lost_job_writes) {
    *error << "; close that device, open it again and make a new session";
  } else if (num_fallback_steps(session, region) == 0) {
    *error << "; it has no CPU steps: " << what_to_do(session, region);
  } else {
    *error << "; the policy is to fail";
  }
  return error->status();
}

}  // namespace

// Not where a lost job may write over what the CPU computes, this run or a later one.
bool may_run_on_cpu(const Session& session, const NpuRegion& region) {
  const NpuState& npu = *session.npu;
  return num_fallback_steps(session, region) > 0 && !region.device->lost_job_writes &&
         (npu.policy != QPLAN_NPU_FAIL || (npu.flags & QPLAN_NPU_OFF) != 0);
}

void place_regions(const SessionOptions& options, uint8_t* memory, Session* session) {
  const format::PlanView& plan = session->plan;
  const uint32_t targets = plan.npu_targets(*session->function);
  if (targets == 0) return;
  NpuState* npu = new (memory) NpuState();
  memory += format::kNpuStateBytes;
  npu->client = options.npu;
  npu->lacks_client = options.npu == nullptr && options.num_devices > 0;
  npu->policy = options.on_npu_failure;
  npu->flags = options.npu_flags;
  npu->given_timeout_ns = options.npu_timeout_ns;
  npu->devices = reinterpret_cast<NpuDevice*>(memory);
  for (uint32_t target = 0; target < format::kMaxNpuTargets; ++target) {
    if ((targets >> target & 1) == 0) continue;
    NpuDevice* device = new (npu->devices + npu->num_devices++) NpuDevice();
    device->target = target;
    for (uint32_t c = 0; c < kNumBankClasses; ++c)
      device->banks[c].index = static_cast<uint8_t>(
          plan.device_bank(target, static_cast<format::MemoryClass>(c)));  // num_banks() is no bank either
  }
  memory += npu->num_devices * format::kNpuDeviceBytes;
  npu->regions = reinterpret_cast<NpuRegion*>(memory);
  for (uint32_t i = 0; i < session->num_steps(); ++i) {
    const format::NpuStep* step = plan.npu_step(session->step_index(i));
    if (step == nullptr) continue;
    NpuRegion* region = new (npu->regions + npu->num_regions++) NpuRegion();
    region->step = i;
    region->device = npu->devices;
    while (region->device->target != step->target()) ++region->device;
    session->steps[i].region = region;
  }
  session->npu = npu;
}

qplan_status settle_regions(Session* session, Error* error) {
  const NpuState& npu = *session->npu;
  for (uint32_t r = 0; r < npu.num_regions; ++r) {
    const NpuRegion& region = npu.regions[r];
    const bool on_device = region.is_on_device();
    if (!on_device && !may_run_on_cpu(*session, region)) return no_device(*session, region, error);
    if (session->platform.log == nullptr || session->platform.log_level < QPLAN_LOG_INFO) continue;
    Error line;
    begin_line(*session, region, &line);
    if (on_device) {
      line << "runs on " << Quoted{target_name(*session, region)} << ", driver "
           << Quoted{region.device->driver->name} << ", " << region.program_bytes << " bytes of program";
    } else {
      line << "runs on the CPU: " << region_reason(*session, region);
    }
    log_text(session->platform, QPLAN_LOG_INFO, line.text());
  }
  return QPLAN_OK;
}

const char* region_reason(const Session& session, const NpuRegion& region) {
  if (region.is_on_device()) return "";
  if ((session.npu->flags & QPLAN_NPU_OFF) != 0) return device_reason(session, *region.device);
  if (region.text[0] != '\0') return region.text;
  return device_reason(session, *region.device);
}

const char* device_reason(const Session& session, const NpuDevice& device) {
  const NpuState& npu = *session.npu;
  if ((npu.flags & QPLAN_NPU_OFF) != 0) return "devices are switched off (QPLAN_NPU_OFF)";
  if (npu.lacks_client) return "the session was made without a client (config.npu is NULL)";
  if (device.text[0] != '\0') return device.text;
  return "no device was given for its target";
}

namespace {

// The step of a region on its device, from its begin to its end; several calls where the job is pending
// between them.
NpuRun run_on_device(Session* session, uint32_t i, NpuRegion* region, NpuWait* wait) {
  NpuState& npu = *session->npu;
  if (!npu.has_job) {
    npu.attempts = 0;
    step_begins(*session, i);
  }
  const NpuRun run = npu.client->run(session, region, wait);
  switch (run) {
    case NpuRun::kPending:
      break;
    case NpuRun::kDone:
      step_ends(session, i, QPLAN_OK);
      break;
    case NpuRun::kCpu:
      step_ends(session, i, QPLAN_DEVICE_ERROR);
      break;
    case NpuRun::kFailed:
      step_ends(session, i, session->error.status());
      break;
    case NpuRun::kCancelled:
      step_ends(session, i, QPLAN_CANCELLED);
      break;
  }
  return run;
}

}  // namespace

qplan_status run_regions(Session* session, NpuWait* wait) {
  NpuState& npu = *session->npu;
  while (npu.next_step < session->num_steps()) {
    const uint32_t i = npu.next_step;
    const format::NpuStep* step = session->plan.npu_step(session->step_index(i));
    if (step == nullptr) {
      const qplan_status status = run_kernel_step(session, i);
      if (status < 0) return status;
      ++npu.next_step;
      continue;
    }
    NpuRegion* region = session->steps[i].region;
    NpuRun run = NpuRun::kCpu;
    if (session->is_cancelled() && !npu.has_job) return cancelled_at(session, i);
    if (!npu.has_job) region->keeps_outputs = false;
    if (npu.has_job || region->is_on_device()) {
      run = run_on_device(session, i, region, wait);
    } else if (!may_run_on_cpu(*session, *region)) {
      return no_device(*session, *region, &session->error);
    }
    if (run == NpuRun::kPending) return QPLAN_PENDING;
    if (run == NpuRun::kFailed) return session->error;
    if (run == NpuRun::kCancelled) return cancelled_at(session, i);
    ++npu.next_step;
    const bool verifies =
        run == NpuRun::kDone && (npu.flags & QPLAN_NPU_VERIFY) != 0 && step->num_alternative_steps() > 0;
    if (run == NpuRun::kDone && !verifies) {
      npu.next_step += step->num_alternative_steps();
      continue;
    }
    if (npu.client != nullptr) npu.client->provide(session, region);
    if (verifies) npu.client->remember(session, region);
    ++region->cpu_runs;
    for (uint32_t k = 0; k < step->num_alternative_steps(); ++k, ++npu.next_step) {
      const qplan_status status = run_kernel_step(session, npu.next_step);
      if (status < 0) return status;
    }
    if (verifies) npu.client->compare(session, region);
  }
  return npu.client != nullptr ? npu.client->finish(session) : qplan_status{QPLAN_OK};
}

}  // namespace qplan
