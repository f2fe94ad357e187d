#include "src/packer/schedule/fuse.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "src/packer/inspect/inspect.h"
#include "src/packer/memory/arena.h"
#include "src/packer/schedule/schedule.h"
#include "src/runtime/bind/family.h"
#include "src/runtime/cascade.h"

namespace qplan::schedule {
namespace {

using target::Program;
using target::ProgramStep;
using target::TargetProfile;

bool is_cascade(const ProgramStep& step) { return step.kernel == kKernel_chain; }

// Bytes of activations, and of the scratch of one worker.
uint64_t bytes_of(const Program& scheduled, uint32_t planner_iterations) {
  const StepQueries queries(scheduled);
  return memory::total_bytes(memory::plan_arena(scheduled, queries.sharing(), planner_iterations)) +
         (scheduled.is_small ? 0 : scheduled.scratch_per_worker);
}

// Cascades that make one row of output at a time, whose tiles are the smallest.
void make_single_rows(Program* program) {
  const target::StepSchedule single = inspect::parse_schedule(kKernel_chain, {{"block_rows", 1}});
  for (target::ProgramStep& step : program->steps) {
    if (is_cascade(step)) step.schedule.bytes = single.bytes;
  }
}

// Returns the way to fuse that takes the least memory, as measured: the search for cascades knows neither
// gaps in the arena nor the scratch of kernels except tiles. Among equal ones it returns the one with the
// least work.
Program fuse_for_memory(const Program& program, const TargetProfile& profile, const FuseOptions& options) {
  Program best;
  uint64_t least = UINT64_MAX;
  const auto consider = [&](Program candidate) {
    schedule_steps(&candidate, profile, options.tuning);
    const uint64_t bytes = bytes_of(candidate, options.planner_iterations);
    if (bytes >= least) return;
    least = bytes;
    best = std::move(candidate);
  };
  // What the search finds depends on where the peaks are, and with less freedom it finds less memory at
  // times.
  std::vector<bool> searches_overwriting = {program.overwrites_inputs};
  if (program.overwrites_inputs) searches_overwriting.push_back(false);
  for (const bool overwrites : searches_overwriting) {
    Program searched = program;
    searched.overwrites_inputs = overwrites;
    for (const Fuse how : {Fuse::kOff, Fuse::kAuto, Fuse::kMemory, Fuse::kAll}) {
      // What the search says of the way that was asked for concerns the user.
      const bool is_asked = how == options.how && overwrites == program.overwrites_inputs;
      Program fused =
          fuse_cascades(searched, profile, how, options.tuning, is_asked ? options.log : LogFunction{});
      fused.overwrites_inputs = program.overwrites_inputs;
      consider(fused);
      if (std::ranges::none_of(fused.steps, is_cascade)) continue;
      make_single_rows(&fused);
      consider(std::move(fused));
    }
  }
  return best;
}

// What the tries below do at most: each schedules the whole program. Programs with more steps in all tries
// keep what they have from there on.
constexpr uint64_t kMaxTriedSteps = 20000;

class CascadeTries {
 public:
  CascadeTries(Program program, const TargetProfile& profile, const FuseOptions& options)
      : program_(std::move(program)), profile_(profile), options_(options) {
    schedule_steps(&program_, profile, options.tuning);
    bytes_before_ = bytes_of(program_, options.planner_iterations);
  }

  // The arguments of all layers are kept in scratch memory. Otherwise it has those of one layer, and each
  // block of rows binds them anew, a thousand instructions for each layer.
  CascadeTries& keep_arguments(uint64_t limit) {
    for (size_t s = 0; s < program_.steps.size(); ++s) {
      if (!is_cascade(program_.steps[s])) continue;
      attempt(s, limit,
              [](ProgramStep* kept) { kept->params = target::CascadeParams{.keeps_arguments = true}; });
    }
    return *this;
  }

  // Cascades make as many rows at a time as cost no memory: kernels expand rows of their inputs once for all
  // rows that they make.
  CascadeTries& enlarge_blocks(uint64_t limit) {
    for (size_t s = 0; s < program_.steps.size(); ++s) {
      if (!is_cascade(program_.steps[s])) continue;
      for (const int rows : {16, 8, 6, 4, 3, 2}) {
        const uint64_t bytes = inspect::parse_schedule(kKernel_chain, {{"block_rows", rows}}).bytes;
        if (attempt(s, limit, [&](ProgramStep* larger) { larger->schedule.bytes = bytes; })) break;
      }
    }
    return *this;
  }

  uint64_t bytes_before() const { return bytes_before_; }  // before any try
  Program program() { return std::move(program_); }

 private:
  // Whether the program with the change takes at most so many bytes; it is kept then.
  template <typename Change>
  bool attempt(size_t step, uint64_t limit, const Change& change) {
    if ((tried_steps_ += program_.steps.size()) > kMaxTriedSteps) return false;
    Program tried = program_;
    change(&tried.steps[step]);
    schedule_steps(&tried, profile_, options_.tuning);
    if (bytes_of(tried, options_.planner_iterations) > limit) return false;
    program_ = std::move(tried);
    return true;
  }

  Program program_;
  const TargetProfile& profile_;
  const FuseOptions& options_;
  uint64_t bytes_before_ = 0, tried_steps_ = 0;
};

// On small devices tiles are in the arena, whose peak is elsewhere for most cascades, so that larger blocks
// often cost no memory. --fuse memory permits only what costs none, or stays below --max-ram. Otherwise speed
// may cost this part of the memory, with which person_detect takes 32,176 bytes and 8.993 M instructions on a
// Cortex-M4; with 1/24 it is 29,424 and 9.256 M, with 1/4 34,416 and 8.850 M.
constexpr uint64_t kMemoryPartForSpeed = 8;

// Whether the log has times of the step, and so says how many rows it makes at a time.
bool is_measured(const Program& program, size_t step, const TargetProfile& profile, const TuningLog& log) {
  const StepQueries queries(program);
  return log.shortest_ns(step_key(queries.planned(static_cast<uint32_t>(step)), target_text(profile)))
      .has_value();
}

// Blocks of twice as many rows take half the calls of kernels: the first cascades of MobileNet V1 and V2 then
// take 0.93 to 0.95 of the time (Zen 5). A worker has scratch for the step with the most, so that it costs
// others nothing. An even number of blocks suits two threads, and 12 or more suit others.
Program with_free_rows(Program program, const TargetProfile& profile, const FuseOptions& options) {
  constexpr uint32_t kMinBlocks = 12;
  const uint32_t isa = *std::ranges::max_element(profile.isas);
  std::optional<uint64_t> limit;  // bytes of scratch
  uint64_t tried_steps = 0;
  for (size_t s = 0; s < program.steps.size(); ++s) {
    const ProgramStep& step = program.steps[s];
    if (!is_cascade(step)) continue;
    const std::vector<int64_t>& shape = program.tensors[step.outputs[0]].type.shape;
    const auto output_h = static_cast<uint32_t>(shape[1]), output_w = static_cast<uint32_t>(shape[2]);
    const uint32_t rows = 2 * cascade_block_rows(output_h, output_w, 0, isa);
    const uint32_t blocks = (output_h + rows - 1) / rows;
    const auto& values = kCascadeKnobs[kCascadeBlockRows].values;
    const bool is_knob = std::ranges::find(values, rows) != std::end(values);
    if (!is_knob || blocks % 2 != 0 || blocks < kMinBlocks) continue;
    if ((tried_steps += program.steps.size()) > kMaxTriedSteps) break;
    if (options.tuning != nullptr && is_measured(program, s, profile, *options.tuning)) continue;
    if (!limit) {
      Program scheduled = program;
      schedule_steps(&scheduled, profile, options.tuning);
      limit = scheduled.scratch_per_worker;
    }
    Program tried = program;
    tried.steps[s].schedule.bytes = inspect::parse_schedule(kKernel_chain, {{"block_rows", rows}}).bytes;
    Program scheduled = tried;
    schedule_steps(&scheduled, profile, options.tuning);
    if (scheduled.scratch_per_worker <= *limit) program = std::move(tried);
  }
  return program;
}

Program with_fast_cascades(Program program, const TargetProfile& profile, const FuseOptions& options) {
  if (!program.is_small) {
    const bool has_measured_rows = profile.arch == "x86_64" && options.how != Fuse::kMemory;
    return has_measured_rows ? with_free_rows(std::move(program), profile, options) : program;
  }
  place_constants_last(&program);
  if (std::ranges::none_of(program.steps, is_cascade)) return program;
  CascadeTries tries(std::move(program), profile, options);
  const uint64_t bytes = tries.bytes_before();
  const bool is_least = options.how == Fuse::kMemory;
  if (is_least && options.spare_bytes == 0)
    return tries.enlarge_blocks(bytes).keep_arguments(bytes).program();
  const uint64_t limit = bytes + (is_least ? options.spare_bytes : bytes / kMemoryPartForSpeed);
  return tries.keep_arguments(limit).enlarge_blocks(limit).program();
}

}  // namespace

Program fuse_steps(const Program& lowered, const TargetProfile& profile, const FuseOptions& options) {
  Program program = lowered;
  program.overwrites_inputs = program.is_small && options.how == Fuse::kMemory;
  if (options.how == Fuse::kMemory || (program.is_small && options.how == Fuse::kAuto)) {
    return with_fast_cascades(fuse_for_memory(program, profile, options), profile, options);
  }
  Program fused = fuse_cascades(program, profile, options.how, options.tuning, options.log);
  return with_fast_cascades(std::move(fused), profile, options);
}

namespace {

using target::Program;
using target::ProgramStep;
using target::ProgramTensor;
using target::TensorId;

constexpr uint32_t kNoWriter = UINT32_MAX;

class Folding {
 public:
  explicit Folding(const Program& program)
      : result_(program),
        is_kept_(program.steps.size(), true),
        is_ordinary_(program.steps.size(), false),
        writer_(program.tensors.size(), kNoWriter),
        num_readers_(program.tensors.size(), 0) {
    uint32_t fallback_steps_end = 0;
    for (uint32_t s = 0; s < program.steps.size(); ++s) {
      const ProgramStep& step = program.steps[s];
      if (step.npu != nullptr) fallback_steps_end = s + 1 + step.npu->num_alternative_steps;
      is_ordinary_[s] = step.npu == nullptr && s >= fallback_steps_end;
      for (const TensorId tensor : step.inputs) ++num_readers_[tensor];
      for (const TensorId tensor : step.outputs) writer_[tensor] = s;
    }
    for (const TensorId tensor : program.outputs) ++num_readers_[tensor];
    for (const target::ProgramState& state : program.states) ++num_readers_[state.output];
  }

  Program run() {
    std::vector<bool> is_dropped(result_.tensors.size(), false);
    for (uint32_t s = 0; s < result_.steps.size(); ++s) {
      if (!is_ordinary_[s] || result_.steps[s].kernel != kKernel_add) continue;
      const std::vector<TensorId> operands = result_.steps[s].inputs;
      // The operand that is written last has the other one before it.
      const uint32_t last = writes_later(operands[1], operands[0]) ? 1 : 0;
      for (const uint32_t output : {last, 1 - last}) {
        if (!can_fold(operands[output], operands[1 - output], result_.steps[s].outputs[0])) continue;
        fold(s, operands[output], operands[1 - output], output == 1);
        is_dropped[operands[output]] = true;
        break;
      }
    }
    std::vector<ProgramStep> steps;
    for (uint32_t s = 0; s < result_.steps.size(); ++s) {
      if (is_kept_[s]) steps.push_back(std::move(result_.steps[s]));
    }
    result_.steps = std::move(steps);
    drop_tensors(is_dropped, &result_);
    return std::move(result_);
  }

 private:
  // What nobody writes was there before all steps.
  bool writes_later(TensorId a, TensorId b) const {
    return writer_[a] != kNoWriter && (writer_[b] == kNoWriter || writer_[a] > writer_[b]);
  }

  bool can_fold(TensorId output, TensorId residual, TensorId sum) const {
    const uint32_t writer = writer_[output];
    if (writer == kNoWriter || num_readers_[output] != 1 || !writes_later(output, residual)) return false;
    const ProgramStep& conv = result_.steps[writer];
    if (!is_ordinary_[writer] || conv.kernel != kKernel_conv2d || conv.residual) return false;
    const ProgramTensor& other = result_.tensors[residual];
    return !other.is_constant() && other.type.dtype.bits == 8 && other.type == result_.tensors[output].type &&
           other.type == result_.tensors[sum].type;
  }

  void fold(uint32_t add, TensorId output, TensorId residual, bool residual_is_input1) {
    const uint32_t writer = writer_[output];
    ProgramStep& conv = result_.steps[writer];
    ProgramStep& sum = result_.steps[add];
    conv.inputs.push_back(residual);
    conv.outputs = sum.outputs;
    conv.name = sum.name;
    conv.residual = {*sum.params.get_if<target::AddParams>(), residual_is_input1};
    writer_[sum.outputs[0]] = writer;
    is_kept_[add] = false;
  }

  Program result_;
  std::vector<bool> is_kept_;
  std::vector<bool> is_ordinary_;
  std::vector<uint32_t> writer_;       // per tensor
  std::vector<uint32_t> num_readers_;  // per tensor, the function's caller too
};

}  // namespace

Program fold_residuals(const Program& program) { return Folding(program).run(); }

Program residual_apart(const Program& program, uint32_t step) {
  ProgramStep layer = program.steps[step];
  const TensorId residual = layer.inputs.back(), sum_output = layer.outputs[0];
  ProgramStep sum;
  sum.kernel = kKernel_add;
  sum.params = layer.residual->sum;
  layer.inputs.pop_back();

  Program result;
  const auto take = [&](TensorId tensor) {
    result.tensors.push_back(program.tensors[tensor]);
    return static_cast<TensorId>(result.tensors.size() - 1);
  };
  for (TensorId& input : layer.inputs) input = take(input);
  const TensorId output = take(sum_output);  // of the same type
  layer.outputs = {output};
  sum.inputs = {output, take(residual)};
  if (layer.residual->is_input1) std::swap(sum.inputs[0], sum.inputs[1]);
  sum.outputs = {take(sum_output)};
  layer.residual.reset();
  result.steps = {std::move(layer), std::move(sum)};
  return result;
}

}  // namespace qplan::schedule
