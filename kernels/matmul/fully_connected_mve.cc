// fully_connected with MVE: a row times eight channels at a time (kernels/simd/dots_mve.h). A row that is no
// multiple of 16 bytes is copied to scratch memory and filled up with zeros.
#include <stddef.h>
#include <stdint.h>

#include "kernels/matmul/fully_connected_rows.h"
#include "kernels/matmul/matmul.h"
#include "kernels/simd/dots_mve.h"

namespace qplan::fully_connected_mve {
namespace {

constexpr uint32_t kMaxInputs = 1 << 24;

inline bool reads_row_in_place(const FullyConnectedArgs& a) { return a.input_c % kChunk == 0; }

#if !defined(QPLAN_ONLY_QUERIES)

class Rows {
 public:
  explicit Rows(const FullyConnectedArgs& args)
      : a_(args),
        chunks_(static_cast<uint32_t>(chunk_bytes(args.input_c) / kChunk)),
        is_signed_(args.input_dtype == Dtype::kS8),
        is_fast_(is_signed_ && args.contract == Contract::kTfl2 && args.weights_zero_point == 0 &&
                 !shifts_left(args.shift, args.output_c)) {}

  void run(uint32_t begin, uint32_t end, uint8_t* copy) const {
    const uint32_t tail = chunks_ * kChunk - a_.input_c;
    if (tail != 0) fill_bytes(copy + a_.input_c, 0, tail);
    for (uint32_t i = begin; i < end; ++i) {
      const uint8_t* row = static_cast<const uint8_t*>(a_.input) + size_t{i} * a_.input_c;
      if (tail != 0) {
        copy_bytes(copy, row, a_.input_c);
        row = copy;
      }
      multiply(row, static_cast<uint8_t*>(a_.output) + size_t{i} * a_.output_c);
    }
  }

 private:
  void multiply(const uint8_t* row, uint8_t* out) const {
    constexpr uint32_t kEight = 2 * kTileChannels;
    uint32_t channels = is_fast_ ? a_.output_c / kEight * kEight : 0;
    if (channels != 0) {
      RowPair pair;
      pair.rows[0] = row;
      pair.weights = a_.weights;
      pair.bias = a_.bias;
      pair.multiplier = a_.multiplier;
      pair.shift = a_.shift;
      pair.out[0] = out;
      pair.out_end = out + channels;
      pair.chunks = chunks_;
      pair.zero_point = a_.output_zero_point;
      pair.clamp_min = a_.clamp_min;
      pair.clamp_max = a_.clamp_max;
      multiply_eights(&pair);
    }
    if (channels != a_.output_c) multiply_any(row, channels, out);
  }

  // Channels from `begin` on, by any contract.
  __attribute__((noinline)) void multiply_any(const uint8_t* row, uint32_t begin, uint8_t* out) const {
    // sum u * (w - z) = sum u * w - z * sum u
    int32_t term = 0;
    if (a_.weights_zero_point != 0) {
      const int32_t sum = is_signed_ ? sum_row<true>(row, chunks_) : sum_row<false>(row, chunks_);
      term = wrap_mul(-a_.weights_zero_point, sum);
    }
    for (uint32_t o = begin; o < a_.output_c; o += kTileChannels) {
      int32_t sums[kTileChannels];
      for (uint32_t i = 0; i < kTileChannels; ++i) sums[i] = wrap_add(a_.bias[o + i], term);
      const int8_t* weights = a_.weights + size_t{o} * chunks_ * kChunk;
      (is_signed_ ? sum_block<true> : sum_block<false>)(sums, row, weights, chunks_);
      for (uint32_t i = 0; i < kTileChannels && o + i < a_.output_c; ++i) {
        out[o + i] = static_cast<uint8_t>(requantize_channel(a_, sums[i], o + i));
      }
    }
  }

  const FullyConnectedArgs& a_;
  const uint32_t chunks_;  // of a row
  const bool is_signed_, is_fast_;
};

#endif

}  // namespace

#if !defined(QPLAN_ONLY_RUN)
Refusal accepts(const FullyConnectedArgs& a) {
  if (a.contract == Contract::kAcc32) return Refusal::kContract;
  if (a.weights_layout != kLayout_o4k16) return Refusal::kLayout;
  if (a.input_zero_point != 0) return Refusal::kInputZeroPoint;
  return a.input_c <= kMaxInputs ? Refusal::kNone : Refusal::kTooLarge;
}

size_t scratch_bytes(const FullyConnectedArgs& args) {
  return reads_row_in_place(args) ? 0 : (chunk_bytes(args.input_c) + 63) / 64 * 64;
}

uint32_t work_items(const FullyConnectedArgs& args) { return args.rows; }
#endif

#if !defined(QPLAN_ONLY_QUERIES)
void run(const FullyConnectedArgs& args, uint32_t begin, uint32_t end, void* scratch) {
  Rows(args).run(begin, end, static_cast<uint8_t*>(scratch));
}
#endif

}  // namespace qplan::fully_connected_mve
