// What session init checks and open() cannot: the flow of data through one function, and every step by its
// kernel family. Linear in the size of the plan, with the limits of plan_view.h as factors, but where steps
// are compared with earlier ones, which has limits of its own (prepare_regions.h, tensor_values.h); besides,
// a family reads the constants that act as parameters, which steps may share: about what one invoke reads.
#include "format/plan_view.h"
#include "src/base/checked.h"
#include "src/base/error.h"
#include "src/runtime/bind/family.h"
#include "src/runtime/cascade.h"
#include "src/runtime/prepare_regions.h"
#include "src/runtime/session.h"
#include "src/runtime/tensor_values.h"

namespace qplan {
namespace {

using format::Tensor;

class Preparation {
 public:
  Preparation(const SessionOptions& options, Session* session, Error* error)
      : options_(options),
        session_(*session),
        error_(*error),
        values_(session),
        first_step_(session->function->first_step()),
        num_steps_(session->function->num_steps()),
        scratch_sizes_(session->function->scratch_sizes()),
        arena_(session->arenas[plan().main_bank()]),
        // The caller's memory has room for it.
        arena_bytes_(static_cast<size_t>(plan().bank(plan().main_bank()).size())) {}

  qplan_status run() {
    if (!check_function()) return error_.status();
    for (uint32_t i = 0; i < num_steps_; ++i) {
      const format::NpuStep* npu = plan().npu_step(step_index(i));
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
    return place_tensors() && check_function_ranges(plan(), values_.function, &error_);
  }

  __attribute__((noinline)) qplan_status finish() {
    if (!check_outputs_written()) return error_.status();
    values_.show_hidden();
    // A caller that writes no input finds no addresses of the table in it, nor of what followed it.
    if (described_bytes_ != 0) memset(arena_ + kTable, 0, described_bytes_);
    return QPLAN_OK;
  }

  // Every step asks for its tensors again and again: they are read once, into memory of activations, where
  // there is enough of it, after what binding uses (memory_at). What questions about a cascade share follows,
  // where there is enough for that, too.
  void describe() {
    const uint64_t end = kTable + uint64_t{plan().num_tensors()} * sizeof(StepTensor);
    if (arena_bytes_ < end) return;
    described_bytes_ = static_cast<size_t>(end) - kTable;
    if (arena_bytes_ - static_cast<size_t>(end) >= kCascadeRoomBytes) {
      described_bytes_ += kCascadeRoomBytes;
      tensors_before_room_ = plan().num_tensors();
    }
    auto* tensors = reinterpret_cast<StepTensor*>(arena_ + kTable);
    describe_tensors(plan(), tensors);
    values_.use(tensors);
  }

  // A tensor has an address from the moment it holds something: constants and inputs now, others when a step
  // writes them.
  bool place_tensors() {
    for (uint32_t t = 0; t < session_.num_data; ++t) {
      session_.data[t] = values_.tensors() != nullptr
                             ? values_.tensors()[t].data
                             : const_cast<void*>(plan().constant_data(t));  // NOLINT: never written
    }
    for (uint32_t i = 0; i < format::count_of(values_.function.inputs); ++i) {
      const uint32_t t = values_.function.inputs->Get(i);
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

  const format::PlanView& plan() const { return session_.plan; }
  uint32_t step_index(uint32_t i) const { return first_step_ + i; }
  uint32_t num_states() const { return format::count_of(values_.function.states); }
  const format::State& state(uint32_t i) const { return *values_.function.states->Get(i); }

  __attribute__((noinline)) bool check_outputs_written() {
    for (uint32_t i = 0; i < format::count_of(values_.function.outputs); ++i) {
      const uint32_t t = values_.function.outputs->Get(i);
      if (values_.has_value(t)) continue;
      fail(QPLAN_PLAN_CORRUPT, t) << "session: output " << i << " (tensor " << t << ") is written by no step"
                                  << (values_.is_hidden(t) ? kWhereOnADevice : "");
      return false;
    }
    for (uint32_t i = 0; i < num_states(); ++i) {
      const uint32_t t = state(i).output();
      if (values_.has_value(t)) continue;
      fail(QPLAN_PLAN_CORRUPT, t) << "session: the next value of state " << i << " (tensor " << t
                                  << ") is written by no step";
      return false;
    }
    return true;
  }

  // A region and the steps that stand in for it.
  __attribute__((noinline)) bool region(uint32_t i, const format::NpuStep& npu) {
    RegionChecks checks(&session_, &values_, &error_);
    session_.steps[i].family = nullptr;
    if (!checks.begin(i, npu) || !add_work(step_index(i), "npu", region_work(plan(), npu))) return false;
    const uint64_t macs = session_.macs + npu.macs();
    for (uint32_t k = i + 1; k <= i + npu.num_alternative_steps(); ++k) {
      if (!checks.check_fallback_step(k, npu) || !step(k)) return false;
    }
    session_.macs = macs;
    return checks.end(i, npu);
  }

  bool step(uint32_t i) {
    const format::KernelStep& step = plan().step(step_index(i));
    const KernelFamily* family =
        find_family(plan(), step_index(i), step.kernel(), *options_.kernels, &error_);
    if (family == nullptr) return false;
    uint8_t* const args = memory_at(0, kMaxArgsBytes);
    return args == nullptr ? bind_on_stack(i, *family, step) : bind(i, *family, step, args);
  }

  // Where the stack is short: memory of activations, which nothing has been written to yet. Null where there
  // are fewer bytes of it. It has the arguments of a step, of which those of a cascade are among the
  // shortest, and after these what the questions about a cascade take.
  uint8_t* memory_at(size_t offset, size_t bytes) const {
    return kKeepsArgs || arena_bytes_ < offset + bytes ? nullptr : arena_ + offset;
  }

  __attribute__((noinline)) bool bind_on_stack(uint32_t i, const KernelFamily& family,
                                               const format::KernelStep& step) {
    alignas(kArgsAlignment) uint8_t args[kMaxArgsBytes];
    return bind(i, family, step, args);
  }

  __attribute__((noinline)) bool bind(uint32_t i, const KernelFamily& family, const format::KernelStep& step,
                                      void* args) {
    StepView view = session_.step_view(step);
    view.room = memory_at(kRoom, kInitRoomBytes);
    view.tensors = values_.tensors();
    view.tensors_before_room = tensors_before_room_;
    step_inputs_ = view.step->inputs();
    step_outputs_ = view.step->outputs();
    const uint32_t index = step_index(i);
    if (!check_reads(index, family, view)) return false;
    place_outputs();
    if (family.bind(view, true, args, &error_) < 0) {
      place_step_error(plan(), index, family, &error_);
      return false;
    }
    if (!check_writes(index, family, view) || !check_scratch(i, family) ||
        !add_work(index, family.name, family.work(args)))
      return false;
    if (!choose(i, family, step, args)) return false;
    overwrite_outputs();
    step_outputs_ = nullptr;
    return true;
  }
  __attribute__((noinline)) void overwrite_outputs() {
    for (uint32_t o = 0; o < step_outputs_->size(); ++o)
      values_.overwrite(values_.range_of(step_outputs_->Get(o)), step_outputs_->Get(o));
  }

  __attribute__((noinline)) bool check_reads(uint32_t index, const KernelFamily& family,
                                             const StepView& view) {
    for (uint32_t i = 0; i < format::count_of(step_inputs_); ++i) {
      const uint32_t t = step_inputs_->Get(i);
      if (values_.tensors() != nullptr && values_.tensors()[t].is_constant) continue;
      if (view.address(t) != nullptr && !values_.is_hidden(t) &&
          !values_.is_under_scratch(index - first_step_, t))
        continue;
      values_.refuse_read(&fail_step(index, family, t), i, t);
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
      const PlannedRange range = values_.range_of(step_outputs_->Get(o));
      session_.data[step_outputs_->Get(o)] = session_.arenas[range.bank] + static_cast<size_t>(range.offset);
    }
  }
  __attribute__((noinline)) bool check_held(uint32_t index, const KernelFamily& family, uint32_t o) {
    const uint32_t t = step_outputs_->Get(o);
    const TensorValues::Held held = values_.find_held(values_.range_of(t), step_outputs_, t);
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
        const CommonBytes common = values_.common_bytes(t, input);
        if (common == CommonBytes::kNone) continue;
        if (family.in_place != nullptr && common == CommonBytes::kAll && family.in_place(view, o, i))
          continue;
        if (family.part != nullptr && family.part(view, o, i, &offset) && is_part(view, o, i, offset))
          continue;
        fail_step(index, family, t) << "output " << o << " overlaps input " << i << " in memory";
        return false;
      }
      for (uint32_t p = 0; p < o; ++p) {
        if (values_.common_bytes(t, step_outputs_->Get(p)) == CommonBytes::kNone) continue;
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
    const PlannedRange scratch = {plan().main_bank(), session_.function->scratch_offsets()->Get(i),
                                  scratch_sizes_->Get(i)};
    for (const auto* tensors : {step_inputs_, step_outputs_}) {
      for (uint32_t k = 0; k < format::count_of(tensors); ++k) {
        const uint32_t t = tensors->Get(k);
        if (!values_.overlaps(scratch, t)) continue;
        fail_step(step_index(i), family, t) << "its scratch overlaps tensor " << t << " in memory";
        return false;
      }
    }
    const TensorValues::Held held = values_.find_held(scratch, step_outputs_);
    if (held.noun != nullptr) {
      fail_step(step_index(i), family, held.tensor)
          << "its scratch overlaps " << held.noun << " " << held.index << " of the function in memory";
      return false;
    }
    values_.overwrite(scratch);
    return true;
  }

  // Whether one of the two lies exactly where it is a part of the other. What a caller can bind is neither.
  __attribute__((noinline)) bool is_part(const StepView& view, uint32_t o, uint32_t i,
                                         uint64_t offset) const {
    const PlannedRange output = values_.range_of(view.step->outputs()->Get(o));
    const PlannedRange input = values_.range_of(view.step->inputs()->Get(i));
    const bool output_is_part = output.size < input.size;
    const PlannedRange& part = output_is_part ? output : input;
    const PlannedRange& whole = output_is_part ? input : output;
    return part.offset >= whole.offset && part.offset - whole.offset == offset &&
           !values_.is_bindable(view.step->outputs()->Get(o)) &&
           !values_.is_bindable(view.step->inputs()->Get(i));
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
    text << "session: step " << index << Named{plan().step_name(index)} << ": " << variant.name;
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
    text << "session: step " << index << Named{plan().step_name(index)} << ": " << best->name << " needs "
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
    error_ << op << Named{plan().step_name(index)} << " (step " << index << "): its work is " << work
           << " operations, which makes " << session_.work << " with the steps before it, beyond max_work "
           << options_.max_work << "; raise max_work if the plan is meant to compute that much";
    return false;
  }

  Error& fail(qplan_status status, uint32_t tensor) {
    return error_.set(status, -1, static_cast<int32_t>(tensor));
  }

  // "conv2d 'block3/conv' (step 12): "
  Error& fail_step(uint32_t index, const KernelFamily& family, uint32_t tensor, bool has_tensor = true) {
    error_.set(QPLAN_PLAN_CORRUPT, static_cast<int32_t>(index),
               has_tensor ? static_cast<int32_t>(tensor) : -1);
    return error_ << family.name << Named{plan().step_name(index)} << " (step " << index << "): ";
  }

  const SessionOptions& options_;
  Session& session_;
  Error& error_;
  TensorValues values_;
  const uint32_t first_step_, num_steps_;
  const flatbuffers::Vector<uint32_t>* const scratch_sizes_;
  uint8_t* const arena_;
  const size_t arena_bytes_;
  // Tensors of the step that is being bound; null between steps.
  const flatbuffers::Vector<uint32_t>*step_inputs_ = nullptr, *step_outputs_ = nullptr;
  // Where the table of tensors is in the arena, after memory_at, and how much of it there is.
  static constexpr size_t kRoom =
      (sizeof(CascadeArgs) + kArgsAlignment - 1) / kArgsAlignment * kArgsAlignment;
  static constexpr size_t kTable = kKeepsArgs ? 2 * kMaxArgsBytes : kRoom + kInitRoomBytes;
  static_assert(kTable >= kMaxArgsBytes && kTable % alignof(StepTensor) == 0, "the arena is aligned to more");
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
