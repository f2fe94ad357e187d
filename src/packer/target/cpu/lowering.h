// What the lowerings of all families share: the function being lowered and the program that grows, scales and
// weights as steps hold them, conditions, and the table of all lowerings.
#ifndef QPLAN_SRC_PACKER_TARGET_CPU_LOWERING_H_
#define QPLAN_SRC_PACKER_TARGET_CPU_LOWERING_H_

#include <cstdint>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/layout.h"
#include "kernels/numeric/requantize.h"
#include "src/packer/error.h"
#include "src/packer/ir/module.h"
#include "src/packer/layer/quantized_layer.h"
#include "src/packer/op/op_def.h"
#include "src/packer/target/cpu/prove.h"
#include "src/packer/target/profile.h"
#include "src/packer/target/program.h"
#include "src/packer/target/target.h"
#include "src/runtime/bind/family.h"

namespace qplan::target::cpu {

// Indices of nodes, each the only user of the one before it.
using NodeSequence = std::vector<uint32_t>;

using layer::Clamp;
using layer::clip_clamp;
using layer::full_clamp;
using layer::is_8_bit;
using layer::is_quantized;

// The qnn.conv2d or qnn.dense that made an int32 value, and the constants that were added after it; null
// where another node made it.
struct AccumulatorSource {
  const ir::Function* function = nullptr;
  const ir::Node* product = nullptr;
  std::vector<ir::ConstantRef> biases = {};  // along the last axis; null: not so, or not a constant
};

// The body of a function that the lowered one calls, without calls of its own; null for one that is not
// known.
using BodyOf = std::function<const ir::Function*(const std::string& callee)>;

// Positions of operands, by the kinds of operators that share them.
namespace product {  // qnn.conv2d, qnn.dense
enum : size_t { kData, kWeight, kInputZeroPoint, kKernelZeroPoint, kInputScale, kKernelScale };
}
namespace unary {  // qnn.requantize, qnn.mean, qnn.softmax, qnn.sigmoid, qnn.avg_pool2d
enum : size_t { kData, kInputScale, kInputZeroPoint, kOutputScale, kOutputZeroPoint };
}
namespace binary {  // qnn.add, qnn.subtract, qnn.mul
enum : size_t {
  kLhs,
  kRhs,
  kLhsScale,
  kLhsZeroPoint,
  kRhsScale,
  kRhsZeroPoint,
  kOutputScale,
  kOutputZeroPoint
};
}
namespace cast {  // qnn.quantize, qnn.dequantize
enum : size_t { kData, kScale, kZeroPoint };
}

class Lowering {
 public:
  Lowering(const ir::Function& function, const TargetProfile& profile);

  const TargetProfile& profile() const { return profile_; }
  const ir::Function& function() const { return function_; }
  const ir::Node& node(uint32_t index) const { return function_.nodes()[index]; }
  bool is(uint32_t node, std::string_view op) const;
  const ir::TensorType& type(ir::ValueId value) const { return function_.type(value); }
  // The node that alone uses the node's only result; kNoNode when there are several or the function returns
  // it.
  static constexpr uint32_t kNoNode = UINT32_MAX;
  uint32_t only_user(uint32_t node) const;

  // Regions that a device runs are calls: what they compute is known by their bodies.
  void set_bodies(BodyOf body_of) { body_of_ = std::move(body_of); }
  // Biases added or not, in this function or where the call that gives the value gets it.
  AccumulatorSource accumulator_source(ir::ValueId value) const;

  // ---- operands: PackError (QPLAN_MODEL_UNSUPPORTED) when they are not what is asked for ----
  const ir::Constant& constant(ir::ValueId value, const char* what) const;
  float scale(ir::ValueId value, const char* what) const;
  int32_t zero_point(ir::ValueId value, const char* what) const;

  // ---- the program ----
  TensorId tensor(
      ir::ValueId value);  // that holds the value, which is a parameter, a constant or defined before
  TensorId define(ir::ValueId value);  // a new activation for a result
  void describe(ir::ValueId value, ProgramTensor* tensor) const;
  // Takes over what is known of the quantisation of a tensor of another program that holds the same.
  void describe(TensorId tensor, const ProgramTensor& same) {
    ProgramTensor& described = program_.tensors[tensor];
    if (described.scale != 0) return;
    described.scale = same.scale;
    described.zero_point = same.zero_point;
  }
  TensorId add_activation(ir::TensorType type, std::string name);
  TensorId add_constant(ir::TensorType type, Bytes bytes, std::string name);
  void add_step(ProgramStep step) { program_.steps.push_back(std::move(step)); }

  SumProofs& sum_proofs() { return sum_proofs_; }

  Program finish();

 private:
  TensorId add_copy(TensorId from);

  const ir::Function& function_;
  const TargetProfile& profile_;
  BodyOf body_of_;
  Program program_;
  SumProofs sum_proofs_;
  std::vector<TensorId> tensor_of_;  // per value
  std::vector<uint32_t> uses_;       // per value
  std::vector<uint32_t> user_;       // per value: the last node that uses it
};

// A vector constant.
template <typename T>
TensorId add_values(Lowering& lowering, ir::DType dtype, const std::vector<T>& values, std::string name) {
  std::vector<uint8_t> bytes(values.size() * sizeof(T));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return lowering.add_constant({dtype, {static_cast<int64_t>(values.size())}},
                               std::make_shared<const std::vector<uint8_t>>(std::move(bytes)),
                               std::move(name));
}

// A step of the kernel with no inputs, outputs and parameters yet.
ProgramStep make_step(KernelId kernel, const ir::Node& node);

// Adds a step from the node's first operand to its only result.
void add_unary_step(Lowering& lowering, KernelId kernel, const ir::Node& node, StepParams params);

struct UnaryScales {
  float input;
  int32_t input_zero_point;
  float output;
  int32_t output_zero_point;
};
// The node has the operands of `unary`.
UnaryScales read_unary_scales(const Lowering& lowering, const ir::Node& node);

[[noreturn]] void refuse(const std::string& reason);

// node, then the clip of quantised values that alone uses it, if there is one.
NodeSequence with_clip(const Lowering& lowering, uint32_t node);
// The clamp of a match made by with_clip.
Clamp sequence_clamp(const Lowering& lowering, const NodeSequence& sequence);
// The only result of the node sequence's last node.
ir::ValueId sequence_result(const Lowering& lowering, const NodeSequence& sequence);

// As attributes have it: "f32e".
std::string contract_name(format::Contract contract);
// The node's contract; refuses those that are not among `computed`.
format::Contract contract_of(const ir::Node& node, std::span<const format::Contract> computed);
format::Contract contract_of(const ir::Node& node, std::initializer_list<format::Contract> computed);

// What a row of the table matched.
struct Matched {
  const Lowering& lowering;
  const NodeSequence& sequence;
};
using Constraint = ConstraintOn<Matched>;

// How real scales become the parameters of steps, contract by contract, and constants in the kernels'
// layouts.

// The scales of a rescaling as a step holds them: multiplier and shift under tfl2 and tfl1, `scale` under
// f32e.
struct Rescale {
  QuantizedMultiplier quantized = {};
  float scale = 0.0f;
};
// The multiplier of one quotient, divided as the contract divides: in double, or in float32.
Rescale rescale(format::Contract contract, float input_scale, float output_scale);

// The function with layers that read a repeated pixel as two, of which one makes the bias of the other
// (repeated_pixels.cc); null where it has none, or the target's kernels want constants.
std::unique_ptr<ir::Function> separate_repeated_pixels(const ir::Function& function,
                                                       const TargetProfile& profile);

// A layer with weights: qnn.conv2d or qnn.dense -> nn.bias_add? -> qnn.requantize -> clip?; without the last
// two where something else reads the accumulators too: then they are the result, under contract ACC32. The
// nodes when the pattern begins at `node`, which is a `product`; empty when not.
NodeSequence match_weighted_layer(const Lowering& lowering, uint32_t node, std::string_view product);
layer::QuantizedLayer read_weighted_layer(const Lowering& lowering, const NodeSequence& sequence);
// Whether another step may compute the layer's bias: only processors of 64 bits read such a one, and it has
// no entries beyond the channels, which layouts want of other numbers of channels.
bool takes_computed_bias(const layer::QuantizedLayer& layer, const TargetProfile& profile);
// What no kernel takes of its weights, bias, scales and zero points; "" where they take all. The functions
// below expect that, and that the layout is canonical.
std::string violation_of(const layer::QuantizedLayer& layer);

// Weights [num_o, num_k], int8, in their layout, with the zero point to go with them.
struct PackedWeights {
  TensorId tensor;
  int32_t zero_point;
  std::shared_ptr<const std::vector<uint8_t>> bytes;
  std::vector<int32_t> rests;  // channel, k and rest of each (kernels/conv2d/conv2d.h, WeightRest)
};
// Groups of a convolution that become one, `merged` at a time: each output channel then has weights for the
// input channels of all of them, the zero point where they are none of its own.
struct GroupMerge {
  uint64_t merged = 1;
  uint64_t group_o = 1;  // output channels of a group
  uint64_t group_c = 1;  // input channels
};

// As int8: uint8 less 128. Where no more than max_rests, if that is given, of the weights less their zero
// point are not int8, those, with rests, and without a zero point; not of merged groups.
PackedWeights pack_weights(Lowering& lowering, const layer::QuantizedLayer& layer, uint16_t layout,
                           const LayoutWindow& window, const GroupMerge& merge = {},
                           std::optional<uint32_t> max_rests = {});

// The contracts that layers with weights are computed under, named by their requantize; ACC32 without one.
format::Contract layer_contract(const layer::QuantizedLayer& layer);

// One entry per channel, under tfl2 and tfl1. Refuses what is too large.
std::vector<QuantizedMultiplier> channel_multipliers(const layer::QuantizedLayer& layer);

// Tensors of bias, multiplier and shift, under f32e of bias and scale, under acc32 of bias, one entry per
// channel, padded as the layout wants it; appended to inputs. The rests of weights follow the bias.
void append_channel_constants(Lowering& lowering, const layer::QuantizedLayer& layer, uint16_t layout,
                              const std::vector<int32_t>& rests, std::vector<TensorId>* inputs);

// What requantises accumulators that are a tensor: one entry for all, or one per channel.
struct AccumulatorScales {
  uint32_t axis = 0;                           // of the channels
  std::vector<QuantizedMultiplier> quantized;  // under tfl2 and tfl1
  std::vector<float> scale;                    // under f32e
};
// The scales of a qnn.requantize. Where its accumulators come from a layer with weights, in this function or
// in the body of a function that it calls, they are those that the layer and its requantize would have as one
// step.
AccumulatorScales accumulator_scales(const Lowering& lowering, const ir::Node& requantize,
                                     format::Contract contract);

// The float epilogues of a step's channels (format/README.md, "Float requantisation"): what prove.h proves
// for the accumulators that a layer's weights and input can make.

// FloatEpilogue_NONE where the layout keeps channels apart (kLayout_ohwi: no variant reads it by vectors),
// the contract computes in float anyway, or no group of channels has a proof.
FloatEpilogues prove_float_epilogues(const layer::QuantizedLayer& layer, uint16_t layout);

// Float requantisation for a qnn.requantize with `scales` and an output of this zero point and clamp. It is
// proved for all 8-bit inputs, or for the accumulators that the layer with weights can make;
// FloatEpilogue_NONE where they come from elsewhere, and for targets without vectors.
FloatEpilogues prove_float_epilogues(const Lowering& lowering, const ir::Node& requantize,
                                     const AccumulatorScales& scales, Clamp clamp, format::Contract contract);

// The CPU's table of lowerings, and the conditions that several of its rows share.

// Conditions that several lowerings have. A lowering runs only where all of its row's conditions hold, so
// that it reads what it needs without checking again.
inline constexpr const char* kMakeConstant = "run the model through a constant folder or bind it with --bind";
inline constexpr const char* kChooseScales =
    "quantise the model with other scales; where they are not constants, run it through a constant folder or "
    "bind "
    "them with --bind";

// What `read` refuses, "" where it refuses nothing: for conditions on values that reading checks.
template <typename Read>
std::string refusal_of(const Read& read) {
  try {
    read();
  } catch (const PackError& error) {
    if (error.status() != QPLAN_MODEL_UNSUPPORTED) throw;
    return error.what();
  }
  return "";
}

// The node sequence's first node, or the first one with this operator; null where no node has it.
const ir::Node* node_of(const Matched& match, std::string_view op = {});

// The prefixes below are those of ids: "cpu.conv2d.".

// The attribute `contract` of the node names one of these.
Constraint contract_among(const std::string& prefix, std::initializer_list<format::Contract> computed,
                          std::string_view op = {});
// The dtype of the first node's operand, or of its result, is int8 or uint8.
Constraint operand_is_8_bit(const std::string& prefix, size_t operand);
// It is int8, uint8 or int16; the result is that of the last node.
Constraint operand_is_quantized(const std::string& prefix, size_t operand);
Constraint result_is_quantized(const std::string& prefix);
// Both operands and the result have one dtype, int8, uint8 or int16.
Constraint one_quantized_dtype(const std::string& prefix);
// int16 is computed under `tfl2` alone.
Constraint int16_contract(const std::string& prefix, std::string_view op = {});
// The attribute `layout` is NHWC.
Constraint nhwc(const std::string& prefix);
// `read` reads the scales and zero points and computes with them; it refuses what it cannot.
Constraint scales_are_constants(const std::string& prefix, void (*read)(const Matched& match));

// What the CPU target can lower. Each group of operators has its rows, and everything that they name, in
// lower_<group>.cc.

struct TableRow {
  const char* name;
  // The nodes that the row would take when its pattern begins at the node; empty when it does not.
  NodeSequence (*match)(const Lowering& lowering, uint32_t node);
  std::vector<Constraint> constraints;
  // Adds steps that define the results of the node sequence's last node. All constraints
  // hold; PackError (QPLAN_MODEL_UNSUPPORTED) only for tensors that no plan can hold.
  void (*lower)(Lowering& lowering, const NodeSequence& sequence);

  // All reasons against what the row matched; empty: it can be lowered.
  std::vector<Reason> check(const Matched& matched) const {
    return reasons_against<Matched>(constraints, matched);
  }
};

std::vector<TableRow> float_rows();        // operators on float32
std::vector<TableRow> resize_rows();       // image.resize2d on float32
std::vector<TableRow> layer_rows();        // qnn.conv2d, qnn.dense with what follows them
std::vector<TableRow> binary_rows();       // operators with two operands, with the clip that follows
std::vector<TableRow> image_rows();        // pools, image.resize2d
std::vector<TableRow> reduce_rows();       // qnn.mean, argmax
std::vector<TableRow> softmax_rows();      // qnn.softmax
std::vector<TableRow> unary_chain_rows();  // any sequence of functions of one 8-bit value, as one table
std::vector<TableRow> quantize_rows();     // conversions between float32, int32 and 8 bits
std::vector<TableRow> movement_rows();     // nn.pad, transpose, reshape
std::vector<TableRow> concat_rows();       // concatenate, split
std::vector<TableRow> number_rows();       // int32, casts, indices that the network computes
std::vector<TableRow> recurrent_rows();    // layers with a state
std::vector<TableRow> gather_rows();       // any sequence of strided_slice and take

// All of them. The first row that matches wins: composites come before their parts.
std::span<const TableRow> lowering_table();

}  // namespace qplan::target::cpu

#endif  // QPLAN_SRC_PACKER_TARGET_CPU_LOWERING_H_
