#include "src/packer/pipeline/why_not.h"

#include <algorithm>

#include "src/packer/error.h"
#include "src/packer/ir/cat.h"
#include "src/packer/pattern/rewrite.h"

namespace qplan::pipeline {
namespace {

struct Found {
  const passes::Stage* pass = nullptr;
  const pattern::Rewrite* rewrite = nullptr;
};

Found find_rewrite(std::string_view name, std::span<const passes::Stage> known) {
  for (const passes::Stage& pass : known) {
    for (const pattern::Rewrite& rewrite : pass.rewrites()) {
      if (rewrite.name == name) return {&pass, &rewrite};
    }
  }
  return {};
}

}  // namespace

void check_rewrite(std::string_view name, std::span<const passes::Stage> known) {
  if (find_rewrite(name, known).rewrite != nullptr) return;
  std::string names;
  for (const passes::Stage& pass : known) {
    for (const pattern::Rewrite& rewrite : pass.rewrites())
      names += (names.empty() ? "" : ", ") + rewrite.name;
  }
  throw PackError(QPLAN_INVALID_ARGUMENT, cat("why not: no rewrite '", name, "'; known: ", names));
}

std::string why_not_report(std::string_view name, std::span<const passes::Stage> known,
                           const ir::Module& module, uint64_t num_fired) {
  const Found found = find_rewrite(name, known);
  std::string lines;
  for (const auto& function : module.functions()) {
    const pattern::Pre pre(*function);
    for (const ir::Node& node : function->nodes()) {
      if (node.results.size() != 1) continue;
      const auto miss = pattern::explain(found.rewrite->pattern, pre, pattern::PreValue{node.results[0]});
      if (miss && miss->depth == 0) continue;  // another operator
      const std::string why = pattern::why_not(*found.rewrite, *function, node.results[0]);
      lines += cat("  ",
                   why.empty() ? cat(node.op->name, " '", node.name, "': it applies, and was left out") : why,
                   "\n");
    }
  }
  return cat(
      "rewrite '", name, "' of pass '", found.pass->name(), "' applied ", num_fired,
      num_fired == 1 ? " time" : " times",
      lines.empty() ? "; nothing that is left begins like it\n" : "; after all passes it does not apply at\n",
      lines);
}

}  // namespace qplan::pipeline
