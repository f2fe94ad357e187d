// What a family's header says of its variants: which there are, why one does not compute some args, and what
// a schedule may set.
//
// The rows of a family's list of variants are the macro QPLAN_<FAMILY>_VARIANTS in its header: best first,
// the reference last. Who uses it defines QPLAN_VARIANT(name, isa), which each row becomes for the
// instruction sets of this build (kernels/isa.def):
//
//   QPLAN_SIMD_VARIANTS(add)           add_avx512vnni, add_avx2, ...: of all with vectors of their own
//   QPLAN_DOT_VARIANTS(conv2d)         conv2d_avx512vnni, conv2d_avxvnni, ...: of all
//   QPLAN_SCALAR_VARIANTS(conv2d)      conv2d_mve, conv2d_dsp: of all of microcontrollers
//   QPLAN_FILE_VARIANTS(dequantize)    dequantize_<isa> of those for which there is a dequantize_<isa>.cc
//   QPLAN_FILE_VARIANTS_IN(f, add)     add_<isa> of those for which there is an f_<isa>.cc, which holds
//                                      variants of several families
//   QPLAN_SIMD_VARIANTS_AFTER(a, b)    QPLAN_SIMD_VARIANTS(a), before each the b of its instruction set where
//                                      there is a file of it
//   QPLAN_VARIANT(add_ref, QPLAN_ISA_REFERENCE)
//
// A row declares its variants (QPLAN_DECLARE_VARIANT), has them compiled (cmake/QplanIsa.cmake: the folder's
// <name>_simd.cc and <name>_scalar.cc, or <name>_<isa>.cc where there is one), selects them (the family's
// KernelVariant rows), and tests (tests/support/variants.h) and micro-benchmarks (benchmarks/kernels) run
// what is selected.
//
// ISA files include this: nothing in it has external linkage.
#ifndef QPLAN_KERNELS_VARIANT_H_
#define QPLAN_KERNELS_VARIANT_H_

#include <stddef.h>
#include <stdint.h>

#include "kernels/isas.h"

#define QPLAN_VARIANT_OF_ISA(isa, ISA, features, name) QPLAN_VARIANT(name##_##isa, QPLAN_ISA_##ISA)
#define QPLAN_SIMD_VARIANTS(name) QPLAN_BUILT_OWN_ISAS(QPLAN_VARIANT_OF_ISA, name)
#define QPLAN_DOT_VARIANTS(name) QPLAN_BUILT_VECTOR_ISAS(QPLAN_VARIANT_OF_ISA, name)
#define QPLAN_SCALAR_VARIANTS(name) QPLAN_BUILT_SCALAR_ISAS(QPLAN_VARIANT_OF_ISA, name)
#define QPLAN_FILE_VARIANTS(name) QPLAN_BUILT_ISAS(QPLAN_FILE_VARIANT, name)
#define QPLAN_FILE_VARIANTS_IN(file, name) QPLAN_BUILT_ISAS(QPLAN_FILE_VARIANT_IN, (file, name))
#define QPLAN_FILE_VARIANT(isa, ISA, features, name) QPLAN_FILE_ROW(isa, ISA, name, name)
#define QPLAN_FILE_VARIANT_IN(isa, ISA, features, names) QPLAN_FILE_VARIANT_OF(isa, ISA, QPLAN_BOTH names)
#define QPLAN_FILE_VARIANT_OF(isa, ISA, names) QPLAN_FILE_ROW(isa, ISA, names)
#define QPLAN_FILE_ROW(isa, ISA, file, name) QPLAN_FILE_##file##_##isa(name##_##isa, QPLAN_ISA_##ISA)
#define QPLAN_SIMD_VARIANTS_AFTER(name, first) QPLAN_BUILT_OWN_ISAS(QPLAN_TWO_VARIANTS, (name, first))
#define QPLAN_TWO_VARIANTS(isa, ISA, features, names) QPLAN_TWO_VARIANTS_OF(isa, ISA, QPLAN_BOTH names)
#define QPLAN_TWO_VARIANTS_OF(isa, ISA, names) QPLAN_TWO_VARIANT_ROWS(isa, ISA, names)
#define QPLAN_TWO_VARIANT_ROWS(isa, ISA, name, first) \
  QPLAN_FILE_VARIANT(isa, ISA, , first) QPLAN_VARIANT_OF_ISA(isa, ISA, , name)
#define QPLAN_BOTH(name, first) name, first

namespace qplan {

// Why a variant does not compute some args. kernels/kernel.h has the text of each.
enum class Refusal : uint8_t {
  kNone,  // it does
  kContract,
  kDtype,
  kLayout,
  kInputZeroPoint,
  kWeightsZeroPoint,
  kWeightRests,
  kGroups,
  kWindow,
  kAxes,
  kScale,
  kLayers,
  kTooSmall,
  kTooLarge,
};

}  // namespace qplan

// Four functions in a namespace of the variant's name. kernels/kernel.h says what each does.
#define QPLAN_DECLARE_VARIANT(name, Args)                                  \
  namespace name {                                                         \
  ::qplan::Refusal accepts(const Args& args);                              \
  size_t scratch_bytes(const Args& args);                                  \
  uint32_t work_items(const Args& args);                                   \
  void run(const Args& args, uint32_t begin, uint32_t end, void* scratch); \
  }

namespace qplan {
// How a kernel goes about its work, as far as a plan may say: a step's schedule is eight bytes
// (format/plan.fbs, KernelStep). Byte i is the setting of the variant's knob i, byte 7 a QPLAN_ISA_* beyond
// which no variant is wanted for the step. 0, and whatever a variant does not know, is its own choice: every
// schedule is legal and gives the same bytes. docs/schedules.md tells what there is to choose. ISA files
// include this: nothing in it has external linkage.

// kTile: a size, which tells by the work items that come out whether it changes anything; kOrder: of loops.
enum class KnobKind : uint8_t { kTile, kOrder };

struct Knob {
  const char* name;  // "block_pixels"
  KnobKind kind;
  uint8_t num_values;
  uint16_t values[8];  // setting s, from 1, means values[s - 1]
};

// Knobs have the bytes below this one.
constexpr uint32_t kMaxKnobs = 7;

// The value that the schedule sets knob `index` to, or 0: the variant's own choice.
static constexpr uint32_t knob_value(uint64_t schedule, const Knob* knobs, uint32_t index) {
  const uint64_t setting = (schedule >> (8 * index)) & 0xff;
  return setting >= 1 && setting <= knobs[index].num_values ? knobs[index].values[setting - 1] : 0;
}

static constexpr uint32_t schedule_isa(uint64_t schedule) { return static_cast<uint32_t>(schedule >> 56); }

}  // namespace qplan

#endif  // QPLAN_KERNELS_VARIANT_H_
