// While init goes through a function's steps (prepare.cc): which tensors hold a value that a step may read,
// and which bytes a step must leave alone. The entries of Session::data are the state: null where nothing has
// been written yet, an address that no tensor has where a value may not be read any more.
#ifndef QPLAN_SRC_RUNTIME_TENSOR_VALUES_H_
#define QPLAN_SRC_RUNTIME_TENSOR_VALUES_H_

#include "format/plan_view.h"
#include "src/base/error.h"
#include "src/runtime/bind/family.h"
#include "src/runtime/session.h"

namespace qplan {

// Where the plan has a tensor, a step's scratch or a device's bind. Bytes.
struct PlannedRange {
  uint32_t bank;
  uint64_t offset, size;

  bool overlaps(const PlannedRange& other) const {
    return bank == other.bank && offset < other.offset + other.size && other.offset < offset + size;
  }
};

// How many bytes two tensors have in common.
enum class CommonBytes { kNone, kSome, kAll };

inline constexpr char kWhereOnADevice[] = " where its region runs on a device";

// The functions that are not inlined are those whose stack would add to that of a family which is asked about
// its step, or whose text would be there several times.
class TensorValues {
 public:
  using Tensors = flatbuffers::Vector<uint32_t>;

  explicit TensorValues(Session* session) : function(*session->function), session_(*session) {}

  const FunctionTensors function;  // of the session

  // A table of all tensors (describe_tensors): from then on ranges are read there.
  void use(const StepTensor* tensors) { tensors_ = tensors; }
  const StepTensor* tensors() const { return tensors_; }

  __attribute__((noinline)) static bool contains(const Tensors* tensors, uint32_t t) {
    for (uint32_t i = 0; i < format::count_of(tensors); ++i) {
      if (tensors->Get(i) == t) return true;
    }
    return false;
  }
  bool is_output(uint32_t t) const { return contains(function.outputs, t); }
  bool is_bindable(uint32_t t) const { return contains(function.inputs, t) || is_output(t); }

  PlannedRange range_of(uint32_t t) const {
    if (tensors_ != nullptr) return {tensors_[t].bank, tensors_[t].offset, tensors_[t].size_bytes};
    const format::TensorRecord tensor((format::TableFields(&session_.plan.tensor(t))));
    return {tensor.bank, tensor.offset, tensor.size};
  }
  // Most tensors of most steps are in another bank.
  __attribute__((always_inline)) bool overlaps(const PlannedRange& range, uint32_t t) const {
    if (tensors_ != nullptr && tensors_[t].bank != range.bank) return false;
    return overlaps_range(range, t);
  }
  CommonBytes common_bytes(uint32_t a, uint32_t b) const {
    if (tensors_ != nullptr && tensors_[a].bank != tensors_[b].bank) return CommonBytes::kNone;
    return common_bytes_in_bank(a, b);
  }

  // What a step must leave as it is: the function's inputs, which a caller may bind, those of its outputs
  // that have been written, and its states, but that the next value of one may be written over it.
  // written: the tensor that the bytes are, if any. outputs: of the step that is being bound; they have
  // addresses, and hold nothing yet.
  struct Held {
    const char* noun;  // null where the range holds none of them
    uint32_t index, tensor;
  };
  Held find_held(const PlannedRange& range, const Tensors* outputs,
                 uint32_t written = format::kNoTensorIndex) const {
    const auto holds = [&](uint32_t t) { return overlaps(range, t); };
    const auto holds_value = [&](uint32_t t) {
      return session_.data[t] != nullptr && holds(t) && !contains(outputs, t);
    };
    const uint32_t num_inputs = format::count_of(function.inputs);
    for (uint32_t i = 0; i < num_inputs && !function.overwrites_inputs; ++i) {
      const uint32_t t = function.inputs->Get(i);
      if (holds(t)) return {"input", i, t};
    }
    for (uint32_t i = 0; i < format::count_of(function.outputs); ++i) {
      const uint32_t t = function.outputs->Get(i);
      if (holds_value(t)) return {"output", i, t};
    }
    for (uint32_t i = 0; i < num_states(); ++i) {
      const format::State& s = state(i);
      const bool replaces = written == s.output() && is_state_in_place(session_.plan, s);
      if (!replaces && holds(s.input())) return {"state", i, s.input()};
      if (holds_value(s.output())) return {"next state", i, s.output()};
    }
    return {nullptr, 0, 0};
  }

  // After a step has written the range, which is tensor `written` or none. What a caller binds moves, and
  // only that: a step that read what lay there would find the new bytes only while nothing is bound. So every
  // write takes the values of inputs and states, and that of an output takes those of all other tensors.
  __attribute__((noinline)) void overwrite(const PlannedRange& range,
                                           uint32_t written = format::kNoTensorIndex) {
    if (is_output(written)) {
      for (uint32_t t = 0; t < session_.num_data; ++t) {
        if (t != written && session_.data[t] != nullptr) hide_where_overlapped(range, t);
      }
      return;
    }
    for (uint32_t i = 0; i < format::count_of(function.inputs); ++i)
      hide_where_overlapped(range, function.inputs->Get(i));
    for (uint32_t i = 0; i < num_states(); ++i) hide_where_overlapped(range, state(i).input());
  }
  // After a device, a copy for it or a step in its place has written the range: only some runs do, so that
  // every other tensor there loses its value. written: the tensor that the bytes are, if any. spared: those
  // that have been written since.
  __attribute__((noinline)) void overwrite_all(const PlannedRange& range, uint32_t written,
                                               const Tensors* spared) {
    for (uint32_t t = 0; t < session_.num_data; ++t) {
      if (t == written || session_.data[t] == nullptr || !overlaps(range, t) || contains(spared, t)) continue;
      session_.data[t] = overwritten();
    }
  }
  // Whether the scratch of a step between the one that has written the tensor and this one lies over it: with
  // several workers scratch is elsewhere. Then the tensor has lost its value. Most tensors are read by the
  // next step, so that looking back takes less than taking values at each step with scratch.
  __attribute__((noinline)) bool is_under_scratch(uint32_t step, uint32_t t) {
    const auto* sizes = session_.function->scratch_sizes();
    const PlannedRange range = range_of(t);
    if (format::count_of(sizes) == 0 || range.bank != session_.plan.main_bank()) return false;
    while (step-- > 0) {
      const uint32_t index = session_.step_index(step);
      const format::NpuStep* npu = session_.plan.npu_step(index);
      if (contains(npu != nullptr ? npu->outputs() : session_.plan.step(index).outputs(), t)) return false;
      const PlannedRange scratch = {range.bank, session_.function->scratch_offsets()->Get(step),
                                    sizes->Get(step)};
      if (scratch.size != 0 && scratch.overlaps(range)) {
        session_.data[t] = overwritten();
        return true;
      }
      if (++steps_back_ > kMostStepsBack) return true;
    }
    return false;
  }
  // Where only the CPU's steps of a region write the tensor.
  void hide_without_device(uint32_t t) { session_.data[t] = written_by_cpu_only(); }
  bool is_hidden_without_device(uint32_t t) const { return session_.data[t] == written_by_cpu_only(); }

  bool has_value(uint32_t t) const { return session_.data[t] != nullptr && !is_hidden(t); }
  bool is_hidden(uint32_t t) const {
    return t < session_.num_data &&
           (session_.data[t] == written_by_cpu_only() || session_.data[t] == overwritten());
  }
  void show_hidden() {
    for (uint32_t t = 0; t < session_.num_data; ++t) {
      if (is_hidden(t)) session_.data[t] = session_.planned_address(t);
    }
  }
  // Continues the error of a step whose input i is tensor t, which has no value.
  __attribute__((noinline)) void refuse_read(Error* error, uint32_t i, uint32_t t) const {
    *error << "input " << i << " (tensor " << t << ")";
    if (session_.data[t] == overwritten()) {
      *error << " has been written over by an earlier step";
      return;
    }
    if (steps_back_ > kMostStepsBack) {
      *error << " has been written too many steps ago to check";
      return;
    }
    *error << " is written by no earlier step" << (is_hidden(t) ? kWhereOnADevice : "");
  }

 private:
  uint32_t num_states() const { return format::count_of(function.states); }
  const format::State& state(uint32_t i) const { return *function.states->Get(i); }

  __attribute__((noinline)) bool overlaps_range(const PlannedRange& range, uint32_t t) const {
    return range.overlaps(range_of(t));
  }
  __attribute__((noinline)) CommonBytes common_bytes_in_bank(uint32_t a, uint32_t b) const {
    const PlannedRange x = range_of(a), y = range_of(b);
    if (!x.overlaps(y)) return CommonBytes::kNone;
    return x.offset == y.offset && x.size == y.size ? CommonBytes::kAll : CommonBytes::kSome;
  }
  void hide_where_overlapped(const PlannedRange& range, uint32_t t) {
    if (overlaps(range, t)) session_.data[t] = overwritten();
  }
  void* written_by_cpu_only() const { return &session_; }
  void* overwritten() const { return session_.data; }

  // Steps that is_under_scratch looks at in all, so that init ends soon. Networks have some thousands.
  static constexpr uint32_t kMostStepsBack = 1u << 28;

  Session& session_;
  const StepTensor* tensors_ = nullptr;
  uint32_t steps_back_ = 0;
};

}  // namespace qplan

#endif  // QPLAN_SRC_RUNTIME_TENSOR_VALUES_H_
