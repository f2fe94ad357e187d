// Most sums of TFL2 from one product of 16 bits per operand. The contract rounds five times, but all of them
// together move the result by less than a few units of the last of 18 or more binary places; where a sum in
// those places is not that near to the border between two outputs, its floor is the output. Where it is, and
// blocks of outputs that hold one, are computed as the contract says. Internal linkage only.
#ifndef QPLAN_KERNELS_ADD_ADD_FIXED_POINT_INL_
#define QPLAN_KERNELS_ADD_ADD_FIXED_POINT_INL_

#include <stdint.h>

#include "kernels/add/add.h"

namespace qplan {
namespace {

// Of operands and outputs as uint8, int8 lifted by `flip` = 128: the output is
//   clamp(floor((a * factor1 + b * factor2 + offset) / 2^places))
// and in doubt where the places of the sum, taken as a number, are below `doubt`.
struct FixedPointAdd {
  bool is_valid;
  int32_t places;
  int32_t factor1;
  int32_t factor2;
  int32_t offset;
  uint32_t doubt;
  uint8_t flip;
  uint8_t clamp_min;
  uint8_t clamp_max;
  // Factors are high * 2^15 + low; pairs of them for one multiplication of pairs of 16 bits.
  uint32_t high_pair() const { return pair(factor1 >> 15, factor2 >> 15); }
  uint32_t low_pair() const { return pair(factor1 & 0x7fff, factor2 & 0x7fff); }

 private:
  static uint32_t pair(int32_t first, int32_t second) {
    return (static_cast<uint32_t>(first) & 0xffff) | static_cast<uint32_t>(second) << 16;
  }
};

// What one unit of an operand adds to the output, in `places` binary places, to nearest. multiplier1 *
// multiplier2 * 2^(left_shift + shift1 + shift2 - 62) is the real number.
inline int64_t fixed_point_factor(const AddArgs& args, int32_t multiplier, int32_t shift, int32_t places) {
  const uint64_t product = static_cast<uint64_t>(multiplier) * static_cast<uint64_t>(args.output_multiplier);
  const int32_t right = 62 - args.left_shift - shift - args.output_shift - places;  // at least 19
  if (right > 63) return 0;
  return static_cast<int64_t>(((product >> (right - 1)) + 1) >> 1);
}

// With u the last place: the two factors are off by u / 2 each, of at most 255 units: together 255 u.
// Rescaled operands are off by 3/4 each, which the output's multiplier makes 2^output_shift * 3/2 at most,
// and the output's first rounding adds 2^output_shift / 2: together 2^(output_shift + 1).
inline FixedPointAdd fixed_point_add(const AddArgs& args, bool subtract) {
  FixedPointAdd fixed = {};
  if (args.output_shift > -12) return fixed;
  for (int32_t places = 21; places >= 18; --places) {
    const int64_t factor1 = fixed_point_factor(args, args.input1_multiplier, args.input1_shift, places);
    const int64_t factor2 = fixed_point_factor(args, args.input2_multiplier, args.input2_shift, places);
    // The sum and an output's zero point, lifted, fit int32.
    if ((factor1 + factor2) * 255 + (int64_t{258} << places) >= int64_t{1} << 31) continue;
    const int32_t lift = args.dtype == Dtype::kS8 ? 128 : 0;
    const int32_t error =
        256 + (args.output_shift + 1 + places >= 0 ? 1 << (args.output_shift + 1 + places) : 1);
    fixed.is_valid = true;
    fixed.places = places;
    fixed.factor1 = static_cast<int32_t>(factor1);
    fixed.factor2 = static_cast<int32_t>(subtract ? -factor2 : factor2);
    const int64_t offset = (int64_t{args.output_zero_point + lift} << places) + (int64_t{1} << (places - 1)) +
                           error - int64_t{fixed.factor1} * (args.input1_zero_point + lift) -
                           int64_t{fixed.factor2} * (args.input2_zero_point + lift);
    fixed.offset = static_cast<int32_t>(offset);
    fixed.doubt = static_cast<uint32_t>(2 * error) << (32 - places);
    fixed.flip = static_cast<uint8_t>(lift);
    fixed.clamp_min = static_cast<uint8_t>(args.clamp_min + lift);
    fixed.clamp_max = static_cast<uint8_t>(args.clamp_max + lift);
    return fixed;
  }
  return fixed;
}

}  // namespace
}  // namespace qplan

#endif  // QPLAN_KERNELS_ADD_ADD_FIXED_POINT_INL_
