// Verification of chains: stages are steps whose tensors are the chain's own or the tile before and after
// them.
#include "format/dtype.h"
#include "format/text.h"
#include "format/verify.h"

namespace qplan::format {
namespace {

bool contains(const flatbuffers::Vector<uint32_t>* tensors, uint32_t tensor) {
  for (uint32_t i = 0; i < count_of(tensors); ++i) {
    if (tensors->Get(i) == tensor) return true;
  }
  return false;
}

}  // namespace

bool PlanVerifier::chain(uint32_t index, const KernelStep& body) {
  const ChainParams& params = *body.params_as_ChainParams();
  const uint32_t num_stages = count_of(params.stages()), num_tiles = count_of(params.tiles());
  if (num_stages < 2 || num_stages > kMaxChainStages || num_tiles != num_stages - 1) {
    corrupt_step(index) << num_stages << " stages with " << num_tiles << " tiles, expected 2 to "
                        << kMaxChainStages << " and a tile between any two";
    return false;
  }
  const uint32_t num_inputs = count_of(body.inputs()), num_outputs = count_of(body.outputs());
  if (num_inputs > kMaxChainInputs || num_outputs != 1) {
    corrupt_step(index) << num_inputs << " inputs and " << num_outputs << " outputs, expected at most "
                        << kMaxChainInputs << " and 1";
    return false;
  }
  for (uint32_t t = 0; t < num_tiles; ++t) {
    if (!chain_tile(index, params, t)) return false;
  }
  for (uint32_t s = 0; s < num_stages; ++s) {
    if (!chain_stage(index, body, s)) return false;
  }
  return true;
}

bool PlanVerifier::chain_tile(uint32_t index, const ChainParams& params, uint32_t tile_index) {
  const Tensor& tile = *params.tiles()->Get(tile_index);
  if (dtype_name(tile.type_code(), tile.type_bits()) == nullptr) {
    corrupt_step(index) << "tile " << tile_index << " has an unknown dtype";
    return false;
  }
  return spend(rank_of(tile)) && tensor_shape(count_of(plan_.tensors()) + tile_index, tile);
}

bool PlanVerifier::chain_stage(uint32_t index, const KernelStep& chain, uint32_t stage_index) {
  const ChainParams& params = *chain.params_as_ChainParams();
  const KernelStep& stage = *params.stages()->Get(stage_index);
  if (!kernel_params(index, stage)) return false;
  if (stage.params_type() == KernelParams_ChainParams) {
    corrupt_step(index) << "stage " << stage_index << " is a chain itself";
    return false;
  }
  const uint32_t num_tensors = count_of(plan_.tensors()), num_inputs = count_of(stage.inputs());
  const bool is_first = stage_index == 0, is_last = stage_index + 1 == count_of(params.stages());
  if (!spend(num_inputs)) return false;
  if (num_inputs > kMaxChainInputs) {
    corrupt_step(index) << "stage " << stage_index << " has " << num_inputs << " inputs, expected at most "
                        << kMaxChainInputs;
    return false;
  }
  uint32_t num_tiles = 0;
  for (uint32_t i = 0; i < num_inputs; ++i) {
    const uint32_t tensor = stage.inputs()->Get(i);
    if (!is_first && tensor == num_tensors + stage_index - 1) {
      ++num_tiles;
    } else if (!contains(chain.inputs(), tensor)) {
      corrupt_step(index) << "stage " << stage_index << ": input " << i << " (tensor " << tensor
                          << ") is neither the tile before it nor an input of the chain";
      return false;
    }
  }
  if (num_tiles != (is_first ? 0u : 1u)) {
    corrupt_step(index) << "stage " << stage_index << " reads the tile before it " << num_tiles
                        << " times, expected once";
    return false;
  }
  const uint32_t output = is_last ? chain.outputs()->Get(0) : num_tensors + stage_index;
  if (count_of(stage.outputs()) != 1 || stage.outputs()->Get(0) != output) {
    corrupt_step(index) << "stage " << stage_index << " does not write tensor " << output << " alone";
    return false;
  }
  return true;
}

}  // namespace qplan::format
