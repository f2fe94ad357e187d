// The vector of the instruction set that a source is compiled for, by names that are the same for all of
// them. Kernels are written once, over these names, in <name>_simd.cc; cmake/QplanIsa.cmake compiles it for
// each instruction set of kernels/isa.def and says which by three macros:
//
//   QPLAN_SIMD_HEADER    "kernels/simd/<isa>.h": that instruction set's vocabulary
//   QPLAN_SIMD_ISA       its name: QPLAN_SIMD_NAMESPACE(add) is the namespace of a variant, add_<isa>
//   QPLAN_SIMD_VECTORS   the one whose vectors it has: its own name, or its base's (isa.def, "dot")
//
// An instruction set's header defines
//   VecI32, kLanes           a vector of int32, or of bits of any kind; how many
//   VecF32, LaneBytes        as many float32; the bytes of as many elements
//   kBytes                   how many bytes a VecI32 has
//   set_*, load_*, store_*   with a count: the first so many elements, and no memory beyond them is touched
//   add, sub, mul, max, ...  lane by lane; names with _bytes and _words are of bytes and of 16 bits. They
//                            interleave and pack within 128 bits: packing what was interleaved has the old
//                            order
//   first_bytes, first_equal what is searched in bytes; largest_in_all
//   ByteTable                look_up(bytes) in a table of 256
//   PixelMover               16 pixels of 2 to 4 channels between planes and pixels
//   Requant, RequantOnce     TFL2 and TFL1: set_requant, load_requant (..._once), requantize
//   low_bytes, OutputBytes   int32 to bytes, saturating
//   kHasFma                  whether there are float epilogues (kernels/numeric/requantize.h), PlainEpilogue
//                            and SignedEpilogue: under an EpilogueRounding around a function that is not
//                            inlined
//   takes_centred            which zero points layers take; with QPLAN_SIMD_OWN_CENTRED
//   kDot..., dot_*           dot products of groups of four bytes (kernels/simd/gemm.h). In their place:
//                            QPLAN_SIMD_TILES, QPLAN_SIMD_ROWS or QPLAN_SIMD_GEMM, headers of its own tiles,
//                            rows, or whole product
//   QPLAN_SIMD_FIRST_LAYERS  a header of conv2d for layers that such a product is no good for
//                            (kernels/conv2d/conv2d_simd.cc)
//   QPLAN_SIMD_INTERLEAVED_LAYERS  another one, for those whose rows it interleaves
//   QPLAN_SIMD_EIGHTS        that product takes weights in groups of eight bytes, too
// An editor that opens a file alone sees kernels/simd/generic.h. Internal linkage only, as for all code that
// is compiled with an instruction set's flags.
#ifndef QPLAN_KERNELS_SIMD_SIMD_H_
#define QPLAN_KERNELS_SIMD_SIMD_H_

#if !defined(QPLAN_SIMD_ISA)
#define QPLAN_SIMD_ISA generic
#define QPLAN_SIMD_VECTORS generic
#define QPLAN_SIMD_HEADER "kernels/simd/generic.h"
#endif

#if defined(QPLAN_SIMD_HEADER)
#include QPLAN_SIMD_HEADER
#endif

#define QPLAN_SIMD_PASTE(name, isa) name##_##isa
#define QPLAN_SIMD_JOIN(name, isa) QPLAN_SIMD_PASTE(name, isa)
#define QPLAN_SIMD_NAMESPACE(name) namespace QPLAN_SIMD_JOIN(name, QPLAN_SIMD_ISA)
#define QPLAN_SIMD_VARIANT(name) QPLAN_SIMD_JOIN(name, QPLAN_SIMD_ISA)
// The variant of a family without dot products for the same processor.
#define QPLAN_SIMD_VECTOR_VARIANT(name) QPLAN_SIMD_JOIN(name, QPLAN_SIMD_VECTORS)

namespace qplan {
namespace {

#if !defined(QPLAN_SIMD_OWN_CENTRED)
// Whether layers take inputs whose zero point is the dtype's middle, so that bytes seen as int8 are the
// factors. Their line buffers hold bytes as they are.
inline bool takes_centred(Dtype) { return false; }
constexpr bool kKeepsBytes = false;
#else
constexpr bool kKeepsBytes = true;
#endif
// All take the dtype's minimum, so that bytes seen as uint8 are the factors. The packer chooses one of them.
inline bool is_product_origin(Dtype dtype, int32_t zero_point) {
  return zero_point == dtype_min(dtype) || (takes_centred(dtype) && zero_point == dtype_middle(dtype));
}

// Parts of scratch memory begin at multiples of 64 bytes.
inline uint64_t aligned_to_64(uint64_t bytes) { return (bytes + 63) / 64 * 64; }

// Zero point and clamp of an 8-bit output. The clamp comes first, less the zero point: that sum cannot wrap.
struct Output {
  VecI32 zero_point;
  VecI32 clamp_min;
  VecI32 clamp_max;
};

inline Output set_output(int32_t zero_point, int32_t clamp_min, int32_t clamp_max) {
  return {set_ints(zero_point), set_ints(clamp_min - zero_point), set_ints(clamp_max - zero_point)};
}

// The bytes after zero point and clamp.
inline LaneBytes finish(VecI32 v, const Output& out) {
  return low_bytes(add(min(max(v, out.clamp_min), out.clamp_max), out.zero_point));
}

// The same for F32E, where the clamp is one of reals.
struct RealOutput {
  VecI32 zero_point;
  VecF32 clamp_min;
  VecF32 clamp_max;
};

inline RealOutput set_real_output(int32_t zero_point, int32_t clamp_min, int32_t clamp_max) {
  return {set_ints(zero_point), set_reals(static_cast<float>(clamp_min - zero_point)),
          set_reals(static_cast<float>(clamp_max - zero_point))};
}

// quantize_f32e.
inline LaneBytes finish(VecF32 real, const RealOutput& out) {
  return low_bytes(add(round(min(max(real, out.clamp_min), out.clamp_max)), out.zero_point));
}

// ---- layers of weights ----
// An epilogue makes outputs without zero point and clamp of the accumulators of kLanes channels from
// `channel` on; ends of int32 stand for what is beyond. Args has what its kind looks at, rounded up to whole
// vectors. PlainEpilogue and SignedEpilogue are two more.

// F32E. What is below int32 converts to its minimum; what is above would, too, and is held back.
struct F32eEpilogue {
  static constexpr bool kIsFloat = true;
  VecF32 scale;
  template <typename Args>
  F32eEpilogue(const Args& args, uint32_t channel) : scale(load_reals(args.scale + channel)) {}
  VecI32 outputs(VecI32 sum) const { return round(min(mul(to_reals(sum), scale), set_reals(65536.0f))); }
};

// TFL2 and TFL1 in integers, for channels without a proof.
struct Tfl2Epilogue {
  static constexpr bool kIsFloat = false;
  Requant requant;
  template <typename Args>
  Tfl2Epilogue(const Args& args, uint32_t channel)
      : requant(load_requant(args.multiplier + channel, args.shift + channel)) {}
  VecI32 outputs(VecI32 sum) const { return requantize(sum, requant); }
};

struct Tfl1Epilogue {
  static constexpr bool kIsFloat = false;
  RequantOnce requant;
  template <typename Args>
  Tfl1Epilogue(const Args& args, uint32_t channel)
      : requant(load_requant_once(args.multiplier + channel, args.shift + channel)) {}
  VecI32 outputs(VecI32 sum) const { return requantize(sum, requant); }
};

template <typename Type>
struct EpilogueKind {
  using Epilogue = Type;
};

// run(EpilogueKind<...>()): by the epilogue of the channels from `channel` on, of one group of 16.
template <typename Args, typename Run>
inline void with_epilogue(const Args& args, uint32_t channel, const Run& run) {
  if (args.contract == Contract::kF32e) {
    run(EpilogueKind<F32eEpilogue>());
  } else if (kHasFma && args.float_epilogue != FloatEpilogue::kNone &&
             groups_have_form(args, channel / 16, 1)) {
    if (args.float_epilogue == FloatEpilogue::kPlain) {
      run(EpilogueKind<PlainEpilogue>());
    } else {
      run(EpilogueKind<SignedEpilogue>());
    }
  } else if (args.contract == Contract::kTfl2) {
    run(EpilogueKind<Tfl2Epilogue>());
  } else {
    run(EpilogueKind<Tfl1Epilogue>());
  }
}

}  // namespace
}  // namespace qplan

#endif  // QPLAN_KERNELS_SIMD_SIMD_H_
