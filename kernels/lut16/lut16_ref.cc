#include "kernels/elementwise/broadcast.h"
#include "kernels/lut16/lut16.h"

namespace qplan {
namespace lut16_ref {
namespace {

// The table's function at |v|, with `bits` of fraction; `saturated` beyond it.
uint32_t interpolated(const Lut16Args& args, uint32_t magnitude, uint32_t bits, uint32_t saturated) {
  const uint32_t h = magnitude >> bits, t = magnitude & ((1u << bits) - 1);
  if (h >= Lut16Args::kTableEntries - 1) return saturated;
  const auto from = static_cast<uint32_t>(args.table[h]), to = static_cast<uint32_t>(args.table[h + 1]);
  return (from << bits) + t * (to - from);
}

int16_t logistic_of(const Lut16Args& args, int32_t v, uint32_t magnitude) {
  const uint32_t f = interpolated(args, magnitude, 9, 0x7fffu << 10);
  const uint32_t sum = v >= 0 ? f + (1u << 9) : (1u << 25) - f + (1u << 9) - 1;
  return static_cast<int16_t>(static_cast<uint16_t>(sum >> 10));
}

int16_t tanh_of(const Lut16Args& args, int32_t v, uint32_t magnitude) {
  const uint32_t f = interpolated(args, magnitude, 8, 0xffffu << 8);
  const uint32_t sum = v >= 0 ? f - (1u << 23) + (1u << 7) : (1u << 23) - f + (1u << 7) - 1;
  return static_cast<int16_t>(static_cast<uint16_t>(static_cast<int32_t>(sum) >> 8));
}

}  // namespace

Refusal accepts(const Lut16Args&) { return Refusal::kNone; }
size_t scratch_bytes(const Lut16Args&) { return 0; }
uint32_t work_items(const Lut16Args& args) { return num_chunks(args.elements); }

void run(const Lut16Args& args, uint32_t begin, uint32_t end, void*) {
  const ElementRange range = chunk_range(args.elements, begin, end);
  const int64_t half = args.shift == 0 ? 0 : int64_t{1} << (args.shift - 1);
  for (uint64_t i = range.begin; i < range.end; ++i) {
    // Within +-2^30, as multiplier is below 2^15.
    const auto v = static_cast<int32_t>((int64_t{args.input[i]} * args.multiplier + half) >> args.shift);
    const auto magnitude = static_cast<uint32_t>(v < 0 ? -v : v);
    args.output[i] = args.is_tanh ? tanh_of(args, v, magnitude) : logistic_of(args, v, magnitude);
  }
}

}  // namespace lut16_ref
}  // namespace qplan
