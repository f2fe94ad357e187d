// Operators on numbers that stand for themselves: arithmetic on int32 and int64 (family int_binary), cast,
// comparisons (family compare), selection by conditions (family select) and by indices that the network
// computes (family gather_nd), reductions (families int_reduce and float_mean), running sums, the largest
// elements of rows.
#include <algorithm>

#include "src/packer/ir/cat.h"
#include "src/packer/op/attributes.h"
#include "src/packer/target/cpu/lowering.h"

namespace qplan::target::cpu {
namespace {

struct IntegerOp {
  const char* name;
  format::IntBinary op;
};
// operator list: what the kernel computes for each
constexpr IntegerOp kIntegerOps[] = {
    {"add", format::IntBinary_ADD},
    {"subtract", format::IntBinary_SUB},
    {"multiply", format::IntBinary_MUL},
    {"maximum", format::IntBinary_MAXIMUM},
    {"minimum", format::IntBinary_MINIMUM},
    {"floor_divide", format::IntBinary_FLOOR_DIV},
    {"floor_mod", format::IntBinary_FLOOR_MOD},
    {"divide", format::IntBinary_DIV},
};

ir::DType operand_dtype(const Lowering& lowering, uint32_t node) {
  return lowering.type(lowering.node(node).operands[0]).dtype;
}
bool is_of_integers(const Lowering& lowering, uint32_t node) {
  const ir::DType dtype = operand_dtype(lowering, node);
  return dtype == ir::kInt32 || dtype == ir::kInt64;
}

const IntegerOp* integer_op(const Lowering& lowering, uint32_t node) {
  const auto* found = std::ranges::find_if(kIntegerOps, [&](const IntegerOp& o) {
    return lowering.is(node, o.name) && is_of_integers(lowering, node);
  });
  return found == std::end(kIntegerOps) ? nullptr : found;
}

// A step whose inputs are the node's operands.
ProgramStep step_of_operands(Lowering& lowering, KernelId kernel, const ir::Node& node) {
  ProgramStep step = make_step(kernel, node);
  for (const ir::ValueId operand : node.operands) step.inputs.push_back(lowering.tensor(operand));
  step.outputs = {lowering.define(node.results[0])};
  return step;
}

NodeSequence match_int_binary(const Lowering& lowering, uint32_t node) {
  return integer_op(lowering, node) != nullptr ? NodeSequence{node} : NodeSequence{};
}
void lower_int_binary(Lowering& lowering, const NodeSequence& sequence) {
  ProgramStep step = step_of_operands(lowering, kKernel_int_binary, lowering.node(sequence.front()));
  step.params = IntBinaryParams{.op = integer_op(lowering, sequence.front())->op};
  lowering.add_step(std::move(step));
}

// What a plan's tensors of numbers may have.
Constraint movable(const std::string& id, bool result_too) {
  return {
      id, "elements are numbers of 8 to 64 bits, or bool", kNothingToChange,
      [=](const Matched& match) -> std::string {
        const ir::Node& node = *node_of(match);
        for (const ir::ValueId value : {node.operands[0], result_too ? node.results[0] : node.operands[0]}) {
          const ir::DType dtype = match.lowering.type(value).dtype;
          const bool known = is_quantized(dtype) || dtype == ir::kInt32 || dtype == ir::kInt64 ||
                             dtype == ir::kFloat32 || dtype == ir::kBool;
          if (!known) return cat("its dtype is ", dtype);
        }
        return "";
      }};
}

NodeSequence match_cast(const Lowering& lowering, uint32_t node) {
  return lowering.is(node, "cast") ? NodeSequence{node} : NodeSequence{};
}
// Bytes of the kernel are numbers: a bool is a comparison with 0 (the rewrite cast_to_bool).
Constraint casts_to_numbers() {
  return {"cpu.cast.bool", "the result is a number", "do not skip the rewrite cast_to_bool",
          [](const Matched& match) -> std::string {
            const bool is_bool = match.lowering.type(node_of(match)->results[0]).dtype == ir::kBool;
            return is_bool ? "its result is bool" : "";
          }};
}
void lower_cast(Lowering& lowering, const NodeSequence& sequence) {
  ProgramStep step = step_of_operands(lowering, kKernel_cast, lowering.node(sequence.front()));
  step.params = NoParams{};
  lowering.add_step(std::move(step));
}

NodeSequence match_gather_nd(const Lowering& lowering, uint32_t node) {
  return lowering.is(node, "gather_nd") || lowering.is(node, "take") ? NodeSequence{node} : NodeSequence{};
}
std::vector<Constraint> constraints_of_gather_nd() {
  return {movable("cpu.gather_nd.dtype", false),
          {"cpu.gather_nd.indices", "indices are int32", kNothingToChange,
           [](const Matched& match) -> std::string {
             const ir::DType dtype = match.lowering.type(node_of(match)->operands[1]).dtype;
             return dtype == ir::kInt32 ? "" : cat("its indices are ", dtype);
           }}};
}
void lower_gather_nd(Lowering& lowering, const NodeSequence& sequence) {
  const ir::Node& node = lowering.node(sequence.front());
  GatherNdParams params{.axis = 0, .rank = 1};
  if (node.op->name == "take") {  // operator list: a gather_nd of one axis
    const size_t rank = lowering.type(node.operands[0]).shape.size();
    params.axis = static_cast<uint32_t>(op::normalized_axis(op::attr_int(node, "axis"), rank));
  } else {
    params.rank = static_cast<uint32_t>(lowering.type(node.operands[1]).shape.back());
  }
  ProgramStep step = step_of_operands(lowering, kKernel_gather_nd, node);
  step.params = params;
  lowering.add_step(std::move(step));
}

// ---- comparisons and conditions ----

struct ComparisonOp {
  const char* name;
  format::Comparison op;
};
// operator list: what the kernel computes for each
constexpr ComparisonOp kComparisonOps[] = {
    {"less", format::Comparison_LESS},
    {"less_equal", format::Comparison_LESS_EQUAL},
    {"equal", format::Comparison_EQUAL},
};

const ComparisonOp* comparison_op(const Lowering& lowering, uint32_t node) {
  const auto* found =
      std::ranges::find_if(kComparisonOps, [&](const ComparisonOp& o) { return lowering.is(node, o.name); });
  return found == std::end(kComparisonOps) ? nullptr : found;
}

NodeSequence match_compare(const Lowering& lowering, uint32_t node) {
  return comparison_op(lowering, node) != nullptr ? NodeSequence{node} : NodeSequence{};
}
void lower_compare(Lowering& lowering, const NodeSequence& sequence) {
  ProgramStep step = step_of_operands(lowering, kKernel_compare, lowering.node(sequence.front()));
  step.params = CompareParams{.op = comparison_op(lowering, sequence.front())->op};
  lowering.add_step(std::move(step));
}

NodeSequence match_select(const Lowering& lowering, uint32_t node) {
  return lowering.is(node, "where") ? NodeSequence{node} : NodeSequence{};
}
void lower_select(Lowering& lowering, const NodeSequence& sequence) {
  ProgramStep step = step_of_operands(lowering, kKernel_select, lowering.node(sequence.front()));
  step.params = NoParams{};
  lowering.add_step(std::move(step));
}

// ---- along axes ----

struct ReductionOp {
  const char* name;
  format::FloatReduction reduction;
};
// operator list: what the kernels compute for each
constexpr ReductionOp kReductionOps[] = {
    {"mean", format::FloatReduction_MEAN},    {"sum", format::FloatReduction_SUM},
    {"max", format::FloatReduction_MAXIMUM},  {"min", format::FloatReduction_MINIMUM},
    {"prod", format::FloatReduction_PRODUCT},
};

const ReductionOp* reduction_op(const Lowering& lowering, uint32_t node) {
  const auto* found =
      std::ranges::find_if(kReductionOps, [&](const ReductionOp& o) { return lowering.is(node, o.name); });
  return found == std::end(kReductionOps) ? nullptr : found;
}

NodeSequence match_float_mean(const Lowering& lowering, uint32_t node) {
  const bool found = reduction_op(lowering, node) != nullptr && operand_dtype(lowering, node) == ir::kFloat32;
  return found ? NodeSequence{node} : NodeSequence{};
}
NodeSequence match_int_reduce(const Lowering& lowering, uint32_t node) {
  const bool found = reduction_op(lowering, node) != nullptr && is_of_integers(lowering, node);
  return found ? NodeSequence{node} : NodeSequence{};
}
void add_reduction(Lowering& lowering, uint32_t index, KernelId kernel) {
  const ir::Node& node = lowering.node(index);
  const size_t rank = lowering.type(node.operands[0]).shape.size();
  FloatReduceParams params = {.reduction = reduction_op(lowering, index)->reduction};
  for (const int64_t axis : op::normalized_axes(op::attr_ints(node, "axis"), rank))
    params.axes |= uint32_t{1} << axis;
  add_unary_step(lowering, kernel, node, params);
}
void lower_float_mean(Lowering& lowering, const NodeSequence& sequence) {
  add_reduction(lowering, sequence.front(), kKernel_float_mean);
}
void lower_int_reduce(Lowering& lowering, const NodeSequence& sequence) {
  add_reduction(lowering, sequence.front(), kKernel_int_reduce);
}

NodeSequence match_cumsum(const Lowering& lowering, uint32_t node) {
  return lowering.is(node, "cumsum") ? NodeSequence{node} : NodeSequence{};
}
void lower_cumsum(Lowering& lowering, const NodeSequence& sequence) {
  const ir::Node& node = lowering.node(sequence.front());
  const size_t rank = lowering.type(node.operands[0]).shape.size();
  ProgramStep step = step_of_operands(lowering, kKernel_cumulative_sum, node);
  step.params = CumulativeSumParams{
      .axis = static_cast<uint32_t>(op::normalized_axis(op::attr_int(node, "axis"), rank)),
      .exclusive = op::attr_bool(node, "exclusive"),
      .reverse = op::attr_bool(node, "reverse")};
  lowering.add_step(std::move(step));
}

NodeSequence match_topk(const Lowering& lowering, uint32_t node) {
  return lowering.is(node, "topk") ? NodeSequence{node} : NodeSequence{};
}
void lower_topk(Lowering& lowering, const NodeSequence& sequence) {
  const ir::Node& node = lowering.node(sequence.front());
  ProgramStep step = make_step(kKernel_top_k, node);
  step.inputs = {lowering.tensor(node.operands[0])};
  for (const ir::ValueId result : node.results) step.outputs.push_back(lowering.define(result));
  step.params = NoParams{};
  lowering.add_step(std::move(step));
}

}  // namespace

std::vector<TableRow> number_rows() {
  // operator list: each row has the functions of its operators
  return {{"int_binary", match_int_binary, {}, lower_int_binary},
          {"cast", match_cast, {movable("cpu.cast.dtype", true), casts_to_numbers()}, lower_cast},
          {"gather_nd", match_gather_nd, constraints_of_gather_nd(), lower_gather_nd},
          {"compare", match_compare, {movable("cpu.compare.dtype", false)}, lower_compare},
          {"select", match_select, {movable("cpu.select.dtype", true)}, lower_select},
          {"float_mean", match_float_mean, {}, lower_float_mean},
          {"int_reduce", match_int_reduce, {}, lower_int_reduce},
          {"cumulative_sum", match_cumsum, {}, lower_cumsum},
          {"top_k", match_topk, {}, lower_topk}};
}

}  // namespace qplan::target::cpu
