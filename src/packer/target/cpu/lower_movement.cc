// Elements that move: pad, transpose, reshape; concatenate, split; strided_slice, take.
#include <algorithm>
#include <cstring>
#include <numeric>
#include <optional>

#include "kernels/movement/movement.h"
#include "src/packer/ir/cat.h"
#include "src/packer/layer/quantized_layer.h"
#include "src/packer/op/attributes.h"
#include "src/packer/target/cpu/lowering.h"

namespace qplan::target::cpu {
namespace {

// ---- pad, transpose, reshape: one tensor in, the same elements elsewhere.

// The fill of nn.pad as the plan has it: a scalar of the data's dtype, the int32 that the passes make of it,
// or the float that Relay prints for it; of a float its bits.
int32_t fill_of(const ir::Constant& value, ir::DType of) {
  const ir::DType dtype = value.type().dtype;
  if (value.type().num_elements() != 1) refuse("its pad value must be a scalar");
  if (of.is_float()) {
    const float fill =
        dtype == ir::kInt32 ? static_cast<float>(value.as<int32_t>()[0]) : value.as<float>()[0];
    int32_t bits = 0;
    std::memcpy(&bits, &fill, sizeof(bits));
    return bits;
  }
  if (dtype == ir::kInt8) return value.as<int8_t>()[0];
  if (dtype == ir::kUint8) return value.as<uint8_t>()[0];
  if (dtype == ir::kInt16) return value.as<int16_t>()[0];
  if (dtype == ir::kInt32) return value.as<int32_t>()[0];
  if (dtype != ir::kFloat32) refuse("its pad value is " + ir::to_string(dtype));
  const float fill = value.as<float>()[0];
  if (!(fill >= -16777216.0f && fill <= 16777216.0f) ||
      static_cast<float>(static_cast<int32_t>(fill)) != fill) {
    refuse("its pad value is not an integer");
  }
  return static_cast<int32_t>(fill);
}

std::vector<uint32_t> to_uint32(const ir::Ints& values) {
  std::vector<uint32_t> result;
  for (const int64_t value : values) result.push_back(static_cast<uint32_t>(value));
  return result;
}

int32_t pad_fill(const Lowering& lowering, const ir::Node& node) {
  const ir::DType dtype = lowering.type(node.operands[0]).dtype;
  const int32_t value = fill_of(lowering.constant(node.operands[1], "the pad value"), dtype);
  if (!dtype.is_float() && dtype.bits <= 32 && (value < dtype.min() || value > dtype.max())) {
    refuse("pad value " + std::to_string(value) + " is not a value of " + ir::to_string(dtype));
  }
  return value;
}

std::vector<uint32_t> pad_before(const ir::Node& node) {
  ir::Ints before;
  for (const ir::Ints& pair : op::attr_int_lists(node, "pad_width")) {
    if (pair.size() != 2 || pair[0] < 0 || pair[1] < 0)
      refuse("pad_width must be pairs that are not negative");
    before.push_back(pair[0]);
  }
  return to_uint32(before);
}

NodeSequence match_pad(const Lowering& lowering, uint32_t node) {
  return lowering.is(node, "nn.pad") ? NodeSequence{node} : NodeSequence{};
}

std::vector<Constraint> constraints_of_pad() {
  return {
      {"cpu.pad.mode", "the mode is `constant`", kNothingToChange,
       [](const Matched& match) -> std::string {
         const std::string& mode = op::attr_string(*node_of(match), "pad_mode");
         return mode == "constant" ? "" : cat("pad_mode '", mode, "', the kernel supports 'constant'");
       }},
      {"cpu.pad.value", "the value is a constant, a scalar and a value of the data's dtype", kMakeConstant,
       [](const Matched& match) {
         return refusal_of([&] { (void)pad_fill(match.lowering, *node_of(match)); });
       }},
      {"cpu.pad.width", "nothing is cut off", kNothingToChange,
       [](const Matched& match) { return refusal_of([&] { (void)pad_before(*node_of(match)); }); }}};
}

void lower_pad(Lowering& lowering, const NodeSequence& sequence) {
  const ir::Node& node = lowering.node(sequence.front());
  add_unary_step(lowering, kKernel_pad, node,
                 PadParams{.before = pad_before(node), .value = pad_fill(lowering, node)});
}

NodeSequence match_transpose(const Lowering& lowering, uint32_t node) {
  return lowering.is(node, "transpose") ? NodeSequence{node} : NodeSequence{};
}

void lower_transpose(Lowering& lowering, const NodeSequence& sequence) {
  const ir::Node& node = lowering.node(sequence.front());
  add_unary_step(lowering, kKernel_transpose, node,
                 TransposeParams{.permutation = to_uint32(op::attr_ints(node, "axes"))});
}

NodeSequence match_reshape(const Lowering& lowering, uint32_t node) {
  return lowering.is(node, "reshape") ? NodeSequence{node} : NodeSequence{};
}

void lower_reshape(Lowering& lowering, const NodeSequence& sequence) {
  const ir::Node& node = lowering.node(sequence.front());
  add_unary_step(lowering, kKernel_copy, node, NoParams{});
}

}  // namespace

std::vector<TableRow> movement_rows() {
  return {{"pad", match_pad, constraints_of_pad(), lower_pad},
          {"transpose", match_transpose, {}, lower_transpose},
          {"reshape", match_reshape, {}, lower_reshape}};
}

// ---- concatenate, split: families concat and split, in several steps where one cannot take all parts.
namespace {

// [0, count) in as few runs of at most `limit` as there can be.
std::vector<size_t> run_lengths(size_t count, size_t limit) {
  std::vector<size_t> lengths;
  for (size_t begin = 0; begin < count; begin += limit) lengths.push_back(std::min(limit, count - begin));
  return lengths;
}

class Joiner {
 public:
  Joiner(Lowering& lowering, const ir::Node& node, uint32_t axis)
      : lowering_(lowering), node_(node), axis_(axis) {}

  // The parts of type `like` but for the extent along the axis.
  void run(std::vector<TensorId> parts, ir::Ints extents, TensorId output, const ir::TensorType& like) {
    while (parts.size() > ConcatArgs::kMaxInputs) {
      std::vector<TensorId> joined;
      ir::Ints joined_extents;
      size_t begin = 0;
      for (const size_t length : run_lengths(parts.size(), ConcatArgs::kMaxInputs)) {
        ir::TensorType type = like;
        type.shape[axis_] = 0;
        for (size_t i = 0; i < length; ++i) type.shape[axis_] += extents[begin + i];
        joined_extents.push_back(type.shape[axis_]);
        joined.push_back(lowering_.add_activation(std::move(type), node_.name));
        add_step({parts.begin() + static_cast<ptrdiff_t>(begin),
                  parts.begin() + static_cast<ptrdiff_t>(begin + length)},
                 joined.back());
        begin += length;
      }
      parts = std::move(joined);
      extents = std::move(joined_extents);
    }
    add_step(std::move(parts), output);
  }

 private:
  void add_step(std::vector<TensorId> inputs, TensorId output) {
    ProgramStep step = make_step(kKernel_concat, node_);
    step.inputs = std::move(inputs);
    step.outputs = {output};
    step.params = ConcatParams{.axis = axis_};
    lowering_.add_step(std::move(step));
  }

  Lowering& lowering_;
  const ir::Node& node_;
  uint32_t axis_;
};

class Splitter {
 public:
  Splitter(Lowering& lowering, const ir::Node& node, uint32_t axis)
      : lowering_(lowering), node_(node), axis_(axis) {}

  // Cuts `input` of type `like` into the results [begin, end) of the node, level by level.
  void run(TensorId input, const ir::TensorType& like) {
    struct Piece {
      TensorId tensor;
      size_t begin;
      size_t end;
    };
    std::vector<Piece> pieces{{input, 0, node_.results.size()}};
    for (size_t next = 0; next < pieces.size(); ++next) {
      const Piece piece = pieces[next];
      const size_t count = piece.end - piece.begin;
      // A piece that one step can cut is cut into results, a larger one into pieces of equal numbers of
      // results.
      size_t per_output = 1;
      while (per_output * SplitArgs::kMaxOutputs < count) per_output *= SplitArgs::kMaxOutputs;
      std::vector<TensorId> outputs;
      for (size_t begin = piece.begin; begin < piece.end; begin += per_output) {
        const size_t end = std::min(begin + per_output, piece.end);
        if (end - begin == 1) {
          outputs.push_back(lowering_.define(node_.results[begin]));
          continue;
        }
        ir::TensorType type = like;
        type.shape[axis_] = 0;
        for (size_t i = begin; i < end; ++i)
          type.shape[axis_] += lowering_.type(node_.results[i]).shape[axis_];
        outputs.push_back(lowering_.add_activation(std::move(type), node_.name));
        pieces.push_back({outputs.back(), begin, end});
      }
      add_step(piece.tensor, std::move(outputs));
    }
  }

 private:
  void add_step(TensorId input, std::vector<TensorId> outputs) {
    ProgramStep step = make_step(kKernel_split, node_);
    step.inputs = {input};
    step.outputs = std::move(outputs);
    step.params = SplitParams{.axis = axis_};
    lowering_.add_step(std::move(step));
  }

  Lowering& lowering_;
  const ir::Node& node_;
  uint32_t axis_;
};

uint32_t parts_axis(const Lowering& lowering, const ir::Node& node) {
  const size_t rank = lowering.type(node.operands[0]).shape.size();
  return static_cast<uint32_t>(op::normalized_axis(op::attr_int(node, "axis"), rank));
}

NodeSequence match_concatenate(const Lowering& lowering, uint32_t node) {
  return lowering.is(node, "concatenate") ? NodeSequence{node} : NodeSequence{};
}

void lower_concatenate(Lowering& lowering, const NodeSequence& sequence) {
  const ir::Node& node = lowering.node(sequence.front());
  const uint32_t axis = parts_axis(lowering, node);
  std::vector<TensorId> parts;
  ir::Ints extents;
  for (const ir::ValueId operand : node.operands) {
    parts.push_back(lowering.tensor(operand));
    extents.push_back(lowering.type(operand).shape[axis]);
  }
  const TensorId output = lowering.define(node.results[0]);
  Joiner(lowering, node, axis)
      .run(std::move(parts), std::move(extents), output, lowering.type(node.results[0]));
}

NodeSequence match_split(const Lowering& lowering, uint32_t node) {
  return lowering.is(node, "split") ? NodeSequence{node} : NodeSequence{};
}

void lower_split(Lowering& lowering, const NodeSequence& sequence) {
  const ir::Node& node = lowering.node(sequence.front());
  Splitter(lowering, node, parts_axis(lowering, node))
      .run(lowering.tensor(node.operands[0]), lowering.type(node.operands[0]));
}

}  // namespace

std::vector<TableRow> concat_rows() {
  return {{"concatenate", match_concatenate, {}, lower_concatenate}, {"split", match_split, {}, lower_split}};
}

// ---- strided_slice, take: family gather. Each axis of the result reads positions of the same axis of the
// data, so a sequence of them is one step, whose positions are those of the last looked up in the one before
// it.
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
