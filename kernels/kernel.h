// Kernel families of one kind are a folder of kernels/ with
//   <kind>.h           the contract of each: the formula, a plain struct <Family>Args, the variants'
//   declarations <kind>_ref.cc      the references: the formulas in portable C, for every layout and dtype
//   <name>_simd.cc     vector kernels over the names of kernels/simd/simd.h, of which
//                      cmake/QplanIsa.cmake makes variants for each instruction set of kernels/isa.def
//   <name>_<isa>.cc    variants written by hand for one instruction set, where a measurement asks for it
// The header lists a family's variants (QPLAN_<FAMILY>_VARIANTS), best first, the reference last; all are
// equal to it in every bit.
// Kernels do not allocate, do not know threads, plans or the runtime, and keep no state. What a plan's step
// says becomes Args in src/runtime/bind/. Work comes in *work items* (output rows, blocks of
// channels, ...: the variant says how many a given Args has); any partition of the work items into ranges,
// run in any order by any workers, gives the same bytes, but where they have an order
// (is_ordered in src/runtime/execute.cc).
#ifndef QPLAN_KERNELS_KERNEL_H_
#define QPLAN_KERNELS_KERNEL_H_

#include <stddef.h>
#include <stdint.h>

#include "kernels/numeric/wide.h"
#include "kernels/variant.h"
#include "qplan/qplan.h"

namespace qplan {

// What each call of a variant repeats that may take as long as its work items, so that one long range takes
// much less than short ones. Less does not count, such as the table that softmax makes.
enum class RepeatedWork : uint8_t {
  kNone,
  kBorderRows,     // rows at the borders of ranges, which the ranges on both sides compute
  kPackedWeights,  // weights that are packed for the call, all of them
};

struct KernelVariant {
  const char* name;  // "conv2d_u8_avx512vnni"
  uint32_t isa;      // QPLAN_ISA_*
  // Why this variant does not compute these args, if it does not: for their contract, dtype, layout or shape,
  // never for data. The reference never refuses. The next two may read the scales of channels
  // (float_scale, scale), no other data.
  Refusal (*refusal)(const void* args);
  size_t (*scratch_bytes)(const void* args);  // per worker; multiple of 64
  uint32_t (*work_items)(const void* args);   // >= 1
  // Work items [begin, end). scratch: scratch_bytes, aligned to 64 bytes (to 16 where
  // pointers have 32 bits), contents undefined.
  void (*run)(const void* args, uint32_t begin, uint32_t end, void* scratch);
  // What a schedule may set (variant.h); args that have a schedule make the functions above follow it.
  const Knob* knobs = nullptr;
  uint32_t num_knobs = 0;
  RepeatedWork repeated_work = RepeatedWork::kNone;

  bool accepts(const void* args) const { return refusal(args) == Refusal::kNone; }
};

// "its weights are in a layout that the variant does not read"; "" for kNone.
const char* refusal_text(Refusal refusal);

// Where calls repeat work, the work items of a step that one thread has are done in at most so many calls.
inline constexpr uint64_t kMaxRepeatingCalls = 16;

// How many work items a call has, where it shall have about `limit` elementary operations, of a step that has
// `work` operations in `work_items` work items.
constexpr uint32_t work_items_per_call(const KernelVariant& variant, uint64_t work, uint64_t limit,
                                       uint32_t work_items) {
  const uint64_t calls = wide_quotient(work, limit);
  if (calls < 2) return work_items;
  if (variant.repeated_work != RepeatedWork::kNone) {
    const auto most = static_cast<uint32_t>(calls < kMaxRepeatingCalls ? calls : kMaxRepeatingCalls);
    return work_items == 0 ? 0 : (work_items - 1) / most + 1;
  }
  return calls < work_items ? work_items / static_cast<uint32_t>(calls) : 1;
}

// Tasks that a step's work items become for each worker, where the work suffices: enough to even out workers
// of different speed, such as those that other programs disturb. Where calls repeat work, each has one. If it
// is known that some are slower (is_uneven), a few border rows cost less than the wait for them; all weights
// packed four times do not.
constexpr uint32_t tasks_per_worker(const KernelVariant& variant, bool is_uneven = false) {
  constexpr uint32_t kSeveral = 4;
  switch (variant.repeated_work) {
    case RepeatedWork::kNone:
      return kSeveral;
    case RepeatedWork::kBorderRows:
      return is_uneven ? kSeveral : 1;
    case RepeatedWork::kPackedWeights:
      return 1;
  }
  return 1;
}

// The first variant that accepts args, with isa_within(isa, isa_limit), within the schedule's limit too, and
// scratch within scratch_limit bytes; the reference, which is the last one, accepts whatever is bound. Null
// only of variants without it (KernelFamily, "optimized"). isa_limit has been resolved before (cpu.h): the
// machine has it and all that is below it.
const KernelVariant* choose_variant(const KernelVariant* variants, uint32_t num_variants, const void* args,
                                    uint32_t isa_limit, size_t scratch_limit, uint64_t schedule);

template <typename Args, Refusal (*kAccepts)(const Args&), size_t (*kScratchBytes)(const Args&),
          uint32_t (*kWorkItems)(const Args&), void (*kRun)(const Args&, uint32_t, uint32_t, void*)>
constexpr KernelVariant make_variant(const char* name, uint32_t isa) {
  return {
      name,
      isa,
      [](const void* args) { return kAccepts(*static_cast<const Args*>(args)); },
      [](const void* args) { return kScratchBytes(*static_cast<const Args*>(args)); },
      [](const void* args) { return kWorkItems(*static_cast<const Args*>(args)); },
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

// For families whose vector variants pack weights in each call, which all work items of the call use.
constexpr KernelVariant with_packed_weights(KernelVariant variant) {
  if (variant.isa != QPLAN_ISA_REFERENCE) variant.repeated_work = RepeatedWork::kPackedWeights;
  return variant;
}

#define QPLAN_VARIANT_ROW(Args, name, isa) \
  ::qplan::make_variant<Args, name::accepts, name::scratch_bytes, name::work_items, name::run>(#name, isa)

}  // namespace qplan

#endif  // QPLAN_KERNELS_KERNEL_H_
