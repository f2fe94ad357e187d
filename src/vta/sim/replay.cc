// Recorded jobs, run again: nothing is taken from the blob they came from, only the files.
//
// A record may come from anybody. job.txt is read as a whole before anything is judged, so that every range
// is judged against the one arena there is; files, memory and work are bounded.
#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "qplan/npu_sim.h"
#include "src/vta/sim/machine.h"
#include "src/vta/sim/memory.h"
#include "src/vta/sim/options.h"
#include "src/vta/sim/record.h"

namespace qplan::sim {
namespace {

constexpr char kJobText[] = "job.txt";
constexpr uint64_t kMaxJobTextBytes = uint64_t{4} << 20;  // 4096 regions take half a megabyte
constexpr uint64_t kMaxStreamBytes = uint64_t{32} << 20;  // two million instructions
constexpr uint64_t kMaxLoadedBytes = uint64_t{1}
                                     << 30;  // inputs may overlap each other, so not the arena's size
constexpr uint64_t kAddressSpace = uint64_t{1} << 32;  // of the device

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

class Replay {
 public:
  Replay(std::string directory, const Options& options)
      : directory_(std::move(directory)), options_(options) {}

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
      if (!compare(check)) break;
    }
    return fault_;
  }

 private:
  bool fail(qplan_npu_status status, const std::string& text) {
    fault_.status = status;
    fault_.text = "replay: " + text;
    // Names and words of the record go to terminals.
    for (char& c : fault_.text) {
      if (c < 0x20 || c > 0x7e) c = '?';
    }
    return false;
  }
  bool malformed(const std::string& text) { return fail(QPLAN_NPU_E_ARGUMENT, text); }

  // ---- job.txt

  // A directive that a job has once: what an earlier line was judged by does not change.
  bool once(std::string_view word, bool* has) {
    if (!*has) return *has = true;
    return malformed_line("a second " + sim::in_quotes(word) + ", expected one");
  }
  bool malformed_line(const std::string& text) {
    return malformed("job.txt line " + std::to_string(line_) + ": " + text);
  }

  bool directive(const std::vector<std::string_view>& words) {
    const std::string_view word = words[0];
    if (word == "target" && words.size() == 2) {
      if (words[1] == "vta") return once(word, &job_.has_target);
      return fail(QPLAN_NPU_E_UNSUPPORTED, "target " + sim::in_quotes(words[1]) + ", expected 'vta'");
    }
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
    return malformed_line("cannot understand " + sim::in_quotes(word));
  }

  bool read_job() {
    std::string error;
    if (!files_.open(directory_, &error)) return malformed(error);
    std::vector<uint8_t> text;
    if (!read_file(kJobText, kMaxJobTextBytes, &text)) return false;
    std::string_view rest(reinterpret_cast<const char*>(text.data()), text.size());
    for (line_ = 1; !rest.empty(); ++line_) {
      const size_t end = std::min(rest.find('\n'), rest.size());
      const std::vector<std::string_view> words = split(rest.substr(0, end), ' ');
      if (!words.empty() && words[0][0] != '#' && !directive(words)) return false;
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
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

  bool find_file(const std::string& name, JobFile* file) {
    std::string error;
    return files_.find(name, file, &error) || malformed(error);
  }
  bool read_found(const JobFile& file, uint8_t* to) {
    std::string error;
    return file.read(to, &error) || malformed(error);
  }
  bool read_file(const std::string& name, uint64_t most, std::vector<uint8_t>* bytes) {
    JobFile file;
    if (!find_file(name, &file)) return false;
    if (file.bytes() > most) {
      return malformed(sim::in_quotes(name) + " has " + std::to_string(file.bytes()) +
                       " bytes, expected at most " + std::to_string(most));
    }
    bytes->resize(file.bytes());
    return read_found(file, bytes->data());
  }

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
    for (Check& check : job_.checks) {
      JobFile file;
      if (!find_file(check.file, &file)) return false;
      if (file.bytes() != check.bytes) {
        return malformed(sim::in_quotes(check.file) + " has " + std::to_string(file.bytes()) +
                         " bytes, expected " + std::to_string(check.bytes));
      }
      check.expected.resize(check.bytes);
      if (!read_found(file, check.expected.data())) return false;
    }
    return true;
  }

  bool read_loads(Segment* arena) {
    uint64_t loaded = 0;
    for (const Load& load : job_.loads) {
      JobFile file;
      if (!find_file(load.file, &file) || !is_inside(load.address, file.bytes())) return false;
      loaded += file.bytes();  // at most the arena's size more than the limit
      if (loaded > kMaxLoadedBytes) {
        return malformed("the loads bring more than " + std::to_string(kMaxLoadedBytes) + " bytes");
      }
      const uint64_t at = load.address - job_.base, end = at + file.bytes();
      if (!read_found(file, arena_.data() + at)) return false;
      for (uint64_t g = at / kGranule; g < (end + kGranule - 1) / kGranule; ++g)
        arena->touches[g].is_known = 1;
    }
    return true;
  }

  bool compare(const Check& check) {
    const uint8_t* actual = arena_.data() + (check.address - job_.base);
    for (size_t b = 0; b < check.expected.size(); ++b) {
      if (actual[b] == check.expected[b]) continue;
      fault_.address = check.address + b;
      return fail(QPLAN_NPU_E_BUS, "byte " + std::to_string(b) + " of " + sim::in_quotes(check.file) +
                                       " is " + std::to_string(actual[b]) + ", expected " +
                                       std::to_string(check.expected[b]));
    }
    return true;
  }

  std::string directory_;
  const Options& options_;
  JobFiles files_;
  JobText job_;
  size_t line_ = 0;  // of job.txt, from 1
  std::vector<uint8_t> arena_;
  Fault fault_;
};

// As far as the caller's struct reaches.
void give_report(const Fault& fault, const char* text, qplan_npu_report all, qplan_npu_report* report) {
  if (report == nullptr) return;
  all.struct_size = report->struct_size;
  all.status = fault.status;
  all.fault_instruction = fault.instruction;
  all.fault_address = fault.address;
  std::strncpy(all.text, text, sizeof(all.text) - 1);
  std::memcpy(report, &all, std::min<size_t>(report->struct_size, sizeof(all)));
}

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
    give_report(fault, fault.text.c_str(), all, report);
    return fault.status;
  } catch (...) {
    Fault fault;
    fault.status = QPLAN_NPU_E_MEMORY;
    give_report(fault, "replay: no memory left for the job", {}, report);  // a text that needs none itself
    return fault.status;
  }
}
