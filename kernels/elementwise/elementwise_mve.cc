// add, sub, mul and lut8 with Armv8.1-M's vectors (MVE), four elements or 16 look-ups at a time. F32E
// divides, which MVE does not.
#include <stddef.h>
#include <stdint.h>

#include "kernels/elementwise/add.h"
#include "kernels/elementwise/broadcast.h"
#include "kernels/elementwise/elementwise.h"
#include "kernels/simd/bytes_mve.h"

namespace qplan {
namespace {

template <typename Args>
Refusal accepts_tfl2_bytes(const Args& args) {
  if (args.contract != Contract::kTfl2) return Refusal::kContract;
  return args.dtype == Dtype::kS16 ? Refusal::kDtype : Refusal::kNone;
}

#if !defined(QPLAN_ONLY_QUERIES)

// By the float form where the packer has proved one, otherwise as TFL2 says.
template <bool kSigned>
inline void add_elements_of(const AddArgs& args, bool subtract, uint32_t begin, uint32_t end) {
  if (args.float_scale1 > 0.0f) {
    // The difference of sub is in the sign of a scale.
    const Output output(0, args.clamp_min, args.clamp_max);
    const float32x4_t offset = vdupq_n_f32(args.float_offset);
    for_each_four<kSigned>(args, begin, end, [&](int32x4_t a, int32x4_t b) {
      const float32x4_t second = vfmaq_n_f32(offset, vcvtq_f32_s32(b), args.float_scale2);
      return output(vcvtnq_s32_f32(vfmaq_n_f32(second, vcvtq_f32_s32(a), args.float_scale1)));
    });
    return;
  }
  const Requant requant1(args.input1_multiplier, args.input1_shift);
  const Requant requant2(args.input2_multiplier, args.input2_shift);
  const Requant requant(args.output_multiplier, args.output_shift);
  const Output output(args.output_zero_point, args.clamp_min, args.clamp_max);
  for_each_four<kSigned>(args, begin, end, [&](int32x4_t a, int32x4_t b) {
    a = requant1(vshlq_r_s32(vsubq_n_s32(a, args.input1_zero_point), args.left_shift));
    b = requant2(vshlq_r_s32(vsubq_n_s32(b, args.input2_zero_point), args.left_shift));
    return output(requant(subtract ? vsubq_s32(a, b) : vaddq_s32(a, b)));
  });
}

inline void add_elements(const AddArgs& args, bool subtract, uint32_t begin, uint32_t end) {
  if (args.dtype == Dtype::kS8) {
    add_elements_of<true>(args, subtract, begin, end);
  } else {
    add_elements_of<false>(args, subtract, begin, end);
  }
}

#endif

}  // namespace
}  // namespace qplan

namespace qplan::add_mve {

#if !defined(QPLAN_ONLY_RUN)
Refusal accepts(const AddArgs& args) { return accepts_tfl2_bytes(args); }

size_t scratch_bytes(const AddArgs&) { return 0; }

uint32_t work_items(const AddArgs& args) { return num_chunks(args.broadcast.elements); }
#endif

#if !defined(QPLAN_ONLY_QUERIES)
void run(const AddArgs& args, uint32_t begin, uint32_t end, void*) { add_elements(args, false, begin, end); }
#endif

}  // namespace qplan::add_mve

namespace qplan::sub_mve {

#if !defined(QPLAN_ONLY_RUN)
Refusal accepts(const AddArgs& args) { return accepts_tfl2_bytes(args); }

size_t scratch_bytes(const AddArgs&) { return 0; }

uint32_t work_items(const AddArgs& args) { return num_chunks(args.broadcast.elements); }
#endif

#if !defined(QPLAN_ONLY_QUERIES)
void run(const AddArgs& args, uint32_t begin, uint32_t end, void*) { add_elements(args, true, begin, end); }
#endif

}  // namespace qplan::sub_mve

namespace qplan::mul_mve {
namespace {

#if !defined(QPLAN_ONLY_QUERIES)
template <bool kSigned>
void run_elements(const MulArgs& args, uint32_t begin, uint32_t end) {
  const Requant requant(args.output_multiplier, args.output_shift);
  const Output output(args.output_zero_point, args.clamp_min, args.clamp_max);
  for_each_four<kSigned>(args, begin, end, [&](int32x4_t a, int32x4_t b) {
    a = vsubq_n_s32(a, args.input1_zero_point);
    b = vsubq_n_s32(b, args.input2_zero_point);
    return output(requant(vmulq_s32(a, b)));
  });
}
#endif

}  // namespace

#if !defined(QPLAN_ONLY_RUN)
Refusal accepts(const MulArgs& args) { return accepts_tfl2_bytes(args); }

size_t scratch_bytes(const MulArgs&) { return 0; }

uint32_t work_items(const MulArgs& args) { return num_chunks(args.broadcast.elements); }
#endif

#if !defined(QPLAN_ONLY_QUERIES)
void run(const MulArgs& args, uint32_t begin, uint32_t end, void*) {
  args.dtype == Dtype::kS8 ? run_elements<true>(args, begin, end) : run_elements<false>(args, begin, end);
}
#endif

}  // namespace qplan::mul_mve

namespace qplan::lut8_mve {

#if !defined(QPLAN_ONLY_RUN)
Refusal accepts(const Lut8Args&) { return Refusal::kNone; }

size_t scratch_bytes(const Lut8Args&) { return 0; }

uint32_t work_items(const Lut8Args& args) { return num_chunks(args.elements); }
#endif

#if !defined(QPLAN_ONLY_QUERIES)
void run(const Lut8Args& args, uint32_t begin, uint32_t end, void*) {
  const ElementRange range = chunk_range(args.elements, begin, end);
  const uint8_t* from = args.input + range.begin;
  uint8_t* to = args.output + range.begin;
  for (auto left = static_cast<uint32_t>(range.end - range.begin); left != 0;) {
    const mve_pred16_t lanes = vctp8q(left);
    // 16 look-ups by one gathering load.
    vstrbq_p_u8(to, vldrbq_gather_offset_z_u8(args.table, vldrbq_z_u8(from, lanes), lanes), lanes);
    from += 16;
    to += 16;
    left -= left < 16 ? left : 16;
  }
}
#endif

}  // namespace qplan::lut8_mve
