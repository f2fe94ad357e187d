// Tensors that are parts of others, so that a concatenation or a split copies nothing.
#ifndef QPLAN_SRC_PACKER_MEMORY_PARTS_H_
#define QPLAN_SRC_PACKER_MEMORY_PARTS_H_

#include "src/packer/memory/lifetimes.h"

namespace qplan::memory {

// Joins the buffers of parts with those of their wholes, where
// - the part's bytes stay as they are for as long as the part or the whole is needed, by the steps that
//   compute in place, too; what computes in place goes first;
// - neither is an input or output of the function, which a caller may bind to other memory, nor crosses the
//   border of a region on a device;
// - no more bytes are needed at the same time than without: a whole takes its place from the first of its
//   parts on, and a part keeps it to its end. Of too many parts those that lengthen its life most stay out.
void place_parts(const target::Program& program, const DeviceTensors& device_of,
                 const PartOffsetQuery& part_offset, Lifetimes* lifetimes);

}  // namespace qplan::memory

#endif  // QPLAN_SRC_PACKER_MEMORY_PARTS_H_
