#include "src/packer/passes/pass.h"

#include <algorithm>

#include "src/packer/error.h"
#include "src/packer/ir/cat.h"
#include "src/packer/passes/rewrite_pass.h"
#include "src/packer/pattern/rewrite.h"

namespace qplan::passes {
namespace {

constexpr Pass kPasses[] = {
#define PASS(name) {#name, run_##name},
#define REWRITE_PASS(name) {#name, run_##name, name##_rewrites},
#include "src/packer/passes/passes.def"
#undef REWRITE_PASS
#undef PASS
};

}  // namespace

void PassContext::fired(std::string_view pass, std::string_view node, std::string_view what) {
  ++num_fired;
  if (!log) return;
  std::string text(pass);
  text.append(": '").append(node).append("': ").append(what);
  log(QPLAN_LOG_DEBUG, text);
}

std::span<const Pass> all_passes() { return kPasses; }

const Pass* find_pass(std::string_view name) {
  for (const Pass& pass : kPasses) {
    if (name == pass.name) return &pass;
  }
  return nullptr;
}

namespace {

[[noreturn]] void fail(const std::string& text) { throw PackError(QPLAN_INVALID_ARGUMENT, text); }

std::vector<Stage>::iterator find_stage(std::vector<Stage>& stages, std::string_view name) {
  return std::ranges::find(stages, name, &Stage::name);
}

std::string known_names(const std::vector<Stage>& stages) {
  std::string names;
  for (const Stage& stage : stages) names += cat(names.empty() ? "" : ", ", stage.name());
  return names;
}

}  // namespace

std::span<const pattern::Rewrite> Stage::rewrites() const {
  if (user != nullptr) return user->rewrites;
  return built_in->rewrites != nullptr ? built_in->rewrites() : std::span<const pattern::Rewrite>();
}

std::unique_ptr<ir::Function> Stage::run(const ir::Module& module, const ir::Function& pre,
                                         PassContext& context) const {
  if (user == nullptr) return built_in->run(module, pre, context);
  return user->run ? user->run(pre, context) : run_rewrites(user->rewrites, pre, context);
}

std::vector<Stage> all_stages(std::span<const UserPass> user) {
  std::vector<Stage> stages;
  for (const Pass& pass : all_passes()) stages.push_back({.built_in = &pass});
  // The place after the last pass that was put after the same pass, and after that one's own followers.
  std::vector<std::pair<std::string_view, std::string_view>>
      last;  // predecessor, the pass after which to insert
  for (const UserPass& pass : user) {
    if (pass.name.empty()) fail("user pass: it has no name");
    if (find_stage(stages, pass.name) != stages.end()) {
      fail(cat("user pass '", pass.name, "': there is a pass of that name"));
    }
    const auto known =
        std::ranges::find(last, std::string_view(pass.after), [](const auto& l) { return l.first; });
    const std::string_view behind = known != last.end() ? known->second : std::string_view(pass.after);
    auto at = stages.begin();
    if (!behind.empty()) {
      at = find_stage(stages, behind);
      if (at == stages.end()) {
        fail(cat("user pass '", pass.name, "' is to run after '", pass.after,
                 "', which is no pass before it; known: ", known_names(stages)));
      }
      ++at;
    }
    stages.insert(at, {.user = &pass});
    if (known != last.end()) {
      known->second = pass.name;
    } else {
      last.emplace_back(pass.after, pass.name);
    }
  }
  return stages;
}

}  // namespace qplan::passes
