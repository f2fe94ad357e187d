// conv2d as a matrix product of patches and packed weights. An ISA file includes its
// kernels/numeric/gemm_<isa>.inl before this one, which gives the names used here their meaning. Internal
// linkage only.
#ifndef QPLAN_KERNELS_CONV2D_CONV2D_GEMM_INL_
#define QPLAN_KERNELS_CONV2D_CONV2D_GEMM_INL_

#include "kernels/conv2d/conv2d_patch.inl"

namespace qplan {
namespace {

inline void conv2d_gemm(const Conv2dArgs& args, uint32_t begin, uint32_t end, void* scratch) {
  const uint32_t num_pixels = args.batch * args.output_h * args.output_w;
  const bool direct = patch_is_input(args);
  uint8_t* patches = static_cast<uint8_t*>(scratch);
  int32_t* terms = reinterpret_cast<int32_t*>(patches + (direct ? 0 : kPatchRows * patch_stride(args)));

  Gemm product;
  product.row_stride = direct ? args.input_c : patch_stride(args);
  product.num_k4 = (patch_bytes(args) + 3) / 4;
  product.weights = args.weights;
  product.bias = args.bias;
  product.multiplier = args.multiplier;
  product.shift = args.shift;
  product.scale = args.scale;
  product.float_scale = args.float_scale;
  product.float_offset = args.float_offset;
  product.contract = args.contract;
  product.float_form = args.float_form;
  product.num_channels = args.output_c;
  product.out_stride = args.output_c;
  product.output_zero_point = args.output_zero_point;
  product.clamp_min = args.clamp_min;
  product.clamp_max = args.clamp_max;
  for (uint32_t unit = begin; unit < end; ++unit) {
    const uint32_t first = unit * kPatchRows;
    const uint32_t left = num_pixels - first;
    product.num_rows = left < kPatchRows ? left : kPatchRows;
    if (direct) {
      product.rows = static_cast<const uint8_t*>(args.input) + size_t{first} * args.input_c;
    } else {
      gather_patches<copy_flip, fill>(args, first, product.num_rows, patches);
      product.rows = patches;
    }
    product.row_term = nullptr;
    if (args.weights_zero_point != 0) {
      // sum u * (w - z) = sum u * w - z * sum u
      for (uint32_t p = 0; p < product.num_rows; ++p) {
        const uint32_t sum = sum_bytes(product.rows + p * product.row_stride, patch_bytes(args));
        terms[p] = static_cast<int32_t>(0u - static_cast<uint32_t>(args.weights_zero_point) * sum);
      }
      product.row_term = terms;
    }
    product.out = static_cast<uint8_t*>(args.output) + size_t{first} * args.output_c;
    gemm(product, 0, (args.output_c + 15) / 16);
  }
}

}  // namespace
}  // namespace qplan

#endif  // QPLAN_KERNELS_CONV2D_CONV2D_GEMM_INL_
