// Passes of the caller, and where they stand among the built-in ones.
#ifndef QPLAN_SRC_PACKER_PASSES_USER_PASS_H_
#define QPLAN_SRC_PACKER_PASSES_USER_PASS_H_

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/packer/passes/pass.h"
#include "src/packer/pattern/rewrite.h"

namespace qplan::passes {

struct UserPass {
  std::string name;
  std::string after;                       // the pass that it follows; empty: before all
  std::vector<pattern::Rewrite> rewrites;  // run until none fires, or
  // what Pass::run is; counts what it does with PassContext::fired.
  std::function<std::unique_ptr<ir::Function>(const ir::Function& pre, PassContext& context)> run;
};

// One place in the pipeline: either a built-in pass or one of the caller.
struct Stage {
  const Pass* built_in = nullptr;
  const UserPass* user = nullptr;

  std::string_view name() const { return user != nullptr ? std::string_view(user->name) : built_in->name; }
  std::span<const pattern::Rewrite> rewrites() const;
  std::unique_ptr<ir::Function> run(const ir::Module& module, const ir::Function& pre,
                                    PassContext& context) const;
};

// All passes in order; those of the caller come after the pass that they follow, in their own order.
// PackError (QPLAN_INVALID_ARGUMENT) for a name that is taken or missing, and for an unknown predecessor.
// user must outlive the stages.
std::vector<Stage> all_stages(std::span<const UserPass> user);

}  // namespace qplan::passes

#endif  // QPLAN_SRC_PACKER_PASSES_USER_PASS_H_
