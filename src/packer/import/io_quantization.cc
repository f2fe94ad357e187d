#include "src/packer/import/io_quantization.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <vector>

#include "src/packer/import/quantization_attrs.h"
#include "src/packer/op/op_def.h"

namespace qplan {
namespace {

using Known = std::vector<std::optional<TensorQuantization>>;  // by value

// Where scale and zero point of a tensor stand among a node's operands; tensor kResult is the result.
constexpr size_t kResult = SIZE_MAX;
struct Place {
  std::string_view op;
  size_t tensor, scale, zero_point;
};
constexpr Place kPlaces[] = {
    {"qnn.quantize", kResult, 1, 2},
    {"qnn.dequantize", 0, 1, 2},
    {"qnn.requantize", 0, 1, 2},
    {"qnn.requantize", kResult, 3, 4},
    {"qnn.conv2d", 0, 4, 2},
    {"qnn.dense", 0, 4, 2},
    {"qnn.add", 0, 2, 3},
    {"qnn.add", 1, 4, 5},
    {"qnn.add", kResult, 6, 7},
    {"qnn.subtract", 0, 2, 3},
    {"qnn.subtract", 1, 4, 5},
    {"qnn.subtract", kResult, 6, 7},
    {"qnn.mul", 0, 2, 3},
    {"qnn.mul", 1, 4, 5},
    {"qnn.mul", kResult, 6, 7},
    {"qnn.avg_pool2d", 0, 1, 2},
    {"qnn.avg_pool2d", kResult, 3, 4},
    {"qnn.mean", 0, 1, 2},
    {"qnn.mean", kResult, 3, 4},
    {"qnn.softmax", 0, 1, 2},
    {"qnn.softmax", kResult, 3, 4},
    {"qnn.sigmoid", 0, 1, 2},
    {"qnn.sigmoid", kResult, 3, 4},
};

// Results are reals of the operand, in its quantisation: operand 0, or every operand.
constexpr std::string_view kKeepQuantization[] = {
    "reshape", "transpose",     "squeeze",       "expand_dims", "nn.batch_flatten", "split",
    "take",    "strided_slice", "nn.max_pool2d", "nn.pad",      "image.resize2d",   "clip"};
constexpr std::string_view kKeepQuantizationOfAll[] = {"concatenate", "maximum", "minimum"};

size_t num_kept_operands(const ir::Node& node) {
  const auto is_in = [&](const auto& ops) {
    return std::ranges::find(ops, node.op->name) != std::end(ops);
  };
  if (node.op == nullptr) return 0;
  return is_in(kKeepQuantizationOfAll) ? node.operands.size() : is_in(kKeepQuantization) ? 1 : 0;
}

std::optional<TensorQuantization> read(const ir::Function& function, ir::ValueId scale,
                                       ir::ValueId zero_point) {
  if (!function.is_constant(scale) || !function.is_constant(zero_point)) return std::nullopt;
  const ir::Constant& s = *function.value(scale).constant;
  const ir::Constant& z = *function.value(zero_point).constant;
  if (!s.type().shape.empty() || !z.type().shape.empty()) return std::nullopt;  // per channel
  return TensorQuantization{s.as<float>()[0], z.as<int32_t>()[0]};
}

bool has_free_zero_point(std::string_view op) { return op == "qnn.conv2d" || op == "qnn.dense"; }

void read_node(const ir::Function& function, const ir::Node& node, bool canonical, Known* known) {
  if (node.op == nullptr || (canonical && has_free_zero_point(node.op->name))) return;
  for (const Place& place : kPlaces) {
    if (node.op->name != place.op) continue;
    const ir::ValueId tensor = place.tensor == kResult ? node.results[0] : node.operands[place.tensor];
    auto& entry = (*known)[tensor.index];
    if (!entry) entry = read(function, node.operands[place.scale], node.operands[place.zero_point]);
  }
}

}  // namespace

void set_io_quantization(ir::Function& function, bool canonical) {
  Known known(function.num_values());
  const auto nodes = function.nodes();
  for (const ir::Node& node : nodes) read_node(function, node, canonical, &known);
  // Forwards to outputs, backwards to inputs.
  const auto pass_on = [&](const ir::Node& node, bool forwards) {
    const size_t num_kept = num_kept_operands(node);
    for (size_t i = 0; i < num_kept; ++i) {
      for (const ir::ValueId id : node.results) {
        auto &operand = known[node.operands[i].index], &result = known[id.index];
        if (forwards && !result) result = operand;
        if (!forwards && !operand) operand = result;
      }
    }
  };
  for (const ir::Node& node : nodes) pass_on(node, true);
  for (size_t i = nodes.size(); i-- > 0;) pass_on(nodes[i], false);

  const auto found = [&](ir::ValueId id) -> const std::optional<TensorQuantization>& {
    static const std::optional<TensorQuantization> kNone;
    const ir::DType dtype = function.type(id).dtype;
    return dtype == ir::kInt8 || dtype == ir::kUint8 ? known[id.index] : kNone;
  };
  for (size_t i = 0; i < function.params().size(); ++i) {
    const auto& q = found(function.params()[i]);
    if (q && !input_quantization(function, i)) set_input_quantization(function, i, *q);
  }
  for (size_t i = 0; i < function.outputs().size(); ++i) {
    const auto& q = found(function.outputs()[i]);
    if (q && !output_quantization(function, i)) set_output_quantization(function, i, *q);
  }
}

}  // namespace qplan
