// How long a plan may run, counted from its shapes before it does: a target that takes seconds for one input
// finds nothing else.
#ifndef QPLAN_TESTS_FUZZ_PLAN_WORK_H_
#define QPLAN_TESTS_FUZZ_PLAN_WORK_H_

#include <cstdint>
#include <cstring>
#include <vector>

#include "format/container.h"
#include "format/plan_generated.h"
#include "src/vta/isa/vta_blob.h"

namespace qplan::testing {

inline constexpr uint64_t kEndless = UINT64_MAX;

inline uint64_t plus(uint64_t a, uint64_t b) { return a > kEndless - b ? kEndless : a + b; }

// bytes: of a plan that qplan_plan_open took.
class PlanWork {
 public:
  explicit PlanWork(const uint8_t* bytes)
      : bytes_(bytes), plan_(*flatbuffers::GetRoot<format::Plan>(bytes + sizeof(format::Header))) {}

  bool has_regions() const {
    for (const format::Step* step : steps()) {
      if (step->body_as_NpuStep() != nullptr) return true;
    }
    return false;
  }

  // Micro-ops and elements that the programs of all regions execute, where they are readable.
  uint64_t device() const {
    uint64_t work = 0;
    for (const format::Step* step : steps()) {
      const format::NpuStep* region = step->body_as_NpuStep();
      if (region == nullptr) continue;
      const format::Tensor& blob = *plan_.tensors()->Get(region->blob());
      const format::Bank& bank = *plan_.banks()->Get(blob.bank());
      work = plus(work, blob_work(bytes_ + bank.file_offset() + blob.offset(), blob.size()));
    }
    return work;
  }

  // Whether outputs may depend on the instruction set (format/README.md, "Float requantisation": plans that
  // nobody proved).
  bool has_float_epilogues() const {
    for (const format::Step* step : steps()) {
      const format::KernelStep* kernel = step->body_as_KernelStep();
      if (kernel != nullptr && has_form(*kernel)) return true;
    }
    return false;
  }

  static uint64_t blob_work(const uint8_t* blob, uint64_t size) {
    vta::BlobHeader header;
    if (size < sizeof(header)) return 0;
    std::memcpy(&header, blob, sizeof(header));
    const uint64_t first = sizeof(header) + uint64_t{header.num_regions} * sizeof(vta::BlobRegion);
    uint64_t work = 0;
    for (uint64_t i = 0; i < header.num_instructions; ++i) {
      const uint64_t at = first + i * vta::kInstructionBytes;
      if (at > size || size - at < vta::kInstructionBytes) break;
      vta::Instruction instruction;
      if (!vta::decode(vta::kDefaultConfig, blob + at, &instruction)) continue;
      work = plus(work,
                  vta::is_memory(instruction) ? vta::sram_extent(instruction) : vta::iterations(instruction));
    }
    return work;
  }

 private:
  // A plan without steps may have no vector of them.
  std::vector<const format::Step*> steps() const {
    if (plan_.steps() == nullptr) return {};
    return {plan_.steps()->begin(), plan_.steps()->end()};
  }

  static bool has_form(const format::KernelStep& step) {
    if (const auto* p = step.params_as_Conv2dParams()) {
      return p->float_epilogue() != format::FloatEpilogue_NONE ||
             (step.residual() != nullptr && has_form(*step.residual()));
    }
    if (const auto* p = step.params_as_FullyConnectedParams())
      return p->float_epilogue() != format::FloatEpilogue_NONE;
    if (const auto* p = step.params_as_RequantizeParams())
      return p->float_epilogue() != format::FloatEpilogue_NONE;
    if (const auto* p = step.params_as_AddParams()) return has_form(*p);
    const auto* cascade = step.params_as_CascadeParams();
    if (cascade == nullptr || cascade->layers() == nullptr) return false;
    for (const format::KernelStep* layer : *cascade->layers()) {
      if (has_form(*layer)) return true;
    }
    return false;
  }
  static bool has_form(const format::AddParams& p) { return p.float_scale1() != 0 || p.float_scale2() != 0; }

  const uint8_t* bytes_;
  const format::Plan& plan_;
};

}  // namespace qplan::testing

#endif  // QPLAN_TESTS_FUZZ_PLAN_WORK_H_
