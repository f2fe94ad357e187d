// Inputs and outputs of the model as parameters and outputs of the function.
#ifndef QPLAN_SRC_PACKER_IMPORT_ONNX_INTERFACE_H_
#define QPLAN_SRC_PACKER_IMPORT_ONNX_INTERFACE_H_

#include "src/packer/import/import_options.h"
#include "src/packer/import/onnx/graph.h"

namespace qplan::onnx {

// Declares the initializers and defines the inputs: parameters, or constants where they are bound.
void define_inputs(Graph& graph, const ImportOptions& options);
// Sets the function's outputs, and the quantisation of its inputs and outputs as their operators state it.
void define_outputs(Graph& graph);

}  // namespace qplan::onnx

#endif  // QPLAN_SRC_PACKER_IMPORT_ONNX_INTERFACE_H_
