// Element types of kernels. Internal linkage only: ISA files include this.
#ifndef QPLAN_KERNELS_NUMERIC_DTYPE_H_
#define QPLAN_KERNELS_NUMERIC_DTYPE_H_

#include <stdint.h>

namespace qplan {

enum class Dtype : uint8_t { kOther = 0, kU8, kS8, kS16, kS32, kS64, kF32 };

static constexpr uint32_t dtype_bytes(Dtype dtype) {
  switch (dtype) {
    case Dtype::kU8:
    case Dtype::kS8:
      return 1;
    case Dtype::kS16:
      return 2;
    case Dtype::kS32:
    case Dtype::kF32:
      return 4;
    case Dtype::kS64:
      return 8;
    case Dtype::kOther:
      break;
  }
  return 0;
}

static constexpr const char* dtype_name(Dtype dtype) {
  switch (dtype) {
    case Dtype::kU8:
      return "uint8";
    case Dtype::kS8:
      return "int8";
    case Dtype::kS16:
      return "int16";
    case Dtype::kS32:
      return "int32";
    case Dtype::kS64:
      return "int64";
    case Dtype::kF32:
      return "float32";
    case Dtype::kOther:
      break;
  }
  return "another dtype";
}

// The range of the integer dtypes that fit into int32.
static constexpr int32_t dtype_min(Dtype dtype) {
  switch (dtype) {
    case Dtype::kS8:
      return INT8_MIN;
    case Dtype::kS16:
      return INT16_MIN;
    case Dtype::kS32:
      return INT32_MIN;
    default:
      return 0;
  }
}

// 0 where int8 and uint8 are seen as signed; of these two alone.
static constexpr int32_t dtype_middle(Dtype dtype) { return dtype == Dtype::kU8 ? 128 : 0; }

static constexpr int32_t dtype_max(Dtype dtype) {
  switch (dtype) {
    case Dtype::kU8:
      return UINT8_MAX;
    case Dtype::kS8:
      return INT8_MAX;
    case Dtype::kS16:
      return INT16_MAX;
    case Dtype::kS32:
      return INT32_MAX;
    default:
      return 0;
  }
}

}  // namespace qplan

#endif  // QPLAN_KERNELS_NUMERIC_DTYPE_H_
