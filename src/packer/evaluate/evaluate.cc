#include "src/packer/evaluate/evaluate.h"

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
#include "format/self_check.h"
#include "src/packer/error.h"
#include "src/packer/inspect/inspect.h"
#include "src/packer/ir/cat.h"
#include "src/packer/op/op_def.h"
#include "src/packer/schedule/schedule.h"
#include "src/packer/target/program.h"

namespace qplan::evaluate {

bool runs_on_cpu(const target::Program& program) {
  return std::ranges::none_of(program.steps, [](const target::ProgramStep& step) {
    return step.npu != nullptr && step.npu->num_alternative_steps == 0;
  });
}

bool has_custom_operators(const target::Program& program) {
  return std::ranges::any_of(program.steps, [](const target::ProgramStep& step) {
    return step.npu == nullptr && step.kernel == kKernel_custom;
  });
}

AlignedBytes make_plan(const target::Program& lowered, const target::TargetProfile& profile,
                       const schedule::FuseOptions& options, const write::PlanNames& names) {
  target::Program program = schedule::fuse_steps(lowered, profile, options);
  schedule::schedule_steps(&program, profile, options.tuning, options.log);
  const schedule::StepQueries queries(program);
  const memory::Arena arena = memory::plan_arena(program, queries.sharing(), options.planner_iterations);
  AlignedBytes plan = write::write_plan(program, profile, arena, names);
  check_plan(plan.span(), program, arena);
  return plan;
}

void check_plan(std::span<const uint8_t> plan, const target::Program& program, const memory::Arena& arena) {
  constexpr uint64_t kMaxTriedArena = uint64_t{256} << 20;
  if (memory::total_bytes(arena) <= kMaxTriedArena && runs_on_cpu(program) &&
      !has_custom_operators(program)) {
    ReferenceSession session(plan);
  } else {
    inspect::PlanReader reader(plan);
  }
}

ReferenceSession::ReferenceSession(std::span<const uint8_t> plan, const qplan_platform* platform) {
  try {
    init(plan, platform);
  } catch (...) {
    release();
    throw;
  }
}

ReferenceSession::~ReferenceSession() { release(); }

void ReferenceSession::init(std::span<const uint8_t> plan, const qplan_platform* platform) {
  qplan_error error = {};
  error.struct_size = sizeof(error);
  if (qplan_plan_open(&plan_, plan.data(), plan.size(), 0, &error) < 0) fail(error);
  qplan_session_config config = {};
  config.struct_size = sizeof(config);
  config.isa_limit = QPLAN_ISA_REFERENCE;
  config.kernels = qplan_kernels_reference();
  config.platform = platform;

  uint32_t count = 0;
  if (qplan_session_memory_needs(&plan_, &config, nullptr, &count, &error) < 0) fail(error);
  std::vector<qplan_memory_need> needs(count);
  if (qplan_session_memory_needs(&plan_, &config, needs.data(), &count, &error) < 0) fail(error);
  std::vector<qplan_memory> memories;
  for (const qplan_memory_need& need : needs) {
    AlignedMemory memory;
    memory.size = std::max<size_t>(static_cast<size_t>(need.size), 1);
    memory.alignment = need.alignment;
    memory.base = ::operator new (memory.size, std::align_val_t{memory.alignment});
    memories_.push_back(memory);
    memories.push_back({memory.base, static_cast<size_t>(need.size)});
  }
  const auto num_memories = static_cast<uint32_t>(memories.size());
  if (qplan_session_init(&plan_, &config, memories.data(), num_memories, &session_, &error) < 0) {
    session_ = nullptr;
    fail(error);
  }
}

void ReferenceSession::release() {
  if (session_ != nullptr) qplan_session_deinit(session_);
  for (const AlignedMemory& memory : memories_)
    ::operator delete (memory.base, std::align_val_t{memory.alignment});
}

std::span<uint8_t> ReferenceSession::io(int direction, uint32_t index) {
  DLTensor view = {};
  if (qplan_session_view(session_, direction, index, &view) < 0) {
    qplan_error error = {};
    error.struct_size = sizeof(error);
    qplan_session_last_error(session_, &error);
    fail(error);
  }
  size_t size = view.dtype.bits / 8u;
  for (int i = 0; i < view.ndim; ++i) size *= static_cast<size_t>(view.shape[i]);
  return {static_cast<uint8_t*>(view.data) + view.byte_offset, size};
}

void ReferenceSession::invoke() {
  if (qplan_session_invoke(session_) == QPLAN_OK) return;
  qplan_error error = {};
  error.struct_size = sizeof(error);
  qplan_session_last_error(session_, &error);
  fail(error);
}

void ReferenceSession::fail(const qplan_error& error) {
  throw PackError(QPLAN_INTERNAL, std::string("the runtime refuses the plan just made: ") + error.text +
                                      " (" + qplan_status_name(error.status) +
                                      "); this is a defect of the packer");
}

std::vector<ir::ConstantRef> run_function(const ir::Function& function,
                                          std::span<const ir::ConstantRef> inputs) {
  if (inputs.size() != function.params().size()) {
    throw PackError(QPLAN_INVALID_ARGUMENT, "evaluate: " + std::to_string(inputs.size()) + " inputs for " +
                                                std::to_string(function.params().size()) + " parameters");
  }
  const target::TargetProfile profile = target::reference_profile();
  const target::Program program = target::lower_function(function, profile);
  if (has_custom_operators(program))
    throw PackError(QPLAN_MODEL_UNSUPPORTED, "evaluate: it has operators of the application's");
  const AlignedBytes plan = make_plan(program, profile, {}, {.strip = true});
  ReferenceSession session(plan.span());
  for (uint32_t i = 0; i < inputs.size(); ++i) {
    const std::span<uint8_t> to = session.io(QPLAN_INPUT, i);
    const std::span<const uint8_t> from = inputs[i]->bytes();
    if (inputs[i]->type() != function.type(function.params()[i]) || from.size() != to.size()) {
      throw PackError(QPLAN_INVALID_ARGUMENT, "evaluate: input " + std::to_string(i) + " is " +
                                                  ir::to_string(inputs[i]->type()) + ", expected " +
                                                  ir::to_string(function.type(function.params()[i])));
    }
    std::memcpy(to.data(), from.data(), from.size());
  }
  session.invoke();
  std::vector<ir::ConstantRef> outputs;
  for (uint32_t i = 0; i < function.outputs().size(); ++i) {
    const std::span<const uint8_t> bytes = session.io(QPLAN_OUTPUT, i);
    outputs.push_back(std::make_shared<const ir::Constant>(function.type(function.outputs()[i]),
                                                           std::vector<uint8_t>(bytes.begin(), bytes.end())));
  }
  return outputs;
}

std::optional<std::vector<ir::ConstantRef>> evaluate_node(const ir::Node& node,
                                                          std::span<const ir::ConstantRef> operands) {
  if (node.op == nullptr) return std::nullopt;
  ir::Function function("main");
  std::vector<ir::ValueId> values;
  for (const ir::ConstantRef& operand : operands) values.push_back(function.add_constant(operand));
  const ir::Node& copy = function.add_node(*node.op, std::move(values), node.attrs, node.name);
  function.set_outputs(copy.results);
  try {
    return run_function(function, {});
  } catch (const PackError& error) {
    if (error.status() != QPLAN_MODEL_UNSUPPORTED) throw;
    return std::nullopt;
  }
}

// What a plan's self-checks compare: each step's constants, and its outputs on the reference kernels.

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
