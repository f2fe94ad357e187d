// Glue of resize_arg_max, which computes cascades of resize_bilinear and arg_max without a tile.
#ifndef QPLAN_SRC_RUNTIME_BIND_RESIZE_ARG_MAX_H_
#define QPLAN_SRC_RUNTIME_BIND_RESIZE_ARG_MAX_H_

#include "kernels/spatial/resize_arg_max.h"
#include "src/runtime/bind/family.h"
#include "src/runtime/cascade.h"

namespace qplan {

// False for other cascades. The layers have been checked.
inline bool bind_resize_arg_max(const CascadeArgs& cascade, ResizeArgMaxArgs* args) {
  const StepView resize = cascade_layer(cascade.step, 0), arg_max = cascade_layer(cascade.step, 1);
  if (cascade.num_layers != 2 || resize.step->kernel() != kKernel_resize_bilinear ||
      arg_max.step->kernel() != kKernel_arg_max) {
    return false;
  }
  (void)cascade.families->find(kKernel_resize_bilinear)->bind(resize, false, &args->resize, nullptr);
  args->output_dtype = arg_max.output(0).dtype;
  args->output = arg_max.output_data(0);
  return true;
}

// A variant of cascades that is one of resize_arg_max.
template <Refusal (*kAccepts)(const ResizeArgMaxArgs&), size_t (*kScratch)(const ResizeArgMaxArgs&),
          uint32_t (*kItems)(const ResizeArgMaxArgs&),
          void (*kRun)(const ResizeArgMaxArgs&, uint32_t, uint32_t, void*)>
struct ResizeArgMaxCascade {
  static Refusal accepts(const CascadeArgs& cascade) {
    ResizeArgMaxArgs args;
    return bind_resize_arg_max(cascade, &args) ? kAccepts(args) : Refusal::kLayers;
  }
  static size_t scratch_bytes(const CascadeArgs& cascade) { return kScratch(bound(cascade)); }
  static uint32_t work_items(const CascadeArgs& cascade) { return kItems(bound(cascade)); }
  static void run(const CascadeArgs& cascade, uint32_t begin, uint32_t end, void* scratch) {
    kRun(bound(cascade), begin, end, scratch);
  }
  static constexpr KernelVariant variant(const char* name, uint32_t isa) {
    return make_variant<CascadeArgs, accepts, scratch_bytes, work_items, run>(name, isa);
  }

 private:
  static ResizeArgMaxArgs bound(const CascadeArgs& cascade) {
    ResizeArgMaxArgs args;
    (void)bind_resize_arg_max(cascade, &args);
    return args;
  }
};

}  // namespace qplan

#endif  // QPLAN_SRC_RUNTIME_BIND_RESIZE_ARG_MAX_H_
