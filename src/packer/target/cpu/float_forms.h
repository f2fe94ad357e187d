// The float forms of a step's channels (format/README.md, "Float forms"): what prove_requantization.h proves
// for the accumulators that a layer's weights and input can make.
#ifndef QPLAN_SRC_PACKER_TARGET_CPU_FLOAT_FORMS_H_
#define QPLAN_SRC_PACKER_TARGET_CPU_FLOAT_FORMS_H_

#include <cstdint>
#include <vector>

#include "src/packer/target/cpu/requantization.h"

namespace qplan::target::cpu {

// The last fields of a step's parameters. Vectors are empty under FloatForm_NONE.
struct FloatForms {
  format::FloatForm form = format::FloatForm_NONE;
  std::vector<float> scale;
  std::vector<float> offset;
};

// What reaches the accumulators of a layer with weights [num_o, num_k].
struct LayerInput {
  ir::DType dtype;             // of the input, 8 bits
  int32_t zero_point;          // of the input; what pads is of its dtype, too
  ir::ValueId weights;         // O first
  int32_t weights_zero_point;  // in the dtype of the weights
};

// FloatForm_NONE where the layout keeps channels apart (kLayout_ohwi: no variant reads it by vectors), the
// contract computes in float anyway, or no group of channels has a proof.
FloatForms prove_float_forms(const Lowering& lowering, const WeightedLayer& layer, const LayerInput& input,
                             format::Contract contract, uint16_t layout, uint64_t num_o, uint64_t num_k);

// Of a qnn.requantize with `scales` and an output of this zero point and clamp. Of what 8 bits can be, or of
// what the layer of weights can make that the accumulators come from; FloatForm_NONE where they come from
// elsewhere, and for targets without vectors.
FloatForms prove_float_forms(const Lowering& lowering, const ir::Node& requantize,
                             const AccumulatorScales& scales, Clamp clamp, format::Contract contract);

// params_writer of a table that ends in float forms.
template <typename Builder, typename Fill>
ParamsWriter params_writer_with_float_forms(FloatForms forms, Fill fill) {
  return [forms = std::move(forms), fill](flatbuffers::FlatBufferBuilder& fbb) {
    flatbuffers::Offset<flatbuffers::Vector<float>> scale, offset;
    if (forms.form != format::FloatForm_NONE) {
      // Kernels load 16 entries at a time.
      fbb.ForceVectorAlignment(forms.scale.size(), sizeof(float), 64);
      scale = fbb.CreateVector(forms.scale);
      fbb.ForceVectorAlignment(forms.offset.size(), sizeof(float), 64);
      offset = fbb.CreateVector(forms.offset);
    }
    Builder builder(fbb);
    fill(builder);
    if (forms.form != format::FloatForm_NONE) {
      builder.add_float_form(forms.form);
      builder.add_float_scale(scale);
      builder.add_float_offset(offset);
    }
    return builder.Finish().Union();
  };
}

}  // namespace qplan::target::cpu

#endif  // QPLAN_SRC_PACKER_TARGET_CPU_FLOAT_FORMS_H_
