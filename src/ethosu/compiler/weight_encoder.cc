#include "src/ethosu/compiler/weight_encoder.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <functional>
#include <numeric>

namespace qplan::ethosu::compiler {
namespace {

constexpr size_t kMaxSlice = 32768;
// Each slice has a divisor of its own. A header takes 23 bits.
constexpr size_t kCompressedSlice = 2048;
constexpr uint32_t kNoZeroRuns = 6, kUncompressed = 7, kEnd = 7;
constexpr uint32_t kMaxDivisor = 5;
constexpr size_t kMaxPalette = 32;
constexpr size_t kNumValues = 512;  // sign and magnitude, up to 255
constexpr uint32_t kMaxDirectOffset = 31;
constexpr size_t kChunk = 12;  // codes

class BitWriter {
 public:
  void write(uint32_t value, uint32_t bits) {
    for (uint32_t b = 0; b < bits; ++b, ++at_) {
      if (at_ % 8 == 0) bytes_.push_back(0);
      bytes_.back() = static_cast<uint8_t>(bytes_.back() | (value >> b & 1) << at_ % 8);
    }
  }
  std::vector<uint8_t> finish() {
    write(kEnd, 3);
    while (at_ % 8 != 0) write(1, 1);
    while (bytes_.size() % 16 != 0) bytes_.push_back(0xff);
    return std::move(bytes_);
  }

 private:
  std::vector<uint8_t> bytes_;
  uint64_t at_ = 0;
};

// Bit 0 is the sign.
uint32_t sign_magnitude(int16_t weight) {
  return static_cast<uint32_t>(std::abs(weight)) << 1 | (weight < 0 ? 1 : 0);
}

using Histogram = std::array<uint64_t, kNumValues>;

// What a slice's symbols stand for: the palette's values first, the others from direct_offset on after them.
struct Palette {
  std::vector<uint32_t> values;
  uint32_t direct_offset = 0;
  uint32_t value_bits = 2;
  std::array<uint32_t, kNumValues> index{};  // of each value

  uint64_t bits() const { return 13 + values.size() * value_bits; }
};

Palette make_palette(const Histogram& histogram, std::vector<uint32_t> values) {
  Palette palette;
  palette.values = std::move(values);
  // One entry would be written as none.
  if (palette.values.size() == 1) palette.values.push_back(palette.values[0]);
  std::array<bool, kNumValues> is_in{};
  uint32_t largest = 0;
  for (const uint32_t value : palette.values) is_in[value] = true, largest = std::max(largest, value);
  palette.direct_offset = kMaxDirectOffset;
  for (uint32_t v = 0; v < kNumValues; ++v) {
    if (histogram[v] == 0) continue;
    largest = std::max(largest, v);
    if (!is_in[v]) palette.direct_offset = std::min(palette.direct_offset, v);
  }
  palette.value_bits = std::max(2u, static_cast<uint32_t>(std::bit_width(largest)));
  const auto size = static_cast<uint32_t>(palette.values.size());
  for (uint32_t v = palette.direct_offset; v < kNumValues; ++v)
    palette.index[v] = size + v - palette.direct_offset;
  for (uint32_t i = size; i-- > 0;) palette.index[palette.values[i]] = i;
  return palette;
}

// Bits of a symbol in a slice with a divisor: a quotient in unary, and a remainder.
uint64_t symbol_bits(uint32_t index, uint32_t divisor) { return (index >> divisor) + 1 + divisor; }

uint64_t compressed_bits(const Histogram& histogram, const Palette& palette, uint32_t divisor) {
  uint64_t bits = 0;
  for (size_t v = 0; v < kNumValues; ++v) {
    if (histogram[v] != 0) bits += histogram[v] * symbol_bits(palette.index[v], divisor);
  }
  return bits;
}

uint32_t best_divisor(const Histogram& histogram, const Palette& palette, uint64_t* bits) {
  uint32_t best = 0;
  *bits = UINT64_MAX;
  for (uint32_t divisor = 0; divisor <= kMaxDivisor; ++divisor) {
    const uint64_t cost = compressed_bits(histogram, palette, divisor);
    if (cost < *bits) *bits = cost, best = divisor;
  }
  return best;
}

// Bits of an index of fixed length: of the palette alone where it has all values, else of the values.
uint32_t index_bits(const Palette& palette, bool is_complete) {
  return is_complete ? static_cast<uint32_t>(std::bit_width(palette.values.size() - 1)) : palette.value_bits;
}

void write_header(size_t count, uint32_t divisor, bool is_first, const Palette& palette, BitWriter* out) {
  out->write(kNoZeroRuns, 3);
  out->write(static_cast<uint32_t>(count - 1), 15);
  out->write(divisor, 3);
  out->write(0, 1);  // WTRUNC
  out->write(is_first ? 1 : 0, 1);
  if (!is_first) return;
  out->write(palette.values.empty() ? 0 : palette.direct_offset, 5);
  out->write(palette.values.empty() ? 0 : static_cast<uint32_t>(palette.values.size() - 1), 5);
  out->write(palette.value_bits - 2, 3);
  for (const uint32_t value : palette.values) out->write(value, palette.value_bits);
}

// Codes of 0 to 2 whose sums are the quotients, 12 in a chunk; the remainders of a chunk's symbols follow the
// next chunk.
void write_symbols(std::span<const uint32_t> symbols, uint32_t divisor, BitWriter* out) {
  std::array<uint8_t, kChunk> codes{};
  size_t count = 0;
  std::vector<uint32_t> before, now;  // remainders
  const auto end_chunk = [&] {
    for (const uint8_t code : codes) out->write(code > 0 ? 1 : 0, 1);
    for (const uint8_t code : codes) {
      if (code > 0) out->write(code > 1 ? 1 : 0, 1);
    }
    for (const uint32_t remainder : before) out->write(remainder, divisor);
    before = std::move(now);
    now.clear();
    codes.fill(0);
    count = 0;
  };
  const auto put = [&](uint8_t code) {
    if (count == kChunk) end_chunk();
    codes[count++] = code;
  };
  for (const uint32_t symbol : symbols) {
    uint32_t quotient = symbol >> divisor;
    for (; quotient >= 2; quotient -= 2) put(2);
    put(static_cast<uint8_t>(quotient));
    now.push_back(symbol & ((1u << divisor) - 1));
  }
  end_chunk();
  for (const uint32_t remainder : before) out->write(remainder, divisor);
}

Histogram count(std::span<const uint32_t> values) {
  Histogram histogram{};
  for (const uint32_t value : values) ++histogram[value];
  return histogram;
}

}  // namespace

// Two ways, and the shorter one: indices of fixed length, or the values by their frequency with a divisor for
// each slice.
std::vector<uint8_t> encode_weights(std::span<const int16_t> weights) {
  std::vector<uint32_t> values;
  values.reserve(weights.size());
  for (const int16_t weight : weights) values.push_back(sign_magnitude(weight));
  const Histogram histogram = count(values);
  std::vector<uint32_t> used;
  for (uint32_t v = 0; v < kNumValues; ++v) {
    if (histogram[v] != 0) used.push_back(v);
  }
  std::ranges::stable_sort(used, std::greater(), [&](uint32_t v) { return histogram[v]; });

  Palette best = make_palette(histogram, {});
  bool is_compressed = false;
  const bool is_complete = used.size() <= kMaxPalette;
  if (is_complete) {
    Palette whole = make_palette(histogram, used);
    if (index_bits(whole, true) < whole.value_bits) best = std::move(whole);
  }
  uint64_t least = best.bits() + values.size() * index_bits(best, !best.values.empty());
  for (size_t size = 0; size <= std::min(kMaxPalette, used.size()); ++size) {
    Palette palette = make_palette(histogram, {used.begin(), used.begin() + static_cast<int64_t>(size)});
    uint64_t bits = 0;
    (void)best_divisor(histogram, palette, &bits);
    if (bits + palette.bits() >= least) continue;
    least = bits + palette.bits();
    best = std::move(palette);
    is_compressed = true;
  }
  // Without a palette the values are themselves.
  if (best.values.empty()) {
    best.direct_offset = 0;
    std::iota(best.index.begin(), best.index.end(), 0u);
  }

  BitWriter out;
  const size_t most = is_compressed ? kCompressedSlice : kMaxSlice;
  for (size_t begin = 0; begin < values.size(); begin += most) {
    const std::span<const uint32_t> slice(values.data() + begin, std::min(most, values.size() - begin));
    std::vector<uint32_t> symbols;
    for (const uint32_t value : slice) symbols.push_back(best.index[value]);
    uint64_t bits = 0;
    const uint32_t divisor = is_compressed ? best_divisor(count(slice), best, &bits) : kUncompressed;
    write_header(slice.size(), divisor, begin == 0, best, &out);
    if (is_compressed) {
      write_symbols(symbols, divisor, &out);
    } else {
      const uint32_t width = index_bits(best, !best.values.empty());
      for (const uint32_t symbol : symbols) out.write(symbol, width);
    }
  }
  return out.finish();
}

}  // namespace qplan::ethosu::compiler
