// From sums to outputs, for cores that make one at a time: by the float form where the core has a floating
// point unit and the packer a proof, otherwise by the contract's integers. Internal linkage only.
#ifndef QPLAN_KERNELS_SCALAR_OUTPUTS_H_
#define QPLAN_KERNELS_SCALAR_OUTPUTS_H_

#include <stddef.h>
#include <stdint.h>

#include "kernels/add/add_formula.h"
#include "kernels/numeric/dtype.h"
#include "kernels/numeric/requantize.h"
#include "kernels/scalar/dsp.h"

// Who includes this is <family>_scalar.cc, compiled once for each instruction set without vectors
// (cmake/QplanIsa.cmake) with its name: QPLAN_SCALAR_VARIANT(conv2d) is conv2d_<isa>, the namespace of a
// variant.
#if !defined(QPLAN_SCALAR_ISA)
#define QPLAN_SCALAR_ISA dsp
#endif
#define QPLAN_SCALAR_JOIN_(name, isa) name##_##isa
#define QPLAN_SCALAR_JOIN(name, isa) QPLAN_SCALAR_JOIN_(name, isa)
#define QPLAN_SCALAR_VARIANT(name) QPLAN_SCALAR_JOIN(name, QPLAN_SCALAR_ISA)

namespace qplan {
namespace {

// Channels that share the choice between float form and integers.
constexpr uint32_t kFormGroup = 16;

#if defined(QPLAN_SCALAR_FPU)
constexpr bool kHasFloatForm = true;

inline uint32_t float_status() {
  uint32_t status;
  __asm__ volatile("vmrs %0, fpscr" : "=r"(status));
  return status;
}
inline void set_float_status(uint32_t status) {
  __asm__ volatile("vmsr fpscr, %0" : : "r"(status) : "memory");
}

// Rounds floats towards zero while it lives.
class TowardsZero {
 public:
  explicit TowardsZero(bool is_wanted) : status_(is_wanted ? float_status() : 0), is_wanted_(is_wanted) {
    if (is_wanted) set_float_status(status_ | 3u << 22);
  }
  ~TowardsZero() {
    if (is_wanted_) set_float_status(status_);
  }
  TowardsZero(const TowardsZero&) = delete;
  TowardsZero& operator=(const TowardsZero&) = delete;

 private:
  uint32_t status_;
  bool is_wanted_;
};

// int(fma(float(sum), scale, offset)), saturating.
inline int32_t form_value(int32_t sum, float scale, float offset) {
  float value;
  int32_t result;
  __asm__("vmov %0, %1" : "=t"(value) : "r"(sum));
  __asm__("vcvt.f32.s32 %0, %0" : "+t"(value));
  __asm__("vfma.f32 %0, %1, %2" : "+t"(offset) : "t"(value), "t"(scale));
  __asm__("vcvt.s32.f32 %0, %0" : "+t"(offset));
  __asm__("vmov %0, %1" : "=r"(result) : "t"(offset));
  return result;
}

inline float with_sign_of(float positive, int32_t sum) {
  uint32_t bits;
  __builtin_memcpy(&bits, &positive, 4);
  bits |= static_cast<uint32_t>(sum) & 0x80000000u;
  __builtin_memcpy(&positive, &bits, 4);
  return positive;
}

// The float form of a sum (kernels/add/add_formula.h), under the rounding to nearest that cores begin with.
inline int32_t float_sum(const AddFormula& f, int32_t a, int32_t b) {
  float x, y, value = f.float_offset;
  int32_t result;
  __asm__("vmov %0, %1" : "=t"(x) : "r"(a));
  __asm__("vmov %0, %1" : "=t"(y) : "r"(b));
  __asm__("vcvt.f32.s32 %0, %0" : "+t"(x));
  __asm__("vcvt.f32.s32 %0, %0" : "+t"(y));
  __asm__("vfma.f32 %0, %1, %2" : "+t"(value) : "t"(y), "t"(f.float_scale2));
  __asm__("vfma.f32 %0, %1, %2" : "+t"(value) : "t"(x), "t"(f.float_scale1));
  __asm__("vcvtr.s32.f32 %0, %0" : "+t"(value));
  __asm__("vmov %0, %1" : "=r"(result) : "t"(value));
  return clamp_s32(result, f.clamp_min, f.clamp_max);
}
#else
constexpr bool kHasFloatForm = false;

struct TowardsZero {
  explicit TowardsZero(bool) {}
};
inline int32_t form_value(int32_t sum, float, float) { return sum; }
inline float with_sign_of(float positive, int32_t) { return positive; }
inline int32_t float_sum(const AddFormula& f, int32_t a, int32_t b) { return sum_of(f, a, b, false); }
#endif

// Makes the outputs of a layer with channels: of Conv2dArgs or FullyConnectedArgs.
template <typename Args>
class Outputs {
 public:
  explicit Outputs(const Args& args)
      : args_(args),
        zero_point_(args.output_zero_point),
        low_(args.clamp_min),
        high_(args.clamp_max),
        has_form_(kHasFloatForm && args.float_form != FloatForm::kNone),
        is_signed_form_(args.float_form == FloatForm::kSigned),
        // Outputs that begin at the zero point, which is the least value, and end at the largest: the
        // conversion to unsigned integers is one clamp and USAT the other.
        is_full_(has_form_ && !is_signed_form_ && zero_point_ == dtype_min(args.output_dtype) &&
                 low_ == zero_point_ && high_ == zero_point_ + 255) {}

  // Whether the float form computes the group that channel o belongs to.
  bool has_form(uint32_t o) const {
    return has_form_ && args_.float_scale[o / kFormGroup * kFormGroup] >= 0.0f;
  }
  bool is_full() const { return is_full_; }
  bool rounds_towards_zero() const { return has_form_; }

  // The output of channel o, as a byte.
  uint8_t output(int32_t sum, uint32_t o) const {
    if (has_form(o)) return form_output(sum, args_.float_scale[o], args_.float_offset[o]);
    return static_cast<uint8_t>(requantize_channel(args_, sum, o));
  }
  uint8_t form_output(int32_t sum, float scale, float offset) const {
    if (is_signed_form_) offset = with_sign_of(offset, sum);
    const int32_t value = wrap_add(form_value(sum, scale, offset), zero_point_);
    return static_cast<uint8_t>(clamp_s32(value, low_, high_));
  }

 private:
  const Args& args_;
  const int32_t zero_point_, low_, high_;
  const bool has_form_, is_signed_form_, is_full_;
};

#if defined(QPLAN_SCALAR_FPU)
// An output where Outputs::is_full().
inline uint8_t full_output(int32_t sum, float scale, float offset, uint32_t sign_bias) {
  float value;
  uint32_t byte;
  __asm__("vmov %0, %1" : "=t"(value) : "r"(sum));
  __asm__("vcvt.f32.s32 %0, %0" : "+t"(value));
  __asm__("vfma.f32 %0, %1, %2" : "+t"(offset) : "t"(value), "t"(scale));
  __asm__("vcvt.u32.f32 %0, %0" : "+t"(offset));
  __asm__("vmov %0, %1" : "=r"(byte) : "t"(offset));
  __asm__("usat %0, #8, %0" : "+r"(byte));
  return static_cast<uint8_t>(byte ^ sign_bias);
}

// Two neighbouring outputs where Outputs::is_full(), as two bytes.
inline uint32_t full_outputs(int32_t sum0, int32_t sum1, float scale0, float scale1, const float* offsets,
                             uint32_t sign_bias) {
  uint32_t low, high;
  __asm__(
      "vmov s0, s1, %[sum0], %[sum1]\n\t"
      "vldr d1, [%[offsets]]\n\t"
      "vcvt.f32.s32 s0, s0\n\t"
      "vcvt.f32.s32 s1, s1\n\t"
      "vfma.f32 s2, s0, %[scale0]\n\t"
      "vfma.f32 s3, s1, %[scale1]\n\t"
      "vcvt.u32.f32 s2, s2\n\t"
      "vcvt.u32.f32 s3, s3\n\t"
      "vmov %[low], %[high], s2, s3\n\t"
      "usat %[low], #8, %[low]\n\t"
      "usat %[high], #8, %[high]\n\t"
      : [low] "=&r"(low), [high] "=&r"(high)
      : [sum0] "r"(sum0), [sum1] "r"(sum1), [scale0] "t"(scale0), [scale1] "t"(scale1),
        [offsets] "r"(offsets), "m"(offsets[0]), "m"(offsets[1])
      : "s0", "s1", "s2", "s3");
  return (low | high << 8) ^ sign_bias;
}

// Two channels of three pixels at a time, from products to outputs, where Outputs::is_full() and weights are
// in halves (multiply_tile_halves).
struct PlainTiles {
  const uint32_t* pixels;  // [quads][2][pixel]
  const uint32_t* unrolled_end;
  const uint32_t* end;
  const int8_t* weights;
  const int32_t* bias;  // these four: of the next channel
  const float* scale;
  const float* offset;
  uint8_t* out;
  const uint8_t* out_end;
  uint32_t channels;  // from a pixel's outputs to the next one's
  uint32_t sign_bias;
};
static_assert(sizeof(PlainTiles) == 44 && offsetof(PlainTiles, channels) == 36,
              "the assembly knows its fields");

// What a compiler would spill around the products takes a fifth of them where channels are few: registers are
// given out by hand. s31 holds the struct's address, s30 the odd channel's bias.
__attribute__((noinline)) inline void multiply_plain_tiles(PlainTiles* tiles) {
  register PlainTiles* at __asm__("r0") = tiles;
  __asm__ volatile(
      "vmov s31, r0\n\t"
      "mov lr, r0\n\t"
      "ldr r1, [r0, #12]\n"
      // Both sums of each pixel begin with the even channel's bias.
      "1:\n\t"
      "ldr r2, [lr, #16]\n\t"
      "ldrd r4, r3, [r2], #8\n\t"
      "str r2, [lr, #16]\n\t"
      "vmov s30, r3\n\t"
      "mov r5, r4\n\t"
      "mov r6, r4\n\t"
      "mov r7, r4\n\t"
      "mov r8, r4\n\t"
      "mov r9, r4\n\t"
      "ldrd r0, lr, [lr]\n\t"
      "cmp r0, lr\n\t"
      "beq 3f\n"
      "2:\n\t" QPLAN_HALVES_QUAD QPLAN_HALVES_QUAD QPLAN_HALVES_QUAD QPLAN_HALVES_QUAD
      "cmp r0, lr\n\t"
      "bne 2b\n"
      "3:\n\t"
      "vmov r2, s31\n\t"
      "ldr lr, [r2, #8]\n\t"
      "cmp r0, lr\n\t"
      "beq 5f\n"
      "4:\n\t" QPLAN_HALVES_QUAD
      "cmp r0, lr\n\t"
      "bne 4b\n\t"
      "vmov r2, s31\n"
      // The odd channel's sums.
      "5:\n\t"
      "vmov r3, s30\n\t"
      "sub r5, r5, r4\n\t"
      "sub r7, r7, r6\n\t"
      "sub r9, r9, r8\n\t"
      "add r5, r3, r5, asr #8\n\t"
      "add r7, r3, r7, asr #8\n\t"
      "add r9, r3, r9, asr #8\n\t"
      "ldrd r3, r10, [r2, #20]\n\t"
      "vmov s0, s1, r4, r5\n\t"
      "vmov s2, s3, r6, r7\n\t"
      "vmov s4, s5, r8, r9\n\t"
      "vldr d3, [r3]\n\t"
      "vldr d4, [r10]\n\t"
      "vldr d5, [r10]\n\t"
      "vldr d6, [r10]\n\t"
      "adds r3, r3, #8\n\t"
      "add r10, r10, #8\n\t"
      "strd r3, r10, [r2, #20]\n\t"
      "vcvt.f32.s32 s0, s0\n\t"
      "vcvt.f32.s32 s1, s1\n\t"
      "vcvt.f32.s32 s2, s2\n\t"
      "vcvt.f32.s32 s3, s3\n\t"
      "vcvt.f32.s32 s4, s4\n\t"
      "vcvt.f32.s32 s5, s5\n\t"
      "vfma.f32 s8, s0, s6\n\t"
      "vfma.f32 s9, s1, s7\n\t"
      "vfma.f32 s10, s2, s6\n\t"
      "vfma.f32 s11, s3, s7\n\t"
      "vfma.f32 s12, s4, s6\n\t"
      "vfma.f32 s13, s5, s7\n\t"
      "vcvt.u32.f32 s8, s8\n\t"
      "vcvt.u32.f32 s9, s9\n\t"
      "vcvt.u32.f32 s10, s10\n\t"
      "vcvt.u32.f32 s11, s11\n\t"
      "vcvt.u32.f32 s12, s12\n\t"
      "vcvt.u32.f32 s13, s13\n\t"
      "vmov r4, r5, s8, s9\n\t"
      "vmov r6, r7, s10, s11\n\t"
      "vmov r8, r9, s12, s13\n\t"
      "usat r4, #8, r4\n\t"
      "usat r5, #8, r5\n\t"
      "usat r6, #8, r6\n\t"
      "usat r7, #8, r7\n\t"
      "usat r8, #8, r8\n\t"
      "usat r9, #8, r9\n\t"
      "ldrd r3, r10, [r2, #36]\n\t"
      "ldrd r11, r12, [r2, #28]\n\t"
      "orr r4, r4, r5, lsl #8\n\t"
      "orr r6, r6, r7, lsl #8\n\t"
      "orr r8, r8, r9, lsl #8\n\t"
      "eor r4, r4, r10\n\t"
      "eor r6, r6, r10\n\t"
      "eor r8, r8, r10\n\t"
      "strh r8, [r11, r3, lsl #1]\n\t"
      "strh r6, [r11, r3]\n\t"
      "strh r4, [r11], #2\n\t"
      "str r11, [r2, #28]\n\t"
      "mov lr, r2\n\t"
      "cmp r11, r12\n\t"
      "bne 1b\n\t"
      : "+r"(at)
      :
      : "r1", "r2", "r3", "r4", "r5", "r6", "r7", "r8", "r9", "r10", "r11", "r12", "lr", "s0", "s1", "s2",
        "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11", "s12", "s13", "s30", "s31", "cc", "memory");
}

// The same for a row, four channels at a time (multiply_row_halves).
struct PlainRow {
  const uint32_t* row;
  const uint32_t* unrolled_end;
  const uint32_t* end;
  const int8_t* weights;
  const int32_t* bias;
  const float* scale;
  const float* offset;
  uint8_t* out;
  const uint8_t* out_end;
  uint32_t sign_bias;
};
static_assert(sizeof(PlainRow) == 40, "the assembly knows its fields");

__attribute__((noinline)) inline void multiply_plain_row(PlainRow* row) {
  register PlainRow* at __asm__("r0") = row;
#define QPLAN_ROW_QUAD                \
  "ldmia r0!, {r2, r3}\n\t"           \
  "ldmia r1!, {r8, r9, r10, r11}\n\t" \
  "smlad r5, r2, r8, r5\n\t"          \
  "sxtb16 r8, r8\n\t"                 \
  "smlad r4, r2, r8, r4\n\t"          \
  "smlad r7, r2, r9, r7\n\t"          \
  "sxtb16 r9, r9\n\t"                 \
  "smlad r6, r2, r9, r6\n\t"          \
  "smlad r5, r3, r10, r5\n\t"         \
  "sxtb16 r10, r10\n\t"               \
  "smlad r4, r3, r10, r4\n\t"         \
  "smlad r7, r3, r11, r7\n\t"         \
  "sxtb16 r11, r11\n\t"               \
  "smlad r6, r3, r11, r6\n\t"
  __asm__ volatile(
      "mov r12, r0\n\t"
      "ldr r1, [r12, #12]\n"
      // Both sums of two channels begin with the even one's bias.
      "1:\n\t"
      "ldr r2, [r12, #16]\n\t"
      "ldr r4, [r2]\n\t"
      "ldr r6, [r2, #8]\n\t"
      "mov r5, r4\n\t"
      "mov r7, r6\n\t"
      "ldrd r0, lr, [r12]\n\t"
      "cmp r0, lr\n\t"
      "beq 3f\n"
      "2:\n\t" QPLAN_ROW_QUAD QPLAN_ROW_QUAD QPLAN_ROW_QUAD QPLAN_ROW_QUAD
      "cmp r0, lr\n\t"
      "bne 2b\n"
      "3:\n\t"
      "ldr lr, [r12, #8]\n\t"
      "cmp r0, lr\n\t"
      "beq 5f\n"
      "4:\n\t" QPLAN_ROW_QUAD
      "cmp r0, lr\n\t"
      "bne 4b\n"
      "5:\n\t"
      "ldr r2, [r12, #16]\n\t"
      "ldr r3, [r2, #4]\n\t"
      "ldr r8, [r2, #12]\n\t"
      "adds r2, r2, #16\n\t"
      "str r2, [r12, #16]\n\t"
      "sub r5, r5, r4\n\t"
      "sub r7, r7, r6\n\t"
      "add r5, r3, r5, asr #8\n\t"
      "add r7, r8, r7, asr #8\n\t"
      "vmov s0, s1, r4, r5\n\t"
      "vmov s2, s3, r6, r7\n\t"
      "ldrd r2, r3, [r12, #20]\n\t"
      "vldmia r2!, {s4, s5, s6, s7}\n\t"
      "vldmia r3!, {s8, s9, s10, s11}\n\t"
      "strd r2, r3, [r12, #20]\n\t"
      "vcvt.f32.s32 s0, s0\n\t"
      "vcvt.f32.s32 s1, s1\n\t"
      "vcvt.f32.s32 s2, s2\n\t"
      "vcvt.f32.s32 s3, s3\n\t"
      "vfma.f32 s8, s0, s4\n\t"
      "vfma.f32 s9, s1, s5\n\t"
      "vfma.f32 s10, s2, s6\n\t"
      "vfma.f32 s11, s3, s7\n\t"
      "vcvt.u32.f32 s8, s8\n\t"
      "vcvt.u32.f32 s9, s9\n\t"
      "vcvt.u32.f32 s10, s10\n\t"
      "vcvt.u32.f32 s11, s11\n\t"
      "vmov r4, r5, s8, s9\n\t"
      "vmov r6, r7, s10, s11\n\t"
      "ldrd r8, r9, [r12, #28]\n\t"
      "ldr r10, [r12, #36]\n\t"
      "usat r4, #8, r4\n\t"
      "usat r5, #8, r5\n\t"
      "usat r6, #8, r6\n\t"
      "usat r7, #8, r7\n\t"
      "orr r4, r4, r5, lsl #8\n\t"
      "orr r4, r4, r6, lsl #16\n\t"
      "orr r4, r4, r7, lsl #24\n\t"
      "eor r4, r4, r10\n\t"
      "str r4, [r8], #4\n\t"
      "str r8, [r12, #28]\n\t"
      "cmp r8, r9\n\t"
      "bne 1b\n\t"
      : "+r"(at)
      :
      : "r1", "r2", "r3", "r4", "r5", "r6", "r7", "r8", "r9", "r10", "r11", "r12", "lr", "s0", "s1", "s2",
        "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11", "cc", "memory");
#undef QPLAN_ROW_QUAD
}
#endif

}  // namespace
}  // namespace qplan

#endif  // QPLAN_KERNELS_SCALAR_OUTPUTS_H_
