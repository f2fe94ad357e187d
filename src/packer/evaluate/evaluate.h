// The packer's stages after lowering, in one call: for constants that are folded, and for tests.
#ifndef QPLAN_SRC_PACKER_EVALUATE_EVALUATE_H_
#define QPLAN_SRC_PACKER_EVALUATE_EVALUATE_H_

#include <cstdint>
#include <functional>
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

// Whether the plan runs without its devices; whether it needs operators that only the application has.
bool runs_on_cpu(const target::Program& program);
bool has_custom_operators(const target::Program& program);

// A plan that runs on the reference kernels, in memory of its own.

class ReferenceSession {
 public:
  // plan: 64-byte aligned; must outlive the session. PackError (QPLAN_INTERNAL) with the runtime's text.
  // platform: hooks, may be null.
  explicit ReferenceSession(std::span<const uint8_t> plan, const qplan_platform* platform = nullptr);
  ~ReferenceSession();
  ReferenceSession(const ReferenceSession&) = delete;
  ReferenceSession& operator=(const ReferenceSession&) = delete;

  // The bytes of input or output `index`.
  std::span<uint8_t> io(int direction, uint32_t index);
  void invoke();
  qplan_session* get() const { return session_; }

 private:
  struct AlignedMemory {
    void* base = nullptr;
    size_t size = 0;
    size_t alignment = 1;
  };
  void init(std::span<const uint8_t> plan, const qplan_platform* platform);
  void release();
  [[noreturn]] void fail(const qplan_error& error);

  qplan_plan plan_ = {};
  std::vector<AlignedMemory> memories_;
  qplan_session* session_ = nullptr;
};

// What sessions of the plan just made compare with qplan_session_self_check: `count` runs of the reference
// kernels, 1 to format::kMaxSelfChecks. The same plan gives the same checks. progress: called after each step
// of each run; what it throws ends the runs and is passed on. PackError (QPLAN_MODEL_UNSUPPORTED) where the
// CPU cannot run all of the plan here, or a step makes NaN, whose bits differ between processors.
using Progress = std::function<void(uint32_t done, uint32_t total)>;
write::SelfChecks make_self_checks(std::span<const uint8_t> plan, const target::Program& program,
                                   uint32_t count, const Progress& progress = {});

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
