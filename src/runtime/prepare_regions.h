// What session init checks of regions while it goes through a function's steps (prepare.cc): what they read
// is what the plan says, whether they run on a device or on the CPU, and whichever buffers the caller has
// bound.
#ifndef QPLAN_SRC_RUNTIME_PREPARE_REGIONS_H_
#define QPLAN_SRC_RUNTIME_PREPARE_REGIONS_H_

#include "format/plan_view.h"
#include "src/base/error.h"
#include "src/runtime/session.h"
#include "src/runtime/tensor_values.h"

namespace qplan {

class RegionChecks {
 public:
  // What regions write is compared with tensors and with other regions, pair by pair. Networks need some
  // millions of comparisons; a plan that needs more than these is refused, so that init ends soon.
  static constexpr uint64_t kMaxComparisons = uint64_t{1} << 28;

  RegionChecks(Session* session, TensorValues* values, Error* error)
      : session_(*session), values_(*values), error_(*error) {}

  // Step i of the function is the region. Its fallback steps follow: each is checked, then bound.
  bool begin(uint32_t i, const format::NpuStep& npu);
  bool check_fallback_step(uint32_t i, const format::NpuStep& npu);
  bool end(uint32_t i, const format::NpuStep& npu);

 private:
  const format::PlanView& plan() const { return session_.plan; }
  PlannedRange range_of(const format::NpuStep& npu, const format::NpuBind& bind) const {
    return {plan().device_bank(npu.target(), bind.memory_class()), bind.offset(), bind.size()};
  }
  const format::NpuBind* kept_input(uint32_t i, const format::NpuStep& npu, uint32_t input) const;
  bool check_reads(uint32_t i, const format::NpuStep& npu);
  bool check_kept_inputs(uint32_t i, const format::NpuStep& npu);
  bool writes(uint32_t i, const PlannedRange& range);
  bool check_writes(uint32_t i, const format::NpuStep& npu);
  bool overwrite(uint32_t i, const format::NpuStep& npu);
  bool compare(uint32_t i, uint64_t count);
  Error& fail(uint32_t i, uint32_t tensor);

  Session& session_;
  TensorValues& values_;
  Error& error_;
};

}  // namespace qplan

#endif  // QPLAN_SRC_RUNTIME_PREPARE_REGIONS_H_
