// All kernel families: their descriptors. format/kernels.def is the list. Where a descriptor is defined, its
// declaration here gives it external linkage.
#ifndef QPLAN_SRC_RUNTIME_BIND_FAMILIES_H_
#define QPLAN_SRC_RUNTIME_BIND_FAMILIES_H_

#include "src/runtime/bind/family.h"

namespace qplan {

// Each family has two descriptors: kConv2dFamily with all variants of this build, and kConv2dFamilyReference
// with the reference alone. They share everything but the list of variants, and the second refers to no ISA
// code, so that a program that uses only qplan_kernels_reference() does not link any.
#define QPLAN_KERNEL(id, family, descriptor, params, args_bytes) \
  extern const KernelFamily descriptor;                          \
  extern const KernelFamily descriptor##Reference;
#include "format/kernels.def"
#undef QPLAN_KERNEL

}  // namespace qplan

#endif  // QPLAN_SRC_RUNTIME_BIND_FAMILIES_H_
