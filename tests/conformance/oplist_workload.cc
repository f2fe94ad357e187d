// Random operator lists: an operator, sometimes followed by a second one on its result in scratch memory.
#include <algorithm>
#include <random>

#include "qplan/npu_oplist.h"
#include "src/packer/target/external/external.h"
#include "tests/conformance/check.h"
#include "tests/conformance/workload.h"

namespace qplan::conformance {
namespace {

using target::external::empty_op;
using target::external::OplistWriter;

constexpr DLDataType kS8 = {kDLInt, 8, 1}, kU8 = {kDLUInt, 8, 1}, kS32 = {kDLInt, 32, 1},
                     kF32 = {kDLFloat, 32, 1};
constexpr uint32_t kContracts[] = {QPLAN_NPU_TFL2, QPLAN_NPU_TFL1, QPLAN_NPU_F32E};
constexpr int64_t kEndlessKernels[] = {15, 7, 3};
constexpr const char* kOps[] = {"", "conv2d", "dense", "add", "max_pool2d", "avg_pool2d", "clip"};

class Generator {
 public:
  Generator(const qplan_npu_capabilities& capabilities, Size size, uint32_t seed, uint32_t attempt)
      : capabilities_(capabilities), size_(size), attempt_(attempt), random_(seed) {}

  Workload run() {
    workload_.format = QPLAN_NPU_BLOB_OPLIST;
    const bool has_second = size_ == Size::kRandom && between(0, 3) == 0;
    dtype_ = between(0, 1) == 0 ? kS8 : kU8;
    contract_ = size_ == Size::kRandom ? kContracts[between(0, 2)] : kContracts[contract_of_small()];
    const auto kind =
        static_cast<uint32_t>(size_ == Size::kRandom ? between(1, 6) : int64_t{QPLAN_NPU_OP_CONV2D});
    add_operator(kind, has_second);
    if (has_second) {
      qplan_oplist_op clip = empty_op(QPLAN_NPU_OP_CLIP, contract_);
      clip.inputs[0] = result_;
      clip.output = output(shape_, false);
      set_range(&clip);
      writer_.add_op(clip, "second");
      workload_.text += " -> clip";
    }
    workload_.blob = writer_.finish(capabilities_.hash);
    workload_.seal = target::external::seal_oplist;
    workload_.header_bytes = sizeof(qplan_oplist_header);
    workload_.version_offset = offsetof(qplan_oplist_header, version) + 2;  // the major
    workload_.hash_offset = offsetof(qplan_oplist_header, capabilities_hash);
    workload_.unpack = [](const std::vector<uint8_t>& bytes) { return bytes; };
    if (size_ != Size::kEndless) finish();
    return std::move(workload_);
  }

 private:
  int64_t between(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random_() % static_cast<uint32_t>(high - low + 1));
  }
  size_t contract_of_small() const {
    for (size_t i = 0; i < std::size(kContracts); ++i) {
      if ((capabilities_.contracts & kContracts[i]) != 0) return i;
    }
    return 0;
  }
  int64_t low() const { return dtype_.code == kDLInt ? -128 : 0; }
  int32_t value() { return static_cast<int32_t>(between(low(), low() + 255)); }
  float real(double from, double to) {
    return static_cast<float>(from + (to - from) * static_cast<double>(random_()) / 4294967295.0);
  }

  template <typename T>
  uint32_t constants(DLDataType dtype, const std::vector<T>& values, std::vector<int64_t> shape = {}) {
    if (shape.empty()) shape = {static_cast<int64_t>(values.size())};
    return writer_.add_constant(dtype, shape,
                                {reinterpret_cast<const uint8_t*>(values.data()), values.size() * sizeof(T)});
  }

  static int64_t elements(const std::vector<int64_t>& shape) {
    int64_t n = 1;
    for (const int64_t extent : shape) n *= extent;
    return n;
  }
  uint32_t input(const std::vector<int64_t>& shape) {
    const auto bytes = static_cast<uint64_t>(elements(shape));
    Slot slot;
    slot.slot = writer_.add_slot(QPLAN_NPU_USE_INPUT, bytes);
    slot.usage = QPLAN_NPU_USE_INPUT;
    slot.bytes = bytes;
    for (uint64_t i = 0; i < bytes; ++i) slot.content.push_back(static_cast<uint8_t>(random_()));
    workload_.slots.push_back(slot);
    return writer_.add_tensor(slot.slot, 0, dtype_, shape);
  }
  uint32_t output(const std::vector<int64_t>& shape, bool is_scratch) {
    const uint32_t usage = is_scratch ? QPLAN_NPU_USE_SCRATCH : QPLAN_NPU_USE_OUTPUT;
    const auto bytes = static_cast<uint64_t>(elements(shape));
    if (!is_scratch) workload_.output = workload_.slots.size();
    const uint32_t slot = writer_.add_slot(usage, bytes);
    workload_.slots.push_back({slot, usage, bytes, {}});
    shape_ = shape;
    result_ = writer_.add_tensor(slot, 0, dtype_, shape);
    return result_;
  }

  void set_range(qplan_oplist_op* op) {
    op->output_zero_point = value();
    op->clamp_min = static_cast<int32_t>(low());
    op->clamp_max = static_cast<int32_t>(low() + 255);
    if (between(0, 2) != 0) return;
    op->clamp_min = static_cast<int32_t>(between(low(), low() + 100));
    op->clamp_max = static_cast<int32_t>(between(low() + 120, low() + 255));
  }

  // Such that results of accumulators around `spread` fill the range.
  void set_scales(qplan_oplist_op* op, int64_t channels, double spread) {
    op->num_scales = static_cast<uint32_t>(between(0, 1) == 0 ? 1 : channels);
    if (contract_ == QPLAN_NPU_F32E) {
      std::vector<float> scales;
      for (uint32_t i = 0; i < op->num_scales; ++i) scales.push_back(real(20 / spread, 200 / spread));
      op->scales = constants(kF32, scales);
      return;
    }
    int32_t shift = 7;
    for (double s = spread; s > 1; s /= 2) --shift;
    std::vector<int32_t> multipliers, shifts;
    for (uint32_t i = 0; i < op->num_scales; ++i) {
      multipliers.push_back(between(0, 30) == 0 ? 0
                                                : static_cast<int32_t>(between(int64_t{1} << 30, INT32_MAX)));
      shifts.push_back(std::clamp<int32_t>(shift + static_cast<int32_t>(between(-2, 2)), -31, 30));
    }
    op->multipliers = constants(kS32, multipliers);
    op->shifts = constants(kS32, shifts);
  }

  void set_weights(qplan_oplist_op* op, const std::vector<int64_t>& shape) {
    const bool is_signed = between(0, 2) != 0;
    std::vector<uint8_t> weights(static_cast<size_t>(elements(shape)));
    for (uint8_t& w : weights) w = static_cast<uint8_t>(random_());
    op->weights = constants(is_signed ? kS8 : kU8, weights, shape);
    op->weights_zero_point = is_signed ? (between(0, 1) == 0 ? 0 : static_cast<int32_t>(between(-128, 127)))
                                       : static_cast<int32_t>(between(0, 255));
    if (between(0, 3) != 0) {
      std::vector<int32_t> bias;
      for (int64_t o = 0; o < shape[0]; ++o) bias.push_back(static_cast<int32_t>(between(-30000, 30000)));
      op->bias = constants(kS32, bias);
    }
    double spread = 5000;
    for (int64_t k = elements(shape) / shape[0]; k > 1; k /= 4) spread *= 2;
    set_scales(op, shape[0], spread);
  }

  void set_window(qplan_oplist_op* op, int64_t* h, int64_t* w, int64_t kernel_h, int64_t kernel_w,
                  bool is_pool) {
    for (uint32_t& stride : op->strides) stride = static_cast<uint32_t>(between(1, 3));
    if (!is_pool && between(0, 3) == 0) {
      for (uint32_t& dilation : op->dilations) dilation = static_cast<uint32_t>(between(1, 3));
    }
    const int64_t reach_h = (kernel_h - 1) * op->dilations[0], reach_w = (kernel_w - 1) * op->dilations[1];
    op->pads[0] = static_cast<uint32_t>(between(0, is_pool ? std::min(kernel_h - 1, *h - 1) : reach_h));
    op->pads[1] = static_cast<uint32_t>(between(0, is_pool ? std::min(kernel_w - 1, *w - 1) : reach_w));
    op->pads[2] = op->pads[0];
    op->pads[3] = op->pads[1];
    const auto extent = [&](int64_t in, int64_t reach, uint32_t pad, uint32_t stride) {
      return std::max<int64_t>(1, (in + 2 * int64_t{pad} - reach - 1) / int64_t{stride} + 1);
    };
    *h = extent(*h, reach_h, op->pads[0], op->strides[0]);
    *w = extent(*w, reach_w, op->pads[1], op->strides[1]);
  }

  void add_operator(uint32_t kind, bool has_second) {
    qplan_oplist_op op = empty_op(kind, contract_);
    op.input_zero_points[0] = value();
    set_range(&op);
    const bool is_small = size_ == Size::kSmall, is_endless = size_ == Size::kEndless;
    const bool is_long = size_ == Size::kLong || is_endless;
    const int64_t long_extent = is_endless ? 256 : 64;
    int64_t h = is_long ? long_extent : between(1, is_small ? 4 : 9),
            w = is_long ? long_extent : between(1, is_small ? 4 : 9);
    int64_t channels = is_endless ? 64 : is_long ? 16 : between(1, is_small ? 4 : 20);
    std::vector<int64_t> shape = {1, h, w, channels};
    if (kind == QPLAN_NPU_OP_CONV2D) {
      const bool is_depthwise = !is_long && between(0, 2) == 0;
      // 15x15: 60 G multiply-accumulates. Devices with small windows get a smaller one.
      const int64_t kernel = is_endless ? kEndlessKernels[attempt_ % 3] : is_long ? 3 : between(1, 3);
      const int64_t outputs = is_depthwise ? channels * between(1, 2)
                              : is_endless ? 64
                              : is_long    ? 32
                                           : between(1, is_small ? 4 : 20);
      op.groups = is_depthwise ? static_cast<uint32_t>(channels) : 1;
      op.inputs[0] = input(shape);
      set_weights(&op, {outputs, kernel, kernel, is_depthwise ? 1 : channels});
      if (!is_long) set_window(&op, &h, &w, kernel, kernel, false);
      if (between(0, 3) == 0) {
        op.flags |= QPLAN_NPU_OP_PAD_VALUE;
        op.pad_value = value();
      }
      shape = {1, h, w, outputs};
    } else if (kind == QPLAN_NPU_OP_DENSE) {
      const int64_t rows = between(1, 3), outputs = between(1, 20), depth = between(1, 60);
      op.inputs[0] = input({rows, depth});
      set_weights(&op, {outputs, depth});
      shape = {rows, outputs};
    } else if (kind == QPLAN_NPU_OP_ADD) {
      op.inputs[0] = input(shape);
      op.inputs[1] = input(shape);
      op.input_zero_points[1] = value();
      set_add_scales(&op);
    } else if (kind == QPLAN_NPU_OP_CLIP) {
      op.inputs[0] = input(shape);
    } else {
      op.inputs[0] = input(shape);
      op.window[0] = static_cast<uint32_t>(between(1, h));
      op.window[1] = static_cast<uint32_t>(between(1, w));
      set_window(&op, &h, &w, op.window[0], op.window[1], true);
      shape = {1, h, w, channels};
      if (kind == QPLAN_NPU_OP_AVG_POOL2D && contract_ == QPLAN_NPU_F32E) {
        if (between(0, 1) == 0) op.flags |= QPLAN_NPU_OP_COUNT_INCLUDE_PAD;
        op.num_scales = 2;
        op.scales = constants(kF32, std::vector<float>{real(0.01, 0.1), real(0.01, 0.1)});
      }
    }
    op.output = output(shape, has_second);
    writer_.add_op(op, "first");
    workload_.text = kOps[kind];
    for (const int64_t extent : shape_) workload_.text += ' ' + std::to_string(extent);
    workload_.text += contract_ == QPLAN_NPU_TFL2   ? ", tfl2"
                      : contract_ == QPLAN_NPU_TFL1 ? ", tfl1"
                                                    : ", f32e";
  }

  void set_add_scales(qplan_oplist_op* op) {
    op->num_scales = 3;
    if (contract_ == QPLAN_NPU_F32E) {
      op->scales = constants(kF32, std::vector<float>{real(0.01, 0.1), real(0.01, 0.1), real(0.02, 0.2)});
      return;
    }
    const auto multiplier = [this] { return static_cast<int32_t>(between(int64_t{1} << 30, INT32_MAX)); };
    op->left_shift = 20;
    op->multipliers = constants(kS32, std::vector<int32_t>{multiplier(), multiplier(), multiplier()});
    op->shifts = constants(kS32, std::vector<int32_t>{static_cast<int32_t>(between(-3, -1)),
                                                      static_cast<int32_t>(between(-3, -1)),
                                                      static_cast<int32_t>(between(-19, -17))});
  }

  // The list, operator by operator, on memory of our own.
  void finish() {
    qplan_oplist list = {};
    (void)qplan_oplist_open(workload_.blob.data(), workload_.blob.size(), &list, nullptr);
    std::vector<std::vector<uint64_t>> memories;  // aligned for int32 and float
    std::vector<void*> slots;
    for (uint32_t i = 0; i < list.header.num_slots; ++i) {
      const qplan_oplist_slot slot = qplan_oplist_slot_at(&list, i);
      memories.emplace_back(slot.bytes / 8 + 1);
      slots.push_back(memories.back().data());
      if (slot.usage == QPLAN_NPU_USE_WEIGHTS)
        std::copy_n(workload_.blob.data() + slot.data_offset, slot.bytes,
                    static_cast<uint8_t*>(slots.back()));
    }
    for (const Slot& slot : workload_.slots) {
      std::copy(slot.content.begin(), slot.content.end(), static_cast<uint8_t*>(slots[slot.slot]));
    }
    for (uint32_t i = 0; i < list.header.num_ops; ++i) {
      qplan_oplist_call call;
      qplan_oplist_bind(&list, i, slots.data(), &call);
      if (const char* error = qplan_npu_op_check(&call.op)) {
        // TFL1 has no rule for additions and averages, which `supported` says; all else is our own mistake.
        throw std::logic_error(workload_.text + ": " + error);
      }
      compute_reference(call.op);
    }
    const Slot& output = workload_.slots[workload_.output];
    const auto* bytes = static_cast<const uint8_t*>(slots[output.slot]);
    workload_.expected.assign(bytes, bytes + output.bytes);
  }

  const qplan_npu_capabilities& capabilities_;
  Size size_;
  uint32_t attempt_;
  std::mt19937 random_;
  OplistWriter writer_;
  Workload workload_;
  DLDataType dtype_ = kS8;
  uint32_t contract_ = 0;
  std::vector<int64_t> shape_;  // of result_
  uint32_t result_ = 0;
};

bool is_supported(const Workload& workload, const Ask& ask) {
  qplan_oplist list = {};
  (void)qplan_oplist_open(workload.blob.data(), workload.blob.size(), &list, nullptr);
  std::vector<void*> slots(list.header.num_slots, nullptr);
  std::vector<uint64_t> constants(list.header.total_bytes / 8 + 1);
  const qplan_oplist_slot carried = qplan_oplist_slot_at(&list, 0);
  slots[0] = constants.data();
  std::copy_n(workload.blob.data() + carried.data_offset, carried.bytes, static_cast<uint8_t*>(slots[0]));
  for (uint32_t i = 0; i < list.header.num_ops; ++i) {
    qplan_oplist_call call;
    qplan_oplist_bind(&list, i, slots.data(), &call);
    if (!ask(call.op)) return false;
  }
  return true;
}

}  // namespace

Workload make_oplist_workload(const qplan_npu_capabilities& capabilities, const Ask& ask, Size size,
                              uint32_t seed) {
  constexpr uint32_t kTries = 200;
  const uint32_t tries = size == Size::kEndless ? 6 : kTries;  // an endless one has megabytes
  for (uint32_t attempt = 0; attempt < tries; ++attempt) {
    Workload workload = Generator(capabilities, size, seed * kTries + attempt, attempt).run();
    if (is_supported(workload, ask)) return workload;
  }
  throw Failed("supported refuses every one of " + std::to_string(tries) + " random operators");
}

Workload make_workload(const qplan_npu_capabilities& capabilities, const Ask& ask, Size size, uint32_t seed) {
  for (const uint32_t format : capabilities.blob_formats) {
    if (format == QPLAN_NPU_BLOB_OPLIST) return make_oplist_workload(capabilities, ask, size, seed);
    if (format == QPLAN_NPU_BLOB_VTA) return make_vta_workload(capabilities, size, seed);
  }
  throw Skipped("the driver takes neither operator lists ('QOP1') nor VTA's streams ('VTA1')");
}

}  // namespace qplan::conformance
