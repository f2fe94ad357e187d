// The way from the sums of 16 channels to their outputs, in registers of RISC-V's vectors: four of them hold
// 16 int32 where they have 128 bits, and longer ones are filled less. Internal linkage only.
#ifndef QPLAN_KERNELS_SIMD_OUTPUTS_RVV_H_
#define QPLAN_KERNELS_SIMD_OUTPUTS_RVV_H_

#include <riscv_vector.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/simd/rvv.h"

namespace qplan {
namespace {

// Fixed-point instructions round to nearest, ties upwards, until the function that says so returns.
inline void round_ties_up() { __asm__ volatile("csrwi vxrm, 0"); }

// Outputs without zero point and clamp of the sums of `count` channels from `channel` on. Conversions to
// int32 end at its ends, and round as frm says: towards zero under EpilogueRounding.
template <typename Epilogue>
struct WideEpilogue;

template <>
struct WideEpilogue<PlainEpilogue> {
  template <typename Args>
  static vint32m4_t outputs(const Args& args, uint32_t channel, vint32m4_t sums, size_t count) {
    const vfloat32m4_t scale = vle32_v_f32m4(args.float_scale + channel, count);
    const vfloat32m4_t offset = vle32_v_f32m4(args.float_offset + channel, count);
    const vfloat32m4_t reals = vfcvt_f_x_v_f32m4(sums, count);
    return vfcvt_x_f_v_i32m4(vfmadd_vv_f32m4(reals, scale, offset, count), count);
  }
};

template <>
struct WideEpilogue<SignedEpilogue> {
  template <typename Args>
  static vint32m4_t outputs(const Args& args, uint32_t channel, vint32m4_t sums, size_t count) {
    const vfloat32m4_t scale = vle32_v_f32m4(args.float_scale + channel, count);
    const vfloat32m4_t offset = vle32_v_f32m4(args.float_offset + channel, count);
    const vfloat32m4_t reals = vfcvt_f_x_v_f32m4(sums, count);
    const vfloat32m4_t signed_offset = vfsgnj_vv_f32m4(offset, reals, count);
    return vfcvt_x_f_v_i32m4(vfmadd_vv_f32m4(reals, scale, signed_offset, count), count);
  }
};

template <>
struct WideEpilogue<F32eEpilogue> {
  template <typename Args>
  static vint32m4_t outputs(const Args& args, uint32_t channel, vint32m4_t sums, size_t count) {
    const vfloat32m4_t scale = vle32_v_f32m4(args.scale + channel, count);
    const vfloat32m4_t reals = vfmul_vv_f32m4(vfcvt_f_x_v_f32m4(sums, count), scale, count);
    return vfcvt_x_f_v_i32m4(vfmin_vf_f32m4(reals, 65536.0f, count), count);
  }
};

// The rounding shift takes ties upwards; one less for what is negative takes them away from zero.
template <>
struct WideEpilogue<Tfl2Epilogue> {
  template <typename Args>
  static vint32m4_t outputs(const Args& args, uint32_t channel, vint32m4_t sums, size_t count) {
    const vint32m4_t shift = vle32_v_i32m4(args.shift + channel, count);
    const vint32m4_t left = vmax_vx_i32m4(shift, 0, count), right = vmin_vx_i32m4(shift, 0, count);
    vint32m4_t v = vsll_vv_i32m4(sums, vreinterpret_v_i32m4_u32m4(left), count);
    v = vsmul_vv_i32m4(v, vle32_v_i32m4(args.multiplier + channel, count), count);
    v = vsadd_vv_i32m4(v, vsra_vx_i32m4(vand_vv_i32m4(v, right, count), 31, count), count);
    return vssra_vv_i32m4(v, vreinterpret_v_i32m4_u32m4(vneg_v_i32m4(right, count)), count);
  }
};

template <>
struct WideEpilogue<Tfl1Epilogue> {
  template <typename Args>
  static vint32m4_t outputs(const Args& args, uint32_t channel, vint32m4_t sums, size_t count) {
    const vint64m8_t product = vwmul_vv_i64m8(sums, vle32_v_i32m4(args.multiplier + channel, count), count);
    const vint32m4_t right = vrsub_vx_i32m4(vle32_v_i32m4(args.shift + channel, count), 31, count);
    const vuint64m8_t by = vzext_vf2_u64m8(vreinterpret_v_i32m4_u32m4(right), count);
    return vncvt_x_x_w_i32m4(vssra_vv_i64m8(product, by, count), count);
  }
};

// Zero point and clamp: writes the bytes of `count` channels.
struct WideBytes {
  int32_t zero_point, clamp_min, clamp_max;
  template <typename Args>
  explicit WideBytes(const Args& args)
      : zero_point(args.output_zero_point),
        clamp_min(args.clamp_min - args.output_zero_point),
        clamp_max(args.clamp_max - args.output_zero_point) {}
  void store(uint8_t* to, vint32m4_t outputs, size_t count) const {
    const vint32m4_t low = vmax_vx_i32m4(outputs, clamp_min, count);
    const vint32m4_t clamped = vmin_vx_i32m4(low, clamp_max, count);
    const vint16m2_t words =
        vadd_vx_i16m2(vncvt_x_x_w_i16m2(clamped, count), static_cast<int16_t>(zero_point), count);
    vse8_v_i8m1(reinterpret_cast<int8_t*>(to), vncvt_x_x_w_i8m1(words, count), count);
  }
};

}  // namespace
}  // namespace qplan

#endif  // QPLAN_KERNELS_SIMD_OUTPUTS_RVV_H_
