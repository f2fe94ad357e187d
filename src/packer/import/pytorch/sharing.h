// Which tensors of a program share elements. In the IR every value is its own; in PyTorch a view has the
// elements of its source, so that what an operator in place changes is changed in the others, too. These are
// stale from then on: the importer has only their old value. Both walkers (evaluator.h, exported_program.h)
// call operators through this.
#ifndef QPLAN_SRC_PACKER_IMPORT_PYTORCH_SHARING_H_
#define QPLAN_SRC_PACKER_IMPORT_PYTORCH_SHARING_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "src/packer/import/pytorch/op_context.h"
#include "src/packer/import/pytorch/value.h"

namespace qplan::pt {

class Sharing {
 public:
  explicit Sharing(OperatorCalls& calls) : calls_(calls) {}

  // OperatorCalls::call, whose first operand may be changed and may share elements with the result.
  // Unsupported where elements of the archive would keep their change from one run to the next.
  Ref call(const std::string& name, const std::vector<Argument>& arguments, const std::string& node_name);
  // Unsupported for a stale tensor.
  void expect_fresh(Ref tensor) const;

 private:
  // Elements that tensors may share: all of a tensor that is its own, or one part of a split. Parts of one
  // split share no elements with each other; parts of two splits of one region may.
  struct Region {
    size_t parent;
    size_t split;                                                    // of the parent, which made this
    bool is_stored;                                                  // in the archive
    std::vector<Ref> tensors = {};                                   // that are not stale
    std::vector<std::pair<size_t, std::vector<size_t>>> parts = {};  // regions by split
  };

  // Before an operator, which may change its first operand.
  void add_operand(Ref operand) {
    if (is_tensor(operand)) region_of(operand);
  }
  // The operator ("aten::view") has made the result out of its first operand. Returns the result, or another
  // name of it where PyTorch may or may not have copied.
  Ref add_result(std::string_view name, Ref operand, Ref result);
  // An operator in place has changed the tensor: all others that may have elements of it are stale.
  void change(Ref tensor);
  ir::ValueId value_of(Ref ref) const;
  bool is_tensor(Ref ref) const;
  size_t add_region(Region region);
  size_t region_of(Ref tensor);
  void put(Ref tensor, size_t region);
  void add_parts(const std::vector<Ref>& parts, Ref source);
  void forget_tensors(size_t region, Ref changed);
  void forget_all(std::vector<size_t> regions, Ref changed);

  OperatorCalls& calls_;
  std::vector<Region> regions_;
  std::unordered_map<uint32_t, size_t> region_by_tensor_;
  std::unordered_set<uint32_t> stale_;
  size_t num_splits_ = 0;
};

}  // namespace qplan::pt

#endif  // QPLAN_SRC_PACKER_IMPORT_PYTORCH_SHARING_H_
