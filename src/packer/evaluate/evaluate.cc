#include "src/packer/evaluate/evaluate.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <string>

#include "src/packer/error.h"
#include "src/packer/inspect/inspect.h"
#include "src/packer/op/op_def.h"
#include "src/packer/schedule/schedule.h"
#include "src/packer/target/lower.h"

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

}  // namespace qplan::evaluate
