// A blob as text.
#include <string>

#include "qplan/npu_sim.h"
#include "src/vta/isa/vta.h"
#include "src/vta/sim/options.h"
#include "src/vta/sim/program.h"

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
}  // namespace qplan::sim

qplan_npu_status qplan_npu_sim_disassemble(const void* blob, uint64_t bytes, const char* text,
                                           void (*line)(void* user, const char* text), void* user,
                                           qplan_npu_reason* why) {
  using namespace qplan::sim;
  if (line == nullptr || (blob == nullptr && bytes > 0)) return QPLAN_NPU_E_ARGUMENT;
  try {
    Options options;
    std::string error;
    if (!parse_options(text == nullptr ? "" : text, &options, &error)) {
      give_reason(why, error);
      return QPLAN_NPU_E_ARGUMENT;
    }
    Program program;
    const qplan_npu_status status = load_program(options.config, blob, bytes, &program, why);
    if (status != QPLAN_NPU_OK) return status;
    list(options.config, program, [&](const std::string& of) { line(user, of.c_str()); });
    return QPLAN_NPU_OK;
  } catch (...) {
    return QPLAN_NPU_E_MEMORY;
  }
}
