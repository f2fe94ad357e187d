// fully_connected as a matrix product of rows and packed weights. An ISA file includes its
// kernels/numeric/gemm_<isa>.inl before this one, which gives the names used here their meaning. Internal
// linkage only.
#ifndef QPLAN_KERNELS_FULLY_CONNECTED_FULLY_CONNECTED_GEMM_INL_
#define QPLAN_KERNELS_FULLY_CONNECTED_FULLY_CONNECTED_GEMM_INL_

#include "kernels/fully_connected/fully_connected_rows.inl"

namespace qplan {
namespace {

inline void fully_connected_gemm(const FullyConnectedArgs& args, uint32_t begin, uint32_t end,
                                 void* scratch) {
  const bool direct = rows_are_input(args);
  const uint8_t flip = args.input_dtype == Dtype::kS8 ? 0x80 : 0;
  const uint8_t* input = static_cast<const uint8_t*>(args.input);
  uint8_t* rows = static_cast<uint8_t*>(scratch);
  int32_t* terms = reinterpret_cast<int32_t*>(rows + (direct ? 0 : chunk_rows(args) * row_stride(args)));

  Gemm product;
  product.row_stride = direct ? args.input_c : row_stride(args);
  product.num_k4 = (args.input_c + 3) / 4;
  product.weights = args.weights;
  product.bias = args.bias;
  product.multiplier = args.multiplier;
  product.shift = args.shift;
  product.scale = args.scale;
  product.float_scale = args.float_scale;
  product.float_offset = args.float_offset;
  product.contract = args.contract;
  product.float_form = args.float_form;
  product.row_term = args.weights_zero_point != 0 ? terms : nullptr;
  product.num_channels = args.output_c;
  product.out_stride = args.output_c;
  product.output_zero_point = args.output_zero_point;
  product.clamp_min = args.clamp_min;
  product.clamp_max = args.clamp_max;
  const uint32_t groups = num_groups(args);
  for (uint32_t unit = begin; unit < end; ++unit) {
    const uint32_t first_row = unit / groups * kRowChunk, group = unit % groups;
    if (unit == begin || group == 0) {  // another chunk of rows
      const uint32_t left = args.rows - first_row;
      product.num_rows = left < kRowChunk ? left : kRowChunk;
      product.rows = direct ? input + size_t{first_row} * args.input_c : rows;
      for (uint32_t r = 0; r < product.num_rows && !direct; ++r) {
        uint8_t* row = rows + r * row_stride(args);
        copy_flip(row, input + size_t{first_row + r} * args.input_c, args.input_c, flip);
        for (uint32_t k = args.input_c; k % 4 != 0; ++k) row[k] = 0;
      }
      for (uint32_t r = 0; r < product.num_rows && product.row_term != nullptr; ++r) {
        // sum u * (w - z) = sum u * w - z * sum u
        const uint32_t sum = sum_bytes(product.rows + r * product.row_stride, args.input_c);
        terms[r] = static_cast<int32_t>(0u - static_cast<uint32_t>(args.weights_zero_point) * sum);
      }
      product.out = static_cast<uint8_t*>(args.output) + size_t{first_row} * args.output_c;
    }
    const uint32_t first_block = group * kBlockGroup;
    const uint32_t end_block = first_block + kBlockGroup;
    gemm(product, first_block, end_block < num_blocks(args) ? end_block : num_blocks(args));
  }
}

}  // namespace
}  // namespace qplan

#endif  // QPLAN_KERNELS_FULLY_CONNECTED_FULLY_CONNECTED_GEMM_INL_
