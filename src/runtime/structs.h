// Structs that cross the C API: each begins with struct_size, and what lies beyond the caller's struct_size
// counts as zero when it comes in and is not written when it goes out. And a qplan_plan, whose storage holds
// a PlanView.
#ifndef QPLAN_SRC_RUNTIME_STRUCTS_H_
#define QPLAN_SRC_RUNTIME_STRUCTS_H_

#include <stdint.h>
#include <string.h>

#include <type_traits>

#include "format/plan_view.h"
#include "qplan/qplan.h"

namespace qplan {

// ---- struct_size

template <typename Struct>
inline Struct known_fields(const Struct* from) {
  Struct to;
  memset(&to, 0, sizeof(to));
  if (from != nullptr) memcpy(&to, from, from->struct_size < sizeof(to) ? from->struct_size : sizeof(to));
  return to;
}

// False when the caller left struct_size unset: then nothing can be told.
template <typename Struct>
[[nodiscard]] inline bool fill_fields(Struct from, Struct* to) {
  if (to->struct_size <= sizeof(to->struct_size)) return false;
  from.struct_size = to->struct_size < sizeof(from) ? to->struct_size : uint32_t{sizeof(from)};
  memcpy(to, &from, from.struct_size);
  return true;
}

// ---- qplan_plan

static_assert(sizeof(format::PlanView) <= sizeof(qplan_plan::opaque), "qplan_plan is ABI");
static_assert(std::is_trivially_copyable<format::PlanView>::value, "it is moved with memcpy");

inline void put_view(const format::PlanView& view, qplan_plan* plan) {
  memset(plan->opaque, 0, sizeof(plan->opaque));
  memcpy(plan->opaque, &view, sizeof(view));
}

// A closed view for NULL and for a plan that was not opened.
inline format::PlanView get_view(const qplan_plan* plan) {
  format::PlanView view;
  if (plan != nullptr) memcpy(&view, plan->opaque, sizeof(view));
  return view;
}

// What the plan says of a tensor; struct_size is left to fill_fields.
inline qplan_tensor_info tensor_info(const format::PlanView& view, uint32_t index) {
  const format::Tensor& tensor = view.tensor(index);
  qplan_tensor_info found = {};
  found.ndim = static_cast<int32_t>(format::rank_of(tensor));
  found.name = view.tensor_name(index);
  found.shape = format::extents_of(tensor);
  found.dtype.code = tensor.type_code();
  found.dtype.bits = tensor.type_bits();
  found.dtype.lanes = 1;
  found.alignment = format::element_bytes(tensor);
  found.size_bytes = tensor.size();
  const format::Quantization* quantization = tensor.quantization();
  if (quantization != nullptr && format::count_of(quantization->scales()) > 0) {
    found.scales = quantization->scales()->data();
    found.zero_points = quantization->zero_points()->data();
    found.num_scales = quantization->scales()->size();
    found.quant_axis = quantization->axis();
  }
  return found;
}

}  // namespace qplan

#endif  // QPLAN_SRC_RUNTIME_STRUCTS_H_
