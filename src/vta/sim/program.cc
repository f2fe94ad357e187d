// Loaded programs: validated and decoded, scheduled, as events of a trace, as text.
#include <algorithm>
#include <cstring>
#include <deque>
#include <string>

#include "qplan/host.h"
#include "qplan/npu_sim.h"
#include "src/vta/isa/vta.h"
#include "src/vta/sim/machine.h"
#include "src/vta/sim/options.h"

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

// ---- the schedule of a stream

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

// ---- jobs as a trace

namespace {

uint64_t nanoseconds(const vta::Config& config, uint64_t cycles) {
  return cycles * 1000000 / config.clock_khz;
}

}  // namespace

Trace::Trace() {
  for (uint32_t m = 0; m < vta::kNumModules; ++m) {
    events_.name_thread(m + 1, module_name(static_cast<vta::Module>(m)));
  }
}

void Trace::add(const vta::Config& config, uint64_t job, const Program& program) {
  char text[vta::kDisassemblyBytes];
  for (size_t i = 0; i < program.stream.size(); ++i) {
    const vta::Instruction& instruction = program.stream[i];
    const uint64_t begin = program.schedule.begin[i];
    const uint64_t end = program.schedule.end[i];
    disassemble(instruction, text);
    const std::string node = program.nodes.empty() ? "" : program.nodes[i];
    events_.add({node.empty() ? opcode_name(instruction.opcode) : node,
                 opcode_name(instruction.opcode),
                 static_cast<uint32_t>(module_of(instruction)) + 1,
                 origin_ns_ + nanoseconds(config, begin),
                 origin_ns_ + nanoseconds(config, end),
                 {{"job", job},
                  {"instruction", i},
                  {"text", text},
                  {"cycles", end - begin},
                  {"bytes", dram_bytes(instruction)},
                  {"macs", macs(instruction)}}});
  }
  origin_ns_ += nanoseconds(config, program.schedule.total_cycles);
}

std::string Trace::to_json() const { return events_.to_json(); }

bool Trace::write(const std::string& path, std::string* error) const {
  const std::string json = to_json();
  qplan_error why = {};
  why.struct_size = sizeof(why);
  if (qplan_file_write(path.c_str(), json.data(), json.size(), &why) == QPLAN_OK) return true;
  *error = why.text;
  return false;
}

// ---- a blob as text

namespace {

std::string numbered(size_t i) {
  const std::string number = std::to_string(i);
  return (number.size() < 6 ? std::string(6 - number.size(), ' ') : "") + number + "  ";
}

template <typename Line>
void list(const vta::Config& config, const Program& program, Line line) {
  line(std::string("target ") + config.name);
  for (const ProgramRegion& region : program.regions) {
    line("region " + region.name + ": " + std::to_string(region.bytes) + " bytes, aligned to " +
         std::to_string(region.alignment) + (region.is_carried ? ", in the blob" : ""));
  }
  std::vector<std::string> touched(program.stream.size());
  for (const Relocation& relocation : program.relocations) {
    touched[relocation.instruction] = program.regions[relocation.region].name;
  }
  std::string node;
  for (size_t i = 0; i < program.stream.size(); ++i) {
    if (!program.nodes.empty() && program.nodes[i] != node) {
      node = program.nodes[i];
      line(node + ":");
    }
    char text[vta::kDisassemblyBytes];
    disassemble(program.stream[i], text);
    line(numbered(i) + text + (touched[i].empty() ? "" : "  ; " + touched[i]));
  }
  const Schedule& schedule = program.schedule;
  line(std::to_string(schedule.total_cycles) + " cycles; busy: load " +
       std::to_string(schedule.busy_cycles[0]) + ", compute " + std::to_string(schedule.busy_cycles[1]) +
       ", store " + std::to_string(schedule.busy_cycles[2]) + "; " + std::to_string(schedule.bytes_read) +
       " bytes read, " + std::to_string(schedule.bytes_written) + " bytes written, " +
       std::to_string(schedule.macs) + " macs");
}

}  // namespace

qplan_npu_status list_blob(const Options& options, const void* blob, uint64_t bytes,
                           const std::function<void(const std::string&)>& line, qplan_npu_reason* why) {
  Program program;
  const qplan_npu_status status = load_program(options.config, blob, bytes, &program, why);
  if (status == QPLAN_NPU_OK) list(options.config, program, line);
  return status;
}

}  // namespace qplan::sim
