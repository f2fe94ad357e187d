#include "src/packer/pipeline/left_out.h"

#include "src/packer/ir/cat.h"
#include "src/packer/pattern/rewrite.h"

namespace qplan::pipeline {
namespace {

// What `run` logs first when it rewrites something; empty when it does not.
template <typename Run>
std::string first_firing(const passes::PassContext& context, const Run& run) {
  passes::PassContext trial = context;
  trial.skip.clear();
  std::string first;
  trial.log = [&](uint32_t, const std::string& text) {
    if (first.empty()) first = text;
  };
  run(trial);
  return first;
}

}  // namespace

void LeftOut::look(const passes::Stage& pass, const ir::Module& module, const passes::PassContext& context) {
  if (context.skipped(pass.name()) && !known_.contains(pass.name())) {
    add("pass", pass.name(), first_firing(context, [&](passes::PassContext& trial) {
          for (const auto& function : module.functions()) pass.run(module, *function, trial);
        }));
  }
  for (const pattern::Rewrite& rewrite : pass.rewrites()) {
    if (!context.skipped(rewrite.name) || known_.contains(rewrite.name)) continue;
    // The first place is enough; a row that fires everywhere could make more constants than the budget
    // allows.
    bool found = false;
    pattern::Rewrite once = rewrite;
    once.build = [&](const pattern::RewriteContext& match,
                     std::string* why) -> std::optional<pattern::PostValue> {
      if (found) return std::nullopt;
      auto result = rewrite.build(match, why);
      found = result.has_value();
      return result;
    };
    add("rewrite", rewrite.name, first_firing(context, [&](passes::PassContext& trial) {
          for (const auto& function : module.functions()) {
            pattern::rewrite_once(*function, {&once, 1},
                                  [&](std::string_view name, std::string_view node, std::string_view why) {
                                    trial.fired(name, node, why);
                                  });
          }
        }));
  }
}

void LeftOut::add(std::string_view kind, std::string_view name, const std::string& firing) {
  if (firing.empty()) return;
  known_.emplace(name);
  lines_.push_back(cat(kind, " '", name, "' is left out and would have applied: ", firing));
}

}  // namespace qplan::pipeline
