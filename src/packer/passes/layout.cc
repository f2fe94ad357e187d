#include "src/packer/passes/layout.h"

#include <algorithm>
#include <string_view>

#include "src/packer/op/op_def.h"

namespace qplan::passes {
namespace {

constexpr std::string_view kUnary[] = {
    "clip",          "cast",        "qnn.requantize", "qnn.quantize", "qnn.dequantize", "qnn.sigmoid",
    "qnn.lookup",    "qnn.softmax", "nn.softmax",     "nn.bias_add",  "nn.batch_norm",  "nn.relu",
    "nn.leaky_relu", "sigmoid",     "tanh",           "exp",          "sqrt",           "negative",
    "abs",           "round",       "floor",          "ceil",         "hard_sigmoid",   "split"};
constexpr std::string_view kBinary[] = {"qnn.add",  "qnn.subtract", "qnn.mul", "add",    "subtract",
                                        "multiply", "divide",       "maximum", "minimum"};

}  // namespace

size_t num_layout_free_operands(const ir::Node& node) {
  if (node.op == nullptr) return 0;
  if (node.op->name == "concatenate") return node.operands.size();
  if (std::ranges::find(kUnary, node.op->name) != std::end(kUnary)) return 1;
  return std::ranges::find(kBinary, node.op->name) != std::end(kBinary) ? 2 : 0;
}

}  // namespace qplan::passes
