// Conditions under which a target takes what a row of its table matched, and what a user reads where one does
// not hold.
#ifndef QPLAN_SRC_PACKER_TARGET_CONSTRAINT_H_
#define QPLAN_SRC_PACKER_TARGET_CONSTRAINT_H_

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace qplan::target {

// Why a target does not take something.
struct Reason {
  std::string id;    // stable: "vta.conv2d.groups"
  std::string text;  // what was found and what the limit is
  std::string hint;  // what the user may do about it
  bool operator==(const Reason&) const = default;
};

// One condition on what a row matched. It speaks for itself: where what it looks at cannot be read because
// another condition is violated, it has nothing to say.
template <typename Match>
struct ConstraintOn {
  std::string id;           // "vta.conv2d.groups"
  std::string requirement;  // for docs/supported_ops.md: "one group"
  std::string hint;
  // What stands against it, with the actual value and the limit; empty: it holds.
  std::function<std::string(const Match&)> violation;
};

// All reasons against a match, in the order of the constraints; empty: the target takes it.
template <typename Match>
std::vector<Reason> reasons_against(std::span<const ConstraintOn<Match>> constraints, const Match& match) {
  std::vector<Reason> reasons;
  for (const ConstraintOn<Match>& constraint : constraints) {
    std::string text = constraint.violation(match);
    if (!text.empty()) reasons.push_back({constraint.id, std::move(text), constraint.hint});
  }
  return reasons;
}

// "softmax" of "qnn.softmax": ids say what is done, not in which dialect.
inline std::string_view plain_operator_name(std::string_view op) {
  const size_t dot = op.rfind('.');
  return dot == std::string_view::npos ? op : op.substr(dot + 1);
}

}  // namespace qplan::target

#endif  // QPLAN_SRC_PACKER_TARGET_CONSTRAINT_H_
