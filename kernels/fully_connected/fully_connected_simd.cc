// fully_connected as a matrix product of rows and packed weights.
#include <stddef.h>
#include <stdint.h>

#include "kernels/fully_connected/fully_connected.h"
#include "kernels/fully_connected/fully_connected_rows.h"
#include "kernels/numeric/gemm.h"
#include "kernels/simd/gemm.h"
#include "kernels/simd/simd.h"

namespace qplan {
namespace {

inline void fully_connected_gemm(const FullyConnectedArgs& args, uint32_t begin, uint32_t end,
                                 void* scratch) {
  auto* terms = static_cast<int32_t*>(scratch);
  uint8_t* copies = static_cast<uint8_t*>(scratch) + term_bytes(args);
  const bool direct = rows_are_input(args);
  constexpr size_t kNoOffset[1] = {0};
  Gemm product = gemm_of(args);
  product.has_eights = layout_group(args.weights_layout) == 8;
  if (!direct && row_copy_sign_bias(args, kKeepsBytes) != 0) product.sign_bias = 0;
  product.first_row = copies;
  product.row_stride = direct ? args.input_c : row_copy_bytes(args);
  product.num_taps = 1;
  product.tap_bytes = args.input_c;
  product.tap_offsets = kNoOffset;
  product.row_term = args.weights_zero_point != 0 ? terms : nullptr;
  const uint32_t groups = num_groups(args), most_rows = row_chunk(args), most_blocks = block_group(args);
  for (uint32_t work_item = begin; work_item < end; ++work_item) {
    const uint32_t first = work_item / groups * most_rows, group = work_item % groups;
    if (work_item == begin || group == 0) {  // another chunk of rows
      const uint32_t left = args.rows - first;
      product.num_rows = left < most_rows ? left : most_rows;
      product.first_out = static_cast<uint8_t*>(args.output) + first * product.out_stride;
      if (direct) {
        product.first_row = static_cast<const uint8_t*>(args.input) + size_t{first} * args.input_c;
      } else {
        copy_rows<copy_run, kKeepsBytes>(args, first, product.num_rows, copies);
      }
      // sum u * (w - z) = sum u * w - z * sum u
      if (args.weights_zero_point != 0) row_sums(product, -args.weights_zero_point, terms);
    }
    const uint32_t first_block = group * most_blocks;
    const uint32_t end_block = first_block + most_blocks;
    QPLAN_SIMD_VARIANT(gemm)::run(product, first_block,
                                  end_block < num_blocks(args) ? end_block : num_blocks(args));
  }
}

}  // namespace

QPLAN_SIMD_NAMESPACE(fully_connected) {

#if !defined(QPLAN_ONLY_RUN)
Refusal accepts(const FullyConnectedArgs& args) {
  return rows_accepts(args, kProductMakesSums, is_product_origin(args.input_dtype, args.input_zero_point),
                      kProductTakesEights);
}

size_t scratch_bytes(const FullyConnectedArgs& args) { return rows_scratch_bytes(args); }

uint32_t work_items(const FullyConnectedArgs& args) { return row_work_items(args); }
#endif

#if !defined(QPLAN_ONLY_QUERIES)
void run(const FullyConnectedArgs& args, uint32_t begin, uint32_t end, void* scratch) {
  fully_connected_gemm(args, begin, end, scratch);
}
#endif

}  // QPLAN_SIMD_NAMESPACE(fully_connected)

}  // namespace qplan
