#include "format/self_check.h"

#include <cmath>
#include <cstring>
#include <optional>
#include <string>

#include "format/dtype.h"
#include "format/plan_view.h"
#include "src/packer/error.h"
#include "src/packer/evaluate/evaluate.h"
#include "src/packer/ir/cat.h"

namespace qplan::evaluate {
namespace {

using Bytes = std::vector<uint8_t>;

uint32_t checksum_of(const target::ProgramStep& step, const std::vector<target::ProgramTensor>& tensors) {
  format::Crc32 crc;
  const auto add = [&](target::TensorId t) {
    if (tensors[t].is_constant()) crc.update(tensors[t].constant->data(), tensors[t].constant->size());
  };
  if (step.npu != nullptr) add(step.npu->blob);
  for (const target::TensorId t : step.inputs) add(t);
  return crc.value();
}

// What the steps of one run write. The CPU runs the fallback of a region in its place, so that the region's
// outputs are put together from what the fallback's steps wrote.
class Recorder {
 public:
  Recorder(std::span<const uint8_t> plan, const target::Program& program) : program_(program) {
    platform_.struct_size = sizeof(platform_);
    platform_.user = this;
    platform_.step_end = [](void* user, const qplan_event* event, qplan_status status) {
      if (status == QPLAN_OK) static_cast<Recorder*>(user)->keep_outputs(*event);
    };
    session_.emplace(plan, &platform_);
  }

  // The checksums of each step's outputs.
  std::vector<uint32_t> run(uint32_t seed) {
    outputs_.assign(program_.steps.size(), {});
    format::SelfCheckInputs inputs(seed);
    for (uint32_t i = 0; i < program_.inputs.size(); ++i) {
      const ir::TensorType& type = program_.tensors[program_.inputs[i]].type;
      const bool is_bool = type.dtype == ir::kBool;
      const std::span<uint8_t> to = session_->io(QPLAN_INPUT, i);
      inputs.fill(is_bool ? format::kDLBoolCode : type.dtype.code, is_bool ? 8 : type.dtype.bits, to.data(),
                  to.size());
    }
    if (qplan_session_reset_state(session_->get()) < 0)
      throw PackError(QPLAN_INTERNAL,
                      "self-check: the states cannot be reset; this is a defect of the packer");
    session_->invoke();
    std::vector<uint32_t> checksums;
    for (uint32_t s = 0; s < program_.steps.size(); ++s) checksums.push_back(checksum(s));
    return checksums;
  }

 private:
  void keep_outputs(const qplan_event& event) {
    for (uint32_t k = 0;; ++k) {
      DLTensor view = {};
      qplan_tensor_info info = {};
      info.struct_size = sizeof(info);
      if (qplan_session_step_output(session_->get(), k, &info, &view) != QPLAN_OK) break;
      const auto* bytes = static_cast<const uint8_t*>(view.data);
      outputs_[event.step].emplace_back(bytes, bytes + info.size_bytes);
    }
  }

  uint32_t checksum(uint32_t s) const {
    const target::ProgramStep& step = program_.steps[s];
    format::Crc32 crc;
    for (uint32_t k = 0; k < step.outputs.size(); ++k) {
      const Bytes& bytes = step.npu == nullptr ? outputs_[s].at(k) : fallback_output(s, step.outputs[k]);
      if (program_.tensors[step.outputs[k]].type.dtype.code == kDLFloat) refuse_nan(step, bytes);
      crc.update(bytes.data(), bytes.size());
    }
    return crc.value();
  }

  const Bytes& fallback_output(uint32_t region, target::TensorId tensor) const {
    const uint32_t end = region + program_.steps[region].npu->num_alternative_steps;
    for (uint32_t s = region + 1; s <= end; ++s) {
      const std::vector<target::TensorId>& outputs = program_.steps[s].outputs;
      for (uint32_t k = 0; k < outputs.size(); ++k) {
        if (outputs[k] == tensor) return outputs_[s].at(k);
      }
    }
    throw PackError(QPLAN_INTERNAL, "self-check: the fallback of region '" + program_.steps[region].name +
                                        "' does not write its outputs; this is a defect of the packer");
  }

  static void refuse_nan(const target::ProgramStep& step, const Bytes& bytes) {
    for (size_t i = 0; i + sizeof(float) <= bytes.size(); i += sizeof(float)) {
      float value;
      std::memcpy(&value, bytes.data() + i, sizeof(value));
      if (!std::isnan(value)) continue;
      throw PackError(QPLAN_MODEL_UNSUPPORTED,
                      "self-check: step '" + step.name +
                          "' computes NaN from the inputs of a self-check (numbers between -1 and 1), whose "
                          "bits are not the same on all processors; pack the model without --self-check");
    }
  }

  const target::Program& program_;
  qplan_platform platform_ = {};
  std::optional<ReferenceSession> session_;
  std::vector<std::vector<Bytes>> outputs_;  // of the last run, by step
};

}  // namespace

write::SelfChecks make_self_checks(std::span<const uint8_t> plan, const target::Program& program,
                                   uint32_t count) {
  if (count > format::kMaxSelfChecks) {
    throw PackError(QPLAN_INVALID_ARGUMENT,
                    cat("self-check: ", count, " self-checks, a plan has room for ", format::kMaxSelfChecks));
  }
  if (has_custom_operators(program)) {
    throw PackError(QPLAN_MODEL_UNSUPPORTED,
                    "self-check: the model has custom operators, which the packer cannot run");
  }
  if (!runs_on_cpu(program)) {
    throw PackError(QPLAN_MODEL_UNSUPPORTED,
                    "self-check: the CPU computes what a device is compared with, and the plan has no "
                    "fallback for its regions; pack it with a fallback");
  }
  write::SelfChecks checks;
  for (const target::ProgramStep& step : program.steps)
    checks.constants.push_back(checksum_of(step, program.tensors));
  Recorder recorder(plan, program);
  for (uint32_t i = 1; i <= count; ++i) {
    const uint32_t seed = 0x9e3779b9u * i;  // not 0 for i below 2^32; the bits of small numbers, spread
    checks.runs.push_back({seed, recorder.run(seed)});
  }
  return checks;
}

}  // namespace qplan::evaluate
