#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <numeric>
#include <optional>
#include <utility>

#include "src/ethosu/compiler/weight_encoder.h"

namespace qplan::ethosu::compiler {
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
