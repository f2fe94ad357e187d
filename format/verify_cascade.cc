// Verification of cascades: layers are steps whose tensors are the cascade's own or the tile before and after
// them.
#include "format/container.h"
#include "format/text.h"
#include "format/verify.h"

namespace qplan::format {
namespace {

using Indices = flatbuffers::Vector<uint32_t>;

// Whether the tensor is among the others: looks from *next on, then at those before, and leaves *next after
// it. The layers of most cascades name its inputs in its order.
bool find(const Indices* tensors, uint32_t tensor, uint32_t* next) {
  const uint32_t count = count_of(tensors);
  uint32_t at = *next;
  for (uint32_t left = count; left > 0; --left, ++at) {
    if (at >= count) at = 0;
    if (tensors->Get(at) != tensor) continue;
    *next = at + 1;
    return true;
  }
  return false;
}

}  // namespace

bool PlanVerifier::cascade(uint32_t index, const TableFields& body) {
  const TableFields params(body.table(KernelStep::VT_PARAMS));
  const auto* layers = params.vector<flatbuffers::Offset<KernelStep>>(CascadeParams::VT_LAYERS);
  const auto* tiles = params.vector<flatbuffers::Offset<Tensor>>(CascadeParams::VT_TILES);
  const uint32_t num_layers = count_of(layers), num_tiles = count_of(tiles);
  if (num_layers < 2 || num_layers > kMaxCascadeLayers || num_tiles != num_layers - 1) {
    corrupt_step(index) << num_layers << " layers with " << num_tiles << " tiles, expected 2 to "
                        << kMaxCascadeLayers << " and a tile between any two";
    return false;
  }
  CascadeTensors tensors = {body.vector<uint32_t>(KernelStep::VT_INPUTS), 0, 0};
  const auto* outputs = body.vector<uint32_t>(KernelStep::VT_OUTPUTS);
  const uint32_t num_inputs = count_of(tensors.inputs), num_outputs = count_of(outputs);
  if (num_inputs > kMaxCascadeInputs || num_outputs != 1) {
    corrupt_step(index) << num_inputs << " inputs and " << num_outputs << " outputs, expected at most "
                        << kMaxCascadeInputs << " and 1";
    return false;
  }
  for (uint32_t t = 0; t < num_tiles; ++t) {
    if (!cascade_tile(index, *tiles->Get(t), t)) return false;
  }
  for (uint32_t s = 0; s < num_layers; ++s) {
    tensors.output = s + 1 == num_layers ? outputs->Get(0) : num_tensors_ + s;
    if (!cascade_layer(index, TableFields(layers->Get(s)), s, &tensors)) return false;
  }
  return true;
}

bool PlanVerifier::cascade_tile(uint32_t index, const Tensor& tensor, uint32_t tile_index) {
  const TensorRecord tile((TableFields(&tensor)));
  if (dtype_name(tile.type_code, tile.type_bits) == nullptr) {
    corrupt_step(index) << "tile " << tile_index << " has an unknown dtype";
    return false;
  }
  return spend(tile.rank) && tensor_shape(num_tensors_ + tile_index, tile);
}

bool PlanVerifier::cascade_layer(uint32_t index, const TableFields& layer, uint32_t layer_index,
                                 CascadeTensors* tensors) {
  if (!kernel_params(index, layer)) return false;
  if (layer.scalar<uint8_t>(KernelStep::VT_PARAMS_TYPE) == KernelParams_CascadeParams) {
    corrupt_step(index) << "layer " << layer_index << " is a cascade itself";
    return false;
  }
  const auto* inputs = layer.vector<uint32_t>(KernelStep::VT_INPUTS);
  const auto* outputs = layer.vector<uint32_t>(KernelStep::VT_OUTPUTS);
  const uint32_t num_tensors = num_tensors_, num_inputs = count_of(inputs);
  const bool is_first = layer_index == 0;
  if (!spend(num_inputs)) return false;
  if (num_inputs > kMaxCascadeInputs) {
    corrupt_step(index) << "layer " << layer_index << " has " << num_inputs << " inputs, expected at most "
                        << kMaxCascadeInputs;
    return false;
  }
  uint32_t num_tiles = 0;
  for (uint32_t i = 0; i < num_inputs; ++i) {
    const uint32_t tensor = inputs->Get(i);
    if (!is_first && tensor == num_tensors + layer_index - 1) {
      ++num_tiles;
    } else if (!find(tensors->inputs, tensor, &tensors->next_input)) {
      corrupt_step(index) << "layer " << layer_index << ": input " << i << " (tensor " << tensor
                          << ") is neither the tile before it nor an input of the cascade";
      return false;
    }
  }
  if (num_tiles != (is_first ? 0u : 1u)) {
    corrupt_step(index) << "layer " << layer_index << " reads the tile before it " << num_tiles
                        << " times, expected once";
    return false;
  }
  if (count_of(outputs) != 1 || outputs->Get(0) != tensors->output) {
    corrupt_step(index) << "layer " << layer_index << " does not write tensor " << tensors->output
                        << " alone";
    return false;
  }
  return true;
}

}  // namespace qplan::format
