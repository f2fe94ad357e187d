#include "src/vta/sim/program.h"

#include <cstring>

namespace qplan::sim {

bool is_writable(vta::RegionKind kind) {
  return kind == vta::RegionKind::kOutput || kind == vta::RegionKind::kScratch;
}

qplan_npu_status load_program(const vta::Config& config, const void* bytes, uint64_t size, Program* program,
                              qplan_npu_reason* why) {
  std::vector<uint32_t> scratch((vta::blob_scratch_bytes(config) + 3) / 4);
  vta::Blob blob;
  const qplan_npu_status status =
      read_blob(bytes, size, config, scratch.data(), scratch.size() * 4, &blob, why);
  if (status != QPLAN_NPU_OK) return status;
  program->stream.resize(blob.header.num_instructions);
  for (uint32_t i = 0; i < blob.header.num_instructions; ++i) {
    // read_blob has decoded each of them.
    (void)decode(config, blob.instructions + size_t{i} * vta::kInstructionBytes, &program->stream[i]);
  }
  program->memory_bytes = uint64_t{blob.header.num_instructions} * vta::kInstructionBytes;
  for (uint32_t i = 0; i < blob.header.num_regions; ++i) {
    const vta::BlobRegion from = blob_region(blob, i);
    ProgramRegion region;
    region.kind = static_cast<vta::RegionKind>(from.kind);
    region.bytes = from.bytes;
    region.alignment = from.alignment;
    region.is_carried = (from.flags & vta::kRegionHasData) != 0;
    region.is_initialised = !is_writable(region.kind) || (from.flags & vta::kRegionInitialised) != 0;
    if (region.is_carried) {
      region.offset = (program->memory_bytes + region.alignment - 1) / region.alignment * region.alignment;
      program->memory_bytes = region.offset + region.bytes;
    }
    region.name = region_kind_name(region.kind);
    const char* name = blob_region_name(blob, i);
    if (name[0] != '\0') region.name += " '" + std::string(name) + "'";
    region.name += " (region " + std::to_string(i) + ")";
    program->regions.push_back(region);
  }
  for (uint32_t i = 0; i < blob.header.num_relocations; ++i) {
    const vta::BlobRelocation from = blob_relocation(blob, i);
    program->relocations.push_back({from.instruction, from.region});
  }
  if (blob.header.num_labels > 0) {
    program->nodes.reserve(program->stream.size());
    for (uint32_t i = 0; i < program->stream.size(); ++i) program->nodes.emplace_back(blob_node(blob, i));
  }
  program->schedule = make_schedule(config, program->stream);
  program->estimated_cycles = blob.header.estimated_cycles;
  return QPLAN_NPU_OK;
}

void place_program(const vta::Config& config, const void* bytes, Program* program) {
  for (size_t i = 0; i < program->stream.size(); ++i) {
    // What was decoded encodes to the same bytes.
    (void)encode(config, program->stream[i], program->memory.data() + i * vta::kInstructionBytes);
  }
  const auto* blob_bytes = static_cast<const uint8_t*>(bytes);
  vta::BlobHeader header;
  std::memcpy(&header, blob_bytes, sizeof(header));
  vta::Blob blob;
  blob.header = header;
  blob.regions = blob_bytes + sizeof(header);  // the first section
  for (uint32_t i = 0; i < program->regions.size(); ++i) {
    const ProgramRegion& region = program->regions[i];
    if (!region.is_carried) continue;
    std::memcpy(program->memory.data() + region.offset, blob_bytes + blob_region(blob, i).data_offset,
                region.bytes);
  }
}

std::vector<vta::Instruction> relocate(const Program& program, const std::vector<uint64_t>& addresses) {
  std::vector<vta::Instruction> stream = program.stream;
  for (const Relocation& relocation : program.relocations) {
    vta::Instruction& instruction = stream[relocation.instruction];
    const uint64_t base = addresses[relocation.region] / element_bytes(instruction.memory);
    instruction.dram_base += static_cast<uint32_t>(base);  // addresses have 32 bits
  }
  return stream;
}

}  // namespace qplan::sim
