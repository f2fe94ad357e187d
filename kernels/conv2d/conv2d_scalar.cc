// conv2d for cores that compute in general registers: the windows of three pixels, expanded to pairs of int16
// in scratch memory, times two channels at a time. Expanding takes little where channels are many: each word
// is read by all of them.
#include <stddef.h>
#include <stdint.h>

#include "kernels/conv2d/conv2d.h"
#include "kernels/scalar/outputs.h"

namespace qplan {
namespace {

// A tap is a row of the window, filled up to whole quads with weights that are zero.
inline uint32_t tap_bytes(const Conv2dArgs& a) { return a.kernel_w * a.input_c; }
inline uint32_t tap_quads(const Conv2dArgs& a) { return (tap_bytes(a) + 3) / 4; }

// Scratch: the windows, a row of padding, and a copy of a tap for each pixel.
inline size_t window_bytes(const Conv2dArgs& a) {
  return size_t{a.kernel_h} * tap_quads(a) * kTileWords * sizeof(uint32_t);
}
inline size_t tap_copy_bytes(const Conv2dArgs& a) { return size_t{tap_quads(a)} * 4; }
// Windows of one pixel without padding, of whole quads, are inside the input.
inline bool needs_tap_copies(const Conv2dArgs& a) {
  return a.kernel_h != 1 || a.kernel_w != 1 || a.pad_top != 0 || a.pad_left != 0 || a.input_c % 4 != 0 ||
         uint64_t{a.output_h - 1} * a.stride_h >= a.input_h ||
         uint64_t{a.output_w - 1} * a.stride_w >= a.input_w;
}
inline size_t tap_copies_bytes(const Conv2dArgs& a) {
  return needs_tap_copies(a) ? (1 + kTilePixels) * tap_copy_bytes(a) : 0;
}
// A copy of the residual of a tile, which the output may take the place of. It is where the copies of taps
// are, which nobody reads any more when the outputs are made.
inline size_t residual_copy_at(const Conv2dArgs& a) { return needs_tap_copies(a) ? tap_copy_bytes(a) : 0; }
inline size_t copies_bytes(const Conv2dArgs& a) {
  const size_t taps = tap_copies_bytes(a);
  const size_t residual = a.has_residual ? residual_copy_at(a) + size_t{kTilePixels} * a.output_c : 0;
  return taps > residual ? taps : residual;
}

constexpr uint32_t kFormTileChannels = 4;  // of multiply_plain_tiles and multiply_signed_tiles
constexpr uint32_t kMaxTapBytes = 1 << 16;
constexpr uint32_t kMaxTaps = 1 << 8;
constexpr uint64_t kMaxPixels = 1 << 28;

inline Refusal scalar_accepts(const Conv2dArgs& a) {
  if (a.contract == Contract::kAcc32) return Refusal::kContract;
  if (a.groups != 1) return Refusal::kGroups;
  if (a.weights_layout != kLayout_o2r4 && a.weights_layout != kLayout_o2h4) return Refusal::kLayout;
  if (a.dilation_w != 1 && a.kernel_w != 1) return Refusal::kWindow;
  if (kIsForm && (!has_form_alone(a) || a.has_residual || a.weights_layout != kLayout_o2h4 ||
                  a.output_c % kFormTileChannels != 0)) {
    return Refusal::kContract;
  }
  const bool fits = a.kernel_h <= kMaxTaps && uint64_t{a.kernel_w} * a.input_c <= kMaxTapBytes &&
                    uint64_t{a.batch} * a.output_h * a.output_w <= kMaxPixels;
  return fits ? Refusal::kNone : Refusal::kTooLarge;
}

#if !defined(QPLAN_ONLY_QUERIES)

using MultiplyTile = void (*)(Tile*, const uint32_t*, const int8_t*, uint32_t);

// The window of an output pixel: the input position of its first tap, and where that is, if all taps are
// inside the input and can be read as whole quads.
struct Window {
  const uint8_t* image;
  int32_t y, x;
  const uint8_t* inside;
};

// What runs seldom beside its loops, which are assembly: small in images that are to be small.
#if defined(QPLAN_SCALAR_FORM)
#define QPLAN_SCALAR_SMALL cold, noinline
#else
#define QPLAN_SCALAR_SMALL noinline
#endif

class Convolution {
 public:
  Convolution(const Conv2dArgs& args, void* scratch)
      : a_(args),
        outputs_(args),
        quads_(tap_quads(args)),
        window_quads_(args.kernel_h * quads_),
        row_bytes_(size_t{args.input_w} * args.input_c),
        windows_(static_cast<uint32_t*>(scratch)),
        padding_(static_cast<uint8_t*>(scratch) + window_bytes(args)),
        is_signed_(args.input_dtype == Dtype::kS8),
        has_halves_(layout_has_halves(args.weights_layout)),
        has_form_tiles_((outputs_.is_full() || (outputs_.is_signed_form() && outputs_.has_whole_range())) &&
                        has_halves_ && args.weights_zero_point == 0),
        is_centered_(args.input_zero_point == 0 && args.weights_zero_point == 0),
        is_dense_(!needs_tap_copies(args) && args.stride_h == 1 && args.stride_w == 1 &&
                  args.output_w == args.input_w && args.output_h == args.input_h) {
    const size_t input_bytes = a_.batch * a_.input_h * row_bytes_;
    const auto* input = static_cast<const uint8_t*>(a_.input);
    input_end_ = input + input_bytes;
    tap_step_ = a_.dilation_h * row_bytes_;
    pixel_step_ = size_t{a_.stride_w} * a_.input_c;
    // What is read beyond a tap meets weights that are zero; the sum of a row's inputs knows none.
    is_readable_ = kOnlyForm || tap_bytes(a_) % 4 == 0 || a_.weights_zero_point == 0;
    const uint64_t window = uint64_t{a_.kernel_h - 1} * a_.dilation_h * row_bytes_ + tap_copy_bytes(a_);
    const bool can_be_inside = is_readable_ && a_.kernel_w <= a_.input_w && window <= input_bytes;
    last_inside_ = can_be_inside ? input_end_ - window : input;
    last_inside_x_ = can_be_inside ? static_cast<int32_t>(a_.input_w - a_.kernel_w) : -1;
    all_have_form_ = has_form_tiles_ && a_.output_c % kFormTileChannels == 0;
    for (uint32_t o = 0; !kOnlyForm && o < a_.output_c; o += kFormGroup)
      all_have_form_ = all_have_form_ && outputs_.has_form(o);
#if defined(QPLAN_SCALAR_FPU)
    tiles_.sign_bias = a_.output_dtype == Dtype::kS8 ? 0x80808080 : 0;
    const auto zero_point = static_cast<uint32_t>(a_.output_zero_point - dtype_min(a_.output_dtype));
    tiles_.zero_point = zero_point << 16 | zero_point;
    tiles_.pixels = windows_;
    tiles_.end = windows_ + window_quads_ * kTileWords;
    tiles_.entry = FormTiles::entry_of(window_quads_);
#endif
    if (!needs_tap_copies(a_)) return;
    fill(padding_, 0, tap_bytes(a_), a_.pad_value);
    fill(padding_, tap_bytes(a_), tap_copy_bytes(a_), a_.input_zero_point);
  }

  // Output rows [begin, end) of all images. A tile of pixels is written when its windows have been read.
  void run(uint32_t begin, uint32_t end) {
    const TowardsZero rounding(outputs_.rounds_towards_zero() && !has_residual());
    const size_t first = size_t{begin} * a_.output_w;
    uint32_t left = (end - begin) * a_.output_w;
    uint8_t* out = static_cast<uint8_t*>(a_.output) + first * a_.output_c;
    const uint8_t* pixel = static_cast<const uint8_t*>(a_.input) + first * a_.input_c;  // if it is dense
    row_ = begin;
#if defined(QPLAN_SCALAR_FPU)
    if (all_have_form() && !has_residual()) {  // as in most layers
      set_tile_pixels(kTilePixels);
      for (; left >= kTilePixels; left -= kTilePixels) {
        expand_tile_at(&pixel, kTilePixels);
        multiply_form_channels(out, 0, a_.output_c);
        out += kTilePixels * size_t{a_.output_c};
      }
    }
#endif
    while (left != 0) {
      const uint32_t count = left < kTilePixels ? left : kTilePixels;
      expand_tile_at(&pixel, count);
      const uint8_t* residual = has_residual() ? residual_of(out, count * a_.output_c) : nullptr;
      has_halves() ? multiply<multiply_tile_halves>(out, count) : multiply<multiply_tile>(out, count);
      if (residual != nullptr) add_residual(out, residual, count * a_.output_c);
      out += size_t{count} * a_.output_c;
      left -= count;
    }
  }

 private:
  bool all_have_form() const { return kOnlyForm || all_have_form_; }
  bool has_residual() const { return !kOnlyForm && a_.has_residual; }
  bool has_halves() const { return kOnlyForm || has_halves_; }
  bool is_signed() const { return kOnlyForm || is_signed_; }

  static void fill(uint8_t* to, size_t begin, size_t end, int32_t value) {
    to += begin;
    size_t bytes = end - begin;
    const uint32_t quad = static_cast<uint8_t>(value) * 0x01010101u;
    for (; bytes >= 4; bytes -= 4, to += 4) __builtin_memcpy(to, &quad, 4);
    for (; bytes > 0; --bytes) *to++ = static_cast<uint8_t>(value);
  }
  static void copy(uint8_t* to, const uint8_t* from, size_t bytes) {
    for (; bytes >= 4; bytes -= 4, to += 4, from += 4) {
      const uint32_t quad = load_quad(from);
      __builtin_memcpy(to, &quad, 4);
    }
    for (; bytes > 0; --bytes) *to++ = *from++;
  }

  // Expands the windows of the next `count` pixels; of dense ones, from *pixel on, which moves on. Where a
  // tile has more, they repeat the last one.
  void expand_tile_at(const uint8_t** pixel, uint32_t count) {
    if (!is_dense_) return expand_windows(count);
    const uint8_t *const first = *pixel, *const last = first + (count - 1) * pixel_step_;
    const uint8_t* const taps[kTilePixels] = {first, count > 1 ? first + pixel_step_ : last, last};
    expand_tile(taps, quads_, is_signed(), windows_);
    center();
    *pixel = last + pixel_step_;
  }

  __attribute__((QPLAN_SCALAR_SMALL)) void expand_windows(uint32_t count) {
    num_inside_ != 0 || find_inside() ? expand_next_inside() : expand_any(count);
  }

  // A function of its own, whose stack is free elsewhere.
  __attribute__((QPLAN_SCALAR_SMALL)) void expand_any(uint32_t count) {
    Window windows[kTilePixels] = {};
    for (uint32_t p = 0; p < count; ++p) {
      if (x_ == 0) next_ = first_window(row_);
      windows[p] = next_;
      next_.x += static_cast<int32_t>(a_.stride_w);
      next_.inside += pixel_step_;
      if (++x_ == a_.output_w) {
        x_ = 0;
        ++row_;
      }
    }
    for (uint32_t p = count; p < kTilePixels; ++p) windows[p] = windows[count - 1];
    expand(windows);
  }

  // Whether the next tile is in one row of output and all its windows are inside the input, as most are; and
  // how many tiles from there on.
  bool find_inside() {
    constexpr uint32_t kLast = kTilePixels - 1;
    if (a_.output_w - x_ < kTilePixels) return false;
    if (x_ == 0) next_ = first_window(row_);
    // bind has checked that columns of windows are below 2^31.
    const int32_t last_x = next_.x + static_cast<int32_t>(kLast * a_.stride_w);
    const uint8_t* const last = next_.inside + kLast * pixel_step_;
    if (!is_inside_down_ || next_.x < 0 || last_x > last_inside_x_ || last > last_inside_) return false;
    const uint32_t tiles_of_row = (a_.output_w - x_) / kTilePixels;
    const uint32_t further_x = static_cast<uint32_t>(last_inside_x_ - last_x) / (kTilePixels * a_.stride_w);
    const size_t further = static_cast<size_t>(last_inside_ - last) / (kTilePixels * pixel_step_);
    num_inside_ = tiles_of_row;
    if (num_inside_ > further_x) num_inside_ = further_x + 1;
    if (num_inside_ > further) num_inside_ = static_cast<uint32_t>(further) + 1;
    return true;
  }

  void expand_next_inside() {
    const uint8_t* const first = next_.inside;
    --num_inside_;
    next_.x += static_cast<int32_t>(kTilePixels * a_.stride_w);
    next_.inside += kTilePixels * pixel_step_;
    x_ += kTilePixels;
    if (x_ == a_.output_w) {
      x_ = 0;
      ++row_;
    }
    expand_inside(first, first + pixel_step_, first + (kTilePixels - 1) * pixel_step_);
  }

  // The window of the first pixel of a row of output.
  Window first_window(uint32_t row) {
    uint32_t n = 0, y = row;
    if (a_.batch != 1) {
      n = row / a_.output_h;
      y = row % a_.output_h;
    }
    Window window;
    window.image = static_cast<const uint8_t*>(a_.input) + n * a_.input_h * row_bytes_;
    window.y = static_cast<int32_t>(y * a_.stride_h) - static_cast<int32_t>(a_.pad_top);
    window.x = -static_cast<int32_t>(a_.pad_left);
    const int64_t last = int64_t{window.y} + int64_t{a_.kernel_h - 1} * a_.dilation_h;
    is_inside_down_ = window.y >= 0 && last < int64_t{a_.input_h};
    window.inside = window.image;
    if (is_inside_down_) {
      window.inside += static_cast<uint32_t>(window.y) * row_bytes_ - size_t{a_.pad_left} * a_.input_c;
    }
    return window;
  }

  // Where the bytes of a tap are: in the input, or in a copy where some of them, or of what the last quad
  // reads beyond them, are not.
  const uint8_t* tap(const Window& window, uint32_t ky, uint32_t pixel) {
    const int32_t y = window.y + static_cast<int32_t>(ky * a_.dilation_h);
    if (y < 0 || static_cast<uint32_t>(y) >= a_.input_h) return padding_;
    const uint8_t* row = window.image + static_cast<uint32_t>(y) * row_bytes_;
    const bool is_inside = window.x >= 0 && static_cast<uint64_t>(window.x) + a_.kernel_w <= a_.input_w;
    if (is_inside) {
      const uint8_t* from = row + static_cast<uint32_t>(window.x) * a_.input_c;
      if (is_readable_ && static_cast<size_t>(input_end_ - from) >= tap_copy_bytes(a_)) return from;
    }
    return copy_tap(row, window.x, padding_ + (pixel + 1) * tap_copy_bytes(a_));
  }

  const uint8_t* copy_tap(const uint8_t* row, int32_t first, uint8_t* to) {
    const uint32_t window = a_.kernel_w, position = static_cast<uint32_t>(first);
    uint32_t begin = first < 0 ? 0 - position : 0;
    if (begin > window) begin = window;
    // The input's columns from `first` on; both are below 2^31.
    const uint32_t room = first > 0 && position >= a_.input_w ? 0 : a_.input_w - position;
    const uint32_t end = room < window ? (room > begin ? room : begin) : window;
    const size_t before = size_t{begin} * a_.input_c, inside = size_t{end - begin} * a_.input_c;
    fill(to, 0, before, a_.pad_value);
    if (inside != 0) copy(to + before, row + size_t{position + begin} * a_.input_c, inside);
    fill(to, before + inside, tap_bytes(a_), a_.pad_value);
    fill(to, tap_bytes(a_), tap_copy_bytes(a_), a_.input_zero_point);
    return to;
  }

  void expand_inside(const uint8_t* first, const uint8_t* second, const uint8_t* third) {
    const uint8_t* taps[kTilePixels] = {first, second, third};
    uint32_t* to = windows_;
    if (quads_ == 1) {
      is_signed() ? expand_narrow<true>(taps, to) : expand_narrow<false>(taps, to);
    } else {
      for (uint32_t ky = a_.kernel_h; ky > 0; --ky) {
        to = expand_tile(taps, quads_, is_signed(), to);
        for (const uint8_t*& tap : taps) tap += tap_step_;
      }
    }
    center();
  }

  // Taps of one quad, as those of first layers with one channel: a call for each row of them takes more than
  // their work.
  template <bool kSigned>
  void expand_narrow(const uint8_t* const* taps, uint32_t* to) const {
    const uint8_t *a = taps[0], *b = taps[1], *c = taps[2];
    for (uint32_t ky = a_.kernel_h; ky > 0; --ky, to += kTileWords) {
      const uint32_t quads[kTilePixels] = {load_quad(a), load_quad(b), load_quad(c)};
      for (uint32_t p = 0; p < kTilePixels; ++p) {
        to[p] = kSigned ? even_bytes(quads[p]) : even_bytes_u8(quads[p]);
        to[kTilePixels + p] = kSigned ? odd_bytes(quads[p]) : odd_bytes_u8(quads[p]);
      }
      a += tap_step_;
      b += tap_step_;
      c += tap_step_;
    }
  }

  void expand(const Window* windows) {
    uint32_t* to = windows_;
    for (uint32_t ky = 0; ky < a_.kernel_h; ++ky) {
      const uint8_t* taps[kTilePixels];
      for (uint32_t p = 0; p < kTilePixels; ++p) taps[p] = tap(windows[p], ky, p);
      to = expand_tile(taps, quads_, is_signed(), to);
    }
    center();
  }

  // Less the input's zero point.
  void center() {
    if (!kOnlyForm && !is_centered_) subtract_zero_point();
  }
  // A function of its own, because four loops over tiles contain the call.
  __attribute__((noinline)) void subtract_zero_point() {
    const uint32_t num_words = window_quads_ * kTileWords;
    if (a_.input_zero_point != 0) {
      const uint32_t zero_points = pair_of(a_.input_zero_point, a_.input_zero_point);
      for (uint32_t i = 0; i < num_words; ++i) windows_[i] = subtract_pairs(windows_[i], zero_points);
    }
    if (a_.weights_zero_point != 0) sum_windows(num_words);
  }

  // sum u * (w - z) = sum u * w - z * sum u, modulo 2^32
  void sum_windows(uint32_t num_words) {
    for (uint32_t p = 0; p < kTilePixels; ++p) {
      int32_t sum = 0;
      for (uint32_t i = p; i < num_words; i += kTilePixels)
        sum = wrap_add(sum, low_of(windows_[i]) + high_of(windows_[i]));
      terms_[p] = wrap_mul(-a_.weights_zero_point, sum);
    }
  }

  // All channels of `count` pixels, in groups that share a way to make outputs.
  template <MultiplyTile kMultiply>
  void multiply(uint8_t* out, uint32_t count) {
    const TowardsZero rounding(outputs_.rounds_towards_zero() && has_residual());
#if defined(QPLAN_SCALAR_FPU)
    if (all_have_form()) return multiply_form_tiles(out, 0, a_.output_c, count);
#endif
    for (uint32_t o = 0, end = 0; o < a_.output_c; o = end) {
      end = a_.output_c - o < kFormGroup ? a_.output_c : o + kFormGroup;
#if defined(QPLAN_SCALAR_FPU)
      if (outputs_.has_form(o)) {
        uint32_t begin = o;
        if (has_form_tiles_) begin += (end - o) / kFormTileChannels * kFormTileChannels;
        if (begin != o) multiply_form_tiles(out, o, begin, count);
        if (begin != end) multiply_form<kMultiply>(out, begin, end, count);
        continue;
      }
#endif
      multiply_any<kMultiply>(out, o, end, count);
    }
  }

  const int8_t* weights_of(uint32_t o) const { return a_.weights + size_t{o} * window_quads_ * 4; }

  template <MultiplyTile kMultiply>
  __attribute__((noinline)) void multiply_any(uint8_t* out, uint32_t begin, uint32_t end,
                                              uint32_t count) const {
    const uint32_t channels = a_.output_c;
    for (uint32_t o = begin; o < end; o += kTileChannels) {
      Tile tile;
      for (uint32_t p = 0; p < kTilePixels; ++p) {
        tile.sum[p][0] = wrap_add(a_.bias[o], terms_[p]);
        tile.sum[p][1] = wrap_add(a_.bias[o + 1], terms_[p]);
      }
      kMultiply(&tile, windows_, weights_of(o), window_quads_);
      for (uint32_t p = 0; p < count; ++p) {
        out[p * channels + o] = outputs_.output(tile.sum[p][0], o);
        if (o + 1 < end) out[p * channels + o + 1] = outputs_.output(tile.sum[p][1], o + 1);
      }
    }
  }

#if defined(QPLAN_SCALAR_FPU)
  // Channels [begin, end), which have a float epilogue.
  template <MultiplyTile kMultiply>
  __attribute__((noinline)) void multiply_form(uint8_t* out, uint32_t begin, uint32_t end,
                                               uint32_t count) const {
    const size_t channels = a_.output_c;
    for (uint32_t o = begin; o < end; o += kTileChannels) {
      Tile tile;
      for (uint32_t p = 0; p < kTilePixels; ++p) {
        tile.sum[p][0] = wrap_add(a_.bias[o], terms_[p]);
        tile.sum[p][1] = wrap_add(a_.bias[o + 1], terms_[p]);
      }
      kMultiply(&tile, windows_, weights_of(o), window_quads_);
      for (uint32_t i = 0; i < kTileChannels && o + i < end; ++i) {
        const float scale = a_.float_scale[o + i], offset = a_.float_offset[o + i];
        uint8_t* to = out + o + i;
        for (uint32_t p = 0; p < count; ++p, to += channels) {
          *to = outputs_.form_output(tile.sum[p][i], scale, offset);
        }
      }
    }
  }

  // A multiple of four channels, from `begin` on. Pixels beyond `count` are the same as the last one.
  void multiply_form_tiles(uint8_t* out, uint32_t begin, uint32_t end, uint32_t count) {
    set_tile_pixels(count);
    multiply_form_channels(out, begin, end);
  }
  void set_tile_pixels(uint32_t count) {
    tiles_.second = count > 1 ? a_.output_c : 0;
    tiles_.third = (count - 1) * a_.output_c;
  }
  void multiply_form_channels(uint8_t* out, uint32_t begin, uint32_t end) {
    tiles_.bias = a_.bias + begin;
    tiles_.scale = a_.float_scale + begin;
    tiles_.offset = a_.float_offset + begin;
    tiles_.out = out + begin;
    tiles_.out_end = out + end;
    tiles_.weights = weights_of(begin);
    !kOnlyForm&& outputs_.is_signed_form() ? multiply_signed_tiles(&tiles_) : multiply_plain_tiles(&tiles_);
  }
#endif

  // The residual of outputs that are about to be written, a copy of it where they overwrite it.
  const uint8_t* residual_of(const uint8_t* out, uint32_t count) const {
    const uint8_t* residual =
        static_cast<const uint8_t*>(a_.residual) + (out - static_cast<const uint8_t*>(a_.output));
    if (residual != out) return residual;
    uint8_t* to = padding_ + residual_copy_at(a_);
    copy(to, residual, count);
    return to;
  }

  void add_residual(uint8_t* out, const uint8_t* residual, uint32_t count) const {
    if (a_.output_dtype == Dtype::kS8) {
      add_bytes<int8_t>(out, residual, count);
    } else {
      add_bytes<uint8_t>(out, residual, count);
    }
  }

  template <typename T>
  void add_bytes(uint8_t* out, const uint8_t* residual, uint32_t count) const {
    const AddFormula& f = a_.residual_sum;
    const bool has_form = kHasFloatEpilogue && f.contract == Contract::kTfl2 && f.float_scale1 > 0.0f;
    const uint8_t* const a = a_.residual_is_a ? residual : out;
    const uint8_t* const b = a_.residual_is_a ? out : residual;
#if defined(QPLAN_SCALAR_FPU)
    if (has_form && sizeof(T) == 1 && static_cast<T>(0x80) < 0 && f.clamp_min == -128 && f.clamp_max == 127) {
      return add_signed_bytes(f, a, b, count, out);
    }
#endif
    for (uint32_t i = 0; i < count; ++i) {
      const int32_t x = static_cast<T>(a[i]), y = static_cast<T>(b[i]);
      const int32_t sum = has_form ? float_sum(f, x, y) : sum_of(f, x, y, false);
      out[i] = static_cast<uint8_t>(sum);
    }
  }

  const Conv2dArgs& a_;
  const Outputs<Conv2dArgs> outputs_;
  const uint32_t quads_, window_quads_;  // of a tap, of all of them
  const size_t row_bytes_;
  uint32_t* const windows_;
  uint8_t* const padding_;
  const bool is_signed_, has_halves_, has_form_tiles_;
  const bool is_centered_;                   // without zero points
  const bool is_dense_;                      // pixels of the input, one after another
  const uint8_t *input_end_, *last_inside_;  // the last first tap of a window that is inside
  int32_t last_inside_x_;
  size_t tap_step_, pixel_step_;  // bytes
  bool is_readable_, is_inside_down_ = false;
  bool all_have_form_;  // of tiles, all channels
  int32_t terms_[kTilePixels] = {};
  uint32_t row_ = 0, x_ = 0;  // of the output pixel whose window is next
  uint32_t num_inside_ = 0;   // tiles from there on that are known to be inside
  Window next_ = {};
#if defined(QPLAN_SCALAR_FPU)
  FormTiles tiles_;
#endif
};

#endif

}  // namespace

namespace QPLAN_SCALAR_VARIANT(conv2d) {

#if !defined(QPLAN_ONLY_RUN)
  Refusal accepts(const Conv2dArgs& args) { return scalar_accepts(args); }

  size_t scratch_bytes(const Conv2dArgs& args) {
    return (window_bytes(args) + copies_bytes(args) + 63) / 64 * 64;
  }

  uint32_t work_items(const Conv2dArgs& args) { return args.batch * args.output_h; }
#endif

#if !defined(QPLAN_ONLY_QUERIES)
  void run(const Conv2dArgs& args, uint32_t begin, uint32_t end, void* scratch) {
    Convolution(args, scratch).run(begin, end);
  }
#endif

}  // namespace )

}  // namespace qplan
