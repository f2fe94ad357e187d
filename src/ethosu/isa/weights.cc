#include "src/ethosu/isa/weights.h"

namespace qplan::ethosu {
namespace {

constexpr uint32_t kEndOfStream = 7, kNoZeroRuns = 6, kUncompressed = 7;
constexpr uint32_t kChunkSymbols = 12, kShortChunkSymbols = 8;
// A symbol whose quotient is larger than any value has is damaged.
constexpr uint32_t kMaxQuotient = 1u << 20;

// Bits from bit 0 of byte 0 on. Reading past the end gives zeros and is remembered.
class BitReader {
 public:
  BitReader(const uint8_t* bytes, uint64_t size) : bytes_(bytes), size_(size * 8) {}
  uint32_t read(uint32_t bits) {
    uint32_t value = 0;
    for (uint32_t b = 0; b < bits; ++b, ++at_) {
      if (at_ >= size_) {
        is_over_ = true;
        continue;
      }
      value |= (bytes_[at_ / 8] >> at_ % 8 & 1u) << b;
    }
    return value;
  }
  void align() { at_ = (at_ + 7) / 8 * 8; }
  bool is_at_end() const { return at_ >= size_; }
  bool is_over() const { return is_over_; }

 private:
  const uint8_t* bytes_;
  uint64_t size_, at_ = 0;
  bool is_over_ = false;
};

struct Fifo {
  static constexpr uint32_t kSize = 64;  // the two kinds of symbols are never further apart
  uint32_t values[kSize];
  uint32_t begin = 0, end = 0;
  bool is_empty() const { return begin == end; }
  bool is_full() const { return end - begin == kSize; }
  void push(uint32_t value) { values[end++ % kSize] = value; }
  uint32_t pop() { return values[begin++ % kSize]; }
};

// Quotients of the symbols of one chunk.
struct Chunk {
  uint32_t quotients[kChunkSymbols];
  uint32_t count = 0;
};

class Decoder {
 public:
  Decoder(const uint8_t* bytes, uint64_t size, int16_t* to, uint64_t capacity)
      : bits_(bytes, size), to_(to), capacity_(capacity) {}

  Problem run(uint64_t* count) {
    *count = 0;
    while (!bits_.is_at_end()) {
      zdiv_ = bits_.read(3);
      if (zdiv_ == kEndOfStream) {
        bits_.align();
        has_palette_ = false;
        continue;
      }
      if (const Problem p = read_slice()) return p;
    }
    *count = count_;
    return {};
  }

 private:
  Problem read_slice() {
    if (const Problem p = read_header()) return p;
    if (const Problem p = read_body()) return p;
    if (bits_.is_over()) return {"a weight stream ends within a slice", static_cast<int64_t>(count_), 0};
    return {};
  }

  Problem read_header() {
    if (zdiv_ > 3 && zdiv_ != kNoZeroRuns) return {"a weight stream's divisor of zero runs", zdiv_, 3};
    length_ = bits_.read(15) + 1;
    wdiv_ = bits_.read(3);
    if (wdiv_ == 6) return {"a weight stream's divisor", wdiv_, 5};
    truncates_ = bits_.read(1) != 0;
    is_new_ = bits_.read(1) != 0;
    const bool runs = zdiv_ != kNoZeroRuns;
    if (is_new_) {
      direct_offset_ = bits_.read(5);
      const uint32_t size = bits_.read(5);
      palette_size_ = size == 0 ? 0 : size + 1;
      palette_bits_ = bits_.read(3) + 2;
      for (uint32_t i = 0; i < palette_size_; ++i) palette_[i] = bits_.read(palette_bits_);
      has_palette_ = true;
    } else if (!has_palette_ || runs != has_runs_) {
      return {"a slice of weights needs a palette of its own", static_cast<int64_t>(count_), 0};
    }
    has_runs_ = runs;
    num_runs_ = runs ? length_ + (is_new_ ? 1 : 0) : 0;
    index_bits_ = palette_bits_;
    if (palette_size_ > 0) {
      index_bits_ = 0;
      while (1u << index_bits_ < palette_size_) ++index_bits_;
    }
    return {};
  }

  Problem read_body() {
    Fifo weights, runs;
    uint32_t num_weights = 0, num_runs = 0;  // symbols so far
    uint32_t code_sum = 0, ones = 0;         // of symbols that go on in the next chunk
    Chunk last_weights, last_runs;
    expects_run_ = has_runs_ && is_new_;
    for (;;) {
      const bool weights_on = num_weights < length_ && (!has_runs_ || num_weights < num_runs + 8);
      const bool runs_on = num_runs < num_runs_ && num_weights >= num_runs;
      Chunk new_weights, new_runs;
      const bool is_uncompressed = wdiv_ == kUncompressed;
      const uint32_t unary0 = weights_on && !is_uncompressed ? bits_.read(kChunkSymbols) : 0;
      const uint32_t run_bits = zdiv_ == 3 ? kShortChunkSymbols : kChunkSymbols;
      if (runs_on) {
        const uint32_t unary = bits_.read(run_bits);
        for (uint32_t b = 0; b < run_bits; ++b) {
          if ((unary >> b & 1) != 0) {
            ++ones;
            continue;
          }
          if (num_runs < num_runs_) new_runs.quotients[new_runs.count++] = ones, ++num_runs;
          ones = 0;
        }
      }
      if (weights_on && is_uncompressed) {
        const uint32_t symbols = index_bits_ > 5 ? kShortChunkSymbols : kChunkSymbols;
        for (uint32_t s = 0; s < symbols && num_weights < length_; ++s, ++num_weights)
          new_weights.quotients[new_weights.count++] = 0;
      } else if (weights_on) {
        uint32_t set = 0;
        for (uint32_t b = 0; b < kChunkSymbols; ++b) set += unary0 >> b & 1;
        uint32_t unary1 = bits_.read(set);
        for (uint32_t b = 0; b < kChunkSymbols; ++b) {
          uint32_t code = 0;
          if ((unary0 >> b & 1) != 0) code = 1 + (unary1 & 1), unary1 >>= 1;
          code_sum += code;
          if (code >= 2 && !truncates_) continue;
          if (num_weights < length_) new_weights.quotients[new_weights.count++] = code_sum, ++num_weights;
          code_sum = 0;
        }
      }
      if (code_sum > kMaxQuotient || ones > kMaxQuotient || bits_.is_over())
        return {"a weight stream ends within a symbol", static_cast<int64_t>(count_), 0};
      const uint32_t weight_bits = is_uncompressed ? index_bits_ : wdiv_;
      if (weights.end - weights.begin + last_weights.count > Fifo::kSize ||
          runs.end - runs.begin + last_runs.count > Fifo::kSize)
        return {"a weight stream's symbols are out of order", static_cast<int64_t>(count_), 0};
      for (uint32_t s = 0; s < last_weights.count; ++s)
        weights.push(last_weights.quotients[s] << weight_bits | bits_.read(weight_bits));
      for (uint32_t s = 0; s < last_runs.count; ++s)
        runs.push(last_runs.quotients[s] << zdiv_ | bits_.read(zdiv_));
      if (const Problem p = emit(&weights, &runs)) return p;
      if (!weights_on && !runs_on) break;
      last_weights = new_weights, last_runs = new_runs;
    }
    return {};
  }

  // Weights and runs, in turns, as far as both are known.
  Problem emit(Fifo* weights, Fifo* runs) {
    for (;;) {
      if (expects_run_) {
        if (runs->is_empty()) return {};
        for (uint32_t zeros = runs->pop(); zeros > 0; --zeros) {
          if (count_ == capacity_) return too_many();
          to_[count_++] = 0;
        }
        expects_run_ = false;
      } else {
        if (weights->is_empty()) return {};
        const uint32_t index = weights->pop();
        const uint32_t value =
            index < palette_size_ ? palette_[index] : index - palette_size_ + direct_offset_;
        const uint32_t magnitude = value >> 1;
        if (magnitude > static_cast<uint32_t>(kMaxWeight))
          return {"a weight's magnitude", magnitude, kMaxWeight};
        if (count_ == capacity_) return too_many();
        to_[count_++] = static_cast<int16_t>((value & 1) != 0 ? -static_cast<int32_t>(magnitude)
                                                              : static_cast<int32_t>(magnitude));
        expects_run_ = has_runs_;
      }
    }
  }
  Problem too_many() const {
    return {"a stream has more weights than its kernel", static_cast<int64_t>(count_) + 1,
            static_cast<int64_t>(capacity_)};
  }

  BitReader bits_;
  int16_t* to_;
  uint64_t capacity_, count_ = 0;
  bool has_palette_ = false, has_runs_ = false;
  bool truncates_ = false, is_new_ = false, expects_run_ = false;
  uint32_t zdiv_ = 0, wdiv_ = 0, length_ = 0, num_runs_ = 0;
  uint32_t direct_offset_ = 0, palette_size_ = 0, palette_bits_ = 2, index_bits_ = 0;
  uint32_t palette_[32] = {};
};

}  // namespace

uint64_t num_ordered_weights(const WeightOrder& w) {
  const uint32_t step = w.is_part_kernel_first || w.is_ifm16 ? 16 : 32;
  const uint32_t inputs = w.is_depthwise ? 1 : w.inputs;
  // Taps of all sub-kernels, each rounded up.
  uint64_t taps = 0;
  const uint32_t sub_h = 8 / w.dilation_y, sub_w = 8 / w.dilation_x;
  for (uint32_t y = 0; y < w.taps_h; y += sub_h) {
    for (uint32_t x = 0; x < w.taps_w; x += sub_w) {
      const uint32_t of_sub = least(sub_h, w.taps_h - y) * least(sub_w, w.taps_w - x);
      const bool rounds = w.is_part_kernel_first || w.is_depthwise;
      taps += rounds ? round_up(of_sub, w.is_part_kernel_first && w.is_ifm16 ? 2 : 4) : of_sub;
    }
  }
  uint64_t depth = 1;
  if (w.is_part_kernel_first) {
    depth = round_up(inputs, kIfmUnitDepth);
  } else if (!w.is_depthwise) {
    depth = round_up(inputs, step);
  }
  uint64_t outputs = uint64_t{w.outputs / w.block_d} * round_up(w.block_d, w.unit_d);
  outputs += round_up(w.outputs % w.block_d, w.unit_d);
  return outputs * depth * taps;
}

Problem decode_weights(const uint8_t* bytes, uint64_t size, int16_t* to, uint64_t capacity, uint64_t* count) {
  return Decoder(bytes, size, to, capacity).run(count);
}

void write_scale_entry(const ScaleEntry& entry, uint8_t* to) {
  const auto bias = static_cast<uint64_t>(entry.bias);
  for (uint32_t b = 0; b < 5; ++b) to[b] = static_cast<uint8_t>(bias >> (8 * b));
  for (uint32_t b = 0; b < 4; ++b) to[5 + b] = static_cast<uint8_t>(entry.multiplier >> (8 * b));
  to[9] = static_cast<uint8_t>(entry.shift & 63);
}

ScaleEntry read_scale_entry(const uint8_t* from) {
  uint64_t bias = 0;
  for (uint32_t b = 0; b < 5; ++b) bias |= uint64_t{from[b]} << (8 * b);
  if ((bias >> 39 & 1) != 0) bias |= ~uint64_t{0} << 40;
  ScaleEntry entry;
  entry.bias = static_cast<int64_t>(bias);
  for (uint32_t b = 0; b < 4; ++b) entry.multiplier |= uint32_t{from[5 + b]} << (8 * b);
  entry.shift = from[9] & 63u;
  return entry;
}

}  // namespace qplan::ethosu
