// QPLAN_DECLARE_VARIANT(name, Args) declares what one row of a family's variants.def stands for: four
// functions in a namespace of the variant's name. kernels/kernel.h says what each does.
#ifndef QPLAN_KERNELS_VARIANT_H_
#define QPLAN_KERNELS_VARIANT_H_

#include <stddef.h>
#include <stdint.h>

#define QPLAN_DECLARE_VARIANT(name, Args)                                  \
  namespace name {                                                         \
  bool accepts(const Args& args);                                          \
  size_t scratch_bytes(const Args& args);                                  \
  uint32_t units(const Args& args);                                        \
  void run(const Args& args, uint32_t begin, uint32_t end, void* scratch); \
  }

#endif  // QPLAN_KERNELS_VARIANT_H_
