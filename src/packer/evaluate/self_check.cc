// What a plan's self-checks compare: each step's constants, and its outputs on the reference kernels.
#include "format/self_check.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <exception>
#include <map>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "format/container.h"
#include "format/plan_view.h"
#include "src/packer/error.h"
#include "src/packer/evaluate/evaluate.h"
#include "src/packer/ir/cat.h"

namespace qplan::evaluate {
namespace {

constexpr const char* kWithout = "; pack it without --self-check";

// format/README.md, "Self-checks".
uint32_t checksum_of(const target::ProgramStep& step, const target::Program& program) {
  format::Crc32 crc;
  const auto add = [&](target::TensorId t) {
    const target::ProgramTensor& tensor = program.tensors[t];
    if (tensor.is_constant()) crc.update(tensor.constant->data(), tensor.constant->size());
  };
  if (step.npu != nullptr) add(step.npu->blob);
  for (const target::TensorId t : step.inputs) {
    add(t);
    for (const target::ProgramState& state : program.states) {
      if (state.input == t && state.initial != UINT32_MAX) add(state.initial);
    }
  }
  return crc.value();
}

void refuse_nan(const target::ProgramStep& step, std::span<const uint8_t> bytes) {
  for (size_t i = 0; i + sizeof(float) <= bytes.size(); i += sizeof(float)) {
    float value;
    std::memcpy(&value, bytes.data() + i, sizeof(value));
    if (!std::isnan(value)) continue;
    throw PackError(QPLAN_MODEL_UNSUPPORTED,
                    "self-check: step '" + step.name +
                        "' computes NaN from the inputs of a self-check (numbers between -1 and 1), whose "
                        "bits are not the same on all processors" +
                        kWithout);
  }
}

// Runs the plan, and computes the checksum of each step's outputs when the step ends, before later steps
// reuse their memory. The CPU runs the fallback of a region in its place: the region's outputs are kept until
// the fallback has written all of them.
class Recorder {
 public:
  Recorder(std::span<const uint8_t> plan, const target::Program& program, const Progress& progress,
           uint32_t count)
      : program_(program), progress_(progress), region_of_(program.steps.size(), kNone) {
    for (uint32_t s = 0; s < program.steps.size(); ++s) {
      if (program.steps[s].npu == nullptr) {
        total_ += count;
        continue;
      }
      for (uint32_t k = 1; k <= program.steps[s].npu->num_alternative_steps; ++k) region_of_[s + k] = s;
    }
    platform_.struct_size = sizeof(platform_);
    platform_.user = this;
    platform_.step_end = step_ended;
    session_.emplace(plan, &platform_);
  }

  std::vector<uint32_t> run(uint32_t seed) {
    checksums_.assign(program_.steps.size(), 0);
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
    try {
      session_->invoke();
    } catch (const PackError&) {
      if (thrown_ == nullptr) throw;  // else step_ended has cancelled the run
    }
    if (thrown_ != nullptr) std::rethrow_exception(thrown_);
    return std::move(checksums_);
  }

 private:
  static constexpr uint32_t kNone = UINT32_MAX;
  using Bytes = std::vector<uint8_t>;

  // The runtime knows no exceptions: they wait until the run has ended.
  static void step_ended(void* user, const qplan_event* event, qplan_status status) {
    auto* recorder = static_cast<Recorder*>(user);
    if (status != QPLAN_OK || recorder->thrown_ != nullptr) return;
    try {
      recorder->record(event->step);
      if (recorder->progress_) recorder->progress_(++recorder->done_, recorder->total_);
    } catch (...) {
      recorder->thrown_ = std::current_exception();
      (void)qplan_session_cancel(recorder->session_->get());
    }
  }

  void record(uint32_t s) {
    const target::ProgramStep& step = program_.steps[s];
    format::Crc32 crc;
    for (uint32_t k = 0; k < step.outputs.size(); ++k) {
      const std::span<const uint8_t> bytes = output(s, k);
      if (program_.tensors[step.outputs[k]].type.dtype.code == kDLFloat) refuse_nan(step, bytes);
      crc.update(bytes.data(), bytes.size());
      if (region_of_[s] != kNone) keep(region_of_[s], step.outputs[k], bytes);
    }
    checksums_[s] = crc.value();
    const uint32_t region = region_of_[s];
    if (region != kNone && s == region + program_.steps[region].npu->num_alternative_steps)
      checksums_[region] = region_checksum(region);
  }

  std::span<const uint8_t> output(uint32_t s, uint32_t k) const {
    DLTensor view = {};
    qplan_tensor_info info = {};
    info.struct_size = sizeof(info);
    const qplan_status status = qplan_session_step_output(session_->get(), k, &info, &view);
    if (status != QPLAN_OK) {
      throw PackError(QPLAN_INTERNAL, cat("self-check: output ", k, " of step '", program_.steps[s].name,
                                          "' cannot be read (", qplan_status_name(status),
                                          "); this is a defect of the packer"));
    }
    return {static_cast<const uint8_t*>(view.data), static_cast<size_t>(info.size_bytes)};
  }

  void keep(uint32_t region, target::TensorId tensor, std::span<const uint8_t> bytes) {
    const std::vector<target::TensorId>& outputs = program_.steps[region].outputs;
    if (std::ranges::find(outputs, tensor) != outputs.end())
      region_outputs_[tensor] = Bytes(bytes.begin(), bytes.end());
  }

  uint32_t region_checksum(uint32_t region) {
    format::Crc32 crc;
    for (const target::TensorId t : program_.steps[region].outputs) {
      const auto found = region_outputs_.find(t);
      if (found == region_outputs_.end()) {
        throw PackError(QPLAN_INTERNAL, "self-check: the fallback of region '" + program_.steps[region].name +
                                            "' does not write its outputs; this is a defect of the packer");
      }
      crc.update(found->second.data(), found->second.size());
    }
    region_outputs_.clear();
    return crc.value();
  }

  const target::Program& program_;
  const Progress& progress_;
  uint32_t done_ = 0, total_ = 0;    // steps of all runs
  std::vector<uint32_t> region_of_;  // of each step: the region whose fallback it is part of, or kNone
  qplan_platform platform_ = {};
  std::optional<ReferenceSession> session_;
  std::exception_ptr thrown_;
  std::vector<uint32_t> checksums_;                   // of the steps that have ended
  std::map<target::TensorId, Bytes> region_outputs_;  // of the region whose fallback runs
};

std::string first_without_fallback(const target::Program& program) {
  for (const target::ProgramStep& step : program.steps) {
    if (step.npu != nullptr && step.npu->num_alternative_steps == 0) return step.name;
  }
  return "";
}

}  // namespace

write::SelfChecks make_self_checks(std::span<const uint8_t> plan, const target::Program& program,
                                   uint32_t count, const Progress& progress) {
  if (has_custom_operators(program)) {
    throw PackError(QPLAN_MODEL_UNSUPPORTED,
                    cat("self-check: the model has custom operators, which the packer cannot run", kWithout));
  }
  if (!runs_on_cpu(program)) {
    throw PackError(QPLAN_MODEL_UNSUPPORTED,
                    cat("self-check: the plan has no fallback for region '", first_without_fallback(program),
                        "', and the CPU must compute what its device is compared with; pack it without "
                        "--fallback none, or without --self-check where the region is a program that was "
                        "compiled before"));
  }
  write::SelfChecks checks;
  for (const target::ProgramStep& step : program.steps)
    checks.constants.push_back(checksum_of(step, program));
  try {
    Recorder recorder(plan, program, progress, count);
    for (uint32_t i = 1; i <= count; ++i) {
      const uint32_t seed = 0x9e3779b9u * i;  // not 0 for i below 2^32; the bits of small numbers, spread
      checks.runs.push_back({seed, recorder.run(seed)});
    }
  } catch (const std::bad_alloc&) {
    throw PackError(QPLAN_OUT_OF_MEMORY,
                    cat("self-check: there is not enough memory to run the plan", kWithout));
  }
  return checks;
}

}  // namespace qplan::evaluate
