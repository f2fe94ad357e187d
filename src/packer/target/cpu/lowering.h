// What the lowerings of all families share: the function being lowered, the program that grows, access to
// operands.
#ifndef QPLAN_SRC_PACKER_TARGET_CPU_LOWERING_H_
#define QPLAN_SRC_PACKER_TARGET_CPU_LOWERING_H_

#include <cstdint>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

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

// What a row of the table (table.h) matched.
struct Matched {
  const Lowering& lowering;
  const NodeSequence& sequence;
};
using Constraint = ConstraintOn<Matched>;

}  // namespace qplan::target::cpu

#endif  // QPLAN_SRC_PACKER_TARGET_CPU_LOWERING_H_
