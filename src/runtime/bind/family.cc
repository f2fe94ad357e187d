// Steps as families see them, and what is asked about them without a session.
#include "src/runtime/bind/family.h"

#include <dlpack/dlpack.h>

#include <new>

#include "format/container.h"
#include "format/plan_view.h"
#include "src/base/checked.h"
#include "src/base/error.h"

namespace qplan {

namespace {

using format::TableFields;
using format::Tensor;

Dtype dtype_of_type(uint32_t code, uint32_t bits) {
  switch (code) {
    case kDLUInt:
      return bits == 8 ? Dtype::kU8 : Dtype::kOther;
    case kDLInt:
      return bits == 8    ? Dtype::kS8
             : bits == 16 ? Dtype::kS16
             : bits == 32 ? Dtype::kS32
             : bits == 64 ? Dtype::kS64
                          : Dtype::kOther;
    case kDLFloat:
      return bits == 32 ? Dtype::kF32 : Dtype::kOther;
    case format::kDLBoolCode:  // a byte, which kernels see as a number
      return bits == 8 ? Dtype::kU8 : Dtype::kOther;
    default:
      return Dtype::kOther;
  }
}

// All but addresses and what depends on the bank. tensor: with its default values.
void describe(const Tensor& from, StepTensor* tensor) {
  const format::TensorRecord record((TableFields(&from)));
  tensor->extents = record.extents;
  tensor->rank = record.rank;
  tensor->dtype = dtype_of_type(record.type_code, record.type_bits);
  tensor->bank = static_cast<uint8_t>(record.bank);
  tensor->size_bytes = record.size;
  tensor->offset = record.offset;
}

}  // namespace

void describe_tensors(const format::PlanView& plan, StepTensor* tensors) {
  uint8_t* banks[format::kMaxBanks] = {};  // of constants
  for (uint32_t i = 0; i < plan.num_banks(); ++i) {
    if (!plan.is_constant_bank(i)) continue;
    // NOLINTNEXTLINE: nobody writes to a constant.
    banks[i] = const_cast<uint8_t*>(plan.bytes()) + static_cast<size_t>(plan.bank(i).file_offset());
  }
  const auto* from = plan.plan().tensors();
  for (uint32_t t = 0, count = format::count_of(from); t < count; ++t) {
    StepTensor* const tensor = new (tensors + t) StepTensor;
    describe(*from->Get(t), tensor);
    uint8_t* const bank = banks[tensor->bank];
    if (bank == nullptr) continue;
    tensor->is_constant = true;
    tensor->data = bank + static_cast<size_t>(tensor->offset);
  }
}

void describe_tiles(const flatbuffers::Vector<flatbuffers::Offset<Tensor>>& from, StepTensor* tiles) {
  for (uint32_t t = 0; t < from.size(); ++t) {
    StepTensor* const tile = new (tiles + t) StepTensor;
    describe(*from.Get(t), tile);
    tile->is_tile = true;
  }
}

// Not inlined: asked for so often that images are smaller.
__attribute__((noinline)) const flatbuffers::Vector<uint32_t>* StepView::inputs() const {
  return TableFields(step).vector<uint32_t>(format::KernelStep::VT_INPUTS);
}

__attribute__((noinline)) const flatbuffers::Vector<uint32_t>* StepView::outputs() const {
  return TableFields(step).vector<uint32_t>(format::KernelStep::VT_OUTPUTS);
}

Dtype StepView::dtype_of(const Tensor& tensor) {
  const TableFields fields(&tensor);
  return dtype_of_type(fields.scalar<uint8_t>(Tensor::VT_TYPE_CODE),
                       fields.scalar<uint8_t>(Tensor::VT_TYPE_BITS));
}

bool StepView::is_constant(uint32_t t) const {
  if (tensors != nullptr) return tensors[t].is_constant;
  return !is_tile_of_plan(t) &&
         plan->banks()->Get(plan_tensor(t).bank())->kind() == format::BankKind_CONSTANT;
}

StepTensor StepView::tensor(uint32_t t) const {
  StepTensor tensor;
  if (tensors != nullptr) {
    tensor = tensors[t];
  } else {
    describe(plan_tensor(t), &tensor);
    tensor.is_tile = is_tile_of_plan(t);
    tensor.is_constant = is_constant(t);
  }
  tensor.data = address(t);
  return tensor;
}

void* StepView::unusual_address(uint32_t t) const {
  const TableFields of_plan(plan);
  const auto* all = of_plan.vector<flatbuffers::Offset<Tensor>>(format::Plan::VT_TENSORS);
  if (tiles != nullptr && t >= all->size()) return nullptr;
  if (data_without_tiles != nullptr && t < num_data) return data_without_tiles[t];
  const TableFields tensor(all->Get(t));
  const auto* banks = of_plan.vector<flatbuffers::Offset<format::Bank>>(format::Plan::VT_BANKS);
  const TableFields bank(banks->Get(tensor.scalar<uint32_t>(Tensor::VT_BANK)));
  if (file == nullptr || bank.scalar<uint8_t>(format::Bank::VT_KIND) != format::BankKind_CONSTANT)
    return nullptr;
  const uint64_t at =
      bank.scalar<uint64_t>(format::Bank::VT_FILE_OFFSET) + tensor.scalar<uint64_t>(Tensor::VT_OFFSET);
  // NOLINTNEXTLINE: nobody writes to a constant.
  return const_cast<uint8_t*>(file) + static_cast<size_t>(at);
}

// ---- how much a plan computes, and what errors say about its steps

namespace {

// What follows "<name>: " in text, or all of it.
const char* after_prefix(const char* text, const char* name) {
  const char* at = text;
  while (*name != '\0' && *at == *name) ++at, ++name;
  return *name == '\0' && at[0] == ':' && at[1] == ' ' ? at + 2 : text;
}

}  // namespace

const KernelFamily* find_family(const format::PlanView& plan, uint32_t index, uint16_t kernel,
                                const qplan_kernel_set& kernels, Error* error) {
  const KernelFamily* family = kernel < kernels.num_families ? kernels.families[kernel] : nullptr;
  if (family == nullptr) {
    error->set(QPLAN_KERNEL_MISSING, static_cast<int32_t>(index))
        << "session: step " << index << Named{plan.step_name(index)} << " needs kernel " << uint32_t{kernel}
        << " (" << format::kernel_name(kernel, "unknown to this build")
        << "), which is not in the kernel set";
  }
  return family;
}

void place_step_error(const format::PlanView& plan, uint32_t index, const KernelFamily& family,
                      Error* error) {
  const Error from_family = *error;
  const char* text = after_prefix(from_family.text(), family.name);
  error->set(from_family.status(), static_cast<int32_t>(index), from_family.tensor());
  *error << family.name << Named{plan.step_name(index)} << " (step " << index << "): " << text;
}

uint64_t region_work(const format::PlanView& plan, const format::NpuStep& region) {
  uint64_t work = 0;
  for (uint32_t b = 0; b < format::count_of(region.binds()); ++b) {
    const format::NpuBind& bind = *region.binds()->Get(b);
    if (bind.use() == format::NpuUse_SCRATCH) continue;
    const auto* tensors = bind.use() == format::NpuUse_INPUT ? region.inputs() : region.outputs();
    work = saturating_sum(work, saturating_sum(plan.tensor(tensors->Get(bind.index())).size(), bind.size()));
  }
  return work;
}

qplan_status step_work(const format::PlanView& plan, uint32_t index, const qplan_kernel_set& kernels,
                       uint64_t* work, Error* error) {
  if (const format::NpuStep* region = plan.npu_step(index)) {
    *work = region_work(plan, *region);
    return QPLAN_OK;
  }
  const KernelFamily* family = find_family(plan, index, plan.step(index).kernel(), kernels, error);
  if (family == nullptr) return error->status();
  StepView view = StepView::without_addresses(plan.plan(), plan.step(index), plan.bytes());
  view.kernels = &kernels;
  alignas(kArgsAlignment) uint8_t args[kMaxArgsBytes];
  if (family->bind(view, true, args, error) < 0) {
    place_step_error(plan, index, *family, error);
    return error->status();
  }
  *work = family->work(args);
  return QPLAN_OK;
}

qplan_status function_work(const format::PlanView& plan, const format::Function& function,
                           const qplan_kernel_set& kernels, uint64_t* work, Error* error) {
  uint64_t total = 0;
  for (uint32_t i = 0; i < function.num_steps(); ++i) {
    uint64_t of_step = 0;
    if (step_work(plan, function.first_step() + i, kernels, &of_step, error) < 0) return error->status();
    total = saturating_sum(total, of_step);
  }
  *work = total;
  return QPLAN_OK;
}

}  // namespace qplan
