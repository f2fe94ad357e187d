// Where the windows of a convolution lie: the kernel_h * kernel_w * input_c bytes under one output pixel, as
// rows of a Gemm. A window inside the input is read where it is, one that reaches over its border is copied
// to a slot with the same distances between its taps; where taps are not whole groups of four bytes, every
// window is copied, its taps packed. Shared by the ISA files, which pass their ways to copy and fill;
// internal linkage only.
#ifndef QPLAN_KERNELS_CONV2D_CONV2D_WINDOWS_INL_
#define QPLAN_KERNELS_CONV2D_CONV2D_WINDOWS_INL_

#include <stddef.h>
#include <stdint.h>

#include "kernels/conv2d/conv2d.h"
#include "kernels/layout.h"

namespace qplan {
namespace {

// Output pixels of a strip, whose rows lie in scratch.
constexpr uint32_t kStripRows = 48;
// Strips are divided among groups of blocks of 16 channels where they are few.
constexpr uint32_t kFewStrips = 8;
constexpr uint32_t kGroupBlocks = 4;
constexpr uint32_t kMaxTaps = 1024;
// copy_run and the last group of four bytes reach over the end of a slot.
constexpr size_t kSlotSlack = 64;

inline uint64_t window_bytes(const Conv2dArgs& a) { return uint64_t{a.kernel_h} * a.kernel_w * a.input_c; }

// The taps of a window: runs of bytes, row_pitch and column_pitch apart.
struct WindowShape {
  bool packed;             // every window is copied, its bytes without gaps: one tap
  uint32_t rows, columns;  // of taps
  uint32_t tap_k4;
  size_t row_pitch, column_pitch;  // of the taps' bytes: in the input, or in a slot if packed
  // Slots stand beside each other, slots_abreast of them in the room of group_bytes.
  size_t slot_bytes, group_bytes;
  uint32_t slots_abreast;
};

inline size_t slot_offset(const WindowShape& shape, uint32_t slot) {
  return slot / shape.slots_abreast * shape.group_bytes + slot % shape.slots_abreast * shape.slot_bytes;
}

inline WindowShape window_shape(const Conv2dArgs& a) {
  const size_t c = a.input_c, run = size_t{a.kernel_w} * c;
  const size_t pitch = size_t{a.dilation_h} * a.input_w * c;
  const auto k4 = [](size_t bytes) { return static_cast<uint32_t>((bytes + 3) / 4); };
  const size_t width = (size_t{a.kernel_w - 1} * a.dilation_w + 1) * c;
  const bool in_runs = (a.dilation_w == 1 || a.kernel_w == 1) && run % 4 == 0;
  if ((in_runs || c % 4 == 0) && (a.kernel_h == 1 || width + kSlotSlack <= pitch)) {
    const size_t room = a.kernel_h == 1 ? width : pitch - kSlotSlack;
    const size_t abreast = room / width < kStripRows ? room / width : kStripRows;
    const size_t group = a.kernel_h == 1 ? width : a.kernel_h * pitch;
    return {false, a.kernel_h, in_runs ? 1 : a.kernel_w,      k4(in_runs ? run : c), pitch, c * a.dilation_w,
            width, group,      static_cast<uint32_t>(abreast)};
  }
  const size_t slot = (window_bytes(a) + 3) / 4 * 4 + kSlotSlack;
  return {true, 1, 1, k4(window_bytes(a)), run, c, slot, slot, 1};
}

inline uint32_t strip_pixels(const Conv2dArgs& a) { return a.batch * a.output_h * a.output_w; }
inline uint32_t num_strips(const Conv2dArgs& a) { return (strip_pixels(a) + kStripRows - 1) / kStripRows; }
inline uint32_t strip_groups(const Conv2dArgs& a) {
  const uint32_t groups = ((a.output_c + 15) / 16 + kGroupBlocks - 1) / kGroupBlocks;
  const uint32_t wanted = (kFewStrips + num_strips(a) - 1) / num_strips(a);
  return groups < wanted ? groups : wanted;
}

// Whether the windows are the pixels of the input, in order.
inline bool windows_are_pixels(const Conv2dArgs& a) {
  return a.input_c % 4 == 0 && a.kernel_h == 1 && a.kernel_w == 1 && a.stride_h == 1 && a.stride_w == 1 &&
         a.pad_top == 0 && a.pad_left == 0 && a.output_h == a.input_h && a.output_w == a.input_w;
}

// What the vector variants compute: everything but groups and ACC32, with the input zero point at the dtype's
// minimum (where the packer puts it), so that the bytes, seen as uint8, are the factors.
inline bool windows_accept(const Conv2dArgs& a) {
  const uint64_t pixels = uint64_t{a.batch} * a.output_h * a.output_w;
  return a.contract != Contract::kAcc32 && a.groups == 1 && a.weights_layout == kLayout_o16k4 &&
         a.input_zero_point == dtype_min(a.input_dtype) && a.output_w < (1u << 30) &&
         uint64_t{a.batch} * a.output_h < (1u << 30) && pixels < (1u << 28) && window_bytes(a) < (1u << 30) &&
         uint64_t{a.kernel_h} * a.kernel_w <= kMaxTaps &&
         uint64_t{a.dilation_h} * a.input_w * a.input_c < (1u << 30) &&
         uint64_t{a.dilation_w} * a.input_c < (1u << 20);
}

// A strip's part of the scratch memory.
struct Windows {
  const uint8_t** rows;  // [kStripRows]
  int32_t* terms;        // [kStripRows]
  size_t* tap_offsets;   // [rows * columns]
  uint8_t* slots;
};

constexpr size_t kWindowListBytes = kStripRows * (sizeof(void*) + sizeof(int32_t));

inline size_t tap_offset_bytes(const WindowShape& shape) {
  return (size_t{shape.rows} * shape.columns * sizeof(size_t) + 63) / 64 * 64;
}

// Windows over the border are only where there is padding; those of packed shapes are all copied.
inline bool needs_slots(const Conv2dArgs& a, const WindowShape& shape) {
  const uint64_t last_y = uint64_t{a.output_h - 1} * a.stride_h + uint64_t{a.kernel_h - 1} * a.dilation_h;
  const uint64_t last_x = uint64_t{a.output_w - 1} * a.stride_w + uint64_t{a.kernel_w - 1} * a.dilation_w;
  return shape.packed || a.pad_top > 0 || a.pad_left > 0 || last_y >= a.input_h || last_x >= a.input_w;
}

inline size_t windows_scratch_bytes(const Conv2dArgs& a) {
  const WindowShape shape = window_shape(a);
  size_t bytes = kWindowListBytes + tap_offset_bytes(shape);
  if (needs_slots(a, shape)) {
    bytes += (kStripRows + shape.slots_abreast - 1) / shape.slots_abreast * shape.group_bytes + kSlotSlack;
  }
  return (bytes + 63) / 64 * 64;
}

inline Windows windows_in(const WindowShape& shape, void* scratch) {
  static_assert(kWindowListBytes % 64 == 0, "what follows is aligned");
  auto* bytes = static_cast<uint8_t*>(scratch);
  Windows w;
  w.rows = reinterpret_cast<const uint8_t**>(bytes);
  w.terms = reinterpret_cast<int32_t*>(bytes + kStripRows * sizeof(void*));
  w.tap_offsets = reinterpret_cast<size_t*>(bytes + kWindowListBytes);
  w.slots = bytes + kWindowListBytes + tap_offset_bytes(shape);
  for (uint32_t ky = 0; ky < shape.rows; ++ky) {
    for (uint32_t kx = 0; kx < shape.columns; ++kx) {
      w.tap_offsets[ky * shape.columns + kx] = ky * shape.row_pitch + kx * shape.column_pitch;
    }
  }
  return w;
}

// One row of the kernel at input columns x0, x0 + dilation_w, ... of `row`, column_pitch bytes apart.
template <void (*kCopyRun)(uint8_t*, const uint8_t*, size_t), void (*kFill)(uint8_t*, uint8_t, size_t)>
inline void copy_kernel_row(const Conv2dArgs& a, const uint8_t* row, int32_t x0, uint8_t pad,
                            size_t column_pitch, uint8_t* to) {
  const size_t c = a.input_c;
  if (a.dilation_w == 1) {  // one run of bytes, with padding before and after
    const int32_t kernel_w = static_cast<int32_t>(a.kernel_w);
    const int32_t before = x0 >= 0 ? 0 : (-x0 < kernel_w ? -x0 : kernel_w);
    const int64_t room = int64_t{a.input_w} - x0;  // wider than int32 where x0 is negative
    const int32_t end = room >= kernel_w ? kernel_w : (room > before ? static_cast<int32_t>(room) : before);
    if (before > 0) kFill(to, pad, c * static_cast<uint32_t>(before));
    if (end > before) {
      kCopyRun(to + c * static_cast<uint32_t>(before), row + c * static_cast<uint32_t>(x0 + before),
               c * static_cast<uint32_t>(end - before));
    }
    if (end < kernel_w)
      kFill(to + c * static_cast<uint32_t>(end), pad, c * static_cast<uint32_t>(kernel_w - end));
    return;
  }
  for (uint32_t kx = 0; kx < a.kernel_w; ++kx, to += column_pitch) {
    const int32_t x = x0 + static_cast<int32_t>(kx * a.dilation_w);
    if (x >= 0 && static_cast<uint32_t>(x) < a.input_w) {
      kCopyRun(to, row + c * static_cast<uint32_t>(x), c);
    } else {
      kFill(to, pad, c);
    }
  }
}

// The window at input row y0 and column x0, copied; packed ones are filled up with bytes that stand for zero.
template <void (*kCopyRun)(uint8_t*, const uint8_t*, size_t), void (*kFill)(uint8_t*, uint8_t, size_t)>
inline void copy_window(const Conv2dArgs& a, const WindowShape& shape, const uint8_t* image, int32_t y0,
                        int32_t x0, uint8_t* to) {
  const size_t row_bytes = size_t{a.input_w} * a.input_c;
  const uint8_t pad = static_cast<uint8_t>(a.pad_value);
  const size_t column_pitch = shape.packed ? a.input_c : shape.column_pitch;
  for (uint32_t ky = 0; ky < a.kernel_h; ++ky, to += shape.row_pitch) {
    const int32_t y = y0 + static_cast<int32_t>(ky * a.dilation_h);
    if (y >= 0 && static_cast<uint32_t>(y) < a.input_h) {
      copy_kernel_row<kCopyRun, kFill>(a, image + size_t{static_cast<uint32_t>(y)} * row_bytes, x0, pad,
                                       column_pitch, to);
    } else {
      for (uint32_t kx = 0; kx < a.kernel_w; ++kx) kFill(to + kx * column_pitch, pad, a.input_c);
    }
  }
  if (shape.packed) {
    const uint8_t zero = a.input_dtype == Dtype::kS8 ? 0x80 : 0;
    for (uint64_t k = window_bytes(a); k % 4 != 0; ++k) *to++ = zero;
  }
}

// A window inside the input, packed: most of a first layer's, which have few bytes.
template <void (*kCopyRun)(uint8_t*, const uint8_t*, size_t)>
inline void pack_inner_window(const Conv2dArgs& a, const uint8_t* from, size_t run, uint8_t* to) {
  const size_t from_pitch = size_t{a.dilation_h} * a.input_w * a.input_c;
  for (uint32_t ky = 0; ky < a.kernel_h; ++ky, to += run, from += from_pitch) kCopyRun(to, from, run);
  const uint32_t zeros = a.input_dtype == Dtype::kS8 ? 0x80808080 : 0;
  __builtin_memcpy(to, &zeros, sizeof(zeros));
}

// The rows of output pixels [first, first + count).
template <void (*kCopyRun)(uint8_t*, const uint8_t*, size_t), void (*kFill)(uint8_t*, uint8_t, size_t)>
inline void find_windows(const Conv2dArgs& a, const WindowShape& shape, uint32_t first, uint32_t count,
                         const Windows& w) {
  const size_t c = a.input_c, row_bytes = size_t{a.input_w} * c;
  const int64_t max_y0 = int64_t{a.input_h} - 1 - int64_t{a.kernel_h - 1} * a.dilation_h;
  const int64_t max_x0 = int64_t{a.input_w} - 1 - int64_t{a.kernel_w - 1} * a.dilation_w;
  uint32_t x = first % a.output_w, y = first / a.output_w % a.output_h;
  const uint8_t* image =
      static_cast<const uint8_t*>(a.input) + first / a.output_w / a.output_h * a.input_h * row_bytes;
  uint32_t slots = 0;
  for (uint32_t p = 0; p < count; ++p) {
    const int32_t x0 = static_cast<int32_t>(x * a.stride_w) - static_cast<int32_t>(a.pad_left);
    const int32_t y0 = static_cast<int32_t>(y * a.stride_h) - static_cast<int32_t>(a.pad_top);
    const bool inner = y0 >= 0 && x0 >= 0 && y0 <= max_y0 && x0 <= max_x0;
    const uint8_t* from =
        inner ? image + static_cast<uint32_t>(y0) * row_bytes + static_cast<uint32_t>(x0) * c : nullptr;
    if (inner && !shape.packed) {
      w.rows[p] = from;
    } else {
      uint8_t* slot = w.slots + slot_offset(shape, slots++);
      w.rows[p] = slot;
      if (inner && a.dilation_w == 1) {
        pack_inner_window<kCopyRun>(a, from, shape.row_pitch, slot);
      } else {
        copy_window<kCopyRun, kFill>(a, shape, image, y0, x0, slot);
      }
    }
    if (++x == a.output_w) {
      x = 0;
      if (++y == a.output_h) {
        y = 0;
        image += a.input_h * row_bytes;
      }
    }
  }
}

}  // namespace
}  // namespace qplan

#endif  // QPLAN_KERNELS_CONV2D_CONV2D_WINDOWS_INL_
