// Operators on float32: families float_conv2d, float_pool2d, float_binary, float_unary and float_softmax,
// with the activation that follows where the family has a clamp; dynamic_quantize and dynamic_dequantize
// around layers of 8-bit weights.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "kernels/float/float.h"
#include "src/packer/ir/cat.h"
#include "src/packer/layer/quantized_layer.h"
#include "src/packer/layer/weight_only.h"
#include "src/packer/op/attributes.h"
#include "src/packer/op/evaluate.h"
#include "src/packer/target/cpu/lowering.h"

namespace qplan::target::cpu {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

bool is_float(const Lowering& lowering, ir::ValueId value) {
  return lowering.type(value).dtype == ir::kFloat32;
}

// The operator, on float32.
bool is_float_op(const Lowering& lowering, uint32_t node, std::string_view op) {
  return lowering.is(node, op) && is_float(lowering, lowering.node(node).operands[0]) &&
         is_float(lowering, lowering.node(node).results[0]);
}

// ---- clamps ----

bool is_clamp(const Lowering& lowering, uint32_t node) {
  return node != Lowering::kNoNode &&
         (is_float_op(lowering, node, "clip") || is_float_op(lowering, node, "nn.relu"));
}

// The sequence, then the clamp that alone uses its result, if there is one.
NodeSequence with_float_clamp(const Lowering& lowering, NodeSequence sequence) {
  const uint32_t user = lowering.only_user(sequence.back());
  if (is_clamp(lowering, user)) sequence.push_back(user);
  return sequence;
}

struct FloatClamp {
  float min = -kInfinity, max = kInfinity;
};

FloatClamp float_clamp(const Lowering& lowering, const NodeSequence& sequence) {
  const ir::Node& last = lowering.node(sequence.back());
  if (last.op->name == "nn.relu") return {.min = 0.0f};
  if (last.op->name != "clip") return {};
  return {op::to_float32(op::attr_float(last, "a_min")), op::to_float32(op::attr_float(last, "a_max"))};
}

// A step of the sequence with these tensors as inputs.
ProgramStep float_step(Lowering& lowering, const NodeSequence& sequence, KernelId kernel,
                       std::vector<TensorId> inputs) {
  ProgramStep step = make_step(kernel, lowering.node(sequence.front()));
  step.inputs = std::move(inputs);
  step.outputs = {lowering.define(sequence_result(lowering, sequence))};
  return step;
}

// ---- layers of weights ----

// The values of a constant with one entry, or one for each index of the last axis of `like`; empty otherwise.
std::span<const float> channel_values(const Lowering& lowering, ir::ValueId value, const ir::Shape& like) {
  const ir::ConstantRef& constant = lowering.function().value(value).constant;
  if (constant == nullptr || constant->type().dtype != ir::kFloat32 || like.empty()) return {};
  const ir::Shape& shape = constant->type().shape;
  const int64_t count = constant->type().num_elements();
  if (shape.size() > like.size()) return {};
  return count == 1 || (count == like.back() && !shape.empty() && shape.back() == count)
             ? constant->as<float>()
             : std::span<const float>();
}

float entry_of(std::span<const float> values, size_t o) { return values[values.size() == 1 ? 0 : o]; }

// The operand of the node that is added to each channel of a layer's result; empty: it is no such node.
std::span<const float> bias_of(const Lowering& lowering, uint32_t node) {
  if (node == Lowering::kNoNode) return {};
  const ir::Node& add = lowering.node(node);
  const ir::Shape& shape = lowering.type(add.results[0]).shape;
  if (is_float_op(lowering, node, "nn.bias_add")) {
    const int64_t axis = op::normalized_axis(op::attr_int(add, "axis"), shape.size());
    return axis + 1 == std::ssize(shape) ? channel_values(lowering, add.operands[1], shape)
                                         : std::span<const float>();
  }
  if (!is_float_op(lowering, node, "add")) return {};
  for (const size_t constant : {size_t{1}, size_t{0}}) {
    const std::span<const float> values = channel_values(lowering, add.operands[constant], shape);
    if (!values.empty() && lowering.type(add.operands[1 - constant]).shape == shape) return values;
  }
  return {};
}

// factor * x + addend of a batch normalisation along the last axis, all of whose parameters are constants.
struct Affine {
  std::vector<double> factor, addend;
};

Affine affine_of(const Lowering& lowering, uint32_t node) {
  if (!is_float_op(lowering, node, "nn.batch_norm")) return {};
  const ir::Node& norm = lowering.node(node);
  const ir::Shape& shape = lowering.type(norm.results[0]).shape;
  const int64_t axis = op::normalized_axis(op::attr_int(norm, "axis"), shape.size());
  std::vector<std::span<const float>> values;
  for (size_t i = 1; i < norm.operands.size(); ++i) {
    const ir::ConstantRef& constant = lowering.function().value(norm.operands[i]).constant;
    if (constant == nullptr) return {};
    values.push_back(constant->as<float>());
  }
  Affine affine;
  for (size_t o = 0; o < static_cast<size_t>(shape[static_cast<size_t>(axis)]); ++o) {
    const auto at = [&](size_t i) {
      return static_cast<double>(values[i][o]);
    };  // gamma, beta, mean, variance
    affine.factor.push_back(at(0) / std::sqrt(at(3) + op::attr_float(norm, "epsilon")));
    affine.addend.push_back(at(1) - at(2) * affine.factor.back());
  }
  return affine;
}

bool is_channel_norm(const Lowering& lowering, uint32_t node) {
  if (node == Lowering::kNoNode || affine_of(lowering, node).factor.empty()) return false;
  const ir::Node& norm = lowering.node(node);
  const size_t rank = lowering.type(norm.results[0]).shape.size();
  return op::normalized_axis(op::attr_int(norm, "axis"), rank) + 1 == static_cast<int64_t>(rank);
}

// product, the bias after it, the batch normalisation after that, the clamp after that.
NodeSequence match_float_layer(const Lowering& lowering, uint32_t node, std::string_view op) {
  if (!is_float_op(lowering, node, op)) return {};
  NodeSequence sequence{node};
  uint32_t user = lowering.only_user(node);
  if (!bias_of(lowering, user).empty()) {
    sequence.push_back(user);
    user = lowering.only_user(user);
  }
  if (is_channel_norm(lowering, user)) sequence.push_back(user);
  return with_float_clamp(lowering, std::move(sequence));
}

Constraint float_weights(const std::string& prefix) {
  return {prefix + "weights", "the weights are a constant", kMakeConstant,
          [](const Matched& match) -> std::string {
            const ir::ValueId weights = match.lowering.node(match.sequence.front()).operands[1];
            return match.lowering.function().is_constant(weights) ? "" : "the weights are not a constant";
          }};
}

// Weights [o, k] in blocks of 16 outputs, filled up with zeros.
std::vector<float> in_blocks(std::span<const float> weights, size_t num_o, const Affine& affine) {
  const size_t num_k = weights.size() / num_o;
  const size_t num_blocks = (num_o + kFloatBlock - 1) / kFloatBlock;
  std::vector<float> blocks(num_blocks * num_k * kFloatBlock);
  for (size_t o = 0; o < num_o; ++o) {
    for (size_t k = 0; k < num_k; ++k) {
      float weight = weights[o * num_k + k];
      if (!affine.factor.empty()) weight = op::to_float32(static_cast<double>(weight) * affine.factor[o]);
      blocks[(o / kFloatBlock * num_k + k) * kFloatBlock + o % kFloatBlock] = weight;
    }
  }
  return blocks;
}

// Whether each pixel of the output reads one of the input, as in a fully connected layer.
bool is_one_pixel(const op::Window2d& window, int64_t groups) {
  return window.kernel_h == 1 && window.kernel_w == 1 && window.stride_h == 1 && window.stride_w == 1 &&
         !window.is_padded() && groups == 1;
}

// Fewer weights save little, and cost a scale and a zero point for each row.
constexpr size_t kMinWeightsOfIntegers = 1024;

void lower_float_layer(Lowering& lowering, const NodeSequence& sequence, const op::Window2d& window,
                       int64_t groups) {
  const ir::Node& product = lowering.node(sequence.front());
  const ir::ConstantRef weights = lowering.function().value(product.operands[1]).constant;
  const auto num_o = static_cast<size_t>(weights->type().shape[0]);
  std::vector<float> bias((num_o + kFloatBlock - 1) / kFloatBlock * kFloatBlock);
  Affine affine;
  for (const uint32_t node : sequence) {
    const std::span<const float> values = bias_of(lowering, node);
    for (size_t o = 0; o < num_o && !values.empty(); ++o) bias[o] = entry_of(values, o);
    if (is_float_op(lowering, node, "nn.batch_norm")) affine = affine_of(lowering, node);
  }
  for (size_t o = 0; o < affine.factor.size(); ++o)
    bias[o] = op::to_float32(static_cast<double>(bias[o]) * affine.factor[o] + affine.addend[o]);

  const FloatClamp clamp = float_clamp(lowering, sequence);
  const uint64_t macs = static_cast<uint64_t>(lowering.type(product.results[0]).num_elements()) *
                        (weights->as<float>().size() / num_o);
  const bool may_be_integers = is_one_pixel(window, groups) && affine.factor.empty() &&
                               weights->as<float>().size() >= kMinWeightsOfIntegers;
  if (const auto form = may_be_integers ? layer::as_weight_only(weights->as<float>(), num_o) : std::nullopt) {
    ProgramStep step =
        float_step(lowering, sequence, kKernel_weight_only_dense,
                   {lowering.tensor(product.operands[0]),
                    add_values(lowering, ir::kUint8, form->weights, product.name + "/weights"),
                    add_values(lowering, ir::kFloat32, form->scales, product.name + "/scales"),
                    add_values(lowering, ir::kUint8, form->zeros, product.name + "/zero_points"),
                    add_values(lowering, ir::kFloat32, bias, product.name + "/bias")});
    step.macs = macs;
    step.params = WeightOnlyDenseParams{.bits = static_cast<uint8_t>(form->bits),
                                        .block = form->block,
                                        .clamp_min = clamp.min,
                                        .clamp_max = clamp.max};
    return lowering.add_step(std::move(step));
  }
  const std::vector<float> blocks = in_blocks(weights->as<float>(), num_o, affine);
  const TensorId weights_tensor = add_values(lowering, ir::kFloat32, blocks, product.name + "/weights");
  const TensorId bias_tensor = add_values(lowering, ir::kFloat32, bias, product.name + "/bias");
  ProgramStep step = float_step(lowering, sequence, kKernel_float_conv2d,
                                {lowering.tensor(product.operands[0]), weights_tensor, bias_tensor});
  step.macs = macs;
  step.params = FloatWindowParams{.kernel_h = static_cast<uint32_t>(window.kernel_h),
                                  .kernel_w = static_cast<uint32_t>(window.kernel_w),
                                  .stride_h = static_cast<uint32_t>(window.stride_h),
                                  .stride_w = static_cast<uint32_t>(window.stride_w),
                                  .dilation_h = static_cast<uint32_t>(window.dilation_h),
                                  .dilation_w = static_cast<uint32_t>(window.dilation_w),
                                  .pad_top = static_cast<uint32_t>(window.pad_top),
                                  .pad_left = static_cast<uint32_t>(window.pad_left),
                                  .groups = static_cast<uint32_t>(groups),
                                  .clamp_min = clamp.min,
                                  .clamp_max = clamp.max};
  lowering.add_step(std::move(step));
}

NodeSequence match_float_conv2d(const Lowering& lowering, uint32_t node) {
  return match_float_layer(lowering, node, "nn.conv2d");
}
std::vector<Constraint> constraints_of_float_conv2d() {
  return {{"cpu.float_conv2d.layout", "activations are NHWC, weights OHWI", kRunThePasses,
           [](const Matched& match) -> std::string {
             const ir::Node& conv = *node_of(match);
             if (layer::has_canonical_layout(conv)) return "";
             return cat("layouts ", op::attr_string(conv, "data_layout"), " and ",
                        op::attr_string(conv, "kernel_layout"), ", the kernels take NHWC and OHWI");
           }},
          float_weights("cpu.float_conv2d.")};
}
void lower_float_conv2d(Lowering& lowering, const NodeSequence& sequence) {
  const ir::Node& conv = lowering.node(sequence.front());
  lower_float_layer(lowering, sequence, op::conv2d_window(conv, lowering.type(conv.operands[1])),
                    op::attr_int(conv, "groups"));
}

NodeSequence match_float_dense(const Lowering& lowering, uint32_t node) {
  return match_float_layer(lowering, node, "nn.dense");
}
void lower_float_dense(Lowering& lowering, const NodeSequence& sequence) {
  lower_float_layer(lowering, sequence, {}, 1);
}

// ---- pools ----

void add_pool(Lowering& lowering, const NodeSequence& sequence, const op::Window2d& window,
              format::FloatPool pool) {
  const FloatClamp clamp = float_clamp(lowering, sequence);
  ProgramStep step = float_step(lowering, sequence, kKernel_float_pool2d,
                                {lowering.tensor(lowering.node(sequence.front()).operands[0])});
  step.params = FloatWindowParams{.kernel_h = static_cast<uint32_t>(window.kernel_h),
                                  .kernel_w = static_cast<uint32_t>(window.kernel_w),
                                  .stride_h = static_cast<uint32_t>(window.stride_h),
                                  .stride_w = static_cast<uint32_t>(window.stride_w),
                                  .dilation_h = 1,
                                  .dilation_w = 1,
                                  .pad_top = static_cast<uint32_t>(window.pad_top),
                                  .pad_left = static_cast<uint32_t>(window.pad_left),
                                  .groups = 1,
                                  .clamp_min = clamp.min,
                                  .clamp_max = clamp.max,
                                  .pool = pool};
  lowering.add_step(std::move(step));
}

std::vector<Constraint> constraints_of_float_pool(const std::string& prefix) {
  return {nhwc(prefix),
          {prefix + "dilation", "no dilation", kNothingToChange, [](const Matched& match) -> std::string {
             const op::Window2d window = op::pool2d_window(*node_of(match));
             return window.dilation_h == 1 && window.dilation_w == 1 ? "" : "the kernel has no dilation";
           }}};
}

NodeSequence match_float_max_pool2d(const Lowering& lowering, uint32_t node) {
  return is_float_op(lowering, node, "nn.max_pool2d") ? with_float_clamp(lowering, {node}) : NodeSequence{};
}
void lower_float_max_pool2d(Lowering& lowering, const NodeSequence& sequence) {
  add_pool(lowering, sequence, op::pool2d_window(lowering.node(sequence.front())), format::FloatPool_MAXIMUM);
}

NodeSequence match_float_avg_pool2d(const Lowering& lowering, uint32_t node) {
  return is_float_op(lowering, node, "nn.avg_pool2d") ? with_float_clamp(lowering, {node}) : NodeSequence{};
}
void lower_float_avg_pool2d(Lowering& lowering, const NodeSequence& sequence) {
  const ir::Node& node = lowering.node(sequence.front());
  add_pool(lowering, sequence, op::pool2d_window(node),
           op::attr_bool(node, "count_include_pad") ? format::FloatPool_AVERAGE_WITH_PADDING
                                                    : format::FloatPool_AVERAGE);
}

NodeSequence match_float_global_pool(const Lowering& lowering, uint32_t node) {
  return is_float_op(lowering, node, "nn.global_avg_pool2d") ? with_float_clamp(lowering, {node})
                                                             : NodeSequence{};
}
void lower_float_global_pool(Lowering& lowering, const NodeSequence& sequence) {
  const ir::Shape& shape = lowering.type(lowering.node(sequence.front()).operands[0]).shape;
  op::Window2d window;
  window.kernel_h = shape[1];
  window.kernel_w = shape[2];
  add_pool(lowering, sequence, window, format::FloatPool_AVERAGE);
}

// ---- two tensors ----

void add_binary(Lowering& lowering, const NodeSequence& sequence, format::FloatBinary op, TensorId lhs,
                TensorId rhs) {
  const FloatClamp clamp = float_clamp(lowering, sequence);
  ProgramStep step = float_step(lowering, sequence, kKernel_float_binary, {lhs, rhs});
  step.params = FloatBinaryParams{.op = op, .clamp_min = clamp.min, .clamp_max = clamp.max};
  lowering.add_step(std::move(step));
}

struct BinaryOp {
  const char* name;
  format::FloatBinary op;
};
// operator list: what the kernel computes for each
constexpr BinaryOp kBinaryOps[] = {
    {"add", format::FloatBinary_ADD},         {"subtract", format::FloatBinary_SUB},
    {"multiply", format::FloatBinary_MUL},    {"divide", format::FloatBinary_DIV},
    {"maximum", format::FloatBinary_MAXIMUM}, {"minimum", format::FloatBinary_MINIMUM},
    {"power", format::FloatBinary_POWER},
};

const BinaryOp* binary_op(const Lowering& lowering, uint32_t node) {
  const auto* found = std::ranges::find_if(
      kBinaryOps, [&](const BinaryOp& o) { return is_float_op(lowering, node, o.name); });
  return found == std::end(kBinaryOps) ? nullptr : found;
}

NodeSequence match_float_binary(const Lowering& lowering, uint32_t node) {
  return binary_op(lowering, node) != nullptr ? with_float_clamp(lowering, {node}) : NodeSequence{};
}
void lower_float_binary(Lowering& lowering, const NodeSequence& sequence) {
  const ir::Node& node = lowering.node(sequence.front());
  const TensorId lhs = lowering.tensor(node.operands[0]), rhs = lowering.tensor(node.operands[1]);
  add_binary(lowering, sequence, binary_op(lowering, sequence.front())->op, lhs, rhs);
}

// One value for each index of the axis, as a constant that broadcasts along it.
TensorId along_axis(Lowering& lowering, const std::vector<float>& values, size_t axis, size_t rank,
                    const std::string& name) {
  ir::Shape shape(rank - axis, 1);
  shape[0] = static_cast<int64_t>(values.size());
  std::vector<uint8_t> bytes(values.size() * sizeof(float));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return lowering.add_constant({ir::kFloat32, shape},
                               std::make_shared<const std::vector<uint8_t>>(std::move(bytes)), name);
}

// A bias that belongs to no layer.
NodeSequence match_float_bias(const Lowering& lowering, uint32_t node) {
  return is_float_op(lowering, node, "nn.bias_add") ? with_float_clamp(lowering, {node}) : NodeSequence{};
}
std::vector<Constraint> constraints_of_float_bias() {
  return {{"cpu.float_bias.operands", "the bias is a constant", kMakeConstant,
           [](const Matched& match) -> std::string {
             const ir::ValueId bias = match.lowering.node(match.sequence.front()).operands[1];
             return match.lowering.function().is_constant(bias) ? "" : "the bias is not a constant";
           }}};
}
void lower_float_bias(Lowering& lowering, const NodeSequence& sequence) {
  const ir::Node& node = lowering.node(sequence.front());
  const size_t rank = lowering.type(node.results[0]).shape.size();
  const auto values = lowering.constant(node.operands[1], "the bias").as<float>();
  const auto axis = static_cast<size_t>(op::normalized_axis(op::attr_int(node, "axis"), rank));
  const TensorId data = lowering.tensor(node.operands[0]);
  const TensorId bias = along_axis(lowering, {values.begin(), values.end()}, axis, rank, node.name + "/bias");
  add_binary(lowering, sequence, format::FloatBinary_ADD, data, bias);
}

// A batch normalisation that belongs to no layer: a product and a sum.
NodeSequence match_float_norm(const Lowering& lowering, uint32_t node) {
  return is_float_op(lowering, node, "nn.batch_norm") ? with_float_clamp(lowering, {node}) : NodeSequence{};
}
std::vector<Constraint> constraints_of_float_norm() {
  return {{"cpu.float_batch_norm.operands", "its parameters are constants", kMakeConstant,
           [](const Matched& match) -> std::string {
             const bool readable = !affine_of(match.lowering, match.sequence.front()).factor.empty();
             return readable ? "" : "one of its parameters is not a constant";
           }}};
}
void lower_float_norm(Lowering& lowering, const NodeSequence& sequence) {
  const ir::Node& node = lowering.node(sequence.front());
  const Affine affine = affine_of(lowering, sequence.front());
  const ir::TensorType& type = lowering.type(node.results[0]);
  const auto axis = static_cast<size_t>(op::normalized_axis(op::attr_int(node, "axis"), type.shape.size()));
  const auto rounded = [](const std::vector<double>& values) {
    std::vector<float> result;
    for (const double value : values) result.push_back(op::to_float32(value));
    return result;
  };
  ProgramStep product = make_step(kKernel_float_binary, node);
  product.inputs = {lowering.tensor(node.operands[0]), along_axis(lowering, rounded(affine.factor), axis,
                                                                  type.shape.size(), node.name + "/factor")};
  product.outputs = {lowering.add_activation(type, node.name + "/product")};
  product.params =
      FloatBinaryParams{.op = format::FloatBinary_MUL, .clamp_min = -kInfinity, .clamp_max = kInfinity};
  const TensorId scaled = product.outputs[0];
  lowering.add_step(std::move(product));
  add_binary(lowering, sequence, format::FloatBinary_ADD, scaled,
             along_axis(lowering, rounded(affine.addend), axis, type.shape.size(), node.name + "/addend"));
}

// ---- one tensor ----

struct UnaryOp {
  const char* name;
  format::FloatUnary function;
  const char *p, *q;  // attributes
};
// operator list: what the kernel computes for each
constexpr UnaryOp kUnaryOps[] = {
    {"nn.relu", format::FloatUnary_CLAMP, nullptr, nullptr},
    {"clip", format::FloatUnary_CLAMP, "a_min", "a_max"},
    {"nn.leaky_relu", format::FloatUnary_LEAKY_RELU, "alpha", nullptr},
    {"hard_sigmoid", format::FloatUnary_HARD_SIGMOID, "alpha", "beta"},
    {"sigmoid", format::FloatUnary_LOGISTIC, nullptr, nullptr},
    {"tanh", format::FloatUnary_TANH, nullptr, nullptr},
    {"exp", format::FloatUnary_EXP, nullptr, nullptr},
    {"negative", format::FloatUnary_NEGATIVE, nullptr, nullptr},
    {"abs", format::FloatUnary_ABS, nullptr, nullptr},
    {"sqrt", format::FloatUnary_SQRT, nullptr, nullptr},
    {"rsqrt", format::FloatUnary_RSQRT, nullptr, nullptr},
    {"log", format::FloatUnary_LOG, nullptr, nullptr},
    {"floor", format::FloatUnary_FLOOR, nullptr, nullptr},
    {"ceil", format::FloatUnary_CEIL, nullptr, nullptr},
    {"round", format::FloatUnary_ROUND, nullptr, nullptr},
    {"erf", format::FloatUnary_ERF, nullptr, nullptr},
    {"sin", format::FloatUnary_SIN, nullptr, nullptr},
    {"cos", format::FloatUnary_COS, nullptr, nullptr},
    {"nn.elu", format::FloatUnary_ELU, "alpha", nullptr},
};

const UnaryOp* unary_op(const Lowering& lowering, uint32_t node) {
  const auto* found =
      std::ranges::find_if(kUnaryOps, [&](const UnaryOp& o) { return is_float_op(lowering, node, o.name); });
  return found == std::end(kUnaryOps) ? nullptr : found;
}

NodeSequence match_float_unary(const Lowering& lowering, uint32_t node) {
  return unary_op(lowering, node) != nullptr ? NodeSequence{node} : NodeSequence{};
}
void lower_float_unary(Lowering& lowering, const NodeSequence& sequence) {
  const ir::Node& node = lowering.node(sequence.front());
  const UnaryOp& found = *unary_op(lowering, sequence.front());
  FloatUnaryParams params = {.function = found.function};
  if (found.function == format::FloatUnary_CLAMP) {
    const FloatClamp clamp = float_clamp(lowering, sequence);
    params.p = clamp.min;
    params.q = clamp.max;
  } else {
    if (found.p != nullptr) params.p = op::to_float32(op::attr_float(node, found.p));
    if (found.q != nullptr) params.q = op::to_float32(op::attr_float(node, found.q));
  }
  ProgramStep step = float_step(lowering, sequence, kKernel_float_unary, {lowering.tensor(node.operands[0])});
  step.params = params;
  lowering.add_step(std::move(step));
}

// ---- axes ----

NodeSequence match_float_softmax(const Lowering& lowering, uint32_t node) {
  const bool found =
      is_float_op(lowering, node, "nn.softmax") || is_float_op(lowering, node, "nn.log_softmax");
  return found ? NodeSequence{node} : NodeSequence{};
}
void lower_float_softmax(Lowering& lowering, const NodeSequence& sequence) {
  const ir::Node& node = lowering.node(sequence.front());
  const size_t rank = lowering.type(node.operands[0]).shape.size();
  const bool is_log = node.op->name == "nn.log_softmax";  // operator list: the kernel has a flag for it
  ProgramStep step =
      float_step(lowering, sequence, kKernel_float_softmax, {lowering.tensor(node.operands[0])});
  step.params =
      FloatReduceParams{.axes = uint32_t{1} << op::normalized_axis(op::attr_int(node, "axis"), rank),
                        .beta = is_log ? 1.0f : op::to_float32(op::attr_float(node, "beta")),
                        .is_log = is_log};
  lowering.add_step(std::move(step));
}

// ---- matrices ----

NodeSequence match_float_batch_matmul(const Lowering& lowering, uint32_t node) {
  return is_float_op(lowering, node, "nn.batch_matmul") ? NodeSequence{node} : NodeSequence{};
}
void lower_float_batch_matmul(Lowering& lowering, const NodeSequence& sequence) {
  const ir::Node& node = lowering.node(sequence.front());
  ProgramStep step = float_step(lowering, sequence, kKernel_float_batch_matmul,
                                {lowering.tensor(node.operands[0]), lowering.tensor(node.operands[1])});
  step.macs = static_cast<uint64_t>(lowering.type(node.results[0]).num_elements()) *
              static_cast<uint64_t>(lowering.type(node.operands[0]).shape.back());
  step.params = FloatBatchMatmulParams{.transpose_b = op::attr_bool(node, "transpose_b")};
  lowering.add_step(std::move(step));
}

// ---- layers of 8-bit weights between ----

NodeSequence match_dynamic_quantize(const Lowering& lowering, uint32_t node) {
  return lowering.is(node, "nn.dynamic_quantize") ? NodeSequence{node} : NodeSequence{};
}
void lower_dynamic_quantize(Lowering& lowering, const NodeSequence& sequence) {
  const ir::Node& node = lowering.node(sequence.front());
  const ir::Ints& padding = op::attr_ints(node, "padding");
  ProgramStep step = make_step(kKernel_dynamic_quantize, node);
  step.inputs = {lowering.tensor(node.operands[0])};
  for (const ir::ValueId result : node.results) step.outputs.push_back(lowering.define(result));
  step.params = DynamicQuantizeParams{.rows = static_cast<uint32_t>(op::attr_int(node, "rows")),
                                      .symmetric = op::attr_bool(node, "symmetric"),
                                      .pad_top = static_cast<uint32_t>(padding[0]),
                                      .pad_left = static_cast<uint32_t>(padding[1])};
  lowering.add_step(std::move(step));
}

NodeSequence match_dynamic_dequantize(const Lowering& lowering, uint32_t node) {
  if (!lowering.is(node, "nn.dynamic_dequantize")) return {};
  NodeSequence sequence{node};
  const uint32_t user = lowering.only_user(node);
  if (!bias_of(lowering, user).empty()) sequence.push_back(user);
  return with_float_clamp(lowering, std::move(sequence));
}
std::vector<Constraint> constraints_of_dynamic_dequantize() {
  return {{"cpu.dynamic_dequantize.weights", "scales and sums of the weights are constants", kMakeConstant,
           [](const Matched& match) -> std::string {
             const ir::Node& node = match.lowering.node(match.sequence.front());
             const ir::Function& function = match.lowering.function();
             const bool constant =
                 function.is_constant(node.operands[3]) && function.is_constant(node.operands[4]);
             return constant ? "" : "they are not constants";
           }}};
}
void lower_dynamic_dequantize(Lowering& lowering, const NodeSequence& sequence) {
  const ir::Node& node = lowering.node(sequence.front());
  std::vector<float> bias(static_cast<size_t>(lowering.type(node.results[0]).shape.back()));
  for (const uint32_t index : sequence) {
    const std::span<const float> values = bias_of(lowering, index);
    for (size_t o = 0; o < bias.size() && !values.empty(); ++o) bias[o] = entry_of(values, o);
  }
  std::vector<TensorId> inputs;
  for (const ir::ValueId operand : node.operands) inputs.push_back(lowering.tensor(operand));
  inputs.push_back(add_values(lowering, ir::kFloat32, bias, node.name + "/bias"));
  const FloatClamp clamp = float_clamp(lowering, sequence);
  ProgramStep step = float_step(lowering, sequence, kKernel_dynamic_dequantize, std::move(inputs));
  step.params = DynamicDequantizeParams{.rows = static_cast<uint32_t>(op::attr_int(node, "rows")),
                                        .in_turn = op::attr_bool(node, "in_turn"),
                                        .clamp_min = clamp.min,
                                        .clamp_max = clamp.max};
  lowering.add_step(std::move(step));
}

}  // namespace

std::vector<TableRow> float_rows() {
  // operator list: each row has the functions of its operators
  return {{"float_conv2d", match_float_conv2d, constraints_of_float_conv2d(), lower_float_conv2d},
          {"float_dense", match_float_dense, {float_weights("cpu.float_dense.")}, lower_float_dense},
          {"float_max_pool2d", match_float_max_pool2d, constraints_of_float_pool("cpu.float_max_pool2d."),
           lower_float_max_pool2d},
          {"float_avg_pool2d", match_float_avg_pool2d, constraints_of_float_pool("cpu.float_avg_pool2d."),
           lower_float_avg_pool2d},
          {"float_global_avg_pool2d",
           match_float_global_pool,
           {nhwc("cpu.float_global_avg_pool2d.")},
           lower_float_global_pool},
          {"float_binary", match_float_binary, {}, lower_float_binary},
          {"float_bias", match_float_bias, constraints_of_float_bias(), lower_float_bias},
          {"float_batch_norm", match_float_norm, constraints_of_float_norm(), lower_float_norm},
          {"float_unary", match_float_unary, {}, lower_float_unary},
          {"float_softmax", match_float_softmax, {}, lower_float_softmax},
          {"float_batch_matmul", match_float_batch_matmul, {}, lower_float_batch_matmul},
          {"dynamic_quantize", match_dynamic_quantize, {}, lower_dynamic_quantize},
          {"dynamic_dequantize", match_dynamic_dequantize, constraints_of_dynamic_dequantize(),
           lower_dynamic_dequantize}};
}

}  // namespace qplan::target::cpu
