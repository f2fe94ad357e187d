// Units that compute each element by itself: operands of one shape, a sequence of ALU steps.
#ifndef QPLAN_SRC_VTA_COMPILER_ELEMENTWISE_H_
#define QPLAN_SRC_VTA_COMPILER_ELEMENTWISE_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "src/vta/compiler/requantize.h"
#include "src/vta/compiler/unit.h"

namespace qplan::target::vta {

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

}  // namespace qplan::target::vta

#endif  // QPLAN_SRC_VTA_COMPILER_ELEMENTWISE_H_
