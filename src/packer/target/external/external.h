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
#include "src/packer/target/region.h"
#include "src/packer/target/target.h"

namespace qplan::target::external {

// op leads into the other members: neither copied nor moved.
struct ReadOp {
  ReadOp() = default;
  ReadOp(const ReadOp&) = delete;
  ReadOp& operator=(const ReadOp&) = delete;

  qplan_npu_op op = {};
  std::string name;
  std::vector<ir::ValueId> inputs;         // of the candidate's function: activations, or constants
  std::vector<ir::ConstantRef> constants;  // one for each input; null: an activation
  ir::ValueId output;
  static constexpr size_t kTensors = 5 + QPLAN_NPU_MAX_INPUTS - 2;
  // Two inputs, weights, bias, output, more inputs; weights and bias have data.
  std::array<DLTensor, kTensors> tensors = {};
  std::array<ir::Shape, kTensors> shapes;
  std::array<const DLTensor*, QPLAN_NPU_MAX_INPUTS - 2> more_inputs = {};
  ir::ConstantRef weights, bias;
  std::vector<int32_t> multipliers, shifts;
  std::vector<float> scales;
};

// Reads a candidate whose pattern has the names of the packer's own patterns (target.h): "product", "pad",
// "bias_add", "requantize", "sum", "pool", "mean", "plain", "general", "clip". Returns "", or what an
// operator list cannot express; then result->op must not be used.
//
// flips: an operator on uint8 becomes the same on int8, whose bytes are 128 less (to_signed).
std::string read_op(const Candidate& candidate, bool flips, ReadOp* result);
// Makes an operator on uint8, its weights and constants one on int8. Returns "", or why its bytes would not
// be the same less 128; then it must not be used.
std::string to_signed(ReadOp* read);

// The table of a target from outside the tree.

// Returns the target's rows. In all functions below, config is what the library's configure() returned, and
// capabilities are those of this config.
std::vector<PatternRow> make_rows(const qplan_npu_target& library, uint64_t config,
                                  const qplan_npu_capabilities& capabilities);
// Returns one text for each field of the capabilities that is about operators: the reason against this
// operator, or "" if the field permits it. Capabilities without any contract are not about operators; then
// `supported` alone decides.
std::vector<std::string> capability_violations(const qplan_npu_capabilities& capabilities,
                                               const qplan_npu_op& op);
// Returns a row's constraints. A candidate violates one if an operator list cannot express it, if the
// capabilities lack something that it needs, if it breaks one of the library's rules, or if `supported`
// refuses it for another reason.
std::vector<Constraint> make_constraints(const qplan_npu_target& library);
// Returns one text for each of make_constraints(): the reason against the candidate, or "" if nothing speaks
// against it. PackError (QPLAN_INVALID_ARGUMENT) if `supported` returns a status that is neither yes nor no.
std::vector<std::string> judge(const qplan_npu_target& library, uint64_t config,
                               const qplan_npu_capabilities& capabilities, const Candidate& candidate);
// Compiles a region into the library's program or into an operator list (Target::compile).
CompiledRegion compile_region(const qplan_npu_target& library, uint64_t config,
                              const std::vector<PatternRow>& rows, const ir::Module& module,
                              const ir::Function& region);
// Asks the library how much scratch the program of a list will need. Returns false if it has no `compile`, or
// no `scratch`, as libraries made for target ABI 1.0.
bool asks_scratch(const qplan_npu_target& library);
// Whether the library says where a region's bytes should be, which those made before target ABI 1.4 do not.
bool asks_memory_classes(const qplan_npu_target& library);
// Whether the library's `layout` flips uint8, so that the device sees int8. False if it has none, as
// libraries made before target ABI 1.2.
bool flips_uint8(const qplan_npu_target& library, uint64_t config);
// How a tensor at a region's border is in the buffer of its slot, and the alignment of that: what `layout`
// says, or packed. usage: QPLAN_NPU_USE_*. PackError (QPLAN_INVALID_ARGUMENT) naming the tensor if `layout`
// refuses it, or puts elements outside the buffer or on each other.
Arrangement ask_layout(const qplan_npu_target& library, uint64_t config, const ir::TensorType& type,
                       uint32_t usage, uint32_t* alignment);
// Asks `load` of the library's driver about the programs (Target::load). Opens its device once, with the
// options that configure() made config of. Returns the programs that the driver refuses with E_UNSUPPORTED.
// Returns none if nobody can be asked: the library has no driver, or this machine has no device of these
// capabilities. PackError (QPLAN_INVALID_ARGUMENT) if the driver does not understand a program, or if the
// program needs other buffers than the plan binds: the library contradicts itself.
std::vector<ProgramRefusal> ask_driver(const Library& library, const std::string& options,
                                       const qplan_npu_capabilities& capabilities,
                                       std::span<const RegionProgram> programs);
// Writes a reason with its numbers.
std::string reason_text(const qplan_npu_reason& reason);
// Writes a status as "-1 (E_ARGUMENT)", or as "-9" where the ABI has no name for it.
std::string status_text(qplan_npu_status status);

// Targets from outside the tree: shared libraries that describe a device (include/qplan/npu_target.h).

// The description in a library, and its driver. It stays loaded until the process ends. PackError
// (QPLAN_INVALID_ARGUMENT, or QPLAN_FILE_ERROR) where this packer cannot use it, or where it is
// named as one of `own`.
Library load_library(const std::string& path, std::span<const TargetKind> own);

// The target of a description: rows for its patterns and composites, with one constraint for each of its
// rules, and a compiler that writes operator lists. options: without priority. PackError
// (QPLAN_INVALID_ARGUMENT) where the library refuses them, or contradicts itself.
Target make_target(const Library& library, const TargetOptions& options);

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
