// Kernels by names of C, for programs that call them without a plan (`qplan emit-c --aot`):
// qplan_<variant>_run and qplan_<variant>_work_items. Each is a section of its own, so that the linker keeps
// those that are called.
#include "kernels/conv2d/conv2d.h"
#include "kernels/depthwise_conv2d/depthwise_conv2d.h"
#include "kernels/elementwise/add.h"
#include "kernels/elementwise/elementwise.h"
#include "kernels/matmul/matmul.h"
#include "kernels/movement/movement.h"
#include "kernels/softmax/softmax.h"
#include "kernels/spatial/spatial.h"

namespace qplan {

#define QPLAN_DIRECT_CALL(variant, Args)                                                                \
  extern "C" void qplan_##variant##_run(const Args* args, uint32_t begin, uint32_t end, void* scratch); \
  extern "C" uint32_t qplan_##variant##_work_items(const Args* args);                                   \
  void qplan_##variant##_run(const Args* args, uint32_t begin, uint32_t end, void* scratch) {           \
    variant::run(*args, begin, end, scratch);                                                           \
  }                                                                                                     \
  uint32_t qplan_##variant##_work_items(const Args* args) { return variant::work_items(*args); }

QPLAN_DIRECT_CALL(conv2d_dsp_form, Conv2dArgs)
QPLAN_DIRECT_CALL(depthwise_conv2d_dsp_form, DepthwiseConv2dArgs)
QPLAN_DIRECT_CALL(fully_connected_dsp_form, FullyConnectedArgs)
#define QPLAN_VARIANT(name, isa) QPLAN_DIRECT_CALL(name, Conv2dArgs)
QPLAN_CONV2D_VARIANTS
#undef QPLAN_VARIANT
#define QPLAN_VARIANT(name, isa) QPLAN_DIRECT_CALL(name, DepthwiseConv2dArgs)
QPLAN_DEPTHWISE_CONV2D_VARIANTS
#undef QPLAN_VARIANT
#define QPLAN_VARIANT(name, isa) QPLAN_DIRECT_CALL(name, FullyConnectedArgs)
QPLAN_FULLY_CONNECTED_VARIANTS
#undef QPLAN_VARIANT
#define QPLAN_VARIANT(name, isa) QPLAN_DIRECT_CALL(name, Pool2dArgs)
QPLAN_AVG_POOL2D_VARIANTS
#undef QPLAN_VARIANT
#define QPLAN_VARIANT(name, isa) QPLAN_DIRECT_CALL(name, Pool2dArgs)
QPLAN_MAX_POOL2D_VARIANTS
#undef QPLAN_VARIANT
#define QPLAN_VARIANT(name, isa) QPLAN_DIRECT_CALL(name, AddArgs)
QPLAN_ADD_VARIANTS
#undef QPLAN_VARIANT
#define QPLAN_VARIANT(name, isa) QPLAN_DIRECT_CALL(name, AddArgs)
QPLAN_SUB_VARIANTS
#undef QPLAN_VARIANT
#define QPLAN_VARIANT(name, isa) QPLAN_DIRECT_CALL(name, MulArgs)
QPLAN_MUL_VARIANTS
#undef QPLAN_VARIANT
#define QPLAN_VARIANT(name, isa) QPLAN_DIRECT_CALL(name, SoftmaxArgs)
QPLAN_SOFTMAX_VARIANTS
#undef QPLAN_VARIANT
#define QPLAN_VARIANT(name, isa) QPLAN_DIRECT_CALL(name, Lut8Args)
QPLAN_LUT8_VARIANTS
#undef QPLAN_VARIANT
#define QPLAN_VARIANT(name, isa) QPLAN_DIRECT_CALL(name, CopyArgs)
QPLAN_COPY_VARIANTS
#undef QPLAN_VARIANT

}  // namespace qplan
