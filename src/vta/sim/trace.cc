#include "src/vta/sim/trace.h"

#include "qplan/host.h"
#include "src/vta/isa/vta.h"
#include "src/vta/sim/options.h"

namespace qplan::sim {
namespace {

// Microseconds with three decimals, the same in every locale.
std::string microseconds(uint64_t ns) {
  const std::string decimals = std::to_string(ns % 1000);
  return std::to_string(ns / 1000) + "." + std::string(3 - decimals.size(), '0') + decimals;
}

std::string metadata(const char* what, uint32_t thread, const char* name) {
  return std::string("{\"name\":\"") + what + "\",\"ph\":\"M\",\"pid\":2,\"tid\":" + std::to_string(thread) +
         ",\"args\":{\"name\":" + json_string(name) + "}}";
}

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
    events_ += ",\n{\"name\":" + json_string(node.empty() ? opcode_name(instruction.opcode) : node) +
               ",\"cat\":" + json_string(opcode_name(instruction.opcode)) +
               ",\"ph\":\"X\",\"pid\":2,\"tid\":" +
               std::to_string(static_cast<uint32_t>(module_of(instruction)) + 1) +
               ",\"ts\":" + microseconds(origin_ns_ + begin) + ",\"dur\":" + microseconds(end - begin) +
               ",\"args\":{\"job\":" + std::to_string(job) + ",\"instruction\":" + std::to_string(i) +
               ",\"text\":" + json_string(text) +
               ",\"cycles\":" + std::to_string(program.schedule.end[i] - program.schedule.begin[i]) +
               ",\"bytes\":" + std::to_string(dram_bytes(instruction)) +
               ",\"macs\":" + std::to_string(macs(instruction)) + "}}";
  }
  origin_ns_ += nanoseconds(config, program.schedule.total_cycles);
}

std::string Trace::to_json() const {
  std::string json =
      "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n" + metadata("process_name", 0, "vta-sim");
  for (uint32_t m = 0; m < vta::kNumModules; ++m) {
    json += ",\n" + metadata("thread_name", m + 1, module_name(static_cast<vta::Module>(m)));
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
