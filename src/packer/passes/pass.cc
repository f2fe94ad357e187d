#include "src/packer/passes/pass.h"

#include "src/packer/passes/passes.h"

namespace qplan::passes {
namespace {

constexpr Pass kPasses[] = {
#define PASS(name) {#name, run_##name},
#include "src/packer/passes/passes.def"
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
