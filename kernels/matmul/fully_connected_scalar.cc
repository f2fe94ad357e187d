// fully_connected for cores that compute in general registers: a row times four channels at a time. A row of
// whole quads of int8 is read as it is, which takes two of sixteen instructions more than one that is
// expanded to pairs of int16 in scratch memory, as others are.
#include <stddef.h>
#include <stdint.h>

#include "kernels/matmul/fully_connected_rows.h"
#include "kernels/matmul/matmul.h"
#include "kernels/scalar/outputs.h"

namespace qplan {
namespace {

constexpr uint32_t kMaxInputs = 1 << 24;

inline uint32_t row_quads(const FullyConnectedArgs& a) { return (a.input_c + 3) / 4; }

inline bool reads_row_as_it_is(const FullyConnectedArgs& a) {
  return a.input_dtype == Dtype::kS8 && a.input_c % 4 == 0 && a.input_zero_point == 0 &&
         a.weights_zero_point == 0 && layout_has_halves(a.weights_layout);
}

inline Refusal scalar_accepts(const FullyConnectedArgs& a) {
  if (a.contract == Contract::kAcc32) return Refusal::kContract;
  if (a.weights_layout != kLayout_o4k4 && a.weights_layout != kLayout_o4h4) return Refusal::kLayout;
  if (kIsForm && (!has_form_alone(a, true) || !reads_row_as_it_is(a) || a.output_c % kRowChannels != 0)) {
    return Refusal::kContract;
  }
  return a.input_c <= kMaxInputs ? Refusal::kNone : Refusal::kTooLarge;
}

#if !defined(QPLAN_ONLY_QUERIES)

// Expands a row less its zero point, filled up with zeros; returns the sum, modulo 2^32, of what it makes.
inline int32_t expand_row(const FullyConnectedArgs& a, const uint8_t* row, uint32_t* to) {
  const bool is_signed = a.input_dtype == Dtype::kS8;
  const uint32_t zero_points = pair_of(a.input_zero_point, a.input_zero_point);
  uint32_t* const words = to;
  for (uint32_t k = a.input_c / 4; k > 0; --k, row += 4, to += 2) {
    const uint32_t quad = load_quad(row);
    to[0] = is_signed ? even_bytes(quad) : even_bytes_u8(quad);
    to[1] = is_signed ? odd_bytes(quad) : odd_bytes_u8(quad);
  }
  if (a.input_c % 4 != 0) {
    int32_t values[4];
    for (uint32_t k = 0; k < 4; ++k) {
      values[k] = k >= a.input_c % 4 ? a.input_zero_point : is_signed ? static_cast<int8_t>(row[k]) : row[k];
    }
    to[0] = pair_of(values[0], values[2]);
    to[1] = pair_of(values[1], values[3]);
  }
  const uint32_t num_words = row_quads(a) * 2;
  for (uint32_t i = 0; a.input_zero_point != 0 && i < num_words; ++i) {
    words[i] = subtract_pairs(words[i], zero_points);
  }
  int32_t sum = 0;
  for (uint32_t i = 0; a.weights_zero_point != 0 && i < num_words; ++i)
    sum = wrap_add(sum, low_of(words[i]) + high_of(words[i]));
  return sum;
}

#if defined(QPLAN_SCALAR_FPU)
inline void run_form_rows(const FullyConnectedArgs& a, const Outputs<FullyConnectedArgs>& outputs,
                          uint32_t begin, uint32_t end) {
  const auto zero_point = static_cast<uint32_t>(a.output_zero_point - dtype_min(a.output_dtype));
  for (uint32_t i = begin; i < end; ++i) {
    const uint8_t* const input = static_cast<const uint8_t*>(a.input) + size_t{i} * a.input_c;
    FormRow row;
    row.bias = a.bias;
    row.scale = a.float_scale;
    row.offset = a.float_offset;
    row.out = static_cast<uint8_t*>(a.output) + size_t{i} * a.output_c;
    row.out_end = row.out + a.output_c;
    row.sign_bias = a.output_dtype == Dtype::kS8 ? 0x80808080u : 0;
    row.zero_point = zero_point << 16 | zero_point;
    row.weights = a.weights;
    row.row = input;
    row.unrolled_end = input + a.input_c / 16 * 16;
    row.end = input + a.input_c;
    outputs.is_signed_form() ? multiply_signed_row(&row) : multiply_plain_row(&row);
  }
}
#endif

inline void run_rows(const FullyConnectedArgs& a, uint32_t begin, uint32_t end, uint32_t* words) {
  const Outputs<FullyConnectedArgs> outputs(a);
  const TowardsZero rounding(outputs.rounds_towards_zero());
  const uint32_t quads = row_quads(a);
  const bool has_halves = layout_has_halves(a.weights_layout), is_plain = reads_row_as_it_is(a);
#if defined(QPLAN_SCALAR_FPU)
  if (kOnlyForm) return run_form_rows(a, outputs, begin, end);
  bool all_have_form = reads_row_as_it_is(a) && a.output_c % kRowChannels == 0 &&
                       (outputs.is_full() || (outputs.is_signed_form() && outputs.has_whole_range()));
  for (uint32_t o = 0; o < a.output_c; o += kFormGroup) all_have_form = all_have_form && outputs.has_form(o);
  if (all_have_form) return run_form_rows(a, outputs, begin, end);
#endif
  for (uint32_t row = begin; row < end; ++row) {
    const uint8_t* input = static_cast<const uint8_t*>(a.input) + size_t{row} * a.input_c;
    uint8_t* out = static_cast<uint8_t*>(a.output) + size_t{row} * a.output_c;
    // sum u * (w - z) = sum u * w - z * sum u
    const int32_t term = is_plain ? 0 : wrap_mul(-a.weights_zero_point, expand_row(a, input, words));
    const int8_t* weights = a.weights;
    for (uint32_t o = 0; o < a.output_c; o += kRowChannels, weights += size_t{quads} * 4 * kRowChannels) {
      int32_t sums[kRowChannels];
      for (uint32_t i = 0; i < kRowChannels; ++i) sums[i] = wrap_add(a.bias[o + i], term);
      if (is_plain) {
        multiply_bytes_halves(sums, input, weights, quads);
      } else {
        (has_halves ? multiply_row_halves : multiply_row)(sums, words, weights, quads);
      }
      const uint32_t count = a.output_c - o < kRowChannels ? a.output_c - o : kRowChannels;
      for (uint32_t i = 0; i < count; ++i) out[o + i] = outputs.output(sums[i], o + i);
    }
  }
}

#endif

}  // namespace

namespace QPLAN_SCALAR_VARIANT(fully_connected) {

#if !defined(QPLAN_ONLY_RUN)
  Refusal accepts(const FullyConnectedArgs& args) { return scalar_accepts(args); }

  size_t scratch_bytes(const FullyConnectedArgs& args) {
    return reads_row_as_it_is(args) ? 0 : (size_t{row_quads(args)} * 2 * sizeof(uint32_t) + 63) / 64 * 64;
  }

  uint32_t work_items(const FullyConnectedArgs& args) { return args.rows; }
#endif

#if !defined(QPLAN_ONLY_QUERIES)
  void run(const FullyConnectedArgs& args, uint32_t begin, uint32_t end, void* scratch) {
    run_rows(args, begin, end, static_cast<uint32_t*>(scratch));
  }
#endif

}  // namespace )

}  // namespace qplan
