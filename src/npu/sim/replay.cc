// Recorded jobs, run again: nothing is taken from the blob they came from, only the files.
#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "qplan/npu_sim.h"
#include "src/npu/sim/executor.h"
#include "src/npu/sim/memory.h"
#include "src/npu/sim/options.h"
#include "src/npu/sim/text.h"

namespace qplan::sim {
namespace {

constexpr uint64_t kMaxArenaBytes = uint64_t{1} << 30;

struct Check {
  uint64_t address;
  std::vector<uint8_t> expected;
  std::string file;
};

class Replay {
 public:
  Replay(std::filesystem::path directory, const Options& options)
      : directory_(std::move(directory)), options_(options) {}

  Fault run(qplan_npu_report* report) {
    if (!read_job()) return fault_;
    std::vector<vta::Instruction> stream(program_.size() / vta::kInstructionBytes);
    for (size_t i = 0; i < stream.size(); ++i) {
      if (decode(options_.config, program_.data() + i * vta::kInstructionBytes, &stream[i])) continue;
      fail(QPLAN_NPU_E_ILLEGAL, "instruction " + std::to_string(i) + ": no instruction of this device");
      return fault_;
    }
    if (stream.empty() || stream.back().opcode != vta::Opcode::kFinish) {
      fail(QPLAN_NPU_E_ILLEGAL, "the last instruction is not finish");
      return fault_;
    }
    const Schedule schedule = make_schedule(options_.config, stream);
    Dram dram;
    Segment arena;
    arena.address = base_;
    arena.bytes = arena_.size();
    arena.memory = arena_.data();
    arena.is_writable = true;
    arena.is_initialised = false;
    arena.name = "the arena";
    dram.add(std::move(arena));
    for (const auto& [at, bytes] : loaded_) {
      for (uint64_t g = at / kGranule; g < (at + bytes + kGranule - 1) / kGranule; ++g) {
        dram.segments()[0].touches[g].is_known = 1;
      }
    }
    ExecuteOptions how;
    how.seed = options_.seed;
    how.explore = options_.explore;
    how.hazards_fail = options_.hazards_fail;
    const Outcome outcome = execute(options_.config, stream, schedule, how, &dram);
    report->cycles = schedule.total_cycles;
    report->busy_cycles = most_busy_cycles(schedule);
    report->bytes_read = schedule.bytes_read;
    report->bytes_written = schedule.bytes_written;
    report->macs = schedule.macs;
    report->vendor[0] = outcome.hazards;
    report->vendor[1] = outcome.interleavings;
    if (outcome.fault.is_set()) return outcome.fault;
    for (const Check& check : checks_) {
      if (!compare(check)) break;
    }
    return fault_;
  }

 private:
  bool fail(qplan_npu_status status, const std::string& text) {
    fault_.status = status;
    fault_.text = "replay: " + text;
    return false;
  }

  bool read_file(std::string_view name, std::vector<uint8_t>* bytes) {
    std::ifstream file(directory_ / name, std::ios::binary);
    if (!file) return fail(QPLAN_NPU_E_ARGUMENT, "cannot read '" + (directory_ / name).string() + "'");
    bytes->assign(std::istreambuf_iterator<char>(file), {});
    return true;
  }

  // Where [address, address + bytes) lies in the arena.
  std::optional<uint64_t> inside(uint64_t address, uint64_t bytes) {
    if (address < base_ || address - base_ > arena_.size() || bytes > arena_.size() - (address - base_)) {
      fail(QPLAN_NPU_E_ARGUMENT,
           std::to_string(bytes) + " bytes at " + hexadecimal(address) + " lie outside the arena");
      return std::nullopt;
    }
    return address - base_;
  }

  bool directive(const std::vector<std::string_view>& words) {
    uint64_t address = 0, size = 0;
    if (words[0] == "target" && words.size() == 2) {
      return words[1] == "vta" ||
             fail(QPLAN_NPU_E_UNSUPPORTED, "target '" + std::string(words[1]) + "', expected 'vta'");
    }
    if (words[0] == "base" && words.size() == 2 && parse_number(words[1], &base_) && base_ % kGranule == 0)
      return true;
    if (words[0] == "size" && words.size() == 2 && parse_number(words[1], &size) && size <= kMaxArenaBytes) {
      arena_.assign(size, 0x5a);
      return true;
    }
    if (words[0] == "load" && words.size() == 3 && parse_number(words[1], &address)) {
      std::vector<uint8_t> bytes;
      if (!read_file(words[2], &bytes)) return false;
      const std::optional<uint64_t> at = inside(address, bytes.size());
      if (!at.has_value()) return false;
      std::copy(bytes.begin(), bytes.end(), arena_.begin() + static_cast<std::ptrdiff_t>(*at));
      loaded_.emplace_back(*at, bytes.size());
      return true;
    }
    if (words[0] == "run" && words.size() == 2) {
      return read_file(words[1], &program_) &&
             (program_.size() % vta::kInstructionBytes == 0 ||
              fail(QPLAN_NPU_E_ARGUMENT,
                   "the stream has " + std::to_string(program_.size()) + " bytes, no multiple of 16"));
    }
    if (words[0] == "check" && words.size() == 4 && parse_number(words[1], &address) &&
        parse_number(words[2], &size)) {
      Check check = {address, {}, std::string(words[3])};
      if (!inside(address, size).has_value() || !read_file(words[3], &check.expected)) return false;
      if (check.expected.size() != size) {
        return fail(QPLAN_NPU_E_ARGUMENT, "'" + check.file + "' has " +
                                              std::to_string(check.expected.size()) + " bytes, expected " +
                                              std::to_string(size));
      }
      checks_.push_back(std::move(check));
      return true;
    }
    return fail(QPLAN_NPU_E_ARGUMENT, "cannot understand '" + std::string(words[0]) + "' in job.txt");
  }

  bool read_job() {
    std::vector<uint8_t> text;
    if (!read_file("job.txt", &text)) return false;
    const std::string_view lines(reinterpret_cast<const char*>(text.data()), text.size());
    for (const std::string_view line : split(lines, '\n')) {
      if (line[0] != '#' && !directive(split(line, ' '))) return false;
    }
    if (checks_.empty()) return fail(QPLAN_NPU_E_ARGUMENT, "job.txt has no check");
    return true;
  }

  bool compare(const Check& check) {
    const uint8_t* actual = arena_.data() + (check.address - base_);
    for (size_t b = 0; b < check.expected.size(); ++b) {
      if (actual[b] == check.expected[b]) continue;
      fault_.address = check.address + b;
      return fail(QPLAN_NPU_E_BUS, "byte " + std::to_string(b) + " of '" + check.file + "' is " +
                                       std::to_string(actual[b]) + ", expected " +
                                       std::to_string(check.expected[b]));
    }
    return true;
  }

  std::filesystem::path directory_;
  const Options& options_;
  uint64_t base_ = kArenaBase;
  std::vector<uint8_t> arena_;
  std::vector<std::pair<uint64_t, uint64_t>> loaded_;  // offset, bytes
  std::vector<uint8_t> program_;
  std::vector<Check> checks_;
  Fault fault_;
};

}  // namespace
}  // namespace qplan::sim

qplan_npu_status qplan_npu_sim_replay(const char* directory, const char* text, qplan_npu_report* report) {
  using namespace qplan::sim;
  if (directory == nullptr || (report != nullptr && report->struct_size < sizeof(report->struct_size))) {
    return QPLAN_NPU_E_ARGUMENT;
  }
  try {
    qplan_npu_report all = {};
    Options options;
    Fault fault;
    std::string error;
    if (parse_options(text == nullptr ? "" : text, &options, &error)) {
      fault = Replay(directory, options).run(&all);
    } else {
      fault.status = QPLAN_NPU_E_ARGUMENT;
      fault.text = error;
    }
    all.status = fault.status;
    all.fault_instruction = fault.instruction;
    all.fault_address = fault.address;
    copy_text(fault.text, all.text, sizeof(all.text));
    if (report != nullptr) {
      all.struct_size = report->struct_size;
      std::memcpy(report, &all, std::min<size_t>(report->struct_size, sizeof(all)));
    }
    return fault.status;
  } catch (...) {
    return QPLAN_NPU_E_MEMORY;
  }
}
