// importer/text.h under the names of this folder.
#ifndef QPLAN_SRC_PACKER_IMPORT_ONNX_TEXT_H_
#define QPLAN_SRC_PACKER_IMPORT_ONNX_TEXT_H_

#include "src/packer/import/text.h"

namespace qplan::onnx {

using importer::clean_name;
using importer::invalid;
using importer::quoted;
using importer::to_text;
using importer::Unsupported;

}  // namespace qplan::onnx

#endif  // QPLAN_SRC_PACKER_IMPORT_ONNX_TEXT_H_
