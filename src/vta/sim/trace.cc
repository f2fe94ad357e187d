#include <nlohmann/json.hpp>
#include <string>

#include "qplan/host.h"
#include "qplan/npu_sim.h"
#include "src/vta/isa/vta.h"
#include "src/vta/sim/machine.h"
#include "src/vta/sim/options.h"
#include "src/vta/sim/program.h"

namespace qplan::sim {
namespace {

using Json = nlohmann::ordered_json;

double microseconds(uint64_t ns) { return static_cast<double>(ns) / 1000; }

Json metadata(const char* what, uint32_t thread, const char* name) {
  return {{"name", what}, {"ph", "M"}, {"pid", 2}, {"tid", thread}, {"args", {{"name", name}}}};
}

// An event a line. Names come from blobs: bytes that are not UTF-8 become U+FFFD.
std::string line_of(const Json& event) { return event.dump(-1, ' ', false, Json::error_handler_t::replace); }

uint64_t nanoseconds(const vta::Config& config, uint64_t cycles) {
  return cycles * 1000000 / config.clock_khz;
}

}  // namespace

void Trace::add(const vta::Config& config, uint64_t job, const Program& program) {
  char text[vta::kDisassemblyBytes];
  for (size_t i = 0; i < program.stream.size(); ++i) {
    const vta::Instruction& instruction = program.stream[i];
    const uint64_t begin = nanoseconds(config, program.schedule.begin[i]);
    const uint64_t end = nanoseconds(config, program.schedule.end[i]);
    disassemble(instruction, text);
    const std::string node = program.nodes.empty() ? "" : program.nodes[i];
    Json event = {{"name", node.empty() ? opcode_name(instruction.opcode) : node},
                  {"cat", opcode_name(instruction.opcode)},
                  {"ph", "X"},
                  {"pid", 2},
                  {"tid", static_cast<uint32_t>(module_of(instruction)) + 1},
                  {"ts", microseconds(origin_ns_ + begin)},
                  {"dur", microseconds(end - begin)}};
    event["args"] = {{"job", job},
                     {"instruction", i},
                     {"text", text},
                     {"cycles", program.schedule.end[i] - program.schedule.begin[i]},
                     {"bytes", dram_bytes(instruction)},
                     {"macs", macs(instruction)}};
    events_ += ",\n" + line_of(event);
  }
  origin_ns_ += nanoseconds(config, program.schedule.total_cycles);
}

std::string Trace::to_json() const {
  std::string json =
      "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n" + line_of(metadata("process_name", 0, "vta-sim"));
  for (uint32_t m = 0; m < vta::kNumModules; ++m) {
    json += ",\n" + line_of(metadata("thread_name", m + 1, module_name(static_cast<vta::Module>(m))));
  }
  return json + events_ + "\n]}\n";
}

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
