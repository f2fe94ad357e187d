// VTA blobs: what the reader takes, the simulator runs in memories of exactly the regions' sizes between
// guard pages, in two interleavings that end alike. Every refusal has a reason.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "qplan/npu_sim.h"
#include "src/vta/sim/machine.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/guarded_memory.h"
#include "tests/fuzz/plan_work.h"
#include "tests/fuzz/vta_mutator.h"

namespace qplan::testing {
namespace {

constexpr uint64_t kMostWork = 1 << 13;  // micro-ops and elements
constexpr uint64_t kMostRegionBytes = 1 << 18;

struct Run {
  sim::Outcome outcome;
  std::vector<std::vector<uint8_t>> memories;
};

Run run_program(const sim::Program& program, uint64_t seed) {
  std::vector<GuardedMemory> memories;
  std::vector<uint64_t> addresses;
  sim::Dram dram;
  uint64_t at = sim::kArenaBase;
  for (const sim::ProgramRegion& region : program.regions) {
    memories.emplace_back(region.is_carried ? 0 : region.bytes, 64, memories.size() % 2 == 0,
                          static_cast<uint8_t>(memories.size() * 59 + 3));
    sim::Segment segment;
    segment.address = at;
    segment.bytes = region.bytes;
    segment.memory = region.is_carried ? program.memory.data() + region.offset : memories.back().data();
    segment.is_writable = sim::is_writable(region.kind);
    segment.is_initialised = region.is_initialised;
    segment.name = region.name;
    addresses.push_back(at);
    at += (region.bytes + 4095) / 4096 * 4096;
    dram.add(std::move(segment));
  }
  sim::ExecuteOptions how;
  how.seed = seed;
  Run run;
  run.outcome =
      sim::execute(vta::kDefaultConfig, sim::relocate(program, addresses), program.schedule, how, &dram);
  for (const GuardedMemory& memory : memories) {
    run.memories.emplace_back(memory.data(), memory.data() + memory.size());
  }
  return run;
}

void run_blob(const uint8_t* data, size_t size) {
  const GuardedMemory blob(size, 64, true, 0);
  if (size > 0) std::memcpy(blob.data(), data, size);
  if (PlanWork::blob_work(blob.data(), size) > kMostWork) return;

  sim::Program program;
  qplan_npu_reason why{};
  const qplan_npu_status status = sim::load_program(vta::kDefaultConfig, blob.data(), size, &program, &why);
  uint64_t lines = 0;
  const auto count = [](void* user, const char* text) {
    FUZZ_CHECK(text != nullptr && std::strchr(text, '\n') == nullptr, "a line of the listing");
    ++*static_cast<uint64_t*>(user);
  };
  const qplan_npu_status listed = qplan_npu_sim_disassemble(blob.data(), size, "", count, &lines, nullptr);
  FUZZ_CHECK((status == QPLAN_NPU_OK) == (listed == QPLAN_NPU_OK), "load says %d, the listing %d", status,
             listed);
  if (status != QPLAN_NPU_OK) {
    FUZZ_CHECK(status == QPLAN_NPU_E_BLOB || status == QPLAN_NPU_E_VERSION, "status %d", status);
    FUZZ_CHECK(why.code != 0 && why.text[0] != '\0', "refused without a reason");
    return;
  }
  FUZZ_CHECK(lines >= program.stream.size(), "the listing has %llu lines",
             static_cast<unsigned long long>(lines));
  uint64_t bytes = 0;
  for (const sim::ProgramRegion& region : program.regions) {
    if (region.bytes > kMostRegionBytes - bytes) return;
    bytes += region.bytes;
  }
  program.memory = sim::Block(qplan_device_hooks{}, program.memory_bytes, 0);
  sim::place_program(vta::kDefaultConfig, blob.data(), &program);
  const Run first = run_program(program, 1);
  if (first.outcome.fault.is_set()) {
    FUZZ_CHECK(!first.outcome.fault.text.empty(), "a fault without a text");
    return;
  }
  // No hazard was found: the order in which the modules take turns shows nowhere.
  const Run second = run_program(program, 2);
  FUZZ_CHECK(!second.outcome.fault.is_set(), "another interleaving: %s", second.outcome.fault.text.c_str());
  FUZZ_CHECK(first.memories == second.memories, "another interleaving gives other bytes");
}

}  // namespace
}  // namespace qplan::testing

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  qplan::testing::run_blob(data, size);
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned int seed) {
  return qplan::testing::VtaMutator(seed).run(data, size, max_size);
}
