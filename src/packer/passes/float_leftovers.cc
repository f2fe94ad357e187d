#include <algorithm>
#include <vector>

#include "src/packer/ir/cat.h"
#include "src/packer/op/properties.h"
#include "src/packer/passes/pass.h"
#include "src/packer/pattern/rewrite.h"

namespace qplan::passes {
namespace {

constexpr size_t kMaxPlaces = 3;
constexpr size_t kMaxNamed = 4;  // operators of a place

// Targets may move floats.
bool computes(const ir::Function& function, const ir::Node& node) {
  return node.op != nullptr && function.type(node.results[0]).dtype.is_float() &&
         node.op->kind != op::OpKind::kMovement && !op::is_float_border(node.op);
}

std::string label(const ir::Node& node) { return cat(node.op->name, " '", node.name, "'"); }

// Operators that one qnn.quantize reads, directly or through others; or, without one, a single operator.
struct Place {
  std::vector<const ir::Node*> nodes;
  const ir::Node* quantize = nullptr;
};

// Each operator in the place of the first quantize that reads it; in the order of the graph, backwards.
// Linear: each node is entered once.
std::vector<Place> find_places(const ir::Function& function) {
  std::vector<Place> places;
  std::vector<bool> seen(function.nodes().size());
  std::vector<const ir::Node*> open;
  const auto enter = [&](const ir::Node& node) {
    for (const ir::ValueId operand : node.operands) {
      const ir::Node* producer = function.producer(operand);
      if (producer == nullptr || !function.type(operand).dtype.is_float()) continue;
      const size_t index = static_cast<size_t>(producer - function.nodes().data());
      if (seen[index]) continue;
      seen[index] = true;
      open.push_back(producer);
    }
  };
  for (const ir::Node& node : function.nodes()) {
    if (node.op == nullptr || node.op->name != "qnn.quantize") continue;
    Place place{{}, &node};
    enter(node);
    while (!open.empty()) {
      const ir::Node* next = open.back();
      open.pop_back();
      if (computes(function, *next)) place.nodes.push_back(next);
      enter(*next);
    }
    if (!place.nodes.empty()) places.push_back(std::move(place));
  }
  for (size_t i = 0; i < seen.size(); ++i) {
    const ir::Node& node = function.nodes()[i];
    if (!seen[i] && computes(function, node)) places.push_back({{&node}, nullptr});
  }
  return places;
}

// The rewrite whose pattern held longest, and those whose pattern matches but which refused.
std::string near_misses(const ir::Function& function, ir::ValueId root) {
  const pattern::Pre pre(function);
  std::string nearest;
  std::vector<std::string> refusals;
  uint32_t depth = 0;
  bool same_operator = false;  // the nearest one got past the operator in front of the quantize
  for (const Pass& pass : all_passes()) {
    if (pass.rewrites == nullptr) continue;
    for (const pattern::Rewrite& rewrite : pass.rewrites()) {
      const auto miss = pattern::explain(rewrite.pattern, pre, pattern::PreValue{root});
      if (!miss) {
        const std::string reason = pattern::why_not(rewrite, function, root);
        // One that applies was left out by the user, who is told so elsewhere.
        if (!reason.empty()) refusals.push_back(cat("rewrite '", rewrite.name, "': ", reason));
        continue;
      }
      if (miss->depth == 0) continue;  // for other operators than qnn.quantize
      const bool past = miss->place.find(" -> ") != std::string::npos;
      if (past > same_operator || (past == same_operator && miss->depth > depth)) {
        same_operator = past;
        depth = miss->depth;
        nearest = cat("rewrite '", rewrite.name, "': ", miss->text());
      }
    }
  }
  std::string text = same_operator || refusals.empty() ? nearest : "";
  for (const std::string& refusal : refusals) text += cat(text.empty() ? "" : ", ", refusal);
  return text;
}

// Operators of several tensors that no rewrite makes an integer operator of, whatever stands around them.
// With a constant in the place of one tensor they are functions of one value, which become tables.
bool has_no_kernel(const ir::Function& function, const ir::Node& node) {
  if (op::num_data_operands(*node.op) == 1 || !node.op->quantized_form.empty()) return false;
  return std::ranges::count_if(node.operands, [&](ir::ValueId id) {
           const ir::Node* producer = function.producer(id);
           const bool dequantises =
               producer != nullptr && producer->op != nullptr && producer->op->name == "qnn.dequantize";
           return !function.is_constant(dequantises ? producer->operands[0] : id);
         }) > 1;
}

std::string explain(const ir::Function& function, const Place& place) {
  for (const ir::Node* node : place.nodes) {
    if (!has_no_kernel(function, *node)) continue;
    return cat(label(*node), ": no integer kernel computes ", node->op->name,
               " of several tensors that the model computes; give it one of them as a constant, or compute "
               "it outside "
               "of the packed network");
  }
  if (place.quantize == nullptr) return cat(label(*place.nodes[0]), ": no qnn.quantize comes after it");
  std::string names;
  const size_t named = std::min(place.nodes.size(), kMaxNamed);
  for (size_t i = 0; i < named; ++i) names += cat(i == 0 ? "" : ", ", label(*place.nodes[i]));
  if (named < place.nodes.size()) names += cat(" and ", place.nodes.size() - named, " more");
  return cat(names, " before ", label(*place.quantize), ": ",
             near_misses(function, place.quantize->results[0]));
}

}  // namespace

std::string explain_float_leftovers(const ir::Function& function, const PassContext& context) {
  const std::vector<Place> places = find_places(function);
  if (places.empty()) return "";
  std::string text = "float operators are left:";
  if (context.keep_float) return text + " rewrites that make them integers are left out (keep_float)";
  for (size_t i = 0; i < std::min(places.size(), kMaxPlaces); ++i) {
    text += cat(places.size() == 1 ? " " : "\n  ", explain(function, places[i]));
  }
  if (places.size() > kMaxPlaces) text += cat("\n  and ", places.size() - kMaxPlaces, " more places");
  return text;
}

std::vector<std::string> explain_refusals(const ir::Function& function, const PassContext& context) {
  std::vector<std::string> lines;
  if (context.keep_float) return lines;
  const pattern::Pre pre(function);
  for (const ir::Node& node : function.nodes()) {
    if (node.op == nullptr || node.op->name != "qnn.quantize") continue;
    const ir::Node* producer = function.producer(node.operands[0]);
    if (producer == nullptr || !computes(function, *producer)) continue;
    for (const pattern::Rewrite& rewrite : qdq_to_integer_rewrites()) {
      if (context.skipped(rewrite.name)) continue;
      if (pattern::explain(rewrite.pattern, pre, pattern::PreValue{node.results[0]})) continue;
      const std::string reason = pattern::why_not(rewrite, function, node.results[0]);
      if (!reason.empty()) lines.push_back(cat("rewrite '", rewrite.name, "': ", reason));
      if (lines.size() == kMaxPlaces) return lines;
    }
  }
  return lines;
}

bool is_float_network(const ir::Function& function) {
  bool computes_floats = false;
  for (const ir::Node& node : function.nodes()) {
    if (node.op != nullptr && node.op->quantization == op::Quantization::kOperands) return false;
    computes_floats = computes_floats || computes(function, node);
  }
  return computes_floats;
}

}  // namespace qplan::passes
