// A function as its text says it, before its types are known: what the parser fills, type deduction
// completes, and build_function turns into the IR. Values and nodes are numbered in the order of the text.
#ifndef QPLAN_SRC_PACKER_TEXT_DRAFT_H_
#define QPLAN_SRC_PACKER_TEXT_DRAFT_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "qplan/qplan.h"
#include "src/packer/ir/module.h"

namespace qplan::text {

struct DraftValue {
  enum class Kind : uint8_t {
    kParam,
    kConstant,
    kPlaceholder,  // a constant without data
    kResult,
  };
  Kind kind = Kind::kParam;
  std::string name;  // of a parameter or placeholder
  size_t place = 0;  // offset in the text
  // Shape and dtype are known separately: qnn.quantize states its result's dtype, whatever the shape is.
  std::optional<ir::Shape> shape;
  std::optional<ir::DType> dtype;
  ir::ConstantRef constant;  // kConstant; later also of what is bound or synthesised
  uint32_t node = 0;         // kResult: which node's, which of its results
  uint32_t result_index = 0;
  std::string_view comment;  // "ty=Tensor[(1, 3), int8] " behind it, not parsed

  bool known() const { return shape && dtype; }
  ir::TensorType type() const { return {*dtype, *shape}; }
  void set_type(const ir::TensorType& type) {
    shape = type.shape;
    dtype = type.dtype;
  }
};

struct DraftNode {
  ir::Node node;  // operands and results are ids of the draft's values
  size_t place = 0;
  std::vector<ir::TensorType> call_types;  // of a function's results
};

struct Draft {
  std::vector<DraftValue> values;
  std::vector<DraftNode> nodes;

  DraftValue& operator[](ir::ValueId id) { return values[id.index]; }
  const DraftValue& operator[](ir::ValueId id) const { return values[id.index]; }
  ir::ValueId add(DraftValue value) {
    values.push_back(std::move(value));
    return {static_cast<uint32_t>(values.size() - 1)};
  }
};

// Throws the PackError of a refusal at an offset in the text.
using FailAt = std::function<void(qplan_status status, size_t place, const std::string& text)>;

}  // namespace qplan::text

#endif  // QPLAN_SRC_PACKER_TEXT_DRAFT_H_
