// Operators in the subgraphs that IF, WHILE and CALL_ONCE run: none is imported, all are listed.
#ifndef QPLAN_SRC_PACKER_IMPORT_TFLITE_SUBGRAPHS_H_
#define QPLAN_SRC_PACKER_IMPORT_TFLITE_SUBGRAPHS_H_

#include "src/packer/import/tflite/model_file.h"
#include "src/packer/import/unsupported_list.h"

namespace qplan::tfl {

// Adds what subgraph 0 reaches through such operators: "ADD inside WHILE". Each subgraph counts once.
void list_subgraph_operators(const ModelFile& file, importer::UnsupportedList* unsupported);

}  // namespace qplan::tfl

#endif  // QPLAN_SRC_PACKER_IMPORT_TFLITE_SUBGRAPHS_H_
