// The driver with the fake core driver in a shared library for hosts: what `--driver` and the conformance
// suite load. The configuration is that of $ETHOSU_CONFIG, by default ethos-u55-128.
#include <stdlib.h>

#include "ethosu_driver_shim.h"
#include "fake_core_driver.h"

extern "C" __attribute__((visibility("default"))) const qplan_npu_driver* qplan_npu_driver_entry(
    uint32_t abi) {
  static const bool is_ready = [] {
    const char* const config = getenv("ETHOSU_CONFIG");
    return fake_ethosu_init(config == nullptr ? "ethos-u55-128" : config) == 0;
  }();
  return is_ready ? qplan_ethosu_driver(abi) : nullptr;
}
