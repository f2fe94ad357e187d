// Units that compute each element by itself: operands of one shape, a sequence of ALU steps.
#ifndef QPLAN_SRC_VTA_COMPILER_LAYERS_ELEMENTWISE_H_
#define QPLAN_SRC_VTA_COMPILER_LAYERS_ELEMENTWISE_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "src/vta/compiler/layers/unit.h"
#include "src/vta/compiler/streams/alu_steps.h"

namespace qplan::vta::compiler {

struct Elementwise {
  std::string name;
  std::vector<AccBlock> operands;  // where each input is loaded: different blocks
  std::vector<AluStep> steps;      // the result is in kAccumulator
  std::vector<int32_t> constants;  // of AluStep::constant; the same for all channels
};

// clip. min, max: in int8.
Elementwise make_clip(std::string name, int32_t min, int32_t max);

// PackError (QPLAN_MODEL_UNSUPPORTED) where rows are too long for the device.
CompiledUnit compile_elementwise(const Config& config, const Elementwise& elementwise,
                                 std::span<const ActivationLayout> inputs, const ActivationLayout& output);

// qnn.add under TFL2 as steps of the ALU. All values are in int8: zero points and clamp of uint8 tensors are
// given less 128.
struct AddOperator {
  std::string name;
  float scale1 = 1.0f, scale2 = 1.0f, output_scale = 1.0f;
  int32_t zero_point1 = 0, zero_point2 = 0, output_zero_point = 0;
  int32_t clamp_min = -128, clamp_max = 127;
};

// The whole operator as one affine form (exact_affine.h), where there is one: proved for all 2^16 pairs.
std::optional<Elementwise> make_affine_add(const AddOperator& add);
// The three requantisations of docs/numerics/add.md one after the other: always exact. PackError
// (QPLAN_MODEL_UNSUPPORTED) where the CPU refuses the scales too.
Elementwise make_stepwise_add(const AddOperator& add);
// The first that exists.
Elementwise make_add(const AddOperator& add);

// Whether the bytes of the one, without border, are those of the other.
bool lie_alike(const UnitActivation& a, const UnitActivation& b);

UnitPlan read_add_unit(const Candidate& candidate);
UnitPlan read_clip_unit(const Candidate& candidate);
// A reshape whose elements lie alike on the device before and after it: a plan without compile().
UnitPlan read_rename_unit(const Candidate& candidate);

}  // namespace qplan::vta::compiler

#endif  // QPLAN_SRC_VTA_COMPILER_LAYERS_ELEMENTWISE_H_
