// What random operator lists are made of: numbers, tensors and scales that capabilities allow.
#ifndef QPLAN_TESTS_CONFORMANCE_DRAW_H_
#define QPLAN_TESTS_CONFORMANCE_DRAW_H_

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "qplan/npu_oplist.h"
#include "src/packer/target/external/external.h"
#include "tests/conformance/workload.h"

namespace qplan::conformance {

inline constexpr DLDataType kS8 = {kDLInt, 8, 1}, kU8 = {kDLUInt, 8, 1}, kS32 = {kDLInt, 32, 1},
                            kF32 = {kDLFloat, 32, 1};

// Every second attempt is plain: no padding, steps of one, zero points of 0, signed weights, one scale,
// channels in multiples of what devices often want.
class Draw {
 public:
  Draw(const qplan_npu_capabilities& capabilities, Size size, uint32_t seed, uint32_t attempt)
      : capabilities_(capabilities),
        size_(size),
        attempt_(attempt),
        is_plain_(attempt % 2 == 1),
        random_(seed) {
    constexpr int64_t kPlainPacks[] = {16, 8, 32, 4};
    pack_ = capabilities.channel_pack > 1 && says_something() ? int64_t{capabilities.channel_pack}
            : is_plain_                                       ? kPlainPacks[attempt / 2 % 4]
                                                              : 1;
  }

 protected:
  // ---- what the capabilities allow
  bool says_something() const { return capabilities_.contracts != 0; }
  bool has_contract(uint32_t contract) const {
    return !says_something() || (capabilities_.contracts & contract) != 0;
  }
  bool allows(uint32_t field) const { return !is_plain_ && (!says_something() || field != 0); }
  int64_t round_up(int64_t channels) const { return (channels + pack_ - 1) / pack_ * pack_; }

  int64_t between(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random_() % static_cast<uint32_t>(high - low + 1));
  }
  int64_t low() const { return dtype_.code == kDLInt ? -128 : 0; }
  int32_t value() { return static_cast<int32_t>(between(low(), low() + 255)); }
  int32_t zero_point(uint32_t field) { return allows(field) ? value() : 0; }
  float real(double from, double to) {
    return static_cast<float>(from + (to - from) * static_cast<double>(random_()) / 4294967295.0);
  }

  std::vector<uint8_t> random_bytes(size_t count) {
    std::vector<uint8_t> bytes(count);
    for (size_t i = 0; i < count; i += 4) {  // of megabytes, for each operator that is drawn
      const auto four = static_cast<uint32_t>(random_());
      std::memcpy(bytes.data() + i, &four, std::min<size_t>(4, count - i));
    }
    return bytes;
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
    slot.dtype = dtype_;
    slot.shape = shape;
    workload_.slots.push_back(slot);
    return writer_.add_tensor(slot.slot, 0, dtype_, shape);
  }
  uint32_t output(const std::vector<int64_t>& shape, bool is_scratch) {
    const uint32_t usage = is_scratch ? QPLAN_NPU_USE_SCRATCH : QPLAN_NPU_USE_OUTPUT;
    const DLDataType dtype = contract_ == QPLAN_NPU_ACC32 ? kS32 : dtype_;
    const auto bytes = static_cast<uint64_t>(elements(shape)) * (dtype.bits / 8u);
    if (!is_scratch) workload_.output = workload_.slots.size();
    const uint32_t slot = writer_.add_slot(usage, bytes);
    workload_.slots.push_back({slot, usage, bytes, {}, dtype, shape});
    shape_ = shape;
    result_ = writer_.add_tensor(slot, 0, dtype, shape);
    return result_;
  }

  void set_range(qplan_oplist_op* op) {
    if (contract_ == QPLAN_NPU_ACC32) {
      op->clamp_min = INT32_MIN;
      op->clamp_max = INT32_MAX;
      return;
    }
    op->output_zero_point = zero_point(capabilities_.output_zero_point);
    op->clamp_min = static_cast<int32_t>(low());
    op->clamp_max = static_cast<int32_t>(low() + 255);
    if (is_plain_ || between(0, 2) != 0) return;
    op->clamp_min = static_cast<int32_t>(between(low(), low() + 100));
    op->clamp_max = static_cast<int32_t>(between(low() + 120, low() + 255));
  }

  // Such that results of accumulators around `spread` fill the range.
  void set_scales(qplan_oplist_op* op, int64_t channels, double spread) {
    if (contract_ == QPLAN_NPU_ACC32) return;
    const bool per_channel =
        !is_plain_ && (!says_something() || (capabilities_.contracts_per_channel & contract_) != 0);
    op->num_scales = static_cast<uint32_t>(!per_channel || between(0, 1) == 0 ? 1 : channels);
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

  // As of a layer with one scale.
  void set_one_scale(qplan_oplist_op* op, double spread) {
    op->num_scales = 1;
    if (contract_ == QPLAN_NPU_F32E) {
      op->scales = constants(kF32, std::vector<float>{real(20 / spread, 200 / spread)});
      return;
    }
    int32_t shift = 7;
    for (double s = spread; s > 1; s /= 2) --shift;
    op->multipliers =
        constants(kS32, std::vector<int32_t>{static_cast<int32_t>(between(int64_t{1} << 30, INT32_MAX))});
    op->shifts = constants(kS32, std::vector<int32_t>{shift});
  }
  void set_product_scales(qplan_oplist_op* op) {
    if (contract_ != QPLAN_NPU_F32E) return set_one_scale(op, 5000);
    op->num_scales = 3;
    op->scales = constants(kF32, std::vector<float>{real(0.01, 0.1), real(0.01, 0.1), real(0.05, 0.2)});
  }

  // The input's scale is between 2^-6 and 1. A softmax has the whole range, and under TFL2 one zero point.
  void set_softmax_scales(qplan_oplist_op* op) {
    constexpr int kDifferences = 256;
    op->input_zero_points[0] = 0;
    op->clamp_min = static_cast<int32_t>(low());
    op->clamp_max = static_cast<int32_t>(low() + 255);
    if (contract_ != QPLAN_NPU_F32E) {
      op->output_zero_point = static_cast<int32_t>(low());
      op->num_scales = 1;
      op->multipliers =
          constants(kS32, std::vector<int32_t>{static_cast<int32_t>(between(int64_t{1} << 30, INT32_MAX))});
      op->shifts = constants(kS32, std::vector<int32_t>{static_cast<int32_t>(between(21, 26))});
      return;
    }
    const float scale = real(0.015, 1.0);
    std::vector<float> scales = {real(0.003, 0.006)};
    for (int d = 0; d < kDifferences; ++d) scales.push_back(std::exp(-scale * static_cast<float>(d)));
    op->num_scales = static_cast<uint32_t>(scales.size());
    op->scales = constants(kF32, scales);
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

  const qplan_npu_capabilities& capabilities_;
  Size size_;
  uint32_t attempt_;
  bool is_plain_;
  int64_t pack_ = 1;  // channels come in multiples of it
  std::mt19937 random_;
  target::external::OplistWriter writer_;
  Workload workload_;
  DLDataType dtype_ = kS8;
  uint32_t contract_ = 0;
  std::vector<int64_t> shape_;  // of result_
  uint32_t result_ = 0;
};

}  // namespace qplan::conformance

#endif  // QPLAN_TESTS_CONFORMANCE_DRAW_H_
