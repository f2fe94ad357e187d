/* A driver of qplan/npu_driver.h's ABI for Arm's Ethos-U55 and U65, over Arm's core driver. C99, C++17. */
#ifndef QPLAN_SAMPLES_ETHOSU_DRIVER_SHIM_H_
#define QPLAN_SAMPLES_ETHOSU_DRIVER_SHIM_H_

#include <qplan/npu_driver.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The driver; NULL where the major of abi is another. Call ethosu_init of Arm's driver before `open`. */
const qplan_npu_driver* qplan_ethosu_driver(uint32_t abi);

#ifdef __cplusplus
}
#endif
#endif /* QPLAN_SAMPLES_ETHOSU_DRIVER_SHIM_H_ */
