#include "src/packer/passes/pass.h"

#include "src/packer/passes/passes.h"
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

}  // namespace qplan::passes
