// The canonical form of a module, and what a caller sees of the way there: dumps, near misses, what --skip
// left undone.
#include <algorithm>
#include <chrono>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "src/packer/error.h"
#include "src/packer/evaluate/evaluate.h"
#include "src/packer/import/import.h"
#include "src/packer/ir/cat.h"
#include "src/packer/ir/module.h"
#include "src/packer/passes/pass.h"
#include "src/packer/passes/rewrite_pass.h"
#include "src/packer/pattern/pattern.h"
#include "src/packer/pipeline/stages.h"
#include "src/packer/text/text.h"

namespace qplan::pipeline {
namespace {

// Each round must bring the module nearer to its canonical form; passes that undo each other's work never
// end.
constexpr uint32_t kMaxRounds = 100;

// Under it every operator means the same reals in int8 and in uint8, and averages have one spelling.
constexpr char kContractOfBodies[] = "f32e";

passes::ActivationZeroPoint activation_zero_point(target::InputOrigin origin) {
  switch (origin) {
    case target::InputOrigin::kDtypeMin:
      return passes::ActivationZeroPoint::kDtypeMinimum;
    case target::InputOrigin::kDtypeMiddle:
      return passes::ActivationZeroPoint::kDtypeMiddle;
    case target::InputOrigin::kZero:
      break;
  }
  return passes::ActivationZeroPoint::kZero;
}

bool run_pass(const passes::Stage& pass, ir::Module* module, passes::PassContext& context) {
  // What is replaced stays valid until the next function is read: only names are kept.
  std::vector<std::string> names;
  for (const auto& function : module->functions()) names.push_back(function->name());
  bool changed = false;
  for (const std::string& name : names) {
    std::unique_ptr<ir::Function> post = pass.run(*module, *module->find(name), context);
    if (post == nullptr) continue;
    module->replace_function(std::move(post));
    changed = true;
  }
  if (!changed) return false;
  try {
    ir::verify(*module);
  } catch (const PackError& error) {
    throw PackError(QPLAN_INTERNAL, cat("pass '", pass.name(), "' broke the module: ", error.what()));
  }
  return true;
}

// What the passes did, over all rounds.
struct PassSummary {
  uint64_t num_fired = 0;
  std::chrono::steady_clock::duration time{};
};

void log_summaries(const std::vector<PassSummary>& summaries, const Observer& observer) {
  for (size_t i = 0; i < summaries.size(); ++i) {
    const auto us = std::chrono::duration_cast<std::chrono::microseconds>(summaries[i].time).count();
    observer.log(QPLAN_LOG_INFO, cat("pass '", observer.passes()[i].name(), "': ", summaries[i].num_fired,
                                     summaries[i].num_fired == 1 ? " rewrite, " : " rewrites, ", us, " us"));
  }
}

// The passes of a canonicalisation, and what is said of them.
struct Passes {
  ir::Module* module;
  passes::PassContext& context;
  const Observer& observer;
  LeftOut& left_out;
  std::vector<PassSummary> summaries = std::vector<PassSummary>(observer.passes().size());

  // Runs one, unless it is left out. Whether it changed anything.
  bool run_one(size_t index) {
    const passes::Stage& pass = observer.passes()[index];
    if (!context.skip.empty()) left_out.look(pass, *module, context);
    if (context.skipped(pass.name())) return false;
    const uint64_t num_fired = context.num_fired;
    observer.progress(std::string(pass.name()).c_str(), static_cast<uint32_t>(index),
                      static_cast<uint32_t>(observer.passes().size()));
    const auto begin = std::chrono::steady_clock::now();
    const bool changed = run_pass(pass, module, context);
    summaries[index].time += std::chrono::steady_clock::now() - begin;
    summaries[index].num_fired += context.num_fired - num_fired;
    return changed;
  }

  bool run_one(std::string_view name) {
    const auto pass = std::ranges::find(observer.passes(), name, &passes::Stage::name);
    if (pass == observer.passes().end()) return false;
    const bool changed = run_one(static_cast<size_t>(pass - observer.passes().begin()));
    if (changed) observer.dump(name, *module);
    return changed;
  }

  // Runs all in rounds until none changes anything.
  void run_to_fixpoint() {
    std::vector<size_t> changing;  // the passes that changed something in this round
    for (uint32_t round = 0; round < kMaxRounds; ++round) {
      changing.clear();
      for (size_t i = 0; i < observer.passes().size(); ++i) {
        const std::string_view name = observer.passes()[i].name();
        const bool changed = run_one(i);
        if (changed || (round == 0 && !context.skipped(name))) observer.dump(name, *module);
        if (changed) changing.push_back(i);
      }
      if (changing.empty()) return;
    }
    std::string names;
    bool users = false;
    for (const size_t i : changing) {
      const passes::Stage& pass = observer.passes()[i];
      names += cat(names.empty() ? "'" : ", '", pass.name(), "'");
      users = users || pass.user != nullptr;
    }
    throw PackError(users ? QPLAN_INVALID_ARGUMENT : QPLAN_INTERNAL,
                    cat("the passes still change the module after ", kMaxRounds,
                        " rounds, where each change must come to an end; in the last one changed: ", names));
  }
};

void tell_io_quantization(ir::Module* module, bool canonical) {
  for (const auto& function : module->functions()) {
    if (function->name() == "main") set_io_quantization(*function, canonical);
  }
}

// The least number that the CPU's and all devices' divide; where there is no sensible one, more than any
// tensor has.
size_t channel_multiple(std::span<const target::Target> targets, size_t of_cpu) {
  constexpr size_t kMost = size_t{1} << 32;
  size_t multiple = of_cpu;
  for (const target::Target& target : targets) {
    multiple = std::lcm(multiple, size_t{target.channel_multiple});
    if (multiple >= kMost) return kMost;
  }
  return multiple;
}

}  // namespace

std::vector<std::string> canonicalize(ir::Module* module, std::span<const target::Target> targets,
                                      const Observer& observer, Border border) {
  const PackOptions& options = observer.options();
  passes::PassContext context;
  context.evaluate = evaluate::evaluate_node;
  context.activation_zero_point = activation_zero_point(cpu_of(targets).profile.input_origin);
  context.channel_multiple = channel_multiple(targets, context.channel_multiple);
  context.keep_float = options.keep_float;
  context.skip = {options.skip.begin(), options.skip.end()};
  context.log = observer.log_function();

  const bool for_body = border == Border::kOfTheBody;
  // Nobody asked for the border of the body: what cannot have it is no news.
  const LogFunction border_log = for_body ? LogFunction{} : context.log;
  tell_io_quantization(module, /*canonical=*/false);
  context.contract_is_chosen = means_other_contracts(*module, options.contract);
  set_contract(module, options.contract);
  set_io_layout(module, for_body ? "nhwc" : options.io_layout, border_log);
  LeftOut left_out;
  Passes all{module, context, observer, left_out};
  all.run_to_fixpoint();
  for (const std::string& line : passes::explain_refusals(module->main(), context)) {
    observer.log(QPLAN_LOG_INFO, "operators stay in float32: " + line);
  }
  context.floats_stay = true;
  if (all.run_one("unify_signedness")) all.run_to_fixpoint();
  // What layers that stay float have as integers.
  if (all.run_one("fold_constants")) all.run_to_fixpoint();
  if (!options.contract.empty()) {
    set_contract(module, options.contract);  // of the requantisations that the rewrites made, too
    all.run_to_fixpoint();
  }
  if (for_body) {
    // Constants are what the source's contract made of them by now; how averages are written depends on it
    // too.
    set_contract(module, kContractOfBodies);
    context.contract_is_chosen = true;
    all.run_to_fixpoint();
  }
  // Now operators that were float before tell the scales of inputs and outputs, too.
  tell_io_quantization(module, /*canonical=*/true);
  const std::string io = for_body ? ir::to_string(passes::activation_dtype(module->main())) : options.io;
  if (!io.empty()) {
    // Only now inputs are quantised first thing, wherever the source did it.
    set_io_dtype(module, io, border_log, /*needs_scales=*/!for_body);
    all.run_to_fixpoint();
  }
  // Bodies keep all channels, so that two of them can be compared node by node.
  if (!for_body) {
    context.channels_may_go = true;
    const bool gone = all.run_one("remove_dead_channels");
    // Once: a pass of the caller's may bring channels back, to a number that its device likes.
    context.channels_may_go = false;
    if (gone) all.run_to_fixpoint();
  }
  log_summaries(all.summaries, observer);
  for (const std::string& line : left_out.lines()) observer.log(QPLAN_LOG_WARNING, line);
  return left_out.lines();
}

// What the caller asked to see.

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
  if (pass.user != nullptr) return;
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
