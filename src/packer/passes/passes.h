// The passes of passes.def as functions, for the table and for tests.
#ifndef QPLAN_SRC_PACKER_PASSES_PASSES_H_
#define QPLAN_SRC_PACKER_PASSES_PASSES_H_

#include <memory>

#include "src/packer/passes/pass.h"

namespace qplan::passes {

#define PASS(name)                                                                            \
  std::unique_ptr<ir::Function> run_##name(const ir::Module& module, const ir::Function& pre, \
                                           PassContext& context);
#define REWRITE_PASS(name) \
  PASS(name)               \
  std::span<const pattern::Rewrite> name##_rewrites();
#include "src/packer/passes/passes.def"
#undef REWRITE_PASS
#undef PASS

}  // namespace qplan::passes

#endif  // QPLAN_SRC_PACKER_PASSES_PASSES_H_
