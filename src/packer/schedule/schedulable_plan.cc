#include <algorithm>
#include <cstring>
#include <string>

#include "format/container.h"
#include "src/base/checked.h"
#include "src/base/sha256.h"
#include "src/packer/error.h"
#include "src/packer/schedule/schedule.h"
#include "src/runtime/bind/family.h"

namespace qplan::schedule {
namespace {

using flatbuffers::Offset;

target::TargetProfile profile_of(const format::PlanView& view) {
  const auto* targets = view.plan().targets();
  const format::Target* cpu = format::count_of(targets) > 0 ? targets->Get(0) : nullptr;
  if (cpu == nullptr || cpu->name() == nullptr || cpu->options() == nullptr || cpu->options()->size() == 0) {
    throw PackError(QPLAN_MODEL_UNSUPPORTED,
                    "the plan does not say which processor it is for; pack it again");
  }
  return target::parse_target(cpu->name()->str() + "," + cpu->options()->str());
}

// Makes the tables of banks, steps and functions anew, with all their fields, in front of the old root, whose
// other tables they refer to: a flatbuffer is made from its end, and references lead towards the end.
class RootBuilder {
 public:
  explicit RootBuilder(const format::PlanView& view)
      : view_(view), old_(view.bytes() + sizeof(format::Header)), old_size_(view.header().root_size) {}

  flatbuffers::DetachedBuffer run() {
    const std::vector<uint8_t> filler(round_up(old_size_, kAlignment) - old_size_, 0);
    builder_.PushBytes(filler.data(), filler.size());
    builder_.PushBytes(old_, old_size_);
    old_end_ = builder_.GetSize();
    builder_.ForceDefaults(true);
    std::vector<Offset<format::Bank>> banks;
    for (uint32_t b = 0; b < view_.num_banks(); ++b) banks.push_back(bank(view_.bank(b)));
    std::vector<Offset<format::Step>> steps;
    for (uint32_t s = 0; s < view_.num_steps(); ++s) steps.push_back(step(s));
    std::vector<Offset<format::Function>> functions;
    for (uint32_t f = 0; f < view_.num_functions(); ++f) functions.push_back(function(view_.function(f)));
    const auto bank_vector = builder_.CreateVector(banks);
    const auto step_vector = builder_.CreateVector(steps);
    const auto function_vector = builder_.CreateVector(functions);
    const format::Plan& plan = view_.plan();
    builder_.Finish(format::CreatePlan(builder_, old(plan.targets()), bank_vector, old(plan.tensors()),
                                       step_vector, function_vector, plan.arena_lower_bound(),
                                       old(plan.copies())));
    return builder_.Release();
  }

 private:
  static constexpr uint64_t kAlignment = 8;  // of the largest number in a plan

  // What stands in the old root; null stays null. Offsets count from the buffer's end.
  template <typename T>
  Offset<T> old(const T* object) const {
    if (object == nullptr) return 0;
    const auto* at = reinterpret_cast<const uint8_t*>(object);
    return static_cast<flatbuffers::uoffset_t>(old_end_ - static_cast<size_t>(at - old_));
  }

  Offset<format::Bank> bank(const format::Bank& bank) {
    return format::CreateBank(builder_, bank.kind(), bank.alignment(), bank.size(), bank.file_offset(),
                              bank.target(), bank.memory_class());
  }

  Offset<format::Step> step(uint32_t s) {
    if (const format::NpuStep* npu = view_.npu_step(s)) {
      return format::CreateStep(builder_, format::StepBody_NpuStep, old(npu).Union());
    }
    const format::KernelStep& step = view_.step(s);
    const Offset<void> params = old(static_cast<const uint8_t*>(step.params())).Union();
    const auto body =
        format::CreateKernelStep(builder_, step.kernel(), old(step.inputs()), old(step.outputs()),
                                 step.params_type(), params, step.macs(), step.min_units_per_task(),
                                 step.schedule(), old(step.residual()), step.residual_is_input1());
    return format::CreateStep(builder_, format::StepBody_KernelStep, body.Union());
  }

  Offset<format::Function> function(const format::Function& function) {
    return format::CreateFunction(
        builder_, old(function.name()), old(function.inputs()), old(function.outputs()),
        function.first_step(), function.num_steps(), function.scratch_per_worker(),
        old(function.scratch_offsets()), old(function.scratch_sizes()), function.overwrites_inputs(),
        old(function.states()), old(function.self_checks()), old(function.constant_checksums()));
  }

  const format::PlanView& view_;
  const uint8_t* old_;
  const size_t old_size_;
  size_t old_end_ = 0;  // where the old root begins, counted from the buffer's end
  flatbuffers::FlatBufferBuilder builder_;
};

// A field of a table that RootBuilder made.
template <typename Table, typename T>
void set_field(const Table& table, flatbuffers::voffset_t field, T value) {
  auto* base =
      reinterpret_cast<flatbuffers::Table*>(const_cast<Table*>(&table));  // NOLINT: the buffer is ours
  if (!base->SetField<T>(field, value, 0) && value != 0) {
    throw PackError(QPLAN_INTERNAL, "reschedule: a table lacks its field " + std::to_string(field));
  }
}

// Where the constants begin, or would.
uint64_t constants_begin(uint64_t root_size) {
  return round_up(sizeof(format::Header) + root_size, format::kFileAlignment);
}

}  // namespace

SchedulablePlan::SchedulablePlan(const format::PlanView& view)
    : view_(view), profile_(profile_of(view)), root_(RootBuilder(view).run()) {
  if (root_.size() > UINT32_MAX) {
    throw PackError(QPLAN_MODEL_UNSUPPORTED, "reschedule: the plan's tables would not fit its header");
  }
  for (uint32_t t = 0; t < view.num_tensors(); ++t) {
    // Nobody writes through it: kernels are asked, not run.
    data_.push_back(const_cast<void*>(view.constant_data(t)));  // NOLINT
  }
  place_what_is_in_place();
  uint64_t alignment = format::kFileAlignment;
  for (uint32_t b = 0; b < view.num_banks(); ++b) {
    if (view.bank(b).kind() == format::BankKind_CONSTANT)
      alignment = std::max<uint64_t>(alignment, view.bank(b).alignment());
  }
  shift_ = round_up(constants_begin(root_.size()) - constants_begin(view.header().root_size), alignment);
  for (uint32_t b = 0; b < view.num_banks(); ++b) {
    if (view.bank(b).kind() != format::BankKind_CONSTANT) continue;
    set_field(*plan().banks()->Get(b), format::Bank::VT_FILE_OFFSET, view.bank(b).file_offset() + shift_);
  }
}

// A layer in place needs other scratch memory, and vectors leave it to others: its kernel sees that by the
// addresses. Only plans that have scratch in the arena have such layers. Other activations have no address,
// as when the model was packed.
void SchedulablePlan::place_what_is_in_place() {
  for (uint32_t s = 0; s < view_.num_steps(); ++s) {
    if (!is_kernel(s) || scratch_in_arena(s) == UINT64_MAX) continue;
    const format::KernelStep& step = view_.step(s);
    for (uint32_t i = 0; i < format::count_of(step.inputs()); ++i) {
      for (uint32_t o = 0; o < format::count_of(step.outputs()); ++o) {
        const uint32_t input = step.inputs()->Get(i), output = step.outputs()->Get(o);
        const format::Tensor& from = view_.tensor(input);
        const format::Tensor& to = view_.tensor(output);
        if (from.bank() != to.bank() || from.offset() != to.offset()) continue;
        data_[input] = data_[output] = &places_[{to.bank(), to.offset()}];
      }
    }
  }
}

void SchedulablePlan::set_schedule(uint32_t step, uint64_t schedule) {
  set_field(*plan().steps()->Get(step)->body_as_KernelStep(), format::KernelStep::VT_SCHEDULE, schedule);
}

void SchedulablePlan::set_min_units_per_task(uint32_t step, uint32_t units) {
  set_field(*plan().steps()->Get(step)->body_as_KernelStep(), format::KernelStep::VT_MIN_UNITS_PER_TASK,
            units);
}

uint64_t SchedulablePlan::scratch_in_arena(uint32_t step) const {
  for (const format::Function* function : *plan().functions()) {
    const uint32_t index = step - function->first_step();
    if (step < function->first_step() || index >= function->num_steps()) continue;
    if (format::count_of(function->scratch_sizes()) > 0) return function->scratch_sizes()->Get(index);
  }
  return UINT64_MAX;
}

void SchedulablePlan::raise_scratch_per_worker(uint64_t bytes) {
  for (const format::Function* function : *plan().functions()) {
    set_field(*function, format::Function::VT_SCRATCH_PER_WORKER,
              std::max(bytes, function->scratch_per_worker()));
  }
}

void SchedulablePlan::bind(uint32_t step, Bound* bound) const {
  bound->step = {&plan(), plan().steps()->Get(step)->body_as_KernelStep(), data_.data()};
  Error error;
  bound->family = find_family(view_, step, view_.step(step).kernel(), *qplan_kernels_all(), &error);
  if (bound->family == nullptr) throw PackError(error.status(), error.text());
  if (bound->family->bind(bound->step, true, bound->args, &error) < 0) {
    throw PackError(error.status(), "step " + std::to_string(step) + ": " + error.text());
  }
}

AlignedBytes SchedulablePlan::file() const {
  format::Header header = view_.header();
  const uint64_t old_begin = constants_begin(header.root_size);
  const uint64_t constants = header.content_size > old_begin ? header.content_size - old_begin : 0;
  const uint64_t old_names = round_up(header.content_size, format::kFileAlignment);
  const uint64_t names = header.file_size > old_names ? header.file_size - old_names : 0;
  header.version_minor = std::max<uint16_t>(header.version_minor, 5);
  header.root_size = static_cast<uint32_t>(root_.size());
  header.content_size = constants == 0 ? sizeof(header) + root_.size() : old_begin + shift_ + constants;
  const uint64_t new_names = round_up(header.content_size, format::kFileAlignment);
  header.file_size = names == 0 ? header.content_size : new_names + names;
  AlignedBytes file(static_cast<size_t>(header.file_size));
  const auto put = [&](uint64_t at, const uint8_t* bytes, uint64_t size) {
    if (size != 0) std::memcpy(file.data() + at, bytes, size);
  };
  put(sizeof(header), root_.data(), root_.size());
  put(old_begin + shift_, view_.bytes() + old_begin, constants);
  put(new_names, view_.bytes() + old_names, names);
  Sha256 digest;
  digest.update(file.data() + sizeof(header), file.size() - sizeof(header));
  digest.finish(header.digest);
  std::memcpy(file.data(), &header, sizeof(header));
  return file;
}

}  // namespace qplan::schedule
