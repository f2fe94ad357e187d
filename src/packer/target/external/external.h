// A matched composite as the operator of the driver ABI: what `supported` is asked about, and what the
// operator list records.
#ifndef QPLAN_SRC_PACKER_TARGET_EXTERNAL_EXTERNAL_H_
#define QPLAN_SRC_PACKER_TARGET_EXTERNAL_EXTERNAL_H_

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "qplan/npu_oplist.h"
#include "qplan/npu_target.h"
#include "src/packer/target/target.h"

namespace qplan::target::external {

// op leads into the other members: neither copied nor moved.
struct ReadOp {
  ReadOp() = default;
  ReadOp(const ReadOp&) = delete;
  ReadOp& operator=(const ReadOp&) = delete;

  qplan_npu_op op = {};
  std::string name;
  std::vector<ir::ValueId> inputs;  // of the candidate's function: activations, or constants
  ir::ValueId output;
  std::array<DLTensor, 5> tensors = {};  // two inputs, weights, bias, output; weights and bias have data
  std::array<ir::Shape, 5> shapes;
  ir::ConstantRef weights, bias;
  std::vector<int32_t> multipliers, shifts;
  std::vector<float> scales;
};

// A candidate whose pattern names what it matched as the packer's do (target.h): "product", "pad",
// "bias_add", "requantize", "sum", "pool", "clip". "" or what cannot be said in an operator list; then op is
// not to be used.
std::string read_op(const Candidate& candidate, ReadOp* result);

// The table of a target from outside the tree.

// config: what the library's configure gave; so in all functions below. capabilities: of this config.
std::vector<PatternRow> make_rows(const qplan_npu_target& library, uint64_t config,
                                  const qplan_npu_capabilities& capabilities);
// What stands against an operator by each field of the capabilities that speaks of operators; "": nothing.
// Capabilities without any contract say nothing about operators: `supported` alone decides.
std::vector<std::string> capability_violations(const qplan_npu_capabilities& capabilities,
                                               const qplan_npu_op& op);
// What a row may have against a candidate: what an operator list cannot express, what the capabilities lack,
// each of the library's rules, anything else that `supported` refuses.
std::vector<Constraint> make_constraints(const qplan_npu_target& library);
// What stands against each of these. PackError (QPLAN_INVALID_ARGUMENT) where `supported` returns a status
// that is no answer.
std::vector<std::string> judge(const qplan_npu_target& library, uint64_t config,
                               const qplan_npu_capabilities& capabilities, const Candidate& candidate);
// The library's program, or an operator list, for a region. Target::compile.
CompiledRegion compile_region(const qplan_npu_target& library, uint64_t config,
                              const std::vector<PatternRow>& rows, const ir::Module& module,
                              const ir::Function& region);

// Targets from outside the tree: shared libraries that describe a device (include/qplan/npu_target.h).

// The description in a library, which stays loaded until the process ends. PackError (QPLAN_INVALID_ARGUMENT,
// or QPLAN_FILE_ERROR) where there is none that this packer can use, or where it is named as one of `own`.
const qplan_npu_target& load_library(const std::string& path, std::span<const TargetKind> own);

// The target of a description: rows for its patterns and composites, with one constraint for each of its
// rules, and a compiler that writes operator lists. options: without priority. PackError
// (QPLAN_INVALID_ARGUMENT) where the library refuses them, or contradicts itself.
Target make_target(const qplan_npu_target& library, const TargetOptions& options);

// Writes operator lists: the format of include/qplan/npu_oplist.h.

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

#endif  // QPLAN_SRC_PACKER_TARGET_EXTERNAL_EXTERNAL_H_
