// A stream and its regions as the bytes that a driver loads (src/vta/isa/vta_blob.h).
#ifndef QPLAN_SRC_VTA_COMPILER_BLOB_WRITER_H_
#define QPLAN_SRC_VTA_COMPILER_BLOB_WRITER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "src/vta/compiler/config.h"
#include "src/vta/isa/vta_blob.h"

namespace qplan::target::vta {

struct Region {
  ::qplan::vta::RegionKind kind = ::qplan::vta::RegionKind::kInput;
  std::string name;
  uint64_t bytes = 0;
  uint32_t alignment = 64;
  uint32_t flags = 0;
  std::vector<uint8_t> data;  // not empty: the blob carries it, and bytes is its size
};

struct Label {
  uint32_t instruction = 0;
  std::string name;
};

struct Stream {
  std::vector<::qplan::vta::Instruction> instructions;
  std::vector<::qplan::vta::BlobRelocation> relocations;
  std::vector<Label> labels;
};

std::vector<uint8_t> write_blob(const Config& config, const Stream& stream,
                                const std::vector<Region>& regions, uint64_t estimated_cycles);

}  // namespace qplan::target::vta

#endif  // QPLAN_SRC_VTA_COMPILER_BLOB_WRITER_H_
