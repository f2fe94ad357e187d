#include <algorithm>
#include <cmath>

#include "src/packer/error.h"
#include "src/packer/op/evaluate.h"
#include "src/packer/op/functions.h"

namespace qplan::op {
namespace {

struct Row {
  std::string_view name;
  double (*compute)(const ir::Node& node, double x);
};

// Comparisons stand so that NaN fails them and comes out as it is.
constexpr Row kRows[] = {
    {"nn.relu", [](const ir::Node&, double x) { return x < 0 ? 0.0 : x; }},
    {"nn.leaky_relu",
     [](const ir::Node& node, double x) { return x < 0 ? attr_float(node, "alpha") * x : x; }},
    {"sigmoid", [](const ir::Node&, double x) { return sigmoid_function(x); }},
    {"tanh", [](const ir::Node&, double x) { return tanh_function(x); }},
    {"exp", [](const ir::Node&, double x) { return exp_function(x); }},
    {"sqrt", [](const ir::Node&, double x) { return std::sqrt(x); }},
    {"negative", [](const ir::Node&, double x) { return -x; }},
    {"abs", [](const ir::Node&, double x) { return std::fabs(x); }},
    {"round", [](const ir::Node&, double x) { return round_half_even(x); }},
    {"floor", [](const ir::Node&, double x) { return std::floor(x); }},
    {"ceil", [](const ir::Node&, double x) { return std::ceil(x); }},
    {"hard_sigmoid",
     [](const ir::Node& node, double x) {
       const double y = attr_float(node, "alpha") * x + attr_float(node, "beta");
       return y < 0 ? 0.0 : y > 1 ? 1.0 : y;
     }},
};

const Row* find_row(std::string_view name) {
  const auto* row = std::ranges::find(kRows, name, &Row::name);
  return row == std::end(kRows) ? nullptr : row;
}

}  // namespace

bool has_unary_function(const OpDef& op) { return find_row(op.name) != nullptr; }

double unary_function(const ir::Node& node, double x) {
  const Row* row = find_row(node.op->name);
  if (row == nullptr) throw PackError(QPLAN_INTERNAL, node.op->name + " has no function of one number");
  return row->compute(node, x);
}

}  // namespace qplan::op
