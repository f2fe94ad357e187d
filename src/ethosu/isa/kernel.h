// What the registers say when an operation starts: a kernel or a transfer as a struct.
#ifndef QPLAN_SRC_ETHOSU_ISA_KERNEL_H_
#define QPLAN_SRC_ETHOSU_ISA_KERNEL_H_

#include <stdint.h>

#include "src/ethosu/isa/architecture.h"

namespace qplan::ethosu {

// Registers as SET commands left them. They keep their values between operations; nothing relies on the
// values after a reset.
class Registers {
 public:
  void set(const Command& command);
  bool is_set(Cmd0 code) const { return (set0_[code / 32] >> code % 32 & 1) != 0; }
  bool is_set(Cmd1 code) const { return (set1_[code / 32] >> code % 32 & 1) != 0; }
  uint32_t get(Cmd0 code) const { return values0_[code]; }
  int32_t get_signed(Cmd0 code) const { return static_cast<int16_t>(values0_[code]); }
  uint64_t address(Cmd1 code) const { return values1_[code] | uint64_t{high1_[code] & 0xffu} << 32; }
  uint32_t payload(Cmd1 code) const { return values1_[code]; }
  uint32_t parameter(Cmd1 code) const { return high1_[code]; }

 private:
  uint16_t values0_[kNumCmd0] = {};
  uint32_t values1_[kNumCmd1] = {};
  uint16_t high1_[kNumCmd1] = {};
  uint32_t set0_[kNumCmd0 / 32] = {};
  uint32_t set1_[kNumCmd1 / 32] = {};
};

// A feature map in a region. Addresses are offsets into the region.
struct FeatureMap {
  uint32_t h = 1, w = 1, d = 1;
  uint32_t region = 0;
  bool is_signed = false;
  bool is_nhcwb16 = false;
  uint32_t bits = 8;
  int32_t zero_point = 0;
  // Tiles: columns of the left ones, rows of the upper left and the upper right one.
  uint32_t width0 = 1, height0 = 1, height1 = 1;
  uint64_t base[4] = {};
  uint64_t stride_x = 0, stride_y = 0, stride_c = 0;

  uint32_t element_bytes() const { return bits / 8; }
  uint64_t elements() const { return uint64_t{h} * w * d; }
  uint64_t address(uint32_t y, uint32_t x, uint32_t c) const {
    uint32_t tile = 0, top = height0;
    if (x >= width0) x -= width0, tile = 1, top = height1;
    if (y >= top) y -= top, tile += 2;
    const uint64_t row = base[tile] + y * stride_y;
    if (!is_nhcwb16) return row + x * stride_x + uint64_t{c} * element_bytes();
    return row + c / 16 * stride_c + (uint64_t{16} * x + c % 16) * element_bytes();
  }
};

struct ByteRange {
  uint32_t region = 0;
  uint64_t begin = 0, bytes = 0;
};
// Bounds of the bytes of a feature map's tiles; returns how many there are (at most 4). Bytes between rows
// that another map uses lie within them.
uint32_t tile_ranges(const FeatureMap& map, ByteRange ranges[4]);

enum class KernelKind : uint8_t { kConv, kDepthwise, kPool, kElementwise };
enum class Rounding : uint8_t { kDouble = 0, kTruncate = 1, kNatural = 2 };
enum class Upscale : uint8_t { kNone = 0, kNearest = 1, kZeros = 2 };

struct Scale {
  uint32_t multiplier = 1;
  uint32_t shift = 0;
};

struct Kernel {
  KernelKind kind = KernelKind::kConv;
  PoolMode pool = PoolMode::kMax;
  ElementwiseMode elementwise = ElementwiseMode::kAdd;
  FeatureMap ifm, ifm2, ofm;

  // ---- the window: all but elementwise kernels
  uint32_t pad_top = 0, pad_left = 0, pad_bottom = 0, pad_right = 0;
  uint32_t window_h = 1, window_w = 1;  // dilated
  uint32_t stride_y = 1, stride_x = 1;
  uint32_t dilation_y = 1, dilation_x = 1;
  Upscale upscale = Upscale::kNone;
  bool is_part_kernel_first = false;

  // ---- weights and scales, of each core
  uint32_t cores = 1;
  ByteRange weights[2], scales[2];

  // ---- elementwise
  bool has_ifm2 = false, has_scalar = false, ifm2_is_first = false;
  bool broadcast_h = false, broadcast_w = false, broadcast_c = false;
  int32_t scalar = 0;
  uint32_t scale_mode = 0;  // 0: both operands, 1: the first, 2: the second is scaled
  Scale opa, opb;

  // ---- output
  bool has_scale = false;  // OFM_SCALE
  Scale ofm_scale;
  Rounding rounding = Rounding::kDouble;
  bool is_acc40 = false;
  uint32_t activation = 0, clip = 0;
  int32_t min = 0, max = 0;

  // ---- blocks and SHRAM
  uint32_t block_h = 1, block_w = 1, block_d = 1;
  uint32_t ib_end = 0, ab_start = 0, ifm2_ib_start = 0;
  uint32_t blockdep = 0;

  bool uses_table() const { return activation >= 16; }
  uint32_t table() const { return activation - 16; }
  bool is_convolution() const { return kind == KernelKind::kConv || kind == KernelKind::kDepthwise; }
  // Taps along an axis: the window is dilated.
  uint32_t taps_h() const { return (window_h - 1) / dilation_y + 1; }
  uint32_t taps_w() const { return (window_w - 1) / dilation_x + 1; }
  uint32_t blocks() const {
    return ceil_div(ofm.h, block_h) * ceil_div(ofm.w, block_w) * ceil_div(ofm.d, block_d);
  }
};

// The kernel that an operation starts, with the limits of the architecture checked.
[[nodiscard]] Problem read_kernel(const Config& config, const Registers& registers, const Command& operation,
                                  Kernel* kernel);

struct Transfer {
  ByteRange from;
  bool to_shram = false;
  ByteRange to;  // to_shram: an address of SHRAM
};
[[nodiscard]] Problem read_transfer(const Config& config, const Registers& registers, Transfer* transfer);

}  // namespace qplan::ethosu

#endif  // QPLAN_SRC_ETHOSU_ISA_KERNEL_H_
