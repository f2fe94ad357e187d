// What the user wants of a network's border and arithmetic in place of what its source says: --contract,
// --io-layout, --io. Each rebuilds main; PackError (QPLAN_INVALID_ARGUMENT) for an unknown word, (QPLAN_MODEL_UNSUPPORTED)
// where the network has no such form.
#ifndef QPLAN_SRC_PACKER_PIPELINE_INTERFACE_H_
#define QPLAN_SRC_PACKER_PIPELINE_INTERFACE_H_

#include <string_view>

#include "src/packer/ir/module.h"
#include "src/packer/log.h"

namespace qplan::pipeline {

// Every operator that has a contract means this one ("tfl2", "f32e"); "" changes nothing. Under tfl2 the
// multipliers are formed as TFLite forms them: from the float32 product of the scales for networks of uint8
// activations (passes/activation_dtype.h) and for fully connected layers with one scale, else in double. On
// the imported module.
void set_contract(ir::Module* module, std::string_view contract);
// Whether the contract asked for is news to the module: no operator means it. On the imported module.
bool means_other_contracts(const ir::Module& module, std::string_view contract);

// Inputs and outputs of four axes as "nhwc" or "nchw"; "" changes nothing. Which order one has follows from
// the first operator that says so; one that never meets such an operator stays, and the log says so. On the
// imported module.
void set_io_layout(ir::Module* module, std::string_view layout, const LogFunction& log);

// Inputs and outputs as "int8", "uint8" or "float"; "" changes nothing. An integer one in place of a float
// one takes the quantisation of the qnn.quantize that reads it (or the qnn.dequantize that makes it) and
// these are dropped; the other 8-bit dtype is a step of re-signing away (zero point +-128, exact); a float
// one in place of an integer one needs the quantisation that the source recorded. Inputs that have neither
// (indices, masks) stay. needs_scales: whoever writes the integers must know their scale, so an input whose
// scale is per axis is refused. On the canonical module.
void set_io_dtype(ir::Module* module, std::string_view io, const LogFunction& log, bool needs_scales = true);

}  // namespace qplan::pipeline

#endif  // QPLAN_SRC_PACKER_PIPELINE_INTERFACE_H_
