#include "src/ethosu/isa/stream.h"

namespace qplan::ethosu {

void Registers::set(const Command& command) {
  if (command.has_payload) {
    values1_[command.code % kNumCmd1] = command.payload;
    high1_[command.code % kNumCmd1] = command.parameter;
    set1_[command.code % kNumCmd1 / 32] |= 1u << command.code % 32;
  } else {
    values0_[command.code % kNumCmd0] = command.parameter;
    set0_[command.code % kNumCmd0 / 32] |= 1u << command.code % 32;
  }
}

namespace {

// Offsets of a map's registers from its first ones.
struct MapCodes {
  Cmd0 precision, zero_point, width0, height0, height1, region;
  Cmd1 base0, stride_x, stride_y, stride_c;
};
constexpr MapCodes kIfm = {kIfmPrecision, kIfmZeroPoint, kIfmWidth0M1, kIfmHeight0M1, kIfmHeight1M1,
                           kIfmRegion,    kIfmBase0,     kIfmStrideX,  kIfmStrideY,   kIfmStrideC};
constexpr MapCodes kIfm2 = {kIfm2Precision, kIfm2ZeroPoint, kIfm2Width0M1, kIfm2Height0M1, kIfm2Height1M1,
                            kIfm2Region,    kIfm2Base0,     kIfm2StrideX,  kIfm2StrideY,   kIfm2StrideC};
constexpr MapCodes kOfm = {kOfmPrecision, kOfmZeroPoint, kOfmWidth0M1, kOfmHeight0M1, kOfmHeight1M1,
                           kOfmRegion,    kOfmBase0,     kOfmStrideX,  kOfmStrideY,   kOfmStrideC};

constexpr uint32_t kMaxWindow = 64, kMaxTaps = 4096;
constexpr uint32_t kMaxPoolWindow = 256, kMaxPoolTaps = 65536;
constexpr uint32_t kMaxPaddedPool = 8;
constexpr uint32_t kMaxBlockH = 32, kMaxBlockW = 64, kMaxBlockD = 128;
constexpr uint32_t kMaxPadBefore = 127, kMaxPadAfter = 128;

class KernelReader {
 public:
  KernelReader(const Config& config, const Registers& registers, Kernel* kernel)
      : config_(config), r_(registers), k_(*kernel) {}

  Problem read(const Command& operation) {
    k_ = {};
    if (const Problem p = read_operation(operation)) return p;
    if (const Problem p = read_ofm()) return p;
    if (k_.kind != KernelKind::kElementwise) {
      if (const Problem p = read_window()) return p;
    }
    if (const Problem p = read_ifm()) return p;
    if (k_.kind == KernelKind::kElementwise) {
      if (const Problem p = read_operands()) return p;
    }
    if (k_.is_convolution()) {
      if (const Problem p = read_weights()) return p;
    }
    if (const Problem p = read_output()) return p;
    return read_blocks();
  }

 private:
  template <typename... Codes>
  Problem need(Codes... codes) const {
    Problem problem;
    const auto one = [&](auto code) {
      if (!problem && !r_.is_set(code))
        problem = {"an operation uses a register that the stream did not set", code, 0};
    };
    (one(codes), ...);
    return problem;
  }

  Problem read_operation(const Command& operation) {
    const uint32_t mode = operation.parameter;
    switch (operation.code) {
      case kOpConv:
        k_.kind = KernelKind::kConv;
        break;
      case kOpDepthwise:
        k_.kind = KernelKind::kDepthwise;
        break;
      case kOpPool:
        k_.kind = KernelKind::kPool;
        if (mode > 2) return {"a pool of an unknown mode", mode, 2};
        k_.pool = static_cast<PoolMode>(mode);
        break;
      default:
        k_.kind = KernelKind::kElementwise;
        if (mode > 9) return {"an elementwise operation of an unknown mode", mode, 9};
        k_.elementwise = static_cast<ElementwiseMode>(mode);
    }
    k_.cores = 1;
    if (config_.cores > 1) {
      if (const Problem p = need(kParallelMode)) return p;
      if (r_.get(kParallelMode) >= config_.cores)
        return {"PARALLEL_MODE names more cores than there are", r_.get(kParallelMode), config_.cores - 1};
      k_.cores = r_.get(kParallelMode) + 1;
    }
    return {};
  }

  // What maps have in common; h, w and d are set.
  Problem read_map(const MapCodes& codes, FeatureMap* map) const {
    if (const Problem p = need(codes.precision, codes.width0, codes.height0, codes.height1, codes.region,
                               codes.base0, codes.stride_x, codes.stride_y, codes.stride_c))
      return p;
    if (map->bits != 32) {
      if (const Problem p = need(codes.zero_point)) return p;
    }
    for (uint16_t i = 1; i < 4; ++i) {
      if (const Problem p = need(static_cast<Cmd1>(codes.base0 + i))) return p;
    }
    map->region = r_.get(codes.region) & 7;
    map->width0 = r_.get(codes.width0) + 1;
    map->height0 = r_.get(codes.height0) + 1;
    map->height1 = r_.get(codes.height1) + 1;
    for (uint16_t i = 0; i < 4; ++i) map->base[i] = r_.address(static_cast<Cmd1>(codes.base0 + i));
    map->stride_x = r_.address(codes.stride_x);
    map->stride_y = r_.address(codes.stride_y);
    map->stride_c = r_.address(codes.stride_c);
    return check_alignment(*map);
  }

  Problem read_precision(const MapCodes& codes, uint32_t size_bit, FeatureMap* map) const {
    if (const Problem p = need(codes.precision)) return p;
    const uint32_t precision = r_.get(codes.precision);
    map->is_signed = (precision & 1) != 0;
    const uint32_t size = precision >> size_bit & 3;
    if (size > 2) return {"a feature map of an unknown size of elements", size, 2};
    map->bits = 8u << size;
    const uint32_t format = precision >> 6 & 3;
    if (format > 1) return {"a feature map of an unknown format", format, 1};
    map->is_nhcwb16 = format == 1;
    const auto zero_point = r_.get(codes.zero_point);
    map->zero_point = map->is_signed ? static_cast<int16_t>(zero_point) : static_cast<int32_t>(zero_point);
    return {};
  }

  Problem check_alignment(const FeatureMap& map) const {
    const uint64_t alignment = map.is_nhcwb16 ? 16 : map.element_bytes();
    const uint32_t tiles_x = map.w > map.width0 ? 2 : 1;
    const uint32_t tiles_y = map.h > least(map.height0, tiles_x == 2 ? map.height1 : map.height0) ? 2 : 1;
    for (uint32_t tile = 0; tile < 4; ++tile) {
      if (tile % 2 >= tiles_x || tile / 2 >= tiles_y) continue;
      if (map.base[tile] % alignment != 0)
        return {"a feature map's base is not aligned", static_cast<int64_t>(map.base[tile]),
                static_cast<int64_t>(alignment)};
    }
    const uint64_t x = map.is_nhcwb16 ? 0 : map.stride_x, c = map.is_nhcwb16 ? map.stride_c : 0;
    const uint64_t strides[] = {x, map.stride_y, c};
    for (const uint64_t stride : strides) {
      if (stride % alignment != 0)
        return {"a feature map's stride is not aligned", static_cast<int64_t>(stride),
                static_cast<int64_t>(alignment)};
    }
    return {};
  }

  Problem read_ofm() {
    if (const Problem p = need(kOfmWidthM1, kOfmHeightM1, kOfmDepthM1)) return p;
    k_.ofm.w = r_.get(kOfmWidthM1) + 1;
    k_.ofm.h = r_.get(kOfmHeightM1) + 1;
    k_.ofm.d = r_.get(kOfmDepthM1) + 1;
    if (const Problem p = read_precision(kOfm, 1, &k_.ofm)) return p;
    return read_map(kOfm, &k_.ofm);
  }

  Problem read_window() {
    if (const Problem p = need(kIfmPadTop, kIfmPadLeft, kIfmPadBottom, kIfmPadRight, kKernelWidthM1,
                               kKernelHeightM1, kKernelStride, kIfmUpscale))
      return p;
    k_.pad_top = r_.get(kIfmPadTop), k_.pad_left = r_.get(kIfmPadLeft);
    k_.pad_bottom = r_.get(kIfmPadBottom), k_.pad_right = r_.get(kIfmPadRight);
    if (most(k_.pad_top, k_.pad_left) > kMaxPadBefore)
      return {"padding before the input", most(k_.pad_top, k_.pad_left), kMaxPadBefore};
    if (most(k_.pad_bottom, k_.pad_right) > kMaxPadAfter)
      return {"padding after the input", most(k_.pad_bottom, k_.pad_right), kMaxPadAfter};
    k_.window_w = r_.get(kKernelWidthM1) + 1;
    k_.window_h = r_.get(kKernelHeightM1) + 1;
    const uint32_t stride = r_.get(kKernelStride);
    k_.stride_x = (stride & 1) + (stride >> 6 & 1) * 2 + 1;
    k_.stride_y = (stride >> 1 & 1) + (stride >> 9 & 1) * 2 + 1;
    k_.is_part_kernel_first = (stride >> 2 & 1) != 0;
    k_.dilation_x = (stride >> 3 & 1) + 1;
    k_.dilation_y = (stride >> 4 & 1) + 1;
    if ((stride >> 5 & 1) != 0) return {"decomposition of kernels is not modelled", 1, 0};
    if (most(k_.stride_x, k_.stride_y) > 3) return {"a stride", most(k_.stride_x, k_.stride_y), 3};
    if ((k_.window_w - 1) % k_.dilation_x != 0 || (k_.window_h - 1) % k_.dilation_y != 0)
      return {"a dilated kernel ends between two taps", k_.window_w, k_.window_h};
    if (r_.get(kIfmUpscale) > 2) return {"an unknown upscaling", r_.get(kIfmUpscale), 2};
    k_.upscale = static_cast<Upscale>(r_.get(kIfmUpscale));
    return check_window();
  }

  Problem check_window() const {
    const uint64_t taps = uint64_t{k_.window_h} * k_.window_w;
    if (k_.is_convolution()) {
      if (k_.window_h > kMaxWindow) return {"a dilated kernel's height", k_.window_h, kMaxWindow};
      if (taps > kMaxTaps) return {"a dilated kernel's taps", static_cast<int64_t>(taps), kMaxTaps};
      return {};
    }
    if (k_.is_part_kernel_first) return {"a pool has no weights to order", 1, 0};
    if (k_.pool == PoolMode::kReduceSum) {
      return taps == 1 ? Problem{} : Problem{"REDUCE_SUM has no window", static_cast<int64_t>(taps), 1};
    }
    if (taps > kMaxPoolTaps) return {"a pool's taps", static_cast<int64_t>(taps), kMaxPoolTaps};
    if (k_.pool != PoolMode::kAverage) return {};
    const bool is_padded = (k_.pad_top | k_.pad_left | k_.pad_bottom | k_.pad_right) != 0;
    if (is_padded) {
      if (most(k_.window_h, k_.window_w) > kMaxPaddedPool)
        return {"an average pool with padding: its window", most(k_.window_h, k_.window_w), kMaxPaddedPool};
      if (most(k_.pad_top, k_.pad_left) > 3)
        return {"an average pool's padding before", most(k_.pad_top, k_.pad_left), 3};
      if (most(k_.pad_bottom, k_.pad_right) > 4)
        return {"an average pool's padding after", most(k_.pad_bottom, k_.pad_right), 4};
      return {};
    }
    if (k_.window_h > kMaxPoolWindow) return {"an average pool's height", k_.window_h, kMaxPoolWindow};
    return {};
  }

  Problem read_ifm() {
    if (const Problem p = read_precision(kIfm, 2, &k_.ifm)) return p;
    if (const Problem p = need(kIfmDepthM1)) return p;
    k_.ifm.d = r_.get(kIfmDepthM1) + 1;
    k_.ifm.h = k_.ofm.h, k_.ifm.w = k_.ofm.w;
    if (k_.kind != KernelKind::kElementwise) {
      const auto extent = [&](uint32_t out, uint32_t stride, uint32_t window, uint32_t before,
                              uint32_t after) {
        const int64_t rows = int64_t{out - 1} * stride + window - before - after;
        return k_.upscale == Upscale::kNone ? rows : (rows + 1) / 2;
      };
      const int64_t h = extent(k_.ofm.h, k_.stride_y, k_.window_h, k_.pad_top, k_.pad_bottom);
      const int64_t w = extent(k_.ofm.w, k_.stride_x, k_.window_w, k_.pad_left, k_.pad_right);
      if (h < 1 || w < 1 || h > 65536 || w > 65536) return {"the input's extent", h < 1 ? h : w, 65536};
      k_.ifm.h = static_cast<uint32_t>(h), k_.ifm.w = static_cast<uint32_t>(w);
    }
    const bool sums_depth =
        k_.kind == KernelKind::kConv || (k_.kind == KernelKind::kPool && k_.pool == PoolMode::kReduceSum);
    if (!sums_depth && k_.ifm.d != k_.ofm.d) return {"input and output differ in depth", k_.ifm.d, k_.ofm.d};
    if (k_.kind == KernelKind::kPool && sums_depth && k_.ofm.d != 1)
      return {"REDUCE_SUM has one output channel", k_.ofm.d, 1};
    if (sums_depth && k_.ifm.bits == 32 && k_.ifm.is_nhcwb16)
      return {"REDUCE_SUM of 32 bits reads NHWC", 1, 0};
    if (k_.is_convolution() && k_.ifm.bits == 32) return {"a convolution of 32-bit elements", 32, 16};
    return read_map(kIfm, &k_.ifm);
  }

  Problem read_operands() {
    const ElementwiseMode mode = k_.elementwise;
    k_.scale_mode = r_.get(kIfmPrecision) >> 8 & 3;
    if (k_.scale_mode > 2) return {"an unknown mode of operand scales", k_.scale_mode, 2};
    if (!is_unary(mode)) {
      if (const Problem p = need(kIfm2Broadcast)) return p;
      const uint32_t broadcast = r_.get(kIfm2Broadcast);
      k_.broadcast_h = (broadcast & 1) != 0;
      k_.broadcast_w = (broadcast & 2) != 0;
      k_.broadcast_c = (broadcast & 4) != 0;
      k_.ifm2_is_first = (broadcast >> 6 & 1) != 0;
      k_.has_scalar = (broadcast >> 7 & 1) != 0;
      k_.has_ifm2 = !k_.has_scalar;
      if (const Problem p = read_precision(kIfm2, 2, &k_.ifm2)) return p;
      if (k_.has_scalar) {
        if (const Problem p = need(kIfm2Scalar)) return p;
        k_.scalar =
            k_.ifm2.is_signed ? r_.get_signed(kIfm2Scalar) : static_cast<int32_t>(r_.get(kIfm2Scalar));
      } else {
        k_.ifm2.h = k_.broadcast_h ? 1 : k_.ofm.h;
        k_.ifm2.w = k_.broadcast_w ? 1 : k_.ofm.w;
        k_.ifm2.d = k_.broadcast_c ? 1 : k_.ofm.d;
        if (const Problem p = read_map(kIfm2, &k_.ifm2)) return p;
      }
    }
    if (mode != ElementwiseMode::kAdd && mode != ElementwiseMode::kSub) return {};
    if (k_.ifm.bits == 32) return {};
    if (const Problem p = need(kOpaScale)) return p;
    k_.opa = {r_.payload(kOpaScale), r_.parameter(kOpaScale) & 63u};
    if (k_.scale_mode != 0) return {};
    if (const Problem p = need(kOpbScale)) return p;
    k_.opb = {r_.payload(kOpbScale), 0};
    return {};
  }

  Problem read_weights() {
    if (const Problem p = need(kWeightRegion, kScaleRegion)) return p;
    for (uint16_t core = 0; core < k_.cores; ++core) {
      const auto weight = static_cast<Cmd1>(core == 0 ? kWeightBase : kWeight1Base);
      const auto scale = static_cast<Cmd1>(core == 0 ? kScaleBase : kScale1Base);
      const auto weight_length = static_cast<Cmd1>(weight + 1), scale_length = static_cast<Cmd1>(scale + 1);
      if (const Problem p = need(weight, weight_length, scale, scale_length)) return p;
      k_.weights[core] = {r_.get(kWeightRegion) & 7, r_.address(weight), r_.payload(weight_length)};
      k_.scales[core] = {r_.get(kScaleRegion) & 7, r_.address(scale), r_.payload(scale_length)};
      const ByteRange ranges[] = {k_.weights[core], k_.scales[core]};
      for (const ByteRange& range : ranges) {
        if (range.begin % 16 != 0 || range.bytes % 16 != 0)
          return {"weights and scales are aligned to 16 bytes", static_cast<int64_t>(range.begin),
                  static_cast<int64_t>(range.bytes)};
      }
      const uint32_t channels = (k_.ofm.d + k_.cores - 1 - core) / k_.cores;
      if (k_.scales[core].bytes < uint64_t{channels} * 10)
        return {"SCALE_LENGTH", static_cast<int64_t>(k_.scales[core].bytes), int64_t{channels} * 10};
    }
    return {};
  }

  Problem read_output() {
    if (const Problem p = need(kActivation, kActivationMin, kActivationMax)) return p;
    const uint32_t precision = r_.get(kOfmPrecision);
    const uint32_t rounding = precision >> 14 & 3;
    if (rounding == 3) return {"an unknown rounding", rounding, 2};
    k_.rounding = static_cast<Rounding>(rounding);
    k_.has_scale = (precision >> 8 & 1) != 0;
    if (k_.has_scale) {
      if (k_.is_convolution()) return {"a convolution with OFM_SCALE is not modelled", 1, 0};
      if (const Problem p = need(kOfmScale)) return p;
      k_.ofm_scale = {r_.payload(kOfmScale), r_.parameter(kOfmScale) & 63u};
    }
    const uint32_t activation = r_.get(kActivation);
    k_.activation = activation & 31;
    k_.clip = activation >> 12 & 7;
    if (k_.activation != 0 && k_.activation < 16)
      return {"the units for tanh and sigmoid are not modelled", k_.activation, 0};
    if (k_.activation >= 24) return {"a table's number", k_.table(), 7};
    if (k_.clip == 1 || k_.clip == 4 || k_.clip > 5) return {"an unknown clip range", k_.clip, 5};
    k_.min = r_.get_signed(kActivationMin), k_.max = r_.get_signed(kActivationMax);
    if (!k_.ofm.is_signed) {
      k_.min = static_cast<int32_t>(r_.get(kActivationMin));
      k_.max = static_cast<int32_t>(r_.get(kActivationMax));
    }
    return {};
  }

  Problem read_blocks() {
    if (const Problem p = need(kOfmBlkWidthM1, kOfmBlkHeightM1, kOfmBlkDepthM1, kBlockdep, kAccFormat))
      return p;
    if (const Problem p = need(kIfmIbEnd, kAbStart)) return p;
    k_.block_w = r_.get(kOfmBlkWidthM1) + 1;
    k_.block_h = r_.get(kOfmBlkHeightM1) + 1;
    k_.block_d = r_.get(kOfmBlkDepthM1) + 1;
    if (k_.block_h % config_.unit_h != 0 || k_.block_h > kMaxBlockH)
      return {"a block's height", k_.block_h, kMaxBlockH};
    if (k_.block_w % config_.unit_w != 0 || k_.block_w > kMaxBlockW)
      return {"a block's width", k_.block_w, kMaxBlockW};
    if (k_.block_d % config_.unit_d != 0 || k_.block_d > kMaxBlockD)
      return {"a block's depth", k_.block_d, kMaxBlockD};
    k_.blockdep = r_.get(kBlockdep);
    if (k_.blockdep > 3) return {"BLOCKDEP", k_.blockdep, 3};
    if (r_.get(kAccFormat) > 1) return {"an unknown format of accumulators", r_.get(kAccFormat), 1};
    k_.is_acc40 = r_.get(kAccFormat) == 1;
    k_.ib_end = r_.get(kIfmIbEnd), k_.ab_start = r_.get(kAbStart);
    if (k_.has_ifm2) {
      if (const Problem p = need(kIfm2IbStart)) return p;
      k_.ifm2_ib_start = r_.get(kIfm2IbStart);
    }
    return {};
  }

  const Config& config_;
  const Registers& r_;
  Kernel& k_;
};

}  // namespace

Problem read_kernel(const Config& config, const Registers& registers, const Command& operation,
                    Kernel* kernel) {
  return KernelReader(config, registers, kernel).read(operation);
}

Problem read_transfer(const Config& config, const Registers& registers, Transfer* transfer) {
  *transfer = {};
  constexpr Cmd0 kRegions[] = {kDma0SrcRegion, kDma0DstRegion};
  for (const Cmd0 code : kRegions) {
    if (!registers.is_set(code)) return {"a transfer uses a register that the stream did not set", code, 0};
  }
  constexpr Cmd1 kAddresses[] = {kDma0Src, kDma0Dst, kDma0Len};
  for (const Cmd1 code : kAddresses) {
    if (!registers.is_set(code)) return {"a transfer uses a register that the stream did not set", code, 0};
  }
  const uint32_t source = registers.get(kDma0SrcRegion), destination = registers.get(kDma0DstRegion);
  if ((source & ~7u) != 0) return {"a transfer from SHRAM, or with strides, is not modelled", source, 7};
  if ((destination >> 9) != 0) return {"a transfer with strides is not modelled", destination, 7};
  const uint64_t length = registers.address(kDma0Len);
  transfer->from = {source, registers.address(kDma0Src), length};
  transfer->to_shram = (destination >> 8 & 1) != 0;
  transfer->to = {transfer->to_shram ? 0 : destination & 7, registers.address(kDma0Dst), length};
  const bool aligns_memory = !config.is_u65, aligns_to = aligns_memory || transfer->to_shram;
  if ((aligns_memory && (transfer->from.begin % 16 != 0 || length % 16 != 0)) ||
      (aligns_to && transfer->to.begin % 16 != 0))
    return {"a transfer is aligned to 16 bytes", static_cast<int64_t>(transfer->from.begin),
            static_cast<int64_t>(transfer->to.begin)};
  return {};
}

uint32_t tile_ranges(const FeatureMap& map, ByteRange ranges[4]) {
  uint32_t count = 0;
  const uint32_t left = least(map.w, map.width0);
  for (uint32_t tile = 0; tile < 4; ++tile) {
    const uint32_t w = tile % 2 == 0 ? left : map.w - left;
    const uint32_t upper = least(map.h, tile % 2 == 0 ? map.height0 : map.height1);
    const uint32_t h = tile < 2 ? upper : map.h - upper;
    if (w == 0 || h == 0) continue;
    uint64_t last = uint64_t{h - 1} * map.stride_y;
    if (map.is_nhcwb16) {
      last += uint64_t{(map.d - 1) / 16} * map.stride_c + uint64_t{w} * 16 * map.element_bytes();
    } else {
      last += uint64_t{w - 1} * map.stride_x + uint64_t{map.d} * map.element_bytes();
    }
    ranges[count++] = {map.region, map.base[tile], last};
  }
  return count;
}

}  // namespace qplan::ethosu
