// What a .tflite file was made for, and how it was quantised: said first when it cannot be imported, as it
// explains the list of its operators better than the list does.
#ifndef QPLAN_SRC_PACKER_IMPORT_TFLITE_MODEL_KIND_H_
#define QPLAN_SRC_PACKER_IMPORT_TFLITE_MODEL_KIND_H_

#include <string>
#include <vector>

#include "src/packer/import/tflite/model_file.h"

namespace qplan::tfl {

// Sentences, the one that explains most first; none for a model that is quantised as qplan wants it.
std::vector<std::string> model_notes(ModelFile& file);

}  // namespace qplan::tfl

#endif  // QPLAN_SRC_PACKER_IMPORT_TFLITE_MODEL_KIND_H_
