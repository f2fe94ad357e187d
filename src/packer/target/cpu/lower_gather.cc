// strided_slice, take: family gather. Each axis of the result reads positions of the same axis of the data,
// so a sequence of them is one step, whose positions are those of the last looked up in the one before it.
#include <numeric>
#include <optional>

#include "src/packer/ir/cat.h"
#include "src/packer/layer/quantized_layer.h"
#include "src/packer/op/shape.h"
#include "src/packer/target/cpu/lowering.h"
#include "src/packer/target/cpu/table.h"

namespace qplan::target::cpu {
namespace {

// By axis, for each position of the result the position of the data.
using Positions = std::vector<std::vector<int32_t>>;

// More positions than this are not worth a list of them.
constexpr int64_t kMaxPositions = int64_t{1} << 22;

bool selects(const Lowering& lowering, uint32_t node) {
  if (lowering.is(node, "strided_slice")) return true;
  // Indices that the network computes: lower_numbers.cc.
  return lowering.is(node, "take") && lowering.function().is_constant(lowering.node(node).operands[1]);
}

// The positions along the axis that a take reads; refuses those that it does not have.
std::vector<int32_t> taken_positions(const Lowering& lowering, const ir::Node& take, int64_t extent) {
  const ir::Constant& indices = lowering.constant(take.operands[1], "the indices");
  if (indices.type().shape.size() != 1)
    refuse("its indices have rank " + std::to_string(indices.type().shape.size()));
  std::vector<int32_t> positions;
  for (const int64_t index : layer::integers(indices)) {
    if (index < -extent || index >= extent) {
      refuse(cat("index ", index, " is out of range, expected from ", -extent, " to ", extent - 1));
    }
    positions.push_back(static_cast<int32_t>(index < 0 ? index + extent : index));
  }
  return positions;
}

Positions positions_of(const Lowering& lowering, const ir::Node& node) {
  const ir::Shape& shape = lowering.type(node.operands[0]).shape;
  int64_t total = 0;
  for (const int64_t extent : shape) total += extent;
  for (const int64_t extent : lowering.type(node.results[0]).shape) total += extent;
  if (total > kMaxPositions) refuse(cat("its axes have ", total, " positions together"));
  Positions positions;
  if (node.op->name == "strided_slice") {
    for (const op::SliceRange& range : op::slice_ranges(node, shape)) {
      std::vector<int32_t>& axis = positions.emplace_back();
      for (int64_t i = 0; i < range.count; ++i)
        axis.push_back(static_cast<int32_t>(range.begin + i * range.step));
    }
    return positions;
  }
  for (const int64_t extent : shape) {
    std::vector<int32_t>& axis = positions.emplace_back(static_cast<size_t>(extent));
    std::iota(axis.begin(), axis.end(), 0);
  }
  const auto axis = static_cast<size_t>(op::normalized_axis(op::attr_int(node, "axis"), shape.size()));
  positions[axis] = taken_positions(lowering, node, shape[axis]);
  return positions;
}

NodeSequence match_gather(const Lowering& lowering, uint32_t node) {
  NodeSequence sequence;
  // The indices of a take may be what the node before it computes: then it is no sequence.
  for (uint32_t next = node; next != Lowering::kNoNode && selects(lowering, next);
       next = lowering.only_user(next)) {
    const bool follows =
        sequence.empty() || lowering.node(next).operands[0] == lowering.node(sequence.back()).results[0];
    if (!follows) break;
    sequence.push_back(next);
  }
  return sequence;
}

std::vector<Constraint> constraints_of_gather() {
  return {{"cpu.gather.dtype", "elements are numbers of 8 to 64 bits, or bool", kNothingToChange,
           [](const Matched& match) -> std::string {
             const ir::DType dtype = match.lowering.type(node_of(match)->operands[0]).dtype;
             const bool known = is_8_bit(dtype) || dtype == ir::kInt16 || dtype == ir::kInt32 ||
                                dtype == ir::kInt64 || dtype == ir::kFloat32 || dtype == ir::kBool;
             return known ? "" : cat("its dtype is ", dtype);
           }},
          {"cpu.gather.indices", "positions are constants, in a list, and in range", kMakeConstant,
           [](const Matched& match) {
             return refusal_of([&] {
               for (const uint32_t node : match.sequence) {
                 (void)positions_of(match.lowering, match.lowering.node(node));
               }
             });
           }}};
}

// The step between positions that follow one another; nullopt: they do not.
std::optional<int32_t> step_of(const std::vector<int32_t>& positions) {
  if (positions.size() < 2) return 1;
  const int32_t step = positions[1] - positions[0];
  for (size_t i = 2; i < positions.size(); ++i) {
    if (positions[i] - positions[i - 1] != step) return std::nullopt;
  }
  return step;
}

void lower_gather(Lowering& lowering, const NodeSequence& sequence) {
  const ir::Node& first = lowering.node(sequence.front());
  Positions positions = positions_of(lowering, first);
  for (size_t i = 1; i < sequence.size(); ++i) {
    Positions next = positions_of(lowering, lowering.node(sequence[i]));
    for (size_t axis = 0; axis < next.size(); ++axis) {
      for (int32_t& position : next[axis]) position = positions[axis][static_cast<size_t>(position)];
    }
    positions = std::move(next);
  }
  GatherParams params;
  std::vector<int32_t> lists;
  for (size_t axis = 0; axis < positions.size(); ++axis) {
    const std::optional<int32_t> step = step_of(positions[axis]);
    params.begin.push_back(step ? static_cast<uint32_t>(positions[axis][0]) : 0);
    params.step.push_back(step.value_or(1));
    if (step) continue;
    params.tables |= uint32_t{1} << axis;
    lists.insert(lists.end(), positions[axis].begin(), positions[axis].end());
  }
  ProgramStep step = make_step(kKernel_gather, lowering.node(sequence.back()));
  step.inputs = {lowering.tensor(first.operands[0])};
  if (!lists.empty()) {
    step.inputs.push_back(
        add_values(lowering, ir::kInt32, lists, lowering.node(sequence.back()).name + "/positions"));
  }
  step.outputs = {lowering.define(sequence_result(lowering, sequence))};
  step.params = std::move(params);
  lowering.add_step(std::move(step));
}

}  // namespace

std::vector<TableRow> gather_rows() {
  return {{"gather", match_gather, constraints_of_gather(), lower_gather}};
}

}  // namespace qplan::target::cpu
