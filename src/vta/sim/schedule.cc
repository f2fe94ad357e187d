#include "src/vta/sim/schedule.h"

#include <algorithm>
#include <deque>

#include "src/vta/isa/vta_cost.h"

namespace qplan::sim {
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
