// Chooses the schedules of a program's steps, or of a plan's, and counts what constants they then read.
#include "src/packer/schedule/schedule.h"

#include <algorithm>
#include <string>

#include "format/plan_view.h"
#include "kernels/conv2d/conv2d.h"
#include "kernels/layout.h"
#include "src/packer/error.h"
#include "src/packer/inspect/inspect.h"
#include "src/packer/ir/cat.h"
#include "src/packer/ir/json.h"
#include "src/runtime/cascade.h"

namespace qplan::schedule {
namespace {

// Plans for one profile are the same whatever this build can run, or they are not made.
void check_isas(const target::TargetProfile& profile) {
  const qplan_kernel_set& all = *qplan_kernels_all();
  for (const uint32_t isa : profile.asked_isas) {
    bool found = false;
    for (uint32_t f = 0; f < all.num_families && !found; ++f) {
      const KernelFamily* family = all.families[f];
      for (uint32_t v = 0; family != nullptr && v < family->num_variants; ++v) {
        found = found || family->variants[v].isa == isa;
      }
    }
    if (!found) {
      throw PackError(QPLAN_KERNEL_MISSING,
                      "target '" + profile.name + "," + profile.options +
                          "': this build of the packer lacks the kernels of isa '" + qplan_isa_name(isa) +
                          "' and cannot tell their scratch memory; choose a lower isa=");
    }
  }
}

void take_fastest(target::Program* program, const target::TargetProfile& profile, TuningLog* tuning,
                  const LogFunction& log) {
  const StepQueries queries(*program);
  const std::string target = target_text(profile);
  size_t num_set = 0;
  for (uint32_t s = 0; s < program->steps.size(); ++s) {
    target::ProgramStep& step = program->steps[s];
    if (step.npu != nullptr) continue;
    target::StepSchedule fastest = tuning->fastest(step_key(queries.planned(s), target), step.kernel, log);
    if (step.schedule.bytes != 0) fastest.bytes = step.schedule.bytes;
    step.schedule = fastest;
    if (step.schedule != target::StepSchedule()) ++num_set;
  }
  if (log) {
    log(QPLAN_LOG_INFO, "tuning: " + std::to_string(num_set) + " of " +
                            std::to_string(program->steps.size()) +
                            " steps have another schedule than the default");
  }
}

}  // namespace

void schedule_steps(target::Program* program, const target::TargetProfile& profile, TuningLog* tuning,
                    const LogFunction& log) {
  check_isas(profile);
  if (tuning != nullptr) take_fastest(program, profile, tuning, log);
  const StepQueries queries(*program);
  uint64_t scratch = 0;
  alignas(kArgsAlignment) uint8_t args[kMaxArgsBytes];
  for (uint32_t s = 0; s < program->steps.size(); ++s) {
    target::ProgramStep& step = program->steps[s];
    if (step.npu != nullptr) continue;
    const StepView view = queries.view(s);
    const KernelFamily& family = family_of(step.kernel);
    Error error;
    if (family.bind(view, true, args, &error) < 0) {
      throw PackError(QPLAN_MODEL_UNSUPPORTED,
                      std::string(family.name) + " '" + step.name + "': its kernel refuses: " + error.text());
    }
    const VariantNeeds needs = variant_needs(family, args, profile, step.schedule.bytes);
    step.scratch_bytes = step.in_place_scratch_bytes = needs.scratch_bytes;
    if ((step.kernel == kKernel_conv2d || step.kernel == kKernel_depthwise_conv2d) &&
        (queries.may_be_in_place(s, 0, 0) || queries.may_overwrite(s, 0, 0))) {
      auto& layer = *reinterpret_cast<Conv2dArgs*>(args);
      layer.input = layer.output = &layer;  // any address that both have
      step.in_place_scratch_bytes = variant_needs(family, args, profile, step.schedule.bytes).scratch_bytes;
    }
    step.min_units_per_task = task_grain(view, needs.work_items, profile, step.schedule.grain);
    scratch = std::max({scratch, step.scratch_bytes, step.in_place_scratch_bytes});
  }
  if (scratch > format::kMaxScratchBytes) {
    throw PackError(QPLAN_MODEL_UNSUPPORTED, "the kernels need " + std::to_string(scratch) +
                                                 " bytes of scratch, a plan has at most " +
                                                 std::to_string(format::kMaxScratchBytes));
  }
  program->scratch_per_worker = scratch;
}

namespace {

using ir::Json;

[[noreturn]] void fail(const std::string& text) {
  throw PackError(QPLAN_INVALID_ARGUMENT, "schedules: " + text);
}

target::StepSchedule parse_step(uint32_t step, uint16_t kernel, const Json& settings) {
  try {
    return inspect::parse_schedule(kernel, settings);
  } catch (const PackError& error) {
    fail("step " + std::to_string(step) + ": " + error.what());
  }
}

void set_step(uint32_t step, const Json& settings, SchedulablePlan* plan) {
  const target::TargetProfile& profile = plan->profile();
  const target::StepSchedule schedule = parse_step(step, plan->view().step(step).kernel(), settings);
  plan->set_schedule(step, schedule.bytes);
  SchedulablePlan::Bound bound;
  plan->bind(step, &bound);
  const VariantNeeds needs = variant_needs(*bound.family, bound.args, profile, schedule.bytes);
  // What the plan has now, it has room for.
  const bool is_other = schedule.bytes != plan->view().step(step).schedule();
  if (is_other && needs.scratch_bytes > plan->scratch_in_arena(step)) {
    fail(cat("step ", step, " would take ", needs.scratch_bytes,
             " bytes of scratch, the plan's arena has room for ", plan->scratch_in_arena(step),
             "; pack the model again with the tuning log (--tuning)"));
  }
  if (is_other) plan->raise_scratch_per_worker(needs.scratch_bytes);
  plan->set_min_units_per_task(step, task_grain(bound.step, needs.work_items, profile, schedule.grain));
}

}  // namespace

AlignedBytes reschedule(const format::PlanView& view, std::string_view schedules) {
  std::string reason;
  const Json list = ir::parse_json(schedules, &reason);
  if (list.is_discarded()) fail("the text " + reason);
  if (!list.is_array()) fail("expected a JSON list with an object for each step");
  if (list.size() != view.num_steps()) {
    fail("there are " + std::to_string(list.size()) + " of them, the plan has " +
         std::to_string(view.num_steps()) + " steps");
  }
  SchedulablePlan plan(view);
  for (uint32_t s = 0; s < view.num_steps(); ++s) {
    if (list[s].is_null()) continue;
    if (!plan.is_kernel(s)) fail("step " + std::to_string(s) + " is a region, which has none");
    set_step(s, list[s], &plan);
  }
  return plan.file();
}

// How many bytes of its constants a program reads in one run: what the kernels of small devices keep in
// registers, or in scratch memory, they read once for several outputs.

namespace {

using target::Program;
using target::ProgramStep;
using target::TargetProfile;
using target::TensorId;

// Positions among a layer's inputs.
constexpr size_t kWeights = 1, kBias = 2;

class ConstantReads {
 public:
  ConstantReads(const Program& program, const TargetProfile& profile)
      : program_(program), isa_(*std::ranges::max_element(profile.isas)), bytes_(program.tensors.size(), 0) {}

  std::vector<uint64_t> run() {
    for (const ProgramStep& step : program_.steps) {
      if (step.npu != nullptr) continue;
      if (step.layers.empty()) {
        add(step, program_.tensors[step.outputs[0]].type, 1);
        continue;
      }
      for (const ProgramStep& layer : step.layers)
        add(layer, type_of(step, layer.outputs[0]), num_blocks(step));
    }
    return std::move(bytes_);
  }

 private:
  const ir::TensorType& type_of(const ProgramStep& cascade, TensorId tensor) const {
    return tensor < target::kFirstTile ? program_.tensors[tensor].type
                                       : cascade.tiles[tensor - target::kFirstTile].type;
  }

  // How often a cascade calls each of its layers.
  uint64_t num_blocks(const ProgramStep& cascade) const {
    const std::vector<int64_t>& shape = program_.tensors[cascade.outputs[0]].type.shape;
    const auto rows = static_cast<uint32_t>(shape[1]);
    const uint32_t wanted = knob_value(cascade.schedule.bytes, kCascadeKnobs, kCascadeBlockRows);
    const uint32_t block = cascade_block_rows(rows, static_cast<uint32_t>(shape[2]), wanted, isa_);
    return static_cast<uint64_t>(shape[0]) * ((rows + block - 1) / block);
  }

  // calls: of the kernel. Rows that a cascade computes again are not counted.
  void add(const ProgramStep& step, const ir::TensorType& output, uint64_t calls) {
    const auto elements =
        static_cast<uint64_t>(output.size_bytes()) / std::max<uint64_t>(output.dtype.bits / 8u, 1);
    const uint64_t pixels = output.shape.empty() ? 1 : elements / static_cast<uint64_t>(output.shape.back());
    const uint64_t times = times_of_weights(step, pixels, calls);
    for (size_t i = 0; i < step.inputs.size(); ++i) {
      const TensorId t = step.inputs[i];
      if (t >= target::kFirstTile || !program_.tensors[t].is_constant()) continue;
      const auto size = static_cast<uint64_t>(program_.tensors[t].type.size_bytes());
      bytes_[t] += times == 0 ? bytes_of_other(step, t, elements)
                              : size * (i <= kBias ? times : times_of_scales(step, pixels));
    }
  }

  // How often a layer reads each of its weights and sums; 0: it is no layer with weights.
  uint64_t times_of_weights(const ProgramStep& step, uint64_t pixels, uint64_t calls) const {
    switch (step.kernel) {
      case kKernel_conv2d: {
        const uint64_t tile = pixels_of_tile(step.params.get_if<target::Conv2dParams>()->weights_layout);
        return (pixels + tile - 1) / tile;
      }
      case kKernel_depthwise_conv2d:
        return prepares_weights(*step.params.get_if<target::Conv2dParams>()) ? calls : pixels;
      case kKernel_conv2d_transpose:
      case kKernel_float_conv2d:
      case kKernel_weight_only_dense:
      case kKernel_fully_connected:
      case kKernel_batch_matmul:
      case kKernel_float_batch_matmul:
      case kKernel_lstm:
      case kKernel_float_lstm:
      case kKernel_float_gru:
        return pixels;  // of matrices the rows, of recurrent layers the moments
      default:
        return 0;
    }
  }

  // Pixels of output that kernels make of a weight that they have read.
  static uint64_t pixels_of_tile(uint16_t layout) {
    if (layout == kLayout_o2r4 || layout == kLayout_o2h4) return 3;  // kernels/scalar/dsp.h, kTilePixels
    return layout == kLayout_o4k16 ? 2 : 1;
  }

  // Whether a call of the kernel reads the weights of a channel once, for all rows that it makes.
  bool prepares_weights(const target::Conv2dParams& params) const {
    if (params.weights_layout != kLayout_hwo16) return false;
    if (isa_ == QPLAN_ISA_MVE) return params.kernel_h <= 4 && params.kernel_w <= 4;
    return isa_ == QPLAN_ISA_DSP && params.kernel_h == 3 && params.kernel_w == 3 && params.dilation_h == 1 &&
           params.dilation_w == 1;
  }

  // How often multipliers and shifts are read: for each output, or never where floats of the step's own
  // parameters take their place (kernels/scalar/outputs.h).
  uint64_t times_of_scales(const ProgramStep& step, uint64_t pixels) const {
    const auto is_float = [](const auto* params) {
      return params != nullptr && params->float_epilogues.form != format::FloatEpilogue_NONE;
    };
    const bool has_floats = is_float(step.params.get_if<target::Conv2dParams>()) ||
                            is_float(step.params.get_if<target::FullyConnectedParams>());
    return has_floats && isa_ == QPLAN_ISA_DSP ? 0 : pixels;
  }

  // Constants of other kernels are read once, or once for each element of output where these are more; of
  // what is gathered, as much as is written.
  uint64_t bytes_of_other(const ProgramStep& step, TensorId constant, uint64_t elements) const {
    const ir::TensorType& type = program_.tensors[constant].type;
    const auto size = static_cast<uint64_t>(type.size_bytes());
    const uint64_t as_outputs = elements * std::max<uint64_t>(type.dtype.bits / 8u, 1);
    const bool is_part = step.kernel == kKernel_gather || step.kernel == kKernel_gather_nd;
    return is_part ? std::min(size, as_outputs) : std::max(size, as_outputs);
  }

  const Program& program_;
  const uint32_t isa_;
  std::vector<uint64_t> bytes_;
};

}  // namespace

std::vector<uint64_t> constant_reads(const Program& program, const TargetProfile& profile) {
  return ConstantReads(program, profile).run();
}

}  // namespace qplan::schedule
