// conv2d as a matrix product of patches and packed weights.
#include "kernels/conv2d/conv2d.h"
#include "kernels/conv2d/conv2d_patch.inl"
#include "kernels/numeric/gemm_avx512vnni.inl"

namespace qplan::conv2d_avx512vnni {

bool accepts(const Conv2dArgs& args) { return patch_accepts(args); }

size_t scratch_bytes(const Conv2dArgs& args) { return patch_scratch_bytes(args); }

uint32_t units(const Conv2dArgs& args) { return patch_units(args); }

void run(const Conv2dArgs& args, uint32_t begin, uint32_t end, void* scratch) {
  const uint32_t num_pixels = args.batch * args.output_h * args.output_w;
  const bool direct = patch_is_input(args);
  uint8_t* patches = static_cast<uint8_t*>(scratch);
  int32_t* terms = reinterpret_cast<int32_t*>(patches + (direct ? 0 : kPatchRows * patch_stride(args)));

  Gemm512 gemm;
  gemm.row_stride = direct ? args.input_c : patch_stride(args);
  gemm.num_k4 = (patch_bytes(args) + 3) / 4;
  gemm.weights = args.weights;
  gemm.bias = args.bias;
  gemm.multiplier = args.multiplier;
  gemm.shift = args.shift;
  gemm.num_channels = args.output_c;
  gemm.out_stride = args.output_c;
  gemm.output = output512(args.output_zero_point, args.clamp_min, args.clamp_max);
  for (uint32_t unit = begin; unit < end; ++unit) {
    const uint32_t first = unit * kPatchRows;
    const uint32_t left = num_pixels - first;
    gemm.num_rows = left < kPatchRows ? left : kPatchRows;
    if (direct) {
      gemm.rows = static_cast<const uint8_t*>(args.input) + size_t{first} * args.input_c;
    } else {
      gather_patches<copy_flip512, fill512>(args, first, gemm.num_rows, patches);
      gemm.rows = patches;
    }
    gemm.row_term = nullptr;
    if (args.weights_zero_point != 0) {
      // sum u * (w - z) = sum u * w - z * sum u
      for (uint32_t p = 0; p < gemm.num_rows; ++p) {
        const uint32_t sum = sum_bytes512(gemm.rows + p * gemm.row_stride, patch_bytes(args));
        terms[p] = static_cast<int32_t>(0u - static_cast<uint32_t>(args.weights_zero_point) * sum);
      }
      gemm.row_term = terms;
    }
    gemm.out = static_cast<uint8_t*>(args.output) + size_t{first} * args.output_c;
    gemm512(gemm, 0, (args.output_c + 15) / 16);
  }
}

}  // namespace qplan::conv2d_avx512vnni
