// resize_bilinear between sixteenths, a vector of 16-bit elements at a time.
#include <stddef.h>
#include <stdint.h>

#include "kernels/simd/simd.h"
#include "kernels/spatial/sixteenths.h"
#include "kernels/spatial/spatial.h"

namespace qplan {
namespace {

// A row of the input between two rows, in sixteenths, and the bytes that a vector may read after it.
template <typename Words>
inline size_t sixteenths_scratch_bytes(const ResizeBilinearArgs& args) {
  const uint64_t elements = uint64_t{args.input_w} * args.channels + Words::kCount;
  return static_cast<size_t>((elements * sizeof(int16_t) + 63) / 64 * 64);
}

// Outputs side by side, of which some channels are computed at a time. What is stored beyond one of them is
// stored again later.
struct SixteenthsOutputs {
  uint8_t* to;         // the channels of the first output
  const uint8_t* end;  // of the row; nothing is stored from here on
  uint64_t stride;     // from each output to the next
  uint32_t count;
};

// Words: kCount elements of 16 bits at a time, either read as int8 or as uint8.
//   blend_rows(top, bottom, d, to)                  to[i] = top[i] * (16 - d) + bottom[i] * d
//   blend_columns(left, right, d, growth, outputs)  kCount channels of outputs between left and right, the
//   first
//                                                   at d, each at `growth` more than the one before it
template <typename Words>
inline void blend_row(const uint8_t* top, const uint8_t* bottom, int32_t distance, uint64_t count,
                      int16_t* row) {
  uint64_t i = 0;
  for (; i + Words::kCount <= count; i += Words::kCount) {
    Words::blend_rows(top + i, bottom + i, distance, row + i);
  }
  if (i == count) return;
  if (count >= Words::kCount) {
    const uint64_t last = count - Words::kCount;
    return Words::blend_rows(top + last, bottom + last, distance, row + last);
  }
  for (; i < count; ++i) {
    const int32_t sum = Words::value(top[i]) * (16 - distance) + Words::value(bottom[i]) * distance;
    row[i] = static_cast<int16_t>(sum);
  }
}

// A row of outputs. The last channels come first: what is stored beyond them belongs to the next output,
// whose first channels are stored after that.
template <typename Words>
inline void blend_pixels(const int16_t* row, const SixteenthsAxis& width, uint32_t pixels, uint64_t channels,
                         uint8_t* output) {
  const uint8_t* const end = output + pixels * channels;
  for (uint32_t x = 0; x < pixels;) {
    const SixteenthsRun run = sixteenths_run(width, x, pixels);
    const int16_t* left = row + run.lower * channels;
    const int16_t* right = row + run.upper * channels;
    for (uint64_t c = (channels + Words::kCount - 1) / Words::kCount * Words::kCount; c != 0;) {
      c -= Words::kCount;
      Words::blend_columns(left + c, right + c, run.distance, width.scale,
                           {output + c, end, channels, run.count});
    }
    output += run.count * channels;
    x += run.count;
  }
}

inline void copy_output_row(const uint8_t* from, uint64_t count, uint8_t* to) {
  uint64_t i = 0;
  for (; i + kBytes <= count; i += kBytes) store_ints(to + i, load_ints(from + i));
  const uint32_t left = static_cast<uint32_t>(count - i);
  if (left != 0) store_vector(to + i, load_vector(from + i, left), left);
}

// Whether outputs at both positions are the same.
inline bool is_same_position(const SixteenthsPosition& a, const SixteenthsPosition& b) {
  return a.lower == b.lower && a.upper == b.upper && (a.distance == b.distance || a.lower == a.upper);
}

template <typename Words>
inline void run_sixteenths(const ResizeBilinearArgs& args, uint32_t begin, uint32_t end, void* scratch) {
  SixteenthsAxis height, width;
  if (!sixteenths_axis(args, args.input_h, args.output_h, &height)) return;
  if (!sixteenths_axis(args, args.input_w, args.output_w, &width)) return;
  const uint64_t channels = args.channels;
  const uint64_t input_row = args.input_w * channels, output_row = args.output_w * channels;
  int16_t* row = static_cast<int16_t*>(scratch);
  SixteenthsPosition before = {};
  for (uint32_t y = begin; y < end; ++y) {
    const uint8_t* image = static_cast<const uint8_t*>(args.input) + y / args.rows * args.input_h * input_row;
    const uint32_t image_y = y % args.rows;
    const SixteenthsPosition rows = sixteenths_position(height, args.first_row + image_y);
    uint8_t* const output = static_cast<uint8_t*>(args.output) + y * output_row;
    if (y != begin && image_y != 0 && is_same_position(rows, before)) {
      copy_output_row(output - output_row, output_row, output);
      continue;
    }
    before = rows;
    blend_row<Words>(image + rows.lower * input_row, image + rows.upper * input_row, rows.distance, input_row,
                     row);
    blend_pixels<Words>(row, width, args.output_w, channels, output);
  }
}

template <bool kSigned>
struct Words {
  static constexpr uint32_t kCount = kBytes / 2;

  static int32_t value(uint8_t byte) { return kSigned ? static_cast<int8_t>(byte) : byte; }

  static VecI32 times(VecI32 words, int32_t factor) {
    return mul_words(words, set_words(static_cast<int16_t>(factor)));
  }

  static void blend_rows(const uint8_t* top, const uint8_t* bottom, int32_t distance, int16_t* to) {
    const VecI32 upper = times(load_words<kSigned>(top), 16 - distance);
    store_ints(to, add_words(upper, times(load_words<kSigned>(bottom), distance)));
  }

  // The sum that follows the last output may be beyond 16 bits; nobody reads it.
  static void blend_columns(const int16_t* left, const int16_t* right, int32_t distance, int32_t growth,
                            SixteenthsOutputs outputs) {
    const VecI32 from = load_ints(static_cast<const void*>(left));
    const VecI32 slope = sub_words(load_ints(static_cast<const void*>(right)), from);
    const VecI32 step = times(slope, growth);
    const VecI32 half = set_words(128);
    VecI32 sum = add_words(shift_left_words<4>(from), times(slope, distance));
    if constexpr (!kSigned) sum = add_words(sum, half);
    for (uint32_t i = 0; i < outputs.count; ++i) {
      uint8_t* const to = outputs.to + i * outputs.stride;
      const uint64_t room = static_cast<uint64_t>(outputs.end - to);
      const uint32_t count = room < kCount ? static_cast<uint32_t>(room) : kCount;
      if constexpr (kSigned) {
        // Half away from zero: a negative sum is rounded half down.
        const VecI32 raised = add_words(add_words(sum, half), shift_right_words<15>(sum));
        store_words_as_bytes<true>(to, shift_right_words<8>(raised), count);
      } else {
        store_words_as_bytes<false>(to, shift_right_zeros_words<8>(sum), count);
      }
      sum = add_words(sum, step);
    }
  }
};

}  // namespace

QPLAN_SIMD_NAMESPACE(resize_bilinear) {

#if !defined(QPLAN_ONLY_RUN)
Refusal accepts(const ResizeBilinearArgs& args) { return sixteenths_accept(args); }

size_t scratch_bytes(const ResizeBilinearArgs& args) { return sixteenths_scratch_bytes<Words<true>>(args); }

uint32_t work_items(const ResizeBilinearArgs& args) { return args.batch * args.rows; }
#endif

#if !defined(QPLAN_ONLY_QUERIES)
void run(const ResizeBilinearArgs& args, uint32_t begin, uint32_t end, void* scratch) {
  if (args.dtype == Dtype::kS8) {
    run_sixteenths<Words<true>>(args, begin, end, scratch);
  } else {
    run_sixteenths<Words<false>>(args, begin, end, scratch);
  }
}
#endif

}  // QPLAN_SIMD_NAMESPACE(resize_bilinear)

}  // namespace qplan
