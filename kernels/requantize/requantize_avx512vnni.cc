// requantize of int32, 16 elements at a time.
#include "kernels/numeric/requantize_avx512vnni.inl"

#include <immintrin.h>

#include "kernels/requantize/requantize.h"
#include "kernels/requantize/requantize_runs.inl"

namespace qplan::requantize_avx512vnni {
namespace {

// The lanes below count.
inline __mmask16 first_lanes(uint64_t count) {
  return mask16(count < 16 ? static_cast<uint32_t>(count) : 16);
}

inline __m512i load_lanes(const int32_t* from, __mmask16 lanes) {
  return _mm512_maskz_loadu_epi32(lanes, from);
}

// parameters(c, lanes): those of the channels from c on; finish(x, them): bytes.
template <typename Parameters, typename Finish>
inline void run_lanes(const RequantizeArgs& a, uint32_t begin, uint32_t end, Parameters parameters,
                      Finish finish) {
  const int32_t* in = static_cast<const int32_t*>(a.input);
  uint8_t* out = static_cast<uint8_t*>(a.output);
  const __m512i zero_point = _mm512_set1_epi32(a.input_zero_point);
  for_runs(a, begin, end, [&](uint64_t i, uint32_t c, uint64_t count) {
    for (uint64_t k = 0; k < count; k += 16) {
      const __mmask16 lanes = first_lanes(count - k);
      const __m512i x = _mm512_sub_epi32(load_lanes(in + i + k, lanes), zero_point);
      const __m128i bytes = finish(x, parameters(c + k, lanes));
      _mm_mask_storeu_epi8(out + i + k, lanes, bytes);
    }
  });
}

inline void run_tfl2(const RequantizeArgs& a, uint32_t begin, uint32_t end) {
  const Output512 output = output512(a.output_zero_point, a.clamp_min, a.clamp_max);
  const auto finish = [&](__m512i x, const Requant512& r) {
    return finish512(requantize_tfl2_512(x, r), output);
  };
  if (a.channels == 1) {
    const bool is_constant = a.multipliers != nullptr;
    const Requant512 one =
        set1_requant512(is_constant ? a.multipliers[0] : a.multiplier, is_constant ? a.shifts[0] : a.shift);
    run_lanes(
        a, begin, end, [&](uint64_t, __mmask16) { return one; }, finish);
  } else {
    const auto load = [&](uint64_t c, __mmask16 lanes) {
      return requant512(load_lanes(a.multipliers + c, lanes), load_lanes(a.shifts + c, lanes));
    };
    run_lanes(a, begin, end, load, finish);
  }
}

inline void run_f32e(const RequantizeArgs& a, uint32_t begin, uint32_t end) {
  const RealOutput512 output = real_output512(a.output_zero_point, a.clamp_min, a.clamp_max);
  const auto finish = [&](__m512i x, __m512 scale) {
    return finish_real512(_mm512_mul_ps(_mm512_cvtepi32_ps(x), scale), output);
  };
  if (a.channels == 1) {
    const __m512 one = _mm512_set1_ps(a.scales != nullptr ? a.scales[0] : a.scale);
    run_lanes(
        a, begin, end, [&](uint64_t, __mmask16) { return one; }, finish);
  } else {
    const auto load = [&](uint64_t c, __mmask16 lanes) { return _mm512_maskz_loadu_ps(lanes, a.scales + c); };
    run_lanes(a, begin, end, load, finish);
  }
}

}  // namespace

bool accepts(const RequantizeArgs& args) { return runs_accept(args); }

size_t scratch_bytes(const RequantizeArgs&) { return 0; }

uint32_t units(const RequantizeArgs& args) { return runs_units(args); }

void run(const RequantizeArgs& args, uint32_t begin, uint32_t end, void*) {
  if (args.contract == Contract::kF32e) {
    run_f32e(args, begin, end);
  } else {
    run_tfl2(args, begin, end);
  }
}

}  // namespace qplan::requantize_avx512vnni
