// A kernel with an error, for tests of `qplan check`: the linker gives this function to all that call the
// convolution for SSE4.1 (--wrap). Pointwise convolutions of 64 channels get wrong values in their first
// pixel.
#include "kernels/conv2d/conv2d.h"

#define QPLAN_REAL_CONV2D __real__ZN5qplan12conv2d_sse413runERKNS_10Conv2dArgsEjjPv
#define QPLAN_WRAPPED_CONV2D __wrap__ZN5qplan12conv2d_sse413runERKNS_10Conv2dArgsEjjPv

extern "C" {

void QPLAN_REAL_CONV2D(const qplan::Conv2dArgs& args, uint32_t begin, uint32_t end, void* scratch);

void QPLAN_WRAPPED_CONV2D(const qplan::Conv2dArgs& args, uint32_t begin, uint32_t end, void* scratch) {
  QPLAN_REAL_CONV2D(args, begin, end, scratch);
  if (args.kernel_h != 1 || args.input_c != 64 || begin != 0) return;
  auto* output = static_cast<uint8_t*>(args.output);
  for (uint32_t channel = 0; channel < args.output_c; ++channel) output[channel] ^= 0x40;
}

}  // extern "C"
