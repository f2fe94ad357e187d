#include <dlpack/dlpack.h>

#include <new>

#include "format/container.h"
#include "format/plan_view.h"
#include "src/runtime/bind/family.h"

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

}  // namespace qplan
