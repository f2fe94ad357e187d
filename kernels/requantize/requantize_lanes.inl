// requantize of int32 by vectors. An ISA file includes its kernels/numeric/lanes_<isa>.inl before this one,
// which gives the names used here their meaning. Internal linkage only.
#ifndef QPLAN_KERNELS_REQUANTIZE_REQUANTIZE_LANES_INL_
#define QPLAN_KERNELS_REQUANTIZE_REQUANTIZE_LANES_INL_

#include "kernels/requantize/requantize.h"
#include "kernels/requantize/requantize_runs.inl"

namespace qplan {
namespace {

// parameters(c, count): those of the channels from c on; bytes_of(x, them): the output bytes.
template <typename Parameters, typename BytesOf>
inline void requantize_run(const RequantizeArgs& a, uint32_t begin, uint32_t end, Parameters parameters,
                           BytesOf bytes_of) {
  const int32_t* in = static_cast<const int32_t*>(a.input);
  uint8_t* out = static_cast<uint8_t*>(a.output);
  const Ints zero_point = set_ints(a.input_zero_point);
  for_runs(a, begin, end, [&](uint64_t i, uint32_t c, uint64_t count) {
    for (uint64_t k = 0; k < count; k += kLanes) {
      const uint32_t now = count - k < kLanes ? static_cast<uint32_t>(count - k) : kLanes;
      const Ints x = sub(load_ints(in + i + k, now), zero_point);
      store_bytes(out + i + k, bytes_of(x, parameters(c + k, now)), now);
    }
  });
}

inline void requantize_integer(const RequantizeArgs& a, uint32_t begin, uint32_t end) {
  const Output output = set_output(a.output_zero_point, a.clamp_min, a.clamp_max);
  const auto bytes_of = [&](Ints x, const Requant& r) { return finish(requantize(x, r), output); };
  if (a.channels == 1) {
    const bool is_constant = a.multipliers != nullptr;
    const Requant one =
        set_requant(is_constant ? a.multipliers[0] : a.multiplier, is_constant ? a.shifts[0] : a.shift);
    requantize_run(
        a, begin, end, [&](uint64_t, uint32_t) { return one; }, bytes_of);
  } else {
    const auto load = [&](uint64_t c, uint32_t count) {
      return load_requant(a.multipliers + c, a.shifts + c, count);
    };
    requantize_run(a, begin, end, load, bytes_of);
  }
}

inline void requantize_real(const RequantizeArgs& a, uint32_t begin, uint32_t end) {
  const RealOutput output = set_real_output(a.output_zero_point, a.clamp_min, a.clamp_max);
  const auto bytes_of = [&](Ints x, Reals scale) { return finish(mul(to_reals(x), scale), output); };
  if (a.channels == 1) {
    const Reals one = set_reals(a.scales != nullptr ? a.scales[0] : a.scale);
    requantize_run(
        a, begin, end, [&](uint64_t, uint32_t) { return one; }, bytes_of);
  } else {
    const auto load = [&](uint64_t c, uint32_t count) { return load_reals(a.scales + c, count); };
    requantize_run(a, begin, end, load, bytes_of);
  }
}

inline void requantize_lanes(const RequantizeArgs& args, uint32_t begin, uint32_t end) {
  if (args.contract == Contract::kF32e) {
    requantize_real(args, begin, end);
  } else {
    requantize_integer(args, begin, end);
  }
}

}  // namespace
}  // namespace qplan

#endif  // QPLAN_KERNELS_REQUANTIZE_REQUANTIZE_LANES_INL_
