#include "src/vta/sim/program.h"

#include <algorithm>
#include <cstring>
#include <deque>

#include "src/vta/isa/vta.h"

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
  program->num_instructions = program->stream.size();
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

namespace {

using vta::Instruction;
using vta::kNumModules;
using vta::kNumQueues;

struct Token {
  Clock clock;
  uint64_t time;
};

class Scheduler {
 public:
  Scheduler(const vta::Config& config, const std::vector<Instruction>& stream, Schedule* schedule)
      : config_(config), stream_(stream), out_(*schedule) {}

  void run() {
    out_.number.resize(stream_.size());
    out_.clocks.resize(stream_.size());
    out_.begin.resize(stream_.size());
    out_.end.resize(stream_.size());
    for (uint32_t i = 0; i < stream_.size(); ++i) {
      std::vector<uint32_t>& module = out_.modules[static_cast<uint32_t>(vta::module_of(stream_[i]))];
      module.push_back(i);
      out_.number[i] = static_cast<uint32_t>(module.size());
    }
    for (bool moved = true; moved;) {
      moved = false;
      for (uint32_t m = 0; m < kNumModules; ++m) {
        while (next_[m] < out_.modules[m].size() && step(m)) moved = true;
      }
    }
    out_.total_cycles = *std::max_element(free_.begin(), free_.end());
  }

 private:
  bool step(uint32_t m) {
    const uint32_t i = out_.modules[m][next_[m]];
    const Instruction& instruction = stream_[i];
    vta::TokenUse use;
    if (!vta::token_use(instruction, &use)) return false;
    for (uint32_t q = 0; q < kNumQueues; ++q) {
      if ((use.pops >> q & 1) != 0 && queues_[q].empty()) return false;
    }
    Clock clock = clock_[m];
    uint64_t begin = free_[m];
    uint32_t last = kNumQueues;
    for (uint32_t q = 0; q < kNumQueues; ++q) {
      if ((use.pops >> q & 1) == 0) continue;
      const Token token = queues_[q].front();
      queues_[q].pop_front();
      for (uint32_t k = 0; k < kNumModules; ++k) clock[k] = std::max(clock[k], token.clock[k]);
      if (token.time > begin) {
        begin = token.time;
        last = q;
      }
    }
    if (last != kNumQueues) out_.stall_cycles[last] += begin - free_[m];
    const uint64_t cycles = vta::cycles(config_, instruction);
    out_.clocks[i] = clock;
    out_.begin[i] = begin;
    out_.end[i] = begin + cycles;
    out_.busy_cycles[m] += cycles;
    count(instruction);
    clock[m] = out_.number[i];  // complete, for whoever takes its tokens
    clock_[m] = clock;
    free_[m] = begin + cycles;
    for (uint32_t q = 0; q < kNumQueues; ++q) {
      if ((use.pushes >> q & 1) != 0) queues_[q].push_back({clock, free_[m]});
    }
    ++next_[m];
    return true;
  }

  void count(const Instruction& instruction) {
    const uint64_t bytes = vta::dram_bytes(instruction);
    if (instruction.opcode == vta::Opcode::kLoad) out_.bytes_read += bytes;
    if (instruction.opcode == vta::Opcode::kStore) out_.bytes_written += bytes;
    out_.macs += vta::macs(instruction);
    if (instruction.opcode == vta::Opcode::kAlu) out_.alu_operations += vta::iterations(instruction);
  }

  const vta::Config& config_;
  const std::vector<Instruction>& stream_;
  Schedule& out_;
  std::array<size_t, kNumModules> next_{};
  std::array<uint64_t, kNumModules> free_{};
  std::array<Clock, kNumModules> clock_{};
  std::array<std::deque<Token>, kNumQueues> queues_;
};

}  // namespace

Schedule make_schedule(const vta::Config& config, const std::vector<Instruction>& stream) {
  Schedule schedule;
  const auto at = [](const void* user, uint32_t index, Instruction* instruction) {
    *instruction = (*static_cast<const std::vector<Instruction>*>(user))[index];
  };
  schedule.tokens = vta::check_tokens(at, &stream, static_cast<uint32_t>(stream.size()));
  Scheduler(config, stream, &schedule).run();
  return schedule;
}

uint64_t most_busy_cycles(const Schedule& schedule) {
  return *std::max_element(schedule.busy_cycles.begin(), schedule.busy_cycles.end());
}

}  // namespace qplan::sim
