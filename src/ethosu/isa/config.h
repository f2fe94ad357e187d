// Configurations of Arm's Ethos-U55 and U65: sizes that a command stream depends on. Shared by packer,
// simulator and drivers; needs neither heap nor the standard library.
#ifndef QPLAN_SRC_ETHOSU_ISA_CONFIG_H_
#define QPLAN_SRC_ETHOSU_ISA_CONFIG_H_

#include <stddef.h>
#include <stdint.h>

namespace qplan::ethosu {

constexpr uint32_t kBankBytes = 1024;
constexpr uint32_t kReservedBanks = 2;  // at the start of SHRAM
constexpr uint32_t kTableBanks = 2;     // at its end, where a kernel uses a table
constexpr uint32_t kIfmUnitDepth = 8;
constexpr uint32_t kMaxRegions = 8;
// Input channels of one step of a convolution.
constexpr uint32_t kIfmStepDepth = 32;

struct Config {
  const char* name;  // "ethos-u55-128"
  bool is_u65;
  uint32_t macs;
  uint32_t cores;
  // The unit in which a core makes the output feature map (OFM).
  uint32_t unit_h, unit_w, unit_d;
  uint32_t banks;        // of SHRAM, of one core
  uint32_t config_word;  // of the CONFIG action
  // Banks of the input and of accumulators come in multiples of these.
  uint32_t ifm_granule, ifm32_granule, acc32_granule, acc40_granule;
  uint32_t clock_khz;
  uint32_t bytes_per_cycle;  // of the memory interface
  // Cycles of an output element, in eighths: {maximum, convolution and average, addition, product or int40,
  // clamp}.
  uint32_t output_eighths[5];
};

constexpr uint32_t kNumConfigs = 6;
extern const Config kConfigs[kNumConfigs];
// nullptr for other names.
const Config* find_config(const char* name);
const Config* find_config_word(uint32_t config_word);
// A number for all that a command stream depends on.
uint64_t config_hash(const Config& config);

// U55: 32-bit addresses, U65: 40.
constexpr uint32_t address_bits(const Config& config) { return config.is_u65 ? 40 : 32; }
constexpr uint32_t max_unfinished_dmas(const Config& config) { return config.is_u65 ? 2 : 1; }
constexpr uint32_t kMaxUnfinishedKernels = 2;
// Where tables are in SHRAM.
constexpr uint32_t table_address(const Config& config) { return (config.banks - kTableBanks) * kBankBytes; }

constexpr uint32_t round_up(uint32_t value, uint32_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}
constexpr uint32_t ceil_div(uint32_t value, uint32_t by) { return (value + by - 1) / by; }
constexpr uint32_t least(uint32_t a, uint32_t b) { return a < b ? a : b; }
constexpr uint32_t most(uint32_t a, uint32_t b) { return a > b ? a : b; }

}  // namespace qplan::ethosu

#endif  // QPLAN_SRC_ETHOSU_ISA_CONFIG_H_
