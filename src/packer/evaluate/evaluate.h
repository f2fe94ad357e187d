// The packer's stages after lowering, in one call: for constants that are folded, and for tests.
#ifndef QPLAN_SRC_PACKER_EVALUATE_EVALUATE_H_
#define QPLAN_SRC_PACKER_EVALUATE_EVALUATE_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "qplan/qplan.h"
#include "src/packer/aligned_bytes.h"
#include "src/packer/ir/module.h"
#include "src/packer/memory/arena.h"
#include "src/packer/schedule/fuse.h"
#include "src/packer/write/plan_writer.h"

namespace qplan::evaluate {

// Fuses, schedules, plans memory, writes and checks, as pack() does.
AlignedBytes make_plan(const target::Program& program, const target::TargetProfile& profile,
                       const schedule::FuseOptions& options = {}, const write::PlanNames& names = {});

// What the runtime refuses of a plan just made is our own defect: PackError (QPLAN_INTERNAL). A session of a
// large arena is not tried: the overlap checker and the kernels' own checks have been over all that it would
// look at. Nor is one that needs a device or operators of the application's.
void check_plan(std::span<const uint8_t> plan, const target::Program& program, const memory::Arena& arena);

// A plan that runs on the reference kernels, in memory of its own.

class ReferenceSession {
 public:
  // plan: 64-byte aligned; must outlive the session. PackError (QPLAN_INTERNAL) with the runtime's text.
  explicit ReferenceSession(std::span<const uint8_t> plan);
  ~ReferenceSession();
  ReferenceSession(const ReferenceSession&) = delete;
  ReferenceSession& operator=(const ReferenceSession&) = delete;

  // The bytes of input or output `index`.
  std::span<uint8_t> io(int direction, uint32_t index);
  void invoke();

 private:
  struct AlignedMemory {
    void* base = nullptr;
    size_t size = 0;
    size_t alignment = 1;
  };
  void init(std::span<const uint8_t> plan);
  void release();
  [[noreturn]] void fail(const qplan_error& error);

  qplan_plan plan_ = {};
  std::vector<AlignedMemory> memories_;
  qplan_session* session_ = nullptr;
};

// Runs IR on the reference kernels: constant folding, and an interpreter for tests.

// The function's outputs for these inputs, one per parameter and of its type: packed for the reference
// profile and run. PackError (QPLAN_MODEL_UNSUPPORTED) where a node has no kernel.
std::vector<ir::ConstantRef> run_function(const ir::Function& function,
                                          std::span<const ir::ConstantRef> inputs);

// The results of one node whose operands are these constants; nullopt when no kernel computes it alone.
std::optional<std::vector<ir::ConstantRef>> evaluate_node(const ir::Node& node,
                                                          std::span<const ir::ConstantRef> operands);

}  // namespace qplan::evaluate

#endif  // QPLAN_SRC_PACKER_EVALUATE_EVALUATE_H_
