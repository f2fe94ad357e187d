// Finds out what an ONNX model was made for and how it was quantised. An error states this first, because it
// explains the list of unsupported operators.
#ifndef QPLAN_SRC_PACKER_IMPORT_ONNX_MODEL_KIND_H_
#define QPLAN_SRC_PACKER_IMPORT_ONNX_MODEL_KIND_H_

#include <string>
#include <vector>

#include "src/packer/import/onnx/model_file.h"

namespace qplan::onnx {

// "Conv", "com.microsoft.QGemm".
std::string operator_name(const NodeInfo& node);

// Sentences, the one that explains most first; none for a model that is quantised as qplan wants it.
std::vector<std::string> model_notes(const Model& model);

}  // namespace qplan::onnx

#endif  // QPLAN_SRC_PACKER_IMPORT_ONNX_MODEL_KIND_H_
