#include "src/packer/inspect/plan_reader.h"

#include <cstring>

#include "format/dtype.h"
#include "src/packer/error.h"

namespace qplan::inspect {

PlanReader::PlanReader(std::span<const uint8_t> bytes) {
  if (reinterpret_cast<uintptr_t>(bytes.data()) % AlignedBytes::kAlignment != 0) {
    copy_ = AlignedBytes(bytes.size());
    std::memcpy(copy_.data(), bytes.data(), bytes.size());
    bytes = copy_.span();
  }
  Error error;
  if (view_.open(bytes.data(), bytes.size(), true, &error) < 0) throw PackError(error.status(), error.text());
}

std::string kernel_name(uint16_t kernel) {
  switch (kernel) {
#define QPLAN_KERNEL(id, family, descriptor, params) \
  case id:                                           \
    return #family;
#include "format/kernels.def"
#undef QPLAN_KERNEL
    default:
      return "kernel " + std::to_string(kernel);
  }
}

std::string shape_text(const format::Tensor& tensor) {
  std::string text;
  for (uint32_t i = 0; i < format::rank_of(tensor); ++i) {
    text += (i == 0 ? "" : "x") + std::to_string(tensor.shape()->Get(i));
  }
  return text.empty() ? "scalar" : text;
}

std::string dtype_text(const format::Tensor& tensor) {
  return format::dtype_name(tensor.type_code(), tensor.type_bits());
}

}  // namespace qplan::inspect
