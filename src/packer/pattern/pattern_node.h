// The parts of a Pattern, for the matcher and for printing.
#ifndef QPLAN_SRC_PACKER_PATTERN_PATTERN_NODE_H_
#define QPLAN_SRC_PACKER_PATTERN_PATTERN_NODE_H_

#include <cstdint>
#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "src/packer/op/op_def.h"
#include "src/packer/pattern/pattern.h"
#include "src/packer/pattern/rebuild.h"

namespace qplan::pattern {

namespace condition {
struct Capture {
  std::string name;
};
struct DTypeIn {
  std::vector<ir::DType> any_of;
};
struct ShapeIs {
  ir::Shape shape;
};
struct RankIs {
  size_t rank;
};
struct OneUse {};
struct AttrIs {
  std::string name;
  ir::AttrValue value;
};
struct Where {
  std::string text;
  std::function<bool(const Pre&, PreValue)> holds;
};
}  // namespace condition

using Condition = std::variant<condition::Capture, condition::DTypeIn, condition::ShapeIs, condition::RankIs,
                               condition::OneUse, condition::AttrIs, condition::Where>;

enum class PatternKind : uint8_t { kAny, kConstant, kParam, kOp, kEither, kOptional, kDominates };

struct PatternNode {
  PatternKind kind = PatternKind::kAny;
  std::vector<const op::OpDef*> ops;  // kOp: one of; kOptional: the one; kDominates: the path
  bool commutative = false;           // kOp
  // kOp: operands. kEither: first, second. kOptional: inner, others. kDominates: child, parent.
  std::vector<Pattern> children;
  std::vector<Condition> conditions;
  uint32_t depth = 1;  // of the tree below and with this node
};

// ---- texts for near misses ----
// The pattern without its own conditions and without names: "qnn.quantize(clip(...), any)".
// The operands' own patterns are left out.
std::string describe_kind(const PatternNode& pattern);
std::string describe(const Condition& condition);  // "of dtype int8", "read once"
std::string describe(const ir::AttrValue& value);  // "[1, 2]", "\"NHWC\"", "0.5"
// What makes the value: "qnn.conv2d 'conv_1'", "parameter '%x'"; with its type.
std::string label(const ir::Function& function, ir::ValueId value);
std::string node_label(const ir::Function& function, uint32_t node);
std::string describe(const ir::Function& function, ir::ValueId value);

}  // namespace qplan::pattern

#endif  // QPLAN_SRC_PACKER_PATTERN_PATTERN_NODE_H_
