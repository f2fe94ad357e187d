#include "src/ethosu/compiler/weight_palette.h"

#include <algorithm>
#include <bit>

namespace qplan::ethosu::compiler {
namespace {

constexpr uint32_t kMaxDirectOffset = 31;

}  // namespace

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
