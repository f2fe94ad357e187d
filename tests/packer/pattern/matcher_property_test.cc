// The matcher against one that enumerates: random patterns, as data that both are made from, on random
// graphs. The enumerating one lists all complete matches of a pattern in order of preference; the matcher
// must give the first of them, and none where there is none.
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <map>

#include "src/packer/op/op_def.h"
#include "src/packer/pattern/pattern.h"
#include "tests/support/random.h"

namespace qplan::pattern::matcher_property_test {
namespace {

using testing::Random;

// ---- a pattern as data ----
struct Spec {
  enum Kind { kAny, kConstant, kParam, kOp, kCommutative, kEither, kOptional, kDominates };
  Kind kind = kAny;
  std::vector<std::string> ops;  // one or two names; kDominates: the path
  std::vector<Spec> children;    // as in pattern.h, but kDominates: parent, child
  std::string name;              // as()
  std::optional<ir::DType> dtype;
  bool one_use = false;
  std::optional<double> bound;  // attr("a_max", ...)
  bool even = false;            // where("of even index", ...)
};

bool is_even(const ir::Function&, ir::ValueId value) { return value.index % 2 == 0; }

Pattern to_pattern(const Spec& spec) {
  std::vector<Pattern> children;
  for (const Spec& child : spec.children) children.push_back(to_pattern(child));
  Pattern pattern = any();
  switch (spec.kind) {
    case Spec::kAny:
      break;
    case Spec::kConstant:
      pattern = constant();
      break;
    case Spec::kParam:
      pattern = param();
      break;
    case Spec::kOp:
      pattern = spec.ops.size() == 1 ? op(spec.ops[0], children) : one_of(spec.ops, children);
      break;
    case Spec::kCommutative:
      pattern = commutative(spec.ops[0], children);
      break;
    case Spec::kEither:
      pattern = children[0] | children[1];
      break;
    case Spec::kOptional:
      pattern = optional(spec.ops[0], children[0], {children.begin() + 1, children.end()});
      break;
    case Spec::kDominates:
      pattern = dominates(children[0], spec.ops, children[1]);
      break;
  }
  if (!spec.name.empty()) pattern = pattern.as(spec.name);
  if (spec.dtype) pattern = pattern.dtype(*spec.dtype);
  if (spec.one_use) pattern = pattern.one_use();
  if (spec.bound) pattern = pattern.attr("a_max", *spec.bound);
  if (spec.even) pattern = pattern.where("of even index", is_even);
  return pattern;
}

// ---- all matches, by the definition of each combinator ----
using Binding = std::map<std::string, uint32_t>;

class Enumerator {
 public:
  explicit Enumerator(const ir::Function& function) : function_(function) {}

  // Extensions of `given` by matching spec at value, in order of preference.
  std::vector<Binding> all(const Spec& spec, ir::ValueId value, const Binding& given) const {
    const ir::Node* node = function_.producer(value);
    if (spec.dtype && function_.type(value).dtype != *spec.dtype) return {};
    if (spec.one_use && uses(value) != 1) return {};
    if (spec.even && value.index % 2 != 0) return {};
    if (spec.bound &&
        (node == nullptr || node->op->name != "clip" || op::attr_float(*node, "a_max") != *spec.bound)) {
      return {};
    }
    Binding start = given;
    if (!spec.name.empty() && start.emplace(spec.name, value.index).first->second != value.index) return {};

    switch (spec.kind) {
      case Spec::kAny:
        return {start};
      case Spec::kConstant:
        return function_.value(value).kind == ir::ValueKind::kConstant ? std::vector{start}
                                                                       : std::vector<Binding>{};
      case Spec::kParam:
        return function_.value(value).kind == ir::ValueKind::kParam ? std::vector{start}
                                                                    : std::vector<Binding>{};
      case Spec::kOp:
        return operands(spec.ops, spec.children, node, false, start);
      case Spec::kCommutative:
        return concat(operands(spec.ops, spec.children, node, false, start),
                      operands(spec.ops, spec.children, node, true, start));
      case Spec::kEither:
        return concat(all(spec.children[0], value, start), all(spec.children[1], value, start));
      case Spec::kOptional:
        return concat(operands(spec.ops, spec.children, node, false, start),
                      all(spec.children[0], value, start));
      case Spec::kDominates:
        return dominated(spec, value, node, start);
    }
    return {};
  }

 private:
  static std::vector<Binding> concat(std::vector<Binding> a, const std::vector<Binding>& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
  }
  static bool names(const std::vector<std::string>& ops, const ir::Node* node) {
    if (node == nullptr) return false;
    for (const std::string& name : ops) {
      if (node->op->name == name) return true;
    }
    return false;
  }
  uint32_t uses(ir::ValueId value) const {
    uint32_t count = 0;
    for (const ir::Node& node : function_.nodes()) {
      for (const ir::ValueId operand : node.operands) count += operand == value;
    }
    for (const ir::ValueId output : function_.outputs()) count += output == value;
    return count;
  }

  std::vector<Binding> operands(const std::vector<std::string>& ops, const std::vector<Spec>& children,
                                const ir::Node* node, bool swapped, const Binding& start) const {
    if (!names(ops, node) || node->operands.size() < children.size()) return {};
    std::vector<Binding> partial = {start};
    for (size_t i = 0; i < children.size(); ++i) {
      std::vector<Binding> next;
      const ir::ValueId operand = node->operands[swapped && i < 2 ? 1 - i : i];
      for (const Binding& binding : partial) next = concat(next, all(children[i], operand, binding));
      partial = std::move(next);
    }
    return partial;
  }

  std::vector<Binding> dominated(const Spec& spec, ir::ValueId value, const ir::Node* node,
                                 const Binding& start) const {
    if (node == nullptr || node->operands.empty()) return {};
    std::vector<Binding> result;
    for (const Binding& binding : all(spec.children[1], value, start)) {
      ir::ValueId at = node->operands[0];
      while (uses(at) == 1) {
        result = concat(result, all(spec.children[0], at, binding));
        const ir::Node* above = function_.producer(at);
        if (!names(spec.ops, above)) break;
        at = above->operands[0];
      }
    }
    return result;
  }

  const ir::Function& function_;
};

// ---- random graphs and patterns: few operators and values, so that matches are common ----
const std::vector<std::string> kUnary = {"clip", "nn.relu", "abs"};
const std::vector<std::string> kBinary = {"add", "maximum"};
const std::vector<double> kBounds = {1, 2};

ir::Function random_graph(Random& random) {
  ir::Function function("main");
  std::vector<ir::ValueId> values = {
      function.add_param("x", {ir::kInt8, {2}}), function.add_param("y", {ir::kInt8, {2}}),
      function.add_constant(ir::make_constant<int8_t>(ir::kInt8, {2}, {1, 2}))};
  // Mostly the latest values are read, which makes deep graphs.
  const auto operand = [&] {
    const auto last = static_cast<int64_t>(values.size()) - 1;
    return values[random.chance(0.7) ? random.integer(std::max<int64_t>(0, last - 2), last)
                                     : random.integer(0, last)];
  };
  const int64_t num_nodes = random.integer(1, 10);
  for (int64_t i = 0; i < num_nodes; ++i) {
    if (random.chance(0.5)) {
      const std::string& name = random.pick(kUnary);
      ir::Attrs attrs;
      if (name == "clip") attrs = {{"a_min", 0.0}, {"a_max", random.pick(kBounds)}};
      values.push_back(function.add_node(op::get_op(name), {operand()}, attrs, "").results[0]);
    } else {
      values.push_back(
          function.add_node(op::get_op(random.pick(kBinary)), {operand(), operand()}, {}, "").results[0]);
    }
  }
  function.set_outputs({values.back()});
  return function;
}

Spec random_spec(Random& random, int depth) {
  Spec spec;
  const int64_t kind = depth == 0 ? random.integer(0, 2) : random.integer(0, 9);
  const auto child = [&] { spec.children.push_back(random_spec(random, depth - 1)); };
  if (kind <= 2) {
    spec.kind = std::array{Spec::kAny, Spec::kConstant,
                           Spec::kParam}[static_cast<size_t>(random.chance(0.6) ? 0 : kind)];
  } else if (kind <= 4) {
    spec.kind = Spec::kOp;
    spec.ops = {random.pick(kUnary)};
    if (random.chance(0.5)) spec.ops.push_back(random.pick(random.chance(0.5) ? kUnary : kBinary));
    if (random.chance(0.9)) child();
  } else if (kind <= 6) {
    spec.kind = random.chance(0.7) ? Spec::kCommutative : Spec::kOp;
    spec.ops = {random.pick(kBinary)};
    child();
    child();
  } else if (kind == 7) {
    spec.kind = Spec::kEither;
    child();
    child();
  } else if (kind == 8) {
    spec.kind = Spec::kOptional;
    spec.ops = {random.pick(random.chance(0.7) ? kUnary : kBinary)};
    child();
    if (random.chance(0.2)) child();
  } else {
    spec.kind = Spec::kDominates;
    for (const std::string& name : kUnary) {
      if (random.chance(0.6)) spec.ops.push_back(name);
    }
    if (random.chance(0.4)) spec.ops.push_back("add");
    child();
    child();
  }
  if (random.chance(0.35)) spec.name = random.pick(std::vector<std::string>{"a", "b", "c"});
  if (random.chance(0.05)) spec.dtype = random.chance(0.8) ? ir::kInt8 : ir::kInt32;
  if (random.chance(0.1)) spec.one_use = true;
  if (spec.kind == Spec::kOp && spec.ops[0] == "clip" && random.chance(0.3))
    spec.bound = random.pick(kBounds);
  if (random.chance(0.1)) spec.even = true;
  return spec;
}

// QPLAN_TEST_SEED repeats one case.
std::pair<uint64_t, uint64_t> seeds() {
  const char* seed = std::getenv("QPLAN_TEST_SEED");
  if (seed == nullptr) return {1, 20000};
  const uint64_t one = std::strtoull(seed, nullptr, 10);
  return {one, one};
}

TEST(MatcherProperty, GivesTheFirstOfAllMatches) {
  const auto [first_seed, last_seed] = seeds();
  uint64_t matched = 0, ambiguous = 0;
  for (uint64_t seed = first_seed; seed <= last_seed; ++seed) {
    Random random(seed);
    const ir::Function function = random_graph(random);
    const Pre pre(function);
    const Spec spec = random_spec(random, 4);
    const Pattern pattern = to_pattern(spec);
    const Enumerator enumerator(function);
    for (const ir::Node& node : function.nodes()) {
      const PreValue value{node.results[0]};
      const std::vector<Binding> expected = enumerator.all(spec, value.id, {});
      const std::optional<Matches> found = match(pattern, pre, value);
      const std::string where = "QPLAN_TEST_SEED=" + std::to_string(seed) + ", value " +
                                std::to_string(value.id.index) + ", " + to_string(pattern);
      ASSERT_EQ(found.has_value(), !expected.empty()) << where;
      const std::optional<NearMiss> miss = explain(pattern, pre, value);
      ASSERT_EQ(miss.has_value(), expected.empty()) << where;
      if (expected.empty()) {
        ASSERT_FALSE(miss->text().empty()) << where;
        continue;
      }
      ++matched;
      ambiguous += expected.size() > 1;
      for (const std::string name : {"a", "b", "c"}) {
        const auto bound = expected[0].find(name);
        ASSERT_EQ(found->has(name), bound != expected[0].end()) << where << ", capture " << name;
        if (bound != expected[0].end()) {
          ASSERT_EQ((*found)[name].id.index, bound->second) << where << ", capture " << name;
        }
      }
    }
  }
  if (first_seed == last_seed) return;
  EXPECT_GT(matched, 5000u) << "the patterns are too strict to show anything";
  EXPECT_GT(ambiguous, 500u);
}

}  // namespace
}  // namespace qplan::pattern::matcher_property_test
