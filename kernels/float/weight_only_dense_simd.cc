// weight_only_dense by vectors of outputs: each lane is the chain of one output. A single row makes reals of
// its weights in registers; several rows share those of a block of 16 outputs in scratch memory.
#include "kernels/float/weight_only_dense.h"
#include "kernels/simd/float_functions.h"
#include "kernels/simd/simd.h"

namespace qplan {
namespace {

constexpr uint32_t kDenseVectors = kFloatBlock / kLanes;  // of a block of outputs
// Rows of a tile: its sums, a block's weights and one input fit 16 registers, or 32 where lanes are 16.
constexpr uint32_t kDenseRows = kLanes == 16 ? 12 : kLanes == 8 ? 6 : 3;
// Blocks of outputs of a tile of one row, whose sums wait for each other less; of a work item.
constexpr uint32_t kDenseTileBlocks = kLanes == 4 ? 1 : 4;
constexpr uint32_t kDenseBlocks = 4;
// Rows of a work item, which share the reals of a block.
constexpr uint32_t kDenseItemRows = 96;

inline uint32_t num_dense_blocks(const WeightOnlyDenseArgs& a) { return (a.output_c - 1) / kFloatBlock + 1; }
inline uint32_t num_dense_groups(const WeightOnlyDenseArgs& a) {
  return (num_dense_blocks(a) - 1) / kDenseBlocks + 1;
}
inline uint64_t num_dense_items(const WeightOnlyDenseArgs& a) {
  return uint64_t{(a.rows - 1) / kDenseItemRows + 1} * num_dense_groups(a);
}

// Scales and zero points of kBlocks blocks of outputs, for some weights along k. They are values, not members
// of something that lives on: what a visitor stores could be they, and they would be loaded again for each
// weight.
template <uint32_t kBlocks>
struct DenseScales {
  VecF32 scales[kBlocks][kDenseVectors];
  VecI32 zeros[kBlocks][kDenseVectors];
};

// The weights of kBlocks blocks of outputs in the order of k: visit(b, v, k, weights) is called for each
// vector of them.
template <uint32_t kBlocks, uint32_t kBits>
class DenseWeights {
 public:
  DenseWeights(const WeightOnlyDenseArgs& args, uint32_t block)
      : weights_(args.weights),
        scales_(args.scales),
        zeros_(args.zeros),
        count_(args.input_c),
        scale_step_(args.block),
        block_(block) {}

  template <typename Visit>
  inline __attribute__((always_inline)) void for_each(const Visit& visit) const {
    for (uint32_t begin = 0; begin < count_;) {
      const uint32_t end = count_ - begin < scale_step_ ? count_ : begin + scale_step_;
      const DenseScales<kBlocks> scales = scales_at(begin);
      const uint8_t* weights = weights_ + (block_ * steps_ + begin / kPerByte) * kFloatBlock;
      for (; end - begin >= kPerByte; begin += kPerByte, weights += kFloatBlock)
        visit_step<kPerByte>(begin, weights, scales, visit);
      if (begin < end) visit_step<1>(begin++, weights, scales, visit);
    }
  }

 private:
  static constexpr uint32_t kPerByte = kBits == 8 ? 1 : 2;  // weights

  inline __attribute__((always_inline)) DenseScales<kBlocks> scales_at(uint32_t k) const {
    DenseScales<kBlocks> found;
#pragma GCC unroll 4
    for (uint32_t b = 0; b < kBlocks; ++b) {
      const uint64_t at = (uint64_t{block_ + b} * num_scales_ + k / scale_step_) * kFloatBlock;
#pragma GCC unroll 4
      for (uint32_t v = 0; v < kDenseVectors; ++v) {
        found.scales[b][v] = load_reals(scales_ + at + v * kLanes);
        found.zeros[b][v] = widen(zeros_ + at + v * kLanes);
      }
    }
    return found;
  }

  // kCount weights of each output, which are in one byte.
  template <uint32_t kCount, typename Visit>
  inline __attribute__((always_inline)) void visit_step(uint32_t k, const uint8_t* weights,
                                                        const DenseScales<kBlocks>& scales,
                                                        const Visit& visit) const {
    const auto real = [&](uint32_t b, uint32_t v, VecI32 q) {
      return mul(to_reals(sub(q, scales.zeros[b][v])), scales.scales[b][v]);
    };
    const VecI32 low = set_ints(15);
#pragma GCC unroll 4
    for (uint32_t b = 0; b < kBlocks; ++b) {
#pragma GCC unroll 4
      for (uint32_t v = 0; v < kDenseVectors; ++v) {
        const VecI32 bytes = widen(weights + b * steps_ * kFloatBlock + v * kLanes);
        visit(b, v, k, real(b, v, kBits == 8 ? bytes : bit_and(bytes, low)));
        if constexpr (kCount == 2) visit(b, v, k + 1, real(b, v, shift_right_zeros(bytes, 4)));
      }
    }
  }

  const uint8_t* const weights_;
  const float* const scales_;
  const uint8_t* const zeros_;
  const uint32_t count_, scale_step_, block_;
  const uint32_t num_scales_ = (count_ - 1) / scale_step_ + 1;
  const uint64_t steps_ = kBits == 8 ? count_ : (uint64_t{count_} + 1) / 2;
};

// What becomes of the sums of a row for vector v of a block of outputs.
inline __attribute__((always_inline)) void store_dense(const WeightOnlyDenseArgs& a, uint32_t row,
                                                       uint32_t block, uint32_t v, VecF32 sum) {
  const uint32_t first = block * kFloatBlock + v * kLanes;
  if (first >= a.output_c) return;
  const uint32_t count = a.output_c - first < kLanes ? a.output_c - first : kLanes;
  const VecF32 value = add(sum, load_reals(a.bias + first));
  store_reals(a.output + uint64_t{row} * a.output_c + first,
              clamp(value, set_reals(a.clamp_min), set_reals(a.clamp_max)), count);
}

// kBlocks blocks of outputs of one row.
template <uint32_t kBlocks, uint32_t kBits>
inline void dense_row(const WeightOnlyDenseArgs& a, uint32_t row, uint32_t block) {
  const float* const in = a.input + uint64_t{row} * a.input_c;
  VecF32 sums[kBlocks][kDenseVectors];
#pragma GCC unroll 4
  for (uint32_t b = 0; b < kBlocks; ++b) {
#pragma GCC unroll 4
    for (uint32_t v = 0; v < kDenseVectors; ++v) sums[b][v] = set_reals(0.0f);
  }
  DenseWeights<kBlocks, kBits>(a, block).for_each([&](uint32_t b, uint32_t v, uint32_t k, VecF32 weights) {
    sums[b][v] = add(sums[b][v], mul(set_reals(in[k]), weights));
  });
#pragma GCC unroll 4
  for (uint32_t b = 0; b < kBlocks; ++b) {
#pragma GCC unroll 4
    for (uint32_t v = 0; v < kDenseVectors; ++v) store_dense(a, row, block + b, v, sums[b][v]);
  }
}

// Rows from row on, before end_row, in tiles of kRows: those that fill tiles. weights: the reals of the
// block, [k, 16]. Returns the first row after them.
template <uint32_t kRows>
inline uint32_t dense_tiles(const WeightOnlyDenseArgs& a, uint32_t row, uint32_t end_row, uint32_t block,
                            const float* weights) {
  for (; end_row - row >= kRows; row += kRows) {
    const float* const in = a.input + uint64_t{row} * a.input_c;
    VecF32 sums[kRows][kDenseVectors];
#pragma GCC unroll 16
    for (uint32_t r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
      for (uint32_t v = 0; v < kDenseVectors; ++v) sums[r][v] = set_reals(0.0f);
    }
    for (uint32_t k = 0; k < a.input_c; ++k) {
      VecF32 w[kDenseVectors];
#pragma GCC unroll 4
      for (uint32_t v = 0; v < kDenseVectors; ++v)
        w[v] = load_reals(weights + uint64_t{k} * kFloatBlock + v * kLanes);
#pragma GCC unroll 16
      for (uint32_t r = 0; r < kRows; ++r) {
        const VecF32 x = set_reals(in[uint64_t{r} * a.input_c + k]);
#pragma GCC unroll 4
        for (uint32_t v = 0; v < kDenseVectors; ++v) sums[r][v] = add(sums[r][v], mul(x, w[v]));
      }
    }
#pragma GCC unroll 16
    for (uint32_t r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
      for (uint32_t v = 0; v < kDenseVectors; ++v) store_dense(a, row + r, block, v, sums[r][v]);
    }
  }
  return row;
}

template <uint32_t kBits>
inline void dense_item(const WeightOnlyDenseArgs& a, uint32_t row, uint32_t end_row, uint32_t block,
                       uint32_t end_block, float* reals) {
  if (a.rows == 1) {
    if constexpr (kDenseTileBlocks > 1) {
      for (; end_block - block >= kDenseTileBlocks; block += kDenseTileBlocks)
        dense_row<kDenseTileBlocks, kBits>(a, row, block);
    }
    for (; block < end_block; ++block) dense_row<1, kBits>(a, row, block);
    return;
  }
  for (; block < end_block; ++block) {
    DenseWeights<1, kBits>(a, block).for_each([&](uint32_t, uint32_t v, uint32_t k, VecF32 weights) {
      store_reals(reals + uint64_t{k} * kFloatBlock + v * kLanes, weights, kLanes);
    });
    uint32_t r = dense_tiles<kDenseRows>(a, row, end_row, block, reals);
    if constexpr (kDenseRows >= 6) r = dense_tiles<kDenseRows / 2>(a, r, end_row, block, reals);
    if constexpr (kDenseRows >= 12) r = dense_tiles<kDenseRows / 4>(a, r, end_row, block, reals);
    dense_tiles<1>(a, r, end_row, block, reals);
  }
}

}  // namespace

QPLAN_SIMD_NAMESPACE(weight_only_dense) {

#if !defined(QPLAN_ONLY_RUN)
Refusal accepts(const WeightOnlyDenseArgs& args) {
  return num_dense_items(args) <= UINT32_MAX ? Refusal::kNone : Refusal::kTooLarge;
}

size_t scratch_bytes(const WeightOnlyDenseArgs& args) {
  return args.rows == 1 ? 0 : size_t{args.input_c} * kFloatBlock * sizeof(float);
}

uint32_t work_items(const WeightOnlyDenseArgs& args) { return static_cast<uint32_t>(num_dense_items(args)); }
#endif

#if !defined(QPLAN_ONLY_QUERIES)
void run(const WeightOnlyDenseArgs& args, uint32_t begin, uint32_t end, void* scratch) {
  const uint32_t groups = num_dense_groups(args), num_blocks = num_dense_blocks(args);
  float* const reals = static_cast<float*>(scratch);
  for (uint32_t item = begin; item < end; ++item) {
    const uint32_t row = item / groups * kDenseItemRows, block = item % groups * kDenseBlocks;
    const uint32_t end_row = args.rows - row < kDenseItemRows ? args.rows : row + kDenseItemRows;
    const uint32_t end_block = num_blocks - block < kDenseBlocks ? num_blocks : block + kDenseBlocks;
    if (args.bits == 8) {
      dense_item<8>(args, row, end_row, block, end_block, reals);
    } else {
      dense_item<4>(args, row, end_row, block, end_block, reals);
    }
  }
}
#endif

}  // QPLAN_SIMD_NAMESPACE(weight_only_dense)

}  // namespace qplan
