// Elementwise kernels.
#include <algorithm>
#include <cstdlib>

#include "src/ethosu/sim/machine.h"

namespace qplan::ethosu::sim {
namespace {

// Fraction bits that operands of sums get before they are scaled.
constexpr uint32_t kSumBits8 = 20, kSumBits16 = 15;

int64_t shift_right(int64_t value, uint32_t by, Rounding rounding) { return scale(value, {1, by}, rounding); }

}  // namespace

// Operands less their zero points, in their order.
bool Executor::combine(int64_t a, int64_t b, int64_t* result) {
  const bool is_wide = k_.ifm.bits == 32;
  // The shift alone is applied to 32-bit operands.
  const Scale by = is_wide ? Scale{1, k_.ofm_scale.shift} : k_.ofm_scale;
  const auto scaled = [&](int64_t value) { return k_.has_scale ? scale(value, by, k_.rounding) : value; };
  switch (k_.elementwise) {
    case ElementwiseMode::kMul:
      *result = scaled(a * b);
      return true;
    case ElementwiseMode::kAdd:
    case ElementwiseMode::kSub: {
      if (!is_wide) {
        // Mode 1 scales the first operand, 2 the second: IFM's and IFM2's places, not the order.
        const uint32_t bits = k_.ifm.bits == 16 ? kSumBits16 : kSumBits8;
        const auto scale_operand = [&](int64_t value) {
          return scale(value * (int64_t{1} << bits), {k_.opa.multiplier, k_.opa.shift + bits},
                       Rounding::kDouble);
        };
        if (k_.scale_mode == 0) {
          if (k_.opa.shift != 0) return fail(QPLAN_NPU_E_ILLEGAL, "OPA_SCALE has a shift", k_.opa.shift, 0);
          a *= k_.opa.multiplier, b *= k_.opb.multiplier;
        } else if (k_.scale_mode == 1) {
          a = scale_operand(a), b *= int64_t{1} << (bits - 1);
        } else {
          b = scale_operand(b), a *= int64_t{1} << (bits - 1);
        }
        if (k_.opa.shift + bits > 63) return fail(QPLAN_NPU_E_ILLEGAL, "OPA_SCALE's shift", k_.opa.shift, 43);
        if (std::max(std::abs(a), std::abs(b)) >= int64_t{1} << 31)
          return fail(QPLAN_NPU_E_ILLEGAL, "a scaled operand may overflow", std::max(a, b), int64_t{1} << 31);
      }
      *result = scaled(k_.elementwise == ElementwiseMode::kAdd ? a + b : a - b);
      return true;
    }
    case ElementwiseMode::kMin:
      *result = std::min(a, b);
      return true;
    case ElementwiseMode::kMax:
      *result = std::max(a, b);
      return true;
    case ElementwiseMode::kLrelu:
      *result = a >= 0 ? a : scaled(a);
      return true;
    case ElementwiseMode::kAbs:
      *result = scaled(std::abs(a));
      return true;
    case ElementwiseMode::kClz: {
      const auto bits = static_cast<uint32_t>(a);
      int64_t zeros = 0;
      while (zeros < 32 && (bits >> (31 - zeros) & 1) == 0) ++zeros;
      *result = zeros;
      return true;
    }
    case ElementwiseMode::kShr:
      if (b < 0 || b > 63) return fail(QPLAN_NPU_E_ILLEGAL, "a shift by so many bits", b, 63);
      *result = shift_right(a, static_cast<uint32_t>(b), k_.rounding);
      return true;
    case ElementwiseMode::kShl:
      if (b < 0 || b > 31) return fail(QPLAN_NPU_E_ILLEGAL, "a shift by so many bits", b, 31);
      *result = static_cast<int32_t>(static_cast<uint32_t>(a) << b);
      return true;
  }
  return false;
}

bool Executor::elementwise() {
  if (!fetch(k_.ifm, &ifm_)) return false;
  if (k_.has_ifm2 && !fetch(k_.ifm2, &ifm2_)) return false;
  if (!check_overlap()) return false;
  const int64_t scalar = int64_t{k_.scalar} - (k_.ifm2.bits == 32 ? 0 : k_.ifm2.zero_point);
  for (uint32_t y = 0; y < k_.ofm.h; ++y) {
    if (!goes_on()) return false;
    for (uint32_t x = 0; x < k_.ofm.w; ++x) {
      for (uint32_t c = 0; c < k_.ofm.d; ++c) {
        const int64_t first = ifm_.at(y, x)[c];
        int64_t second = scalar;
        if (k_.has_ifm2) {
          second = ifm2_.at(k_.broadcast_h ? 0 : y, k_.broadcast_w ? 0 : x)[k_.broadcast_c ? 0 : c];
        }
        int64_t value = 0;
        if (!(k_.ifm2_is_first ? combine(second, first, &value) : combine(first, second, &value)))
          return false;
        if (!put(y, x, c, value)) return false;
      }
    }
  }
  return true;
}

}  // namespace qplan::ethosu::sim
