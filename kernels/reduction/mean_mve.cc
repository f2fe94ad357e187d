// mean with MVE over one axis (or several that are one in memory) of channels that are neighbours, four of
// them at a time.
#include <stddef.h>
#include <stdint.h>

#include "kernels/reduction/reduction.h"
#include "kernels/simd/bytes_mve.h"

namespace qplan::mean_mve {
namespace {

inline uint32_t num_blocks(const MeanArgs& args) {
  return static_cast<uint32_t>((args.kept_extents[args.kept_rank - 1] + 3) / 4);
}

#if !defined(QPLAN_ONLY_QUERIES)
// A work item is a block of four channels.
template <bool kSigned>
void run_blocks(const MeanArgs& args, uint32_t begin, uint32_t end) {
  const uint32_t blocks = num_blocks(args);
  const uint64_t channels = args.kept_extents[args.kept_rank - 1];
  const uint64_t image_stride = args.kept_rank == 2 ? args.kept_strides[0] : 0;
  const auto stride = static_cast<size_t>(args.reduced_strides[0]);
  const int32_t low = dtype_min(args.dtype), high = dtype_max(args.dtype);
  const Requant requant(args.output_multiplier, args.output_shift);
  const Output output(args.output_zero_point, low, high);
  const RealOutput real_output(args.output_zero_point, low, high);
  // |zero| <= 255 * 2^23.
  const int32_t zero = static_cast<int32_t>(args.num_reduced) * args.input_zero_point;
  for (uint32_t item = begin; item < end; ++item) {
    const uint64_t image = item / blocks, first = uint64_t{item % blocks} * kLanes;
    const mve_pred16_t lanes = vctp32q(static_cast<uint32_t>(channels - first));
    const uint8_t* from = static_cast<const uint8_t*>(args.input) + image * image_stride + first;
    int32x4_t sum = vdupq_n_s32(0);
    for (uint32_t i = args.num_reduced; i > 0; --i, from += stride) {
      sum = vaddq_s32(sum, load_bytes<kSigned>(from, lanes));
    }
    sum = vsubq_n_s32(sum, zero);
    const bool is_real = args.contract == Contract::kF32e;
    store_bytes(static_cast<uint8_t*>(args.output) + image * channels + first,
                is_real ? real_output(vmulq_n_f32(vcvtq_f32_s32(sum), args.scale)) : output(requant(sum)),
                lanes);
  }
}
#endif

}  // namespace

#if !defined(QPLAN_ONLY_RUN)
Refusal accepts(const MeanArgs& args) {
  if (args.dtype == Dtype::kS16) return Refusal::kDtype;
  const bool along_channels = args.reduced_rank == 1 && (args.kept_rank == 1 || args.kept_rank == 2) &&
                              args.kept_strides[args.kept_rank - 1] == 1;
  if (!along_channels) return Refusal::kAxes;
  return args.num_outputs < uint64_t{1} << 31 ? Refusal::kNone : Refusal::kTooLarge;
}

size_t scratch_bytes(const MeanArgs&) { return 0; }

uint32_t work_items(const MeanArgs& args) {
  const uint32_t images = args.kept_rank == 2 ? static_cast<uint32_t>(args.kept_extents[0]) : 1;
  return images * num_blocks(args);
}
#endif

#if !defined(QPLAN_ONLY_QUERIES)
void run(const MeanArgs& args, uint32_t begin, uint32_t end, void*) {
  args.dtype == Dtype::kS8 ? run_blocks<true>(args, begin, end) : run_blocks<false>(args, begin, end);
}
#endif

}  // namespace qplan::mean_mve
