// max_pool2d with MVE, 16 channels at a time.
#include <stddef.h>
#include <stdint.h>

#include "kernels/pool2d/pool2d.h"
#include "kernels/simd/bytes_mve.h"

namespace qplan::max_pool2d_mve {
namespace {

#if !defined(QPLAN_ONLY_QUERIES)

constexpr uint32_t kBytes = 16;

// Bytes as unsigned ones: those of int8 ^ 0x80.
void run_rows(const Pool2dArgs& args, uint32_t begin, uint32_t end) {
  const size_t channels = args.channels, row_bytes = args.input_w * channels;
  const uint8_t sign_bias = args.dtype == Dtype::kS8 ? 0x80 : 0;
  const uint8x16_t sign_biases = vdupq_n_u8(sign_bias);
  const uint8x16_t low = vdupq_n_u8(static_cast<uint8_t>(args.clamp_min) ^ sign_bias);
  const uint8x16_t high = vdupq_n_u8(static_cast<uint8_t>(args.clamp_max) ^ sign_bias);
  auto* out = static_cast<uint8_t*>(args.output) + size_t{begin} * args.output_w * channels;
  for (uint32_t row = begin; row < end; ++row) {
    const uint32_t n = row / args.output_h, y = row % args.output_h;
    const uint8_t* image = static_cast<const uint8_t*>(args.input) + n * args.input_h * row_bytes;
    const PoolSpan rows = pool_span(y, args.stride_h, args.pad_top, args.pool_h, args.input_h);
    for (uint32_t x = 0; x < args.output_w; ++x, out += channels) {
      const PoolSpan columns = pool_span(x, args.stride_w, args.pad_left, args.pool_w, args.input_w);
      const uint8_t* first = image + rows.begin * row_bytes + columns.begin * channels;
      for (size_t c = 0; c < channels; c += kBytes) {
        const mve_pred16_t lanes = vctp8q(static_cast<uint32_t>(channels - c));
        uint8x16_t largest = low;
        const uint8_t* from_row = first + c;
        for (uint32_t i = rows.begin; i < rows.end; ++i, from_row += row_bytes) {
          const uint8_t* from = from_row;
          for (uint32_t j = columns.begin; j < columns.end; ++j, from += channels) {
            largest = vmaxq_u8(largest, veorq_u8(vldrbq_z_u8(from, lanes), sign_biases));
          }
        }
        vstrbq_p_u8(out + c, veorq_u8(vminq_u8(largest, high), sign_biases), lanes);
      }
    }
  }
}

#endif

}  // namespace

#if !defined(QPLAN_ONLY_RUN)
Refusal accepts(const Pool2dArgs& args) {
  return args.dtype == Dtype::kS16 ? Refusal::kDtype : Refusal::kNone;
}

size_t scratch_bytes(const Pool2dArgs&) { return 0; }

uint32_t work_items(const Pool2dArgs& args) { return args.batch * args.output_h; }
#endif

#if !defined(QPLAN_ONLY_QUERIES)
void run(const Pool2dArgs& args, uint32_t begin, uint32_t end, void*) { run_rows(args, begin, end); }
#endif

}  // namespace qplan::max_pool2d_mve
