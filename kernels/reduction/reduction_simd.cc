// mean and arg_max by vectors.
#include <stddef.h>
#include <stdint.h>

#include "kernels/elementwise/broadcast.h"
#include "kernels/reduction/reduction.h"
#include "kernels/simd/channel_sums.h"
#include "kernels/simd/simd.h"

namespace qplan {

// mean over one axis (or several that are one in memory) of channels that are neighbours.
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

// arg_max of bytes along the last axis, a vector at a time: the largest byte of a row first, then where it
// stands first.
namespace {

// Bytes are seen as uint8: `sign_bias` is 0x80 for int8.

// kIsWhole: a whole vector may be read, otherwise no more than the row.
template <bool kIsWhole>
inline uint32_t arg_max_of_vector(const uint8_t* row, uint32_t extent, VecI32 sign_biases) {
  const VecI32 bytes = kIsWhole ? load_ints(row) : load_vector(row, extent);
  const VecI32 all = first_bytes(bit_xor(bytes, sign_biases), extent);
  return first_equal(all, largest_in_all(all));
}

inline uint32_t arg_max_of_row(const uint8_t* row, uint32_t extent, VecI32 sign_biases) {
  const auto load = [&](uint32_t at) { return bit_xor(load_ints(row + at), sign_biases); };
  VecI32 most = load(0);
  uint32_t k = kBytes;
  for (; k + kBytes <= extent; k += kBytes) most = max_bytes(most, load(k));
  const VecI32 largest = largest_in_all(max_bytes(most, load(extent - kBytes)));
  for (k = 0; k + kBytes <= extent; k += kBytes) {
    const uint32_t at = first_equal(load(k), largest);
    if (at < kBytes) return k + at;
  }
  return extent - kBytes + first_equal(load(extent - kBytes), largest);
}

template <typename Index>
inline void arg_max_rows(const ArgMaxArgs& args, ElementRange range) {
  const uint32_t extent = args.extent;
  const uint8_t* row = static_cast<const uint8_t*>(args.input) + range.begin * extent;
  Index* output = static_cast<Index*>(args.output);
  const VecI32 sign_biases = set_bytes(args.input_dtype == Dtype::kS8 ? 128 : 0);
  uint64_t at = range.begin;
  if (extent > kBytes) {
    for (; at < range.end; ++at, row += extent) {
      output[at] = static_cast<Index>(arg_max_of_row(row, extent, sign_biases));
    }
    return;
  }
  // The last rows of the input have no vector after their beginning.
  const uint64_t last = kBytes / extent + 1;
  const uint64_t whole = args.outer > last ? args.outer - last : 0;
  for (; at < range.end && at < whole; ++at, row += extent) {
    output[at] = static_cast<Index>(arg_max_of_vector<true>(row, extent, sign_biases));
  }
  for (; at < range.end; ++at, row += extent) {
    output[at] = static_cast<Index>(arg_max_of_vector<false>(row, extent, sign_biases));
  }
}

}  // namespace

QPLAN_SIMD_NAMESPACE(arg_max) {

#if !defined(QPLAN_ONLY_RUN)
Refusal accepts(const ArgMaxArgs& args) {
  if (args.inner != 1) return Refusal::kAxes;
  // Short rows take half as long with vectors of 32 bytes: half the work of a longer vector would be for
  // nothing. Many of them are for arg_max_short.
  if (kBytes > 32 && args.extent <= 32) return Refusal::kTooSmall;
  return args.input_dtype == Dtype::kU8 || args.input_dtype == Dtype::kS8 ? Refusal::kNone : Refusal::kDtype;
}

size_t scratch_bytes(const ArgMaxArgs&) { return 0; }

uint32_t work_items(const ArgMaxArgs& args) { return num_chunks(args.outer); }
#endif

#if !defined(QPLAN_ONLY_QUERIES)
void run(const ArgMaxArgs& args, uint32_t begin, uint32_t end, void*) {
  const ElementRange range = chunk_range(args.outer, begin, end);
  if (args.output_dtype == Dtype::kS32) {
    arg_max_rows<int32_t>(args, range);
  } else {
    arg_max_rows<int64_t>(args, range);
  }
}
#endif

}  // QPLAN_SIMD_NAMESPACE(arg_max)

}  // namespace qplan
