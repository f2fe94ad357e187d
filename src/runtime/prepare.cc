// What session init checks and open() cannot: the flow of data through one function, and every step by its
// kernel family. Linear in the size of the plan, with the limits of plan_view.h as factors; besides, a family
// reads the constants that act as parameters, which steps may share: about what one invoke reads.
#include "format/text.h"
#include "src/runtime/session.h"

namespace qplan {
namespace {

using format::Named;
using format::Tensor;

class Preparation {
 public:
  Preparation(const SessionOptions& options, Session* session, Error* error)
      : options_(options), session_(*session), plan_(session->plan), error_(*error) {}

  qplan_status run() {
    if (!place_tensors() || !check_io_ranges()) return error_.status();
    for (uint32_t i = 0; i < session_.num_steps(); ++i) {
      if (!step(i)) return error_.status();
    }
    if (!check_outputs_written()) return error_.status();
    return QPLAN_OK;
  }

 private:
  // A tensor has an address from the moment it holds something: constants and inputs now, others when a step
  // writes them.
  bool place_tensors() {
    for (uint32_t t = 0; t < plan_.num_tensors(); ++t) {
      session_.data[t] =
          const_cast<void*>(plan_.constant_data(t));  // NOLINT: never written, outputs are no constants
    }
    for (uint32_t i = 0; i < format::count_of(session_.function->inputs()); ++i) {
      const uint32_t t = session_.function->inputs()->Get(i);
      if (session_.data[t] != nullptr) {
        fail(QPLAN_PLAN_CORRUPT, t) << "session: tensor " << t << " is two inputs of the function";
        return false;
      }
      session_.data[t] = session_.planned_address(t);
    }
    return true;
  }

  // Different inputs and outputs have different bytes: each can be written, bound and read on its own.
  bool check_io_ranges() {
    const uint32_t num_inputs = format::count_of(session_.function->inputs());
    const uint32_t count = num_inputs + format::count_of(session_.function->outputs());
    const auto at = [&](uint32_t i) {
      return i < num_inputs ? session_.function->inputs()->Get(i)
                            : session_.function->outputs()->Get(i - num_inputs);
    };
    for (uint32_t i = 0; i < count; ++i) {
      for (uint32_t j = 0; j < i; ++j) {
        const uint32_t a = at(i), b = at(j);
        if (a == b || !format::ranges_overlap(plan_.tensor(a), plan_.tensor(b))) continue;
        fail(QPLAN_PLAN_CORRUPT, a) << "session: inputs or outputs of the function overlap: tensors " << b
                                    << " and " << a;
        return false;
      }
    }
    return true;
  }

  bool check_outputs_written() {
    for (uint32_t i = 0; i < format::count_of(session_.function->outputs()); ++i) {
      const uint32_t t = session_.function->outputs()->Get(i);
      if (session_.data[t] != nullptr) continue;
      fail(QPLAN_PLAN_CORRUPT, t) << "session: output " << i << " (tensor " << t << ") is written by no step";
      return false;
    }
    return true;
  }

  bool step(uint32_t i) {
    const StepView view = session_.step_view(i);
    const uint32_t index = session_.step_index(i);
    const KernelFamily* family = find_family(view.step->kernel());
    if (family == nullptr) {
      error_.set(QPLAN_KERNEL_MISSING, static_cast<int32_t>(index))
          << "session: step " << index << Named{plan_.step_name(index)} << " needs kernel "
          << uint32_t{view.step->kernel()} << " (" << kernel_name(view.step->kernel())
          << "), which is not in the kernel set";
      return false;
    }
    if (!check_reads(index, *family, view)) return false;
    alignas(kArgsAlignment) uint8_t args[kMaxArgsBytes];
    if (family->bind(view, true, args, &error_) < 0) {
      place_error(index, *family);
      return false;
    }
    if (!check_writes(index, *family, view)) return false;
    for (uint32_t o = 0; o < view.num_outputs(); ++o) {
      const uint32_t t = view.step->outputs()->Get(o);
      session_.data[t] = session_.planned_address(t);
    }
    return choose(i, *family, args);
  }

  bool check_reads(uint32_t index, const KernelFamily& family, const StepView& view) {
    for (uint32_t i = 0; i < view.num_inputs(); ++i) {
      const uint32_t t = view.step->inputs()->Get(i);
      if (session_.data[t] != nullptr) continue;
      fail_step(index, family, t) << "input " << i << " (tensor " << t << ") is written by no earlier step";
      return false;
    }
    for (uint32_t o = 0; o < view.num_outputs(); ++o) {
      const uint32_t t = view.step->outputs()->Get(o);
      if (session_.data[t] == nullptr) continue;
      fail_step(index, family, t) << "output " << o << " (tensor " << t << ") has been written before";
      return false;
    }
    return true;
  }

  // Outputs lie apart from each other, from the function's inputs, and from the step's inputs but for those
  // whose buffer the family can take over.
  bool check_writes(uint32_t index, const KernelFamily& family, const StepView& view) {
    for (uint32_t o = 0; o < view.num_outputs(); ++o) {
      const uint32_t t = view.step->outputs()->Get(o);
      const Tensor& output = view.output(o);
      for (uint32_t i = 0; i < view.num_inputs(); ++i) {
        const Tensor& input = view.input(i);
        if (!format::ranges_overlap(output, input)) continue;
        if (format::same_range(output, input) && family.in_place != nullptr && family.in_place(view, o, i))
          continue;
        fail_step(index, family, t) << "output " << o << " overlaps input " << i << " in memory";
        return false;
      }
      for (uint32_t p = 0; p < o; ++p) {
        if (!format::ranges_overlap(output, view.output(p))) continue;
        fail_step(index, family, t) << "outputs " << p << " and " << o << " overlap in memory";
        return false;
      }
      for (uint32_t i = 0; i < format::count_of(session_.function->inputs()); ++i) {
        const Tensor& input = plan_.tensor(session_.function->inputs()->Get(i));
        if (!format::ranges_overlap(output, input)) continue;
        fail_step(index, family, t) << "output " << o << " overlaps input " << i
                                    << " of the function in memory";
        return false;
      }
    }
    return true;
  }

  bool choose(uint32_t i, const KernelFamily& family, const void* args) {
    const uint32_t index = session_.step_index(i);
    const size_t limit = session_.scratch_stride;
    const KernelVariant* variant = choose_variant(family, args, options_.isa_limit, limit);
    const size_t scratch = variant->scratch_bytes(args);
    if (scratch > limit) {
      fail_step(index, family, 0, false)
          << "kernel '" << variant->name << "' needs " << static_cast<uint64_t>(scratch)
          << " bytes of scratch, the plan provides " << static_cast<uint64_t>(limit);
      return false;
    }
    session_.steps[i] = {&family, variant};
    if (variant->isa > session_.isa) session_.isa = variant->isa;
    session_.macs += plan_.step(index).macs();
    if (session_.platform.log != nullptr && session_.platform.log_level >= QPLAN_LOG_DEBUG) {
      Error text;
      text << "session: step " << index << Named{plan_.step_name(index)} << ": " << variant->name;
      log_text(session_.platform, QPLAN_LOG_DEBUG, text.text());
    }
    return true;
  }

  const KernelFamily* find_family(uint16_t kernel) const {
    return kernel < options_.kernels->num_families ? options_.kernels->families[kernel] : nullptr;
  }

  static const char* kernel_name(uint16_t kernel) {
    switch (kernel) {
#define QPLAN_KERNEL(id, family, descriptor, params) \
  case id:                                           \
    return #family;
#include "format/kernels.def"
#undef QPLAN_KERNEL
      default:
        return "unknown to this build";
    }
  }

  Error& fail(qplan_status status, uint32_t tensor) {
    return error_.set(status, -1, static_cast<int32_t>(tensor));
  }

  // "conv2d 'block3/conv' (step 12): "
  Error& fail_step(uint32_t index, const KernelFamily& family, uint32_t tensor, bool has_tensor = true) {
    error_.set(QPLAN_PLAN_CORRUPT, static_cast<int32_t>(index),
               has_tensor ? static_cast<int32_t>(tensor) : -1);
    return put_step(index, family);
  }

  Error& put_step(uint32_t index, const KernelFamily& family) {
    error_ << family.name << Named{plan_.step_name(index)} << " (step " << index << "): ";
    return error_;
  }

  // Families write "conv2d: what is wrong"; which of the convolutions is told here.
  void place_error(uint32_t index, const KernelFamily& family) {
    const Error from_family = error_;
    const char* text = after_prefix(from_family.text(), family.name);
    error_.set(from_family.status(), static_cast<int32_t>(index), from_family.tensor());
    put_step(index, family) << text;
  }

  // What follows "<name>: " in text, or all of it.
  static const char* after_prefix(const char* text, const char* name) {
    const char* at = text;
    while (*name != '\0' && *at == *name) ++at, ++name;
    return *name == '\0' && at[0] == ':' && at[1] == ' ' ? at + 2 : text;
  }

  const SessionOptions& options_;
  Session& session_;
  const format::PlanView& plan_;
  Error& error_;
};

}  // namespace

qplan_status prepare(const SessionOptions& options, Session* session, Error* error) {
  return Preparation(options, session, error).run();
}

}  // namespace qplan
