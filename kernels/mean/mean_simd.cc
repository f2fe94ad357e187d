// mean over one axis (or several that are one in memory) of channels that are neighbours.
#include "kernels/mean/mean.h"
#include "kernels/simd/channel_sums.h"
#include "kernels/simd/simd.h"

namespace qplan {
namespace {

inline Refusal mean_channels_accept(const MeanArgs& args) {
  if (args.dtype == Dtype::kS16) return Refusal::kDtype;
  const bool along_channels = args.reduced_rank == 1 && (args.kept_rank == 1 || args.kept_rank == 2) &&
                              args.kept_strides[args.kept_rank - 1] == 1;
  if (!along_channels) return Refusal::kAxes;
  return args.num_outputs < uint64_t{1} << 31 ? Refusal::kNone : Refusal::kTooLarge;
}

inline uint32_t mean_blocks(const MeanArgs& args) {
  return static_cast<uint32_t>((args.kept_extents[args.kept_rank - 1] + kBytes - 1) / kBytes);
}

// A work item is a vector of channels.
inline uint32_t mean_channels_work_items(const MeanArgs& args) {
  const uint32_t images = args.kept_rank == 2 ? static_cast<uint32_t>(args.kept_extents[0]) : 1;
  return images * mean_blocks(args);
}

// finish: sums of centred elements to outputs without zero point.
template <typename Finish>
inline void mean_of_work_items(const MeanArgs& args, uint32_t begin, uint32_t end, const Finish& finish) {
  const uint32_t blocks = mean_blocks(args);
  const uint64_t channels = args.kept_extents[args.kept_rank - 1];
  const uint64_t image_stride = args.kept_rank == 2 ? args.kept_strides[0] : 0;
  const uint8_t sign_bias = byte_sign_bias(args.dtype);
  // |zero| <= 255 * 2^23.
  const VecI32 zero = set_ints(static_cast<int32_t>(args.num_reduced) * (args.input_zero_point + sign_bias));
  const ChannelBytes bytes(args.dtype, args.output_zero_point, dtype_min(args.dtype), dtype_max(args.dtype));
  for (uint32_t work_item = begin; work_item < end; ++work_item) {
    const uint64_t image = work_item / blocks, first = uint64_t{work_item % blocks} * kBytes;
    const uint32_t now = channels - first < kBytes ? static_cast<uint32_t>(channels - first) : kBytes;
    const uint64_t at = image * image_stride + first;
    const uint32_t width = positions_width(args.reduced_strides[0], args.num_reduced, now,
                                           args.num_outputs * args.num_reduced - at);
    ChannelSums sums;
    sums.add_positions(static_cast<const uint8_t*>(args.input) + at, args.reduced_strides[0],
                       args.num_reduced, width, sign_bias);
    const VecI32 outputs = bytes.pack(finish(sub(sums.of[0], zero)), finish(sub(sums.of[1], zero)),
                                      finish(sub(sums.of[2], zero)), finish(sub(sums.of[3], zero)));
    store_vector(static_cast<uint8_t*>(args.output) + image * channels + first, outputs, now);
  }
}

inline void mean_channels(const MeanArgs& args, uint32_t begin, uint32_t end) {
  if (args.contract == Contract::kF32e) {
    const VecF32 scale = set_reals(args.scale);
    // What is below int32 becomes its minimum; what is above would, too, and is held back.
    const VecF32 high = set_reals(65536.0f);
    mean_of_work_items(args, begin, end,
                       [&](VecI32 sum) { return round(min(mul(to_reals(sum), scale), high)); });
  } else {
    const Requant requant = set_requant(args.output_multiplier, args.output_shift);
    mean_of_work_items(args, begin, end, [&](VecI32 sum) { return requantize(sum, requant); });
  }
}

}  // namespace

QPLAN_SIMD_NAMESPACE(mean) {

#if !defined(QPLAN_ONLY_RUN)
Refusal accepts(const MeanArgs& args) { return mean_channels_accept(args); }

size_t scratch_bytes(const MeanArgs&) { return 0; }

uint32_t work_items(const MeanArgs& args) { return mean_channels_work_items(args); }
#endif

#if !defined(QPLAN_ONLY_QUERIES)
void run(const MeanArgs& args, uint32_t begin, uint32_t end, void*) { mean_channels(args, begin, end); }
#endif

}  // QPLAN_SIMD_NAMESPACE(mean)

}  // namespace qplan
