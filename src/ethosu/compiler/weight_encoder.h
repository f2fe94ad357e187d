// Weights as the stream that the device decodes, and what is chosen so that it is short: the palettes of
// values, the codes of slices, and the sections, each with a palette of its own.
#ifndef QPLAN_SRC_ETHOSU_COMPILER_WEIGHT_ENCODER_H_
#define QPLAN_SRC_ETHOSU_COMPILER_WEIGHT_ENCODER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace qplan::ethosu::compiler {

// weights: in the device's order, magnitudes of at most 255. A multiple of 16 bytes.
std::vector<uint8_t> encode_weights(std::span<const int16_t> weights);

// ---- palettes: the numbers that a stream has instead of its weights are places in a palette, and values
// after it.

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

// ---- slices (weight_slices.cc): which codes the parts of a section have.

constexpr uint32_t kUncompressed = 7, kNoZeroRuns = 6;

// The codes of a slice. A symbol is a quotient in unary and a remainder of `divisor` bits, or all of it is
// the remainder (kUncompressed); a run of zeros is a quotient and a remainder of run_divisor bits.
struct SliceCodes {
  uint32_t divisor = kUncompressed;
  bool truncates = false;  // no quotient is above 2, so that 2 needs no end
  uint32_t run_divisor = kNoZeroRuns;
};

struct Slice {
  size_t length = 0;  // weights, without those of runs
  SliceCodes codes;
};

struct SlicePlan {
  std::vector<Slice> slices;
  uint64_t bits = 0;  // an estimate: codes are in chunks, and the last one of a slice is not full
};
// The slices with which the symbols take the fewest bits. runs: empty, or the zeros before the first symbol
// and after each symbol.
SlicePlan plan_slices(const Palette& palette, std::span<const uint32_t> symbols,
                      std::span<const uint32_t> runs);

// Bits in one slice: of values, of their symbols, of runs.
uint64_t one_slice_bits(const Palette& palette, const Histogram& values);
uint64_t one_slice_bits(const Palette& palette, std::span<const uint32_t> symbols);
uint64_t one_slice_run_bits(std::span<const uint32_t> runs);

// ---- sections: parts of a stream with a palette of their own, and with runs of zeros or without.

// What a section codes: values, and where it has runs the zeros before the first value and after each.
struct Section {
  std::vector<uint32_t> values, runs;
  Palette palette;
  SlicePlan slices;

  bool has_runs() const { return !runs.empty(); }
  uint64_t bits() const { return palette.bits() + slices.bits; }
  std::vector<uint32_t> symbols() const;
};

// The sections with which the values take few bits: one, or where that is shorter several, of which every
// second has runs of zeros.
std::vector<Section> plan_sections(std::span<const uint32_t> values);

}  // namespace qplan::ethosu::compiler

#endif  // QPLAN_SRC_ETHOSU_COMPILER_WEIGHT_ENCODER_H_
