#include "src/runtime/bind/family.h"

namespace {

// By kernel id: entry 0 stands for no family, the others follow the rows of kernels.def, whose numbers are 1,
// 2, 3, ...
constexpr const qplan::KernelFamily* kAllFamilies[] = {
    nullptr,
#define QPLAN_KERNEL(id, family, descriptor, params, args_bytes) &qplan::descriptor,
#include "format/kernels.def"
#undef QPLAN_KERNEL
};

constexpr const qplan::KernelFamily* kReferenceFamilies[] = {
    nullptr,
#define QPLAN_KERNEL(id, family, descriptor, params, args_bytes) &qplan::descriptor##Reference,
#include "format/kernels.def"
#undef QPLAN_KERNEL
};

// Families that compute on float32. Conversions between float32 and 8 bits do not count.
constexpr bool computes_on_floats(uint32_t id) {
  return id == qplan::kKernel_float_conv2d || id == qplan::kKernel_float_pool2d ||
         id == qplan::kKernel_float_binary || id == qplan::kKernel_float_unary ||
         id == qplan::kKernel_float_mean || id == qplan::kKernel_float_softmax ||
         id == qplan::kKernel_dynamic_quantize || id == qplan::kKernel_dynamic_dequantize ||
         id == qplan::kKernel_float_lstm || id == qplan::kKernel_float_batch_matmul ||
         id == qplan::kKernel_float_gru || id == qplan::kKernel_weight_only_dense;
}

constexpr const qplan::KernelFamily* kIntegerFamilies[] = {
    nullptr,
#define QPLAN_KERNEL(id, family, descriptor, params, args_bytes) \
  computes_on_floats(id) ? nullptr : &qplan::descriptor,
#include "format/kernels.def"
#undef QPLAN_KERNEL
};

constexpr uint32_t kIds[] = {
    0,
#define QPLAN_KERNEL(id, family, descriptor, params, args_bytes) id,
#include "format/kernels.def"
#undef QPLAN_KERNEL
};
constexpr uint32_t kNumFamilies = sizeof(kIds) / sizeof(kIds[0]);

constexpr bool ids_are_positions() {
  for (uint32_t i = 0; i < kNumFamilies; ++i) {
    if (kIds[i] != i) return false;
  }
  return true;
}
static_assert(ids_are_positions(),
              "a row of kernels.def was left out or moved: the tables are indexed by id");

constexpr qplan_kernel_set kAll = {kAllFamilies, kNumFamilies};
constexpr qplan_kernel_set kInteger = {kIntegerFamilies, kNumFamilies};
constexpr qplan_kernel_set kReference = {kReferenceFamilies, kNumFamilies};

}  // namespace

const qplan_kernel_set* qplan_kernels_all(void) { return &kAll; }

const qplan_kernel_set* qplan_kernels_integer(void) { return &kInteger; }

const qplan_kernel_set* qplan_kernels_reference(void) { return &kReference; }
