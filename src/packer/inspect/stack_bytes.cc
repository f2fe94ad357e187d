#include <algorithm>
#include <string_view>

#include "src/packer/inspect/inspect.h"
#include "src/packer/ir/cat.h"
#include "src/runtime/bind/family.h"

namespace qplan::inspect {
namespace {

using format::PlanView;

// Cores whose stacks were measured apart from the others', with the instruction sets of which these are.
constexpr std::string_view kMeasuredCores[] = {
    "arch=cortex-m0plus", "arch=cortex-m3",          "arch=cortex-m4",          "arch=cortex-m7",
    "arch=cortex-m33",    "arch=cortex-m55,isa=mve", "arch=cortex-m85,isa=mve", "arch=rv32imc"};

// Whether the plan's CPU is one of them.
bool is_for_measured_core(const PlanView& view) {
  const auto* targets = view.plan().targets();
  for (uint32_t i = 0; i < format::count_of(targets); ++i) {
    const format::Target& target = *targets->Get(i);
    if (target.name() == nullptr || target.name()->str() != "cpu" || target.options() == nullptr) continue;
    const std::string options = cat(",", target.options()->str(), ",");
    return std::ranges::any_of(kMeasuredCores, [&](std::string_view core) {
      return options.find(cat(",", core, ",")) != std::string::npos;
    });
  }
  return false;
}

// Whether the step is of the kernels that integer networks mostly have, whose stack was measured with five of
// them. Others, and those that scale in float (F32E), take a little more.
bool is_of_measured_kernels(const format::KernelStep& step) {
  const auto is_integer = [](const auto* params) { return params->contract() == format::Contract_TFL2; };
  switch (step.kernel()) {
    case kKernel_conv2d:
    case kKernel_depthwise_conv2d:
      return is_integer(step.params_as_Conv2dParams());
    case kKernel_fully_connected:
      return is_integer(step.params_as_FullyConnectedParams());
    case kKernel_avg_pool2d:
      return is_integer(step.params_as_Pool2dParams());
    case kKernel_softmax:
    case kKernel_copy:
      return true;
    case kKernel_chain: {
      const auto* layers = step.params_as_CascadeParams()->layers();
      return std::all_of(layers->begin(), layers->end(),
                         [](const format::KernelStep* layer) { return is_of_measured_kernels(*layer); });
    }
    default:
      return false;
  }
}

// The same of sums, which were measured as steps of their own, and not as layers of a cascade.
bool is_integer_sum(const format::KernelStep& step) {
  return step.kernel() == kKernel_add && step.params_as_AddParams()->contract() == format::Contract_TFL2;
}

}  // namespace

// What is stated are the deepest chains of calls, which the compiler's own figures for each frame give
// (-fcallgraph-info=su, GCC 12, -Os), compared with painted stacks (samples/firmware: a plan that is opened,
// and C with the plan as an array; with texts of errors), and rounded up: of those kernels on those cores,
// which stay within one bound, and else the greatest of all cores and kernels, to the next multiple of 32.
// Where there is memory of activations, init has what is long there (src/runtime/prepare.cc), so that its
// stack does not depend on how many layers a cascade has; a run has 44 bytes of each on the stack, of which
// the bound has four. Where a bound does not hold with less memory, what is then on the stack is added: tests
// compare it with all of these cases (tests/firmware/stack_test.py), and with the models of docs/firmware.md.
StackBytes stack_bytes(const PlanView& view, const format::Function& main) {
  bool has_args_on_stack = false, has_regions = false, is_measured = is_for_measured_core(view);
  uint32_t most_layers = 0;
  for (uint32_t i = 0; i < main.num_steps(); ++i) {
    const uint32_t index = main.first_step() + i;
    has_regions = has_regions || view.npu_step(index) != nullptr;
    if (view.npu_step(index) != nullptr) continue;
    is_measured =
        is_measured && (is_of_measured_kernels(view.step(index)) || is_integer_sum(view.step(index)));
    if (view.step(index).kernel() != kKernel_chain) continue;
    const format::CascadeParams& cascade = *view.step(index).params_as_CascadeParams();
    most_layers = std::max(most_layers, cascade.layers()->size());
    // Plans of packers before format 1.13.
    has_args_on_stack = has_args_on_stack || (!cascade.keeps_arguments() && !cascade.binds_in_scratch());
  }
  const bool has_cascades = most_layers > 0;
  // kMaxArgsBytes, sizeof(CascadeArgs), kLayerArgsBytes and kKeptOfLayerBytes of processors of 32 bits.
  constexpr uint32_t kArgs = 320, kCascadeArgs = 72, kLayerArgs = 248, kKeptOfLayer = 32;
  constexpr uint32_t kLayersRoom = kLayerArgs + format::kMaxCascadeLayers * kKeptOfLayer;
  constexpr uint32_t kFrameOfArgs = 16, kFrameOfRegion = 128;
  const uint64_t arena_bytes = view.bank(view.main_bank()).size();
  StackBytes stack;
  stack.open = has_cascades ? 1248 : 1152;
  if (is_measured) stack.open = has_cascades ? 1200 : 1024;
  if (arena_bytes < kArgs) stack.open += kArgs + kFrameOfArgs;
  if (has_cascades && arena_bytes < kCascadeArgs + kLayersRoom)
    stack.open += kLayerArgs + most_layers * kKeptOfLayer;
  if (has_regions) stack.open += kFrameOfRegion;
  stack.invoke = is_measured ? 1000 : 1120;
  if (has_args_on_stack) stack.invoke = 1312;
  return stack;
}

}  // namespace qplan::inspect
