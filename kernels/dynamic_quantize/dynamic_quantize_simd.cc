// dynamic_quantize and dynamic_dequantize by vectors of elements.
#include "kernels/dynamic_quantize/dynamic_quantize.h"
#include "kernels/simd/dynamic_rows.h"
#include "kernels/simd/float_functions.h"
#include "kernels/simd/simd.h"

namespace qplan {
namespace {

inline void fill(int8_t* out, uint64_t count, int32_t value) {
  for (uint64_t i = 0; i < count; ++i) out[i] = static_cast<int8_t>(value);
}

inline void dynamic_quantize_rows(const DynamicQuantizeArgs& a, uint32_t begin, uint32_t end) {
  const uint64_t elements = uint64_t{a.input_h} * a.input_w * a.channels;
  const uint64_t inside = a.input_w * a.channels, left = a.pad_left * a.channels;
  const uint64_t line = a.output_w * a.channels;
  for (uint32_t r = begin; r < end; ++r) {
    const float* x = a.input + r * elements;
    float least, most;
    find_ends(x, elements, &least, &most);
    const DynamicScale scale = dynamic_scale(least, most, a.symmetric);
    a.scale[r] = scale.scale;
    a.zero_point[r] = scale.zero_point;
    int8_t* out = a.output + r * a.output_h * line;
    fill(out, a.pad_top * line, scale.zero_point);
    out += a.pad_top * line;
    for (uint32_t y = 0; y < a.input_h; ++y, out += line, x += inside) {
      fill(out, left, scale.zero_point);
      quantize_run(x, out + left, inside, scale, a.symmetric);
      fill(out + left + inside, line - left - inside, scale.zero_point);
    }
    fill(out, (a.output_h - a.pad_top - a.input_h) * line, scale.zero_point);
  }
}

inline void dynamic_dequantize_pixels(const DynamicDequantizeArgs& a, uint32_t begin, uint32_t end) {
  const VecF32 least = set_reals(a.clamp_min), most = set_reals(a.clamp_max);
  for (uint32_t pixel = begin; pixel < end; ++pixel) {
    const uint32_t r = pixel / a.pixels;
    const uint64_t first = uint64_t{pixel} * a.channels;
    const VecI32 zero_point = set_ints(a.zero_point[r]);
    const VecF32 scale = set_reals(a.scale[r]);
    for (uint32_t o = 0; o < a.channels; o += kLanes) {
      const uint32_t count = a.channels - o < kLanes ? a.channels - o : kLanes;
      const VecI32 offset = mul(load_ints(a.weight_sum + o, count), zero_point);
      const VecF32 real = to_reals(sub(load_ints(a.input + first + o, count), offset));
      const VecF32 weight_scale = load_reals(a.weight_scale + o, count);
      const VecF32 value =
          a.in_turn ? mul(mul(real, weight_scale), scale) : mul(real, mul(weight_scale, scale));
      store_reals(a.output + first + o, clamp(add(value, load_reals(a.bias + o, count)), least, most), count);
    }
  }
}

}  // namespace

QPLAN_SIMD_NAMESPACE(dynamic_quantize) {

#if !defined(QPLAN_ONLY_RUN)
Refusal accepts(const DynamicQuantizeArgs&) { return Refusal::kNone; }

size_t scratch_bytes(const DynamicQuantizeArgs&) { return 0; }

uint32_t work_items(const DynamicQuantizeArgs& args) { return args.rows; }
#endif

#if !defined(QPLAN_ONLY_QUERIES)
void run(const DynamicQuantizeArgs& args, uint32_t begin, uint32_t end, void*) {
  dynamic_quantize_rows(args, begin, end);
}
#endif

}  // QPLAN_SIMD_NAMESPACE(dynamic_quantize)

QPLAN_SIMD_NAMESPACE(dynamic_dequantize) {

#if !defined(QPLAN_ONLY_RUN)
Refusal accepts(const DynamicDequantizeArgs&) { return Refusal::kNone; }

size_t scratch_bytes(const DynamicDequantizeArgs&) { return 0; }

uint32_t work_items(const DynamicDequantizeArgs& args) { return args.rows * args.pixels; }
#endif

#if !defined(QPLAN_ONLY_QUERIES)
void run(const DynamicDequantizeArgs& args, uint32_t begin, uint32_t end, void*) {
  dynamic_dequantize_pixels(args, begin, end);
}
#endif

}  // QPLAN_SIMD_NAMESPACE(dynamic_dequantize)

}  // namespace qplan
