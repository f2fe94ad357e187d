// The fixed header of a plan file, and the element types and kernels that a plan may hold. Little-endian;
// plans are used in place, so a host of the other order refuses them.
#ifndef QPLAN_FORMAT_CONTAINER_H_
#define QPLAN_FORMAT_CONTAINER_H_

#include <stddef.h>
#include <stdint.h>

namespace qplan::format {

inline constexpr uint8_t kMagic[4] = {'Q', 'P', 'L', 'N'};
inline constexpr uint16_t kVersionMajor = 1;   // readers refuse another major version
inline constexpr uint16_t kVersionMinor = 16;  // informative: additions that old readers may ignore
inline constexpr size_t kFileAlignment = 64;   // of the plan in memory, and of every segment in it
inline constexpr uint32_t kMaxRank = 6;

// Bits of Header::required_features. A reader refuses a plan that has a bit it does not know, and names the
// bit.
inline constexpr uint32_t kFeatureNpuRegions = 1u << 0;  // NpuStep, DEVICE banks
inline constexpr uint32_t kFeatureStates = 1u << 1;      // Function::states
inline constexpr uint32_t kFeatureBlocks = 1u << 2;      // NpuBind::block
inline constexpr uint32_t kKnownFeatures = kFeatureNpuRegions | kFeatureStates | kFeatureBlocks;

// [header 64][Plan, root_size][zeros][constant segments, each at 64]...[zeros][Names flatbuffer]
//                                                        content_size ^              file_size ^
// The Plan flatbuffer begins at 64; zeros fill up to a multiple of 64. README.md has the table.
struct Header {
  uint8_t magic[4];
  uint16_t version_major;
  uint16_t version_minor;
  uint32_t required_features;
  uint32_t root_size;     // bytes of the Plan flatbuffer, which begins at 64
  uint64_t content_size;  // bytes from the file's begin to the end of all that is executed
  uint64_t file_size;     // bytes; == content_size when names are stripped
  uint8_t digest[32];     // SHA-256 of all bytes after the header, up to file_size
};
static_assert(sizeof(Header) == 64, "the header is 64 bytes");
static_assert(offsetof(Header, content_size) == 16 && offsetof(Header, digest) == 32, "header layout is ABI");

// ---- element types, as DLPack writes them. Append-only, like the schema.

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

// ---- kernels, by their numbers in kernels.def

// "conv2d"; `unknown` where this build does not know the kernel.
constexpr const char* kernel_name(uint16_t kernel, const char* unknown) {
  switch (kernel) {
#define QPLAN_KERNEL(id, family, descriptor, params, args_bytes) \
  case id:                                                       \
    return #family;
#include "format/kernels.def"
#undef QPLAN_KERNEL
    default:
      return unknown;
  }
}

}  // namespace qplan::format

#endif  // QPLAN_FORMAT_CONTAINER_H_
