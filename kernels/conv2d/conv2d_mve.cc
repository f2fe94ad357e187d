// conv2d with MVE: the windows of two pixels times four channels at a time (kernels/simd/dots_mve.h). A
// window is copied side by side into scratch memory, filled up with zeros to whole vectors, which takes a
// hundredth of its products where channels are many; pixels of whole vectors are read where they are.
#include <stddef.h>
#include <stdint.h>

#include "kernels/conv2d/conv2d.h"
#include "kernels/elementwise/add.h"
#include "kernels/simd/dots_mve.h"

namespace qplan::conv2d_mve {
namespace {

constexpr uint64_t kMaxWindowBytes = 1 << 20;
constexpr uint64_t kMaxPixels = 1 << 28;

inline size_t window_bytes(const Conv2dArgs& a) { return size_t{a.kernel_h} * a.kernel_w * a.input_c; }

// Scratch: two windows, and a copy of the residual of two pixels, which the output may take the place of.
inline size_t windows_bytes(const Conv2dArgs& a) { return kTileRows * chunk_bytes(window_bytes(a)); }
inline size_t residual_copy_bytes(const Conv2dArgs& a) {
  return a.has_residual ? size_t{kTileRows} * a.output_c : 0;
}

#if !defined(QPLAN_ONLY_QUERIES)

// Residuals: sums of bytes (kernels/elementwise/add.h), four at a time where the packer has proved a float
// form.
template <typename T>
inline void add_each(const AddFormula& f, const uint8_t* a, const uint8_t* b, size_t bytes, uint8_t* out) {
  for (size_t i = 0; i < bytes; ++i) {
    out[i] = static_cast<uint8_t>(sum_of(f, static_cast<T>(a[i]), static_cast<T>(b[i]), false));
  }
}

#if defined(QPLAN_MVE)
// VFMA and VCVTN round half to even, whatever the mode of the processor is.
#define QPLAN_MVE_FLOAT_ADD(load)                                                             \
  __asm__ volatile(                                                                           \
      "vdup.32 q4, %[offset]\n\t"                                                             \
      "vdup.32 q5, %[scale1]\n\t"                                                             \
      "vdup.32 q6, %[low]\n\t"                                                                \
      "vdup.32 q7, %[high]\n\t"                                                               \
      "wlstp.32 lr, %[bytes], 2f\n"                                                           \
      "1:\n\t" load " q0, [%[a]], #4\n\t" load                                                \
      " q1, [%[b]], #4\n\t"                                                                   \
      "vcvt.f32.s32 q0, q0\n\t"                                                               \
      "vcvt.f32.s32 q1, q1\n\t"                                                               \
      "vmov q2, q4\n\t"                                                                       \
      "vfma.f32 q2, q1, %[scale2]\n\t"                                                        \
      "vfma.f32 q2, q0, q5\n\t"                                                               \
      "vcvtn.s32.f32 q2, q2\n\t"                                                              \
      "vmax.s32 q2, q2, q6\n\t"                                                               \
      "vmin.s32 q2, q2, q7\n\t"                                                               \
      "vstrb.32 q2, [%[out]], #4\n\t"                                                         \
      "letp lr, 1b\n"                                                                         \
      "2:\n\t"                                                                                \
      : [a] "+l"(a), [b] "+l"(b), [out] "+l"(out)                                             \
      : [bytes] "r"(bytes), [scale1] "r"(scale1), [scale2] "r"(scale2), [offset] "r"(offset), \
        [low] "r"(low), [high] "r"(high)                                                      \
      : "lr", "cc", "memory", QPLAN_MVE_VECTORS)
#endif

// out may be a or b.
inline void add_residual(const AddFormula& f, Dtype dtype, const uint8_t* a, const uint8_t* b, size_t bytes,
                         uint8_t* out) {
#if defined(QPLAN_MVE)
  if (f.contract == Contract::kTfl2 && f.float_scale1 > 0.0f) {
    const auto scale1 = __builtin_bit_cast(uint32_t, f.float_scale1);
    const auto scale2 = __builtin_bit_cast(uint32_t, f.float_scale2);
    const auto offset = __builtin_bit_cast(uint32_t, f.float_offset);
    const int32_t low = f.clamp_min, high = f.clamp_max;
    if (dtype == Dtype::kS8) {
      QPLAN_MVE_FLOAT_ADD("vldrb.s32");
    } else {
      QPLAN_MVE_FLOAT_ADD("vldrb.u32");
    }
    return;
  }
#endif
  dtype == Dtype::kS8 ? add_each<int8_t>(f, a, b, bytes, out) : add_each<uint8_t>(f, a, b, bytes, out);
}
#undef QPLAN_MVE_FLOAT_ADD

class Convolution {
 public:
  Convolution(const Conv2dArgs& args, void* scratch)
      : a_(args),
        row_bytes_(size_t{args.input_w} * args.input_c),
        tap_bytes_(size_t{args.kernel_w} * args.input_c),
        window_bytes_(window_bytes(args)),
        chunks_(static_cast<uint32_t>(chunk_bytes(window_bytes_) / kChunk)),
        copies_(static_cast<uint8_t*>(scratch)),
        residual_copy_(copies_ + windows_bytes(args)),
        is_signed_(args.input_dtype == Dtype::kS8),
        fast_channels_(is_signed_ && args.contract == Contract::kTfl2 && args.weights_zero_point == 0 &&
                               !shifts_left(args.shift, args.output_c)
                           ? args.output_c / kTileChannels * kTileChannels
                           : 0),
        reads_in_place_(is_dense(args) && args.input_c % kChunk == 0 && !overlaps(args)) {
    const size_t tail = chunks_ * kChunk - window_bytes_;
    for (uint32_t p = 0; p < kTileRows && tail != 0; ++p) fill_bytes(copy_of(p) + window_bytes_, 0, tail);
    pair_.weights = a_.weights;
    pair_.bias = a_.bias;
    pair_.chunks = chunks_;
    pair_.zero_point = a_.output_zero_point;
    pair_.clamp_min = a_.clamp_min;
    pair_.clamp_max = a_.clamp_max;
  }

  // Output rows [begin, end) of all images. A pair of pixels is written when its windows have been copied.
  void run(uint32_t begin, uint32_t end) {
    row_ = begin;
    auto* out = static_cast<uint8_t*>(a_.output) + size_t{begin} * a_.output_w * a_.output_c;
    const uint8_t* pixel = static_cast<const uint8_t*>(a_.input) + size_t{begin} * a_.output_w * a_.input_c;
    for (uint32_t left = (end - begin) * a_.output_w; left != 0;) {
      const uint32_t count = left < kTileRows ? left : kTileRows;
      if (reads_in_place_) {
        pair_.rows[0] = pixel;
        pair_.rows[1] = pixel + (count - 1) * a_.input_c;
        pixel += size_t{count} * a_.input_c;
      } else {
        for (uint32_t p = 0; p < count; ++p) copy_window(copy_of(p));
        pair_.rows[0] = copy_of(0);
        pair_.rows[1] = copy_of(count - 1);
      }
      const size_t bytes = size_t{count} * a_.output_c;
      const uint8_t* residual = a_.has_residual ? residual_of(out, bytes) : nullptr;
      multiply(out, count);
      if (residual != nullptr) {
        const bool is_a = a_.residual_is_a;
        add_residual(a_.residual_sum, a_.output_dtype, is_a ? residual : out, is_a ? out : residual, bytes,
                     out);
      }
      out += bytes;
      left -= count;
    }
  }

 private:
  // Whether windows are the pixels of the input, in order.
  static bool is_dense(const Conv2dArgs& a) {
    return a.kernel_h == 1 && a.kernel_w == 1 && a.stride_h == 1 && a.stride_w == 1 && a.pad_top == 0 &&
           a.pad_left == 0 && a.output_h == a.input_h && a.output_w == a.input_w;
  }
  // Whether outputs are written over inputs: then each is copied before.
  static bool overlaps(const Conv2dArgs& a) {
    const auto input = reinterpret_cast<uintptr_t>(a.input), output = reinterpret_cast<uintptr_t>(a.output);
    const size_t pixels = size_t{a.batch} * a.output_h * a.output_w;
    return input < output + pixels * a.output_c && output < input + pixels * a.input_c;
  }
  uint8_t* copy_of(uint32_t p) const { return copies_ + p * (chunks_ * kChunk); }

  // Copies the window of the next pixel.
  __attribute__((noinline)) void copy_window(uint8_t* to) {
    if (x_ == 0) begin_row();
    const auto first = static_cast<int32_t>(x_ * a_.stride_w) - static_cast<int32_t>(a_.pad_left);
    if (++x_ == a_.output_w) {
      x_ = 0;
      ++row_;
    }
    const bool is_inside_across = first >= 0 && static_cast<uint64_t>(first) + a_.kernel_w <= a_.input_w;
    const size_t row_step = a_.dilation_h * row_bytes_;
    if (is_inside_down_ && is_inside_across) {
      const uint8_t* from = image_ + static_cast<size_t>(y_) * row_bytes_;
      from += static_cast<size_t>(first) * a_.input_c;
      copy_rows(to, tap_bytes_, from, row_step, tap_bytes_, a_.kernel_h);
      return;
    }
    fill_bytes(to, static_cast<uint8_t>(a_.pad_value), window_bytes_);
    const int64_t window = a_.kernel_w, room = int64_t{a_.input_w} - first;
    const int64_t begin = first < 0 ? (-int64_t{first} < window ? -int64_t{first} : window) : 0;
    const int64_t end = room < window ? (room > begin ? room : begin) : window;
    if (begin == end || inside_rows_ == 0) return;
    const uint8_t* from = image_ + static_cast<size_t>(inside_y_) * row_bytes_;
    from += static_cast<size_t>(first + begin) * a_.input_c;
    to += inside_row_ * tap_bytes_ + static_cast<size_t>(begin) * a_.input_c;
    copy_rows(to, tap_bytes_, from, row_step, static_cast<size_t>(end - begin) * a_.input_c, inside_rows_);
  }

  void begin_row() {
    uint32_t n = 0, y = row_;
    if (a_.batch != 1) {
      n = row_ / a_.output_h;
      y = row_ % a_.output_h;
    }
    image_ = static_cast<const uint8_t*>(a_.input) + n * a_.input_h * row_bytes_;
    y_ = static_cast<int32_t>(y * a_.stride_h) - static_cast<int32_t>(a_.pad_top);
    const int64_t last = int64_t{y_} + int64_t{a_.kernel_h - 1} * a_.dilation_h;
    is_inside_down_ = y_ >= 0 && last < int64_t{a_.input_h};
    inside_row_ = 0;
    inside_rows_ = a_.kernel_h;
    inside_y_ = y_;
    if (is_inside_down_) return;
    // The rows of the window that are inside the image are neighbours.
    inside_rows_ = 0;
    for (uint32_t ky = 0; ky < a_.kernel_h; ++ky) {
      const int32_t row = y_ + static_cast<int32_t>(ky * a_.dilation_h);
      if (row < 0 || static_cast<uint32_t>(row) >= a_.input_h) continue;
      if (inside_rows_++ != 0) continue;
      inside_row_ = ky;
      inside_y_ = row;
    }
  }

  // All channels of the pixels of a pair, of which `count` are different.
  void multiply(uint8_t* out, uint32_t count) {
    if (fast_channels_ != 0) {
      pair_.multiplier = a_.multiplier;
      pair_.shift = a_.shift;
      pair_.out[0] = out;
      pair_.out[1] = out + (count - 1) * a_.output_c;
      pair_.out_end = out + fast_channels_;
      multiply_pair(&pair_);
    }
    if (fast_channels_ == a_.output_c) return;
    for (uint32_t p = 0; p < count; ++p, out += a_.output_c) {
      multiply_any(pair_.rows[p], fast_channels_, out);
    }
  }

  // Channels from `begin` on of a pixel, by any contract.
  __attribute__((noinline)) void multiply_any(const uint8_t* row, uint32_t begin, uint8_t* out) const {
    // sum u * (w - z) = sum u * w - z * sum u
    int32_t term = 0;
    if (a_.weights_zero_point != 0) {
      const int32_t sum = is_signed_ ? sum_row<true>(row, chunks_) : sum_row<false>(row, chunks_);
      term = wrap_mul(-a_.weights_zero_point, sum);
    }
    for (uint32_t o = begin; o < a_.output_c; o += kTileChannels) {
      int32_t sums[kTileChannels];
      for (uint32_t i = 0; i < kTileChannels; ++i) sums[i] = wrap_add(a_.bias[o + i], term);
      const int8_t* weights = a_.weights + size_t{o} * chunks_ * kChunk;
      (is_signed_ ? sum_block<true> : sum_block<false>)(sums, row, weights, chunks_);
      for (uint32_t i = 0; i < kTileChannels && o + i < a_.output_c; ++i) {
        out[o + i] = static_cast<uint8_t>(requantize_channel(a_, sums[i], o + i));
      }
    }
  }

  // The residual of outputs that are about to be written, a copy of it where they overwrite it.
  const uint8_t* residual_of(const uint8_t* out, size_t bytes) const {
    const uint8_t* residual =
        static_cast<const uint8_t*>(a_.residual) + (out - static_cast<const uint8_t*>(a_.output));
    if (residual != out) return residual;
    copy_bytes(residual_copy_, residual, bytes);
    return residual_copy_;
  }

  const Conv2dArgs& a_;
  const size_t row_bytes_, tap_bytes_, window_bytes_;
  const uint32_t chunks_;  // of a window
  uint8_t* const copies_;
  uint8_t* const residual_copy_;
  const bool is_signed_;
  const uint32_t fast_channels_;  // which tiles compute
  const bool reads_in_place_;
  RowPair pair_;
  // The window that is next.
  uint32_t row_ = 0, x_ = 0;
  const uint8_t* image_ = nullptr;
  int32_t y_ = 0, inside_y_ = 0;
  uint32_t inside_row_ = 0, inside_rows_ = 0;  // of the window, in the image
  bool is_inside_down_ = false;
};

#endif

}  // namespace

#if !defined(QPLAN_ONLY_RUN)
Refusal accepts(const Conv2dArgs& a) {
  if (a.contract == Contract::kAcc32) return Refusal::kContract;
  if (a.groups != 1) return Refusal::kGroups;
  if (a.weights_layout != kLayout_o4k16) return Refusal::kLayout;
  if (a.input_zero_point != 0) return Refusal::kInputZeroPoint;
  if (a.dilation_w != 1 && a.kernel_w != 1) return Refusal::kWindow;
  const bool fits = uint64_t{a.kernel_h} * a.kernel_w <= kMaxWindowBytes &&
                    uint64_t{a.kernel_h} * a.kernel_w * a.input_c <= kMaxWindowBytes &&
                    uint64_t{a.batch} * a.output_h * a.output_w <= kMaxPixels;
  return fits ? Refusal::kNone : Refusal::kTooLarge;
}

size_t scratch_bytes(const Conv2dArgs& args) {
  return (windows_bytes(args) + residual_copy_bytes(args) + 63) / 64 * 64;
}

uint32_t work_items(const Conv2dArgs& args) { return args.batch * args.output_h; }
#endif

#if !defined(QPLAN_ONLY_QUERIES)
void run(const Conv2dArgs& args, uint32_t begin, uint32_t end, void* scratch) {
  Convolution(args, scratch).run(begin, end);
}
#endif

}  // namespace qplan::conv2d_mve
