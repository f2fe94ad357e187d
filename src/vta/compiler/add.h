// qnn.add under TFL2 as steps of the ALU.
#ifndef QPLAN_SRC_VTA_COMPILER_ADD_H_
#define QPLAN_SRC_VTA_COMPILER_ADD_H_

#include <cstdint>
#include <optional>
#include <string>

#include "src/vta/compiler/elementwise.h"

namespace qplan::target::vta {

// All values are in int8: zero points and clamp of uint8 tensors are given less 128.
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

}  // namespace qplan::target::vta

#endif  // QPLAN_SRC_VTA_COMPILER_ADD_H_
