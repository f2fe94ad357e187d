#include "src/ethosu/compiler/weight_encoder.h"

#include <algorithm>
#include <array>
#include <cstdlib>

namespace qplan::ethosu::compiler {
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

}  // namespace qplan::ethosu::compiler
