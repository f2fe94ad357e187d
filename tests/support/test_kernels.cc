#include "tests/support/test_kernels.h"

#include <atomic>

#include "src/runtime/bind/family.h"

namespace qplan::testing {
namespace {

std::atomic<uint32_t> ref_calls{0}, avx2_calls{0};
std::atomic<void (*)(uint32_t)> heavy_hook{nullptr};

struct AddByteArgs {
  const uint8_t* x;
  uint8_t* y;
  uint32_t count;
  uint8_t addend;
};

bool add_byte_in_place(const StepView&, uint32_t, uint32_t) { return true; }

qplan_status add_byte_bind(const StepView& step, bool check, void* storage, Error* error) {
  auto& args = *static_cast<AddByteArgs*>(storage);
  const auto* params = step.step->params_as_NoParams();
  if (check) {
    if (step.num_inputs() != 1 || step.num_outputs() != 1 ||
        step.input(0).size_bytes != step.output(0).size_bytes) {
      return error->set(QPLAN_PLAN_CORRUPT) << "add_byte: expected one input and one output of the same size";
    }
    if (params->reserved() == 255) {
      return error->set(QPLAN_PLAN_CORRUPT) << "add_byte: addend 255 is out of range";
    }
  }
  args.x = static_cast<const uint8_t*>(step.input_data(0));
  args.y = static_cast<uint8_t*>(step.output_data(0));
  args.count = static_cast<uint32_t>(step.input(0).size_bytes);
  args.addend = params->reserved();
  return QPLAN_OK;
}

void add_byte(const void* storage, uint32_t begin, uint32_t end, void* scratch) {
  const auto& args = *static_cast<const AddByteArgs*>(storage);
  if (args.addend == kHeavyAddend && heavy_hook.load() != nullptr) heavy_hook.load()(begin);
  // Through the scratch, byte by byte: two workers with one scratch would show.
  auto* bytes = static_cast<volatile uint8_t*>(scratch);
  for (uint32_t i = begin; i < end; ++i) {
    bytes[i % 64] = args.x[i];
    args.y[i] = static_cast<uint8_t>(bytes[i % 64] + args.addend);
  }
}

Refusal accept_all(const void*) { return Refusal::kNone; }
size_t add_byte_scratch(const void*) { return 64; }
// With addend 77 the fast one takes more.
size_t add_byte_fast_scratch(const void* storage) {
  return static_cast<const AddByteArgs*>(storage)->addend == 77 ? 128 : 64;
}
uint32_t add_byte_units(const void* storage) { return static_cast<const AddByteArgs*>(storage)->count; }

constexpr KernelVariant kAddByteVariants[] = {
    {"add_byte_avx2", QPLAN_ISA_AVX2, accept_all, add_byte_fast_scratch, add_byte_units,
     [](const void* args, uint32_t begin, uint32_t end, void* scratch) {
       ++avx2_calls;
       add_byte(args, begin, end, scratch);
     }},
    {"add_byte_ref", QPLAN_ISA_REFERENCE, accept_all, add_byte_scratch, add_byte_units,
     [](const void* args, uint32_t begin, uint32_t end, void* scratch) {
       ++ref_calls;
       add_byte(args, begin, end, scratch);
     }}};
uint64_t add_byte_work(const void* storage) {
  const auto& args = *static_cast<const AddByteArgs*>(storage);
  if (args.addend == kEndlessAddend) return UINT64_MAX - 1;
  return args.addend == kHeavyAddend ? args.count * kHeavyWork : args.count;
}
constexpr KernelFamily kAddByteFamily = {kAddByte,         "add_byte", add_byte_in_place,
                                         nullptr,          nullptr,    add_byte_bind,
                                         kAddByteVariants, 2,          add_byte_work};

bool never(const StepView&, uint32_t, uint32_t) { return false; }
size_t no_scratch(const void*) { return 0; }
uint32_t one_unit(const void*) { return 1; }

// Args of the other two: the step itself.
qplan_status step_bind(const StepView& step, bool check, void* storage, Error* error) {
  if (check) {
    if (step.num_inputs() == 0) return error->set(QPLAN_PLAN_CORRUPT) << "expected an input";
    for (uint32_t i = 0; i < step.num_inputs(); ++i) {
      if (step.input(i).size_bytes != step.output(0).size_bytes) {
        return error->set(QPLAN_PLAN_CORRUPT) << "inputs and outputs differ in size";
      }
    }
    for (uint32_t o = 0; o < step.num_outputs(); ++o) {
      if (step.output(o).size_bytes != step.output(0).size_bytes) {
        return error->set(QPLAN_PLAN_CORRUPT) << "outputs differ in size";
      }
    }
  }
  *static_cast<StepView*>(storage) = step;
  return QPLAN_OK;
}

// An operation for each byte of each input.
uint64_t sum_work(const void* storage) {
  const auto& step = *static_cast<const StepView*>(storage);
  return step.num_inputs() * step.output(0).size_bytes;
}

void sum(const void* storage, uint32_t, uint32_t, void*) {
  const auto& step = *static_cast<const StepView*>(storage);
  auto* y = static_cast<uint8_t*>(step.output_data(0));
  for (uint64_t i = 0; i < step.output(0).size_bytes; ++i) {
    uint8_t total = 0;
    for (uint32_t k = 0; k < step.num_inputs(); ++k) {
      total = static_cast<uint8_t>(total + static_cast<const uint8_t*>(step.input_data(k))[i]);
    }
    y[i] = total;
  }
}
constexpr KernelVariant kSumVariants[] = {
    {"sum_ref", QPLAN_ISA_REFERENCE, accept_all, no_scratch, one_unit, sum}};
constexpr KernelFamily kSumFamily = {kSum,      "sum",        never, nullptr, nullptr,
                                     step_bind, kSumVariants, 1,     sum_work};

uint64_t fan_work(const void* storage) {
  const auto& step = *static_cast<const StepView*>(storage);
  return step.num_outputs() * step.output(0).size_bytes;
}

void fan(const void* storage, uint32_t, uint32_t, void*) {
  const auto& step = *static_cast<const StepView*>(storage);
  const auto* x = static_cast<const uint8_t*>(step.input_data(0));
  for (uint32_t o = 0; o < step.num_outputs(); ++o) {
    auto* y = static_cast<uint8_t*>(step.output_data(o));
    for (uint64_t i = 0; i < step.output(0).size_bytes; ++i) y[i] = static_cast<uint8_t>(x[i] + o);
  }
}
constexpr KernelVariant kFanVariants[] = {
    {"fan_ref", QPLAN_ISA_REFERENCE, accept_all, no_scratch, one_unit, fan}};
constexpr KernelFamily kFanFamily = {kFan,      "fan",        never, nullptr, nullptr,
                                     step_bind, kFanVariants, 1,     fan_work};

constexpr const KernelFamily* kFamilies[] = {
    nullptr, nullptr,     nullptr,     nullptr, nullptr, nullptr,        nullptr, nullptr,
    nullptr, nullptr,     nullptr,     nullptr, nullptr, nullptr,        nullptr, nullptr,
    nullptr, &kSumFamily, &kFanFamily, nullptr, nullptr, &kAddByteFamily};
constexpr qplan_kernel_set kSet = {kFamilies, 22};

}  // namespace

const qplan_kernel_set* test_kernels() { return &kSet; }

void set_heavy_hook(void (*hook)(uint32_t begin)) { heavy_hook = hook; }

KernelCalls kernel_calls() { return {ref_calls, avx2_calls}; }

void reset_kernel_calls() {
  ref_calls = 0;
  avx2_calls = 0;
}

PlanSpec sequence_spec() {
  PlanSpec spec;
  const std::vector<int64_t> shape = {2, 3, 4};
  const uint32_t x = spec.add_tensor(shape, "x"), a = spec.add_tensor(shape, "a"),
                 b = spec.add_tensor(shape, "b"), y = spec.add_tensor(shape, "y");
  spec.tensors[x].quantization = QuantizationSpec{{0.5F}, {-3}, 0};
  spec.tensors[y].quantization = QuantizationSpec{{1.0F, 2.0F, 3.0F}, {0, 1, 2}, 1};
  spec.add_step(kAddByte, {x}, {a}, copy_params(1), "first");
  spec.add_step(kAddByte, {a}, {b}, copy_params(2), "second");
  spec.add_step(kAddByte, {b}, {y}, copy_params(3), "third");
  spec.steps[0].macs = 7;
  spec.steps[2].macs = 11;
  for (StepSpec& step : spec.steps) step.min_units_per_task = 1;
  for (TensorSpec& tensor : spec.tensors) tensor.last_use = 2;
  spec.add_main({x}, {y}, 64);
  return spec;
}

}  // namespace qplan::testing
