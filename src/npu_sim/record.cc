// A driver that records the jobs of another one.
#include "src/vta/sim/record.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

#include "qplan/npu_sim.h"
#include "src/ethosu/sim/device.h"
#include "src/npu_sim/handles.h"
#include "src/vta/sim/options.h"

namespace qplan::sim {
namespace {

constexpr uint8_t kUnwritten = 0xa5;
constexpr uint64_t kCheckedBytes = 64;  // scratch is checked in pieces of this size

struct KnownProgram {
  uint32_t format = 0;
  std::vector<uint8_t> blob;
  std::vector<qplan_npu_region_info> slots;
  std::string error;  // why its jobs cannot be recorded
};

// A job in flight.
struct OpenJob {
  std::shared_ptr<const KnownProgram> program;
  std::vector<qplan_npu_bind> binds;
  std::vector<RecordedBytes> loads;  // by slot
};

class Recorder {
 public:
  Recorder(const qplan_npu_driver& recorded, qplan_npu_device handle, const qplan_platform* platform,
           std::string directory, bool is_all)
      : driver(recorded),
        device(handle),
        platform_(platform),
        directory_(std::move(directory)),
        is_all_(is_all) {
    qplan_npu_capabilities capabilities = {};
    capabilities.struct_size = sizeof(capabilities);
    if (driver.capabilities(device, &capabilities) >= 0)
      name_.assign(capabilities.target, strnlen(capabilities.target, sizeof(capabilities.target)));
    for (char& c : name_) {
      if (c <= ' ' || c > '~') c = '_';  // a word of job.txt
    }
  }

  void add_program(qplan_npu_program handle, uint32_t format, const void* blob, uint64_t bytes) {
    auto program = std::make_shared<KnownProgram>();
    program->format = format;
    const auto* const first = static_cast<const uint8_t*>(blob);
    program->blob.assign(first, first + bytes);
    qplan_npu_program_info info = {};
    info.struct_size = sizeof(info);
    qplan_npu_status status = driver.program_info(device, handle, &info);
    if (info.num_regions > kMostSlots) program->error = "the program has more than 4096 slots";
    for (uint32_t slot = 0; status >= 0 && slot < info.num_regions && slot < kMostSlots; ++slot) {
      program->slots.push_back({});
      program->slots.back().struct_size = sizeof(qplan_npu_region_info);
      status = driver.region_info(device, handle, slot, &program->slots.back());
    }
    if (status < 0) program->error = "the driver states nothing about its program";
    const std::lock_guard<std::mutex> lock(mutex_);
    programs_[handle] = std::move(program);
  }
  void remove_program(qplan_npu_program handle) {
    const std::lock_guard<std::mutex> lock(mutex_);
    programs_.erase(handle);
  }
  // Where the CPU finds a buffer's bytes; null: it is gone.
  void set_memory(qplan_npu_buffer buffer, void* memory) {
    const std::lock_guard<std::mutex> lock(mutex_);
    memory == nullptr ? (void)memory_.erase(buffer) : (void)(memory_[buffer] = static_cast<uint8_t*>(memory));
  }

  // done() may be called inside submit and calls no driver, so that the lock may be held meanwhile: the job
  // must be known before another thread waits for it.
  qplan_npu_status submit(const qplan_npu_submit* from, qplan_npu_job* job, qplan_npu_reason* why) {
    qplan_npu_submit all;
    const std::lock_guard<std::mutex> lock(mutex_);
    std::optional<OpenJob> open;
    qplan_npu_status status = QPLAN_NPU_PENDING;
    try {
      if (copy_in(from, &all) && (all.num_binds == 0 || all.binds != nullptr)) open = begin(all);
      status = driver.submit(device, from, job, why);
      if (status >= 0 && open) jobs_[*job] = std::move(*open);
    } catch (const std::bad_alloc&) {
      log("no memory left for the job's inputs");
      if (status == QPLAN_NPU_PENDING) status = driver.submit(device, from, job, why);
    }
    return status;
  }

  qplan_npu_status wait(qplan_npu_job job, uint64_t timeout_ns, qplan_npu_report* report) {
    const qplan_npu_status status = driver.wait(device, job, timeout_ns, report);
    if (status == QPLAN_NPU_PENDING) return status;
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto open = jobs_.extract(job);
    try {
      if (!open.empty() && status >= 0) end(open.mapped());
    } catch (const std::bad_alloc&) {
      log("no memory left for the job's outputs");
    }
    return status;
  }

  const qplan_npu_driver& driver;
  const qplan_npu_device device;
  qplan_npu_driver table = {};  // what sessions call

 private:
  void log(const std::string& text) const {
    if (platform_ != nullptr && platform_->log != nullptr && platform_->log_level >= QPLAN_LOG_ERROR)
      platform_->log(platform_->user, QPLAN_LOG_ERROR, ("record: " + text).c_str());
  }

  // The bytes of a bind as the device has them; null with a line in the log. What sessions bind they have
  // cleaned, so that no byte of theirs is lost here.
  uint8_t* bytes_of(const qplan_npu_bind& bind) {
    auto found = memory_.find(bind.buffer);
    if (found == memory_.end()) {
      void* memory = nullptr;
      if (driver.map(device, bind.buffer, QPLAN_NPU_READ, &memory) >= 0) {
        (void)driver.unmap(device, bind.buffer, QPLAN_NPU_READ);
        found = memory_.emplace(bind.buffer, static_cast<uint8_t*>(memory)).first;
      }
    }
    if (found != memory_.end() && driver.invalidate(device, bind.buffer, bind.offset, bind.bytes) >= 0)
      return found->second + bind.offset;
    log("the CPU cannot read the buffer of slot " + std::to_string(bind.slot));
    return nullptr;
  }

  std::optional<OpenJob> begin(const qplan_npu_submit& submit) {
    const auto program = programs_.find(submit.program);
    if (program == programs_.end()) return std::nullopt;
    OpenJob job;
    job.program = program->second;
    std::string error = job.program->error;
    if (submit.num_after > 0) error = "a job that waits for others is not recorded";
    job.binds.assign(submit.binds, submit.binds + submit.num_binds);
    std::ranges::sort(job.binds, {}, &qplan_npu_bind::slot);
    for (const qplan_npu_bind& bind : job.binds) {
      if (!error.empty()) break;
      if (bind.slot >= job.program->slots.size()) return std::nullopt;  // the driver refuses it
      if (!prepare(bind, job.program->slots[bind.slot].usage, &job)) return std::nullopt;
    }
    if (error.empty()) return job;
    log(error);
    return std::nullopt;
  }

  bool prepare(const qplan_npu_bind& bind, uint32_t usage, OpenJob* job) {
    // VTA leaves the border of an output as it is.
    const bool is_loaded = (usage & QPLAN_NPU_USE_INPUT) != 0 || job->program->format == QPLAN_NPU_BLOB_VTA;
    const bool is_filled = is_all_ && usage == QPLAN_NPU_USE_SCRATCH;
    if (!is_loaded && !is_filled) return true;
    uint8_t* const bytes = bytes_of(bind);
    if (bytes == nullptr) return false;
    if (is_loaded) job->loads.push_back({bind.slot, 0, {bytes, bytes + bind.bytes}});
    if (!is_filled) return true;
    std::memset(bytes, kUnwritten, bind.bytes);
    return driver.flush(device, bind.buffer, bind.offset, bind.bytes) >= 0;
  }

  // After the job has ended well.
  void end(OpenJob& job) {
    std::vector<RecordedBytes> checks;  // by slot
    for (const qplan_npu_bind& bind : job.binds) {
      const uint32_t usage = job.program->slots[bind.slot].usage;
      const bool is_output = (usage & QPLAN_NPU_USE_OUTPUT) != 0;
      if (!is_output && !(is_all_ && usage == QPLAN_NPU_USE_SCRATCH)) continue;
      const uint8_t* const bytes = bytes_of(bind);
      if (bytes == nullptr) return;
      if (is_output) {
        checks.push_back({bind.slot, 0, {bytes, bytes + bind.bytes}});
      } else {
        add_written(bind, bytes, &checks);
      }
    }
    RecordedJob record;
    if (!read_ethosu(job, checks, &record)) read_slots(job, std::move(checks), &record);
    write(record);
  }

  // Pieces of scratch in which the job wrote something.
  static void add_written(const qplan_npu_bind& bind, const uint8_t* bytes,
                          std::vector<RecordedBytes>* checks) {
    bool goes_on = false;
    for (uint64_t at = 0; at < bind.bytes; at += kCheckedBytes) {
      const uint8_t* const first = bytes + at;
      const uint8_t* const last = bytes + std::min(at + kCheckedBytes, bind.bytes);
      const bool is_written = std::any_of(first, last, [](uint8_t byte) { return byte != kUnwritten; });
      if (is_written && !goes_on) checks->push_back({bind.slot, at, {}});
      if (is_written) checks->back().bytes.insert(checks->back().bytes.end(), first, last);
      goes_on = is_written;
    }
  }

  void read_slots(OpenJob& job, std::vector<RecordedBytes> checks, RecordedJob* record) const {
    record->head = "target slots\nformat " + hexadecimal(job.program->format) + "\n" +
                   (name_.empty() ? "" : "device " + name_ + "\n");
    record->program_file = "program.bin";
    record->program = &job.program->blob;
    record->regions.resize(job.program->slots.size(), {0, false, false});
    for (const qplan_npu_bind& bind : job.binds) {
      const bool is_input = job.program->slots[bind.slot].usage == QPLAN_NPU_USE_INPUT;
      record->regions[bind.slot] = {bind.bytes, is_input, true};
    }
    record->loads = std::move(job.loads);
    record->checks = std::move(checks);
  }

  // As its simulator records. False: it is no program of Ethos-U.
  bool read_ethosu(const OpenJob& job, const std::vector<RecordedBytes>& checks, RecordedJob* record) {
    const ethosu::Config* const config = ethosu::find_config(name_.c_str());
    ethosu::Blob blob;
    if (job.program->format != ethosu::kBlobMagic || config == nullptr ||
        ethosu::read_blob(job.program->blob.data(), job.program->blob.size(), *config, &blob, nullptr) !=
            QPLAN_NPU_OK) {
      return false;
    }
    std::vector<ethosu::BlobRegion> regions;
    for (uint32_t r = 0; r < blob.header.num_regions; ++r) regions.push_back(blob_region(blob, r));
    const uint8_t* const payload = blob.bytes + blob.header.payload_offset;
    payload_.assign(payload, payload + blob.header.payload_bytes);
    *record = ethosu::sim::recorded_job(regions, payload_);
    for (uint32_t r = 0; r < regions.size(); ++r) {
      if (!record->regions[r].is_constant) continue;
      const uint8_t* const data = blob.bytes + regions[r].data_offset;
      record->loads.push_back({r, 0, {data, data + regions[r].bytes}});
    }
    const auto place = [&](RecordedBytes bytes) {
      const ethosu::BlobSlot slot = blob_slot(blob, bytes.region);
      bytes.region = slot.region;
      bytes.offset += slot.offset;
      return bytes;
    };
    for (const RecordedBytes& load : job.loads) {
      if (!is_copied_slot(blob, load.region))
        record->regions[blob_slot(blob, load.region).region].is_constant = true;
      record->loads.push_back(place(load));
    }
    for (const RecordedBytes& check : checks) record->checks.push_back(place(check));
    return true;
  }

  void write(const RecordedJob& record) {
    // Devices of one process may record into one directory.
    static std::mutex* const numbers = new std::mutex();
    const std::lock_guard<std::mutex> lock(*numbers);
    std::error_code code;
    while (std::filesystem::exists(job_path(directory_, next_), code)) ++next_;
    std::string error;
    if (!write_record(directory_, next_, record, &error)) log(error);
  }

  const qplan_platform* platform_;
  std::string directory_, name_;
  const bool is_all_;
  std::mutex mutex_;  // guards all below
  std::map<qplan_npu_program, std::shared_ptr<const KnownProgram>> programs_;
  std::map<qplan_npu_buffer, uint8_t*> memory_;
  std::map<qplan_npu_job, OpenJob> jobs_;
  std::vector<uint8_t> payload_;
  uint64_t next_ = 0;
};

using Recorders = Handles<Recorder>;

// ---- the table: most functions are the driver's own

template <typename Function>
struct PassOn;
template <typename... Args>
struct PassOn<qplan_npu_status (*)(qplan_npu_device, Args...)> {
  template <auto kFunction>
  static qplan_npu_status call(qplan_npu_device handle, Args... args) {
    return Recorders::on_device(
        handle, [&](const Recorder& to) { return (to.driver.*kFunction)(to.device, args...); });
  }
};
template <auto kFunction>
constexpr auto pass_on() {
  return &PassOn<std::remove_cvref_t<decltype(std::declval<qplan_npu_driver&>().*kFunction)>>::template call<
      kFunction>;
}

qplan_npu_status record_enumerate(const qplan_device_hooks*, uint32_t*) { return QPLAN_NPU_E_UNSUPPORTED; }
qplan_npu_status record_open(const qplan_device_hooks*, uint32_t, const char*, qplan_npu_device*,
                             qplan_npu_reason*) {
  return QPLAN_NPU_E_UNSUPPORTED;
}
qplan_npu_status record_close(qplan_npu_device handle) {
  const std::shared_ptr<Recorder> recorder = Recorders::all().remove(handle);
  return recorder == nullptr ? QPLAN_NPU_E_ARGUMENT : recorder->driver.close(recorder->device);
}

template <auto kLoad>
qplan_npu_status record_load(qplan_npu_device handle, uint32_t format, const void* blob, uint64_t bytes,
                             qplan_npu_program* program, qplan_npu_reason* why) {
  return Recorders::on_device(handle, [&](Recorder& to) {
    const qplan_npu_status status = (to.driver.*kLoad)(to.device, format, blob, bytes, program, why);
    if (status >= 0) to.add_program(*program, format, blob, bytes);
    return status;
  });
}
qplan_npu_status record_unload(qplan_npu_device handle, qplan_npu_program program) {
  return Recorders::on_device(handle, [&](Recorder& to) {
    const qplan_npu_status status = to.driver.unload(to.device, program);
    if (status >= 0) to.remove_program(program);
    return status;
  });
}

qplan_npu_status record_import(qplan_npu_device handle, const qplan_npu_buffer_request* request,
                               uint32_t kind, uint64_t value, uint64_t offset, qplan_npu_buffer* buffer) {
  return Recorders::on_device(handle, [&](Recorder& to) {
    const qplan_npu_status status = to.driver.import_memory(to.device, request, kind, value, offset, buffer);
    if (status >= 0 && kind == QPLAN_NPU_IMPORT_POINTER)
      to.set_memory(*buffer, reinterpret_cast<uint8_t*>(static_cast<uintptr_t>(value)) + offset);
    return status;
  });
}
qplan_npu_status record_release(qplan_npu_device handle, qplan_npu_buffer buffer) {
  return Recorders::on_device(handle, [&](Recorder& to) {
    const qplan_npu_status status = to.driver.release(to.device, buffer);
    if (status >= 0) to.set_memory(buffer, nullptr);
    return status;
  });
}
qplan_npu_status record_map(qplan_npu_device handle, qplan_npu_buffer buffer, uint32_t access,
                            void** memory) {
  return Recorders::on_device(handle, [&](Recorder& to) {
    const qplan_npu_status status = to.driver.map(to.device, buffer, access, memory);
    if (status >= 0) to.set_memory(buffer, *memory);
    return status;
  });
}

qplan_npu_status record_submit(qplan_npu_device handle, const qplan_npu_submit* submit, qplan_npu_job* job,
                               qplan_npu_reason* why) {
  return Recorders::on_device(handle, [&](Recorder& to) { return to.submit(submit, job, why); });
}
qplan_npu_status record_wait(qplan_npu_device handle, qplan_npu_job job, uint64_t timeout_ns,
                             qplan_npu_report* report) {
  return Recorders::on_device(handle, [&](Recorder& to) { return to.wait(job, timeout_ns, report); });
}

void fill_table(const qplan_npu_driver& driver, qplan_npu_driver* table) {
  using Table = qplan_npu_driver;
  *table = {sizeof(Table),
            QPLAN_NPU_ABI,
            driver.name,
            record_enumerate,
            record_open,
            record_close,
            pass_on<&Table::capabilities>(),
            pass_on<&Table::supported>(),
            driver.power == nullptr ? nullptr : pass_on<&Table::power>(),
            pass_on<&Table::reset>(),
            pass_on<&Table::requirements>(),
            pass_on<&Table::alloc>(),
            record_import,
            record_release,
            pass_on<&Table::layout>(),
            record_map,
            pass_on<&Table::unmap>(),
            pass_on<&Table::flush>(),
            pass_on<&Table::invalidate>(),
            record_load<&Table::load>,
            pass_on<&Table::program_info>(),
            pass_on<&Table::region_info>(),
            record_unload,
            record_submit,
            record_wait,
            pass_on<&Table::cancel>(),
            driver.counters == nullptr ? nullptr : pass_on<&Table::counters>(),
            nullptr,
            nullptr};
  constexpr size_t kInPlace = offsetof(Table, load_in_place) + sizeof(Table::load_in_place);
  if (driver.struct_size >= kInPlace && driver.load_in_place != nullptr)
    table->load_in_place = record_load<&Table::load_in_place>;
}

}  // namespace
}  // namespace qplan::sim

qplan_npu_status qplan_npu_record(const qplan_npu_driver** driver, qplan_npu_device* device,
                                  const qplan_platform* platform, const char* directory, uint32_t flags) {
  using namespace qplan::sim;
  if (driver == nullptr || *driver == nullptr || device == nullptr || directory == nullptr ||
      directory[0] == '\0' || (flags & ~uint32_t{QPLAN_NPU_RECORD_ALL}) != 0) {
    return QPLAN_NPU_E_ARGUMENT;
  }
  try {
    const auto recorder = std::make_shared<Recorder>(**driver, *device, platform, directory,
                                                     (flags & QPLAN_NPU_RECORD_ALL) != 0);
    fill_table(**driver, &recorder->table);
    *device = Recorders::all().add(recorder);
    *driver = &recorder->table;
    return QPLAN_NPU_OK;
  } catch (...) {
    return QPLAN_NPU_E_MEMORY;
  }
}
