// The float forms of a step's channels (format/README.md, "Float forms"): what prove_requantization.h proves
// for the accumulators that a layer's weights and input can make.
#ifndef QPLAN_SRC_PACKER_TARGET_CPU_FLOAT_FORMS_H_
#define QPLAN_SRC_PACKER_TARGET_CPU_FLOAT_FORMS_H_

#include <cstdint>
#include <vector>

#include "src/packer/target/cpu/requantization.h"

namespace qplan::target::cpu {

// FloatForm_NONE where the layout keeps channels apart (kLayout_ohwi: no variant reads it by vectors), the
// contract computes in float anyway, or no group of channels has a proof.
FloatForms prove_float_forms(const layer::QuantizedLayer& layer, uint16_t layout);

// Float requantisation for a qnn.requantize with `scales` and an output of this zero point and clamp. It is
// proved for all 8-bit inputs, or for the accumulators that the layer with weights can make; FloatForm_NONE
// where they come from elsewhere, and for targets without vectors.
FloatForms prove_float_forms(const Lowering& lowering, const ir::Node& requantize,
                             const AccumulatorScales& scales, Clamp clamp, format::Contract contract);

}  // namespace qplan::target::cpu

#endif  // QPLAN_SRC_PACKER_TARGET_CPU_FLOAT_FORMS_H_
