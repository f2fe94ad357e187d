#include "src/packer/pipeline/left_out.h"

#include "src/packer/pattern/rewrite.h"

namespace qplan::pipeline {
namespace {

// What the first rewrite of `run` logged; empty when nothing fired.
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

std::vector<std::string> left_out(const ir::Module& module, const passes::PassContext& context) {
  std::vector<std::string> lines;
  const auto add = [&](const std::string& what, const std::string& firing) {
    if (!firing.empty()) lines.push_back(what + " is left out and would have applied: " + firing);
  };
  for (const passes::Pass& pass : passes::all_passes()) {
    if (context.skipped(pass.name)) {
      add("pass '" + std::string(pass.name) + "'", first_firing(context, [&](passes::PassContext& trial) {
            for (const auto& function : module.functions()) pass.run(module, *function, trial);
          }));
    }
    if (pass.rewrites == nullptr) continue;
    for (const pattern::Rewrite& rewrite : pass.rewrites()) {
      if (!context.skipped(rewrite.name)) continue;
      add("rewrite '" + rewrite.name + "'", first_firing(context, [&](passes::PassContext& trial) {
            for (const auto& function : module.functions()) {
              pattern::rewrite_once(*function, {&rewrite, 1},
                                    [&](std::string_view name, std::string_view node, std::string_view why) {
                                      trial.fired(name, node, why);
                                    });
            }
          }));
    }
  }
  return lines;
}

}  // namespace qplan::pipeline
