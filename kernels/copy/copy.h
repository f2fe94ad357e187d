// copy: the same bytes, under another shape.
#ifndef QPLAN_KERNELS_COPY_COPY_H_
#define QPLAN_KERNELS_COPY_COPY_H_

#include <stdint.h>

#include "kernels/variant.h"

namespace qplan {

struct CopyArgs {
  const void* input = nullptr;
  void* output = nullptr;
  uint64_t bytes = 0;
};

// Best first; the reference, which computes all that is bound, is the last.
#define QPLAN_COPY_VARIANTS QPLAN_VARIANT(copy_ref, QPLAN_ISA_REFERENCE)
#define QPLAN_VARIANT(name, isa) QPLAN_DECLARE_VARIANT(name, CopyArgs)
QPLAN_COPY_VARIANTS
#undef QPLAN_VARIANT

}  // namespace qplan

#endif  // QPLAN_KERNELS_COPY_COPY_H_
