/* The simulator as a driver's shared library. */
#include <qplan/npu_sim.h>

QPLAN_API const qplan_npu_driver* qplan_npu_driver_entry(uint32_t abi);
const qplan_npu_driver* qplan_npu_driver_entry(uint32_t abi) { return qplan_npu_sim_driver(abi); }
