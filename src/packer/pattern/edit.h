// Rebuilding in any shape: values are replaced one by one, and all nodes between are copied. For passes that
// are neither a list of rewrites nor one visit of the nodes.
#ifndef QPLAN_SRC_PACKER_PATTERN_EDIT_H_
#define QPLAN_SRC_PACKER_PATTERN_EDIT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "src/packer/pattern/rebuild.h"

namespace qplan::pattern {

class Edit {
 public:
  explicit Edit(const ir::Function& function) : function_(function), rebuild_(function) {}

  const Pre& pre() const { return rebuild_.pre(); }
  Post& post() { return rebuild_.post(); }

  // The new function's counterpart of the old value. Nodes that are not replaced, up to the one that makes
  // it, are copied.
  PostValue operator[](PreValue value);
  // Later readers of the old value read the replacement, which has the same type. PackError
  // (QPLAN_INVALID_ARGUMENT) where nodes after the value's own have already been copied or replaced: they
  // would keep their old operands. A replacement may read the old value: operator[] before replace().
  void replace(PreValue value, PostValue replacement);
  // The new function; null when nothing was replaced.
  std::unique_ptr<ir::Function> finish();

 private:
  // Copies what is left of the nodes before this one.
  void advance_to(size_t node);

  const ir::Function& function_;
  Rebuild rebuild_;
  size_t next_ = 0;                 // first node that is neither copied nor replaced
  std::vector<uint32_t> replaced_;  // the results of node next_ that are replaced, where not all are
  bool changed_ = false;
};

}  // namespace qplan::pattern

#endif  // QPLAN_SRC_PACKER_PATTERN_EDIT_H_
