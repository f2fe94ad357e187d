/* Declarations of what the driver uses of the published interface of Arm's core driver for Ethos-U, version
 * 0.16 and later, written for this project. Where Arm's driver is linked, its own header of this name is used
 * instead. */
#ifndef QPLAN_SAMPLES_ETHOSU_DRIVER_CORE_API_H_
#define QPLAN_SAMPLES_ETHOSU_DRIVER_CORE_API_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct ethosu_driver;

struct ethosu_id {
  uint32_t version_status;
  uint32_t version_minor;
  uint32_t version_major;
  uint32_t product_major; /* 0: U55, 1: U65 */
  uint32_t arch_patch_rev;
  uint32_t arch_minor_rev;
  uint32_t arch_major_rev;
};
struct ethosu_config {
  uint32_t macs_per_cc; /* their binary logarithm */
  uint32_t cmd_stream_version;
  uint32_t custom_dma;
};
struct ethosu_hw_info {
  struct ethosu_id version;
  struct ethosu_config cfg;
};

/* A device for one job; waits until one is free. */
struct ethosu_driver* ethosu_reserve_driver(void);
/* Stops the job if there is one. */
void ethosu_release_driver(struct ethosu_driver* drv);
void ethosu_get_hw_info(struct ethosu_driver* drv, struct ethosu_hw_info* hw);

/* Starts a payload. 0, or a negative number when it was refused. The arrays are in use until the job has
 * ended; entry 2 of base_addr is replaced where ethosu_init was given fast memory. */
int ethosu_invoke_async(struct ethosu_driver* drv, const void* custom_data_ptr, const int custom_data_size,
                        uint64_t* const base_addr, const size_t* base_addr_size, const int num_base_addr,
                        void* user_arg);
/* 1: it runs (only if block is false), 0: it has ended well, -1: with an error, -2: there is no job. */
int ethosu_wait(struct ethosu_driver* drv, bool block);

#ifdef __cplusplus
}
#endif
#endif /* QPLAN_SAMPLES_ETHOSU_DRIVER_CORE_API_H_ */
