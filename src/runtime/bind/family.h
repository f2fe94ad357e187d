// Kernel families, as the runtime, the packer, tests and benchmarks know them: the step that one is asked
// about, its descriptor, the list of all, and how much a plan computes by them.
#ifndef QPLAN_SRC_RUNTIME_BIND_FAMILY_H_
#define QPLAN_SRC_RUNTIME_BIND_FAMILY_H_

#include <stddef.h>
#include <stdint.h>

#include <new>
#include <type_traits>

#include "format/memory_layout.h"
#include "format/plan_view.h"
#include "kernels/kernel.h"
#include "kernels/numeric/dtype.h"
#include "qplan/custom_operator.h"
#include "qplan/qplan.h"
#include "src/base/checked.h"
#include "src/base/error.h"

namespace qplan {

// ---- a step as kernel argument binding sees it

// What a family is told of one tensor that a step reads or writes.
struct StepTensor {
  const int64_t* extents = nullptr;  // outermost first; null where the rank is 0
  uint32_t rank = 0;
  Dtype dtype = Dtype::kOther;
  bool is_constant = false;
  bool is_tile = false;     // between two layers of a cascade: never whole in memory, without an address
  uint8_t bank = 0;         // of the plan, below kMaxBanks
  uint64_t size_bytes = 0;  // of all of it, of a tile too
  uint64_t offset = 0;      // bytes, from an aligned address; 0 where nothing has been planned yet
  void* data = nullptr;     // null where it has no address yet
};

// All tensors of an opened plan, as a table for StepView::tensors: constants with their addresses, others
// without. tensors: as many as the plan has.
void describe_tensors(const format::PlanView& plan, StepTensor* tensors);
// The same of the tensors between the layers of a cascade.
void describe_tiles(const flatbuffers::Vector<flatbuffers::Offset<format::Tensor>>& from, StepTensor* tiles);

// Memory after such a table in which init keeps what its questions about a cascade share
// (src/runtime/cascade.cc): the tiles as further entries, the arguments of all layers, what is known of each.
inline constexpr size_t kCascadeRoomBytes = sizeof(void*) == 4 ? 1312 : 4608;

// One step, and the table of tensors that its inputs and outputs are positions in. The table is an array, or
// a verified plan's own (which is read as it is, so that a session needs no memory for it), with or without
// addresses: data may be null for all tensors that are not constants (checks, scratch queries): then only
// shapes and constants are looked at.
struct StepView {
  const format::Plan* plan = nullptr;  // null where the table is `tensors` alone
  const format::KernelStep* step = nullptr;
  // Set for a step of a plan: data[t] is the address of tensor t, null where it has none yet. Constants
  // always have one.
  void* const* data = nullptr;
  // Set for a layer of a cascade, which has no `data`: the tensors between the layers, whose numbers follow
  // the plan's last tensor; and the addresses of the plan's own tensors, if they have any.
  const flatbuffers::Vector<flatbuffers::Offset<format::Tensor>>* tiles = nullptr;
  void* const* data_without_tiles = nullptr;
  // The first byte of the plan's file: constants that `data` lacks have the addresses that the file gives
  // them. Where nothing has been placed in memory, other tensors have none.
  const uint8_t* file = nullptr;
  // Tiles are ordinary entries. With `plan`: its tensors, described once for all steps, and `data` comes
  // first. Their shapes and sizes are not compared again: such a plan has passed open(), which compares them.
  const StepTensor* tensors = nullptr;
  // The set that the families' operators (custom.cc) come from; null where nothing is run.
  const qplan_kernel_set* kernels = nullptr;
  // Entries of `data`: tensors from there on are constants, which are in `file`.
  uint32_t num_data = UINT32_MAX;
  // How many `tensors` there are, all of the plan's, where kCascadeRoomBytes follow them that nobody else
  // uses while init asks about the step, of which the first question is bind with its checks. 0 elsewhere.
  uint32_t tensors_before_room = 0;
  bool has_cascade_room() const { return tensors_before_room != 0; }
  // Memory that nobody else uses while the step is run by one worker: where a cascade has the arguments of a
  // layer. Of a step that init asks about, more of it (src/runtime/cascade.h, kInitRoomBytes). Null: it has
  // both on the stack.
  void* room = nullptr;

  // A step of a plan that nobody has placed in memory: for checks and queries.
  static StepView without_addresses(const format::Plan& plan, const format::KernelStep& step,
                                    const uint8_t* file) {
    StepView view;
    view.plan = &plan;
    view.step = &step;
    view.file = file;
    return view;
  }
  // A step of no plan.
  static StepView of_tensors(const format::KernelStep& step, const StepTensor* tensors) {
    StepView view;
    view.step = &step;
    view.tensors = tensors;
    return view;
  }

  // Null where the step has none.
  const flatbuffers::Vector<uint32_t>* inputs() const;
  const flatbuffers::Vector<uint32_t>* outputs() const;
  uint32_t num_inputs() const { return format::count_of(inputs()); }
  uint32_t num_outputs() const { return format::count_of(outputs()); }
  StepTensor input(uint32_t i) const { return tensor(inputs()->Get(i)); }
  StepTensor output(uint32_t i) const { return tensor(outputs()->Get(i)); }
  void* input_data(uint32_t i) const { return address(inputs()->Get(i)); }
  void* output_data(uint32_t i) const { return address(outputs()->Get(i)); }
  StepTensor tensor(uint32_t t) const;
  // Asked for each operand of each step of each run, so that nothing but the usual cases is decided here.
  void* address(uint32_t t) const {
    if (data != nullptr && t < num_data) return data[t];
    return tensors != nullptr ? tensors[t].data : unusual_address(t);
  }
  // The step is a layer of a cascade, or has no addresses yet, or is of no plan.
  void* unusual_address(uint32_t t) const;
  // Parts of tensor(t), asked as often.
  uint32_t rank(uint32_t t) const {
    return tensors != nullptr ? tensors[t].rank : format::rank_of(plan_tensor(t));
  }
  const int64_t* extents(uint32_t t) const {
    if (tensors != nullptr) return tensors[t].extents;
    const auto* shape = plan_tensor(t).shape();  // null in plans that leave an empty one out
    return shape == nullptr ? nullptr : shape->data();
  }
  Dtype input_dtype(uint32_t i) const { return dtype(inputs()->Get(i)); }
  Dtype output_dtype(uint32_t i) const { return dtype(outputs()->Get(i)); }
  Dtype dtype(uint32_t t) const { return tensors != nullptr ? tensors[t].dtype : dtype_of(plan_tensor(t)); }

  uint64_t size_bytes(uint32_t t) const {
    return tensors != nullptr ? tensors[t].size_bytes : plan_tensor(t).size();
  }
  uint64_t offset(uint32_t t) const {
    return tensors != nullptr ? tensors[t].offset : plan_tensor(t).offset();
  }
  bool is_constant(uint32_t t) const;
  bool is_tile(uint32_t t) const { return tensors != nullptr ? tensors[t].is_tile : is_tile_of_plan(t); }
  const int64_t* input_extents(uint32_t i) const { return extents(inputs()->Get(i)); }
  const int64_t* output_extents(uint32_t i) const { return extents(outputs()->Get(i)); }

  // kOther for everything that Dtype does not list.
  static Dtype dtype_of(const format::Tensor& tensor);

 private:
  bool is_tile_of_plan(uint32_t t) const { return tiles != nullptr && t >= plan->tensors()->size(); }
  const format::Tensor& plan_tensor(uint32_t t) const {
    return is_tile_of_plan(t) ? *tiles->Get(t - plan->tensors()->size()) : *plan->tensors()->Get(t);
  }
};

// ---- families: what is known of one are its variants (kernels/kernel.h)
// and how a step becomes their arguments. src/runtime/bind/<kind>.cc builds descriptors from typed functions:
//
//   constexpr KernelVariant kVariants[] = {
//   #define QPLAN_VARIANT(name, isa) with_knobs(QPLAN_VARIANT_ROW(Conv2dArgs, name, isa), kConv2dKnobs),
//       QPLAN_CONV2D_VARIANTS
//   #undef QPLAN_VARIANT
//   };
//   constexpr KernelVariant kReference[] = {QPLAN_VARIANT_ROW(Conv2dArgs, conv2d_ref, QPLAN_ISA_REFERENCE)};
//   constexpr KernelFamily kConv2dFamily =
//       make_family<Conv2dArgs, bind, in_place, work>(kKernel_conv2d, "conv2d", kVariants);
//   constexpr KernelFamily kConv2dFamilyReference =
//       make_family<Conv2dArgs, bind, in_place, work>(kKernel_conv2d, "conv2d", kReference);

// Storage for any family's Args.
inline constexpr size_t kMaxArgsBytes = sizeof(void*) == 8 ? 512 : 320;
inline constexpr size_t kArgsAlignment = sizeof(void*) == 8 ? 16 : 8;

enum KernelId : uint16_t {
#define QPLAN_KERNEL(id, family, descriptor, params, args_bytes) kKernel_##family = id,
#include "format/kernels.def"
#undef QPLAN_KERNEL
};

// Where arguments are not kept: bytes of stack for those of a family, one of four sizes.
inline constexpr size_t kSmallArgsBytes = 128, kConvolutionArgsBytes = 232, kSumArgsBytes = 248;
inline constexpr bool kTakesSmallArgs[] = {
    false,
#define QPLAN_KERNEL(id, family, descriptor, params, args_bytes) args_bytes <= kSmallArgsBytes,
#include "format/kernels.def"
#undef QPLAN_KERNEL
};
constexpr size_t unkept_args_bytes(uint16_t kernel) {
  if (kernel == kKernel_conv2d || kernel == kKernel_depthwise_conv2d) return kConvolutionArgsBytes;
  if (kernel == kKernel_add || kernel == kKernel_sub) return kSumArgsBytes;
  const bool is_small = kernel < sizeof(kTakesSmallArgs) && kTakesSmallArgs[kernel];
  return is_small ? kSmallArgsBytes : kMaxArgsBytes;
}

// Rows [begin, end) of an image.
struct Rows {
  uint32_t begin;
  uint32_t end;
};

// Which rows of an input rows of the output are made of: of rows [begin, end) those from begin * stride -
// pad_top to (end - 1) * stride - pad_top + window, as far as the input has them. At least one, and neither
// end moves back where an end of the output's moves on.
struct RowWindow {
  uint32_t stride;
  uint32_t pad_top;
  uint32_t window;  // rows
  uint32_t input_h;

  // Positions without padding are at most 2^31: bind has checked it.
  Rows reads(Rows output) const {
    const uint32_t begin = output.begin * stride, end = (output.end - 1) * stride + window;
    return {begin > pad_top ? begin - pad_top : 0, end - pad_top < input_h ? end - pad_top : input_h};
  }
  // At least as many as `reads` says of any `rows` rows of the output.
  uint32_t span(uint32_t rows) const {
    const uint64_t span = uint64_t{rows - 1} * stride + window;
    return span < input_h ? static_cast<uint32_t>(span) : input_h;
  }
};

// What a family tells a cascade (src/runtime/cascade.h), which makes the rows of its output [n,h,w,c] a few
// at a time from rows of one of its inputs, [n,h,w,c] too unless `reads_planes`. All work on args that bind
// has filled and `accepts` has accepted.
struct CutRows {
  uint32_t input;    // position of the input whose rows come and go
  RowWindow window;  // what `window` said of args that had not been cut
  uint32_t image;    // which of the batch
  Rows output;
  const void* from;  // rows of that input that the window reads for these
  void* to;          // where the rows of the output go
};
struct RowCut {
  // Whether the step can be cut so, with the rows of this input coming and going.
  bool (*accepts)(const StepView& step, uint32_t input);
  // The rows of that input that rows of the output need.
  RowWindow (*window)(const void* args);
  // Reduces the args to rows of the output. They may have been cut before.
  void (*cut)(const StepView& step, const CutRows& rows, void* args);
  // Whether the input whose rows come and go is [n,c,h,w], so that rows are parts of planes. `from` is then
  // in the first plane, and no layer can give such rows. Null: never.
  bool (*reads_planes)(const StepView& step) = nullptr;
  // The whole input is there for each row of the output: no other layer comes before.
  bool is_first = false;

  // Whether the rows of that input may be those that another layer gives.
  bool follows(const StepView& step, uint32_t input) const {
    return !is_first && (reads_planes == nullptr || !reads_planes(step)) && accepts(step, input);
  }
};

// Whether the one of the two that is smaller may lie inside the other, *offset bytes from its beginning:
// where its bytes are then the same as there, so that nothing is moved, or, of conv2d, an output that is
// written over what has been read of the input. The kernel finds out by the addresses.
using PartQuery = bool (*)(const StepView& step, uint32_t output, uint32_t input, uint64_t* offset);

struct KernelFamily {
  uint16_t id;       // format/kernels.def
  const char* name;  // "conv2d"
  // Whether output o may share its whole buffer with input i.
  bool (*in_place)(const StepView& step, uint32_t output, uint32_t input);
  PartQuery part;  // null: never
  // Null: no layer of a cascade.
  const RowCut* row_cut;
  // Checks everything that `run` relies on (ranks, shapes, dtypes, parameter ranges, constant contents that
  // act as parameters) and fills args. With check off, the plan has been checked before and only args are
  // filled.
  qplan_status (*bind)(const StepView& step, bool check, void* args, Error* error);
  // Best first; the last is the reference, which accepts whatever bind accepts, but in sets of one plan.
  const KernelVariant* variants;
  uint32_t num_variants;
  // Elementary operations that the formula takes for args that bind has checked, at least 1, UINT64_MAX where
  // they are more: multiply-accumulates, elements of pooling windows, elements that are computed, bytes that
  // are moved (docs/work.md defines each family's). Computed from shapes and parameters alone, so that no
  // plan can understate it, and the same for all variants, whose time is at most a constant times this
  // number.
  uint64_t (*work)(const void* args);
};

inline const KernelVariant* choose_variant(const KernelFamily& family, const void* args, uint32_t isa_limit,
                                           size_t scratch_limit, uint64_t schedule) {
  return choose_variant(family.variants, family.num_variants, args, isa_limit, scratch_limit, schedule);
}

// kBind fills args, of which every field has its default value.
template <typename Args, qplan_status (*kBind)(const StepView&, bool check, Args& args, Error* error),
          bool (*kInPlace)(const StepView&, uint32_t output, uint32_t input), uint64_t (*kWork)(const Args&),
          size_t num_variants>
constexpr KernelFamily make_family(KernelId id, const char* name,
                                   const KernelVariant (&variants)[num_variants],
                                   const RowCut* row_cut = nullptr, PartQuery part = nullptr) {
  static_assert(sizeof(Args) <= kMaxArgsBytes && alignof(Args) <= kArgsAlignment,
                "the executor keeps this much");
  // Not a constant expression where it is reached.
  if (sizeof(Args) > format::kept_args_bytes(id)) __builtin_trap();
  if (format::kept_args_bytes(id) % kArgsAlignment != 0) __builtin_trap();  // they follow one another
  if (sizeof(void*) == 4 && sizeof(Args) > unkept_args_bytes(id)) __builtin_trap();
  static_assert(std::is_trivially_copyable<Args>::value && std::is_trivially_destructible<Args>::value,
                "args are plain data");
  return {
      id,
      name,
      kInPlace,
      part,
      row_cut,
      [](const StepView& step, bool check, void* storage, Error* error) {
        // In place: an assignment would take the stack of another one.
        return kBind(step, check, *new (storage) Args{}, error);
      },
      variants,
      num_variants,
      [](const void* args) { return kWork(*static_cast<const Args*>(args)); },
  };
}

constexpr KernelFamily as_layer(KernelFamily family, const RowCut& row_cut) {
  family.row_cut = &row_cut;
  return family;
}

// For families whose outputs never share a buffer with an input.
inline bool never_in_place(const StepView&, uint32_t, uint32_t) { return false; }

}  // namespace qplan

// A set of families, indexed by kernel id (null where absent), passed in by the caller.
struct qplan_kernel_set {
  const qplan::KernelFamily* const* families;
  uint32_t num_families;
  // The application's own (qplan/custom_operator.h).
  uint32_t num_operators = 0;
  const qplan_custom_operator* const* operators = nullptr;
};

namespace qplan {

// All kernel families: their descriptors. format/kernels.def is the list. Where a descriptor is defined, its
// declaration here gives it external linkage.

// Each family has two descriptors: kConv2dFamily with all variants of this build, and kConv2dFamilyReference
// with the reference alone. They share everything but the list of variants, and the second refers to no ISA
// code, so that a program that uses only qplan_kernels_reference() does not link any. C has names for them
// (qplan/firmware.h).
#define QPLAN_KERNEL(id, family, descriptor, params, args_bytes)         \
  extern const KernelFamily descriptor __asm__("qplan_family_" #family); \
  extern const KernelFamily descriptor##Reference __asm__("qplan_family_" #family "_reference");
#include "format/kernels.def"
#undef QPLAN_KERNEL

// Without the reference, for firmware whose plan never needs it: families that have variants for cores
// without vectors. Layers of the cascade are then convolutions.
#define QPLAN_OPTIMIZED(family, descriptor) \
  extern const KernelFamily descriptor##Optimized __asm__("qplan_family_" #family "_optimized");
QPLAN_OPTIMIZED(conv2d, kConv2dFamily)
QPLAN_OPTIMIZED(depthwise_conv2d, kDepthwiseConv2dFamily)
QPLAN_OPTIMIZED(fully_connected, kFullyConnectedFamily)
QPLAN_OPTIMIZED(chain, kCascadeFamily)
#undef QPLAN_OPTIMIZED

// With the variant <family>_dsp_form alone.
#define QPLAN_FORM(family, descriptor) \
  extern const KernelFamily descriptor##Form __asm__("qplan_family_" #family "_form");
QPLAN_FORM(conv2d, kConv2dFamily)
QPLAN_FORM(depthwise_conv2d, kDepthwiseConv2dFamily)
QPLAN_FORM(fully_connected, kFullyConnectedFamily)
#undef QPLAN_FORM

// The same families as layers of cascades. What cuts them into rows is nothing that steps of their own need,
// and firmware with such steps does not link it.
#define QPLAN_LAYER(name) extern const KernelFamily name, name##Reference;
QPLAN_LAYER(kAvgPool2dLayer)
QPLAN_LAYER(kMaxPool2dLayer)
QPLAN_LAYER(kResizeBilinearLayer)
QPLAN_LAYER(kArgMaxLayer)
#undef QPLAN_LAYER

// For firmware whose cascades have convolutions, add, sub and lut8 alone: with all variants, and with the
// references alone.
extern const KernelFamily kCascadeFamilyPlain __asm__("qplan_family_chain_plain");
extern const KernelFamily kCascadeFamilyPlainReference __asm__("qplan_family_chain_plain_reference");
// For firmware whose cascades have convolutions and pools alone: the optimized variants of convolutions, as
// in kCascadeFamilyOptimized, and the references.
extern const KernelFamily kCascadeFamilyPools __asm__("qplan_family_chain_pools");
extern const KernelFamily kCascadeFamilyPoolsReference __asm__("qplan_family_chain_pools_reference");

// ---- how much a plan computes: KernelFamily::work of its steps, asked without a session (docs/work.md)

// Bytes that the CPU moves for a region's job: each tensor once, and what is filled around it.
uint64_t region_work(const format::PlanView& plan, const format::NpuStep& region);

// The work of step `index` of an open plan, a region's or a kernel's. Its family checks a kernel's step
// first, so that the result is that of a session, or the error that its init would give.
[[nodiscard]] qplan_status step_work(const format::PlanView& plan, uint32_t index,
                                     const qplan_kernel_set& kernels, uint64_t* work, Error* error);
// The work of all steps of a function.
[[nodiscard]] qplan_status function_work(const format::PlanView& plan, const format::Function& function,
                                         const qplan_kernel_set& kernels, uint64_t* work, Error* error);

// The family of a kernel's step; null, with the error set, where the set has none.
const KernelFamily* find_family(const format::PlanView& plan, uint32_t index, uint16_t kernel,
                                const qplan_kernel_set& kernels, Error* error);
// An error that a family's bind has set about step `index`, with the place: "conv2d 'block3' (step 12): ...".
void place_step_error(const format::PlanView& plan, uint32_t index, const KernelFamily& family, Error* error);

}  // namespace qplan

#endif  // QPLAN_SRC_RUNTIME_BIND_FAMILY_H_
