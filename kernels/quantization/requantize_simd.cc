// requantize by vectors: runs of neighbouring elements whose channels are neighbours too.
#include <stddef.h>
#include <stdint.h>

#include "kernels/quantization/quantization.h"
#include "kernels/simd/simd.h"

namespace qplan {
namespace {

// What the vector variants compute: one channel, or int32 with channels along the last axis.
inline Refusal runs_accept(const RequantizeArgs& a) {
  if (a.input_dtype == Dtype::kS16 || a.output_dtype == Dtype::kS16 || a.output_dtype == Dtype::kS32)
    return Refusal::kDtype;
  if (a.channels == 1) return Refusal::kNone;
  if (a.input_dtype != Dtype::kS32) return Refusal::kDtype;
  return a.inner == 1 ? Refusal::kNone : Refusal::kAxes;
}

inline uint32_t runs_work_items(const RequantizeArgs& a) {
  return static_cast<uint32_t>((a.count + kRequantizeChunk - 1) / kRequantizeChunk);
}

// run(i, c, count): the elements from i on, of the channels from c on; of channel 0 all of them where there
// is one.
template <typename Run>
inline void for_runs(const RequantizeArgs& a, uint32_t begin, uint32_t end, Run run) {
  uint64_t i = uint64_t{begin} * kRequantizeChunk;
  const uint64_t stop = uint64_t{end} * kRequantizeChunk;
  const uint64_t last = stop < a.count ? stop : a.count;
  if (a.channels == 1) return run(i, uint32_t{0}, last - i);
  uint32_t c = static_cast<uint32_t>(i % a.channels);
  while (i < last) {
    const uint64_t left = last - i;
    const uint64_t count = left < a.channels - c ? left : a.channels - c;
    run(i, c, count);
    i += count;
    c = 0;
  }
}

// Channels that share a float epilogue.
constexpr uint32_t kFormGroup = 16;

struct WideInput {
  const int32_t* from;
  explicit WideInput(const RequantizeArgs& a) : from(static_cast<const int32_t*>(a.input)) {}
  VecI32 load(uint64_t i, uint32_t count) const { return load_ints(from + i, count); }
};

struct ByteInput {
  const uint8_t* from;
  Dtype dtype;
  explicit ByteInput(const RequantizeArgs& a)
      : from(static_cast<const uint8_t*>(a.input)), dtype(a.input_dtype) {}
  VecI32 load(uint64_t i, uint32_t count) const { return widen(load_bytes(from + i, count), dtype); }
};

// outputs(x, c, count): what becomes of the differences x, of the channels from c on, without zero point and
// clamp; all channels of a vector are of one group.
template <typename Input, typename Outputs>
inline void requantize_run(const RequantizeArgs& a, uint32_t begin, uint32_t end, Outputs outputs) {
  constexpr uint32_t kBlock = 4 * kLanes;
  const Input input(a);
  uint8_t* out = static_cast<uint8_t*>(a.output);
  const VecI32 zero_point = set_ints(a.input_zero_point);
  const Output output = set_output(a.output_zero_point, a.clamp_min, a.clamp_max);
  const OutputBytes bytes(a);
  for_runs(a, begin, end, [&](uint64_t i, uint32_t c, uint64_t count) {
    const auto vector = [&](uint64_t k, uint32_t now) __attribute__((always_inline)) {
      return outputs(sub(input.load(i + k, now), zero_point), c + k, now);
    };
    const auto vectors = [&](uint64_t k, uint64_t stop) {
      for (; k < stop; k += kLanes) {
        const uint32_t now = stop - k < kLanes ? static_cast<uint32_t>(stop - k) : kLanes;
        store_bytes(out + i + k, finish(vector(k, now), output), now);
      }
    };
    const uint64_t head = a.channels == 1 ? 0 : (kFormGroup - c % kFormGroup) % kFormGroup;
    uint64_t k = head < count ? head : count;
    vectors(0, k);
    for (; count - k >= kBlock; k += kBlock) {
      const VecI32 v0 = vector(k, kLanes), v1 = vector(k + kLanes, kLanes);
      const VecI32 v2 = vector(k + 2 * kLanes, kLanes), v3 = vector(k + 3 * kLanes, kLanes);
      const auto packed = bytes.pack(v0, v1, v2, v3);
      __builtin_memcpy(out + i + k, &packed, kBlock);
    }
    vectors(k, count);
  });
}

template <typename Input>
inline void requantize_real(const RequantizeArgs& a, uint32_t begin, uint32_t end) {
  // What is below int32 converts to its minimum; what is above would, too, and is held back.
  const auto outputs = [](VecI32 x, VecF32 scale) {
    return round(min(mul(to_reals(x), scale), set_reals(65536.0f)));
  };
  if (a.channels == 1) {
    const VecF32 one = set_reals(a.scales != nullptr ? a.scales[0] : a.scale);
    requantize_run<Input>(a, begin, end, [&](VecI32 x, uint64_t, uint32_t) { return outputs(x, one); });
  } else {
    requantize_run<Input>(a, begin, end, [&](VecI32 x, uint64_t c, uint32_t count) {
      return outputs(x, load_reals(a.scales + c, count));
    });
  }
}

// Whether the group of channel c has a float epilogue.
inline bool group_has_form(const RequantizeArgs& a, uint64_t c) {
  return a.float_scale[c / kFormGroup * kFormGroup] >= 0.0f;
}

// One channel that has a form.
template <typename Input, typename Form>
inline void requantize_form(const RequantizeArgs& a, uint32_t begin, uint32_t end) {
  const Form form(set_reals(a.float_scale[0]), set_reals(a.float_offset[0]));
  requantize_run<Input>(a, begin, end, [&](VecI32 x, uint64_t, uint32_t) { return form.outputs(x); });
}

// The constants of TFL2 and TFL1.
struct RoundTwice {
  static Requant set(int32_t multiplier, int32_t shift) { return set_requant(multiplier, shift); }
  static Requant load(const int32_t* multipliers, const int32_t* shifts, uint32_t count) {
    return load_requant(multipliers, shifts, count);
  }
};
struct RoundOnce {
  static RequantOnce set(int32_t multiplier, int32_t shift) { return set_requant_once(multiplier, shift); }
  static RequantOnce load(const int32_t* multipliers, const int32_t* shifts, uint32_t count) {
    return load_requant_once(multipliers, shifts, count);
  }
};

template <typename Rounding>
inline VecI32 requantize_channels(const RequantizeArgs& a, VecI32 x, uint64_t c, uint32_t count) {
  return requantize(x, Rounding::load(a.multipliers + c, a.shifts + c, count));
}

// Channels without a form among those that have one: out of their way.
template <typename Rounding>
__attribute__((noinline)) VecI32 requantize_formless(const RequantizeArgs& a, VecI32 x, uint64_t c,
                                                     uint32_t count) {
  return requantize_channels<Rounding>(a, x, c, count);
}

template <typename Form, typename Rounding>
inline void requantize_forms(const RequantizeArgs& a, uint32_t begin, uint32_t end) {
  requantize_run<WideInput>(a, begin, end, [&](VecI32 x, uint64_t c, uint32_t count) {
    if (!group_has_form(a, c)) return requantize_formless<Rounding>(a, x, c, count);
    const Form form(load_reals(a.float_scale + c, count), load_reals(a.float_offset + c, count));
    return form.outputs(x);
  });
}

template <typename Input, typename Rounding>
inline void requantize_integer(const RequantizeArgs& a, uint32_t begin, uint32_t end) {
  if (a.channels == 1) {
    const bool is_constant = a.multipliers != nullptr;
    const auto one =
        Rounding::set(is_constant ? a.multipliers[0] : a.multiplier, is_constant ? a.shifts[0] : a.shift);
    requantize_run<Input>(a, begin, end, [&](VecI32 x, uint64_t, uint32_t) { return requantize(x, one); });
  } else if (!kHasFma || a.float_epilogue == FloatEpilogue::kNone) {
    requantize_run<WideInput>(a, begin, end, [&](VecI32 x, uint64_t c, uint32_t count) {
      return requantize_channels<Rounding>(a, x, c, count);
    });
  } else if (a.float_epilogue == FloatEpilogue::kPlain) {
    requantize_forms<PlainEpilogue, Rounding>(a, begin, end);
  } else {
    requantize_forms<SignedEpilogue, Rounding>(a, begin, end);
  }
}

template <typename Input>
inline void requantize_from(const RequantizeArgs& a, uint32_t begin, uint32_t end) {
  const bool is_form =
      kHasFma && a.channels == 1 && a.float_epilogue != FloatEpilogue::kNone && group_has_form(a, 0);
  if (a.contract == Contract::kF32e) {
    requantize_real<Input>(a, begin, end);
  } else if (is_form && a.float_epilogue == FloatEpilogue::kPlain) {
    requantize_form<Input, PlainEpilogue>(a, begin, end);
  } else if (is_form) {
    requantize_form<Input, SignedEpilogue>(a, begin, end);
  } else if (a.contract == Contract::kTfl1) {
    requantize_integer<Input, RoundOnce>(a, begin, end);
  } else {
    requantize_integer<Input, RoundTwice>(a, begin, end);
  }
}

// Never inlined: EpilogueRounding changes the floating point environment around it.
__attribute__((noinline)) void requantize_lanes(const RequantizeArgs& a, uint32_t begin, uint32_t end) {
  if (a.input_dtype == Dtype::kS32) {
    requantize_from<WideInput>(a, begin, end);
  } else {
    requantize_from<ByteInput>(a, begin, end);
  }
}

}  // namespace

QPLAN_SIMD_NAMESPACE(requantize) {

#if !defined(QPLAN_ONLY_RUN)
Refusal accepts(const RequantizeArgs& args) { return runs_accept(args); }

size_t scratch_bytes(const RequantizeArgs&) { return 0; }

uint32_t work_items(const RequantizeArgs& args) { return runs_work_items(args); }
#endif

#if !defined(QPLAN_ONLY_QUERIES)
void run(const RequantizeArgs& args, uint32_t begin, uint32_t end, void*) {
  const EpilogueRounding rounding(args.float_epilogue != FloatEpilogue::kNone);
  requantize_lanes(args, begin, end);
}
#endif

}  // QPLAN_SIMD_NAMESPACE(requantize)

}  // namespace qplan
