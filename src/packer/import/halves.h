// Numbers of half precision, which models store and qplan computes with in float32.
#ifndef QPLAN_SRC_PACKER_IMPORT_HALVES_H_
#define QPLAN_SRC_PACKER_IMPORT_HALVES_H_

#include "src/packer/ir/module.h"

namespace qplan::importer {

// float16, IEEE 754's binary16. The IR has the dtype in constants alone.
inline constexpr ir::DType kFloat16{kDLFloat, 16, 1};

// A constant of float16 as float32. Exact: every float16 is a float32.
ir::ConstantRef widened_halves(const ir::Constant& halves);

}  // namespace qplan::importer

#endif  // QPLAN_SRC_PACKER_IMPORT_HALVES_H_
