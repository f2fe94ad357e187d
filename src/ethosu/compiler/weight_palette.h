// The numbers that a weight stream has instead of its weights: places in a palette, and values after it.
#ifndef QPLAN_SRC_ETHOSU_COMPILER_WEIGHT_PALETTE_H_
#define QPLAN_SRC_ETHOSU_COMPILER_WEIGHT_PALETTE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace qplan::ethosu::compiler {

// Values are sign and magnitude, up to 255; symbols are as large.
constexpr size_t kNumValues = 512;
constexpr size_t kMaxPalette = 32;
using Histogram = std::array<uint64_t, kNumValues>;

Histogram count_values(std::span<const uint32_t> values);

// What the symbols of a stream stand for: the palette's values first, the others from direct_offset on after
// them.
struct Palette {
  std::vector<uint32_t> values;
  uint32_t direct_offset = 0;
  uint32_t value_bits = 2;
  bool has_all = false;                       // no other value occurs
  std::array<uint32_t, kNumValues> symbol{};  // of each value

  uint64_t bits() const { return 13 + values.size() * value_bits; }
  // Bits of a symbol of fixed length: of the palette alone where it has all values, else of the values. 0:
  // such symbols do not reach all values.
  uint32_t fixed_bits() const;
};

// The `size` most frequent of the values as the palette, where no symbol becomes too large for the device.
// used: the values that occur, the most frequent ones first.
std::optional<Palette> make_palette(std::span<const uint32_t> used, size_t size);

}  // namespace qplan::ethosu::compiler

#endif  // QPLAN_SRC_ETHOSU_COMPILER_WEIGHT_PALETTE_H_
