// fully_connected as a matrix product of rows and packed weights.
#include "kernels/fully_connected/fully_connected.h"
#include "kernels/fully_connected/fully_connected_rows.inl"
#include "kernels/numeric/gemm_avx512vnni.inl"

namespace qplan::fully_connected_avx512vnni {

bool accepts(const FullyConnectedArgs& args) { return rows_accepts(args); }

size_t scratch_bytes(const FullyConnectedArgs& args) { return rows_scratch_bytes(args); }

uint32_t units(const FullyConnectedArgs& args) { return row_units(args); }

void run(const FullyConnectedArgs& args, uint32_t begin, uint32_t end, void* scratch) {
  const bool direct = rows_are_input(args);
  const uint8_t flip = args.input_dtype == Dtype::kS8 ? 0x80 : 0;
  const uint8_t* input = static_cast<const uint8_t*>(args.input);
  uint8_t* rows = static_cast<uint8_t*>(scratch);
  int32_t* terms = reinterpret_cast<int32_t*>(rows + (direct ? 0 : chunk_rows(args) * row_stride(args)));

  Gemm512 gemm;
  gemm.row_stride = direct ? args.input_c : row_stride(args);
  gemm.num_k4 = (args.input_c + 3) / 4;
  gemm.weights = args.weights;
  gemm.bias = args.bias;
  gemm.multiplier = args.multiplier;
  gemm.shift = args.shift;
  gemm.row_term = args.weights_zero_point != 0 ? terms : nullptr;
  gemm.num_channels = args.output_c;
  gemm.out_stride = args.output_c;
  gemm.output = output512(args.output_zero_point, args.clamp_min, args.clamp_max);
  const uint32_t groups = num_groups(args);
  for (uint32_t unit = begin; unit < end; ++unit) {
    const uint32_t first_row = unit / groups * kRowChunk, group = unit % groups;
    if (unit == begin || group == 0) {  // another chunk of rows
      const uint32_t left = args.rows - first_row;
      gemm.num_rows = left < kRowChunk ? left : kRowChunk;
      gemm.rows = direct ? input + size_t{first_row} * args.input_c : rows;
      for (uint32_t r = 0; r < gemm.num_rows && !direct; ++r) {
        uint8_t* row = rows + r * row_stride(args);
        copy_flip512(row, input + size_t{first_row + r} * args.input_c, args.input_c, flip);
        for (uint32_t k = args.input_c; k % 4 != 0; ++k) row[k] = 0;
      }
      for (uint32_t r = 0; r < gemm.num_rows && gemm.row_term != nullptr; ++r) {
        // sum u * (w - z) = sum u * w - z * sum u
        const uint32_t sum = sum_bytes512(gemm.rows + r * gemm.row_stride, args.input_c);
        terms[r] = static_cast<int32_t>(0u - static_cast<uint32_t>(args.weights_zero_point) * sum);
      }
      gemm.out = static_cast<uint8_t*>(args.output) + size_t{first_row} * args.output_c;
    }
    const uint32_t first_block = group * kBlockGroup;
    const uint32_t end_block = first_block + kBlockGroup;
    gemm512(gemm, first_block, end_block < num_blocks(args) ? end_block : num_blocks(args));
  }
}

}  // namespace qplan::fully_connected_avx512vnni
