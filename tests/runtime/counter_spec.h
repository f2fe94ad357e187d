// A plan with a state: it adds what it is given, run after run.
#ifndef QPLAN_TESTS_RUNTIME_COUNTER_SPEC_H_
#define QPLAN_TESTS_RUNTIME_COUNTER_SPEC_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "tests/support/plan_builder.h"
#include "tests/support/test_kernels.h"

namespace qplan::testing {
namespace counter {

// Tensors.
enum Tensor : uint32_t { kX, kState, kNext, kOut };

// next = state + x (a sum), out = next + 10, int8 [4]; the state begins as `initial`, or as `fill`.
inline PlanSpec counter_spec(bool in_place, std::vector<uint8_t> initial, uint8_t fill = 0) {
  PlanSpec spec;
  for (const char* name : {"x", "state", "next", "out"}) spec.add_tensor({4}, name);
  spec.add_step(kSum, {kX, kState}, {kNext}, concat_params(0), "add");
  spec.add_step(kAddByte, {kNext}, {kOut}, copy_params(10), "out");
  spec.add_main({kX}, {kOut}, 64);
  StateSpec state = {kState, kNext, UINT32_MAX, fill};
  if (!initial.empty()) state.initial = spec.add_constant({4}, initial, "first");
  spec.functions[0].states = {state};
  if (in_place) {
    // The sum is not computed in place: a copy of the state is summed, and its result is written over it.
    const uint32_t copy = spec.add_tensor({4}, "copy");
    spec.steps[0].inputs = {kX, copy};
    spec.add_step(kAddByte, {kState}, {copy}, copy_params(0), "copy");
    std::swap(spec.steps[1], spec.steps[2]);
    std::swap(spec.steps[0], spec.steps[1]);
    spec.functions[0].num_steps = 3;
    spec.tensors[kNext].offset = spec.tensors[kState].offset;
  }
  return spec;
}

}  // namespace counter
}  // namespace qplan::testing

#endif  // QPLAN_TESTS_RUNTIME_COUNTER_SPEC_H_
