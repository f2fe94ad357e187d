#include "src/runtime/bind/step_view.h"

#include <dlpack/dlpack.h>

#include "format/dtype.h"

namespace qplan {

Dtype StepView::dtype_of(const format::Tensor& tensor) {
  const uint32_t bits = tensor.type_bits();
  switch (tensor.type_code()) {
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

bool StepView::is_constant(uint32_t t) const {
  if (tensors != nullptr) return tensors[t].is_constant;
  return !is_tile_of_plan(t) &&
         plan->banks()->Get(plan_tensor(t).bank())->kind() == format::BankKind_CONSTANT;
}

StepTensor StepView::tensor(uint32_t t) const {
  if (tensors != nullptr) return tensors[t];
  const format::Tensor& from = plan_tensor(t);
  StepTensor tensor;
  if (from.shape() != nullptr) {
    tensor.extents = from.shape()->data();
    tensor.rank = from.shape()->size();
  }
  tensor.dtype = dtype_of(from);
  tensor.is_tile = is_tile_of_plan(t);
  tensor.is_constant = is_constant(t);
  tensor.size_bytes = from.size();
  tensor.offset = from.offset();
  tensor.data = address(t);
  return tensor;
}

// Flattened, as it is asked for each constant of each block of a cascade.
__attribute__((flatten)) void* StepView::unusual_address(uint32_t t) const {
  if (tensors != nullptr) return tensors[t].data;
  if (is_tile_of_plan(t)) return nullptr;
  if (data_without_tiles != nullptr && t < num_data) return data_without_tiles[t];
  const format::Tensor& tensor = *plan->tensors()->Get(t);
  const format::Bank& bank = *plan->banks()->Get(tensor.bank());
  if (file == nullptr || bank.kind() != format::BankKind_CONSTANT) return nullptr;
  // NOLINTNEXTLINE: nobody writes to a constant.
  return const_cast<uint8_t*>(file) + bank.file_offset() + tensor.offset();
}

}  // namespace qplan
