// A plan through the whole runtime: open, describe, init in memories of exactly the declared size between
// guard pages, inputs and outputs in every way there is, invoke and submit/poll/wait, instruction sets,
// thread pools, regions on the simulator, buffers of the simulator's. The input is a plan, then bytes that
// choose among these.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "qplan/host.h"
#include "qplan/npu_driver.h"
#include "qplan/npu_sim.h"
#include "qplan/qplan.h"
#include "tests/fuzz/device_buffers.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/guarded_memory.h"
#include "tests/fuzz/plan_mutator.h"
#include "tests/fuzz/plan_work.h"
#include "tests/fuzz/poisoned_driver.h"

namespace qplan::testing {
namespace {

// A plan that needs more memory than this caller has, or more time than it grants, is not an error of the
// plan.
constexpr uint64_t kMostMemoryBytes = uint64_t{4} << 20;
constexpr uint64_t kMostTensorBytes = uint64_t{1} << 20;
constexpr uint64_t kMostCpuWork = uint64_t{1} << 21;  // qplan_session_config.max_work
constexpr uint64_t kMostDeviceWork = uint64_t{1} << 14;

void expect_explained(qplan_status status, const qplan_error& error) {
  FUZZ_CHECK(status != QPLAN_INTERNAL, "%s", error.text);
  FUZZ_CHECK(status < 0 && error.status == status, "status %d, error.status %d", status, error.status);
  FUZZ_CHECK(std::memchr(error.text, '\0', sizeof(error.text)) != nullptr, "the text does not end");
  FUZZ_CHECK(error.text[0] != '\0', "no text for %s", qplan_status_name(status));
  for (const char* c = error.text; *c != '\0'; ++c) {
    FUZZ_CHECK(static_cast<unsigned char>(*c) >= 0x20, "a control character in: %s", error.text);
  }
}

// Two workers that take turns, last task first, on the calling thread.
void run_backwards(void*, uint32_t count, void (*task)(void*, uint32_t, uint32_t), void* context) {
  for (uint32_t index = count; index > 0; --index) task(context, index - 1, index % 2);
}

struct Surroundings {
  std::vector<uint32_t> isas;
  qplan_thread_pool backwards{sizeof(qplan_thread_pool), 2, nullptr, run_backwards, 0, 0};
  const qplan_thread_pool* threads = nullptr;
  const qplan_thread_pool* openmp = nullptr;
  qplan_host_device device{};

  static Surroundings& get() {
    static Surroundings* const all = new Surroundings;
    return *all;
  }

  // 0 to 31: mostly none, since waking threads takes longer than most plans run.
  const qplan_thread_pool* pool(uint32_t which) {
    if (which < 12) return &backwards;
    if (which == 12) return threads = threads != nullptr ? threads : qplan_pool_create(3);
    if (which == 13) return openmp = openmp != nullptr ? openmp : qplan_openmp_pool_create(2);
    return nullptr;
  }

 private:
  Surroundings() {
    constexpr uint32_t kIsas[] = {
        QPLAN_ISA_AUTO,
#define QPLAN_ISA(arch, name, NAME, id, base, vectors, macs_per_cycle, features, flags) QPLAN_ISA_##NAME,
#include "kernels/isa.def"
#undef QPLAN_ISA
    };
    for (const uint32_t isa : kIsas) {
      if (isa == QPLAN_ISA_AUTO || qplan_isa_available(isa) != 0) isas.push_back(isa);
    }
    device.struct_size = sizeof(device);
    const qplan_status status = qplan_host_device_open(qplan_npu_sim_driver(QPLAN_NPU_ABI), 0,
                                                       "memory=4194304", nullptr, &device, nullptr);
    FUZZ_CHECK(status == QPLAN_OK, "the simulator does not open");
  }
};

// Small, and the same on every machine.
class Noise {
 public:
  explicit Noise(uint32_t seed) : state_(seed * 2654435761u + 1) {}
  uint8_t next() {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<uint8_t>(state_ >> 56);
  }

 private:
  uint64_t state_;
};

// How a session is used; drawn from the input.
struct Use {
  uint32_t isa_limit = QPLAN_ISA_AUTO;
  const qplan_thread_pool* pool = nullptr;
  bool with_device = false;
  uint32_t on_npu_failure = QPLAN_NPU_FALLBACK;
  uint32_t npu_flags = 0;
  uint32_t device_buffers = 0;  // bit i: of input i, of outputs after the inputs; again after 8
  uint8_t poison = 0;           // PoisonedDriver
  uint32_t io = 0;  // 2 bits for each of the first tensors: in place, written, with strides, bound
  bool asynchronous = false;
  bool at_end = true;  // of memories: next to the guard after them
  bool one_byte_less = false;
};

struct Result {
  qplan_status status = QPLAN_OK;
  bool ran = false;
  std::vector<uint64_t> device_runs;  // of each region
  std::vector<std::vector<uint8_t>> outputs;
};

// The sign and the other bits of a NaN are not specified (docs/numerics/float32.md).
void make_nans_equal(std::vector<uint8_t>* floats) {
  for (size_t at = 0; at + sizeof(float) <= floats->size(); at += sizeof(float)) {
    float value;
    std::memcpy(&value, floats->data() + at, sizeof(value));
    if (!std::isnan(value)) continue;
    value = std::numeric_limits<float>::quiet_NaN();
    std::memcpy(floats->data() + at, &value, sizeof(value));
  }
}

// The tensor of an input or output in memory with strides of its own: axes in reverse order of memory, the
// last one backwards, with gaps.
class StridedTensor {
 public:
  StridedTensor(const qplan_tensor_info& info, bool backwards) : element_bytes_(info.dtype.bits / 8u) {
    int64_t stride = 2;
    shape_.assign(info.shape, info.shape + info.ndim);
    for (const int64_t extent : shape_) {
      strides_.push_back(stride);
      stride *= extent;
    }
    uint64_t first = 0;
    if (backwards && !shape_.empty()) {
      first = static_cast<uint64_t>((shape_[0] - 1) * strides_[0]) * element_bytes_;
      strides_[0] = -strides_[0];
    }
    bytes_.resize(static_cast<size_t>(stride) * element_bytes_, 0x3c);
    tensor_ = {};
    tensor_.data = bytes_.data();
    tensor_.device = {kDLCPU, 0};
    tensor_.ndim = info.ndim;
    tensor_.dtype = info.dtype;
    tensor_.shape = shape_.data();
    tensor_.strides = strides_.data();
    tensor_.byte_offset = first;
  }
  DLTensor* get() { return &tensor_; }

  // Bytes of the packed tensor to here, or from here.
  void scatter(const std::vector<uint8_t>& packed) {
    each([&](size_t at, size_t packed_at) { std::memcpy(&bytes_[at], &packed[packed_at], element_bytes_); });
  }
  std::vector<uint8_t> gather(size_t size) {
    std::vector<uint8_t> packed(size);
    each([&](size_t at, size_t packed_at) { std::memcpy(&packed[packed_at], &bytes_[at], element_bytes_); });
    return packed;
  }

 private:
  template <typename Copy>
  void each(Copy&& copy) {
    size_t count = 1;
    for (const int64_t extent : shape_) count *= static_cast<size_t>(extent);
    std::vector<int64_t> index(shape_.size(), 0);
    for (size_t i = 0; i < count; ++i) {
      int64_t element = 0;
      for (size_t axis = 0; axis < shape_.size(); ++axis) element += index[axis] * strides_[axis];
      copy(static_cast<size_t>(static_cast<int64_t>(tensor_.byte_offset) +
                               element * static_cast<int64_t>(element_bytes_)),
           i * element_bytes_);
      for (size_t axis = shape_.size(); axis > 0 && ++index[axis - 1] == shape_[axis - 1]; --axis)
        index[axis - 1] = 0;
    }
  }

  size_t element_bytes_;
  std::vector<int64_t> shape_, strides_;
  std::vector<uint8_t> bytes_;
  DLTensor tensor_;
};

DLTensor packed_tensor(const qplan_tensor_info& info, void* data) {
  DLTensor tensor{};
  tensor.data = data;
  tensor.device = {kDLCPU, 0};
  tensor.ndim = info.ndim;
  tensor.dtype = info.dtype;
  tensor.shape = const_cast<int64_t*>(info.shape);
  return tensor;
}

class PlanRun {
 public:
  PlanRun(const qplan_plan& plan, const Use& use, uint32_t seed) : plan_(plan), use_(use), seed_(seed) {}

  Result run() {
    configure();
    if (!prepare() || session_ == nullptr) return std::move(result_);
    transfer_inputs();
    invoke();
    if (result_.ran) {
      device_buffers_.begin_reading();
      read_outputs();
      device_buffers_.end_reading();
    }
    describe();
    device_buffers_.destroy(session_);
    qplan_session_deinit(session_);
    return std::move(result_);
  }

 private:
  enum Way : uint32_t { kInPlace = 0, kPacked = 1, kStrided = 2, kBound = 3 };

  void configure() {
    platform_.struct_size = sizeof(platform_);
    platform_.thread_pool = use_.pool;
    config_.struct_size = sizeof(config_);
    config_.isa_limit = use_.isa_limit;
    config_.kernels = qplan_kernels_all();
    config_.platform = use_.pool != nullptr ? &platform_ : nullptr;
    config_.max_work = kMostCpuWork;
    config_.on_npu_failure = use_.on_npu_failure;
    config_.npu_flags = use_.npu_flags;
    if (!use_.with_device) return;
    const qplan_host_device& device = Surroundings::get().device;
    device_.struct_size = sizeof(device_);
    device_.target = "vta";
    device_.driver = PoisonedDriver::get(use_.poison);
    device_.device = device.device;
    config_.npu = qplan_npu_client_default();
    config_.devices = &device_;
    config_.num_devices = 1;
  }

  bool refused(qplan_status status, const qplan_error& error) {
    if (status == QPLAN_OK) return false;
    expect_explained(status, error);
    result_.status = status;
    return true;
  }

  bool prepare() {
    qplan_error error{};
    error.struct_size = sizeof(error);
    uint32_t count = 0;
    if (refused(qplan_session_memory_needs(&plan_, &config_, nullptr, &count, &error), error)) return false;
    needs_.resize(count);
    if (refused(qplan_session_memory_needs(&plan_, &config_, needs_.data(), &count, &error), error))
      return false;
    uint64_t total = 0;
    for (const qplan_memory_need& need : needs_) {
      FUZZ_CHECK(need.alignment != 0 && (need.alignment & (need.alignment - 1)) == 0, "alignment %u",
                 need.alignment);
      if (need.size > kMostMemoryBytes - total || need.alignment > GuardPages::kPageBytes) return false;
      total += need.size;
    }
    std::vector<qplan_memory> memories;
    for (const qplan_memory_need& need : needs_) {
      buffers_.emplace_back(need.size, need.alignment, use_.at_end, 0xa5);
      memories.push_back({buffers_.back().data(), buffers_.back().size()});
    }
    if (use_.one_byte_less) refuse_one_byte_less(memories);
    error.text[0] = '\0';
    return !refused(qplan_session_init(&plan_, &config_, memories.data(), count, &session_, &error), error);
  }

  // Nothing is written where one memory does not suffice.
  void refuse_one_byte_less(std::vector<qplan_memory> memories) {
    qplan_memory& less = memories[seed_ % memories.size()];
    if (less.size == 0) return;
    --less.size;
    qplan_session* session = nullptr;
    qplan_error error{};
    error.struct_size = sizeof(error);
    const qplan_status status = qplan_session_init(&plan_, &config_, memories.data(),
                                                   static_cast<uint32_t>(memories.size()), &session, &error);
    FUZZ_CHECK(status < 0, "a memory of %zu bytes, one less than declared, is taken", less.size);
    expect_explained(status, error);
    for (const GuardedMemory& buffer : buffers_) {
      for (size_t i = 0; i < buffer.size(); ++i) {
        FUZZ_CHECK(buffer.data()[i] == 0xa5, "init failed, and wrote byte %zu", i);
      }
    }
  }

  Way way(uint32_t position) const { return static_cast<Way>(use_.io >> (position % 16 * 2) & 3); }

  qplan_tensor_info io_info(int direction, uint32_t index) {
    qplan_tensor_info info{};
    info.struct_size = sizeof(info);
    FUZZ_CHECK(qplan_plan_io_info(&plan_, nullptr, direction, index, &info) == QPLAN_OK, "io_info(%u)",
               index);
    return info;
  }

  // Whether the caller's memory holds the tensor from now on.
  bool bind(int direction, uint32_t index, const qplan_tensor_info& info, const uint8_t* content) {
    if (info.alignment > GuardPages::kPageBytes) return false;
    bound_.push_back(
        std::make_unique<GuardedMemory>(info.size_bytes, std::max(info.alignment, 1u), use_.at_end, 0x77));
    if (content != nullptr) std::memcpy(bound_.back()->data(), content, info.size_bytes);
    const DLTensor tensor = packed_tensor(info, bound_.back()->data());
    const qplan_status status = qplan_session_bind(session_, direction, index, &tensor);
    FUZZ_CHECK(status != QPLAN_INTERNAL, "bind");
    return status == QPLAN_OK;
  }

  // The same in memory of the device.
  bool bind_on_device(int direction, uint32_t index, uint32_t position, const qplan_tensor_info& info,
                      const uint8_t* content) {
    if (!use_.with_device || (use_.device_buffers >> position % 8 & 1) == 0 ||
        info.size_bytes > kMostTensorBytes)
      return false;
    const DLTensor like = packed_tensor(info, nullptr);
    return device_buffers_.bind(session_, direction, index, like, content, info.size_bytes);
  }

  void transfer_inputs() {
    Noise noise(seed_);
    const uint32_t num_inputs = qplan_plan_io_count(&plan_, nullptr, QPLAN_INPUT);
    for (uint32_t i = 0; i < num_inputs; ++i) {
      const qplan_tensor_info info = io_info(QPLAN_INPUT, i);
      std::vector<uint8_t> content(info.size_bytes);
      for (uint8_t& byte : content) byte = noise.next();
      if (bind_on_device(QPLAN_INPUT, i, i, info, content.data())) continue;
      // Bound or with strides, a tensor may also be where only the packed one fits.
      const Way how = info.size_bytes > kMostTensorBytes ? kInPlace : way(i);
      if (how == kBound && bind(QPLAN_INPUT, i, info, content.data())) continue;
      qplan_status status = QPLAN_OK;
      if (how == kStrided) {
        StridedTensor strided(info, i % 2 == 0);
        strided.scatter(content);
        status = qplan_session_write(session_, i, strided.get());
      } else if (how == kInPlace) {
        DLTensor view{};
        status = qplan_session_view(session_, QPLAN_INPUT, i, &view);
        if (status == QPLAN_OK && !content.empty()) {
          std::memcpy(static_cast<uint8_t*>(view.data) + view.byte_offset, content.data(), content.size());
        }
      } else {
        const DLTensor tensor = packed_tensor(info, content.data());
        status = qplan_session_write(session_, i, &tensor);
      }
      // An input that the function lists twice may be bound by its first mention.
      FUZZ_CHECK(status == QPLAN_OK || status == QPLAN_INVALID_STATE, "input %u: %s", i,
                 qplan_status_name(status));
    }
    const uint32_t num_outputs = qplan_plan_io_count(&plan_, nullptr, QPLAN_OUTPUT);
    for (uint32_t o = 0; o < num_outputs; ++o) {
      const qplan_tensor_info info = io_info(QPLAN_OUTPUT, o);
      if (bind_on_device(QPLAN_OUTPUT, o, num_inputs + o, info, nullptr)) continue;
      if (info.size_bytes <= kMostTensorBytes && way(num_inputs + o) == kBound)
        bind(QPLAN_OUTPUT, o, info, nullptr);
    }
  }

  void invoke() {
    qplan_status status = QPLAN_OK;
    if (!use_.asynchronous) {
      status = qplan_session_invoke(session_);
    } else {
      status = qplan_session_submit(session_);
      for (int tries = 0; status == QPLAN_PENDING; ++tries) {
        FUZZ_CHECK(tries < 20000, "pending for ever");
        status = tries % 2 == 0 ? qplan_session_poll(session_) : qplan_session_wait(session_, 500);
      }
    }
    result_.status = status;
    result_.ran = status == QPLAN_OK;
    FUZZ_CHECK(result_.ran || use_.with_device, "invoke: %s", qplan_status_name(status));
    FUZZ_CHECK(status != QPLAN_INTERNAL && status != QPLAN_INVALID_STATE, "invoke: %s",
               qplan_status_name(status));
    if (!result_.ran) {
      qplan_error error{};
      error.struct_size = sizeof(error);
      qplan_session_last_error(session_, &error);
      expect_explained(status, error);
    }
  }

  void read_outputs() {
    const uint32_t count = qplan_plan_io_count(&plan_, nullptr, QPLAN_OUTPUT);
    for (uint32_t o = 0; o < count; ++o) {
      const qplan_tensor_info info = io_info(QPLAN_OUTPUT, o);
      if (info.size_bytes > kMostTensorBytes) continue;
      std::vector<uint8_t> bytes(info.size_bytes);
      qplan_status status = QPLAN_OK;
      const Way how = way(qplan_plan_io_count(&plan_, nullptr, QPLAN_INPUT) + o);
      if (how == kStrided) {
        StridedTensor strided(info, o % 2 == 0);
        status = qplan_session_read(session_, o, strided.get());
        bytes = strided.gather(info.size_bytes);
      } else if (how == kInPlace) {
        DLTensor view{};
        status = qplan_session_view(session_, QPLAN_OUTPUT, o, &view);
        if (status == QPLAN_OK && !bytes.empty()) {
          std::memcpy(bytes.data(), static_cast<const uint8_t*>(view.data) + view.byte_offset, bytes.size());
        }
      } else {
        DLTensor tensor = packed_tensor(info, bytes.data());
        status = qplan_session_read(session_, o, &tensor);
      }
      FUZZ_CHECK(status == QPLAN_OK, "output %u: %s", o, qplan_status_name(status));
      if (info.dtype.code == kDLFloat && info.dtype.bits == 32) make_nans_equal(&bytes);
      result_.outputs.push_back(std::move(bytes));
    }
  }

  void describe() {
    qplan_session_info info{};
    info.struct_size = sizeof(info);
    FUZZ_CHECK(qplan_session_get_info(session_, &info) == QPLAN_OK, "get_info");
    uint64_t total = 0;
    for (const qplan_memory_need& need : needs_) total += need.size;
    FUZZ_CHECK(info.memory_bytes == total, "info says other memory than needs");
    for (uint32_t i = 0; i < info.num_steps; ++i) {
      qplan_event event{};
      event.struct_size = sizeof(event);
      FUZZ_CHECK(qplan_session_step_info(session_, i, &event) == QPLAN_OK, "step_info(%u)", i);
      FUZZ_CHECK(event.op != nullptr && event.kernel != nullptr && event.name != nullptr, "step_info(%u)", i);
    }
    for (uint32_t i = 0; i < qplan_session_num_regions(session_); ++i) {
      qplan_region_info region{};
      region.struct_size = sizeof(region);
      FUZZ_CHECK(qplan_session_region_info(session_, i, &region) == QPLAN_OK, "region_info(%u)", i);
      FUZZ_CHECK(region.status != QPLAN_INTERNAL, "region %u: %s", i, region.text);
      result_.device_runs.push_back(region.device_runs);
    }
  }

  const qplan_plan& plan_;
  const Use& use_;
  uint32_t seed_;
  qplan_platform platform_{};
  qplan_session_config config_{};
  qplan_npu_device_config device_{};
  std::vector<qplan_memory_need> needs_;
  std::vector<GuardedMemory> buffers_;
  std::vector<std::unique_ptr<GuardedMemory>> bound_;
  DeviceBuffers device_buffers_;
  qplan_session* session_ = nullptr;
  Result result_;
};

void expect_equal(const Result& reference, const Result& other) {
  FUZZ_CHECK(reference.outputs.size() == other.outputs.size(), "another number of outputs");
  for (size_t o = 0; o < reference.outputs.size(); ++o) {
    const std::vector<uint8_t>&a = reference.outputs[o], &b = other.outputs[o];
    for (size_t i = 0; i < a.size(); ++i) {
      FUZZ_CHECK(a[i] == b[i], "output %zu, byte %zu: %d on the reference kernels, %d on others", o, i, a[i],
                 b[i]);
    }
  }
}

// On the device, with the caller's memory and with buffers of the device: the same bytes, unless a program
// does not write all of its outputs or reads what nobody has written. Two fills tell such programs.
void run_on_device(const qplan_plan& plan, Use use, uint8_t device_buffers, uint32_t seed) {
  use.with_device = true;
  const auto run = [&](uint8_t poison, uint8_t buffers) {
    use.poison = poison;
    use.device_buffers = buffers;
    return PlanRun(plan, use, seed).run();
  };
  const auto are_equal = [](const Result& a, const Result& b) {
    return a.ran == b.ran && a.outputs == b.outputs && a.device_runs == b.device_runs;
  };
  Result usual = run(0x5a, 0);
  if (!usual.ran || device_buffers == 0) return;
  if ((use.npu_flags & QPLAN_NPU_VERIFY) != 0) {  // the CPU's bytes stand then
    use.npu_flags &= ~uint32_t{QPLAN_NPU_VERIFY};
    usual = run(0x5a, 0);
    if (!usual.ran) return;
  }
  const Result bound = run(0x5a, device_buffers);
  // A busy machine may end a job: the CPU runs then, or nobody.
  if (!bound.ran || usual.device_runs != bound.device_runs || are_equal(usual, bound)) return;
  if (!are_equal(usual, run(0xc3, 0)) || !are_equal(bound, run(0xc3, device_buffers))) return;
  for (size_t o = 0; o < usual.outputs.size(); ++o) {
    FUZZ_CHECK(usual.outputs[o] == bound.outputs[o], "output %zu depends on buffers of the device", o);
  }
}

void run_plan(const uint8_t* data, size_t size) {
  const PlanInput input(data, size);
  InputTail tail(input.tail.data(), input.tail.size());
  const uint8_t how = tail.byte(), where = tail.byte(), device = tail.byte();
  const uint32_t io = tail.word(), seed = tail.byte();
  const uint8_t device_buffers = static_cast<uint8_t>(~tail.byte());  // all, where an input does not say

  const GuardedMemory bytes(input.plan.size(), 64, true, 0);
  if (!input.plan.empty()) std::memcpy(bytes.data(), input.plan.data(), input.plan.size());
  qplan_plan plan;
  qplan_error error{};
  error.struct_size = sizeof(error);
  // Seldom with the digest: it takes longer than everything else.
  const uint32_t flags = (how & 7) == 7 ? QPLAN_PLAN_DIGEST : 0;
  const qplan_status opened = qplan_plan_open(&plan, bytes.data(), bytes.size(), flags, &error);
  if (opened != QPLAN_OK) return expect_explained(opened, error);

  const PlanWork work(bytes.data());
  uint64_t counted = 0;
  error.text[0] = '\0';
  const qplan_status told = qplan_plan_work(&plan, nullptr, qplan_kernels_all(), &counted, &error);
  if (told != QPLAN_OK) return expect_explained(told, error);

  Surroundings& surroundings = Surroundings::get();
  Use use;
  use.isa_limit = QPLAN_ISA_REFERENCE;
  use.at_end = (how & 8) != 0;
  use.one_byte_less = (how & 16) != 0;
  const Result reference = PlanRun(plan, use, seed).run();
  FUZZ_CHECK(counted <= kMostCpuWork || !reference.ran, "work of %llu runs in spite of its limit",
             static_cast<unsigned long long>(counted));
  if (counted > kMostCpuWork) return;

  use.isa_limit = surroundings.isas[where % surroundings.isas.size()];
  use.pool = surroundings.pool(where >> 3);
  use.io = io;
  use.asynchronous = (how & 32) != 0;
  use.one_byte_less = false;
  const Result other = PlanRun(plan, use, seed).run();
  if (reference.ran && other.ran && !work.has_float_epilogues()) expect_equal(reference, other);

  if (!work.has_regions() || work.device() > kMostDeviceWork) return;
  use.on_npu_failure = device % 3;
  use.npu_flags = device >> 2 & 3;
  run_on_device(plan, use, device_buffers, seed);
}

}  // namespace
}  // namespace qplan::testing

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  qplan::testing::run_plan(data, size);
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned int seed) {
  return qplan::testing::PlanMutator(seed).run(data, size, max_size);
}
