#include <string>

#include "qplan/host.h"
#include "qplan/npu_sim.h"
#include "src/vta/isa/vta.h"
#include "src/vta/sim/machine.h"
#include "src/vta/sim/options.h"
#include "src/vta/sim/program.h"

namespace qplan::sim {
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

}  // namespace qplan::sim

// A blob as text.
namespace qplan::sim {
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
