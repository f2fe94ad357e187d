// In the place of Arm's core driver and of the hardware: the same functions, over the simulator. It checks
// payloads as Arm's driver does.
#ifndef QPLAN_SAMPLES_ETHOSU_DRIVER_FAKE_CORE_DRIVER_H_
#define QPLAN_SAMPLES_ETHOSU_DRIVER_FAKE_CORE_DRIVER_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// One device, not reserved, that has run nothing. Instead of ethosu_init. config: "ethos-u55-128". Returns 0,
// or -1 for unknown names.
int fake_ethosu_init(const char* config);

// How the device behaves from then on, and what has happened since fake_ethosu_init.
struct fake_ethosu_device {
  uint32_t polls;        // calls of ethosu_wait in which each job still runs (1)
  uint32_t hangs;        // 1: jobs never end
  uint32_t fails;        // 1: jobs end with an error of the device
  uint64_t fast_memory;  // as ethosu_init gets it; 0: none
  uint64_t fast_bytes;
  void (*log)(const char* text);  // may be NULL

  uint32_t jobs;     // started
  uint32_t refused;  // payloads
  uint32_t resets;   // while a job ran
  const void* last_payload;
  uint64_t cycles;  // of all jobs, estimated
};
struct fake_ethosu_device* fake_ethosu(void);

#ifdef __cplusplus
}
#endif
#endif  // QPLAN_SAMPLES_ETHOSU_DRIVER_FAKE_CORE_DRIVER_H_
