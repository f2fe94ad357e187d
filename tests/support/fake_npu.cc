#include "tests/support/fake_npu.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "tests/support/malloc_trap.h"

namespace qplan::testing {
namespace {

constexpr uint64_t kLine = 64;

uint64_t next_handle = 0x1000;
std::map<uint64_t, FakeNpu*>& devices() {
  static std::map<uint64_t, FakeNpu*> all;
  return all;
}
FakeNpu* find(qplan_npu_device handle) {
  const auto found = devices().find(handle);
  return found == devices().end() ? nullptr : found->second;
}

qplan_npu_status take(std::deque<qplan_npu_status>* script) {
  if (script->empty()) return QPLAN_NPU_OK;
  const qplan_npu_status status = script->front();
  script->pop_front();
  return status;
}

class Meter {
 public:
  explicit Meter(FakeNpu* npu) : npu_(*npu), before_(allocation_count()) {}
  ~Meter() { npu_.allocations += allocation_count() - before_; }

 private:
  FakeNpu& npu_;
  uint64_t before_;
};

void put_text(const std::string& text, char* to, size_t room) {
  std::strncpy(to, text.c_str(), room - 1);
  to[room - 1] = '\0';
}

}  // namespace

std::vector<uint8_t> fake_blob(uint8_t addend, const std::vector<uint64_t>& inputs,
                               const std::vector<uint64_t>& outputs, const std::vector<uint64_t>& scratch) {
  std::string text = "add " + std::to_string(addend);
  for (const auto& [name, sizes] : {std::pair(" in", &inputs), {" out", &outputs}, {" scratch", &scratch}}) {
    for (const uint64_t size : *sizes) text += name + std::string(" ") + std::to_string(size);
  }
  return {text.begin(), text.end()};
}

struct FakeNpuFunctions {
  static qplan_npu_status enumerate(const qplan_device_hooks*, uint32_t* count) {
    *count = 1;
    return QPLAN_NPU_OK;
  }
  static qplan_npu_status open(const qplan_device_hooks*, uint32_t, const char*, qplan_npu_device*,
                               qplan_npu_reason*) {
    return QPLAN_NPU_E_ABSENT;
  }
  static qplan_npu_status close(qplan_npu_device) { return QPLAN_NPU_OK; }
  static qplan_npu_status capabilities(qplan_npu_device d, qplan_npu_capabilities* c) {
    FakeNpu* npu = find(d);
    if (npu == nullptr) return QPLAN_NPU_E_ARGUMENT;
    c->flags =
        (npu->can_import ? QPLAN_NPU_CAN_IMPORT : 0) | (npu->is_asynchronous ? QPLAN_NPU_CAN_ASYNC : 0);
    c->max_binds = npu->max_binds;
    c->clock_khz = npu->clock_khz;
    c->memory_classes = npu->memory_classes;
    c->blob_formats[0] = kFakeBlobFormat;
    return npu->capabilities_status;
  }
  static qplan_npu_status supported(qplan_npu_device, const qplan_npu_op*, qplan_npu_reason*, uint32_t*) {
    return QPLAN_NPU_E_UNSUPPORTED;
  }
  static qplan_npu_status reset(qplan_npu_device d) {
    FakeNpu* npu = find(d);
    ++npu->counts.resets;
    if (npu->reset_works) {
      for (auto& [handle, job] : npu->jobs_) {
        job.is_stopped = true;
        job.status = npu->finishes_late ? QPLAN_NPU_OK : QPLAN_NPU_E_RESET;
        if (npu->finishes_late) npu->run(&job);
      }
    }
    return npu->reset_status;
  }
  static qplan_npu_status requirements(qplan_npu_device, const qplan_npu_buffer_request* request,
                                       qplan_npu_layout* layout) {
    layout->bytes = request->min_bytes;
    return QPLAN_NPU_OK;
  }
  static qplan_npu_status add_buffer(FakeNpu* npu, uint8_t* memory, const qplan_npu_buffer_request& request,
                                     qplan_npu_buffer* buffer) {
    const uint64_t bytes = request.min_bytes;
    FakeNpu::Buffer made;
    made.bytes = bytes;
    if (npu->memory_classes != 0 && request.memory_class != QPLAN_NPU_MEMORY_CLASS_ANY) {
      if ((npu->memory_classes >> request.memory_class & 1) == 0) return QPLAN_NPU_E_UNSUPPORTED;
      if (memory != nullptr && npu->imported_class != QPLAN_NPU_MEMORY_CLASS_ANY &&
          npu->imported_class != request.memory_class)
        return QPLAN_NPU_E_UNSUPPORTED;
      if (request.memory_class == QPLAN_NPU_MEMORY_CLASS_SRAM && bytes > npu->sram_bytes)
        return QPLAN_NPU_E_ONCHIP;
      made.memory_class = request.memory_class;
    }
    made.cpu = memory;
    if (!npu->is_coherent) made.device.assign(bytes, 0xd7);
    *buffer = npu->next_++;
    FakeNpu::Buffer& placed = npu->buffers_[*buffer] = std::move(made);
    if (memory == nullptr) {
      placed.owned.assign(bytes, 0xee);
      placed.cpu = placed.owned.data();
    }
    return QPLAN_NPU_OK;
  }
  static qplan_npu_status alloc(qplan_npu_device d, const qplan_npu_buffer_request* request,
                                qplan_npu_buffer* buffer) {
    FakeNpu* npu = find(d);
    if (npu->alloc_status < 0) return npu->alloc_status;
    ++npu->counts.allocs;
    npu->last_request = *request;
    return add_buffer(npu, nullptr, *request, buffer);
  }
  static qplan_npu_status import_memory(qplan_npu_device d, const qplan_npu_buffer_request* request,
                                        uint32_t kind, uint64_t value, uint64_t offset,
                                        qplan_npu_buffer* buffer) {
    FakeNpu* npu = find(d);
    if (!npu->can_import || kind != QPLAN_NPU_IMPORT_POINTER) return QPLAN_NPU_E_UNSUPPORTED;
    if (npu->import_status < 0) return npu->import_status;
    ++npu->counts.imports;
    return add_buffer(npu, reinterpret_cast<uint8_t*>(value + offset), *request, buffer);
  }
  static qplan_npu_status release(qplan_npu_device d, qplan_npu_buffer buffer) {
    FakeNpu* npu = find(d);
    ++npu->counts.releases;
    if (const qplan_npu_status status = take(&npu->release_statuses); status < 0) return status;
    for (const auto& [handle, job] : npu->jobs_) {
      for (const qplan_npu_bind& bind : job.binds) {
        if (bind.buffer == buffer) return QPLAN_NPU_E_BUSY;
      }
    }
    return npu->buffers_.erase(buffer) == 1 ? QPLAN_NPU_OK : QPLAN_NPU_E_ARGUMENT;
  }
  static qplan_npu_status layout(qplan_npu_device d, qplan_npu_buffer buffer, qplan_npu_layout* layout) {
    FakeNpu* npu = find(d);
    if (npu->buffers_.count(buffer) == 0) return QPLAN_NPU_E_ARGUMENT;
    layout->bytes = npu->buffers_[buffer].bytes;
    layout->device_address = npu->device_address;
    layout->memory_class = npu->buffers_[buffer].memory_class;
    return QPLAN_NPU_OK;
  }
  static qplan_npu_status map(qplan_npu_device d, qplan_npu_buffer buffer, uint32_t access, void** memory) {
    FakeNpu* npu = find(d);
    const auto found = npu->buffers_.find(buffer);
    if (found == npu->buffers_.end() || access == 0) return QPLAN_NPU_E_ARGUMENT;
    if ((access & QPLAN_NPU_READ) != 0) (void)maintain(npu, buffer, 0, found->second.bytes, false);
    *memory = found->second.cpu;
    return QPLAN_NPU_OK;
  }
  static qplan_npu_status unmap(qplan_npu_device d, qplan_npu_buffer buffer, uint32_t access) {
    FakeNpu* npu = find(d);
    const auto found = npu->buffers_.find(buffer);
    if (found == npu->buffers_.end()) return QPLAN_NPU_E_ARGUMENT;
    if ((access & QPLAN_NPU_WRITE) != 0) (void)maintain(npu, buffer, 0, found->second.bytes, true);
    return QPLAN_NPU_OK;
  }
  static qplan_npu_status maintain(FakeNpu* npu, qplan_npu_buffer buffer, uint64_t offset, uint64_t bytes,
                                   bool is_flush) {
    const auto found = npu->buffers_.find(buffer);
    if (found == npu->buffers_.end()) return QPLAN_NPU_E_ARGUMENT;
    FakeNpu::Buffer& b = found->second;
    if (offset > b.bytes || bytes > b.bytes - offset) return QPLAN_NPU_E_ARGUMENT;
    if (b.device.empty()) return QPLAN_NPU_OK;
    const uint64_t begin = offset / kLine * kLine,
                   end = std::min(b.bytes, (offset + bytes + kLine - 1) / kLine * kLine);
    uint8_t* const to = is_flush ? b.device.data() : b.cpu;
    const uint8_t* const from = is_flush ? b.cpu : b.device.data();
    std::memcpy(to + begin, from + begin, end - begin);
    return QPLAN_NPU_OK;
  }
  static qplan_npu_status flush(qplan_npu_device d, qplan_npu_buffer buffer, uint64_t offset,
                                uint64_t bytes) {
    ++find(d)->counts.flushes;
    if (const qplan_npu_status status = take(&find(d)->flush_statuses); status < 0) return status;
    return maintain(find(d), buffer, offset, bytes, true);
  }
  static qplan_npu_status invalidate(qplan_npu_device d, qplan_npu_buffer buffer, uint64_t offset,
                                     uint64_t bytes) {
    ++find(d)->counts.invalidates;
    if (const qplan_npu_status status = take(&find(d)->invalidate_statuses); status < 0) return status;
    return maintain(find(d), buffer, offset, bytes, false);
  }
  static qplan_npu_status load(qplan_npu_device d, uint32_t format, const void* blob, uint64_t bytes,
                               qplan_npu_program* program, qplan_npu_reason* why) {
    FakeNpu* npu = find(d);
    if (why != nullptr) put_text(npu->load_text, why->text, sizeof(why->text));
    if (npu->fills_texts) std::memset(why->text, '!', sizeof(why->text));
    if (const qplan_npu_status status = take(&npu->load_statuses); status < 0) return status;
    if (npu->load_status < 0) return npu->load_status;
    const std::string text(static_cast<const char*>(blob), bytes);
    if (format != kFakeBlobFormat || text.rfind("add ", 0) != 0) return QPLAN_NPU_E_BLOB;
    ++npu->counts.loads;
    FakeNpu::Program made;
    char* at = nullptr;
    made.addend = static_cast<uint8_t>(std::strtoul(text.c_str() + 4, &at, 10));
    while (*at == ' ') {
      const char kind = at[1];
      at = std::strchr(at + 1, ' ');
      if (at == nullptr) return QPLAN_NPU_E_BLOB;
      const uint64_t size = std::strtoull(at + 1, &at, 10);
      (kind == 'i' ? made.inputs : kind == 'o' ? made.outputs : made.scratch).push_back(size);
    }
    if (made.inputs.empty()) return QPLAN_NPU_E_BLOB;
    *program = npu->next_++;
    npu->programs_[*program] = made;
    return QPLAN_NPU_OK;
  }
  static qplan_npu_status program_info(qplan_npu_device d, qplan_npu_program program,
                                       qplan_npu_program_info* info) {
    FakeNpu* npu = find(d);
    if (npu->programs_.count(program) == 0) return QPLAN_NPU_E_ARGUMENT;
    const FakeNpu::Program& p = npu->programs_[program];
    info->num_regions = static_cast<uint32_t>(p.inputs.size() + p.outputs.size() + p.scratch.size());
    if (npu->num_regions != 0) info->num_regions = npu->num_regions;
    info->memory_bytes = 1000;
    info->estimated_cycles = npu->estimated_cycles;
    return QPLAN_NPU_OK;
  }
  static qplan_npu_status region_info(qplan_npu_device d, qplan_npu_program program, uint32_t slot,
                                      qplan_npu_region_info* info) {
    FakeNpu* npu = find(d);
    if (npu->programs_.count(program) == 0) return QPLAN_NPU_E_ARGUMENT;
    const FakeNpu::Program& p = npu->programs_[program];
    info->is_bound = 1;
    info->alignment = npu->alignment;
    if (slot < p.inputs.size()) {
      info->usage = npu->input_usage;
      info->bytes = p.inputs[slot];
    } else if (slot < p.inputs.size() + p.outputs.size()) {
      info->usage = QPLAN_NPU_USE_OUTPUT;
      info->bytes = p.outputs[slot - p.inputs.size()];
    } else if (slot < p.inputs.size() + p.outputs.size() + p.scratch.size()) {
      info->usage = QPLAN_NPU_USE_SCRATCH;
      info->bytes = p.scratch[slot - p.inputs.size() - p.outputs.size()];
    } else {
      return QPLAN_NPU_E_ARGUMENT;
    }
    return QPLAN_NPU_OK;
  }
  static qplan_npu_status unload(qplan_npu_device d, qplan_npu_program program) {
    FakeNpu* npu = find(d);
    ++npu->counts.unloads;
    return npu->programs_.erase(program) == 1 ? QPLAN_NPU_OK : QPLAN_NPU_E_ARGUMENT;
  }
  static qplan_npu_status submit(qplan_npu_device d, const qplan_npu_submit* submit, qplan_npu_job* handle,
                                 qplan_npu_reason* why) {
    FakeNpu* npu = find(d);
    const Meter meter(npu);
    ++npu->counts.submits;
    const qplan_npu_status status = take(&npu->submit_statuses);
    if (status < 0) {
      if (why != nullptr) put_text("submit " + npu->job_text, why->text, sizeof(why->text));
      if (npu->fills_texts) std::memset(why->text, '!', sizeof(why->text));
      return status;
    }
    if (npu->programs_.count(submit->program) == 0) return QPLAN_NPU_E_ARGUMENT;
    FakeNpu::Job job;
    job.program = npu->programs_[submit->program];
    job.binds.assign(submit->binds, submit->binds + submit->num_binds);
    job.status = take(&npu->job_statuses);
    job.pending_waits = npu->pending_waits;
    if (npu->hangs > 0) {
      --npu->hangs;
      job.hangs = true;
    }
    npu->last_binds = job.binds;
    *handle = npu->next_++;
    ++npu->counts.live_jobs;
    if (!job.hangs) npu->run(&job);
    npu->jobs_[*handle] = job;
    return QPLAN_NPU_OK;
  }
  static qplan_npu_status wait(qplan_npu_device d, qplan_npu_job handle, uint64_t timeout_ns,
                               qplan_npu_report* report) {
    FakeNpu* npu = find(d);
    const Meter meter(npu);
    ++npu->counts.waits;
    npu->wait_timeouts.push_back(timeout_ns);
    const auto found = npu->jobs_.find(handle);
    if (found == npu->jobs_.end()) return QPLAN_NPU_E_ARGUMENT;
    FakeNpu::Job& job = found->second;
    if ((job.hangs || job.pending_waits > 0) && !job.is_stopped) {
      if (job.pending_waits > 0) --job.pending_waits;
      if (npu->clock != nullptr) *npu->clock += timeout_ns;
      return QPLAN_NPU_PENDING;
    }
    if (report != nullptr) {
      report->status = job.status;
      report->cycles = 100;
      put_text(job.status < 0 ? npu->job_text : "", report->text, sizeof(report->text));
      if (npu->fills_texts) std::memset(report->text, '!', sizeof(report->text));
    }
    const qplan_npu_status status = job.status;
    npu->jobs_.erase(found);
    --npu->counts.live_jobs;
    return status;
  }
  static qplan_npu_status cancel(qplan_npu_device d, qplan_npu_job handle) {
    FakeNpu* npu = find(d);
    ++npu->counts.cancels;
    const auto found = npu->jobs_.find(handle);
    if (found == npu->jobs_.end()) return QPLAN_NPU_E_ARGUMENT;
    if (!npu->cancel_works) return QPLAN_NPU_OK;
    found->second.is_stopped = true;
    found->second.status = npu->finishes_late ? QPLAN_NPU_OK : npu->cancelled_status;
    if (npu->finishes_late) npu->run(&found->second);
    return QPLAN_NPU_OK;
  }
  static qplan_npu_status counters(qplan_npu_device, const uint32_t*, uint64_t*, uint32_t) {
    return QPLAN_NPU_E_UNSUPPORTED;
  }
};

void FakeNpu::run(Job* job) {
  const size_t n = job->program.inputs.size();
  const auto slot = [&](size_t s) -> const qplan_npu_bind& {
    return *std::find_if(job->binds.begin(), job->binds.end(), [&](const auto& b) { return b.slot == s; });
  };
  for (size_t s = 0; s < job->program.scratch.size(); ++s) {
    const qplan_npu_bind& scratch = slot(n + job->program.outputs.size() + s);
    std::memset(buffers_[scratch.buffer].seen() + scratch.offset, 0x77, scratch.bytes);
  }
  for (size_t o = 0; o < job->program.outputs.size(); ++o) {
    const qplan_npu_bind &in = slot(o % n), &out = slot(n + o);
    const uint8_t* from = buffers_[in.buffer].seen() + in.offset;
    uint8_t* to = buffers_[out.buffer].seen() + out.offset;
    for (uint64_t i = 0; i < out.bytes; ++i) {
      to[i] = static_cast<uint8_t>(from[i % in.bytes] + job->program.addend + (flips_outputs ? 1 : 0));
      if (job->status < 0 && trashes_failed_outputs) to[i] = 0x66;
    }
  }
}

void FakeNpu::write_outputs_of_live_jobs() {
  for (auto& [handle, job] : jobs_) run(&job);
}

FakeNpu::FakeNpu() : handle_(next_handle++) { devices()[handle_] = this; }
FakeNpu::~FakeNpu() { devices().erase(handle_); }

const qplan_npu_driver* FakeNpu::driver() {
  using F = FakeNpuFunctions;
  static const qplan_npu_driver table = {sizeof(qplan_npu_driver),
                                         QPLAN_NPU_ABI,
                                         "fake-npu",
                                         F::enumerate,
                                         F::open,
                                         F::close,
                                         F::capabilities,
                                         F::supported,
                                         nullptr,
                                         F::reset,
                                         F::requirements,
                                         F::alloc,
                                         F::import_memory,
                                         F::release,
                                         F::layout,
                                         F::map,
                                         F::unmap,
                                         F::flush,
                                         F::invalidate,
                                         F::load,
                                         F::program_info,
                                         F::region_info,
                                         F::unload,
                                         F::submit,
                                         F::wait,
                                         F::cancel,
                                         F::counters,
                                         nullptr,
                                         nullptr};
  return &table;
}

}  // namespace qplan::testing
