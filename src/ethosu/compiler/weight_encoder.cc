#include "src/ethosu/compiler/weight_encoder.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <functional>

#include "src/ethosu/compiler/weight_slices.h"

namespace qplan::ethosu::compiler {
namespace {

constexpr uint32_t kEnd = 7;
constexpr size_t kChunk = 12;  // codes
constexpr size_t kWideIndex = 5, kWideChunk = 8;
// Slices are planned for the palettes with which one slice takes the fewest bits: a few, and none that takes
// more than a part more than the best one, with runs of zeros or without.
constexpr size_t kPlannedPalettes = 2;
constexpr uint64_t kNearly = 4;

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

// What is coded: values, and in the streams that have them runs of zeros before the first value and after
// each.
struct Sequence {
  std::vector<uint32_t> values, runs;

  bool has_runs() const { return !runs.empty(); }
};

// All zeros as runs; a slice has a value, so that where all are zeros the first one is.
Sequence with_runs(const std::vector<uint32_t>& values) {
  Sequence sequence;
  const bool is_zero = std::ranges::all_of(values, [](uint32_t value) { return value == 0; });
  uint32_t zeros = 0;
  for (const uint32_t value : values) {
    if (value == 0 && !(is_zero && sequence.values.empty())) {
      ++zeros;
      continue;
    }
    sequence.runs.push_back(zeros);
    sequence.values.push_back(value);
    zeros = 0;
  }
  sequence.runs.push_back(zeros);
  return sequence;
}

std::vector<uint32_t> symbols_of(const Sequence& sequence, const Palette& palette) {
  std::vector<uint32_t> symbols;
  symbols.reserve(sequence.values.size());
  for (const uint32_t value : sequence.values) symbols.push_back(palette.symbol[value]);
  return symbols;
}

struct Plan {
  const Sequence* sequence = nullptr;
  Palette palette;
  SlicePlan slices;

  uint64_t bits() const { return palette.bits() + slices.bits; }
};

// The palettes of a sequence by the bits that it takes in one slice.
std::vector<std::pair<uint64_t, Palette>> best_palettes(const Sequence& sequence) {
  const Histogram histogram = count_values(sequence.values);
  std::vector<uint32_t> used;
  for (uint32_t v = 0; v < kNumValues; ++v) {
    if (histogram[v] != 0) used.push_back(v);
  }
  std::ranges::stable_sort(used, std::greater(), [&](uint32_t v) { return histogram[v]; });
  const uint64_t runs = one_slice_bits(sequence.runs);
  std::vector<std::pair<uint64_t, Palette>> palettes;
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
  // step: how much a code of the largest value takes off the quotient; symbols end with a smaller one unless
  // all of them end (truncates).
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

}  // namespace

// With runs of zeros or without, whichever is shorter.
std::vector<uint8_t> encode_weights(std::span<const int16_t> weights) {
  BitWriter out;
  // A core may have no output channel.
  if (weights.empty()) return out.finish();
  Sequence all, sparse;
  all.values.reserve(weights.size());
  for (const int16_t weight : weights) all.values.push_back(sign_magnitude(weight));
  sparse = with_runs(all.values);
  Plan best;
  uint64_t least = UINT64_MAX;  // in one slice
  std::vector<std::pair<const Sequence*, std::vector<std::pair<uint64_t, Palette>>>> candidates;
  for (const Sequence* sequence : {&all, &sparse}) {
    candidates.emplace_back(sequence, best_palettes(*sequence));
    least = std::min(least, candidates.back().second.front().first);
  }
  for (auto& [sequence, palettes] : candidates) {
    for (auto& [bits, palette] : palettes) {
      if (bits > least + least / kNearly) break;
      Plan plan = {sequence, std::move(palette), {}};
      plan.slices = plan_slices(plan.palette, symbols_of(*sequence, plan.palette), sequence->runs);
      if (best.sequence == nullptr || plan.bits() < best.bits()) best = std::move(plan);
    }
  }

  const std::vector<uint32_t> symbols = symbols_of(*best.sequence, best.palette);
  std::span<const uint32_t> symbols_left = symbols, runs_left = best.sequence->runs;
  for (const Slice& slice : best.slices.slices) {
    const bool is_first = symbols_left.size() == symbols.size();
    write_header(slice, is_first, best.palette, &out);
    // The zeros before the first weight are a run, too.
    const size_t num_runs = best.sequence->has_runs() ? slice.length + (is_first ? 1 : 0) : 0;
    write_slice(symbols_left.first(slice.length), runs_left.first(num_runs), slice.codes,
                best.palette.fixed_bits(), &out);
    symbols_left = symbols_left.subspan(slice.length), runs_left = runs_left.subspan(num_runs);
  }
  return out.finish();
}

}  // namespace qplan::ethosu::compiler
