// Builds the descriptors of a family from typed functions. In src/runtime/bind/<family>.cc:
//
//   constexpr KernelVariant kVariants[] = {
//   #define QPLAN_VARIANT(name, isa) with_knobs(QPLAN_VARIANT_ROW(Conv2dArgs, name, isa), kConv2dKnobs),
//   #include "kernels/conv2d/variants.def"
//   #undef QPLAN_VARIANT
//   };
//   constexpr KernelVariant kReference[] = {QPLAN_VARIANT_ROW(Conv2dArgs, conv2d_ref, QPLAN_ISA_REFERENCE)};
//   constexpr KernelFamily kConv2dFamily =
//       make_family<Conv2dArgs, bind, in_place, work>(kKernel_conv2d, "conv2d", kVariants);
//   constexpr KernelFamily kConv2dFamilyReference =
//       make_family<Conv2dArgs, bind, in_place, work>(kKernel_conv2d, "conv2d", kReference);
#ifndef QPLAN_SRC_RUNTIME_BIND_FAMILY_H_
#define QPLAN_SRC_RUNTIME_BIND_FAMILY_H_

#include <stddef.h>
#include <stdint.h>

#include <type_traits>

#include "kernels/kernel.h"
#include "src/base/checked.h"
#include "src/runtime/bind/families.h"

namespace qplan {

template <typename Args, bool (*kAccepts)(const Args&), size_t (*kScratchBytes)(const Args&),
          uint32_t (*kUnits)(const Args&), void (*kRun)(const Args&, uint32_t, uint32_t, void*)>
constexpr KernelVariant make_variant(const char* name, uint32_t isa) {
  return {
      name,
      isa,
      [](const void* args) { return kAccepts(*static_cast<const Args*>(args)); },
      [](const void* args) { return kScratchBytes(*static_cast<const Args*>(args)); },
      [](const void* args) { return kUnits(*static_cast<const Args*>(args)); },
      [](const void* args, uint32_t begin, uint32_t end, void* scratch) {
        kRun(*static_cast<const Args*>(args), begin, end, scratch);
      },
  };
}

// For families whose vector variants all have the same knobs; the reference has none.
template <size_t num_knobs>
constexpr KernelVariant with_knobs(KernelVariant variant, const Knob (&knobs)[num_knobs]) {
  static_assert(num_knobs <= kMaxKnobs, "a schedule has a byte for each");
  if (variant.isa == QPLAN_ISA_REFERENCE) return variant;
  variant.knobs = knobs;
  variant.num_knobs = num_knobs;
  return variant;
}

#define QPLAN_VARIANT_ROW(Args, name, isa) \
  ::qplan::make_variant<Args, name::accepts, name::scratch_bytes, name::units, name::run>(#name, isa)

// kBind fills args, of which every field has its default value.
template <typename Args, qplan_status (*kBind)(const StepView&, bool check, Args& args, Error* error),
          bool (*kInPlace)(const StepView&, uint32_t output, uint32_t input), uint64_t (*kWork)(const Args&),
          size_t num_variants>
constexpr KernelFamily make_family(KernelId id, const char* name,
                                   const KernelVariant (&variants)[num_variants],
                                   const RowCut* row_cut = nullptr, PartQuery part = nullptr) {
  static_assert(sizeof(Args) <= kMaxArgsBytes && alignof(Args) <= kArgsAlignment,
                "the executor keeps this much");
  static_assert(std::is_trivially_copyable<Args>::value && std::is_trivially_destructible<Args>::value,
                "args are plain data");
  return {
      id,
      name,
      kInPlace,
      part,
      row_cut,
      [](const StepView& step, bool check, void* storage, Error* error) {
        Args& args = *static_cast<Args*>(storage);
        args = Args{};
        return kBind(step, check, args, error);
      },
      variants,
      num_variants,
      [](const void* args) { return kWork(*static_cast<const Args*>(args)); },
  };
}

// For families whose outputs never share a buffer with an input.
inline bool never_in_place(const StepView&, uint32_t, uint32_t) { return false; }

}  // namespace qplan

#endif  // QPLAN_SRC_RUNTIME_BIND_FAMILY_H_
