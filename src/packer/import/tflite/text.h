// Texts that all importers share, under the names that the TFLite importer uses.
#ifndef QPLAN_SRC_PACKER_IMPORT_TFLITE_TEXT_H_
#define QPLAN_SRC_PACKER_IMPORT_TFLITE_TEXT_H_

#include "src/packer/import/text.h"

namespace qplan::tfl {

using importer::clean_name;
using importer::invalid;
using importer::quoted;
using importer::to_text;
using importer::Unsupported;

}  // namespace qplan::tfl

#endif  // QPLAN_SRC_PACKER_IMPORT_TFLITE_TEXT_H_
