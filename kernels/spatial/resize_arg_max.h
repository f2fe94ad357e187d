// resize_arg_max: what arg_max along the channels gives of what resize_bilinear gives, in one kernel.
// Networks that label pixels end so; their largest tensor is the one between the two.
//
// No family of its own: cascades of the two have it as a variant (src/runtime/bind/resize_arg_max.h).
#ifndef QPLAN_KERNELS_SPATIAL_RESIZE_ARG_MAX_H_
#define QPLAN_KERNELS_SPATIAL_RESIZE_ARG_MAX_H_

#include "kernels/numeric/dtype.h"
#include "kernels/spatial/spatial.h"
#include "kernels/variant.h"

namespace qplan {

struct ResizeArgMaxArgs {
  ResizeBilinearArgs resize;           // without its output
  Dtype output_dtype = Dtype::kOther;  // kS32, kS64
  void* output = nullptr;              // [batch, rows, output_w]
};

// Work items: rows of the output.
#define QPLAN_RESIZE_ARG_MAX_VARIANTS QPLAN_FILE_VARIANTS(resize_arg_max)
#define QPLAN_VARIANT(name, isa) QPLAN_DECLARE_VARIANT(name, ResizeArgMaxArgs)
QPLAN_RESIZE_ARG_MAX_VARIANTS
#undef QPLAN_VARIANT

}  // namespace qplan

#endif  // QPLAN_KERNELS_SPATIAL_RESIZE_ARG_MAX_H_
