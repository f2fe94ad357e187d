// What a plan holds, as JSON: what `qplan inspect --json` prints.
#ifndef QPLAN_SRC_PACKER_INSPECT_INSPECT_JSON_H_
#define QPLAN_SRC_PACKER_INSPECT_INSPECT_JSON_H_

#include <string>

#include "format/plan_view.h"

namespace qplan::inspect {

// Keys: version, file_bytes, content_digest, provenance, targets, functions, inputs, outputs, memory, banks,
// regions, steps. Two spaces of indentation; keys are only ever added.
std::string inspect_json(const format::PlanView& view);

}  // namespace qplan::inspect

#endif  // QPLAN_SRC_PACKER_INSPECT_INSPECT_JSON_H_
