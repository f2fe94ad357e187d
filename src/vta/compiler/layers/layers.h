// A unit: one node of a region (a composite, or an operator that stands alone) as a command stream of its
// own, which the region compiler joins with the others'. Layers with weights run on the GEMM core, elements
// and pools on the ALU.
#ifndef QPLAN_SRC_VTA_COMPILER_LAYERS_LAYERS_H_
#define QPLAN_SRC_VTA_COMPILER_LAYERS_LAYERS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "kernels/numeric/requantize.h"
#include "src/packer/layer/quantized_layer.h"
#include "src/packer/target/target.h"
#include "src/vta/compiler/streams/alu_steps.h"
#include "src/vta/compiler/streams/stream.h"

namespace qplan::vta::compiler {

// ---- what a unit is to the region, whichever of the device's parts it uses: the activations it reads and
// writes, and how to compile it once their layouts are chosen

using target::Candidate;
using target::Constraint;
using target::DeviceCosts;

// What a unit needs of an activation, before layouts are chosen. In the buffer, channels beyond the last
// (up to a multiple of 16) may hold anything.
struct UnitActivation {
  ir::ValueId value;                   // of the candidate's function; in a RegionPlan inputs: of the region's
  int64_t h = 1, w = 1, channels = 1;  // of one image; the rows of a fully connected layer are w
  Border needed;                       // inputs: what the unit reads around it, its padding
  // Inputs: what the border must hold, in the device's terms (uint8 less 128). nullopt: does not matter.
  std::optional<int8_t> border_value;
  bool is_unsigned = false;  // uint8 in the model: on the device with its highest bit flipped
  bool is_int32 = false;     // outputs of ..._acc32: four byte planes of the layout, one after the other
};

struct UnitPlan {
  std::string name;
  // UnitRegion::operand counts them. A value that is read twice (x + x) may be one or two of them; then their
  // layouts are the same.
  std::vector<UnitActivation> inputs;
  UnitActivation output;
  // inputs: layouts with at least the needed borders, which hold border_value. output: its border, if any, is
  // other readers' and must stay untouched. PackError (QPLAN_MODEL_UNSUPPORTED) with the numbers where it
  // does not fit the device. Null: no instructions, the output is the input's bytes under another shape.
  std::function<CompiledUnit(const Config& config, std::span<const ActivationLayout> inputs,
                             const ActivationLayout& output)>
      compile;
};

// A value of the candidate's function as an activation. A tensor of four axes is an image, others are rows of
// positions, as those of fully connected layers are.
UnitActivation activation(const Candidate& candidate, ir::ValueId value);

// ---- operators without weights, in the device's terms: uint8 less 128

[[noreturn]] void refuse_node(const ir::Node& node, const std::string& reason);
bool is_unsigned(const Candidate& candidate, ir::ValueId value);
// An operand that is one constant. PackError (QPLAN_MODEL_UNSUPPORTED) where it is not.
float scale_operand(const Candidate& candidate, const ir::Node& node, size_t operand, const char* what);
// As unsigned as the node's first operand.
int32_t device_zero_point(const Candidate& candidate, const ir::Node& node, size_t operand, const char* what);
// The range of the candidate's clip, or of the dtype.
layer::Clamp device_clamp(const Candidate& candidate);
// The unit without its compile().
UnitPlan plan_unit(const Candidate& candidate, std::string name, const std::vector<ir::ValueId>& inputs);

// A candidate whose constraints hold as a unit. PackError (QPLAN_MODEL_UNSUPPORTED) where constants cannot be
// read.
using UnitReader = UnitPlan (*)(const Candidate& candidate);

// What a candidate costs on the device, whose constraints hold: the count of its own stream, compiled by
// itself, from memory to memory, at the costs given. What the compiler does not take after all counts as its
// multiply-accumulates or its transfers.
// Candidates of the same types, attributes and scalars are compiled once: copies share what they remember.
class UnitCycles {
 public:
  UnitCycles(const Config& config, UnitReader read) : config_(config), read_(read) {}
  uint64_t operator()(const Candidate& candidate, const DeviceCosts& costs) const;

 private:
  uint64_t count(const Candidate& candidate, const DeviceCosts& costs) const;

  Config config_;
  UnitReader read_;
  std::shared_ptr<std::unordered_map<std::string, uint64_t>> known_ =
      std::make_shared<std::unordered_map<std::string, uint64_t>>();
};

// ---- the kinds of units

// Units that compute each element by itself: operands of one shape, a sequence of ALU steps.
struct Elementwise {
  std::string name;
  std::vector<AccBlock> operands;  // where each input is loaded: different blocks
  std::vector<AluStep> steps;      // the result is in kAccumulator
  std::vector<int32_t> constants;  // of AluStep::constant; the same for all channels
};

// clip. min, max: in int8.
Elementwise make_clip(std::string name, int32_t min, int32_t max);

// PackError (QPLAN_MODEL_UNSUPPORTED) where rows are too long for the device.
CompiledUnit compile_elementwise(const Config& config, const Elementwise& elementwise,
                                 std::span<const ActivationLayout> inputs, const ActivationLayout& output);

// qnn.add under TFL2 as steps of the ALU. All values are in int8: zero points and clamp of uint8 tensors are
// given less 128.
struct AddOperator {
  std::string name;
  float scale1 = 1.0f, scale2 = 1.0f, output_scale = 1.0f;
  int32_t zero_point1 = 0, zero_point2 = 0, output_zero_point = 0;
  int32_t clamp_min = -128, clamp_max = 127;
};

// The whole operator as one affine form (alu_steps.h), where there is one: proved for all 2^16 pairs.
std::optional<Elementwise> make_affine_add(const AddOperator& add);
// The three requantisations of docs/numerics/add.md one after the other: always exact. PackError
// (QPLAN_MODEL_UNSUPPORTED) where the CPU refuses the scales too.
Elementwise make_stepwise_add(const AddOperator& add);
// The first that exists.
Elementwise make_add(const AddOperator& add);

// Whether the bytes of the one, without border, are those of the other.
bool lie_alike(const UnitActivation& a, const UnitActivation& b);

UnitPlan read_add_unit(const Candidate& candidate);
UnitPlan read_clip_unit(const Candidate& candidate);
// A reshape whose elements lie alike on the device before and after it: a plan without compile().
UnitPlan read_rename_unit(const Candidate& candidate);

// Layers of weights (qplan.qconv2d, qplan.qdepthwise, qplan.qdense, ..._acc32) as units: on the GEMM core,
// under contract TFL2 or with int32 results.

// qnn.conv2d or qnn.dense -> nn.bias_add? -> qnn.requantize -> clip?, one image; one group, or as many as
// channels in and out (depthwise: GEMM with diagonal weights, a cycle for each tap where the ALU would take
// seven). All values are in int8: zero points and clamp of uint8 activations are given less 128, and their
// bytes enter and leave with the highest bit flipped.
struct GemmLayer {
  std::string name;
  Geometry geometry;
  // [O][KH][KW][I], I = 1 where depthwise; less their zero point; from kMinWeight to kMaxWeight.
  std::vector<int16_t> weights;
  std::vector<int32_t> bias;                     // one per output channel
  std::vector<QuantizedMultiplier> multipliers;  // one per output channel
  int32_t input_zero_point = 0;
  // What the border of the input holds; nullopt: its zero point.
  std::optional<int8_t> padding;
  int32_t output_zero_point = 0;
  int32_t clamp_min = -128, clamp_max = 127;
  // The accumulators leave the device as int32, bias included; there are no multipliers.
  bool leaves_int32 = false;
};

struct CompiledGemm {
  CompiledUnit unit;  // regions in the order of LayerRegion
  Tiling tiling;
};

// PackError (QPLAN_MODEL_UNSUPPORTED), with numbers, for a layer that the device cannot compute to the bit or
// that does not fit it. input: its border is at least the window's padding, and holds what pads.
CompiledGemm compile_gemm(const Config& config, const GemmLayer& layer, const ActivationLayout& input,
                          const ActivationLayout& output);

// A matched layer of weights as numbers for the compiler.
struct ReadLayer {
  GemmLayer layer;
  // Whether the tensors in the plan are uint8: their highest bits are flipped on the way to and from the
  // device.
  bool flips_input = false, flips_output = false;
};

// A candidate of "qplan.qconv2d", "qplan.qdepthwise", "qplan.qdense" or their "..._acc32" whose constraints
// hold. An nn.pad before the layer becomes the border of its input. PackError (QPLAN_MODEL_UNSUPPORTED) where
// constants cannot be read.
ReadLayer read_gemm_layer(const Candidate& candidate);
UnitPlan read_gemm_unit(const Candidate& candidate);

// Maximum, average and mean over windows of positions, on the ALU.

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

#endif  // QPLAN_SRC_VTA_COMPILER_LAYERS_LAYERS_H_
