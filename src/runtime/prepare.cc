// What session init checks and open() cannot: the flow of data through one function, and every step by its
// kernel family. Linear in the size of the plan, with the limits of plan_view.h as factors; besides, a family
// reads the constants that act as parameters, which steps may share: about what one invoke reads.
#include "format/plan_view.h"
#include "src/base/checked.h"
#include "src/base/error.h"
#include "src/runtime/bind/family.h"
#include "src/runtime/session.h"

namespace qplan {
namespace {

using format::Tensor;

class Preparation {
 public:
  Preparation(const SessionOptions& options, Session* session, Error* error)
      : options_(options),
        session_(*session),
        plan_(session->plan),
        error_(*error),
        function_(*session->function),
        first_step_(session->function->first_step()),
        num_steps_(session->function->num_steps()),
        scratch_sizes_(session->function->scratch_sizes()),
        arena_(session->arenas[plan_.main_bank()]),
        // The caller's memory has room for it.
        arena_bytes_(static_cast<size_t>(plan_.bank(plan_.main_bank()).size())) {}

  qplan_status run() {
    if (!check_function()) return error_.status();
    for (uint32_t i = 0; i < num_steps_; ++i) {
      const format::NpuStep* npu = plan_.npu_step(step_index(i));
      if (npu == nullptr ? !step(i) : !region(i, *npu)) return error_.status();
      if (npu != nullptr) i += npu->num_alternative_steps();
    }
    return finish();
  }
  qplan_status run_for_cpu() {
    if (!check_function()) return error_.status();
    for (uint32_t i = 0; i < num_steps_; ++i) {
      if (!step(i)) return error_.status();
    }
    return finish();
  }

 private:
  // Functions of their own, whose stack is free while steps are bound: this one, and others below.
  __attribute__((noinline)) bool check_function() {
    describe();
    return place_tensors() && check_function_ranges(plan_, function_, &error_);
  }

  __attribute__((noinline)) qplan_status finish() {
    if (!check_outputs_written()) return error_.status();
    show_hidden_tensors();
    // A caller that writes no input finds no addresses of the table in it, nor of what followed it.
    if (tensors_ != nullptr) memset(static_cast<void*>(tensors_), 0, described_bytes_);
    return QPLAN_OK;
  }

  // Every step asks for its tensors again and again: they are read once, into memory of activations, where
  // there is enough of it, after what binding uses (memory_at). What questions about a cascade share follows,
  // where there is enough for that, too.
  void describe() {
    constexpr size_t kBegin = 2 * kMaxArgsBytes;
    static_assert(kBegin % alignof(StepTensor) == 0, "the arena is aligned to more");
    const uint64_t end = kBegin + uint64_t{plan_.num_tensors()} * sizeof(StepTensor);
    if (arena_bytes_ < end) return;
    described_bytes_ = static_cast<size_t>(end) - kBegin;
    if (arena_bytes_ - static_cast<size_t>(end) >= kCascadeRoomBytes) {
      described_bytes_ += kCascadeRoomBytes;
      tensors_before_room_ = plan_.num_tensors();
    }
    auto* tensors = reinterpret_cast<StepTensor*>(arena_ + kBegin);
    describe_tensors(plan_, tensors);
    tensors_ = tensors;
  }

  // A tensor has an address from the moment it holds something: constants and inputs now, others when a step
  // writes them.
  bool place_tensors() {
    for (uint32_t t = 0; t < session_.num_data; ++t) {
      session_.data[t] = tensors_ != nullptr
                             ? tensors_[t].data
                             : const_cast<void*>(plan_.constant_data(t));  // NOLINT: never written
    }
    for (uint32_t i = 0; i < format::count_of(function_.inputs); ++i) {
      const uint32_t t = function_.inputs->Get(i);
      if (session_.data[t] != nullptr) {
        fail(QPLAN_PLAN_CORRUPT, t) << "session: tensor " << t << " is two inputs of the function";
        return false;
      }
      session_.data[t] = session_.planned_address(t);
    }
    for (uint32_t i = 0; i < num_states(); ++i) {
      const uint32_t t = state(i).input();
      if (session_.data[t] != nullptr) {
        fail(QPLAN_PLAN_CORRUPT, t) << "session: state " << i << " (tensor " << t
                                    << ") is an input or another state of the function, too";
        return false;
      }
      session_.data[t] = session_.planned_address(t);
    }
    return true;
  }

  uint32_t step_index(uint32_t i) const { return first_step_ + i; }
  uint32_t num_states() const { return format::count_of(function_.states); }
  const format::State& state(uint32_t i) const { return *function_.states->Get(i); }
  bool is_in_place(const format::State& state) const { return is_state_in_place(plan_, state); }

  __attribute__((noinline)) bool check_outputs_written() {
    for (uint32_t i = 0; i < format::count_of(function_.outputs); ++i) {
      const uint32_t t = function_.outputs->Get(i);
      if (session_.data[t] != nullptr && !is_hidden(t)) continue;
      fail(QPLAN_PLAN_CORRUPT, t) << "session: output " << i << " (tensor " << t << ") is written by no step"
                                  << (is_hidden(t) ? " where its region runs on a device" : "");
      return false;
    }
    for (uint32_t i = 0; i < num_states(); ++i) {
      const uint32_t t = state(i).output();
      if (session_.data[t] != nullptr && !is_hidden(t)) continue;
      fail(QPLAN_PLAN_CORRUPT, t) << "session: the next value of state " << i << " (tensor " << t
                                  << ") is written by no step";
      return false;
    }
    return true;
  }

  // A region and the steps that stand in for it.
  __attribute__((noinline)) bool region(uint32_t i, const format::NpuStep& npu) {
    const uint32_t index = step_index(i), num_fallback_steps = npu.num_alternative_steps();
    session_.steps[i].family = nullptr;
    if (!check_region_reads(index, npu) || !check_region_writes(index, npu) ||
        !add_work(index, "npu", region_work(plan_, npu))) {
      return false;
    }
    session_.macs += npu.macs();
    if (num_fallback_steps == 0) {
      for (uint32_t o = 0; o < npu.outputs()->size(); ++o) {
        const uint32_t t = npu.outputs()->Get(o);
        session_.data[t] = session_.planned_address(t);
        hide_replaced_state(t);
      }
      return true;
    }
    const uint64_t macs = session_.macs;
    for (uint32_t k = i + 1; k <= i + num_fallback_steps; ++k) {
      if (!check_spares_inputs(k, npu) || !step(k)) return false;
    }
    session_.macs = macs;
    for (uint32_t o = 0; o < npu.outputs()->size(); ++o) {
      const uint32_t t = npu.outputs()->Get(o);
      if (session_.data[t] != nullptr) continue;
      fail_region(index, t) << "output " << o << " (tensor " << t << ") is written by no fallback step";
      return false;
    }
    hide_intermediates(i, npu);
    return true;
  }

  bool check_region_reads(uint32_t index, const format::NpuStep& npu) {
    for (uint32_t i = 0; i < format::count_of(npu.inputs()); ++i) {
      const uint32_t t = npu.inputs()->Get(i);
      if (session_.data[t] != nullptr && !is_hidden(t)) continue;
      fail_region(index, t) << "input " << i << " (tensor " << t << ") is written by no earlier step";
      return false;
    }
    for (uint32_t o = 0; o < npu.outputs()->size(); ++o) {
      const uint32_t t = npu.outputs()->Get(o);
      if (session_.data[t] == nullptr) continue;
      fail_region(index, t) << "output " << o << " (tensor " << t << ") has been written before";
      return false;
    }
    return true;
  }

  // The outputs lie apart from each other, from the region's inputs and from what the function holds. So do
  // the bytes of the device's bank that copies and the device write; open() has compared them with the
  // step's.
  bool check_region_writes(uint32_t index, const format::NpuStep& npu) {
    for (uint32_t o = 0; o < npu.outputs()->size(); ++o) {
      const uint32_t t = npu.outputs()->Get(o);
      const Tensor& output = plan_.tensor(t);
      for (uint32_t i = 0; i < format::count_of(npu.inputs()); ++i) {
        if (!format::ranges_overlap(output, plan_.tensor(npu.inputs()->Get(i)))) continue;
        fail_region(index, t) << "output " << o << " overlaps input " << i << " in memory";
        return false;
      }
      for (uint32_t p = 0; p < o; ++p) {
        if (!format::ranges_overlap(output, plan_.tensor(npu.outputs()->Get(p)))) continue;
        fail_region(index, t) << "outputs " << p << " and " << o << " overlap in memory";
        return false;
      }
      const Held held = find_held(range_of(t), t);
      if (held.noun == nullptr) continue;
      fail_region(index, t) << "tensor " << t << " overlaps " << held.noun << " " << held.index
                            << " of the function in memory";
      return false;
    }
    for (uint32_t b = 0; b < npu.binds()->size(); ++b) {
      const format::NpuBind& bind = *npu.binds()->Get(b);
      if (bind.use() == format::NpuUse_INPUT && bind.strides() == nullptr) continue;
      const uint32_t bank = plan_.device_bank(npu.target(), bind.memory_class());
      const Held held = find_held({bank, bind.offset(), bind.size()});
      if (held.noun == nullptr) continue;
      fail_region(index, held.tensor)
          << "bind " << b << " overlaps " << held.noun << " " << held.index << " of the function in memory";
      return false;
    }
    return true;
  }

  // Where the plan has a tensor.
  struct Range {
    uint32_t bank;
    uint64_t offset, size;

    bool overlaps(const Range& other) const {
      return bank == other.bank && offset < other.offset + other.size && other.offset < offset + size;
    }
    bool operator==(const Range& other) const {
      return bank == other.bank && offset == other.offset && size == other.size;
    }
  };
  Range range_of(uint32_t t) const {
    if (tensors_ != nullptr) return {tensors_[t].bank, tensors_[t].offset, tensors_[t].size_bytes};
    const format::TensorRecord tensor((format::TableFields(&plan_.tensor(t))));
    return {tensor.bank, tensor.offset, tensor.size};
  }

  // Most tensors of most steps are in another bank.
  __attribute__((always_inline)) bool overlaps(const Range& range, uint32_t t) const {
    if (tensors_ != nullptr && tensors_[t].bank != range.bank) return false;
    return overlaps_range(range, t);
  }
  __attribute__((noinline)) bool overlaps_range(const Range& range, uint32_t t) const {
    return range.overlaps(range_of(t));
  }

  // Whether the step that is being bound will write it: it has an address, and holds nothing yet.
  bool is_bound_now(uint32_t t) const {
    for (uint32_t o = 0; o < format::count_of(step_outputs_); ++o) {
      if (step_outputs_->Get(o) == t) return true;
    }
    return false;
  }

  // What a step must leave as it is: the function's inputs, which a caller may bind, those of its outputs
  // that have been written, and its states, but that the next value of one may be written over it. written:
  // the tensor that the bytes are, if any.
  struct Held {
    const char* noun;  // null where the range holds none of them
    uint32_t index, tensor;
  };
  Held find_held(const Range& range, uint32_t written = format::kNoTensorIndex) const {
    const auto holds = [&](uint32_t t) { return overlaps(range, t); };
    const uint32_t num_inputs = format::count_of(function_.inputs);
    for (uint32_t i = 0; i < num_inputs && !function_.overwrites_inputs; ++i) {
      const uint32_t t = function_.inputs->Get(i);
      if (holds(t)) return {"input", i, t};
    }
    for (uint32_t i = 0; i < format::count_of(function_.outputs); ++i) {
      const uint32_t t = function_.outputs->Get(i);
      if (session_.data[t] != nullptr && holds(t) && !is_bound_now(t)) return {"output", i, t};
    }
    for (uint32_t i = 0; i < num_states(); ++i) {
      const format::State& s = state(i);
      const bool replaces = written == s.output() && is_in_place(s);
      if (!replaces && holds(s.input())) return {"state", i, s.input()};
      if (session_.data[s.output()] != nullptr && holds(s.output()) && !is_bound_now(s.output()))
        return {"next state", i, s.output()};
    }
    return {nullptr, 0, 0};
  }

  // A region that failed, or that the CPU does again, finds its inputs whole: steps that stand in for it
  // write nothing there.
  bool check_spares_inputs(uint32_t i, const format::NpuStep& npu) {
    const format::KernelStep& step = plan_.step(step_index(i));
    for (uint32_t o = 0; o < format::count_of(step.outputs()); ++o) {
      const uint32_t t = step.outputs()->Get(o);
      for (uint32_t k = 0; k < format::count_of(npu.inputs()); ++k) {
        if (!format::ranges_overlap(plan_.tensor(t), plan_.tensor(npu.inputs()->Get(k)))) continue;
        fail_region(step_index(i), t)
            << "is a fallback step of a region and overwrites input " << k << " of it in memory";
        return false;
      }
    }
    return true;
  }

  // What only the CPU's steps of a region write, nothing after them may read.
  void hide_intermediates(uint32_t i, const format::NpuStep& npu) {
    for (uint32_t k = i + 1; k <= i + npu.num_alternative_steps(); ++k) {
      const auto* outputs = plan_.step(step_index(k)).outputs();
      for (uint32_t o = 0; o < outputs->size(); ++o) {
        const uint32_t t = outputs->Get(o);
        bool is_result = false;
        for (uint32_t r = 0; r < npu.outputs()->size(); ++r) is_result |= npu.outputs()->Get(r) == t;
        if (!is_result) session_.data[t] = &session_;
      }
    }
  }
  // What a state was is gone where its next value was written over it.
  __attribute__((noinline)) void hide_replaced_state(uint32_t written) {
    for (uint32_t i = 0; i < num_states(); ++i) {
      if (state(i).output() == written && is_in_place(state(i))) session_.data[state(i).input()] = &session_;
    }
  }
  bool is_state(uint32_t t) const {
    bool is_one = false;
    for (uint32_t i = 0; i < num_states(); ++i) is_one |= state(i).input() == t;
    return is_one;
  }
  bool is_hidden(uint32_t t) const { return t < session_.num_data && session_.data[t] == &session_; }
  void show_hidden_tensors() {
    for (uint32_t t = 0; t < session_.num_data; ++t) {
      if (is_hidden(t)) session_.data[t] = session_.planned_address(t);
    }
  }

  bool step(uint32_t i) {
    const format::KernelStep& step = plan_.step(step_index(i));
    const KernelFamily* family = find_family(plan_, step_index(i), step.kernel(), *options_.kernels, &error_);
    if (family == nullptr) return false;
    uint8_t* const args = memory_at(0);
    return args == nullptr ? bind_on_stack(i, *family, step) : bind(i, *family, step, args);
  }

  // Where the stack is short: memory of activations, which nothing has been written to yet. Null where there
  // is less than kMaxArgsBytes of it.
  uint8_t* memory_at(size_t offset) const {
    return kKeepsArgs || arena_bytes_ < offset + kMaxArgsBytes ? nullptr : arena_ + offset;
  }

  __attribute__((noinline)) bool bind_on_stack(uint32_t i, const KernelFamily& family,
                                               const format::KernelStep& step) {
    alignas(kArgsAlignment) uint8_t args[kMaxArgsBytes];
    return bind(i, family, step, args);
  }

  __attribute__((noinline)) bool bind(uint32_t i, const KernelFamily& family, const format::KernelStep& step,
                                      void* args) {
    StepView view = session_.step_view(step);
    view.room = memory_at(kMaxArgsBytes);
    view.tensors = tensors_;
    view.tensors_before_room = tensors_before_room_;
    step_inputs_ = view.step->inputs();
    step_outputs_ = view.step->outputs();
    const uint32_t index = step_index(i);
    if (!check_reads(index, family, view)) return false;
    place_outputs();
    if (family.bind(view, true, args, &error_) < 0) {
      place_step_error(plan_, index, family, &error_);
      return false;
    }
    if (!check_writes(index, family, view) || !check_scratch(i, family) ||
        !add_work(index, family.name, family.work(args)))
      return false;
    if (!choose(i, family, step, args)) return false;
    for (uint32_t o = 0; num_states() != 0 && o < step_outputs_->size(); ++o)
      hide_replaced_state(step_outputs_->Get(o));
    step_outputs_ = nullptr;
    return true;
  }

  __attribute__((noinline)) bool check_reads(uint32_t index, const KernelFamily& family,
                                             const StepView& view) {
    for (uint32_t i = 0; i < format::count_of(step_inputs_); ++i) {
      const uint32_t t = step_inputs_->Get(i);
      if (tensors_ != nullptr && tensors_[t].is_constant) continue;
      if (view.address(t) != nullptr && !is_hidden(t)) continue;
      if (is_state(t)) {
        fail_step(index, family, t) << "input " << i << " (tensor " << t
                                    << ") is a state that an earlier step has written over";
        return false;
      }
      fail_step(index, family, t) << "input " << i << " (tensor " << t << ") is written by no earlier step"
                                  << (is_hidden(t) ? " where its region runs on a device" : "");
      return false;
    }
    for (uint32_t o = 0; o < step_outputs_->size(); ++o) {
      const uint32_t t = step_outputs_->Get(o);
      if (session_.data[t] == nullptr) continue;
      fail_step(index, family, t) << "output " << o << " (tensor " << t << ") has been written before";
      return false;
    }
    return true;
  }

  // Before the step is bound: what takes the place of an input is known by its address. This and what
  // check_writes calls are functions of their own, to keep the stack short under cascades that are asked
  // whether they may be in place.
  __attribute__((noinline)) void place_outputs() {
    for (uint32_t o = 0; o < step_outputs_->size(); ++o) {
      const Range range = range_of(step_outputs_->Get(o));
      session_.data[step_outputs_->Get(o)] = session_.arenas[range.bank] + static_cast<size_t>(range.offset);
    }
  }
  __attribute__((noinline)) bool are_same_bytes(uint32_t a, uint32_t b) const {
    return range_of(a) == range_of(b);
  }
  __attribute__((noinline)) bool share_bytes_in_bank(uint32_t a, uint32_t b) const {
    return range_of(a).overlaps(range_of(b));
  }
  bool share_bytes(uint32_t a, uint32_t b) const {
    return (tensors_ == nullptr || tensors_[a].bank == tensors_[b].bank) && share_bytes_in_bank(a, b);
  }
  __attribute__((noinline)) bool check_held(uint32_t index, const KernelFamily& family, uint32_t o) {
    const uint32_t t = step_outputs_->Get(o);
    const Held held = find_held(range_of(t), t);
    if (held.noun == nullptr) return true;
    fail_step(index, family, t) << "output " << o << " overlaps " << held.noun << " " << held.index
                                << " of the function in memory";
    return false;
  }

  // Outputs lie apart from each other, from what the function holds, and from the step's inputs but for those
  // whose buffer the family can take over, or that are part of the output or have it as a part.
  __attribute__((noinline)) bool check_writes(uint32_t index, const KernelFamily& family,
                                              const StepView& view) {
    uint64_t offset = 0;
    for (uint32_t o = 0; o < step_outputs_->size(); ++o) {
      const uint32_t t = step_outputs_->Get(o);
      for (uint32_t i = 0; i < format::count_of(step_inputs_); ++i) {
        const uint32_t input = step_inputs_->Get(i);
        if (!share_bytes(t, input)) continue;
        if (family.in_place != nullptr && are_same_bytes(t, input) && family.in_place(view, o, i)) continue;
        if (family.part != nullptr && family.part(view, o, i, &offset) && is_part(view, o, i, offset))
          continue;
        fail_step(index, family, t) << "output " << o << " overlaps input " << i << " in memory";
        return false;
      }
      for (uint32_t p = 0; p < o; ++p) {
        if (!share_bytes(t, step_outputs_->Get(p))) continue;
        fail_step(index, family, t) << "outputs " << p << " and " << o << " overlap in memory";
        return false;
      }
      if (!check_held(index, family, o)) return false;
    }
    return true;
  }

  // Scratch in the arena lies apart from what the step reads and writes, and from what the function holds.
  __attribute__((noinline)) bool check_scratch(uint32_t i, const KernelFamily& family) {
    if (format::count_of(scratch_sizes_) == 0 || scratch_sizes_->Get(i) == 0) return true;
    const Range scratch = {plan_.main_bank(), session_.function->scratch_offsets()->Get(i),
                           scratch_sizes_->Get(i)};
    for (const auto* tensors : {step_inputs_, step_outputs_}) {
      for (uint32_t k = 0; k < format::count_of(tensors); ++k) {
        const uint32_t t = tensors->Get(k);
        if (!overlaps(scratch, t)) continue;
        fail_step(step_index(i), family, t) << "its scratch overlaps tensor " << t << " in memory";
        return false;
      }
    }
    const Held held = find_held(scratch);
    if (held.noun == nullptr) return true;
    fail_step(step_index(i), family, held.tensor)
        << "its scratch overlaps " << held.noun << " " << held.index << " of the function in memory";
    return false;
  }

  // Whether one of the two lies exactly where it is a part of the other. What a caller can bind is neither.
  __attribute__((noinline)) bool is_part(const StepView& view, uint32_t o, uint32_t i,
                                         uint64_t offset) const {
    const Range output = range_of(view.step->outputs()->Get(o));
    const Range input = range_of(view.step->inputs()->Get(i));
    const bool output_is_part = output.size < input.size;
    const Range& part = output_is_part ? output : input;
    const Range& whole = output_is_part ? input : output;
    return part.offset >= whole.offset && part.offset - whole.offset == offset &&
           !is_bindable(view.step->outputs()->Get(o)) && !is_bindable(view.step->inputs()->Get(i));
  }

  bool is_bindable(uint32_t tensor) const {
    for (uint32_t i = 0; i < format::count_of(function_.inputs); ++i) {
      if (function_.inputs->Get(i) == tensor) return true;
    }
    for (uint32_t i = 0; i < format::count_of(function_.outputs); ++i) {
      if (function_.outputs->Get(i) == tensor) return true;
    }
    return false;
  }

  __attribute__((noinline)) bool choose(uint32_t i, const KernelFamily& family,
                                        const format::KernelStep& step, const void* args) {
    const uint32_t index = step_index(i);
    const size_t limit = session_.step_scratch_bytes(i);
    const KernelVariant* variant = choose_variant(family, args, options_.isa_limit, limit, step.schedule());
    if (variant == nullptr) {
      fail_step(index, family, 0, false) << "no variant of the kernel set computes it";
      error_.set_status(QPLAN_KERNEL_MISSING);
      return false;
    }
    const size_t scratch = variant->scratch_bytes(args);
    if (scratch > limit) {
      fail_step(index, family, 0, false)
          << "kernel '" << variant->name << "' needs " << static_cast<uint64_t>(scratch)
          << " bytes of scratch, the plan provides " << static_cast<uint64_t>(limit);
      return false;
    }
    session_.steps[i].family = &family;
    session_.steps[i].variant = variant;
    if (logs(QPLAN_LOG_WARNING)) warn_of_short_scratch(i, family, args, *variant);
    if (variant->isa > session_.isa) session_.isa = static_cast<uint16_t>(variant->isa);
    session_.macs += step.macs();
    if (logs(QPLAN_LOG_DEBUG)) log_choice(index, *variant);
    return true;
  }

  bool logs(uint32_t level) const {
    return session_.platform.log != nullptr && session_.platform.log_level >= level;
  }

  // Functions of their own: a text takes some stack, which steps would take with it.
  __attribute__((noinline)) void log_choice(uint32_t index, const KernelVariant& variant) {
    Error text;
    text << "session: step " << index << Named{plan_.step_name(index)} << ": " << variant.name;
    log_text(session_.platform, QPLAN_LOG_DEBUG, text.text());
  }

  // A plan of an older packer may provide less than a kernel of today wants: the bytes are the same, the time
  // is not.
  __attribute__((noinline)) void warn_of_short_scratch(uint32_t i, const KernelFamily& family,
                                                       const void* args, const KernelVariant& chosen) {
    const KernelVariant* best =
        choose_variant(family, args, options_.isa_limit, SIZE_MAX, session_.step_view(i).step->schedule());
    if (best == &chosen) return;
    const uint32_t index = step_index(i);
    Error text;
    text << "session: step " << index << Named{plan_.step_name(index)} << ": " << best->name << " needs "
         << static_cast<uint64_t>(best->scratch_bytes(args)) << " bytes of scratch, the plan provides "
         << static_cast<uint64_t>(session_.step_scratch_bytes(i)) << ": " << chosen.name
         << " runs in its place, which is slower; pack the model again";
    log_text(session_.platform, QPLAN_LOG_WARNING, text.text());
  }

  // Counts a step's work; an error where the sum is beyond the caller's limit.
  __attribute__((noinline)) bool add_work(uint32_t index, const char* op, uint64_t work) {
    session_.work = saturating_sum(session_.work, work);
    if (options_.max_work == 0 || session_.work <= options_.max_work) return true;
    error_.set(QPLAN_WORK_LIMIT, static_cast<int32_t>(index));
    error_ << op << Named{plan_.step_name(index)} << " (step " << index << "): its work is " << work
           << " operations, which makes " << session_.work << " with the steps before it, beyond max_work "
           << options_.max_work << "; raise max_work if the plan is meant to compute that much";
    return false;
  }

  Error& fail(qplan_status status, uint32_t tensor) {
    return error_.set(status, -1, static_cast<int32_t>(tensor));
  }

  // "npu 'block3' (step 12): "
  Error& fail_region(uint32_t index, uint32_t tensor) {
    error_.set(QPLAN_PLAN_CORRUPT, static_cast<int32_t>(index), static_cast<int32_t>(tensor));
    return error_ << "npu" << Named{plan_.step_name(index)} << " (step " << index << "): ";
  }

  // "conv2d 'block3/conv' (step 12): "
  Error& fail_step(uint32_t index, const KernelFamily& family, uint32_t tensor, bool has_tensor = true) {
    error_.set(QPLAN_PLAN_CORRUPT, static_cast<int32_t>(index),
               has_tensor ? static_cast<int32_t>(tensor) : -1);
    return error_ << family.name << Named{plan_.step_name(index)} << " (step " << index << "): ";
  }

  const SessionOptions& options_;
  Session& session_;
  const format::PlanView& plan_;
  Error& error_;
  const FunctionTensors function_;
  const uint32_t first_step_, num_steps_;
  const flatbuffers::Vector<uint32_t>* const scratch_sizes_;
  uint8_t* const arena_;
  const size_t arena_bytes_;
  // Tensors of the step that is being bound; null between steps.
  const flatbuffers::Vector<uint32_t>*step_inputs_ = nullptr, *step_outputs_ = nullptr;
  StepTensor* tensors_ = nullptr;  // all of the plan's, where there is memory for them
  size_t described_bytes_ = 0;
  uint32_t tensors_before_room_ = 0;  // as many as there are, where kCascadeRoomBytes follow them
};

}  // namespace

qplan_status prepare(const SessionOptions& options, Session* session, Error* error) {
  return Preparation(options, session, error).run();
}

qplan_status prepare_for_cpu(const SessionOptions& options, Session* session, Error* error) {
  return Preparation(options, session, error).run_for_cpu();
}

}  // namespace qplan
