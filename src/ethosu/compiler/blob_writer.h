// A region's program as a blob.
#ifndef QPLAN_SRC_ETHOSU_COMPILER_BLOB_WRITER_H_
#define QPLAN_SRC_ETHOSU_COMPILER_BLOB_WRITER_H_

#include <cstdint>
#include <span>
#include <vector>

#include "src/ethosu/compiler/stream_writer.h"
#include "src/ethosu/isa/blob.h"
#include "src/ethosu/isa/cost.h"
#include "src/packer/target/region.h"

namespace qplan::ethosu::compiler {

struct BlobParts {
  std::vector<BlobRegion> regions;  // data_offset is set here
  std::vector<BlobSlot> slots;
  std::vector<uint8_t> constants;  // of the region of that kind
  std::vector<uint8_t> payload;
  std::vector<Label> labels;
  uint64_t cycles = 0;
};
// Makes the regions say which memories the compiler reckoned with, and the plan's slots those of the regions
// that they are, and not copied to or from.
void state_memories(const Memories& memories, BlobParts* parts, std::vector<target::RegionSlot>* slots);
std::vector<uint8_t> payload_of(const Config& config, std::span<const uint32_t> stream);
std::vector<uint8_t> write_blob(const Config& config, const BlobParts& parts);

}  // namespace qplan::ethosu::compiler

#endif  // QPLAN_SRC_ETHOSU_COMPILER_BLOB_WRITER_H_
