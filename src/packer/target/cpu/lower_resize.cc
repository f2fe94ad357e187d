// image.resize2d on float32: along height, then along width, each output is the sum of two neighbours that
// the family gather fetches, times their weights (docs/numerics/float32.md).
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "src/packer/ir/cat.h"
#include "src/packer/op/shape.h"
#include "src/packer/target/cpu/table.h"

namespace qplan::target::cpu {
namespace {

// The positions of the two neighbours of each output along an axis, and the weight of the second one.
struct Neighbours {
  std::vector<int32_t> first, second;
  std::vector<float> weight;
};

// In float32, as TFLite computes them.
Neighbours neighbours_of(const std::string& mode, int64_t in, int64_t out) {
  const bool aligns = mode == "align_corners" && out > 1;
  const float scale = aligns ? static_cast<float>(in - 1) / static_cast<float>(out - 1)
                             : static_cast<float>(in) / static_cast<float>(out);
  const auto held = [&](float place) {
    return static_cast<int32_t>(std::min(std::max(place, 0.0f), static_cast<float>(in - 1)));
  };
  Neighbours neighbours;
  for (int64_t i = 0; i < out; ++i) {
    const auto at = static_cast<float>(i);
    const float place = mode == "half_pixel" ? (at + 0.5f) * scale - 0.5f : at * scale;
    neighbours.first.push_back(held(std::floor(place)));
    neighbours.second.push_back(held(std::ceil(place)));
    // Beyond the edges both are the same element, whose weights are 1 together.
    neighbours.weight.push_back(place - static_cast<float>(neighbours.first.back()));
  }
  return neighbours;
}

class AxisResizer {
 public:
  AxisResizer(Lowering& lowering, const ir::Node& node, ir::TensorType type, uint32_t axis)
      : lowering_(lowering), node_(node), type_(std::move(type)), axis_(axis) {}

  // output: null for a new activation.
  TensorId run(TensorId input, const Neighbours& neighbours, const TensorId* output) {
    type_.shape[axis_] = static_cast<int64_t>(neighbours.first.size());
    std::vector<float> rest;
    for (const float weight : neighbours.weight) rest.push_back(1.0f - weight);
    const TensorId first = weighted(gathered(input, neighbours.first), rest, "first");
    const TensorId second = weighted(gathered(input, neighbours.second), neighbours.weight, "second");
    const TensorId sum = output != nullptr ? *output : lowering_.add_activation(type_, node_.name + "/rows");
    combine(format::FloatBinary_ADD, first, second, sum);
    return sum;
  }

 private:
  TensorId gathered(TensorId input, const std::vector<int32_t>& positions) {
    const size_t rank = type_.shape.size();
    ProgramStep step = make_step(kKernel_gather, node_);
    step.inputs = {input, add_values(lowering_, ir::kInt32, positions, node_.name + "/positions")};
    step.outputs = {lowering_.add_activation(type_, node_.name + "/neighbours")};
    step.params = GatherParams{.begin = std::vector<uint32_t>(rank, 0),
                               .step = std::vector<int32_t>(rank, 1),
                               .tables = uint32_t{1} << axis_};
    const TensorId result = step.outputs[0];
    lowering_.add_step(std::move(step));
    return result;
  }

  TensorId weighted(TensorId data, const std::vector<float>& weights, const char* name) {
    ir::Shape along(type_.shape.size() - axis_, 1);
    along[0] = static_cast<int64_t>(weights.size());
    std::vector<uint8_t> bytes(weights.size() * sizeof(float));
    std::memcpy(bytes.data(), weights.data(), bytes.size());
    const TensorId factors = lowering_.add_constant(
        {ir::kFloat32, along}, std::make_shared<const std::vector<uint8_t>>(bytes), node_.name + "/weights");
    const TensorId result = lowering_.add_activation(type_, node_.name + "/" + name);
    combine(format::FloatBinary_MUL, data, factors, result);
    return result;
  }

  void combine(format::FloatBinary op, TensorId a, TensorId b, TensorId output) {
    constexpr float kUnbounded = std::numeric_limits<float>::infinity();
    ProgramStep step = make_step(kKernel_float_binary, node_);
    step.inputs = {a, b};
    step.outputs = {output};
    step.params = FloatBinaryParams{.op = op, .clamp_min = -kUnbounded, .clamp_max = kUnbounded};
    lowering_.add_step(std::move(step));
  }

  Lowering& lowering_;
  const ir::Node& node_;
  ir::TensorType type_;
  uint32_t axis_;
};

NodeSequence match_float_resize(const Lowering& lowering, uint32_t node) {
  const bool found = lowering.is(node, "image.resize2d") &&
                     lowering.type(lowering.node(node).operands[0]).dtype == ir::kFloat32;
  return found ? NodeSequence{node} : NodeSequence{};
}

void lower_float_resize(Lowering& lowering, const NodeSequence& sequence) {
  const ir::Node& node = lowering.node(sequence.front());
  const std::string& mode = op::attr_string(node, "coordinate_transformation_mode");
  const ir::TensorType& from = lowering.type(node.operands[0]);
  const ir::Shape& to = lowering.type(node.results[0]).shape;
  const TensorId data = lowering.tensor(node.operands[0]);
  const TensorId rows =
      AxisResizer(lowering, node, from, 1).run(data, neighbours_of(mode, from.shape[1], to[1]), nullptr);
  ir::TensorType between = from;
  between.shape[1] = to[1];
  const TensorId output = lowering.define(node.results[0]);
  AxisResizer(lowering, node, between, 2).run(rows, neighbours_of(mode, from.shape[2], to[2]), &output);
}

}  // namespace

std::vector<TableRow> resize_rows() {
  return {{"float_resize", match_float_resize, {nhwc("cpu.float_resize.")}, lower_float_resize}};
}

}  // namespace qplan::target::cpu
