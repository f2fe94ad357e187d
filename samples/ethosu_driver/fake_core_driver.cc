#include "fake_core_driver.h"

#include <ethosu_driver.h>

#include <string>
#include <vector>

#include "src/ethosu/isa/architecture.h"
#include "src/ethosu/sim/machine.h"

using qplan::ethosu::Config;

// One job, from ethosu_invoke_async to the ethosu_wait that reports its end.
struct ethosu_driver {
  const Config* config = nullptr;
  bool is_reserved = false;
  bool has_job = false;
  uint32_t polls_left = 0;
  qplan::ethosu::Payload payload;
  const uint64_t* base_addr = nullptr;
  const size_t* base_addr_size = nullptr;
  int num_base_addr = 0;
};

namespace {

ethosu_driver device;
fake_ethosu_device state;

constexpr uint64_t kAlignment = 16;
constexpr int kFastMemory = 2;

int refuse(const char* text) {
  ++state.refused;
  if (state.log != nullptr) state.log(text);
  return -1;
}

uint8_t* memory_at(uint64_t address) { return reinterpret_cast<uint8_t*>(static_cast<uintptr_t>(address)); }

// Stands for the hardware: runs the command stream of the payload on the memory that the base addresses point
// to. Region 0 holds constants, as in all streams of Arm's compiler and of qplan, and is not written; the
// device does not know what the other regions hold.
int run() {
  using namespace qplan::ethosu;
  sim::Memory memory(*device.config);
  for (int r = 0; r < device.num_base_addr; ++r)
    memory.set_region(static_cast<uint32_t>(r), memory_at(device.base_addr[r]), device.base_addr_size[r],
                      r > 0, true);
  std::vector<uint32_t> words(device.payload.stream_words);
  for (size_t i = 0; i < words.size(); ++i) words[i] = load_word(device.payload.stream + i * 4);
  sim::Machine machine(*device.config, &memory);
  const sim::Outcome outcome = machine.run(words);
  state.cycles += outcome.cycles;
  if (!outcome.fault.is_set()) return 0;
  if (state.log != nullptr) state.log(outcome.fault.text.c_str());
  return -1;
}

}  // namespace

int fake_ethosu_init(const char* config) {
  device = ethosu_driver();
  state = {};
  state.polls = 1;
  device.config = qplan::ethosu::find_config(config);
  return device.config == nullptr ? -1 : 0;
}

fake_ethosu_device* fake_ethosu(void) { return &state; }

ethosu_driver* ethosu_reserve_driver(void) {
  // Arm's driver waits here: for ever, where nobody has called ethosu_init.
  if (device.config == nullptr || device.is_reserved) return nullptr;
  device.is_reserved = true;
  return &device;
}

void ethosu_release_driver(ethosu_driver* drv) {
  if (drv->has_job && ethosu_wait(drv, false) == 1) {
    drv->has_job = false;
    ++state.resets;
  }
  drv->is_reserved = false;
}

void ethosu_get_hw_info(ethosu_driver* drv, ethosu_hw_info* hw) {
  *hw = {};
  hw->version.product_major = drv->config->is_u65 ? 1 : 0;
  hw->version.arch_major_rev = qplan::ethosu::kArchitecture >> 28;
  hw->version.arch_patch_rev = qplan::ethosu::kArchitecture >> 16 & 0xf;
  hw->cfg.macs_per_cc = drv->config->config_word & 0xf;
}

int ethosu_invoke_async(ethosu_driver* drv, const void* custom_data_ptr, const int custom_data_size,
                        uint64_t* const base_addr, const size_t* base_addr_size, const int num_base_addr,
                        void*) {
  if (drv->has_job) return refuse("a job runs already");
  const auto* const bytes = static_cast<const uint8_t*>(custom_data_ptr);
  if (const qplan::ethosu::Problem problem =
          read_payload(bytes, static_cast<uint64_t>(custom_data_size), &drv->payload))
    return refuse(problem.text);
  if (drv->payload.config_word != drv->config->config_word)
    return refuse("the payload is for another configuration");
  if (state.fast_memory != 0 && num_base_addr >= kFastMemory) {
    if (base_addr_size[kFastMemory] > state.fast_bytes) return refuse("the fast memory is too small");
    base_addr[kFastMemory] = state.fast_memory;
  }
  if (reinterpret_cast<uintptr_t>(drv->payload.stream) % kAlignment != 0)
    return refuse("the address of the stream is not a multiple of 16");
  for (int r = 0; r < num_base_addr; ++r) {
    if (base_addr[r] % kAlignment != 0) return refuse("a base address is not a multiple of 16");
  }
  drv->base_addr = base_addr;
  drv->base_addr_size = base_addr_size;
  drv->num_base_addr = num_base_addr;
  drv->polls_left = state.polls;
  drv->has_job = true;
  ++state.jobs;
  state.last_payload = custom_data_ptr;
  return 0;
}

int ethosu_wait(ethosu_driver* drv, bool block) {
  if (!drv->has_job) return -2;
  if (state.hangs != 0 && !block) return 1;
  if (!block && drv->polls_left > 0) {
    --drv->polls_left;
    return 1;
  }
  drv->has_job = false;
  if (state.hangs != 0 || state.fails != 0) return -1;
  return run();
}
