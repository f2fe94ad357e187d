#include <algorithm>
#include <array>

#include "src/ethosu/compiler/weight_encoder.h"

namespace qplan::ethosu::compiler {
namespace {

// Slices begin at multiples of this: with shorter ones the search would take longer and gain nothing.
constexpr size_t kGroup = 4;
constexpr size_t kMaxSlice = 32767 / kGroup * kGroup;
constexpr uint32_t kDivisors = 6, kRunDivisors = 4;
constexpr uint32_t kMaxQuotient = 31, kMaxTruncated = 2;
// A header, and half of a chunk of codes that is written for nothing.
constexpr int16_t kSliceBits = 23 + 6, kRunChunkBits = 6;

// Ways to code symbols: divisors, the same with truncated quotients, a fixed length; the others do not exist.
constexpr size_t kFixedWay = 2 * kDivisors, kWays = kFixedWay + 1, kStride = 16;
using WayBits = std::array<int16_t, kStride>;
// More than changing to another way takes. Sums for a group fit 16 bits.
constexpr int16_t kImpossible = 2048;

// Bits of each symbol in each way, except for those of a fixed length.
using SymbolTable = std::array<WayBits, kNumValues>;
constexpr SymbolTable symbol_table() {
  SymbolTable table{};
  for (uint32_t symbol = 0; symbol < kNumValues; ++symbol) {
    for (uint32_t divisor = 0; divisor < kDivisors; ++divisor) {
      const uint32_t quotient = symbol >> divisor, code = std::min(quotient + 1, kMaxTruncated);
      table[symbol][divisor] =
          quotient > kMaxQuotient ? kImpossible : static_cast<int16_t>(quotient + 1 + divisor);
      table[symbol][kDivisors + divisor] =
          quotient > kMaxTruncated ? kImpossible : static_cast<int16_t>(code + divisor);
    }
    for (size_t way = kWays; way < kStride; ++way) table[symbol][way] = kImpossible;
  }
  return table;
}
constexpr SymbolTable kSymbolBits = symbol_table();

int16_t fixed_way_bits(const Palette& palette) {
  const uint32_t bits = palette.fixed_bits();
  return bits == 0 ? kImpossible : static_cast<int16_t>(bits);
}

uint64_t run_bits(uint32_t run, size_t divisor) { return (run >> divisor) + 1 + divisor; }

SliceCodes codes_of(size_t way, size_t run_way, bool has_runs) {
  SliceCodes codes;
  const auto w = static_cast<uint32_t>(way);
  if (way < kFixedWay) codes.divisor = w % kDivisors, codes.truncates = w >= kDivisors;
  if (has_runs) codes.run_divisor = static_cast<uint32_t>(run_way);
  return codes;
}

// The shortest way through symbols for at most one slice of the greatest length, where each state is a way to
// code them: whoever changes the state pays for a slice. One state for each pair of ways for symbols and for
// runs.
template <size_t kRunWays>
class SliceSearch {
 public:
  // runs: of kRunWays > 1, those after the symbols.
  SliceSearch(int16_t fixed_bits, std::span<const uint32_t> symbols, std::span<const uint32_t> runs)
      : fixed_bits_(fixed_bits), symbols_(symbols), runs_(runs) {}

  // first_runs: the zeros before the symbols, if they are coded here.
  void run(std::span<const uint32_t> first_runs, SlicePlan* plan) {
    bits_ = kChange;
    add({}, first_runs);
    for (size_t begin = 0; begin < symbols_.size(); begin += kGroup) {
      const size_t count = std::min(kGroup, symbols_.size() - begin);
      steps_.push_back(states_);
      for (WayBits& states : states_) {
        for (int16_t& bits : states) bits = std::min(bits, kChange);
      }
      add(symbols_.subspan(begin, count), has_runs() ? runs_.subspan(begin, count) : runs_);
    }
    plan->bits += bits_;
    trace(plan);
  }

 private:
  static constexpr int16_t kChange = kSliceBits + (kRunWays > 1 ? kRunChunkBits : 0);
  // Bits of the states beyond those of the best one.
  using States = std::array<WayBits, kRunWays>;

  static constexpr bool has_runs() { return kRunWays > 1; }

  void add(std::span<const uint32_t> symbols, std::span<const uint32_t> runs) {
    WayBits sums{};
    for (const uint32_t symbol : symbols) {
      for (size_t w = 0; w < kStride; ++w) sums[w] = static_cast<int16_t>(sums[w] + kSymbolBits[symbol][w]);
    }
    sums[kFixedWay] = static_cast<int16_t>(static_cast<size_t>(fixed_bits_) * symbols.size());
    const std::array<int16_t, kRunWays> of_runs = run_sums(runs);
    int16_t least = INT16_MAX;
    for (size_t r = 0; r < kRunWays; ++r) {
      for (size_t w = 0; w < kStride; ++w) {
        states_[r][w] = static_cast<int16_t>(states_[r][w] + sums[w] + of_runs[r]);
        least = std::min(least, states_[r][w]);
      }
    }
    bits_ += static_cast<uint64_t>(least);
    for (WayBits& states : states_) {
      for (int16_t& bits : states) bits = static_cast<int16_t>(bits - least);
    }
  }
  // Beyond those of the best way, which are counted.
  std::array<int16_t, kRunWays> run_sums(std::span<const uint32_t> runs) {
    std::array<int16_t, kRunWays> of_runs{};
    if (!has_runs() || runs.empty()) return of_runs;
    std::array<uint64_t, kRunWays> sums{};
    for (const uint32_t run : runs) {
      for (size_t r = 0; r < kRunWays; ++r) sums[r] += run_bits(run, r);
    }
    const uint64_t least = *std::ranges::min_element(sums);
    for (size_t r = 0; r < kRunWays; ++r)
      of_runs[r] = static_cast<int16_t>(std::min<uint64_t>(sums[r] - least, kImpossible));
    bits_ += least;
    return of_runs;
  }

  static size_t find_best(const States& states) {
    for (size_t s = 0;; ++s) {
      if (states[s / kStride][s % kStride] == 0) return s;
    }
  }

  void trace(SlicePlan* plan) const {
    std::vector<Slice> slices;  // the last one first
    size_t state = find_best(states_), end = symbols_.size();
    for (size_t i = steps_.size(); i-- > 0;) {
      const bool changes = steps_[i][state / kStride][state % kStride] > kChange;
      if (changes || i == 0) {
        slices.push_back({end - i * kGroup, codes_of(state % kStride, state / kStride, has_runs())});
        end = i * kGroup;
      }
      if (changes) state = find_best(steps_[i]);
    }
    plan->slices.insert(plan->slices.end(), slices.rbegin(), slices.rend());
  }

  const int16_t fixed_bits_;
  std::span<const uint32_t> symbols_, runs_;
  uint64_t bits_ = 0;  // of the best state
  States states_{};
  std::vector<States> steps_;  // before each group
};

template <size_t kRunWays>
SlicePlan plan_windows(const Palette& palette, std::span<const uint32_t> symbols,
                       std::span<const uint32_t> runs) {
  SlicePlan plan;
  const size_t first_runs = runs.empty() ? 0 : 1;
  for (size_t begin = 0; begin < symbols.size(); begin += kMaxSlice) {
    const size_t count = std::min(kMaxSlice, symbols.size() - begin);
    SliceSearch<kRunWays> search(fixed_way_bits(palette), symbols.subspan(begin, count),
                                 runs.empty() ? runs : runs.subspan(begin + 1, count));
    search.run(begin == 0 ? runs.first(first_runs) : std::span<const uint32_t>(), &plan);
  }
  return plan;
}

}  // namespace

SlicePlan plan_slices(const Palette& palette, std::span<const uint32_t> symbols,
                      std::span<const uint32_t> runs) {
  return runs.empty() ? plan_windows<1>(palette, symbols, runs)
                      : plan_windows<kRunDivisors>(palette, symbols, runs);
}

uint64_t one_slice_bits(const Palette& palette, const Histogram& values) {
  std::array<uint64_t, kWays> sums{};
  for (size_t v = 0; v < kNumValues; ++v) {
    if (values[v] == 0) continue;
    const WayBits& bits = kSymbolBits[palette.symbol[v]];
    for (size_t way = 0; way < kFixedWay; ++way) sums[way] += values[v] * static_cast<uint64_t>(bits[way]);
    sums[kFixedWay] += values[v] * static_cast<uint64_t>(fixed_way_bits(palette));
  }
  return *std::ranges::min_element(sums);
}

uint64_t one_slice_bits(const Palette& palette, std::span<const uint32_t> symbols) {
  std::array<uint32_t, kStride> sums{};
  for (const uint32_t symbol : symbols) {
    for (size_t way = 0; way < kStride; ++way) sums[way] += static_cast<uint32_t>(kSymbolBits[symbol][way]);
  }
  sums[kFixedWay] = static_cast<uint32_t>(symbols.size()) * static_cast<uint32_t>(fixed_way_bits(palette));
  return *std::ranges::min_element(sums);
}

uint64_t one_slice_run_bits(std::span<const uint32_t> runs) {
  std::array<uint64_t, kRunDivisors> sums{};
  for (const uint32_t run : runs) {
    for (size_t divisor = 0; divisor < kRunDivisors; ++divisor) sums[divisor] += run_bits(run, divisor);
  }
  return *std::ranges::min_element(sums);
}

}  // namespace qplan::ethosu::compiler
