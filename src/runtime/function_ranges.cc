// Which bytes the inputs, outputs and states of a function may share.
#include "src/runtime/session.h"

namespace qplan {
namespace {

using format::PlanView;
using format::State;
using format::Tensor;

Error& fail(uint32_t tensor, Error* error) {
  return error->set(QPLAN_PLAN_CORRUPT, -1, static_cast<int32_t>(tensor));
}

// Different inputs and outputs have different bytes: each can be written, bound and read on its own.
bool check_io(const PlanView& plan, const FunctionTensors& function, Error* error) {
  const auto *inputs = function.inputs, *outputs = function.outputs;
  const uint32_t num_inputs = format::count_of(inputs);
  const uint32_t count = num_inputs + format::count_of(outputs);
  const auto at = [&](uint32_t i) { return i < num_inputs ? inputs->Get(i) : outputs->Get(i - num_inputs); };
  for (uint32_t i = 0; i < count; ++i) {
    for (uint32_t j = 0; j < i; ++j) {
      const uint32_t a = at(i), b = at(j);
      if (a == b || !format::ranges_overlap(plan.tensor(a), plan.tensor(b))) continue;
      if (function.overwrites_inputs && (i < num_inputs) != (j < num_inputs)) continue;
      fail(a, error) << "session: inputs or outputs of the function overlap: tensors " << b << " and " << a;
      return false;
    }
  }
  return true;
}

// The bytes of a state are its own, except that its next value may be an output of the function or in place.
bool check_states(const PlanView& plan, const FunctionTensors& function, Error* error) {
  const auto *inputs = function.inputs, *outputs = function.outputs;
  const auto* states = function.states;
  for (uint32_t i = 0; i < format::count_of(states); ++i) {
    const State& state = *states->Get(i);
    const bool is_in_place = is_state_in_place(plan, state);
    for (const uint32_t t : {state.input(), state.output()}) {
      const bool is_next = t == state.output();
      const auto collides = [&](uint32_t other, bool may_be_same) {
        return other == t ? !may_be_same : format::ranges_overlap(plan.tensor(other), plan.tensor(t));
      };
      const auto fails = [&](uint32_t other) {
        fail(t, error) << "session: tensor " << t << " of state " << i << " shares bytes with tensor "
                       << other << ", which the function reads or returns, too";
        return false;
      };
      for (uint32_t k = 0; k < format::count_of(inputs); ++k) {
        const uint32_t input = inputs->Get(k);
        // A next value that is copied is not needed once the caller writes the inputs of the next run.
        if (is_next && function.overwrites_inputs && input != t && !is_in_place) continue;
        if (collides(input, false)) return fails(input);
      }
      for (uint32_t k = 0; k < format::count_of(outputs); ++k) {
        if (collides(outputs->Get(k), is_next)) return fails(outputs->Get(k));
      }
      for (uint32_t k = 0; k < i; ++k) {
        if (collides(states->Get(k)->input(), false)) return fails(states->Get(k)->input());
        if (collides(states->Get(k)->output(), false)) return fails(states->Get(k)->output());
      }
    }
    const Tensor &input = plan.tensor(state.input()), &output = plan.tensor(state.output());
    if (is_in_place || !format::ranges_overlap(input, output)) continue;
    fail(state.input(), error) << "session: the two tensors of state " << i
                               << " overlap without being the same bytes";
    return false;
  }
  return true;
}

}  // namespace

bool is_state_in_place(const PlanView& plan, const State& state) {
  return format::same_range(plan.tensor(state.input()), plan.tensor(state.output()));
}

bool check_function_ranges(const PlanView& plan, const FunctionTensors& function, Error* error) {
  return check_io(plan, function, error) && check_states(plan, function, error);
}

}  // namespace qplan
