// Writes operator lists: the format of include/qplan/npu_oplist.h.
#ifndef QPLAN_SRC_PACKER_TARGET_EXTERNAL_OPLIST_WRITER_H_
#define QPLAN_SRC_PACKER_TARGET_EXTERNAL_OPLIST_WRITER_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "qplan/npu_oplist.h"

namespace qplan::target::external {

// An operator all of whose tensors are QPLAN_OPLIST_NONE and whose groups, strides and dilations are 1.
qplan_oplist_op empty_op(uint32_t op, uint32_t contract);

class OplistWriter {
 public:
  // Slot 0 holds the constants; those that are bound follow.
  OplistWriter();

  uint32_t add_slot(uint32_t usage, uint64_t bytes);
  // What an earlier slot needs at least.
  void grow_slot(uint32_t slot, uint64_t bytes);
  uint64_t slot_bytes(uint32_t slot) const { return slots_[slot].bytes; }
  // Adds a tensor of up to six axes; one with fewer bytes than its dtype's size times its extents cannot be
  // read back.
  uint32_t add_tensor(uint32_t slot, uint64_t offset, DLDataType dtype, std::span<const int64_t> shape);
  uint32_t add_constant(DLDataType dtype, std::span<const int64_t> shape, std::span<const uint8_t> bytes);
  // name may be empty.
  uint32_t add_op(qplan_oplist_op op, std::string_view name);
  uint32_t num_slots() const { return static_cast<uint32_t>(slots_.size()); }

  // Checked by the format's own reader. PackError (QPLAN_INTERNAL) where that refuses it: a mistake of the
  // caller.
  std::vector<uint8_t> finish(uint64_t capabilities_hash) const;

 private:
  std::vector<qplan_oplist_slot> slots_;
  std::vector<qplan_oplist_tensor> tensors_;
  std::vector<qplan_oplist_op> ops_;
  std::string names_;
  std::vector<uint8_t> constants_;
};

// Sets the checksum of a list whose other bytes have changed.
void seal_oplist(std::vector<uint8_t>* blob);

}  // namespace qplan::target::external

#endif  // QPLAN_SRC_PACKER_TARGET_EXTERNAL_OPLIST_WRITER_H_
