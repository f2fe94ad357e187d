// A step as kernel argument binding sees it.
#ifndef QPLAN_SRC_RUNTIME_BIND_STEP_VIEW_H_
#define QPLAN_SRC_RUNTIME_BIND_STEP_VIEW_H_

#include <stddef.h>
#include <stdint.h>

#include "format/plan_view.h"
#include "kernels/numeric/dtype.h"
#include "qplan/qplan.h"

namespace qplan {

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
  // Memory of kMaxArgsBytes that nobody else uses while the step is bound, or run by one worker: where a
  // cascade has the arguments of a layer. Null: it has them on the stack.
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

}  // namespace qplan

#endif  // QPLAN_SRC_RUNTIME_BIND_STEP_VIEW_H_
