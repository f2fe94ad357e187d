// `custom`: an operator of the application's (qplan/custom_operator.h), as the attributes of a node have it.
#ifndef QPLAN_SRC_PACKER_OP_CUSTOM_H_
#define QPLAN_SRC_PACKER_OP_CUSTOM_H_

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "src/packer/ir/module.h"

namespace qplan::op {

// An option: numbers, which are finite, or a text.
struct CustomOption {
  std::string name;
  std::vector<double> numbers = {};
  std::optional<std::string> text = std::nullopt;
  bool operator==(const CustomOption&) const = default;
};

struct CustomAttributes {
  std::string name;  // of the operator: "TFLite_Detection_PostProcess"
  std::vector<CustomOption> options;
  std::vector<ir::TensorType> outputs;
  // One for each input, then one for each output; a scale of 0 says that the tensor is not quantised.
  std::vector<float> scales;
  std::vector<int32_t> zero_points;
  uint64_t scratch_bytes = 0;
  uint64_t state_bytes = 0;  // above 0: the last operand and the last result are a state beside those
};

// What a plan can hold.
inline constexpr size_t kMaxCustomOptions = 256;

// The dtypes of operands and results of such operators.
inline constexpr std::initializer_list<ir::DType> kDeclaredDTypes = {ir::kInt8,  ir::kUint8, ir::kInt16,
                                                                     ir::kInt32, ir::kInt64, ir::kFloat32};
// The results that attributes `shapes` and `dtypes` declare, of operators whose results nothing else says.
std::vector<ir::TensorType> declared_results(const ir::Node& node);

ir::Attrs attrs_of(const CustomAttributes& custom);
// PackError (QPLAN_MODEL_INVALID) with a text that begins after the node's name.
CustomAttributes custom_of(const ir::Node& node);

}  // namespace qplan::op

#endif  // QPLAN_SRC_PACKER_OP_CUSTOM_H_
