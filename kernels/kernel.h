// What the runtime, the packer, tests and benchmarks know of a kernel family. A family is a folder of
// kernels/ with
//   <family>.h         the contract: the formula, a plain struct <Family>Args, the reference's declaration
//   <family>_ref.cc    the reference: the formula as written, for every layout and dtype; never optimised
//   <family>_<isa>.cc  variants, one instruction set each, equal to the reference in every bit
//   variants.def       the variants, best first, the reference last
//   src/runtime/bind/<family>.cc: a plan's step -> Args, completely checked; the KernelFamily descriptor
// Kernels do not allocate, do not know threads, plans or the runtime, and keep no state. Work comes in
// *units* (output rows, blocks of channels, ...: the variant says how many a given Args has); any partition
// of the units into ranges, run in any order by any workers, gives the same bytes.
#ifndef QPLAN_KERNELS_KERNEL_H_
#define QPLAN_KERNELS_KERNEL_H_

#include <stddef.h>
#include <stdint.h>

#include "format/plan_generated.h"
#include "kernels/numeric/dtype.h"
#include "kernels/schedule.h"
#include "qplan/qplan.h"
#include "src/base/error.h"

namespace qplan {

// Storage the executor keeps for any family's Args.
inline constexpr size_t kMaxArgsBytes = 512;
inline constexpr size_t kArgsAlignment = 16;

// What a family is told of one tensor that a step reads or writes.
struct StepTensor {
  const int64_t* extents = nullptr;  // outermost first; null where the rank is 0
  uint32_t rank = 0;
  Dtype dtype = Dtype::kOther;
  bool is_constant = false;
  bool is_tile = false;     // between two layers of a cascade: never whole in memory, without an address
  uint64_t size_bytes = 0;  // of all of it, of a tile too
  uint64_t offset = 0;      // bytes, from an aligned address; 0 where nothing has been planned yet
  void* data = nullptr;     // null where it has no address yet
};

// One step, and the table of tensors that its inputs and outputs are positions in. The table is an array, or a
// verified plan's own (which is read as it is, so that a session needs no memory for it), with or without
// addresses: data may be null for all tensors that are not constants (checks, scratch queries): then only
// shapes and constants are looked at.
struct StepView {
  const format::Plan* plan = nullptr;  // null where the table is `tensors`
  const format::KernelStep* step = nullptr;
  // Of a plan's step whose operands all have addresses, but for those without any: data[t] is that of tensor
  // t, null where it has none yet. Constants are always there.
  void* const* data = nullptr;
  // Of a layer of a cascade of a plan, which has no `data`: what lies between the layers, numbered from the
  // plan's last tensor on; and the addresses of the plan's own tensors, if they have any.
  const flatbuffers::Vector<flatbuffers::Offset<format::Tensor>>* tiles = nullptr;
  void* const* data_without_tiles = nullptr;
  // The first byte of the plan's file, where nothing has been placed in memory: constants have the addresses
  // that the file gives them then, and other tensors have none.
  const uint8_t* file = nullptr;
  // Tiles are ordinary entries.
  const StepTensor* tensors = nullptr;

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

  uint32_t num_inputs() const { return step->inputs() ? step->inputs()->size() : 0; }
  uint32_t num_outputs() const { return step->outputs() ? step->outputs()->size() : 0; }
  StepTensor input(uint32_t i) const { return tensor(step->inputs()->Get(i)); }
  StepTensor output(uint32_t i) const { return tensor(step->outputs()->Get(i)); }
  void* input_data(uint32_t i) const { return address(step->inputs()->Get(i)); }
  void* output_data(uint32_t i) const { return address(step->outputs()->Get(i)); }
  StepTensor tensor(uint32_t t) const;
  // Asked for each operand of each step of each run, so that nothing but the usual case is decided here.
  void* address(uint32_t t) const { return data != nullptr ? data[t] : unusual_address(t); }
  // The step is a layer of a cascade, or has no addresses yet, or is of no plan.
  void* unusual_address(uint32_t t) const;
  // Parts of tensor(t), asked as often.
  uint32_t rank(uint32_t t) const {
    return tensors != nullptr ? tensors[t].rank : plan_tensor(t).shape()->size();
  }
  const int64_t* extents(uint32_t t) const {
    return tensors != nullptr ? tensors[t].extents : plan_tensor(t).shape()->data();
  }
  Dtype dtype(uint32_t t) const {
    return tensors != nullptr ? tensors[t].dtype : dtype_of(plan_tensor(t));
  }

  // kOther for everything that Dtype does not list.
  __attribute__((pure)) static Dtype dtype_of(const format::Tensor& tensor);

 private:
  bool is_tile(uint32_t t) const { return tiles != nullptr && t >= plan->tensors()->size(); }
  const format::Tensor& plan_tensor(uint32_t t) const {
    return is_tile(t) ? *tiles->Get(t - plan->tensors()->size()) : *plan->tensors()->Get(t);
  }
};

// Rows [begin, end) of an image.
struct Rows {
  uint32_t begin;
  uint32_t end;
};

// What a family tells a chain (chain/chain.h), which makes the rows of its output [n,h,w,c] a few at a time
// from rows of one of its inputs. Both work on args that bind has filled and `accepts` has accepted.
struct RowCut {
  // Whether the step can be cut so, with the rows of this input coming and going.
  bool (*accepts)(const StepView& step, uint32_t input);
  // The rows of that input that these rows of the output, at least one, are made of: at least one, too, and
  // neither end moves back where an end of `output` moves on.
  Rows (*reads)(const void* args, Rows output);
  // At least as many as `reads` says of any `rows` rows of the output.
  uint64_t (*span)(const void* args, uint32_t rows);
  // Reduces the args to rows `output` of image n, where `rows` holds what `reads` says of that input, and
  // `to` gets them.
  void (*cut)(const StepView& step, uint32_t input, uint32_t image, Rows output, const void* rows, void* to,
              void* args);
};

struct KernelVariant {
  const char* name;  // "conv2d_u8_avx512vnni"
  uint32_t isa;      // QPLAN_ISA_*
  // Whether this variant computes exactly these args; refusals are about dtype, layout and shape, never about
  // data.
  bool (*accepts)(const void* args);
  size_t (*scratch_bytes)(const void* args);  // per worker; multiple of 64
  uint32_t (*units)(const void* args);        // >= 1
  // Units [begin, end). scratch: scratch_bytes, 64-byte aligned, contents undefined.
  void (*run)(const void* args, uint32_t begin, uint32_t end, void* scratch);
  // What a schedule may set (schedule.h); args that have a schedule make the functions above follow it.
  const Knob* knobs = nullptr;
  uint32_t num_knobs = 0;
  // Whether units share work with their neighbours, so that one long range takes less than short ones.
  bool neighbours_share = false;
};

// Whether the one of the two that is smaller may lie inside the other, where its bytes are then the same as
// there, so that nothing is moved: *offset bytes from its beginning. The kernel finds out by the addresses.
using PartQuery = bool (*)(const StepView& step, uint32_t output, uint32_t input, uint64_t* offset);

// Tasks that a step's units become for each worker, where the work suffices: enough to even out workers of
// different speed.
constexpr uint32_t tasks_per_worker(const KernelVariant& variant) { return variant.neighbours_share ? 1 : 4; }

struct KernelFamily {
  uint16_t id;       // format/kernels.def
  const char* name;  // "conv2d"
  // Whether output o may share its whole buffer with input i.
  bool (*in_place)(const StepView& step, uint32_t output, uint32_t input);
  PartQuery part;  // null: never
  // Null: never a stage of a chain.
  const RowCut* row_cut;
  // Checks everything that `run` relies on (ranks, shapes, dtypes, parameter ranges, constant contents that
  // act as parameters) and fills args. With check off, the plan has been checked before and only args are
  // filled.
  qplan_status (*bind)(const StepView& step, bool check, void* args, Error* error);
  const KernelVariant* variants;  // best first; the last is the reference and accepts whatever bind accepts
  uint32_t num_variants;
  // Elementary operations that the formula takes for args that bind has checked, at least 1, UINT64_MAX where
  // they are more: multiply-accumulates, elements of pooling windows, elements that are computed, bytes that
  // are moved (docs/work.md defines each family's). Computed from shapes and parameters alone, so that no
  // plan can understate it, and the same for all variants, whose time is at most a constant times this
  // number.
  uint64_t (*work)(const void* args);
};

// The first variant that accepts args, with isa_within(isa, isa_limit), within the schedule's limit too, and
// scratch within scratch_limit bytes; never null for bound args. isa_limit has been resolved before (cpu.h):
// the machine has it and all that is below it.
const KernelVariant* choose_variant(const KernelFamily& family, const void* args, uint32_t isa_limit,
                                    size_t scratch_limit, uint64_t schedule);

}  // namespace qplan

// A set of families, indexed by kernel id (null where absent), passed in by the caller.
struct qplan_kernel_set {
  const qplan::KernelFamily* const* families;
  uint32_t num_families;
};

#endif  // QPLAN_KERNELS_KERNEL_H_
