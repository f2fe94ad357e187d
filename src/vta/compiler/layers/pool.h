// Maximum, average and mean over windows of positions, on the ALU.
#ifndef QPLAN_SRC_VTA_COMPILER_LAYERS_POOL_H_
#define QPLAN_SRC_VTA_COMPILER_LAYERS_POOL_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "kernels/numeric/quantize_multiplier.h"
#include "src/packer/layer/geometry.h"
#include "src/vta/compiler/layers/unit.h"
#include "src/vta/compiler/streams/alu_steps.h"
#include "src/vta/compiler/streams/layout.h"

namespace qplan::vta::compiler {

// Cells beyond the input take no part: the input needs no border.
struct Pool {
  std::string name;
  Geometry geometry;            // in and out have the same channels
  AluOp combine = AluOp::kMax;  // or kAdd
  // What follows, on the maximum or the sum of int8 values, by the number of cells that the window has.
  // Where one sequence serves all windows, there is one.
  struct Epilogue {
    int64_t count = 0;  // 0: any
    std::vector<AluStep> steps;
  };
  std::vector<Epilogue> epilogues;
  std::vector<int32_t> constants;
};

// All values are in int8: clamps and zero points of uint8 tensors are given less 128.
Pool make_max_pool(std::string name, const Geometry& geometry, int32_t clamp_min, int32_t clamp_max);
// The average of docs/numerics/pool2d.md. A sum is multiplied and shifted; that this is the rounded quotient
// is proved for each sum there can be. nullopt: no such multiplier.
std::optional<Pool> make_average_pool(std::string name, const Geometry& geometry, bool is_unsigned,
                                      int32_t clamp_min, int32_t clamp_max);
// docs/numerics/mean.md, over height and width. multiplier: with one over the number of cells in it.
struct MeanOperator {
  std::string name;
  int64_t h = 1, w = 1, channels = 1;
  int32_t input_zero_point = 0, output_zero_point = 0;
  QuantizedMultiplier multiplier;
};
// PackError (QPLAN_MODEL_UNSUPPORTED) where sums leave the range in which the ALU's TFL2 is exact.
Pool make_mean(const MeanOperator& mean);

// PackError (QPLAN_MODEL_UNSUPPORTED), with numbers, for a window that does not fit the accumulators.
CompiledUnit compile_pool(const Config& config, const Pool& pool, const ActivationLayout& input,
                          const ActivationLayout& output);

// Neighbouring positions of the output whose windows have equally many cells.
struct WindowSpan {
  int64_t begin = 0, end = 0;
  int64_t cells = 0;
};
// Along one axis, of output positions [begin, end), in order.
std::vector<WindowSpan> window_spans_h(const Geometry& geometry, int64_t begin, int64_t end);
std::vector<WindowSpan> window_spans_w(const Geometry& geometry, int64_t begin, int64_t end);

UnitPlan read_max_pool_unit(const Candidate& candidate);
UnitPlan read_average_pool_unit(const Candidate& candidate);
UnitPlan read_mean_unit(const Candidate& candidate);

// For the constraints. nullopt: scales or zero points are not constants, which is another constraint's to
// say.
std::optional<Pool> average_pool(const Candidate& candidate);
std::optional<MeanOperator> mean_operator(const Candidate& candidate);

}  // namespace qplan::vta::compiler

#endif  // QPLAN_SRC_VTA_COMPILER_LAYERS_POOL_H_
