#include "kernels/elementwise/broadcast.h"
#include "kernels/l2_normalization/l2_normalization.h"
#include "kernels/numeric/fixed_point.h"

namespace qplan {
namespace l2_normalization_ref {
namespace {

template <typename T>
void run_row(const L2NormalizationArgs& args, const T* in, T* out) {
  int32_t squares = 0;
  for (uint32_t i = 0; i < args.depth; ++i) {
    const int32_t v = in[i] - args.input_zero_point;
    squares += v * v;
  }
  const InverseSqrt inverse = fixed_inverse_sqrt(squares);
  for (uint32_t i = 0; i < args.depth; ++i) {
    const int32_t v = in[i] - args.input_zero_point;
    if (args.dtype == Dtype::kS8) {
      out[i] = static_cast<T>(
          clamp_s32(requantize_tfl2(v, inverse.multiplier, inverse.shift + 7), INT8_MIN, INT8_MAX));
    } else {
      out[i] = static_cast<T>(
          add_clamp(requantize_tfl2(128 * v, inverse.multiplier, inverse.shift), 128, 0, UINT8_MAX));
    }
  }
}

template <typename T>
void run_rows(const L2NormalizationArgs& args, ElementRange rows) {
  for (uint64_t row = rows.begin; row < rows.end; ++row) {
    run_row(args, static_cast<const T*>(args.input) + row * args.depth,
            static_cast<T*>(args.output) + row * args.depth);
  }
}

}  // namespace

Refusal accepts(const L2NormalizationArgs&) { return Refusal::kNone; }
size_t scratch_bytes(const L2NormalizationArgs&) { return 0; }
uint32_t work_items(const L2NormalizationArgs& args) { return num_chunks(args.rows); }

void run(const L2NormalizationArgs& args, uint32_t begin, uint32_t end, void*) {
  const ElementRange rows = chunk_range(args.rows, begin, end);
  if (args.dtype == Dtype::kS8) {
    run_rows<int8_t>(args, rows);
  } else {
    run_rows<uint8_t>(args, rows);
  }
}

}  // namespace l2_normalization_ref
}  // namespace qplan
