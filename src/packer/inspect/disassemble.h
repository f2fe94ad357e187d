// A plan's steps as text for people: what `qplan disasm` prints.
#ifndef QPLAN_SRC_PACKER_INSPECT_DISASSEMBLE_H_
#define QPLAN_SRC_PACKER_INSPECT_DISASSEMBLE_H_

#include <string>

#include "format/plan_view.h"

namespace qplan::inspect {

// One line per step:
// and one for each buffer of a region on a device; "|" before the steps that run where the region does not:
//   0  conv2d  'conv1'  %0 arena+0 uint8 1x96x96x3, ... -> %5 arena+27648 uint8 1x48x48x8  {stride_h=2, ...}
std::string disassemble(const format::PlanView& view);

}  // namespace qplan::inspect

#endif  // QPLAN_SRC_PACKER_INSPECT_DISASSEMBLE_H_
