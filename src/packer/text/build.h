// From a draft to a function of the IR.
#ifndef QPLAN_SRC_PACKER_TEXT_BUILD_H_
#define QPLAN_SRC_PACKER_TEXT_BUILD_H_

#include <utility>
#include <vector>

#include "src/packer/text/draft.h"
#include "src/packer/text/text.h"

namespace qplan::text {

// The options that the text used; shared by all functions of a module.
struct Resolution {
  Resolution(const ParseOptions& parse_options, FailAt fail)
      : options(parse_options), fail_at(std::move(fail)) {}

  const ParseOptions& options;
  FailAt fail_at;
  std::vector<std::string> inputs;       // names of main's parameters, for refusals
  std::vector<std::string> synthesised;  // names
  std::vector<std::string> unbound;      // parameters of main that are weights by their use
  int64_t synthesised_bytes = 0;
};

// Gives every parameter and placeholder its type, and contents where they are bound (is_main) or synthesised.
// Refuses what stays unknown.
void resolve(Draft* draft, bool is_main, Resolution* resolution);

// Adds parameters, nodes and constants to the function, and gives its value for each of the draft.
std::vector<ir::ValueId> build_function(const Draft& draft, ir::Function* function, const FailAt& fail_at);

}  // namespace qplan::text

#endif  // QPLAN_SRC_PACKER_TEXT_BUILD_H_
