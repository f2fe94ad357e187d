#include "src/ethosu/isa/config.h"

namespace qplan::ethosu {

// Clocks: those at which Arm's compiler estimates, 500 MHz (U55) and 1 GHz (U65).
const Config kConfigs[kNumConfigs] = {
    {"ethos-u55-32", false, 32, 1, 1, 1, 4, 16, 0x00001005, 2, 4, 4, 4, 500000, 8, {8, 16, 48, 24, 16}},
    {"ethos-u55-64", false, 64, 1, 1, 1, 8, 16, 0x00001006, 2, 4, 4, 8, 500000, 8, {4, 8, 24, 12, 8}},
    {"ethos-u55-128", false, 128, 1, 1, 2, 8, 24, 0x00001807, 4, 8, 8, 12, 500000, 8, {2, 4, 12, 6, 4}},
    {"ethos-u55-256", false, 256, 1, 2, 2, 8, 48, 0x00003008, 8, 16, 16, 20, 500000, 8, {1, 2, 6, 3, 2}},
    {"ethos-u65-256", true, 256, 1, 2, 2, 8, 48, 0x10003008, 8, 16, 16, 20, 1000000, 16, {1, 2, 6, 3, 2}},
    {"ethos-u65-512", true, 512, 2, 2, 2, 8, 48, 0x10006009, 8, 16, 16, 20, 1000000, 16, {1, 2, 6, 3, 2}},
};

const Config* find_config(const char* name) {
  for (const Config& config : kConfigs) {
    const char* a = config.name;
    const char* b = name;
    while (*a != '\0' && *a == *b) ++a, ++b;
    if (*a == *b) return &config;
  }
  return nullptr;
}

const Config* find_config_word(uint32_t config_word) {
  for (const Config& config : kConfigs) {
    if (config.config_word == config_word) return &config;
  }
  return nullptr;
}

uint64_t config_hash(const Config& config) {
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  const auto add = [&](uint32_t value) {
    for (uint32_t b = 0; b < 4; ++b) {
      hash ^= value >> (8 * b) & 0xff;
      hash *= 0x100000001b3;
    }
  };
  add(config.config_word);
  const uint32_t values[] = {
      config.macs,  config.cores,       config.unit_h,        config.unit_w,        config.unit_d,
      config.banks, config.ifm_granule, config.ifm32_granule, config.acc32_granule, config.acc40_granule};
  for (const uint32_t value : values) add(value);
  return hash;
}

}  // namespace qplan::ethosu
