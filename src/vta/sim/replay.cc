// Recorded jobs, run again: nothing is taken from the blob they came from, only the files.
//
// A record may come from anybody. job.txt is read as a whole before anything is judged, so that every range
// is judged against the one arena there is; files, memory and work are bounded.

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "src/vta/sim/machine.h"
#include "src/vta/sim/options.h"
#include "src/vta/sim/record.h"

namespace qplan::sim {
namespace {

constexpr uint64_t kMaxStreamBytes = uint64_t{32} << 20;  // two million instructions
constexpr uint64_t kAddressSpace = uint64_t{1} << 32;     // of the device

struct Load {
  uint64_t address;
  std::string file;
};
struct Check {
  uint64_t address;
  uint64_t bytes;
  std::string file;
  std::vector<uint8_t> expected;
};

// job.txt as it stands.
struct JobText {
  bool has_target = false, has_base = false, has_size = false, has_run = false;
  uint64_t base = kArenaBase;
  uint64_t size = 0;
  std::string program;
  std::vector<Load> loads;
  std::vector<Check> checks;
};

// What an instruction makes the simulator do. An instruction that leaves its memory is a fault before it
// moves an element.
uint64_t work_of(const vta::Config& config, const vta::Instruction& i) {
  if (!is_memory(i)) return iterations(i);
  return std::min<uint64_t>(sram_extent(i), memory_elements(config, i.memory));
}

class Replay : JobReader {
 public:
  Replay(std::string directory, const Options& options) : JobReader(std::move(directory), options) {}

  Fault run(qplan_npu_report* report) {
    std::vector<vta::Instruction> stream;
    if (!read_job() || !read_stream(&stream) || !fits_work(stream) || !read_checks()) return fault_;
    const Schedule schedule = make_schedule(options_.config, stream);
    arena_.assign(job_.size, 0x5a);
    Dram dram;
    Segment arena;
    arena.address = job_.base;
    arena.bytes = arena_.size();
    arena.memory = arena_.data();
    arena.is_writable = true;
    arena.is_initialised = false;
    arena.name = "the arena";
    dram.add(std::move(arena));
    if (!read_loads(&dram.segments()[0])) return fault_;
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
    for (const Check& check : job_.checks) {
      if (!compare(check.file, check.expected, arena_.data() + (check.address - job_.base), check.address))
        break;
    }
    return fault_;
  }

 private:
  bool directive(const std::vector<std::string_view>& words) override {
    const std::string_view word = words[0];
    if (word == "target" && words.size() == 2) return is_target("vta", words[1], &job_.has_target);
    if (word == "base" && words.size() == 2) {
      if (!once(word, &job_.has_base)) return false;
      if (parse_number(words[1], &job_.base) && job_.base % kGranule == 0) return true;
      return malformed_line("base " + sim::in_quotes(words[1]) + " is no device address, a multiple of 4");
    }
    if (word == "size" && words.size() == 2) {
      if (!once(word, &job_.has_size)) return false;
      if (!parse_number(words[1], &job_.size) || job_.size == 0)
        return malformed_line("size " + sim::in_quotes(words[1]) + " is no number of bytes");
      return job_.size <= options_.memory_bytes ||
             malformed_line("the arena has " + std::to_string(job_.size) + " bytes, the device's memory " +
                            std::to_string(options_.memory_bytes) + "; option memory=BYTES makes it larger");
    }
    if (word == "load" && words.size() == 3) {
      Load load = {0, std::string(words[2])};
      if (!parse_number(words[1], &load.address))
        return malformed_line("no address: " + sim::in_quotes(words[1]));
      job_.loads.push_back(std::move(load));
      return true;
    }
    if (word == "run" && words.size() == 2) {
      job_.program = words[1];
      return once(word, &job_.has_run);
    }
    if (word == "check" && words.size() == 4) {
      Check check = {0, 0, std::string(words[3]), {}};
      if (!parse_number(words[1], &check.address) || !parse_number(words[2], &check.bytes))
        return malformed_line("no address and number of bytes: " + sim::in_quotes(words[1]) + " " +
                              sim::in_quotes(words[2]));
      job_.checks.push_back(std::move(check));
      return true;
    }
    return unknown_line(word);
  }

  bool read_job() {
    if (!read_lines()) return false;
    if (!job_.has_size) return malformed("job.txt has no size");
    if (job_.base >= kAddressSpace || job_.size > kAddressSpace - job_.base) {
      return malformed("the arena's " + std::to_string(job_.size) + " bytes at " + hexadecimal(job_.base) +
                       " end past the device's 32 bits of address");
    }
    if (job_.checks.empty()) return malformed("job.txt has no check");
    if (!job_.has_run) return malformed("job.txt has no run");
    uint64_t compared = 0;
    for (const Check& check : job_.checks) {
      if (!is_inside(check.address, check.bytes)) return false;
      compared += check.bytes;  // at most 2^32 each, fewer than 2^22 of them
    }
    return compared <= job_.size || malformed("the checks compare " + std::to_string(compared) +
                                              " bytes, the arena has " + std::to_string(job_.size));
  }

  // Whether [address, address + bytes) lies in the arena.
  bool is_inside(uint64_t address, uint64_t bytes) {
    if (address >= job_.base && address - job_.base <= job_.size &&
        bytes <= job_.size - (address - job_.base)) {
      return true;
    }
    return malformed(std::to_string(bytes) + " bytes at " + hexadecimal(address) +
                     " are outside the arena, which has " + std::to_string(job_.size) + " at " +
                     hexadecimal(job_.base));
  }

  // ---- files

  bool read_stream(std::vector<vta::Instruction>* stream) {
    std::vector<uint8_t> program;
    if (!read_file(job_.program, kMaxStreamBytes, &program)) return false;
    if (program.size() % vta::kInstructionBytes != 0) {
      return malformed("the stream has " + std::to_string(program.size()) + " bytes, no multiple of 16");
    }
    stream->resize(program.size() / vta::kInstructionBytes);
    for (size_t i = 0; i < stream->size(); ++i) {
      if (decode(options_.config, program.data() + i * vta::kInstructionBytes, &(*stream)[i])) continue;
      return fail(QPLAN_NPU_E_ILLEGAL,
                  "instruction " + std::to_string(i) + ": no instruction of this device");
    }
    return (!stream->empty() && stream->back().opcode == vta::Opcode::kFinish) ||
           fail(QPLAN_NPU_E_ILLEGAL, "the last instruction is not finish");
  }

  // A blob declares how long it takes, a record does not: what it may do is the replayer's option.
  bool fits_work(const std::vector<vta::Instruction>& stream) {
    uint64_t done = 0;
    for (size_t i = 0; i < stream.size(); ++i) {
      const uint64_t work = work_of(options_.config, stream[i]);
      if (work > options_.work - done) {
        return fail(QPLAN_NPU_E_ILLEGAL,
                    "instruction " + std::to_string(i) + ": the job executes and moves more than " +
                        std::to_string(options_.work) + " micro-ops and elements; option work=N allows more");
      }
      done += work;
    }
    return true;
  }

  bool read_checks() {
    return std::ranges::all_of(job_.checks, [this](Check& check) {
      return read_expected(check.file, check.bytes, &check.expected);
    });
  }

  bool read_loads(Segment* arena) {
    for (const Load& load : job_.loads) {
      JobFile file;
      if (!find_file(load.file, &file) || !is_inside(load.address, file.bytes())) return false;
      if (!count_loaded(file.bytes())) return false;
      const uint64_t at = load.address - job_.base, end = at + file.bytes();
      if (!read_found(file, arena_.data() + at)) return false;
      for (uint64_t g = at / kGranule; g < (end + kGranule - 1) / kGranule; ++g)
        arena->touches[g].is_known = 1;
    }
    return true;
  }

  JobText job_;
  std::vector<uint8_t> arena_;
};

}  // namespace

Fault replay_vta(const std::string& directory, const Options& options, qplan_npu_report* report) {
  return Replay(directory, options).run(report);
}

}  // namespace qplan::sim
