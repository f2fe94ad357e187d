// One open device while nothing runs: its buffers, programs and counters, and which operators it takes.
// jobs.cc has the queue.
#include "src/vta/sim/device.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <string>
#include <utility>

#include "src/vta/sim/options.h"

namespace qplan::sim {
namespace {

constexpr uint64_t kMaxBufferBytes = uint64_t{32} << 20;  // of VTA's memory allocation
constexpr uint32_t kBufferAlignment = 256;                // the largest element
constexpr uint8_t kStale = 0xcd;                          // device memory that the CPU has not flushed to

// As far as the caller's struct reaches; struct_size stays.
template <typename T>
void copy_out(const T& from, T* to) {
  const uint32_t size = std::min<uint32_t>(to->struct_size, sizeof(T));
  constexpr uint32_t kFirst = sizeof(to->struct_size);
  if (size > kFirst) {
    std::memcpy(reinterpret_cast<char*>(to) + kFirst, reinterpret_cast<const char*>(&from) + kFirst,
                size - kFirst);
  }
}

// The bytes of a packed row-major tensor; false if no buffer can be made for it.
bool layout_of(const DLTensor& tensor, qplan_npu_layout* layout) {
  if (tensor.ndim < 0 || tensor.ndim > QPLAN_NPU_MAX_DIMS || (tensor.ndim > 0 && tensor.shape == nullptr))
    return false;
  uint64_t elements = 1;
  for (int32_t axis = tensor.ndim - 1; axis >= 0; --axis) {
    layout->strides[axis] = static_cast<int64_t>(elements);
    if (tensor.shape[axis] < 0 ||
        __builtin_mul_overflow(elements, static_cast<uint64_t>(tensor.shape[axis]), &elements)) {
      return false;
    }
  }
  layout->num_strides = static_cast<uint32_t>(tensor.ndim);
  const uint64_t bits = uint64_t{tensor.dtype.bits} * tensor.dtype.lanes;
  if (bits % 8 != 0 || __builtin_mul_overflow(elements, bits / 8, &layout->bytes)) return false;
  return true;
}

}  // namespace

Device::Device(const qplan_device_hooks* hooks, Options options)
    : options_(std::move(options)), space_(options_.memory_bytes) {
  if (hooks != nullptr) {
    std::memcpy(&hooks_, hooks, std::min<size_t>(hooks->struct_size, sizeof(hooks_)));
    platform_ = hooks_.platform;
  }
  thread_ = std::thread([this] { work(); });
}

Device::~Device() { (void)close(); }

uint64_t Device::now_ns() const {
  if (platform_ != nullptr &&
      platform_->struct_size >= offsetof(qplan_platform, now_ns) + sizeof(platform_->now_ns) &&
      platform_->now_ns != nullptr) {
    return platform_->now_ns(platform_->user);
  }
  return static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch() /
                               std::chrono::nanoseconds(1));
}

void Device::log(uint32_t level, const std::string& text) const {
  if (platform_ == nullptr || platform_->struct_size < offsetof(qplan_platform, log) + sizeof(platform_->log))
    return;
  if (platform_->log != nullptr && level <= platform_->log_level) {
    platform_->log(platform_->user, level, ("vta-sim: " + text).c_str());
  }
}

qplan_npu_status Device::capabilities(qplan_npu_capabilities* capabilities) {
  qplan_npu_capabilities all = {};
  describe(&all);
  copy_out(all, capabilities);
  return QPLAN_NPU_OK;
}

void Device::describe(qplan_npu_capabilities* to) const { fill_capabilities(options_, to); }

std::vector<qplan_npu_reason> Device::why_unsupported(const qplan_npu_op& op) const {
  return sim::why_unsupported(options_.config, op);
}

void fill_capabilities(const Options& options, qplan_npu_capabilities* c) {
  const vta::Config& config = options.config;
  c->abi = QPLAN_NPU_ABI;
  copy_text("qplan", c->vendor, sizeof(c->vendor));
  copy_text(config.name, c->target, sizeof(c->target));
  copy_text("sim", c->hw_revision, sizeof(c->hw_revision));
  copy_text("1.0", c->driver_revision, sizeof(c->driver_revision));
  c->hash = config_hash(config);
  c->blob_formats[0] = QPLAN_NPU_BLOB_VTA;
  c->onchip_bytes[0] = config.uop_elements * vta::kUopBytes;
  c->onchip_bytes[1] = config.wgt_elements * vta::kWgtBytes;
  c->onchip_bytes[2] = config.inp_elements * vta::kInpBytes;
  c->onchip_bytes[3] = config.acc_elements * vta::kAccBytes;
  c->buffer_alignment = kBufferAlignment;
  c->line_alignment = 1;
  c->channel_pack = vta::kLanes;
  c->max_binds = vta::kMaxRegions;
  c->max_queue = options.queue;
  c->num_engines = 1;
  c->memory_kinds = options.is_coherent ? QPLAN_NPU_MEMORY_COHERENT : QPLAN_NPU_MEMORY_CACHED;
  c->address_bits = 32;
  c->max_buffer_bytes = kMaxBufferBytes;
  c->contracts = contracts_of(config);
  c->contracts_per_channel = c->contracts;
  c->input_zero_point = 1;
  c->output_zero_point = 1;
  c->pad_value = 0;
  c->flags = QPLAN_NPU_CAN_ASYNC | QPLAN_NPU_CAN_CANCEL | QPLAN_NPU_CAN_COUNT | QPLAN_NPU_CAN_IMPORT |
             QPLAN_NPU_CAN_SOFT_RESET | (config.has_multiply ? QPLAN_NPU_CAN_MULTIPLY : 0);
  c->clock_khz = config.clock_khz;
  c->memory_classes = 1u << QPLAN_NPU_MEMORY_CLASS_DRAM;
}

qplan_npu_status Device::power(int on) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (is_lost_) return QPLAN_NPU_E_LOST;
  if (on == 0) {
    if (power_ == 0) return QPLAN_NPU_E_ARGUMENT;
    if (power_ == 1 && (running_ != nullptr || !queue_.empty())) return QPLAN_NPU_E_BUSY;
    --power_;
    if (power_ == 0 && hooks_.power != nullptr) (void)hooks_.power(hooks_.user, 0);
  } else {
    if (power_ == 0 && hooks_.power != nullptr && hooks_.power(hooks_.user, 1) != 0) return QPLAN_NPU_E_OFF;
    ++power_;
  }
  return QPLAN_NPU_OK;
}

qplan_npu_status Device::requirements(const qplan_npu_buffer_request& request, qplan_npu_layout* layout) {
  qplan_npu_layout all = {};
  all.memory_kind = options_.is_coherent ? QPLAN_NPU_MEMORY_COHERENT : QPLAN_NPU_MEMORY_CACHED;
  if (request.memory_kind != 0 && request.memory_kind != all.memory_kind) return QPLAN_NPU_E_UNSUPPORTED;
  if (request.memory_class >= QPLAN_NPU_NUM_MEMORY_CLASSES) return QPLAN_NPU_E_ARGUMENT;
  qplan_npu_capabilities known = {};
  describe(&known);
  if (request.memory_class != QPLAN_NPU_MEMORY_CLASS_ANY &&
      (known.memory_classes >> request.memory_class & 1) == 0)
    return QPLAN_NPU_E_UNSUPPORTED;
  all.memory_class = request.memory_class;
  const uint32_t alignment = std::max(request.alignment, kBufferAlignment);
  if ((request.alignment & (request.alignment - 1)) != 0) return QPLAN_NPU_E_ARGUMENT;
  if (alignment > kPageBytes) return QPLAN_NPU_E_UNSUPPORTED;
  if (request.tensor != nullptr && !layout_of(*request.tensor, &all)) return QPLAN_NPU_E_ARGUMENT;
  all.bytes = std::max<uint64_t>({all.bytes, request.min_bytes, 1});
  if (all.bytes > kMaxBufferBytes) return QPLAN_NPU_E_UNSUPPORTED;
  all.alignment = alignment;
  copy_out(all, layout);
  return QPLAN_NPU_OK;
}

static qplan_npu_status no_memory(uint32_t memory_class) {
  return memory_class == QPLAN_NPU_MEMORY_CLASS_SRAM ? QPLAN_NPU_E_ONCHIP : QPLAN_NPU_E_MEMORY;
}

qplan_npu_status Device::make_buffer(const qplan_npu_buffer_request& request, uint8_t* imported,
                                     uint64_t* handle) {
  auto buffer = std::make_shared<Buffer>();
  buffer->layout.struct_size = sizeof(buffer->layout);
  const qplan_npu_status status = requirements(request, &buffer->layout);
  if (status != QPLAN_NPU_OK) return status;
  const std::lock_guard<std::mutex> lock(mutex_);
  if (is_lost_) return QPLAN_NPU_E_LOST;
  if (find_fault(options_.faults, FaultPlace::kAlloc, num_allocs_++) != nullptr) return QPLAN_NPU_E_MEMORY;
  buffer->bytes = buffer->layout.bytes;
  buffer->usage = request.usage;
  buffer->host = imported;
  if (imported == nullptr) {
    buffer->owned_host = Block(hooks_, buffer->bytes, 0, request.memory_class);
    buffer->host = buffer->owned_host.data();
    if (buffer->host == nullptr) return no_memory(request.memory_class);
  } else if (hooks_.memory_class != nullptr) {
    const uint32_t found = hooks_.memory_class(hooks_.user, imported);
    const bool is_other = found != request.memory_class && found != QPLAN_NPU_MEMORY_CLASS_ANY;
    if (is_other && request.memory_class != QPLAN_NPU_MEMORY_CLASS_ANY) return QPLAN_NPU_E_UNSUPPORTED;
    if (is_other) buffer->layout.memory_class = found;
  }
  buffer->device = buffer->host;
  if (!options_.is_coherent) {
    buffer->owned_device = Block(hooks_, buffer->bytes, kStale, request.memory_class);
    buffer->device = buffer->owned_device.data();
    if (buffer->device == nullptr) return no_memory(request.memory_class);
  }
  buffer->address = space_.take(buffer->bytes);
  if (buffer->address == 0) return QPLAN_NPU_E_MEMORY;
  buffer->layout.device_address = buffer->address;
  counters_[QPLAN_NPU_COUNTER_BUFFER_BYTES] += buffer->bytes;
  *handle = next_handle_++;
  buffers_[*handle] = std::move(buffer);
  return QPLAN_NPU_OK;
}

qplan_npu_status Device::alloc(const qplan_npu_buffer_request& request, uint64_t* handle) {
  return make_buffer(request, nullptr, handle);
}

qplan_npu_status Device::import_memory(const qplan_npu_buffer_request& request, uint8_t* memory,
                                       uint64_t* handle) {
  // A line that the buffer shared with something else could not be flushed or invalidated by itself.
  if (memory == nullptr || reinterpret_cast<uintptr_t>(memory) % kCacheLineBytes != 0)
    return QPLAN_NPU_E_ARGUMENT;
  return make_buffer(request, memory, handle);
}

qplan_npu_status Device::release(uint64_t handle) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = buffers_.find(handle);
  if (found == buffers_.end()) return QPLAN_NPU_E_ARGUMENT;
  if (found->second->users > 0) return QPLAN_NPU_E_BUSY;
  space_.give_back(found->second->address);
  counters_[QPLAN_NPU_COUNTER_BUFFER_BYTES] -= found->second->bytes;
  buffers_.erase(found);
  return QPLAN_NPU_OK;
}

qplan_npu_status Device::layout(uint64_t handle, qplan_npu_layout* layout) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = buffers_.find(handle);
  if (found == buffers_.end()) return QPLAN_NPU_E_ARGUMENT;
  copy_out(found->second->layout, layout);
  return QPLAN_NPU_OK;
}

qplan_npu_status Device::map(uint64_t handle, uint32_t access, void** memory) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = buffers_.find(handle);
  if (found == buffers_.end() || access == 0 || access > (QPLAN_NPU_READ | QPLAN_NPU_WRITE))
    return QPLAN_NPU_E_ARGUMENT;
  Buffer& buffer = *found->second;
  if ((access & QPLAN_NPU_READ) != 0) buffer.invalidate(0, buffer.bytes);
  *memory = buffer.host;
  return QPLAN_NPU_OK;
}

qplan_npu_status Device::unmap(uint64_t handle, uint32_t access) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = buffers_.find(handle);
  if (found == buffers_.end() || access == 0 || access > (QPLAN_NPU_READ | QPLAN_NPU_WRITE))
    return QPLAN_NPU_E_ARGUMENT;
  Buffer& buffer = *found->second;
  if ((access & QPLAN_NPU_WRITE) != 0) buffer.flush(0, buffer.bytes);
  return QPLAN_NPU_OK;
}

qplan_npu_status Device::maintain(uint64_t handle, uint64_t offset, uint64_t bytes, bool is_flush) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = buffers_.find(handle);
  if (found == buffers_.end()) return QPLAN_NPU_E_ARGUMENT;
  Buffer& buffer = *found->second;
  if (offset > buffer.bytes || bytes > buffer.bytes - offset) return QPLAN_NPU_E_ARGUMENT;
  if (is_flush) {
    buffer.flush(offset, bytes);
  } else {
    buffer.invalidate(offset, bytes);
  }
  return QPLAN_NPU_OK;
}

qplan_npu_status Device::load(const void* blob, uint64_t bytes, uint64_t* handle, qplan_npu_reason* why) {
  std::vector<uint8_t> damaged;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (is_lost_) return QPLAN_NPU_E_LOST;
    const FaultRule* rule = find_fault(options_.faults, FaultPlace::kLoad, num_loads_++);
    if (rule != nullptr && bytes >= sizeof(vta::BlobHeader)) {
      const auto* from = static_cast<const uint8_t*>(blob);
      damaged.assign(from, from + bytes);
      if (rule->kind == FaultKind::kTruncatedBlob) damaged.resize(bytes / 2);
      if (rule->kind == FaultKind::kSkewedBlob) ++damaged[offsetof(vta::BlobHeader, major)];
      if (rule->kind == FaultKind::kDamagedBlob) damaged[bytes - 1] ^= 0x10;
      blob = damaged.data();
      bytes = damaged.size();
    }
  }
  std::shared_ptr<Program> program;
  const qplan_npu_status status = read(blob, bytes, &program, why);
  if (status != QPLAN_NPU_OK) return status;
  program->memory = Block(hooks_, program->memory_bytes, 0);
  const std::lock_guard<std::mutex> lock(mutex_);
  program->address = program->memory.data() == nullptr ? 0 : space_.take(program->memory_bytes);
  if (program->address == 0) {
    give_reason(why,
                "vta-sim: no memory for a program of " + std::to_string(program->memory_bytes) + " bytes",
                static_cast<int64_t>(options_.memory_bytes), static_cast<int64_t>(program->memory_bytes));
    return QPLAN_NPU_E_MEMORY;
  }
  place(blob, program.get());
  *handle = next_handle_++;
  programs_[*handle] = std::move(program);
  return QPLAN_NPU_OK;
}

qplan_npu_status Device::read(const void* blob, uint64_t bytes, std::shared_ptr<Program>* program,
                              qplan_npu_reason* why) const {
  *program = std::make_shared<Program>();
  return load_program(options_.config, blob, bytes, program->get(), why);
}

void Device::place(const void* blob, Program* program) const {
  place_program(options_.config, blob, program);
}

qplan_npu_status Device::program_info(uint64_t handle, qplan_npu_program_info* info) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = programs_.find(handle);
  if (found == programs_.end()) return QPLAN_NPU_E_ARGUMENT;
  const Program& program = *found->second;
  qplan_npu_program_info all = {};
  all.num_regions = static_cast<uint32_t>(program.regions.size());
  all.memory_bytes = program.memory_bytes;
  all.estimated_cycles = program.estimated_cycles;
  all.instructions = program.num_instructions;
  qplan_npu_capabilities capabilities = {};
  describe(&capabilities);
  all.capabilities_hash = capabilities.hash;
  all.memory_class = program.memory_class;
  copy_out(all, info);
  return QPLAN_NPU_OK;
}

qplan_npu_status Device::region_info(uint64_t handle, uint32_t slot, qplan_npu_region_info* info) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = programs_.find(handle);
  if (found == programs_.end() || slot >= found->second->regions.size()) return QPLAN_NPU_E_ARGUMENT;
  const ProgramRegion& region = found->second->regions[slot];
  constexpr uint32_t kUsage[] = {QPLAN_NPU_USE_WEIGHTS, QPLAN_NPU_USE_WEIGHTS, QPLAN_NPU_USE_INPUT,
                                 QPLAN_NPU_USE_OUTPUT, QPLAN_NPU_USE_SCRATCH};
  qplan_npu_region_info all = {};
  all.usage = kUsage[static_cast<uint32_t>(region.kind)];
  all.is_bound = region.is_carried ? 0 : 1;
  all.alignment = region.alignment;
  all.bytes = region.bytes;
  all.memory_class = region.memory_class;
  copy_out(all, info);
  return QPLAN_NPU_OK;
}

qplan_npu_status Device::unload(uint64_t handle) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = programs_.find(handle);
  if (found == programs_.end()) return QPLAN_NPU_E_ARGUMENT;
  if (found->second->users > 0) return QPLAN_NPU_E_BUSY;
  space_.give_back(found->second->address);
  programs_.erase(found);
  return QPLAN_NPU_OK;
}

qplan_npu_status Device::counters(const uint32_t* ids, uint64_t* values, uint32_t count) {
  const std::lock_guard<std::mutex> lock(mutex_);
  qplan_npu_status status = QPLAN_NPU_OK;
  for (uint32_t i = 0; i < count; ++i) {
    const bool is_known = ids[i] <= QPLAN_NPU_COUNTER_BUFFER_BYTES;
    values[i] = is_known ? counters_[ids[i]] : 0;
    if (!is_known) status = QPLAN_NPU_E_UNSUPPORTED;
  }
  return status;
}

namespace {

class Checker {
 public:
  Checker(const vta::Config& config, const qplan_npu_op& op) : config_(config), op_(op) {}

  std::vector<qplan_npu_reason> run() {
    if (op_.op < QPLAN_NPU_OP_CONV2D || op_.op > QPLAN_NPU_OP_CLIP) {
      refuse(kOpKind, "operator " + std::to_string(op_.op) + " is unknown to this driver", QPLAN_NPU_OP_CLIP,
             op_.op);
      return reasons_;
    }
    contract();
    if (tensors()) {
      types();
      if (op_.op == QPLAN_NPU_OP_CONV2D) convolution();
    }
    return reasons_;
  }

 private:
  void refuse(OpRule rule, const std::string& text, int64_t limit = 0, int64_t actual = 0) {
    reasons_.emplace_back();
    give_reason(&reasons_.back(), text, limit, actual);
    reasons_.back().code = rule;
  }

  bool has_weights() const { return op_.op == QPLAN_NPU_OP_CONV2D || op_.op == QPLAN_NPU_OP_DENSE; }

  void contract() {
    const uint32_t executed = contracts_of(config_);
    if ((op_.contract & executed) == 0 || (op_.contract & (op_.contract - 1)) != 0) {
      refuse(kOpContract, "the contract is not one that this device executes bit for bit", executed,
             op_.contract);
    }
    if (has_weights() && op_.num_scales == 0 && op_.contract != QPLAN_NPU_ACC32) {
      refuse(kOpScales, "no scales to requantise with", 1, 0);
    }
  }

  bool tensors() {
    const uint32_t inputs = op_.op == QPLAN_NPU_OP_ADD ? 2 : 1;
    bool is_complete = op_.output != nullptr && (!has_weights() || op_.weights != nullptr);
    for (uint32_t i = 0; i < inputs; ++i) is_complete = is_complete && op_.inputs[i] != nullptr;
    const bool is_image = op_.op == QPLAN_NPU_OP_CONV2D || op_.op == QPLAN_NPU_OP_MAX_POOL2D ||
                          op_.op == QPLAN_NPU_OP_AVG_POOL2D;
    if (is_complete && is_image) {
      is_complete = op_.inputs[0]->ndim == 4 && op_.output->ndim == 4 && op_.inputs[0]->shape != nullptr &&
                    op_.output->shape != nullptr;
      if (op_.op == QPLAN_NPU_OP_CONV2D) {
        is_complete = is_complete && op_.weights->ndim == 4 && op_.weights->shape != nullptr;
      }
    }
    if (!is_complete) refuse(kOpTensors, "a tensor is missing, or has not the rank that the operator needs");
    return is_complete;
  }

  static bool is_8_bit(const DLDataType& type, bool signed_only) {
    return type.bits == 8 && type.lanes == 1 &&
           (type.code == kDLInt || (type.code == kDLUInt && !signed_only));
  }

  void types() {
    if (!is_8_bit(op_.inputs[0]->dtype, false) ||
        (op_.op == QPLAN_NPU_OP_ADD && !is_8_bit(op_.inputs[1]->dtype, false))) {
      refuse(kOpInputType, "inputs have 8 bits", 8, op_.inputs[0]->dtype.bits);
    }
    if (has_weights() && !is_8_bit(op_.weights->dtype, true)) {
      refuse(kOpWeightType, "weights are int8 with zero point 0", 8, op_.weights->dtype.bits);
    }
  }

  void convolution() {
    const int64_t channels = op_.inputs[0]->shape[3];
    if (op_.groups != 1 && op_.groups != channels) {
      refuse(kOpGroups, "groups are 1 or as many as input channels", channels, op_.groups);
    }
    const int64_t window = op_.weights->shape[1] * op_.weights->shape[2];
    if (window > config_.uop_elements) {
      refuse(kOpWindow, "positions of the window exceed the micro-op memory", config_.uop_elements, window);
    }
  }

  const vta::Config& config_;
  const qplan_npu_op& op_;
  std::vector<qplan_npu_reason> reasons_;
};

}  // namespace

std::vector<qplan_npu_reason> why_unsupported(const vta::Config& config, const qplan_npu_op& op) {
  return Checker(config, op).run();
}

}  // namespace qplan::sim
