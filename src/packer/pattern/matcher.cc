// A backtracking matcher without recursion: a list of goals still to reach, and a stack of choices to come
// back to. Goals are in an arena that only grows between two choices, so that a choice remembers a list by
// its head and backtracking cuts the arena to its size at the time.
#include <algorithm>
#include <utility>

#include "src/packer/error.h"
#include "src/packer/ir/cat.h"
#include "src/packer/pattern/pattern.h"

namespace qplan::pattern {
namespace {

constexpr uint32_t kNone = UINT32_MAX;

struct Goal {
  enum class Kind : uint8_t {
    kMatch,         // pattern at value
    kSwapped,       // operands of a commutative pattern, the first two exchanged
    kOtherBranch,   // of a kEither or kOptional pattern
    kWhere,         // the where() conditions of pattern
    kDominator,     // parent of a kDominates pattern at value or above; first: value is what the child reads
    kDominatorNext  // the same, but only above value
  };
  Kind kind;
  const PatternNode* pattern;
  ir::ValueId value;
  uint32_t way;   // index of the Way that led to value, kNone at the root
  uint32_t next;  // the goal after this one
};

// One step from a node to what it reads.
struct Way {
  uint32_t before;   // the way that led to the node
  uint32_t node;     // the node
  uint32_t operand;  // which operand
  uint32_t through;  // kDominates: nodes of the path passed after that
};

struct Choice {
  Goal goal;  // to be tried next
  size_t num_goals, num_ways, num_captures, num_taken;
  uint32_t held;
};

// Whole numbers are numbers: 6 is 6.0.
bool equal_attr(const ir::AttrValue& a, const ir::AttrValue& b) {
  const auto number = [](const ir::AttrValue& value) -> const ir::AttrValue {
    const auto* integer = std::get_if<int64_t>(&value);
    return integer != nullptr ? ir::AttrValue(static_cast<double>(*integer)) : value;
  };
  return a == b || number(a) == number(b);
}

// The attribute or its fallback; null without either.
const ir::AttrValue* find_attr(const ir::Node& node, std::string_view name) {
  if (const ir::AttrValue* value = node.attrs.find(name)) return value;
  if (node.op == nullptr) return nullptr;
  const auto def = std::ranges::find(node.op->attrs, name, &op::AttrDef::name);
  return def != node.op->attrs.end() && def->fallback ? &*def->fallback : nullptr;
}

class Matcher {
 public:
  Matcher(const Pre& pre, bool explain) : pre_(pre), function_(pre.function()), explain_(explain) {}

  bool run(const Pattern& pattern, ir::ValueId value) {
    root_ = value;
    push({Goal::Kind::kMatch, &pattern.node(), value, kNone, kNone});
    while (head_ != kNone) {
      if (++steps_ > kMaxSteps) {
        throw PackError(QPLAN_MODEL_UNSUPPORTED,
                        cat("pattern '", to_string(pattern), "' at ", label(function_, value), ": more than ",
                            kMaxSteps, " steps; write it with fewer choices under each other"));
      }
      const Goal goal = goals_[head_];
      head_ = goal.next;
      if (!reach(goal) && !backtrack()) return false;
    }
    return true;
  }

  Matches matches() const {
    Matches result;
    for (const auto& [name, value] : captures_) result.set(*name, PreValue{value});
    result.set_nodes(taken_);
    return result;
  }
  const NearMiss& near_miss() const { return near_miss_; }

 private:
  void push(Goal goal) {
    goal.next = head_;
    head_ = static_cast<uint32_t>(goals_.size());
    goals_.push_back(goal);
  }
  // The choice that is tried when anything after it fails.
  void push_choice(Goal goal) {
    goal.next = head_;
    choices_.push_back({goal, goals_.size(), ways_.size(), captures_.size(), taken_.size(), held_});
  }
  bool backtrack() {
    if (choices_.empty()) return false;
    const Choice choice = choices_.back();
    choices_.pop_back();
    goals_.resize(choice.num_goals);
    ways_.resize(choice.num_ways);
    captures_.resize(choice.num_captures);
    taken_.resize(choice.num_taken);
    held_ = choice.held;
    head_ = static_cast<uint32_t>(goals_.size());
    goals_.push_back(choice.goal);
    return true;
  }

  bool reach(const Goal& goal) {
    switch (goal.kind) {
      case Goal::Kind::kMatch:
        return reach_match(goal);
      case Goal::Kind::kSwapped:
        push_operands(goal, true);
        return true;
      case Goal::Kind::kOtherBranch:
        push_branch(goal, goal.pattern->kind == PatternKind::kOptional ? 0 : 1);
        return true;
      case Goal::Kind::kWhere:
        return reach_where(goal);
      case Goal::Kind::kDominator:
        return reach_dominator(goal);
      case Goal::Kind::kDominatorNext:
        return reach_dominator_next(goal);
    }
    return false;
  }

  bool reach_match(const Goal& goal) {
    const PatternNode& pattern = *goal.pattern;
    if (!holds_kind(goal) || !holds_conditions(goal)) return false;
    const bool has_where = std::ranges::any_of(pattern.conditions, [](const Condition& condition) {
      return std::holds_alternative<condition::Where>(condition);
    });
    if (has_where) push({Goal::Kind::kWhere, &pattern, goal.value, goal.way, kNone});

    switch (pattern.kind) {
      case PatternKind::kAny:
      case PatternKind::kConstant:
      case PatternKind::kParam:
        return true;
      case PatternKind::kOp:
        if (pattern.commutative) push_choice({Goal::Kind::kSwapped, &pattern, goal.value, goal.way, kNone});
        push_operands(goal, false);
        return true;
      case PatternKind::kEither:
        push_choice({Goal::Kind::kOtherBranch, &pattern, goal.value, goal.way, kNone});
        push_branch(goal, 0);
        return true;
      case PatternKind::kOptional:
        push_choice({Goal::Kind::kOtherBranch, &pattern, goal.value, goal.way, kNone});
        return reach_optional(goal);
      case PatternKind::kDominates: {
        const ir::Node* child = function_.producer(goal.value);
        const uint32_t way = push_way(goal, *child, 0);
        push({Goal::Kind::kDominator, &pattern, child->operands[0], way, kNone});
        push_branch(goal, 0);
        return true;
      }
    }
    return false;
  }

  // Whether the value itself is of the pattern's kind, whatever its operands are.
  bool holds_kind(const Goal& goal) {
    const PatternNode& pattern = *goal.pattern;
    const ir::Value& value = function_.value(goal.value);
    const ir::Node* node = function_.producer(goal.value);
    switch (pattern.kind) {
      case PatternKind::kAny:
      case PatternKind::kEither:
      case PatternKind::kOptional:
        return true;
      case PatternKind::kConstant:
        return value.kind == ir::ValueKind::kConstant ? held() : fail_kind(goal);
      case PatternKind::kParam:
        return value.kind == ir::ValueKind::kParam ? held() : fail_kind(goal);
      case PatternKind::kOp:
        return holds_op(goal, pattern.children.size());
      case PatternKind::kDominates:
        return node != nullptr && !node->operands.empty() ? true : fail_kind(goal);
    }
    return false;
  }

  bool holds_op(const Goal& goal, size_t num_operands) {
    const ir::Node* node = function_.producer(goal.value);
    if (node == nullptr || node->op == nullptr ||
        std::ranges::find(goal.pattern->ops, node->op) == goal.pattern->ops.end()) {
      return fail_kind(goal);
    }
    held();
    taken_.push_back(function_.value(goal.value).producer);
    if (num_operands <= node->operands.size()) return true;
    return fail(
        goal, [&] { return cat(node->op->name, " with at least ", num_operands, " operands"); },
        [&] { return cat(node->operands.size(), " in ", label(function_, goal.value)); });
  }

  bool holds_conditions(const Goal& goal) {
    for (const Condition& condition : goal.pattern->conditions) {
      if (!std::visit([&](const auto& c) { return holds(goal, c); }, condition)) return false;
    }
    return true;
  }

  bool holds(const Goal& goal, const condition::Capture& c) {
    for (const auto& [name, value] : captures_) {
      if (*name != c.name) continue;
      if (value == goal.value) return held();
      const ir::ValueId bound = value;
      return fail(
          goal, [&] { return cat("the value '", c.name, "' again, ", describe(function_, bound)); },
          [&] { return describe(function_, goal.value); });
    }
    captures_.emplace_back(&c.name, goal.value);
    return true;
  }
  bool holds(const Goal& goal, const condition::DTypeIn& c) {
    const ir::DType dtype = function_.type(goal.value).dtype;
    if (std::ranges::find(c.any_of, dtype) != c.any_of.end()) return held();
    return fail_condition(goal, c);
  }
  bool holds(const Goal& goal, const condition::ShapeIs& c) {
    return function_.type(goal.value).shape == c.shape ? held() : fail_condition(goal, c);
  }
  bool holds(const Goal& goal, const condition::RankIs& c) {
    return function_.type(goal.value).shape.size() == c.rank ? held() : fail_condition(goal, c);
  }
  bool holds(const Goal& goal, const condition::OneUse&) {
    const uint32_t uses = pre_.num_uses(PreValue{goal.value});
    if (uses == 1) return held();
    return fail(
        goal, [] { return std::string("a value that is read once"); },
        [&] { return cat(describe(function_, goal.value), ", read ", uses, " times"); });
  }
  bool holds(const Goal& goal, const condition::AttrIs& c) {
    const ir::Node* node = function_.producer(goal.value);
    if (node == nullptr) return fail_condition(goal, c);
    const ir::AttrValue* found = find_attr(*node, c.name);
    if (found != nullptr && equal_attr(*found, c.value)) return held();
    return fail(
        goal, [&] { return cat(c.name, "=", describe(c.value)); },
        [&] {
          return cat(found == nullptr ? "no such attribute" : describe(*found), " in ",
                     label(function_, goal.value));
        });
  }
  // A goal of its own checks this, after the pattern's operands.
  bool holds(const Goal&, const condition::Where&) { return true; }

  bool reach_where(const Goal& goal) {
    for (const Condition& condition : goal.pattern->conditions) {
      const auto* where = std::get_if<condition::Where>(&condition);
      if (where == nullptr) continue;
      if (where->holds(pre_, PreValue{goal.value})) {
        held();
        continue;
      }
      return fail(
          goal, [&] { return "a value " + where->text; }, [&] { return describe(function_, goal.value); });
    }
    return true;
  }

  // Operands are pushed last to first, so that the first is the next goal.
  void push_operands(const Goal& goal, bool swapped) {
    const PatternNode& pattern = *goal.pattern;
    const ir::Node& node = *function_.producer(goal.value);
    for (size_t i = pattern.children.size(); i-- > 0;) {
      const size_t operand = swapped && i < 2 ? 1 - i : i;
      push({Goal::Kind::kMatch, &pattern.children[i].node(), node.operands[operand],
            push_way(goal, node, operand), kNone});
    }
  }
  // A child of the pattern at the same value.
  void push_branch(const Goal& goal, size_t child) {
    push({Goal::Kind::kMatch, &goal.pattern->children[child].node(), goal.value, goal.way, kNone});
  }
  bool reach_optional(const Goal& goal) {
    if (!holds_op(goal, goal.pattern->children.size())) return false;
    push_operands(goal, false);
    return true;
  }

  bool reach_dominator(const Goal& goal) {
    const uint32_t uses = pre_.num_uses(PreValue{goal.value});
    if (uses != 1) {
      return fail(
          goal, [] { return std::string("a value that is read once, between a parent and its child"); },
          [&] { return cat(describe(function_, goal.value), ", read ", uses, " times"); });
    }
    push_choice({Goal::Kind::kDominatorNext, goal.pattern, goal.value, goal.way, kNone});
    push({Goal::Kind::kMatch, &goal.pattern->children[1].node(), goal.value, goal.way, kNone});
    return true;
  }

  bool reach_dominator_next(const Goal& goal) {
    const ir::Node* node = function_.producer(goal.value);
    const std::vector<const op::OpDef*>& path = goal.pattern->ops;
    if (node == nullptr || node->op == nullptr || node->operands.empty() ||
        std::ranges::find(path, node->op) == path.end()) {
      return fail(
          goal,
          [&] {
            std::string names;
            for (const op::OpDef* op : path) names += op->name + " or ";
            return names + describe_kind(goal.pattern->children[1].node());
          },
          [&] { return describe(function_, goal.value); });
    }
    held();
    taken_.push_back(function_.value(goal.value).producer);
    Way way = ways_[goal.way];
    ++way.through;
    ways_.push_back(way);
    push({Goal::Kind::kDominator, goal.pattern, node->operands[0], static_cast<uint32_t>(ways_.size() - 1),
          kNone});
    return true;
  }

  uint32_t push_way(const Goal& goal, const ir::Node& node, size_t operand) {
    const uint32_t index = function_.value(node.results[0]).producer;
    ways_.push_back({goal.way, index, static_cast<uint32_t>(operand), 0});
    return static_cast<uint32_t>(ways_.size() - 1);
  }

  bool held() {
    ++held_;
    return true;
  }

  // ---- near misses ----
  template <typename Expected, typename Found>
  bool fail(const Goal& goal, const Expected& expected, const Found& found) {
    if (explain_ && (near_miss_.place.empty() || held_ > near_miss_.depth)) {
      near_miss_ = {place(goal), expected(), found(), held_};
    }
    return false;
  }
  bool fail_kind(const Goal& goal) {
    return fail(
        goal, [&] { return describe_kind(*goal.pattern); }, [&] { return describe(function_, goal.value); });
  }
  template <typename C>
  bool fail_condition(const Goal& goal, const C& c) {
    return fail(
        goal, [&] { return "a value " + describe(Condition(c)); },
        [&] { return describe(function_, goal.value); });
  }

  std::string place(const Goal& goal) const {
    constexpr size_t kMaxHops = 6;
    std::vector<std::string> hops;  // from the value to the root
    for (uint32_t way = goal.way; way != kNone; way = ways_[way].before) {
      if (hops.size() + 1 == kMaxHops && ways_[way].before != kNone) {
        hops.emplace_back("...");
        while (ways_[way].before != kNone) way = ways_[way].before;
      }
      const Way& hop = ways_[way];
      const ir::Node& node = function_.nodes()[hop.node];
      std::string text = cat(node_label(function_, hop.node), ": operand ", hop.operand);
      if (node.op != nullptr && !node.op->variadic && hop.operand < node.op->operands.size()) {
        text += " (" + node.op->operands[hop.operand].name + ")";
      }
      if (hop.through > 0) text += cat(" through ", hop.through, hop.through == 1 ? " node" : " nodes");
      hops.push_back(std::move(text));
    }
    if (hops.empty()) return label(function_, root_);
    std::string text;
    for (size_t i = hops.size(); i-- > 0;) text += (text.empty() ? "" : " -> ") + hops[i];
    return text;
  }

  const Pre& pre_;
  const ir::Function& function_;
  const bool explain_;
  ir::ValueId root_;
  std::vector<Goal> goals_;
  uint32_t head_ = kNone;  // of the list of goals to reach
  std::vector<Way> ways_;
  std::vector<std::pair<const std::string*, ir::ValueId>> captures_;
  std::vector<uint32_t> taken_;  // nodes that operators of the pattern matched
  std::vector<Choice> choices_;
  uint32_t held_ = 0;  // conditions, since the root
  uint32_t steps_ = 0;
  NearMiss near_miss_;
};

}  // namespace

bool Matches::has(std::string_view name) const { return values_.contains(name); }

std::optional<PreValue> Matches::find(std::string_view name) const {
  const auto it = values_.find(name);
  return it == values_.end() ? std::nullopt : std::optional(it->second);
}

PreValue Matches::operator[](std::string_view name) const {
  const std::optional<PreValue> value = find(name);
  if (!value) throw PackError(QPLAN_INTERNAL, cat("pattern: nothing was matched as '", name, "'"));
  return *value;
}

void Matches::set(std::string name, PreValue value) { values_.insert_or_assign(std::move(name), value); }

void Matches::set_nodes(std::vector<uint32_t> nodes) {
  std::ranges::sort(nodes);
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  nodes_ = std::move(nodes);
}

std::string NearMiss::text() const { return cat(place, ": expected ", expected, ", found ", found); }

std::optional<Matches> match(const Pattern& pattern, const Pre& pre, PreValue value) {
  Matcher matcher(pre, false);
  if (!matcher.run(pattern, value.id)) return std::nullopt;
  return matcher.matches();
}

std::optional<NearMiss> explain(const Pattern& pattern, const Pre& pre, PreValue value) {
  Matcher matcher(pre, true);
  if (matcher.run(pattern, value.id)) return std::nullopt;
  return matcher.near_miss();
}

}  // namespace qplan::pattern
