// requantize of int32, 8 elements at a time.
#include "kernels/numeric/requantize_avx2.inl"

#include <immintrin.h>

#include "kernels/requantize/requantize.h"
#include "kernels/requantize/requantize_runs.inl"

namespace qplan::requantize_avx2 {
namespace {

// The lanes below count.
inline __m256i first_lanes(uint64_t count) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(count < 8 ? static_cast<int32_t>(count) : 8),
                            _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

inline __m256i load_lanes(const int32_t* from, __m256i lanes) { return _mm256_maskload_epi32(from, lanes); }

// parameters(c, lanes): those of the channels from c on; finish(x, them): bytes.
template <typename Parameters, typename Finish>
inline void run_lanes(const RequantizeArgs& a, uint32_t begin, uint32_t end, Parameters parameters,
                      Finish finish) {
  const int32_t* in = static_cast<const int32_t*>(a.input);
  uint8_t* out = static_cast<uint8_t*>(a.output);
  const __m256i zero_point = _mm256_set1_epi32(a.input_zero_point);
  for_runs(a, begin, end, [&](uint64_t i, uint32_t c, uint64_t count) {
    for (uint64_t k = 0; k < count; k += 8) {
      const __m256i lanes = first_lanes(count - k);
      const __m256i x = _mm256_sub_epi32(load_lanes(in + i + k, lanes), zero_point);
      const __m128i bytes = finish(x, parameters(c + k, lanes));
      store_low_bytes(out + i + k, bytes, count - k < 8 ? static_cast<uint32_t>(count - k) : 8);
    }
  });
}

inline void run_tfl2(const RequantizeArgs& a, uint32_t begin, uint32_t end) {
  const Output256 output = output256(a.output_zero_point, a.clamp_min, a.clamp_max);
  const auto finish = [&](__m256i x, const Requant256& r) {
    return finish256(requantize_tfl2_256(x, r), output);
  };
  if (a.channels == 1) {
    const bool is_constant = a.multipliers != nullptr;
    const Requant256 one =
        set1_requant256(is_constant ? a.multipliers[0] : a.multiplier, is_constant ? a.shifts[0] : a.shift);
    run_lanes(
        a, begin, end, [&](uint64_t, __m256i) { return one; }, finish);
  } else {
    const auto load = [&](uint64_t c, __m256i lanes) {
      return requant256(load_lanes(a.multipliers + c, lanes), load_lanes(a.shifts + c, lanes));
    };
    run_lanes(a, begin, end, load, finish);
  }
}

inline void run_f32e(const RequantizeArgs& a, uint32_t begin, uint32_t end) {
  const RealOutput256 output = real_output256(a.output_zero_point, a.clamp_min, a.clamp_max);
  const auto finish = [&](__m256i x, __m256 scale) {
    return finish_real256(_mm256_mul_ps(_mm256_cvtepi32_ps(x), scale), output);
  };
  if (a.channels == 1) {
    const __m256 one = _mm256_set1_ps(a.scales != nullptr ? a.scales[0] : a.scale);
    run_lanes(
        a, begin, end, [&](uint64_t, __m256i) { return one; }, finish);
  } else {
    const auto load = [&](uint64_t c, __m256i lanes) { return _mm256_maskload_ps(a.scales + c, lanes); };
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

}  // namespace qplan::requantize_avx2
