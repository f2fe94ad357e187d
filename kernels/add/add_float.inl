// The float form of add and sub (kernels/add/add.h). An ISA file includes its kernels/numeric/bytes_<isa>.inl
// before this one, which gives the names used here their meaning. Internal linkage only.
#ifndef QPLAN_KERNELS_ADD_ADD_FLOAT_INL_
#define QPLAN_KERNELS_ADD_ADD_FLOAT_INL_

#include <stdint.h>

#include "kernels/add/add.h"
#include "kernels/elementwise/binary_bytes.inl"

namespace qplan {
namespace {

// kBytes elements at a time. The difference of sub is in the sign of a scale. int8 leaves as uint8 lifted by
// 128, for which the packing instructions saturate.
template <bool kSigned>
struct FloatAddLanes {
  static constexpr int32_t kLift = kSigned ? 128 : 0;
  Reals scale1, scale2, offset;
  Ints lift, flip, clamp_min, clamp_max, zero;

  explicit FloatAddLanes(const AddArgs& args)
      : scale1(set_reals(args.float_scale1)),
        scale2(set_reals(args.float_scale2)),
        offset(set_reals(args.float_offset)),
        lift(set_words(kLift)),
        flip(set_bytes(kLift)),
        clamp_min(set_bytes(static_cast<uint8_t>(args.clamp_min + kLift))),
        clamp_max(set_bytes(static_cast<uint8_t>(args.clamp_max + kLift))),
        zero(set_ints(0)) {}

  // A byte becomes the highest of four where it has a sign, the lowest otherwise.
  Ints low_words(Ints v) const { return kSigned ? zip_low_bytes(zero, v) : zip_low_bytes(v, zero); }
  Ints high_words(Ints v) const { return kSigned ? zip_high_bytes(zero, v) : zip_high_bytes(v, zero); }
  Reals low_reals(Ints words) const {
    return to_reals(kSigned ? shift_right(zip_low_words(zero, words), 24) : zip_low_words(words, zero));
  }
  Reals high_reals(Ints words) const {
    return to_reals(kSigned ? shift_right(zip_high_words(zero, words), 24) : zip_high_words(words, zero));
  }

  Ints sum(Reals a, Reals b) const { return round_half_even(fma(a, scale1, fma(b, scale2, offset))); }
  Ints words(Ints a, Ints b) const {
    const Ints sums = pack_ints(sum(low_reals(a), low_reals(b)), sum(high_reals(a), high_reals(b)));
    return kSigned ? add_words_saturating(sums, lift) : sums;
  }
  Ints outputs(Ints a, Ints b) const {
    const Ints bytes = pack_words(words(low_words(a), low_words(b)), words(high_words(a), high_words(b)));
    return bit_xor(min_bytes(max_bytes(bytes, clamp_min), clamp_max), flip);
  }
};

template <bool kSigned>
inline void add_float_of(const AddArgs& args, uint32_t begin, uint32_t end) {
  const FloatAddLanes<kSigned> lanes(args);
  for_each_vector_pair(args, begin, end, [&](const VectorPair& pair) {
    const Ints a = load_repeated(pair.a, pair.a_step, pair.count);
    const Ints b = load_repeated(pair.b, pair.b_step, pair.count);
    store_vector(pair.output, lanes.outputs(a, b), pair.count);
  });
}

inline void add_float(const AddArgs& args, uint32_t begin, uint32_t end) {
  if (args.dtype == Dtype::kS8) {
    add_float_of<true>(args, begin, end);
  } else {
    add_float_of<false>(args, begin, end);
  }
}

}  // namespace
}  // namespace qplan

#endif  // QPLAN_KERNELS_ADD_ADD_FLOAT_INL_
