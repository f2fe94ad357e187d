// From sums to outputs, for cores that make one at a time: by the float epilogue where the core has a
// floating point unit and the packer a proof, otherwise by the contract's integers. Internal linkage only.
#ifndef QPLAN_KERNELS_SCALAR_OUTPUTS_H_
#define QPLAN_KERNELS_SCALAR_OUTPUTS_H_

#include <stddef.h>
#include <stdint.h>

#include "kernels/elementwise/add.h"
#include "kernels/numeric/dtype.h"
#include "kernels/numeric/requantize.h"
#include "kernels/scalar/dsp.h"

// Who includes this is <name>_scalar.cc, compiled once for each instruction set without vectors
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

// Channels that share the choice between float epilogue and integers.
constexpr uint32_t kFormGroup = 16;

// What <family>_<isa>_form computes: int8 without zero points of inputs and weights, whose outputs all have a
// float epilogue and the whole range of int8, from its least value on, or also signed ones.
template <typename Args>
bool has_form_alone(const Args& a, bool may_be_signed = false) {
  if (a.input_dtype != Dtype::kS8 || a.output_dtype != Dtype::kS8 || a.input_zero_point != 0 ||
      a.weights_zero_point != 0 || a.clamp_min != -128 || a.clamp_max != 127) {
    return false;
  }
  const bool is_plain = a.float_epilogue == FloatEpilogue::kPlain && a.output_zero_point == -128;
  if (!is_plain && (!may_be_signed || a.float_epilogue != FloatEpilogue::kSigned)) return false;
  for (uint32_t o = 0; o < a.output_c; o += kFormGroup) {
    if (!(a.float_scale[o] >= 0.0f)) return false;
  }
  return true;
}

#if defined(QPLAN_SCALAR_FPU)
constexpr bool kHasFloatEpilogue = true;

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

// The float epilogue of a sum (kernels/elementwise/add.h), under the rounding to nearest that cores begin
// with.
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

// float_sum of int8 where the clamp is that of int8.
inline void add_signed_bytes(const AddFormula& f, const uint8_t* a, const uint8_t* b, uint32_t count,
                             uint8_t* out) {
  const float scale1 = f.float_scale1, scale2 = f.float_scale2, offset = f.float_offset;
  for (uint32_t i = 0; i < count; ++i) {
    const int32_t first = static_cast<int8_t>(a[i]), second = static_cast<int8_t>(b[i]);
    float x, y, value = offset;
    int32_t result;
    __asm__("vmov %0, %1" : "=t"(x) : "r"(first));
    __asm__("vmov %0, %1" : "=t"(y) : "r"(second));
    __asm__("vcvt.f32.s32 %0, %0" : "+t"(x));
    __asm__("vcvt.f32.s32 %0, %0" : "+t"(y));
    __asm__("vfma.f32 %0, %1, %2" : "+t"(value) : "t"(y), "t"(scale2));
    __asm__("vfma.f32 %0, %1, %2" : "+t"(value) : "t"(x), "t"(scale1));
    __asm__("vcvtr.s32.f32 %0, %0" : "+t"(value));
    __asm__("vmov %0, %1" : "=r"(result) : "t"(value));
    __asm__("ssat %0, #8, %0" : "+r"(result));
    out[i] = static_cast<uint8_t>(result);
  }
}
#else
constexpr bool kHasFloatEpilogue = false;

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
        has_form_(kHasFloatEpilogue && args.float_epilogue != FloatEpilogue::kNone),
        is_signed_form_(args.float_epilogue == FloatEpilogue::kSigned),
        // Outputs that begin at the zero point, which is the least value, and end at the largest: the
        // conversion to unsigned integers is one clamp and USAT the other.
        has_whole_range_(has_form_ && low_ == dtype_min(args.output_dtype) && high_ == low_ + 255),
        is_full_(has_whole_range_ && !is_signed_form_ && zero_point_ == low_) {}

  // Whether the float epilogue computes the group that channel o belongs to.
  bool has_form(uint32_t o) const {
    return kOnlyForm || (has_form_ && args_.float_scale[o / kFormGroup * kFormGroup] >= 0.0f);
  }
  bool is_full() const { return is_full_; }
  bool is_signed_form() const { return is_signed_form_; }
  // Outputs have a float epilogue and are clamped to all values of their dtype, no fewer.
  bool has_whole_range() const { return has_whole_range_; }
  bool rounds_towards_zero() const { return kOnlyForm || has_form_; }

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
  const bool has_form_, is_signed_form_, has_whole_range_, is_full_;
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

// Four channels of three pixels at a time, from products to outputs, where weights are in halves
// (multiply_tile_halves), Outputs::has_whole_range() holds and all channels have a float epilogue.
struct FormTiles {
  const int32_t* bias;  // these five: of the next channel
  const float* scale;
  const float* offset;
  uint8_t* out;
  uint32_t second, third;  // bytes from the first pixel's outputs to those of the others
  const uint8_t* out_end;
  uint32_t sign_bias;   // of four outputs
  uint32_t zero_point;  // less the least value of the dtype, as a pair
  const int8_t* weights;
  const uint32_t* pixels;  // [quads][2][pixel]
  const uint32_t* end;
  uint32_t entry;  // FormTiles::entry_of(quads)

  // The loop has four quads and is entered in the middle of the one that makes their number right: its first
  // half has been multiplied with the bias as sum. Bytes of code, and the bit of Thumb.
  static uint32_t entry_of(uint32_t quads) { return (4 - quads % 4) % 4 * 68 + 36 + 1; }
};
static_assert(sizeof(FormTiles) == 52 && offsetof(FormTiles, weights) == 36, "the assembly knows its fields");

// Registers are given out by hand: what a compiler would spill around the products takes a fifth of them
// where channels are few. lr is the end of the pixels, r1 the weights. s28 and s31 hold where the loops of
// the first and of the last two channels are entered, s29 the pixels, s30 the struct; s6 to s9 the biases,
// s12 to s15 the scales, s16 to s27 what is added to each pixel, then the outputs.
#define QPLAN_FORM_BEGIN       \
  "vmov s30, r0\n\t"           \
  "ldrd r1, r2, [r0, #36]\n\t" \
  "vmov s29, r2\n\t"           \
  "ldrd lr, r3, [r0, #44]\n\t" \
  "adr.w r2, 2f\n\t"           \
  "add r2, r2, r3\n\t"         \
  "vmov s28, r2\n\t"           \
  "adr.w r2, 3f\n\t"           \
  "add r2, r2, r3\n\t"         \
  "vmov s31, r2\n"             \
  "1:\n\t"                     \
  "vmov r2, s30\n\t"           \
  "ldmia r2, {r3, r4, r5}\n\t" \
  "vldmia r3!, {s6-s9}\n\t"    \
  "vldmia r4!, {s12-s15}\n\t"

// Half a quad, with the even channel's bias (r4) as the sum of both; then the rest, from the entry on.
#define QPLAN_FORM_PRODUCTS(even, entry, label)                                                   \
  "vmov r4, " even                                                                                \
  "\n\t"                                                                                          \
  "vmov r0, s29\n\t"                                                                              \
  "ldmia.w r1!, {r11, r12}\n\t"                                                                   \
  "ldmia.w r0!, {r2, r3, r10}\n\t"                                                                \
  "smlad r5, r2, r11, r4\n\t"                                                                     \
  "smlad r7, r3, r11, r4\n\t"                                                                     \
  "smlad r9, r10, r11, r4\n\t"                                                                    \
  "sxtb16 r11, r11\n\t"                                                                           \
  "smlad r6, r3, r11, r4\n\t"                                                                     \
  "smlad r8, r10, r11, r4\n\t"                                                                    \
  "smlad r4, r2, r11, r4\n\t"                                                                     \
  "vmov r2, " entry                                                                               \
  "\n\t"                                                                                          \
  "bx r2\n" label ":\n\t" QPLAN_HALVES_QUAD QPLAN_HALVES_QUAD QPLAN_HALVES_QUAD QPLAN_HALVES_QUAD \
  ".if (. - " label                                                                               \
  "b) != 4 * 68\n\t"                                                                              \
  ".error \"FormTiles::entry_of\"\n\t"                                                            \
  ".endif\n\t"                                                                                    \
  "cmp r0, lr\n\t"                                                                                \
  "bne " label "b\n\t"

// The odd channel's sums.
#define QPLAN_FORM_SUMS(odd)   \
  "vmov r3, " odd              \
  "\n\t"                       \
  "sub r5, r5, r4\n\t"         \
  "sub r7, r7, r6\n\t"         \
  "sub r9, r9, r8\n\t"         \
  "add r5, r3, r5, asr #8\n\t" \
  "add r7, r3, r7, asr #8\n\t" \
  "add r9, r3, r9, asr #8\n\t"
#define QPLAN_FORM_KEEP(p0, p1, p2) \
  "vmov " p0                        \
  ", r4, r5\n\t"                    \
  "vmov " p1                        \
  ", r6, r7\n\t"                    \
  "vmov " p2 ", r8, r9\n\t"

// What is added has the sign of the sum.
#define QPLAN_FORM_SIGN(even, odd, to) \
  "and r2, " even                      \
  ", #0x80000000\n\t"                  \
  "and r3, " odd                       \
  ", #0x80000000\n\t"                  \
  "orr r2, r2, r10\n\t"                \
  "orr r3, r3, r11\n\t"                \
  "vmov " to ", r2, r3\n\t"
#define QPLAN_FORM_SIGNS(offsets, p1, p2)                                                               \
  "vmov r10, r11, " offsets "\n\t" QPLAN_FORM_SIGN("r4", "r5", offsets) QPLAN_FORM_SIGN("r6", "r7", p1) \
      QPLAN_FORM_SIGN("r8", "r9", p2)

#define QPLAN_FORM_VALUES         \
  "vcvt.f32.s32 s0, s0\n\t"       \
  "vcvt.f32.s32 s1, s1\n\t"       \
  "vcvt.f32.s32 s6, s6\n\t"       \
  "vcvt.f32.s32 s7, s7\n\t"       \
  "vcvt.f32.s32 s2, s2\n\t"       \
  "vcvt.f32.s32 s3, s3\n\t"       \
  "vcvt.f32.s32 s8, s8\n\t"       \
  "vcvt.f32.s32 s9, s9\n\t"       \
  "vcvt.f32.s32 s4, s4\n\t"       \
  "vcvt.f32.s32 s5, s5\n\t"       \
  "vcvt.f32.s32 s10, s10\n\t"     \
  "vcvt.f32.s32 s11, s11\n\t"     \
  "vfma.f32 s16, s0, s12\n\t"     \
  "vfma.f32 s17, s1, s13\n\t"     \
  "vfma.f32 s18, s6, s14\n\t"     \
  "vfma.f32 s19, s7, s15\n\t"     \
  "vfma.f32 s20, s2, s12\n\t"     \
  "vfma.f32 s21, s3, s13\n\t"     \
  "vfma.f32 s22, s8, s14\n\t"     \
  "vfma.f32 s23, s9, s15\n\t"     \
  "vfma.f32 s24, s4, s12\n\t"     \
  "vfma.f32 s25, s5, s13\n\t"     \
  "vfma.f32 s26, s10, s14\n\t"    \
  "vfma.f32 s27, s11, s15\n\t"    \
  "vcvt.s16.f32 s16, s16, #0\n\t" \
  "vcvt.s16.f32 s17, s17, #0\n\t" \
  "vcvt.s16.f32 s18, s18, #0\n\t" \
  "vcvt.s16.f32 s19, s19, #0\n\t" \
  "vcvt.s16.f32 s20, s20, #0\n\t" \
  "vcvt.s16.f32 s21, s21, #0\n\t" \
  "vcvt.s16.f32 s22, s22, #0\n\t" \
  "vcvt.s16.f32 s23, s23, #0\n\t" \
  "vcvt.s16.f32 s24, s24, #0\n\t" \
  "vcvt.s16.f32 s25, s25, #0\n\t" \
  "vcvt.s16.f32 s26, s26, #0\n\t" \
  "vcvt.s16.f32 s27, s27, #0\n\t"

// Four outputs: saturated to int16, which their zero point moves and the clamp saturates once more.
#define QPLAN_FORM_STORE(first, last, zero_point, address) \
  "vmov r4, r5, " first                                    \
  "\n\t"                                                   \
  "vmov r6, r7, " last                                     \
  "\n\t"                                                   \
  "pkhbt r4, r4, r6, lsl #16\n\t"                          \
  "pkhbt r5, r5, r7, lsl #16\n\t" zero_point               \
  "usat16 r4, #8, r4\n\t"                                  \
  "usat16 r5, #8, r5\n\t"                                  \
  "orr r4, r4, r5, lsl #8\n\t"                             \
  "eor r4, r4, r11\n\t"                                    \
  "str r4, " address "\n\t"
#define QPLAN_FORM_END(zero_point) \
  "vmov r2, s30\n\t"                                            \
  "ldrd r8, r9, [r2, #12]\n\t"                                  \
  "ldrd r3, r10, [r2, #20]\n\t"                                 \
  "ldrd r11, r12, [r2, #28]\n\t"                                \
  QPLAN_FORM_STORE("s24, s25", "s26, s27", zero_point, "[r8, r3]")   \
  QPLAN_FORM_STORE("s20, s21", "s22, s23", zero_point, "[r8, r9]")   \
  QPLAN_FORM_STORE("s16, s17", "s18, s19", zero_point, "[r8], #4")   \
  "str r8, [r2, #12]\n\t"                                       \
  "cmp r8, r10\n\t"                                             \
  "bne 1b\n\t"
#define QPLAN_FORM_CLOBBERS                                                                                \
  "r1", "r2", "r3", "r4", "r5", "r6", "r7", "r8", "r9", "r10", "r11", "r12", "lr", "s0", "s1", "s2", "s3", \
      "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11", "s12", "s13", "s14", "s15", "s16", "s17", "s18",   \
      "s19", "s20", "s21", "s22", "s23", "s24", "s25", "s26", "s27", "s28", "s29", "s30", "s31", "cc",     \
      "memory"

// FloatEpilogue::kPlain, whose outputs begin at the zero point.
__attribute__((noinline)) inline void multiply_plain_tiles(FormTiles* tiles) {
  register FormTiles* at __asm__("r0") = tiles;
  __asm__ volatile(QPLAN_FORM_BEGIN
                   "vldmia r5, {s16-s19}\n\t"
                   "vldmia r5, {s20-s23}\n\t"
                   "vldmia r5!, {s24-s27}\n\t"
                   "stmia r2, {r3, r4, r5}\n\t"  //
                   QPLAN_FORM_PRODUCTS("s6", "s28", "2") QPLAN_FORM_SUMS("s7")
                       QPLAN_FORM_KEEP("s0, s1", "s2, s3", "s4, s5")  //
                   QPLAN_FORM_PRODUCTS("s8", "s31", "3") QPLAN_FORM_SUMS("s9")
                       QPLAN_FORM_KEEP("s6, s7", "s8, s9", "s10, s11")  //
                   QPLAN_FORM_VALUES QPLAN_FORM_END("")
                   : "+r"(at)
                   :
                   : QPLAN_FORM_CLOBBERS);
}

// FloatEpilogue::kSigned.
__attribute__((noinline)) inline void multiply_signed_tiles(FormTiles* tiles) {
  register FormTiles* at __asm__("r0") = tiles;
  __asm__ volatile(QPLAN_FORM_BEGIN
                   "vldmia r5!, {s16-s19}\n\t"
                   "stmia r2, {r3, r4, r5}\n\t"  //
                   QPLAN_FORM_PRODUCTS("s6", "s28", "2") QPLAN_FORM_SUMS("s7") QPLAN_FORM_KEEP(
                       "s0, s1", "s2, s3", "s4, s5") QPLAN_FORM_SIGNS("s16, s17", "s20, s21", "s24, s25")  //
                   QPLAN_FORM_PRODUCTS("s8", "s31", "3") QPLAN_FORM_SUMS("s9")
                       QPLAN_FORM_KEEP("s6, s7", "s8, s9", "s10, s11")
                           QPLAN_FORM_SIGNS("s18, s19", "s22, s23", "s26, s27")  //
                   QPLAN_FORM_VALUES QPLAN_FORM_END("qadd16 r4, r4, r12\n\tqadd16 r5, r5, r12\n\t")
                   : "+r"(at)
                   :
                   : QPLAN_FORM_CLOBBERS);
}
#undef QPLAN_FORM_BEGIN
#undef QPLAN_FORM_PRODUCTS
#undef QPLAN_FORM_SUMS
#undef QPLAN_FORM_KEEP
#undef QPLAN_FORM_SIGN
#undef QPLAN_FORM_SIGNS
#undef QPLAN_FORM_VALUES
#undef QPLAN_FORM_STORE
#undef QPLAN_FORM_END
#undef QPLAN_FORM_CLOBBERS

// The same for a row of int8 as it is, four channels at a time: a row that is expanded saves two of sixteen
// instructions of a quad, and takes twice its bytes of scratch.
struct FormRow {
  const int32_t* bias;  // these four: of the next channel
  const float* scale;
  const float* offset;
  uint8_t* out;
  const uint8_t* out_end;
  uint32_t sign_bias;   // of four outputs
  uint32_t zero_point;  // less the least value of the dtype, as a pair
  const int8_t* weights;
  const uint8_t* row;
  const uint8_t* unrolled_end;
  const uint8_t* end;
};
static_assert(sizeof(FormRow) == 44 && offsetof(FormRow, weights) == 28, "the assembly knows its fields");

// Both sums of two channels begin with the even one's bias; s12 to s15 are the biases.
#define QPLAN_ROW_SUMS                                                         \
  "mov r12, r0\n\t"                                                            \
  "ldr r1, [r12, #28]\n"                                                       \
  "1:\n\t"                                                                     \
  "ldr r2, [r12]\n\t"                                                          \
  "vldmia r2!, {s12-s15}\n\t"                                                  \
  "str r2, [r12]\n\t"                                                          \
  "vmov r4, s12\n\t"                                                           \
  "vmov r6, s14\n\t"                                                           \
  "mov r5, r4\n\t"                                                             \
  "mov r7, r6\n\t"                                                             \
  "ldrd r0, lr, [r12, #32]\n\t"                                                \
  "cmp r0, lr\n\t"                                                             \
  "beq 3f\n"                                                                   \
  "2:\n\t" QPLAN_BYTES_QUAD QPLAN_BYTES_QUAD QPLAN_BYTES_QUAD QPLAN_BYTES_QUAD \
  "cmp r0, lr\n\t"                                                             \
  "bne 2b\n"                                                                   \
  "3:\n\t"                                                                     \
  "ldr lr, [r12, #40]\n\t"                                                     \
  "cmp r0, lr\n\t"                                                             \
  "beq 5f\n"                                                                   \
  "4:\n\t" QPLAN_BYTES_QUAD                                                    \
  "cmp r0, lr\n\t"                                                             \
  "bne 4b\n"                                                                   \
  "5:\n\t"                                                                     \
  "vmov r3, s13\n\t"                                                           \
  "vmov r8, s15\n\t"                                                           \
  "sub r5, r5, r4\n\t"                                                         \
  "sub r7, r7, r6\n\t"                                                         \
  "add r5, r3, r5, asr #8\n\t"                                                 \
  "add r7, r8, r7, asr #8\n\t"                                                 \
  "vmov s0, s1, r4, r5\n\t"                                                    \
  "vmov s2, s3, r6, r7\n\t"                                                    \
  "ldrd r2, r3, [r12, #4]\n\t"                                                 \
  "vldmia r2!, {s4, s5, s6, s7}\n\t"
#define QPLAN_ROW_SIGN(sum, offset) \
  "and r0, " sum                    \
  ", #0x80000000\n\t"               \
  "orr " offset ", " offset ", r0\n\t"
#define QPLAN_ROW_OUTPUTS(zero_point)        \
  "strd r2, r3, [r12, #4]\n\t"               \
  "vcvt.f32.s32 s0, s0\n\t"                  \
  "vcvt.f32.s32 s1, s1\n\t"                  \
  "vcvt.f32.s32 s2, s2\n\t"                  \
  "vcvt.f32.s32 s3, s3\n\t"                  \
  "vfma.f32 s8, s0, s4\n\t"                  \
  "vfma.f32 s9, s1, s5\n\t"                  \
  "vfma.f32 s10, s2, s6\n\t"                 \
  "vfma.f32 s11, s3, s7\n\t"                 \
  "vcvt.s16.f32 s8, s8, #0\n\t"              \
  "vcvt.s16.f32 s9, s9, #0\n\t"              \
  "vcvt.s16.f32 s10, s10, #0\n\t"            \
  "vcvt.s16.f32 s11, s11, #0\n\t"            \
  "vmov r4, r5, s8, s9\n\t"                  \
  "vmov r6, r7, s10, s11\n\t"                \
  "ldrd r8, r9, [r12, #12]\n\t"              \
  "ldrd r10, r11, [r12, #20]\n\t"            \
  "pkhbt r4, r4, r6, lsl #16\n\t"            \
  "pkhbt r5, r5, r7, lsl #16\n\t" zero_point \
  "usat16 r4, #8, r4\n\t"                    \
  "usat16 r5, #8, r5\n\t"                    \
  "orr r4, r4, r5, lsl #8\n\t"               \
  "eor r4, r4, r10\n\t"                      \
  "str r4, [r8], #4\n\t"                     \
  "str r8, [r12, #12]\n\t"                   \
  "cmp r8, r9\n\t"                           \
  "bne 1b\n\t"

// FloatForm::kPlain, whose outputs begin at the zero point.
__attribute__((noinline)) inline void multiply_plain_row(FormRow* row) {
  register FormRow* at __asm__("r0") = row;
  __asm__ volatile(QPLAN_ROW_SUMS "vldmia r3!, {s8, s9, s10, s11}\n\t" QPLAN_ROW_OUTPUTS("")
                   : "+r"(at)
                   :
                   : "r1", "r2", "r3", "r4", "r5", "r6", "r7", "r8", "r9", "r10", "r11", "r12", "lr", "s0",
                     "s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11", "s12", "s13", "s14",
                     "s15", "cc", "memory");
}

// FloatForm::kSigned.
__attribute__((noinline)) inline void multiply_signed_row(FormRow* row) {
  register FormRow* at __asm__("r0") = row;
  __asm__ volatile(QPLAN_ROW_SUMS "ldmia r3!, {r8, r9, r10, r11}\n\t"                                    //
                   QPLAN_ROW_SIGN("r4", "r8") QPLAN_ROW_SIGN("r5", "r9") QPLAN_ROW_SIGN("r6", "r10")     //
                   QPLAN_ROW_SIGN("r7", "r11") "vmov s8, s9, r8, r9\n\t"
                                               "vmov s10, s11, r10, r11\n\t"                             //
                   QPLAN_ROW_OUTPUTS("qadd16 r4, r4, r11\n\tqadd16 r5, r5, r11\n\t")
                   : "+r"(at)
                   :
                   : "r1", "r2", "r3", "r4", "r5", "r6", "r7", "r8", "r9", "r10", "r11", "r12", "lr", "s0", "s1",
                     "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11", "s12", "s13", "s14", "s15",
                     "cc", "memory");
}
#undef QPLAN_ROW_SUMS
#undef QPLAN_ROW_SIGN
#undef QPLAN_ROW_OUTPUTS
#endif

}  // namespace
}  // namespace qplan

#endif  // QPLAN_KERNELS_SCALAR_OUTPUTS_H_
