// libqplan_vta_sim.so: the simulator under the name that drivers in shared libraries export.
#include "qplan/npu_sim.h"

extern "C" __attribute__((visibility("default"))) const qplan_npu_driver* qplan_npu_driver_entry(
    uint32_t abi);
extern "C" const qplan_npu_driver* qplan_npu_driver_entry(uint32_t abi) { return qplan_npu_sim_driver(abi); }
