// concatenate, split: families concat and split, in several steps where one cannot take all parts.
#include <algorithm>

#include "kernels/concat/concat.h"
#include "kernels/split/split.h"
#include "src/packer/op/shape.h"
#include "src/packer/target/cpu/lowering.h"
#include "src/packer/target/cpu/table.h"

namespace qplan::target::cpu {
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

}  // namespace qplan::target::cpu
