#include "src/packer/pattern/edit.h"

#include <algorithm>

#include "src/packer/error.h"
#include "src/packer/ir/cat.h"
#include "src/packer/pattern/pattern_node.h"

namespace qplan::pattern {

void Edit::advance_to(size_t node) {
  for (; next_ < node; ++next_) {
    if (!replaced_.empty()) {
      throw PackError(QPLAN_INVALID_ARGUMENT,
                      cat("edit: ", node_label(function_, static_cast<uint32_t>(next_)), " has ",
                          function_.nodes()[next_].results.size(), " results, of which ", replaced_.size(),
                          " are replaced; replace all before anything behind them is read or replaced"));
    }
    rebuild_.copy(PreNode(function_, next_));
  }
}

PostValue Edit::operator[](PreValue value) {
  const ir::Value& known = function_.value(value.id);
  const bool pending = known.kind == ir::ValueKind::kResult && known.producer >= next_;
  // Results that have already been replaced can be read while their node is being replaced.
  if (pending && !(known.producer == next_ && !replaced_.empty())) advance_to(known.producer + size_t{1});
  return rebuild_[value];
}

void Edit::replace(PreValue value, PostValue replacement) {
  const ir::Value& known = function_.value(value.id);
  if (known.kind != ir::ValueKind::kResult) {
    throw PackError(QPLAN_INVALID_ARGUMENT, cat("edit: ", describe(function_, value.id),
                                                " is no node's result: it cannot be replaced"));
  }
  const size_t node = known.producer;
  if (node + 1 < next_) {
    throw PackError(QPLAN_INVALID_ARGUMENT,
                    cat("edit: ", describe(function_, value.id), " is replaced after ",
                        node_label(function_, static_cast<uint32_t>(next_ - 1)),
                        " was copied or replaced; replace values in the order of their nodes"));
  }
  advance_to(node);
  rebuild_.replace(value, replacement);
  changed_ = true;
  if (next_ != node) return;
  if (std::ranges::find(replaced_, known.result_index) == replaced_.end())
    replaced_.push_back(known.result_index);
  if (replaced_.size() == function_.nodes()[node].results.size()) {
    ++next_;
    replaced_.clear();
  }
}

std::unique_ptr<ir::Function> Edit::finish() {
  if (!changed_) return nullptr;
  advance_to(function_.nodes().size());
  return rebuild_.finish();
}

}  // namespace qplan::pattern
