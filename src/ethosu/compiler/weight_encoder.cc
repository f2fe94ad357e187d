#include "src/ethosu/compiler/weight_encoder.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <optional>
#include <utility>

namespace qplan::ethosu::compiler {
// ---- the stream

namespace {

constexpr uint32_t kEnd = 7;
constexpr size_t kChunk = 12;  // codes
constexpr size_t kWideIndex = 5, kWideChunk = 8;

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

void write_header(const Slice& slice, bool is_first, const Palette& palette, BitWriter* out) {
  out->write(slice.codes.run_divisor, 3);
  out->write(static_cast<uint32_t>(slice.length - 1), 15);
  out->write(slice.codes.divisor, 3);
  out->write(slice.codes.truncates ? 1 : 0, 1);
  out->write(is_first ? 1 : 0, 1);
  if (!is_first) return;
  out->write(palette.direct_offset, 5);
  out->write(palette.values.empty() ? 0 : static_cast<uint32_t>(palette.values.size() - 1), 5);
  out->write(palette.value_bits - 2, 3);
  for (const uint32_t value : palette.values) out->write(value, palette.value_bits);
}

// The symbols of one kind, chunk by chunk: codes of their quotients, and remainders, which follow the codes
// of the next chunk.
class Chunks {
 public:
  // A code takes at most most_code off the quotient. A symbol ends with a smaller one, or, where quotients
  // are truncated, with each.
  Chunks(std::span<const uint32_t> symbols, uint32_t divisor, uint32_t most_code, bool truncates)
      : symbols_(symbols), divisor_(divisor), most_code_(most_code), truncates_(truncates) {}

  size_t done() const { return done_; }
  bool is_done() const { return done_ == symbols_.size(); }

  // Codes of the next chunk.
  std::span<const uint8_t> take(size_t size) {
    codes_.fill(0);
    for (size_t i = 0; i < size && !is_done(); ++i) {
      if (!is_within_) quotient_ = symbols_[done_] >> divisor_, is_within_ = true;
      const uint32_t code = std::min(quotient_, most_code_);
      codes_[i] = static_cast<uint8_t>(code);
      quotient_ -= code;
      if (code < most_code_ || truncates_) end_symbol();
    }
    return {codes_.data(), size};
  }
  void take_uncompressed(size_t size) {
    for (size_t i = 0; i < size && !is_done(); ++i) end_symbol();
  }
  void write_remainders(BitWriter* out) {
    for (const uint32_t remainder : before_) out->write(remainder, divisor_);
    before_.swap(now_);
    now_.clear();
  }

 private:
  void end_symbol() {
    now_.push_back(symbols_[done_++] & ((1u << divisor_) - 1));
    is_within_ = false;
  }

  std::span<const uint32_t> symbols_;
  uint32_t divisor_, most_code_;
  bool truncates_, is_within_ = false;
  uint32_t quotient_ = 0;
  size_t done_ = 0;
  std::array<uint8_t, kChunk> codes_{};
  std::vector<uint32_t> before_, now_;  // remainders
};

// Chunks of symbols and of runs as the decoder expects them, which keeps a few of both.
void write_slice(std::span<const uint32_t> symbols, std::span<const uint32_t> runs, const SliceCodes& codes,
                 uint32_t fixed_bits, BitWriter* out) {
  const bool is_uncompressed = codes.divisor == kUncompressed, has_runs = codes.run_divisor != kNoZeroRuns;
  Chunks weights(symbols, is_uncompressed ? fixed_bits : codes.divisor, 2, codes.truncates);
  Chunks zeros(runs, has_runs ? codes.run_divisor : 0, 1, false);
  for (bool is_on = true; is_on;) {
    const bool weights_on = !weights.is_done() && (!has_runs || weights.done() < zeros.done() + 8);
    const bool zeros_on = !zeros.is_done() && weights.done() >= zeros.done();
    std::span<const uint8_t> quotients;
    if (weights_on && is_uncompressed)
      weights.take_uncompressed(fixed_bits > kWideIndex ? kWideChunk : kChunk);
    if (weights_on && !is_uncompressed) quotients = weights.take(kChunk);
    for (const uint8_t code : quotients) out->write(code > 0 ? 1 : 0, 1);
    if (zeros_on) {
      for (const uint8_t code : zeros.take(codes.run_divisor == 3 ? 8 : kChunk)) out->write(code, 1);
    }
    for (const uint8_t code : quotients) {
      if (code > 0) out->write(code > 1 ? 1 : 0, 1);
    }
    weights.write_remainders(out);
    zeros.write_remainders(out);
    is_on = weights_on || zeros_on;
  }
}

void write_section(const Section& section, BitWriter* out) {
  const std::vector<uint32_t> symbols = section.symbols();
  std::span<const uint32_t> symbols_left = symbols, runs_left = section.runs;
  for (const Slice& slice : section.slices.slices) {
    const bool is_first = symbols_left.size() == symbols.size();
    write_header(slice, is_first, section.palette, out);
    // The zeros before the first weight are a run, too.
    const size_t num_runs = section.has_runs() ? slice.length + (is_first ? 1 : 0) : 0;
    write_slice(symbols_left.first(slice.length), runs_left.first(num_runs), slice.codes,
                section.palette.fixed_bits(), out);
    symbols_left = symbols_left.subspan(slice.length), runs_left = runs_left.subspan(num_runs);
  }
}

}  // namespace

std::vector<uint8_t> encode_weights(std::span<const int16_t> weights) {
  BitWriter out;
  // A core may have no output channel.
  if (weights.empty()) return out.finish();
  std::vector<uint32_t> values;
  values.reserve(weights.size());
  for (const int16_t weight : weights) values.push_back(sign_magnitude(weight));
  for (const Section& section : plan_sections(values)) write_section(section, &out);
  return out.finish();
}

// ---- sections

namespace {

constexpr uint32_t kMaxDirectOffset = 31;
// Slices are planned for the palettes with which one slice takes the fewest bits: a few, and none that takes
// more than a part more than the best one, with runs of zeros or without. Slices save more where there are no
// runs.
constexpr size_t kPlannedPalettes = 2;
constexpr uint64_t kNearlyPlain = 4, kNearlySparse = 16;
// Sections end at multiples of this.
constexpr size_t kBlock = 32;
// What another section takes: a header, a small palette, the ends of chunks.
constexpr uint64_t kSectionBits = 80;
// Several sections are tried where zeros are not rarer than this.
constexpr size_t kLeastZeros = 16;

// All zeros as runs; a slice has a value, so that where all are zeros the first one is.
Section with_runs(std::span<const uint32_t> values) {
  Section section;
  const bool is_zero = std::ranges::all_of(values, [](uint32_t value) { return value == 0; });
  uint32_t zeros = 0;
  for (const uint32_t value : values) {
    if (value == 0 && !(is_zero && section.values.empty())) {
      ++zeros;
      continue;
    }
    section.runs.push_back(zeros);
    section.values.push_back(value);
    zeros = 0;
  }
  section.runs.push_back(zeros);
  return section;
}

Section section_of(std::span<const uint32_t> values, bool has_runs) {
  if (has_runs) return with_runs(values);
  Section section;
  section.values.assign(values.begin(), values.end());
  return section;
}

// The best palettes of a section, with the bits that it takes in one slice.
using Palettes = std::vector<std::pair<uint64_t, Palette>>;
Palettes best_palettes(const Section& section) {
  const Histogram histogram = count_values(section.values);
  std::vector<uint32_t> used;
  for (uint32_t v = 0; v < kNumValues; ++v) {
    if (histogram[v] != 0) used.push_back(v);
  }
  std::ranges::stable_sort(used, std::greater(), [&](uint32_t v) { return histogram[v]; });
  const uint64_t runs = one_slice_run_bits(section.runs);
  Palettes palettes;
  for (size_t size = 0; size <= std::min(kMaxPalette, used.size()); ++size) {
    std::optional<Palette> palette = make_palette(used, size);
    if (!palette) continue;
    const uint64_t bits = one_slice_bits(*palette, histogram) + palette->bits() + runs;
    palettes.emplace_back(bits, *std::move(palette));
  }
  std::ranges::stable_sort(palettes, {}, [](const auto& palette) { return palette.first; });
  if (palettes.size() > kPlannedPalettes) palettes.resize(kPlannedPalettes);
  return palettes;
}

// Plans the section's slices, with palettes that take at most so many bits in one slice.
void plan(const Palettes& palettes, uint64_t most, Section* section) {
  bool is_planned = false;
  for (const auto& [bits, palette] : palettes) {
    if (bits > most && is_planned) break;
    Section other = *section;
    other.palette = palette;
    other.slices = plan_slices(palette, other.symbols(), other.runs);
    if (!is_planned || other.bits() < section->bits()) *section = std::move(other);
    is_planned = true;
  }
}

// Bits of each block, with runs and without.
using BlockBits = std::array<uint64_t, 2>;
std::vector<BlockBits> block_bits(std::span<const uint32_t> values, const Palette& plain,
                                  const Palette& sparse) {
  std::vector<BlockBits> blocks;
  uint32_t zeros = 0;
  for (size_t begin = 0; begin < values.size(); begin += kBlock) {
    std::vector<uint32_t> all, others, runs;
    for (const uint32_t value : values.subspan(begin, std::min(kBlock, values.size() - begin))) {
      all.push_back(plain.symbol[value]);
      if (value == 0) {
        ++zeros;
        continue;
      }
      others.push_back(sparse.symbol[value]);
      runs.push_back(std::exchange(zeros, 0));
    }
    blocks.push_back({one_slice_bits(plain, all),
                      one_slice_bits(sparse, others) + (runs.empty() ? 0 : one_slice_run_bits(runs))});
  }
  return blocks;
}

// For each block whether it has runs, so that blocks and changes between them take the fewest bits.
std::vector<bool> choose_runs(const std::vector<BlockBits>& blocks) {
  BlockBits sums = {};
  std::vector<std::array<bool, 2>> changes;  // from the other way, before each block
  for (const BlockBits& block : blocks) {
    const BlockBits before = sums;
    std::array<bool, 2>& change = changes.emplace_back();
    for (size_t way = 0; way < 2; ++way) {
      change[way] = before[1 - way] + kSectionBits < before[way];
      sums[way] = std::min(before[way], before[1 - way] + kSectionBits) + block[way];
    }
  }
  std::vector<bool> has_runs(blocks.size());
  size_t way = sums[1] < sums[0] ? 1 : 0;
  for (size_t i = blocks.size(); i-- > 0;) {
    has_runs[i] = way == 1;
    if (changes[i][way]) way = 1 - way;
  }
  return has_runs;
}

std::vector<Section> several_sections(std::span<const uint32_t> values, const Palette& plain,
                                      const Palette& sparse) {
  const std::vector<bool> has_runs = choose_runs(block_bits(values, plain, sparse));
  std::vector<Section> sections;
  for (size_t begin = 0, end = 0; begin < has_runs.size(); begin = end) {
    while (end < has_runs.size() && has_runs[end] == has_runs[begin]) ++end;
    if (begin == 0 && end == has_runs.size()) return {};
    const size_t count = std::min(values.size(), end * kBlock) - begin * kBlock;
    Section& section =
        sections.emplace_back(section_of(values.subspan(begin * kBlock, count), has_runs[begin]));
    plan(best_palettes(section), UINT64_MAX, &section);
  }
  return sections;
}

uint64_t total_bits(const std::vector<Section>& sections) {
  return std::accumulate(sections.begin(), sections.end(), uint64_t{0},
                         [](uint64_t bits, const Section& section) { return bits + section.bits(); });
}

}  // namespace

std::vector<uint32_t> Section::symbols() const {
  std::vector<uint32_t> symbols;
  symbols.reserve(values.size());
  for (const uint32_t value : values) symbols.push_back(palette.symbol[value]);
  return symbols;
}

std::vector<Section> plan_sections(std::span<const uint32_t> values) {
  Section plain = section_of(values, false), sparse = section_of(values, true);
  const Palettes of_plain = best_palettes(plain), of_sparse = best_palettes(sparse);
  const uint64_t least = std::min(of_plain.front().first, of_sparse.front().first);
  std::vector<std::vector<Section>> choices;
  const auto add_whole = [&](Section* section, const Palettes& palettes, uint64_t nearly) {
    const uint64_t most = least + least / nearly;
    if (palettes.front().first > most) return;
    plan(palettes, most, section);
    choices.emplace_back().push_back(std::move(*section));
  };
  add_whole(&plain, of_plain, kNearlyPlain);
  add_whole(&sparse, of_sparse, kNearlySparse);
  if (static_cast<size_t>(std::ranges::count(values, 0u)) * kLeastZeros >= values.size()) {
    std::vector<Section> several =
        several_sections(values, of_plain.front().second, of_sparse.front().second);
    if (!several.empty()) choices.push_back(std::move(several));
  }
  return std::move(*std::ranges::min_element(choices, {}, total_bits));
}

// ---- palettes

Histogram count_values(std::span<const uint32_t> values) {
  Histogram histogram{};
  for (const uint32_t value : values) ++histogram[value];
  return histogram;
}

uint32_t Palette::fixed_bits() const {
  if (values.empty()) return value_bits;
  return has_all ? static_cast<uint32_t>(std::bit_width(values.size() - 1)) : 0;
}

std::optional<Palette> make_palette(std::span<const uint32_t> used, size_t size) {
  Palette palette;
  const std::span<const uint32_t> others = used.subspan(size);
  palette.values.assign(used.begin(), used.begin() + static_cast<int64_t>(size));
  palette.has_all = others.empty();
  // One entry would be written as none.
  if (size == 1) palette.values.push_back(palette.values[0]);
  if (!others.empty()) palette.direct_offset = std::min(kMaxDirectOffset, *std::ranges::min_element(others));
  palette.value_bits = std::max(2u, static_cast<uint32_t>(std::bit_width(*std::ranges::max_element(used))));
  const auto entries = static_cast<uint32_t>(palette.values.size());
  for (const uint32_t value : others) {
    palette.symbol[value] = entries + value - palette.direct_offset;
    if (palette.symbol[value] >= kNumValues) return std::nullopt;
  }
  for (uint32_t i = entries; i-- > 0;) palette.symbol[palette.values[i]] = i;
  return palette;
}

}  // namespace qplan::ethosu::compiler
