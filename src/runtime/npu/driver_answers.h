// What drivers answer: their status codes as messages write them, and whether a program reads and writes what
// a plan binds, which is asked when a session loads it and while packing.
#ifndef QPLAN_SRC_RUNTIME_NPU_DRIVER_ANSWERS_H_
#define QPLAN_SRC_RUNTIME_NPU_DRIVER_ANSWERS_H_

#include <stdint.h>

#include "format/plan_generated.h"
#include "qplan/npu_driver.h"
#include "src/base/error.h"

namespace qplan {

// "bus error"; of a number that only a later ABI names, of its class. "" of QPLAN_NPU_OK.
const char* npu_status_text(qplan_npu_status status);
// "E_BUS", for those who write drivers; "" of a number that this ABI does not name.
const char* npu_status_name(qplan_npu_status status);

// Enough for programs that have weights in many slots; a larger number from a driver is wrong.
inline constexpr uint32_t kMaxProgramRegions = 65536;

// False: *text says what stands against the slot. Binds: see check_slots.
template <typename Binds>
bool check_slot(const Binds& binds, const char* driver, uint32_t slot, const qplan_npu_region_info& info,
                Error* text) {
  uint32_t b = 0;
  while (b < binds.count() && binds.slot(b) != slot) ++b;
  const bool is_bound = b < binds.count();
  *text << "slot " << slot << ": ";
  if (info.is_bound == 0) {
    *text << "the program carries it, the plan binds it";
    return !is_bound;
  }
  if (!is_bound) {
    *text << "the program needs it, the plan does not bind it";
    return false;
  }
  if (info.bytes > binds.size(b)) {
    *text << "the program needs " << info.bytes << " bytes, the plan binds " << binds.size(b);
    return false;
  }
  constexpr uint32_t kUses[] = {QPLAN_NPU_USE_INPUT, QPLAN_NPU_USE_OUTPUT, QPLAN_NPU_USE_SCRATCH};
  if ((info.usage & kUses[binds.use(b)]) == 0) {
    *text << "the program uses it in another way (" << info.usage << ") than the plan binds it";
    return false;
  }
  // After a failure the CPU begins with the same inputs, which other steps may read too.
  constexpr uint32_t kWrites = QPLAN_NPU_USE_OUTPUT | QPLAN_NPU_USE_SCRATCH;
  if (binds.use(b) == format::NpuUse_INPUT && (info.usage & kWrites) != 0) {
    *text << "the program writes it, the plan binds an input";
    return false;
  }
  if (binds.use(b) == format::NpuUse_OUTPUT && info.bytes < binds.bytes_read(b)) {
    *text << "the program writes " << info.bytes << " bytes, the plan reads " << binds.bytes_read(b)
          << " of them";
    return false;
  }
  if (info.alignment > 1 && binds.address(b) % info.alignment != 0) {
    *text << "its address is no multiple of " << info.alignment << ", which driver " << Quoted{driver}
          << " wants";
    return false;
  }
  return true;
}

// Returns QPLAN_NPU_OK where program and plan agree, and QPLAN_NPU_E_VERSION where they do not. An error of
// the driver means that it states nothing about the program. *text has the reason. *alignment: the largest of
// the program's slots.
//
// Binds are those of one step, in any order:
//   uint32_t count(), most()      most: that a job of the device may have; 0: not limited
//   uint32_t slot(b), format::NpuUse use(b)
//   uint64_t size(b)              bytes of the buffer
//   uint64_t bytes_read(b)        of an output: up to the last byte that the plan reads
//   uint64_t address(b)           the device's; 0 before it is known
template <typename Binds>
qplan_npu_status check_slots(const qplan_npu_driver& driver, qplan_npu_device device,
                             qplan_npu_program program, const Binds& binds, uint32_t* alignment,
                             Error* text) {
  qplan_npu_program_info whole = {};
  whole.struct_size = sizeof(whole);
  qplan_npu_status status = driver.program_info(device, program, &whole);
  text->set(QPLAN_OK);
  if (status >= 0 && whole.num_regions > kMaxProgramRegions) {
    *text << "the program has " << whole.num_regions << " regions, expected at most " << kMaxProgramRegions;
    return QPLAN_NPU_E_VERSION;
  }
  *alignment = 1;
  for (uint32_t slot = 0; status >= 0 && slot < whole.num_regions; ++slot) {
    qplan_npu_region_info info = {};
    info.struct_size = sizeof(info);
    status = driver.region_info(device, program, slot, &info);
    text->set(QPLAN_OK);
    if (status >= 0 && !check_slot(binds, driver.name, slot, info, text)) return QPLAN_NPU_E_VERSION;
    if (info.is_bound != 0 && info.alignment > *alignment) *alignment = info.alignment;
  }
  text->set(QPLAN_OK);
  if (status < 0) {
    *text << "the driver states nothing about its program: " << npu_status_text(status);
    return status;
  }
  for (uint32_t b = 0; b < binds.count(); ++b) {
    if (binds.slot(b) < whole.num_regions) continue;
    *text << "slot " << binds.slot(b) << ": the program has " << whole.num_regions;
    return QPLAN_NPU_E_VERSION;
  }
  if (binds.most() != 0 && binds.count() > binds.most()) {
    *text << binds.count() << " binds, the device takes " << binds.most();
    return QPLAN_NPU_E_VERSION;
  }
  return QPLAN_NPU_OK;
}

}  // namespace qplan

#endif  // QPLAN_SRC_RUNTIME_NPU_DRIVER_ANSWERS_H_
