// Matches patterns (pattern.h) against a function, and says why one does not match.
#ifndef QPLAN_SRC_PACKER_PATTERN_MATCHER_H_
#define QPLAN_SRC_PACKER_PATTERN_MATCHER_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/packer/pattern/pattern.h"
#include "src/packer/pattern/rebuild.h"

namespace qplan::pattern {

// Values by the names of Pattern::as; what an optional or an alternative left out is absent.
class Matches {
 public:
  bool has(std::string_view name) const;
  PreValue operator[](std::string_view name) const;  // PackError (QPLAN_INTERNAL) when absent
  std::optional<PreValue> find(std::string_view name) const;

  // The nodes that operators of the pattern matched, ascending, each once: the nodes that a match takes. Not
  // those that make a value of any().
  const std::vector<uint32_t>& nodes() const { return nodes_; }

  // For the matcher.
  void set(std::string name, PreValue value);
  void set_nodes(std::vector<uint32_t> nodes);
  void clear() {
    values_.clear();
    nodes_.clear();
  }

 private:
  std::map<std::string, PreValue, std::less<>> values_;
  std::vector<uint32_t> nodes_;
};

// Where a pattern came furthest before it failed.
struct NearMiss {
  // The way from the root: "qnn.requantize 'rq': operand 0 (data) -> qnn.conv2d 'conv_1': operand 1
  // (weight)".
  std::string place;
  std::string expected;      // "qnn.quantize of (a constant, ...)"
  std::string found;         // "parameter '%w' (Tensor[(8), float32])"
  uint32_t depth = 0;        // conditions that held before
  std::string text() const;  // one line
};

// The matches when `value` matches.
std::optional<Matches> match(const Pattern& pattern, const Pre& pre, PreValue value);
// Why it does not: of all ways that were tried the one that held longest (the first of equals). nullopt: it
// matches.
std::optional<NearMiss> explain(const Pattern& pattern, const Pre& pre, PreValue value);

// The pattern in words: "qnn.requantize(qnn.conv2d(any, constant), ...)".
std::string to_string(const Pattern& pattern);

}  // namespace qplan::pattern

#endif  // QPLAN_SRC_PACKER_PATTERN_MATCHER_H_
