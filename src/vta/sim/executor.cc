#include <algorithm>
#include <array>
#include <cstring>
#include <string>

#include "src/base/random.h"
#include "src/vta/sim/machine.h"

namespace qplan::sim {
namespace {

using vta::kNumModules;
using vta::kNumQueues;

// Which of the modules that could go on does. The extremes come among the first few: each module as far ahead
// of the others as the tokens let it.
class Order {
 public:
  Order(uint64_t seed, uint32_t interleaving)
      : random_(seed + interleaving * uint64_t{0x632be59bd9b4e019}), which_(interleaving) {}
  uint32_t choose(const std::array<bool, kNumModules>& ready) {
    static constexpr uint32_t kEager[][kNumModules] = {{0, 1, 2}, {2, 1, 0}, {1, 0, 2}};
    if (which_ >= 1 && which_ <= 3) {
      for (const uint32_t m : kEager[which_ - 1]) {
        if (ready[m]) return m;
      }
    }
    uint32_t count = 0;
    for (const bool is_ready : ready) count += is_ready ? 1 : 0;
    uint64_t pick = random_.below(count);
    for (uint32_t m = 0; m < kNumModules; ++m) {
      if (ready[m] && pick-- == 0) return m;
    }
    return 0;
  }

 private:
  SplitMix64 random_;
  uint32_t which_;
};

class Run {
 public:
  Run(const std::vector<vta::Instruction>& stream, const Schedule& schedule, const ExecuteOptions& options,
      uint32_t interleaving, Machine* machine, Dram* dram)
      : stream_(stream),
        schedule_(schedule),
        options_(options),
        is_first_(interleaving == 0),
        order_(options.seed, interleaving),
        machine_(*machine),
        dram_(*dram) {}

  // Sets fault unless every instruction was executed.
  void run(Fault* fault) {
    machine_.reset();
    dram_.forget_touches();
    for (size_t done = 0; done < stream_.size(); ++done) {
      if (options_.stop != nullptr && options_.stop->load(std::memory_order_relaxed)) {
        fault->status = QPLAN_NPU_E_CANCELLED;
        fault->text = "cancelled after " + std::to_string(done) + " instructions";
        return;
      }
      std::array<bool, kNumModules> ready{};
      bool any = false;
      for (uint32_t m = 0; m < kNumModules; ++m) any |= ready[m] = is_ready(m);
      if (!any) {
        *fault = token_fault(schedule_.tokens);
        return;
      }
      if (!step(order_.choose(ready), fault)) return;
    }
  }

 private:
  bool is_ready(uint32_t m) const {
    if (next_[m] == schedule_.modules[m].size()) return false;
    vta::TokenUse use;
    if (!vta::token_use(stream_[schedule_.modules[m][next_[m]]], &use)) return false;
    for (uint32_t q = 0; q < kNumQueues; ++q) {
      if ((use.pops >> q & 1) != 0 && tokens_[q] == 0) return false;
    }
    return true;
  }

  bool step(uint32_t m, Fault* fault) {
    const uint32_t index = schedule_.modules[m][next_[m]];
    if (is_first_ && options_.before) {
      options_.before(index, fault);
      if (fault->is_set()) return false;
    }
    const vta::Instruction& instruction = stream_[index];
    if (!machine_.execute(instruction, index, schedule_.clocks[index], schedule_.number[index], &dram_,
                          fault)) {
      return false;
    }
    vta::TokenUse use;
    (void)vta::token_use(instruction, &use);
    for (uint32_t q = 0; q < kNumQueues; ++q) {
      tokens_[q] -= use.pops >> q & 1;
      tokens_[q] += use.pushes >> q & 1;
    }
    ++next_[m];
    return true;
  }

  const std::vector<vta::Instruction>& stream_;
  const Schedule& schedule_;
  const ExecuteOptions& options_;
  bool is_first_;
  Order order_;
  Machine& machine_;
  Dram& dram_;
  std::array<size_t, kNumModules> next_{};
  std::array<uint32_t, kNumQueues> tokens_{};
};

using Snapshot = std::vector<std::vector<uint8_t>>;

Snapshot snapshot(const Dram& dram) {
  Snapshot bytes;
  for (const Segment& segment : dram.segments()) {
    bytes.emplace_back();
    if (segment.is_writable) bytes.back().assign(segment.memory, segment.memory + segment.bytes);
  }
  return bytes;
}

void restore(const Snapshot& bytes, Dram* dram) {
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (!bytes[i].empty()) std::memcpy(dram->segments()[i].memory, bytes[i].data(), bytes[i].size());
  }
}

void compare(const Snapshot& first, const Dram& dram, uint32_t interleaving, Fault* fault) {
  for (size_t i = 0; i < first.size(); ++i) {
    const Segment& segment = dram.segments()[i];
    for (uint64_t b = 0; b < first[i].size(); ++b) {
      if (first[i][b] == segment.memory[b]) continue;
      fault->status = QPLAN_NPU_E_HAZARD;
      fault->address = segment.address + b;
      fault->text = "interleavings 0 and " + std::to_string(interleaving) + " differ in byte " +
                    std::to_string(b) + " of " + segment.name;
      return;
    }
  }
}

// Hardware reports the end when FINISH is done, whatever the store module is still writing.
Fault early_finish(const std::vector<vta::Instruction>& stream, const Schedule& schedule) {
  Fault fault;
  const std::vector<uint32_t>& stores = schedule.modules[static_cast<uint32_t>(vta::Module::kStore)];
  if (stream.empty() || stores.empty() || stream.back().opcode != vta::Opcode::kFinish) return fault;
  const uint32_t waited_for = schedule.clocks.back()[static_cast<uint32_t>(vta::Module::kStore)];
  if (waited_for == stores.size()) return fault;
  fault.status = QPLAN_NPU_E_HAZARD;
  fault.instruction = stream.size() - 1;
  fault.text = "instruction " + std::to_string(stream.size() - 1) +
               " (finish): no token orders it after the store of instruction " +
               std::to_string(stores[waited_for]);
  return fault;
}

}  // namespace

Fault token_fault(const vta::TokenResult& tokens) {
  Fault fault;
  fault.instruction = tokens.instruction;
  switch (tokens.fault) {
    case vta::TokenFault::kNone:
      return Fault();
    case vta::TokenFault::kNoSuchQueue:
      fault.status = QPLAN_NPU_E_ILLEGAL;
      fault.text = "instruction " + std::to_string(tokens.instruction) + ": module " +
                   module_name(tokens.module) + " has no such neighbour to exchange a token with";
      break;
    case vta::TokenFault::kDeadlock:
      fault.status = QPLAN_NPU_E_TIMEOUT;
      fault.text = "deadlock: instruction " + std::to_string(tokens.instruction) + " of module " +
                   module_name(tokens.module) + " waits for a token from queue " + queue_name(tokens.queue);
      break;
    case vta::TokenFault::kLeftOver:
      fault.status = QPLAN_NPU_E_HAZARD;
      fault.instruction = QPLAN_NPU_NO_INSTRUCTION;
      fault.text = std::string("queue ") + queue_name(tokens.queue) + " ends with " +
                   std::to_string(tokens.tokens) + " tokens that were never taken";
      break;
  }
  return fault;
}

Outcome execute(const vta::Config& config, const std::vector<vta::Instruction>& stream,
                const Schedule& schedule, const ExecuteOptions& options, Dram* dram) {
  Outcome outcome;
  Machine machine(config, options.stop);
  const uint32_t count = std::max(options.explore, 1u);
  const Snapshot before = count > 1 ? snapshot(*dram) : Snapshot();
  Snapshot first;
  for (uint32_t n = 0; n < count; ++n) {
    if (n > 0) restore(before, dram);
    Run(stream, schedule, options, n, &machine, dram).run(&outcome.fault);
    if (machine.hazards() > outcome.hazards) {
      outcome.hazards = machine.hazards();
      outcome.first_hazard = machine.first_hazard();
    }
    if (outcome.fault.is_set()) return outcome;
    const Fault early = early_finish(stream, schedule);
    if (early.is_set() && outcome.hazards++ == 0) outcome.first_hazard = early;
    ++outcome.interleavings;
    if (n == 0) {
      if (count > 1) first = snapshot(*dram);
      if (schedule.tokens.fault != vta::TokenFault::kNone) outcome.fault = token_fault(schedule.tokens);
      if (options.hazards_fail && outcome.hazards > 0) outcome.fault = outcome.first_hazard;
      if (outcome.fault.is_set()) return outcome;
    } else {
      compare(first, *dram, n, &outcome.fault);
      if (outcome.fault.is_set()) break;
    }
  }
  if (!first.empty()) restore(first, dram);
  return outcome;
}

}  // namespace qplan::sim
