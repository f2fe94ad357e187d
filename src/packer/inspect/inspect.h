// A plan as text, for people and for tools.
#ifndef QPLAN_SRC_PACKER_INSPECT_INSPECT_H_
#define QPLAN_SRC_PACKER_INSPECT_INSPECT_H_

#include <string>

#include "format/plan_view.h"

namespace qplan::inspect {

// What `qplan inspect --json` prints. Keys: version, file_bytes, content_digest, provenance, targets,
// functions, inputs, outputs, memory, banks, regions, steps. Two spaces of indentation; keys are only ever
// added.
std::string inspect_json(const format::PlanView& view);

// What `qplan disasm` prints: one line for each step and for each buffer of a region on a device; "|" before
// the steps that run where the region does not:
//   0  conv2d  'conv1'  %0 arena+0 uint8 1x96x96x3, ... -> %5 arena+27648 uint8 1x48x48x8  {stride_h=2, ...}
std::string disassemble(const format::PlanView& view);

}  // namespace qplan::inspect

#endif  // QPLAN_SRC_PACKER_INSPECT_INSPECT_H_
