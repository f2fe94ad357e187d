// The element types a plan may hold, as DLPack writes them. Append-only, like the schema.
#ifndef QPLAN_FORMAT_DTYPE_H_
#define QPLAN_FORMAT_DTYPE_H_

#include <stdint.h>

namespace qplan::format {

// DLPack's code for booleans; older dlpack.h lack its name. One byte each, 0 or 1.
inline constexpr uint8_t kDLBoolCode = 6;

// "int8", or null where a plan may not hold the type.
constexpr const char* dtype_name(uint8_t code, uint8_t bits) {
  switch (code << 8 | bits) {
    case 0 << 8 | 8:
      return "int8";
    case 0 << 8 | 16:
      return "int16";
    case 0 << 8 | 32:
      return "int32";
    case 0 << 8 | 64:
      return "int64";
    case 1 << 8 | 8:
      return "uint8";
    case 2 << 8 | 32:
      return "float32";
    case kDLBoolCode << 8 | 8:
      return "bool";
    default:
      return nullptr;
  }
}

}  // namespace qplan::format

#endif  // QPLAN_FORMAT_DTYPE_H_
