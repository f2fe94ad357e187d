// Executes one kernel on the memory: convolutions, pools and elementwise kernels.
#include <algorithm>
#include <cstdlib>
#include <string>

#include "src/ethosu/isa/weights.h"
#include "src/ethosu/sim/machine.h"

namespace qplan::ethosu::sim {
namespace {

int64_t read_element(const uint8_t* from, const FeatureMap& map) {
  uint32_t bits = 0;
  for (uint32_t b = 0; b < map.element_bytes(); ++b) bits |= uint32_t{from[b]} << (8 * b);
  if (map.bits == 32) return static_cast<int32_t>(bits);
  if (map.bits == 16) return map.is_signed ? static_cast<int16_t>(bits) : static_cast<int64_t>(bits);
  return map.is_signed ? static_cast<int8_t>(bits) : static_cast<int64_t>(bits);
}

// More than any network has in one kernel; the simulator keeps them decoded.
constexpr uint32_t kMaxWeights = 1u << 28;

bool is_same_map(const FeatureMap& a, const FeatureMap& b) {
  return a.region == b.region && a.bits == b.bits && a.is_nhcwb16 == b.is_nhcwb16 && a.width0 == b.width0 &&
         a.height0 == b.height0 && a.height1 == b.height1 && std::equal(a.base, a.base + 4, b.base) &&
         a.stride_x == b.stride_x && a.stride_y == b.stride_y && a.stride_c == b.stride_c && a.h == b.h &&
         a.w == b.w && a.d == b.d;
}

}  // namespace

bool Executor::fail(qplan_npu_status status, const char* text, int64_t found, int64_t limit) {
  fault_.status = status;
  fault_.text = text;
  if (found != 0 || limit != 0)
    fault_.text += ": " + std::to_string(found) + ", limit " + std::to_string(limit);
  return false;
}

bool Executor::goes_on() {
  return stop_ == nullptr || !stop_->load(std::memory_order_relaxed) ||
         fail(QPLAN_NPU_E_CANCELLED, "the job was stopped");
}

bool Executor::fetch(const FeatureMap& map, Elements* elements) {
  elements->h = map.h, elements->w = map.w, elements->d = map.d;
  elements->values.resize(uint64_t{map.h} * map.w * map.d);
  const int32_t zero_point = map.bits == 32 ? 0 : map.zero_point;
  int32_t* to = elements->values.data();
  uint8_t bytes[4];
  for (uint32_t y = 0; y < map.h; ++y) {
    if (!goes_on()) return false;
    for (uint32_t x = 0; x < map.w; ++x) {
      for (uint32_t c = 0; c < map.d; ++c) {
        if (!memory_.read(progress_, map.region, map.address(y, x, c), map.element_bytes(), bytes, &fault_))
          return false;
        *to++ = static_cast<int32_t>(read_element(bytes, map) - zero_point);
      }
    }
  }
  return true;
}

bool Executor::fetch_bytes(const ByteRange& range, std::vector<uint8_t>* bytes) {
  const RegionMemory& region = memory_.region(range.region);
  if (range.begin > region.bytes || range.bytes > region.bytes - range.begin)
    return fail(QPLAN_NPU_E_BUS, "weights or scales are beyond their region",
                static_cast<int64_t>(range.begin + range.bytes), static_cast<int64_t>(region.bytes));
  bytes->resize(range.bytes);
  for (uint64_t b = 0; b < range.bytes; ++b) {
    if (!memory_.read(progress_, range.region, range.begin + b, 1, bytes->data() + b, &fault_)) return false;
  }
  return true;
}

// A kernel that writes what it reads: only an elementwise one may, element by element.
bool Executor::check_overlap() {
  const auto meets = [&](const FeatureMap& map) {
    if (map.region != k_.ofm.region) return false;
    ByteRange read[4], written[4];
    const uint32_t reads = tile_ranges(map, read), writes = tile_ranges(k_.ofm, written);
    bool may = false;
    for (uint32_t r = 0; r < reads; ++r) {
      for (uint32_t w = 0; w < writes; ++w)
        may |= read[r].begin < written[w].begin + written[w].bytes &&
               written[w].begin < read[r].begin + read[r].bytes;
    }
    if (!may) return false;
    if (k_.kind == KernelKind::kElementwise && is_same_map(map, k_.ofm)) return false;
    // Byte by byte: the maps may be woven into each other.
    for (uint32_t y = 0; y < k_.ofm.h; ++y) {
      for (uint32_t x = 0; x < k_.ofm.w; ++x) {
        for (uint32_t c = 0; c < k_.ofm.d; ++c) {
          const Touch* touch = memory_.touch(k_.ofm.region, k_.ofm.address(y, x, c));
          if (touch != nullptr && touch->kernel_read == progress_.kernels) return true;
        }
      }
    }
    return false;
  };
  if (meets(k_.ifm) || (k_.has_ifm2 && meets(k_.ifm2)))
    return fail(QPLAN_NPU_E_HAZARD, "a kernel writes what it reads itself");
  return true;
}

bool Executor::load_core(uint32_t core) {
  WeightOrder order;
  order.outputs = (k_.ofm.d + k_.cores - 1 - core) / k_.cores;
  if (order.outputs == 0) return true;
  order.is_depthwise = k_.kind == KernelKind::kDepthwise;
  order.inputs = order.is_depthwise ? 1 : k_.ifm.d;
  order.taps_h = k_.taps_h(), order.taps_w = k_.taps_w();
  order.dilation_y = k_.dilation_y, order.dilation_x = k_.dilation_x;
  order.block_d = k_.cores == 1 ? k_.block_d : (k_.block_d + 1 - core) / 2;
  order.unit_d = config_.unit_d;
  order.is_part_kernel_first = k_.is_part_kernel_first;
  order.is_ifm16 = k_.ifm.bits == 16;
  std::vector<uint8_t> bytes;
  if (!fetch_bytes(k_.weights[core], &bytes)) return false;
  const uint64_t most = num_ordered_weights(order);
  if (most > kMaxWeights)
    return fail(QPLAN_NPU_E_ILLEGAL, "a kernel's weights", static_cast<int64_t>(most), int64_t{kMaxWeights});
  std::vector<int16_t> ordered(most);
  uint64_t count = 0;
  if (const Problem p = decode_weights(bytes.data(), bytes.size(), ordered.data(), ordered.size(), &count))
    return fail(QPLAN_NPU_E_ILLEGAL, p.text, p.found, p.limit);
  if (count != ordered.size())
    return fail(QPLAN_NPU_E_ILLEGAL, "a stream has fewer weights than its kernel needs",
                static_cast<int64_t>(count), static_cast<int64_t>(ordered.size()));
  const int16_t* next = ordered.data();
  bool has_stray = false;
  visit_weights(order, [&](uint32_t o, uint32_t ky, uint32_t kx, uint32_t i) {
    const int16_t weight = *next++;
    if (o >= order.outputs || ky >= order.taps_h || i >= order.inputs) {
      has_stray |= weight != 0;
      return;
    }
    const uint32_t output = core + o * k_.cores;
    weights_[((uint64_t{ky} * order.taps_w + kx) * order.inputs + i) * k_.ofm.d + output] = weight;
    weight_sums_[output] += static_cast<uint64_t>(std::abs(weight));
  });
  if (has_stray) return fail(QPLAN_NPU_E_ILLEGAL, "a weight outside of the kernel is not zero");
  if (!fetch_bytes(k_.scales[core], &bytes)) return false;
  for (uint32_t o = 0; o < order.outputs; ++o) {
    const ScaleEntry entry = read_scale_entry(bytes.data() + uint64_t{o} * kScaleEntryBytes);
    bias_[core + o * k_.cores] = entry.bias;
    scales_[core + o * k_.cores] = {entry.multiplier, entry.shift};
  }
  return true;
}

bool Executor::load_weights() {
  const uint64_t inputs = k_.kind == KernelKind::kDepthwise ? 1 : k_.ifm.d;
  const uint64_t count = inputs * k_.taps_h() * k_.taps_w() * k_.ofm.d;
  if (count > kMaxWeights)
    return fail(QPLAN_NPU_E_ILLEGAL, "a kernel's weights", static_cast<int64_t>(count), int64_t{kMaxWeights});
  weights_.assign(count, 0);
  weight_sums_.assign(k_.ofm.d, 0);
  bias_.assign(k_.ofm.d, 0);
  scales_.assign(k_.ofm.d, Scale{});
  for (uint32_t core = 0; core < k_.cores; ++core) {
    if (!load_core(core)) return false;
  }
  return true;
}

const int32_t* Executor::tap(int64_t y, int64_t x) const {
  if (y < 0 || x < 0 || y >= rows_ || x >= columns_) return nullptr;
  if (k_.upscale == Upscale::kNone) return ifm_.at(static_cast<uint32_t>(y), static_cast<uint32_t>(x));
  if (k_.upscale == Upscale::kZeros && (y % 2 != 0 || x % 2 != 0)) return nullptr;
  return ifm_.at(static_cast<uint32_t>(y / 2), static_cast<uint32_t>(x / 2));
}

template <typename Acc>
bool Executor::convolve_in(bool checks) {
  const bool is_depthwise = k_.kind == KernelKind::kDepthwise;
  const uint32_t outputs = k_.ofm.d, inputs = is_depthwise ? 1 : k_.ifm.d;
  const int64_t limit = int64_t{1} << (k_.is_acc40 ? 39 : 31);
  std::vector<Acc> acc(outputs), positive(checks ? outputs : 0);
  for (uint32_t y = 0; y < k_.ofm.h; ++y) {
    for (uint32_t x = 0; x < k_.ofm.w; ++x) {
      std::fill(acc.begin(), acc.end(), Acc{0});
      std::fill(positive.begin(), positive.end(), Acc{0});
      for (uint32_t ky = 0; ky < k_.taps_h(); ++ky) {
        for (uint32_t kx = 0; kx < k_.taps_w(); ++kx) {
          const int32_t* const data = tap(int64_t{y} * k_.stride_y + ky * k_.dilation_y - k_.pad_top,
                                          int64_t{x} * k_.stride_x + kx * k_.dilation_x - k_.pad_left);
          if (data == nullptr) continue;
          const int16_t* weight = weights_.data() + (uint64_t{ky} * k_.taps_w() + kx) * inputs * outputs;
          for (uint32_t i = 0; i < inputs; ++i, weight += outputs) {
            if (is_depthwise) {
              for (uint32_t o = 0; o < outputs; ++o) acc[o] += static_cast<Acc>(data[o]) * weight[o];
            } else {
              const Acc value = data[i];
              for (uint32_t o = 0; o < outputs; ++o) acc[o] += value * weight[o];
            }
            for (uint32_t o = 0; checks && o < outputs; ++o) {
              const Acc product = static_cast<Acc>(data[is_depthwise ? o : i]) * weight[o];
              if (product > 0) positive[o] += product;
            }
          }
          macs_ += uint64_t{inputs} * outputs;
        }
      }
      for (uint32_t o = 0; o < outputs; ++o) {
        const int64_t sum = int64_t{acc[o]} + bias_[o];
        if (checks) {
          // In whatever order the device adds, its sums are within these.
          const int64_t most = int64_t{positive[o]} + std::max<int64_t>(bias_[o], 0);
          const int64_t least = int64_t{acc[o]} - positive[o] + std::min<int64_t>(bias_[o], 0);
          if (most >= limit || least < -limit)
            return fail(QPLAN_NPU_E_ILLEGAL, "an accumulator may overflow", most >= limit ? most : least,
                        limit);
        }
        if (!put(y, x, o, scale(sum, scales_[o], k_.rounding))) return false;
      }
    }
  }
  return true;
}

bool Executor::convolve() {
  if (k_.kind == KernelKind::kDepthwise && k_.ifm.bits == 16)
    return fail(QPLAN_NPU_E_ILLEGAL, "a depthwise convolution of 16-bit elements is not modelled");
  if (!fetch(k_.ifm, &ifm_) || !load_weights() || !check_overlap()) return false;
  int64_t largest = 0;
  for (const int32_t value : ifm_.values) largest = std::max(largest, std::abs(int64_t{value}));
  int64_t bound = 0;
  for (uint32_t o = 0; o < k_.ofm.d; ++o)
    bound = std::max(bound, largest * static_cast<int64_t>(weight_sums_[o]) + std::abs(bias_[o]));
  if (bound < int64_t{1} << 31) return convolve_in<int32_t>(false);
  return convolve_in<int64_t>(bound >= int64_t{1} << (k_.is_acc40 ? 39 : 31));
}

bool Executor::pool() {
  const bool is_copy = k_.window_h == 1 && k_.window_w == 1;
  if (k_.ifm.bits == 16 && !is_copy)
    return fail(QPLAN_NPU_E_ILLEGAL, "a pool of 16-bit elements is not modelled");
  const bool is_padded = (k_.pad_top | k_.pad_left | k_.pad_bottom | k_.pad_right) != 0;
  if (k_.pool == PoolMode::kAverage && is_padded && k_.has_scale)
    return fail(QPLAN_NPU_E_ILLEGAL, "an average pool with padding has no OFM_SCALE");
  if (!fetch(k_.ifm, &ifm_) || !check_overlap()) return false;
  for (uint32_t y = 0; y < k_.ofm.h; ++y) {
    for (uint32_t x = 0; x < k_.ofm.w; ++x) {
      for (uint32_t c = 0; c < k_.ofm.d; ++c) {
        int64_t sum = 0, largest = INT64_MIN, taps = 0;
        if (!goes_on()) return false;
        for (uint32_t ky = 0; ky < k_.window_h; ky += k_.dilation_y) {
          for (uint32_t kx = 0; kx < k_.window_w; kx += k_.dilation_x) {
            const int32_t* const data =
                tap(int64_t{y} * k_.stride_y + ky - k_.pad_top, int64_t{x} * k_.stride_x + kx - k_.pad_left);
            if (data == nullptr) continue;
            ++taps;
            if (k_.pool == PoolMode::kReduceSum) {
              for (uint32_t i = 0; i < k_.ifm.d; ++i) sum += data[i];
            } else {
              sum += data[c];
              largest = std::max<int64_t>(largest, data[c]);
            }
          }
        }
        macs_ += static_cast<uint64_t>(taps);
        if (taps == 0) return fail(QPLAN_NPU_E_ILLEGAL, "a window of a pool is outside of the input");
        int64_t value = k_.pool == PoolMode::kMax ? largest : sum;
        if (std::abs(value) >= int64_t{1} << 31)
          return fail(QPLAN_NPU_E_ILLEGAL, "an accumulator may overflow", value, int64_t{1} << 31);
        if (k_.has_scale) {
          value = scale(value, k_.ofm_scale, k_.rounding);
        } else if (k_.pool == PoolMode::kAverage) {
          value = rounded_quotient(value, taps);
        }
        if (!put(y, x, c, value)) return false;
      }
    }
  }
  return true;
}

bool Executor::put(uint32_t y, uint32_t x, uint32_t c, int64_t value, bool has_zero_point) {
  const FeatureMap& ofm = k_.ofm;
  const bool is_plain = ofm.bits == 32 && !k_.uses_table();
  if (!is_plain) {
    if (has_zero_point) value += ofm.zero_point;
    int64_t low = k_.min, high = k_.max;
    if (k_.clip == 2) low = std::max<int64_t>(low, 0), high = std::min<int64_t>(high, 255);
    if (k_.clip == 3) low = std::max<int64_t>(low, -128), high = std::min<int64_t>(high, 127);
    if (k_.clip == 0 && ofm.bits == 8) {
      low = std::max<int64_t>(low, ofm.is_signed ? -128 : 0);
      high = std::min<int64_t>(high, ofm.is_signed ? 127 : 255);
    }
    value = std::clamp(value, std::min(low, high), high);
  }
  uint8_t bytes[4];
  const uint32_t size = ofm.element_bytes();
  if (k_.uses_table()) {
    const bool is_signed = k_.clip == 3 || (k_.clip == 0 && ofm.is_signed);
    const int64_t index = value - (is_signed ? -128 : 0);
    if (index < 0 || index > 255)
      return fail(QPLAN_NPU_E_ILLEGAL, "an index into a table of 256 entries", index, 255);
    if (size == 2) return fail(QPLAN_NPU_E_ILLEGAL, "tables of 16-bit entries are not modelled");
    if (size == 4 && k_.table() != 0)
      return fail(QPLAN_NPU_E_ILLEGAL, "a table of 32-bit entries other than the first is not modelled");
    const uint64_t offset = uint64_t{k_.table()} * 256 + static_cast<uint64_t>(index) * size;
    if (!memory_.read_table(progress_, offset, size, bytes, &fault_)) return false;
  } else {
    for (uint32_t b = 0; b < size; ++b)
      bytes[b] = static_cast<uint8_t>(static_cast<uint64_t>(value) >> (8 * b));
  }
  const uint32_t across = ceil_div(ofm.w, k_.block_w), deep = ceil_div(ofm.d, k_.block_d);
  const uint32_t block = (y / k_.block_h * across + x / k_.block_w) * deep + c / k_.block_d;
  const auto from_end = static_cast<uint8_t>(std::min<uint32_t>(k_.blocks() - 1 - block, 255));
  return memory_.write(progress_, ofm.region, ofm.address(y, x, c), size, bytes, from_end, &fault_);
}

bool Executor::run() {
  if (k_.rounding == Rounding::kTruncate)
    return fail(QPLAN_NPU_E_ILLEGAL, "truncating rounding is not modelled");
  const int64_t scale_h = int64_t{k_.ofm.h - 1} * k_.stride_y + k_.window_h;
  const int64_t scale_w = int64_t{k_.ofm.w - 1} * k_.stride_x + k_.window_w;
  rows_ = scale_h - k_.pad_top - k_.pad_bottom;
  columns_ = scale_w - k_.pad_left - k_.pad_right;
  if (config_.banks == 16 && !k_.uses_table()) memory_.overwrite_tables(progress_);
  if (k_.is_convolution()) return convolve();
  return k_.kind == KernelKind::kPool ? pool() : elementwise();
}

// ---- elementwise kernels

namespace {

// Fraction bits that operands of sums get before they are scaled.
constexpr uint32_t kSumBits8 = 20, kSumBits16 = 15;

int64_t shift_right(int64_t value, uint32_t by, Rounding rounding) { return scale(value, {1, by}, rounding); }

}  // namespace

// Operands less their zero points, in their order.
bool Executor::combine(int64_t a, int64_t b, int64_t* result) {
  const bool is_wide = k_.ifm.bits == 32;
  // The shift alone is applied to 32-bit operands.
  const Scale by = is_wide ? Scale{1, k_.ofm_scale.shift} : k_.ofm_scale;
  const auto scaled = [&](int64_t value) { return k_.has_scale ? scale(value, by, k_.rounding) : value; };
  switch (k_.elementwise) {
    case ElementwiseMode::kMul:
      *result = scaled(a * b);
      return true;
    case ElementwiseMode::kAdd:
    case ElementwiseMode::kSub: {
      if (!is_wide) {
        // Mode 1 scales the first operand, 2 the second: IFM's and IFM2's places, not the order.
        const uint32_t bits = k_.ifm.bits == 16 ? kSumBits16 : kSumBits8;
        const auto scale_operand = [&](int64_t value) {
          return scale(value * (int64_t{1} << bits), {k_.opa.multiplier, k_.opa.shift + bits},
                       Rounding::kDouble);
        };
        if (k_.scale_mode == 0) {
          if (k_.opa.shift != 0) return fail(QPLAN_NPU_E_ILLEGAL, "OPA_SCALE has a shift", k_.opa.shift, 0);
          a *= k_.opa.multiplier, b *= k_.opb.multiplier;
        } else if (k_.scale_mode == 1) {
          a = scale_operand(a), b *= int64_t{1} << (bits - 1);
        } else {
          b = scale_operand(b), a *= int64_t{1} << (bits - 1);
        }
        if (k_.opa.shift + bits > 63) return fail(QPLAN_NPU_E_ILLEGAL, "OPA_SCALE's shift", k_.opa.shift, 43);
        if (std::max(std::abs(a), std::abs(b)) >= int64_t{1} << 31)
          return fail(QPLAN_NPU_E_ILLEGAL, "a scaled operand may overflow", std::max(a, b), int64_t{1} << 31);
      }
      *result = scaled(k_.elementwise == ElementwiseMode::kAdd ? a + b : a - b);
      return true;
    }
    case ElementwiseMode::kMin:
      *result = std::min(a, b);
      return true;
    case ElementwiseMode::kMax:
      *result = std::max(a, b);
      return true;
    case ElementwiseMode::kLrelu:
      *result = a >= 0 ? a : scaled(a);
      return true;
    case ElementwiseMode::kAbs:
      *result = scaled(std::abs(a));
      return true;
    case ElementwiseMode::kClz: {
      const auto bits = static_cast<uint32_t>(a);
      int64_t zeros = 0;
      while (zeros < 32 && (bits >> (31 - zeros) & 1) == 0) ++zeros;
      *result = zeros;
      return true;
    }
    case ElementwiseMode::kShr:
      if (b < 0 || b > 63) return fail(QPLAN_NPU_E_ILLEGAL, "a shift by so many bits", b, 63);
      *result = shift_right(a, static_cast<uint32_t>(b), k_.rounding);
      return true;
    case ElementwiseMode::kShl:
      if (b < 0 || b > 31) return fail(QPLAN_NPU_E_ILLEGAL, "a shift by so many bits", b, 31);
      *result = static_cast<int32_t>(static_cast<uint32_t>(a) << b);
      return true;
  }
  return false;
}

bool Executor::elementwise() {
  if (!fetch(k_.ifm, &ifm_)) return false;
  if (k_.has_ifm2 && !fetch(k_.ifm2, &ifm2_)) return false;
  if (!check_overlap()) return false;
  const int64_t scalar = int64_t{k_.scalar} - (k_.ifm2.bits == 32 ? 0 : k_.ifm2.zero_point);
  for (uint32_t y = 0; y < k_.ofm.h; ++y) {
    if (!goes_on()) return false;
    for (uint32_t x = 0; x < k_.ofm.w; ++x) {
      for (uint32_t c = 0; c < k_.ofm.d; ++c) {
        const int64_t first = ifm_.at(y, x)[c];
        int64_t second = scalar;
        if (k_.has_ifm2) {
          second = ifm2_.at(k_.broadcast_h ? 0 : y, k_.broadcast_w ? 0 : x)[k_.broadcast_c ? 0 : c];
        }
        int64_t value = 0;
        if (!(k_.ifm2_is_first ? combine(second, first, &value) : combine(first, second, &value)))
          return false;
        if (!put(y, x, c, value)) return false;
      }
    }
  }
  return true;
}

}  // namespace qplan::ethosu::sim
