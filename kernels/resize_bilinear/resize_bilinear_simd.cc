// resize_bilinear between sixteenths, a vector of 16-bit elements at a time.
#include <stddef.h>
#include <stdint.h>

#include "kernels/resize_bilinear/resize_bilinear.h"
#include "kernels/resize_bilinear/resize_bilinear_sixteenths.h"
#include "kernels/simd/simd.h"

namespace qplan {
namespace {

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

uint32_t work_items(const ResizeBilinearArgs& args) { return args.batch * args.output_h; }
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
