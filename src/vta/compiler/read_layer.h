// A matched layer of weights as numbers for the compiler.
#ifndef QPLAN_SRC_VTA_COMPILER_READ_LAYER_H_
#define QPLAN_SRC_VTA_COMPILER_READ_LAYER_H_

#include <string>

#include "src/packer/target/target.h"
#include "src/vta/compiler/compile.h"

namespace qplan::target::vta {

struct ReadLayer {
  GemmLayer layer;
  // Whether the tensors in the plan are uint8: their highest bits are flipped on the way to and from the
  // device.
  bool flips_input = false, flips_output = false;
};

// A candidate of "qplan.qconv2d", "qplan.qdepthwise", "qplan.qdense" or their "..._acc32" whose constraints
// hold. An nn.pad before the layer becomes the border of its input. PackError (QPLAN_MODEL_UNSUPPORTED) where
// constants cannot be read.
ReadLayer read_layer(const Candidate& candidate);

}  // namespace qplan::target::vta

#endif  // QPLAN_SRC_VTA_COMPILER_READ_LAYER_H_
