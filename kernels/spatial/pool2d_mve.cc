// avg_pool2d and max_pool2d with MVE.
#include <stddef.h>
#include <stdint.h>

#include "kernels/simd/bytes_mve.h"
#include "kernels/spatial/spatial.h"

// avg_pool2d is made of sums of four channels. A quotient is the high half of a product with the inverse of
// the count in 30 binary places, which is exact for the sums that windows of so few elements have.
namespace qplan::avg_pool2d_mve {
namespace {

// A magnitude n is at most 255 * count + count / 2; with inverse = 2^30 / count + e / count, e < count, the
// floor of n * inverse / 2^30 is that of n / count where n * e < 2^30.
constexpr uint64_t kMaxCount = 1 << 11;
static_assert((255 * kMaxCount + kMaxCount / 2) * kMaxCount < uint64_t{1} << 30, "quotients are exact");

#if !defined(QPLAN_ONLY_QUERIES)

template <bool kSigned>
void run_rows(const Pool2dArgs& args, uint32_t begin, uint32_t end) {
  const size_t channels = args.channels, row_bytes = args.input_w * channels;
  const bool is_real = args.contract == Contract::kF32e;
  const Output output(0, args.clamp_min, args.clamp_max);
  const RealOutput real_output(args.output_zero_point, args.clamp_min, args.clamp_max);
  auto* out = static_cast<uint8_t*>(args.output) + size_t{begin} * args.output_w * channels;
  for (uint32_t row = begin; row < end; ++row) {
    const uint32_t n = row / args.output_h, y = row % args.output_h;
    const uint8_t* image = static_cast<const uint8_t*>(args.input) + n * args.input_h * row_bytes;
    const PoolSpan rows = pool_span(y, args.stride_h, args.pad_top, args.pool_h, args.input_h);
    for (uint32_t x = 0; x < args.output_w; ++x, out += channels) {
      const PoolSpan columns = pool_span(x, args.stride_w, args.pad_left, args.pool_w, args.input_w);
      const uint32_t width = columns.end - columns.begin, count = (rows.end - rows.begin) * width;
      const auto inverse = static_cast<int32_t>(((1u << 30) + count - 1) / count);
      const float scale = is_real ? pool_scale_f32e(args, count) : 0.0f;
      const uint8_t* first = image + rows.begin * row_bytes + columns.begin * channels;
      for (size_t c = 0; c < channels; c += kLanes) {
        const mve_pred16_t lanes = vctp32q(static_cast<uint32_t>(channels - c));
        int32x4_t sum = vdupq_n_s32(0);
        const uint8_t* from_row = first + c;
        for (uint32_t i = rows.begin; i < rows.end; ++i, from_row += row_bytes) {
          const uint8_t* from = from_row;
          for (uint32_t j = 0; j < width; ++j, from += channels) {
            sum = vaddq_s32(sum, load_bytes<kSigned>(from, lanes));
          }
        }
        if (is_real) {
          sum = vsubq_n_s32(sum, static_cast<int32_t>(count) * args.input_zero_point);
          store_bytes(out + c, real_output(vmulq_n_f32(vcvtq_f32_s32(sum), scale)), lanes);
          continue;
        }
        const int32x4_t magnitude = vaddq_n_s32(vabsq_s32(sum), static_cast<int32_t>(count / 2));
        const int32x4_t quotient = vqdmulhq_n_s32(vshlq_n_s32(magnitude, 1), inverse);
        store_bytes(out + c, output(vnegq_m_s32(quotient, quotient, vcmpltq_n_s32(sum, 0))), lanes);
      }
    }
  }
}

#endif

}  // namespace

#if !defined(QPLAN_ONLY_RUN)
Refusal accepts(const Pool2dArgs& args) {
  if (args.dtype == Dtype::kS16) return Refusal::kDtype;
  return uint64_t{args.pool_h} * args.pool_w <= kMaxCount ? Refusal::kNone : Refusal::kTooLarge;
}

size_t scratch_bytes(const Pool2dArgs&) { return 0; }

uint32_t work_items(const Pool2dArgs& args) { return args.batch * args.output_h; }
#endif

#if !defined(QPLAN_ONLY_QUERIES)
void run(const Pool2dArgs& args, uint32_t begin, uint32_t end, void*) {
  args.dtype == Dtype::kS8 ? run_rows<true>(args, begin, end) : run_rows<false>(args, begin, end);
}
#endif

}  // namespace qplan::avg_pool2d_mve

// max_pool2d takes 16 channels at a time.
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
