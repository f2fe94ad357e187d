// The passes in their order, those of the caller among them, and why float operators are left after them.
#include "src/packer/passes/pass.h"

#include <algorithm>
#include <vector>

#include "src/packer/error.h"
#include "src/packer/ir/cat.h"
#include "src/packer/op/op_def.h"
#include "src/packer/passes/rewrite_pass.h"
#include "src/packer/pattern/pattern.h"

namespace qplan::passes {
namespace {

constexpr Pass kPasses[] = {
#define PASS(name) {#name, run_##name},
#define REWRITE_PASS(name) {#name, run_##name, name##_rewrites},
#include "src/packer/passes/passes.def"
#undef REWRITE_PASS
#undef PASS
};

}  // namespace

void PassContext::fired(std::string_view pass, std::string_view node, std::string_view what) {
  ++num_fired;
  if (!log) return;
  std::string text(pass);
  text.append(": '").append(node).append("': ").append(what);
  log(QPLAN_LOG_DEBUG, text);
}

std::span<const Pass> all_passes() { return kPasses; }

const Pass* find_pass(std::string_view name) {
  for (const Pass& pass : kPasses) {
    if (name == pass.name) return &pass;
  }
  return nullptr;
}

namespace {

[[noreturn]] void fail(const std::string& text) { throw PackError(QPLAN_INVALID_ARGUMENT, text); }

std::vector<Stage>::iterator find_stage(std::vector<Stage>& stages, std::string_view name) {
  return std::ranges::find(stages, name, &Stage::name);
}

std::string known_names(const std::vector<Stage>& stages) {
  std::string names;
  for (const Stage& stage : stages) names += cat(names.empty() ? "" : ", ", stage.name());
  return names;
}

}  // namespace

std::span<const pattern::Rewrite> Stage::rewrites() const {
  if (user != nullptr) return user->rewrites;
  return built_in->rewrites != nullptr ? built_in->rewrites() : std::span<const pattern::Rewrite>();
}

std::unique_ptr<ir::Function> Stage::run(const ir::Module& module, const ir::Function& pre,
                                         PassContext& context) const {
  if (user == nullptr) return built_in->run(module, pre, context);
  try {
    return user->run ? user->run(pre, context) : run_rewrites(user->rewrites, pre, context);
  } catch (const PackError& error) {
    // What would be our mistake in a pass of ours is the caller's in theirs.
    if (error.status() != QPLAN_INTERNAL) throw;
    throw PackError(QPLAN_INVALID_ARGUMENT, error.what());
  }
}

std::vector<Stage> all_stages(std::span<const UserPass> user) {
  std::vector<Stage> stages;
  for (const Pass& pass : all_passes()) stages.push_back({.built_in = &pass});
  // The place after the last pass that was put after the same pass, and after that one's own followers.
  std::vector<std::pair<std::string_view, std::string_view>>
      last;  // predecessor, the pass after which to insert
  for (const UserPass& pass : user) {
    if (pass.name.empty()) fail("user pass: it has no name");
    if (find_stage(stages, pass.name) != stages.end()) {
      fail(cat("user pass '", pass.name, "': there is a pass of that name"));
    }
    const auto known =
        std::ranges::find(last, std::string_view(pass.after), [](const auto& l) { return l.first; });
    const std::string_view behind = known != last.end() ? known->second : std::string_view(pass.after);
    auto at = stages.begin();
    if (!behind.empty()) {
      at = find_stage(stages, behind);
      if (at == stages.end()) {
        fail(cat("user pass '", pass.name, "' is to run after '", pass.after,
                 "', which is no pass before it; known: ", known_names(stages)));
      }
      ++at;
    }
    stages.insert(at, {.user = &pass});
    if (known != last.end()) {
      known->second = pass.name;
    } else {
      last.emplace_back(pass.after, pass.name);
    }
  }
  return stages;
}

// Floats that are left.

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
