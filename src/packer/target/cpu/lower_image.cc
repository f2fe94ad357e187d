// Windows and interpolation of images: qnn.avg_pool2d, nn.max_pool2d, image.resize2d, on float32 too.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "src/packer/ir/cat.h"
#include "src/packer/op/attributes.h"
#include "src/packer/target/cpu/lowering.h"

namespace qplan::target::cpu {
namespace {

constexpr std::initializer_list<format::Contract> kPoolContracts = {format::Contract_TFL2,
                                                                    format::Contract_F32E};

void add_pool_step(Lowering& lowering, const NodeSequence& sequence, KernelId kernel, Pool2dParams params) {
  const ir::Node& node = lowering.node(sequence.front());
  const op::Window2d window = op::pool2d_window(node);
  const Clamp clamp = sequence_clamp(lowering, sequence);
  params.pool_h = static_cast<uint32_t>(window.kernel_h);
  params.pool_w = static_cast<uint32_t>(window.kernel_w);
  params.stride_h = static_cast<uint32_t>(window.stride_h);
  params.stride_w = static_cast<uint32_t>(window.stride_w);
  params.pad_top = static_cast<uint32_t>(window.pad_top);
  params.pad_left = static_cast<uint32_t>(window.pad_left);
  params.clamp_min = clamp.min;
  params.clamp_max = clamp.max;
  ProgramStep step = make_step(kernel, node);
  step.inputs = {lowering.tensor(node.operands[0])};
  step.outputs = {lowering.define(sequence_result(lowering, sequence))};
  step.params = params;
  lowering.add_step(std::move(step));
}

Constraint no_dilation(const std::string& prefix) {
  return {prefix + "dilation", "no dilation", kNothingToChange, [](const Matched& match) -> std::string {
            const op::Window2d window = op::pool2d_window(*node_of(match));
            return window.dilation_h == 1 && window.dilation_w == 1 ? "" : "the kernel has no dilation";
          }};
}

std::vector<Constraint> pool_constraints(const std::string& prefix) {
  return {operand_is_quantized(prefix, 0), nhwc(prefix), no_dilation(prefix)};
}

bool averages_in_float(const ir::Node& node) {
  return op::attr_string(node, "contract") == contract_name(format::Contract_F32E);
}

void check_average(const Matched& match) {
  const ir::Node& node = *node_of(match);
  const UnaryScales scales = read_unary_scales(match.lowering, node);
  if (averages_in_float(node)) return;
  if (scales.input != scales.output || scales.input_zero_point != scales.output_zero_point) {
    refuse("input and output have different scales or zero points; the kernel needs equal ones");
  }
}

NodeSequence match_avg_pool2d(const Lowering& lowering, uint32_t node) {
  return lowering.is(node, "qnn.avg_pool2d") ? with_clip(lowering, node) : NodeSequence{};
}

std::vector<Constraint> constraints_of_avg_pool2d() {
  const std::string prefix = "cpu.avg_pool2d.";
  std::vector<Constraint> rows = pool_constraints(prefix);
  rows.push_back(contract_among(prefix, kPoolContracts));
  rows.push_back(int16_contract(prefix));
  rows.push_back({prefix + "count_include_pad", "padding is not counted, except under `f32e`",
                  kNothingToChange, [](const Matched& match) -> std::string {
                    const ir::Node& node = *node_of(match);
                    if (averages_in_float(node) || !op::attr_bool(node, "count_include_pad")) return "";
                    return "the kernel does not count padding, except under 'f32e'";
                  }});
  rows.push_back(scales_are_constants(prefix, check_average));
  return rows;
}

void lower_avg_pool2d(Lowering& lowering, const NodeSequence& sequence) {
  const ir::Node& node = lowering.node(sequence.front());
  Pool2dParams params = {.contract = contract_of(node, kPoolContracts)};
  if (params.contract == format::Contract_F32E) {
    const UnaryScales scales = read_unary_scales(lowering, node);
    params.input_scale = scales.input;
    params.input_zero_point = scales.input_zero_point;
    params.output_scale = scales.output;
    params.output_zero_point = scales.output_zero_point;
    params.count_include_pad = op::attr_bool(node, "count_include_pad");
  }
  add_pool_step(lowering, sequence, kKernel_avg_pool2d, params);
}

NodeSequence match_max_pool2d(const Lowering& lowering, uint32_t node) {
  return lowering.is(node, "nn.max_pool2d") ? with_clip(lowering, node) : NodeSequence{};
}

std::vector<Constraint> constraints_of_max_pool2d() { return pool_constraints("cpu.max_pool2d."); }

void lower_max_pool2d(Lowering& lowering, const NodeSequence& sequence) {
  add_pool_step(lowering, sequence, kKernel_max_pool2d, {});
}

NodeSequence match_resize_bilinear(const Lowering& lowering, uint32_t node) {
  return lowering.is(node, "image.resize2d") ? NodeSequence{node} : NodeSequence{};
}

std::vector<Constraint> constraints_of_resize_bilinear() {
  const std::string prefix = "cpu.resize2d.";
  return {contract_among(prefix, {format::Contract_TFL2}), operand_is_quantized(prefix, 0), nhwc(prefix)};
}

void lower_resize_bilinear(Lowering& lowering, const NodeSequence& sequence) {
  const ir::Node& node = lowering.node(sequence.front());
  const std::string& mode = op::attr_string(node, "coordinate_transformation_mode");
  // TFLite interpolates uint8 in float32, int8 and int16 in integers.
  const bool in_float = lowering.type(node.operands[0]).dtype == ir::kUint8;
  add_unary_step(
      lowering, kKernel_resize_bilinear, node,
      ResizeBilinearParams{.rule = in_float ? format::ResizeRule_TFL_FLOAT : format::ResizeRule_TFL_INTEGER,
                           .align_corners = mode == "align_corners",
                           .half_pixel_centers = mode == "half_pixel"});
}

}  // namespace

std::vector<TableRow> image_rows() {
  return {
      {"avg_pool2d", match_avg_pool2d, constraints_of_avg_pool2d(), lower_avg_pool2d},
      {"max_pool2d", match_max_pool2d, constraints_of_max_pool2d(), lower_max_pool2d},
      {"resize_bilinear", match_resize_bilinear, constraints_of_resize_bilinear(), lower_resize_bilinear}};
}

// image.resize2d on float32: along height, then along width, each output is the sum of two neighbours that
// the family gather fetches, times their weights (docs/numerics/float32.md).
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
