// The queue of a device, and the thread that runs it.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "src/vta/sim/device.h"
#include "src/vta/sim/options.h"
#include "src/vta/sim/record.h"

namespace qplan::sim {
namespace {

Fault stopped(qplan_npu_status status) {
  Fault fault;
  fault.status = status;
  fault.text = status == QPLAN_NPU_E_RESET  ? "the device was reset"
               : status == QPLAN_NPU_E_LOST ? "the device went away"
                                            : "cancelled";
  return fault;
}

// In the first output, in the first byte that the job stored.
void flip_silently(Dram* dram) {
  for (Segment& segment : dram->segments()) {
    if (!segment.is_output) continue;
    for (uint64_t g = 0; g < segment.touches.size(); ++g) {
      if (segment.touches[g].stored == 0) continue;
      segment.memory[g * kGranule] ^= 0x40;
      return;
    }
  }
}

bool overlap(const Segment& a, const Segment& b) {
  return a.address < b.address + b.bytes && b.address < a.address + a.bytes;
}

}  // namespace

Fault injected_fault(const FaultRule& rule, uint64_t index) {
  Fault fault;
  fault.instruction = index;
  fault.text = "instruction " + std::to_string(index) + ": injected " + fault_kind_name(rule.kind);
  switch (rule.kind) {
    case FaultKind::kBusError:
    case FaultKind::kBitFlip:
      fault.status = QPLAN_NPU_E_BUS;
      break;
    case FaultKind::kIllegalInstruction:
      fault.status = QPLAN_NPU_E_ILLEGAL;
      break;
    case FaultKind::kDeviceLost:
      fault.status = QPLAN_NPU_E_LOST;
      break;
    case FaultKind::kHang:
      fault.status = QPLAN_NPU_E_TIMEOUT;
      break;
    default:
      return Fault();
  }
  return fault;
}

bool Device::bind(const qplan_npu_submit& submit, Job* job, std::string* error) {
  const Program& program = *job->program;
  job->addresses.assign(program.regions.size(), 0);
  std::vector<Segment> segments(program.regions.size());
  for (uint32_t i = 0; i < program.regions.size(); ++i) {
    const ProgramRegion& region = program.regions[i];
    segments[i].bytes = region.bytes;
    segments[i].is_writable = is_writable(region.kind);
    segments[i].is_initialised = region.is_initialised;
    segments[i].is_output = region.kind == vta::RegionKind::kOutput;
    segments[i].name = region.name;
    if (!region.is_carried) continue;
    segments[i].address = job->addresses[i] = program.address + region.offset;
    segments[i].memory = program.memory.data() + region.offset;
  }
  for (uint32_t b = 0; b < submit.num_binds; ++b) {
    const qplan_npu_bind& bind = submit.binds[b];
    const std::string where = "bind " + std::to_string(b) + ": ";
    if (bind.slot >= program.regions.size() || segments[bind.slot].memory != nullptr) {
      *error = where + "slot " + std::to_string(bind.slot) + " is unknown, bound twice, or the program's own";
      return false;
    }
    const ProgramRegion& region = program.regions[bind.slot];
    const auto found = buffers_.find(bind.buffer);
    if (found == buffers_.end()) {
      *error = where + "buffer " + std::to_string(bind.buffer) + " is unknown";
      return false;
    }
    Buffer& buffer = *found->second;
    if (bind.offset > buffer.bytes || bind.bytes > buffer.bytes - bind.offset || bind.bytes < region.bytes) {
      *error = where + std::to_string(bind.bytes) + " bytes at offset " + std::to_string(bind.offset) +
               " of a buffer of " + std::to_string(buffer.bytes) + " for " + region.name + ", which needs " +
               std::to_string(region.bytes);
      return false;
    }
    const uint64_t address = buffer.address + bind.offset;
    if (address % region.alignment != 0) {
      *error = where + "address " + hexadecimal(address) + " for " + region.name + " is no multiple of " +
               std::to_string(region.alignment);
      return false;
    }
    if (is_writable(region.kind) && (buffer.usage & (QPLAN_NPU_USE_OUTPUT | QPLAN_NPU_USE_SCRATCH)) == 0) {
      *error = where + region.name + " is written, but the buffer was made for neither outputs nor scratch";
      return false;
    }
    segments[bind.slot].address = job->addresses[bind.slot] = address;
    segments[bind.slot].memory = buffer.device + bind.offset;
    job->buffers.push_back(found->second);
  }
  for (uint32_t i = 0; i < segments.size(); ++i) {
    if (segments[i].memory == nullptr) {
      *error = segments[i].name + " is not bound";
      return false;
    }
    for (uint32_t k = 0; k < i; ++k) {
      if ((segments[i].is_writable || segments[k].is_writable) && overlap(segments[i], segments[k])) {
        *error = segments[k].name + " and " + segments[i].name + " overlap, and one of them is written";
        return false;
      }
    }
  }
  for (Segment& segment : segments) job->dram.add(std::move(segment));
  return true;
}

qplan_npu_status Device::submit(const qplan_npu_submit& submit, uint64_t* handle, qplan_npu_reason* why) {
  auto job = std::make_shared<Job>();
  const std::lock_guard<std::mutex> lock(mutex_);
  if (is_lost_) return QPLAN_NPU_E_LOST;
  if (power_ == 0) return QPLAN_NPU_E_OFF;
  const auto program = programs_.find(submit.program);
  if (program == programs_.end()) {
    give_reason(why, "submit: program " + std::to_string(submit.program) + " is unknown");
    return QPLAN_NPU_E_ARGUMENT;
  }
  if (queue_.size() + (running_ != nullptr ? 1 : 0) >= options_.queue) return QPLAN_NPU_E_BUSY;
  for (uint32_t i = 0; i < submit.num_after; ++i) {
    if (submit.after[i] == 0 || submit.after[i] >= next_handle_) return QPLAN_NPU_E_ARGUMENT;
    if (jobs_.count(submit.after[i]) != 0) job->after.push_back(submit.after[i]);  // others have ended
  }
  job->program = program->second;
  std::string error;
  if (!bind(submit, job.get(), &error)) {
    give_reason(why, "submit: " + error);
    return QPLAN_NPU_E_ARGUMENT;
  }
  job->handle = next_handle_++;
  job->number = num_jobs_++;
  job->priority = submit.priority;
  job->done = submit.done;
  job->user = submit.user;
  job->submitted_ns = now_ns();
  ++job->program->users;
  for (const std::shared_ptr<Buffer>& buffer : job->buffers) ++buffer->users;
  *handle = job->handle;
  jobs_[job->handle] = job;
  queue_.push_back(std::move(job));
  changed_.notify_all();
  return QPLAN_NPU_OK;
}

qplan_npu_status Device::wait(uint64_t handle, uint64_t timeout_ns, qplan_npu_report* report) {
  std::unique_lock<std::mutex> lock(mutex_);
  const auto found = jobs_.find(handle);
  if (found == jobs_.end()) return QPLAN_NPU_E_ARGUMENT;
  const JobPtr job = found->second;
  const auto is_complete = [&] { return job->is_complete; };
  if (timeout_ns > static_cast<uint64_t>(INT64_MAX) / 4) {
    changed_.wait(lock, is_complete);
  } else if (!changed_.wait_for(lock, std::chrono::nanoseconds(timeout_ns), is_complete)) {
    return QPLAN_NPU_PENDING;
  }
  if (report != nullptr) {
    const uint32_t size = std::min<uint32_t>(report->struct_size, sizeof(*report));
    job->report.struct_size = report->struct_size;
    std::memcpy(report, &job->report, std::max<size_t>(size, sizeof(report->struct_size)));
  }
  jobs_.erase(handle);
  return job->report.status;
}

qplan_npu_status Device::cancel(uint64_t handle) {
  std::unique_lock<std::mutex> lock(mutex_);
  const auto found = jobs_.find(handle);
  if (found == jobs_.end()) return QPLAN_NPU_E_ARGUMENT;
  const JobPtr job = found->second;
  if (job->is_complete) return QPLAN_NPU_OK;
  const auto queued = std::find(queue_.begin(), queue_.end(), job);
  if (queued == queue_.end()) {
    job->stop_status = QPLAN_NPU_E_CANCELLED;
    job->stop = true;
    changed_.notify_all();
    return QPLAN_NPU_OK;
  }
  queue_.erase(queued);
  complete(*job, stopped(QPLAN_NPU_E_CANCELLED));
  lock.unlock();
  if (job->done != nullptr) job->done(job->user, job->handle, job->report.status);
  return QPLAN_NPU_OK;
}

void Device::stop_all(qplan_npu_status status, std::unique_lock<std::mutex>& lock) {
  std::deque<JobPtr> ended;
  ended.swap(queue_);
  for (const JobPtr& job : ended) complete(*job, stopped(status));
  if (running_ != nullptr) {
    running_->stop_status = status;
    running_->stop = true;
    changed_.notify_all();
    changed_.wait(lock, [this] { return running_ == nullptr; });
  }
  lock.unlock();
  for (const JobPtr& job : ended) {
    if (job->done != nullptr) job->done(job->user, job->handle, job->report.status);
  }
  lock.lock();
}

qplan_npu_status Device::reset() {
  std::unique_lock<std::mutex> lock(mutex_);
  if (is_lost_) return QPLAN_NPU_E_LOST;
  ++counters_[QPLAN_NPU_COUNTER_RESETS];
  stop_all(QPLAN_NPU_E_RESET, lock);
  return QPLAN_NPU_OK;
}

qplan_npu_status Device::close() {
  {
    std::unique_lock<std::mutex> lock(mutex_);
    if (is_closing_) return QPLAN_NPU_OK;
    is_closing_ = true;
    stop_all(QPLAN_NPU_E_CANCELLED, lock);
    changed_.notify_all();
  }
  thread_.join();
  std::string error;
  if (options_.trace.empty() || trace_.write(options_.trace, &error)) return QPLAN_NPU_OK;
  log(QPLAN_LOG_ERROR, "trace: " + error);
  return QPLAN_NPU_E_ARGUMENT;
}

void Device::complete(Job& job, const Fault& fault) {
  qplan_npu_report& report = job.report;
  report.status = fault.status;
  report.fault_instruction = fault.instruction;
  report.fault_address = fault.address;
  copy_text(fault.text, report.text, sizeof(report.text));
  --job.program->users;
  for (const std::shared_ptr<Buffer>& buffer : job.buffers) --buffer->users;
  // Whoever has seen the job's end may release them, and gets their memory back then: not when this thread is
  // done with the job.
  job.buffers.clear();
  job.program.reset();
  ++counters_[QPLAN_NPU_COUNTER_JOBS];
  if (fault.is_set()) ++counters_[QPLAN_NPU_COUNTER_FAILED_JOBS];
  counters_[QPLAN_NPU_COUNTER_CYCLES] += report.cycles;
  counters_[QPLAN_NPU_COUNTER_BYTES_READ] += report.bytes_read;
  counters_[QPLAN_NPU_COUNTER_BYTES_WRITTEN] += report.bytes_written;
  counters_[QPLAN_NPU_COUNTER_MACS] += report.macs;
  job.is_complete = true;
  if (running_.get() == &job) running_ = nullptr;  // the device is idle for whoever sees the end
  changed_.notify_all();
}

Device::JobPtr Device::next_job() {
  const auto may_start = [this](const Job& job) {
    for (const uint64_t after : job.after) {
      const auto found = jobs_.find(after);
      if (found != jobs_.end() && !found->second->is_complete) return false;
    }
    return true;
  };
  auto best = queue_.end();
  for (auto it = queue_.begin(); it != queue_.end(); ++it) {
    if (may_start(**it) && (best == queue_.end() || (*it)->priority > (*best)->priority)) best = it;
  }
  if (best == queue_.end()) return nullptr;
  JobPtr job = *best;
  queue_.erase(best);
  return job;
}

std::optional<FaultRule> Device::fault_of(const Job& job) const {
  const FaultRule* rule = find_fault(options_.faults, FaultPlace::kJob, job.number);
  if (rule != nullptr) return *rule;
  FaultRule random;
  if (options_.fault_percent > 0 && random_fault(options_.fault_seed, options_.fault_percent, job.number,
                                                 job.program->num_instructions, &random)) {
    return random;
  }
  return std::nullopt;
}

void Device::work() {
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    JobPtr job;
    changed_.wait(lock, [&] { return is_closing_ || (job = next_job()) != nullptr; });
    if (job == nullptr) return;
    running_ = job;
    lock.unlock();
    run(job);
    lock.lock();
    running_ = nullptr;
    changed_.notify_all();
    if (is_lost_) stop_all(QPLAN_NPU_E_LOST, lock);
  }
}

Fault Device::play(Job& job, const FaultRule* rule) {
  const Program& program = *job.program;
  const std::vector<vta::Instruction> stream = relocate(program, job.addresses);
  ExecuteOptions how;
  how.seed = options_.seed + job.number * 0x9e3779b97f4a7c15;
  how.explore = options_.explore;
  how.hazards_fail = options_.hazards_fail;
  how.stop = &job.stop;
  if (rule != nullptr) {
    how.before = [&](uint32_t index, Fault* fault) {
      if (rule->instruction == kAnyInstruction || rule->instruction == index)
        *fault = injected_fault(*rule, index);
    };
  }
  std::optional<Recording> recording;
  if (!options_.record.empty()) recording.emplace(job.dram);
  Outcome outcome = execute(options_.config, stream, program.schedule, how, &job.dram);
  const bool ran = !outcome.fault.is_set();
  std::string error;
  if (ran && recording.has_value() &&
      !recording->write(options_.record, options_.records_all, job.number, options_.config, stream, job.dram,
                        &error)) {
    log(QPLAN_LOG_ERROR, "record: " + error);
  }
  if (ran && !options_.trace.empty()) trace_.add(options_.config, job.number, program);
  if (ran && rule != nullptr && rule->kind == FaultKind::kSilentBitFlip) flip_silently(&job.dram);

  const Schedule& schedule = program.schedule;
  qplan_npu_report& report = job.report;
  if (ran) {
    report.cycles = schedule.total_cycles;
    report.busy_cycles = most_busy_cycles(schedule);
    report.bytes_read = schedule.bytes_read;
    report.bytes_written = schedule.bytes_written;
    report.macs = schedule.macs;
  }
  report.vendor[0] = outcome.hazards;
  report.vendor[1] = outcome.interleavings;
  for (uint32_t m = 0; m < vta::kNumModules; ++m) report.vendor[2 + m] = schedule.busy_cycles[m];
  report.vendor[5] = schedule.stall_cycles[static_cast<uint32_t>(vta::Queue::kLoadToCompute)];
  report.vendor[6] = schedule.stall_cycles[static_cast<uint32_t>(vta::Queue::kStoreToCompute)];
  report.vendor[7] = schedule.alu_operations;
  if (ran && outcome.hazards > 0) {
    outcome.fault.text = "hazard: " + outcome.first_hazard.text;  // reported, and not an error
  }
  return outcome.fault;
}

void Device::run(const JobPtr& job) {
  const uint64_t begin_ns = now_ns();
  const std::optional<FaultRule> rule = fault_of(*job);
  Fault fault = play(*job, rule.has_value() ? &*rule : nullptr);
  const bool ran = !fault.is_set();

  std::unique_lock<std::mutex> lock(mutex_);
  // A device that hangs, and one whose interrupt got lost, look the same: nothing comes until somebody stops
  // it.
  const auto is_stopped = [&] { return job->stop.load(); };
  const bool hangs =
      rule.has_value() && ((rule->kind == FaultKind::kHang && !ran && fault.status == QPLAN_NPU_E_TIMEOUT) ||
                           (rule->kind == FaultKind::kLostInterrupt && ran));
  if (hangs) changed_.wait(lock, is_stopped);
  if (ran && rule.has_value() && rule->kind == FaultKind::kLateInterrupt) {
    (void)changed_.wait_for(lock, std::chrono::milliseconds(rule->milliseconds), is_stopped);
  }
  if (job->stop && (hangs || !ran)) fault = stopped(job->stop_status);
  if (fault.status == QPLAN_NPU_E_LOST) is_lost_ = true;
  job->report.queued_ns = begin_ns - job->submitted_ns;
  job->report.run_ns = now_ns() - begin_ns;
  complete(*job, fault);
  lock.unlock();
  if (fault.is_set()) log(QPLAN_LOG_WARNING, "job " + std::to_string(job->number) + ": " + fault.text);
  if (job->done != nullptr) job->done(job->user, job->handle, job->report.status);
}

}  // namespace qplan::sim
