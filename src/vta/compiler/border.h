// The border of a value that stays on the device: its readers pad, so somebody must write what they read.
#ifndef QPLAN_SRC_VTA_COMPILER_BORDER_H_
#define QPLAN_SRC_VTA_COMPILER_BORDER_H_

#include <cstdint>
#include <string>

#include "src/vta/compiler/unit.h"

namespace qplan::target::vta {

// Stores `value` into all bytes of the layout's border, which is not empty. Regions: micro-ops, the output.
CompiledUnit compile_border(const Config& config, const ActivationLayout& layout, int8_t value,
                            const std::string& name);

}  // namespace qplan::target::vta

#endif  // QPLAN_SRC_VTA_COMPILER_BORDER_H_
