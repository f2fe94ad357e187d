#include <algorithm>
#include <utility>

#include "src/packer/error.h"
#include "src/packer/ir/cat.h"
#include "src/packer/pattern/rewrite.h"
#include "src/packer/pipeline/stages.h"
#include "src/packer/text/text.h"

namespace qplan::pipeline {
namespace {

bool has_pass(const std::vector<passes::Stage>& known, std::string_view name) {
  return std::ranges::find(known, name, &passes::Stage::name) != known.end();
}

bool has_rewrite(const std::vector<passes::Stage>& known, std::string_view name) {
  return std::ranges::any_of(known, [&](const passes::Stage& pass) {
    return std::ranges::find(pass.rewrites(), name, &pattern::Rewrite::name) != pass.rewrites().end();
  });
}

void check_dump_after(const std::string& stage, const std::vector<passes::Stage>& known) {
  if (stage.empty() || stage == "all" || stage == "import" || has_pass(known, stage)) return;
  std::string names = "all, import";
  for (const passes::Stage& pass : known) names += cat(", ", pass.name());
  throw PackError(QPLAN_INVALID_ARGUMENT, "dump after: no pass '" + stage + "'; known: " + names);
}

void check_skip(const std::vector<std::string>& skip, const std::vector<passes::Stage>& known) {
  for (const std::string& name : skip) {
    if (has_pass(known, name) || has_rewrite(known, name)) continue;
    std::string names;
    for (const passes::Stage& pass : known) names += cat(names.empty() ? "" : ", ", pass.name());
    for (const passes::Stage& pass : known) {
      for (const pattern::Rewrite& rewrite : pass.rewrites()) names += ", " + rewrite.name;
    }
    throw PackError(QPLAN_INVALID_ARGUMENT, "skip: no pass or rewrite '" + name + "'; known: " + names);
  }
}

}  // namespace

Observer::Observer(const PackOptions& options)
    : options_(options), passes_(passes::all_stages(options.user_passes)) {
  check_dump_after(options.dump_after, passes_);
  check_skip(options.skip, passes_);
  if (!options.why_not.empty()) check_rewrite(options.why_not, passes_);
}

void Observer::log(uint32_t level, const std::string& text) const {
  if (options_.log) options_.log(level, text);
}

void Observer::dump(std::string_view stage, const ir::Module& module) const {
  if (!options_.dump || (options_.dump_after != "all" && options_.dump_after != stage)) return;
  text::PrintOptions print_options;
  print_options.metadata = false;
  options_.dump("// after " + std::string(stage) + "\n" + text::print(module, print_options) + "\n");
}

void Observer::stage(const char* name, uint32_t done, uint32_t total) const {
  log(QPLAN_LOG_DEBUG, std::string("pack: ") + name);
  progress(name, done, total);
}

void Observer::progress(const char* what, uint32_t done, uint32_t total) const {
  if (options_.progress) options_.progress(what, done, total);
  if (options_.cancelled && options_.cancelled()) {
    throw PackError(QPLAN_CANCELLED, "packing was cancelled by the caller; nothing was written");
  }
}

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
      lines.empty() ? "; no remaining name begins like it\n" : "; after all passes it does not apply at\n",
      lines);
}

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
