// The residual of a convolution. An ISA file says whether its product adds it where outputs are made;
// otherwise its add does, on the outputs of a unit while they are in the cache. Internal linkage only.
#ifndef QPLAN_KERNELS_CONV2D_CONV2D_RESIDUAL_INL_
#define QPLAN_KERNELS_CONV2D_CONV2D_RESIDUAL_INL_

#include <stddef.h>
#include <stdint.h>

#include "kernels/add/add.h"
#include "kernels/conv2d/conv2d.h"
#include "kernels/conv2d/conv2d_band.inl"
#include "kernels/elementwise/chunks.h"
#include "kernels/numeric/gemm.h"

namespace qplan {
namespace {

// The runs of add's variant for the instruction set.
using AddRun = void (*)(const AddArgs& args, uint32_t begin, uint32_t end, void* scratch);

// Pixels of so few channels are products that make their outputs while they multiply (kernels/numeric/
// gemm_stream_avx512vnni.inl), with no room for more.
constexpr uint32_t kStreamedChannels = 256;

// Whether the product adds it: where the sum has a float form. Few runs are divided by channels, of which add
// would take one row at a time.
inline bool product_adds_residual(const Conv2dArgs& a) {
  const bool is_streamed =
      windows_are_pixels(a) && a.input_c <= kStreamedChannels && num_runs(a) >= kFewBlocks;
  return kProductAddsResidual && a.has_residual && a.residual_sum.contract == Contract::kTfl2 &&
         a.residual_sum.float_scale1 > 0.0f && !is_streamed;
}

inline GemmResidual residual_of(const Conv2dArgs& a) {
  GemmResidual residual;
  residual.scale1 = a.residual_sum.float_scale1;
  residual.scale2 = a.residual_sum.float_scale2;
  residual.offset = a.residual_sum.float_offset;
  residual.clamp_min = a.residual_sum.clamp_min;
  residual.clamp_max = a.residual_sum.clamp_max;
  residual.is_a = a.residual_is_a;
  residual.is_signed = a.output_dtype == Dtype::kS8;
  return residual;
}

// Where the residual of outputs from `out` on lies.
inline const uint8_t* residual_at(const Conv2dArgs& a, const uint8_t* out) {
  return static_cast<const uint8_t*>(a.residual) + (out - static_cast<const uint8_t*>(a.output));
}

// Adds it to the outputs of channels [begin, end) of num_rows pixels, one behind the other from `out` on.
template <AddRun kAdd>
inline void add_residual(const Conv2dArgs& a, uint8_t* out, uint64_t num_rows, uint32_t begin, uint32_t end) {
  const bool is_whole = begin == 0 && end == a.output_c;
  const uint64_t count = is_whole ? num_rows * a.output_c : end - begin;
  AddArgs add;
  static_cast<AddFormula&>(add) = a.residual_sum;
  add.broadcast.elements = add.broadcast.extents[0] = count;
  add.broadcast.a_strides[0] = add.broadcast.b_strides[0] = 1;
  out += begin;
  for (uint64_t row = 0; row < (is_whole ? 1 : num_rows); ++row, out += a.output_c) {
    add.a = a.residual_is_a ? residual_at(a, out) : out;
    add.b = a.residual_is_a ? out : residual_at(a, out);
    add.output = out;
    kAdd(add, 0, num_chunks(count), nullptr);
  }
}

}  // namespace
}  // namespace qplan

#endif  // QPLAN_KERNELS_CONV2D_CONV2D_RESIDUAL_INL_
