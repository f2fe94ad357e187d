#include "src/vta/compiler/rename.h"

#include "src/packer/ir/cat.h"
#include "src/packer/ir/types.h"

namespace qplan::target::vta {

// Positions follow each other, each padded to blocks of channels. Where nothing is padded, it does not matter
// where one position ends and the next begins.
bool lie_alike(const UnitActivation& a, const UnitActivation& b) {
  const bool are_whole_blocks = a.channels % kBlock == 0 && b.channels % kBlock == 0;
  return a.channels == b.channels || are_whole_blocks;
}

std::vector<Constraint> rename_constraints() {
  return {{"vta.reshape.dtype", "int8 or uint8", "quantise the model to 8-bit integers",
           [](const Candidate& c) -> std::string {
             const ir::DType dtype = c.function().type(c.root().results[0]).dtype;
             const bool is_8_bit = dtype == ir::kInt8 || dtype == ir::kUint8;
             return is_8_bit ? "" : cat(dtype, ", expected int8 or uint8");
           }},
          {"vta.reshape.channels",
           cat("as many channels (the last axis) before as after, or multiples of ", kBlock,
               " both times: then no byte moves on the device"),
           "nothing to change in the model", [](const Candidate& c) -> std::string {
             const UnitActivation from = activation(c, c.root().operands[0]);
             const UnitActivation to = activation(c, c.root().results[0]);
             if (lie_alike(from, to)) return "";
             return cat("from ", from.channels, " to ", to.channels, " channels, which lie in blocks of ",
                        kBlock, " on the device");
           }}};
}

UnitPlan read_rename_unit(const Config& /*config*/, const Candidate& c) {
  return {c.root().name, {activation(c, c.root().operands[0])}, activation(c, c.root().results[0]), {}};
}

}  // namespace qplan::target::vta
