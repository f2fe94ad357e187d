// Asks the driver of the same library about a program that goes into a plan. A program that its `load`
// refuses is thus an error of packing, not of the first run.
#include <algorithm>
#include <cstring>
#include <string>

#include "qplan/host.h"
#include "src/packer/ir/cat.h"
#include "src/packer/target/external/external.h"
#include "src/packer/target/region.h"

namespace qplan::target::external {
namespace {

bool is_mistake(qplan_npu_status status) { return QPLAN_NPU_CLASS(status) == QPLAN_NPU_CLASS_MISTAKE; }

// Opens the driver's first device as `qplan run` does: with the options of the target, or without them if the
// driver refuses them.
class OpenDevice {
 public:
  OpenDevice(const qplan_npu_driver& driver, const std::string& options) {
    if (!open(driver, options.c_str()) && is_mistake(device_.status) && !options.empty()) open(driver, "");
  }
  ~OpenDevice() { qplan_host_device_close(&device_); }
  OpenDevice(const OpenDevice&) = delete;
  OpenDevice& operator=(const OpenDevice&) = delete;

  // Plans of these capabilities are for this device. The packing machine may have no device, or another one.
  bool is_of(uint64_t capabilities_hash) const {
    qplan_npu_capabilities capabilities = {};
    capabilities.struct_size = sizeof(capabilities);
    return device_.driver != nullptr &&
           device_.driver->capabilities(device_.device, &capabilities) == QPLAN_NPU_OK &&
           capabilities.hash == capabilities_hash;
  }
  const qplan_npu_driver& driver() const { return *device_.driver; }
  qplan_npu_device handle() const { return device_.device; }

 private:
  bool open(const qplan_npu_driver& driver, const char* options) {
    device_.struct_size = sizeof(device_);
    return qplan_host_device_open(&driver, 0, options, nullptr, &device_, nullptr) >= 0;
  }
  qplan_host_device device_ = {};
};

// Returns "" if the program's slot agrees with what the plan binds there. bind is null if it binds nothing.
std::string slot_fault(const qplan_npu_region_info& info, uint32_t slot, const RegionSlot* bind) {
  if (info.is_bound == 0)
    return bind == nullptr ? "" : cat("slot ", slot, ": the program carries it, the plan binds it");
  if (bind == nullptr) return cat("slot ", slot, ": the program needs it, the plan does not bind it");
  if (info.bytes > bind->arrangement.size)
    return cat("slot ", slot, ": the program needs ", info.bytes, " bytes, the plan binds ",
               bind->arrangement.size);
  return "";
}

std::string slots_fault(const OpenDevice& device, qplan_npu_program program, const CompiledRegion& region) {
  qplan_npu_program_info program_info = {};
  program_info.struct_size = sizeof(program_info);
  if (device.driver().program_info(device.handle(), program, &program_info) < 0) return "";
  for (const RegionSlot& bind : region.slots) {
    if (bind.slot >= program_info.num_regions)
      return cat("slot ", bind.slot, ": the program has ", program_info.num_regions);
  }
  for (uint32_t slot = 0; slot < program_info.num_regions; ++slot) {
    qplan_npu_region_info info = {};
    info.struct_size = sizeof(info);
    if (device.driver().region_info(device.handle(), program, slot, &info) < 0) return "";
    const auto bind = std::ranges::find(region.slots, slot, &RegionSlot::slot);
    std::string fault = slot_fault(info, slot, bind == region.slots.end() ? nullptr : &*bind);
    if (!fault.empty()) return fault;
  }
  return "";
}

}  // namespace

std::string driver_refusal(const Library& library, const std::string& options, uint64_t capabilities_hash,
                           const CompiledRegion& region) {
  if (library.driver == nullptr) return "";
  const OpenDevice device(*library.driver, options);
  if (!device.is_of(capabilities_hash)) return "";
  qplan_npu_program program = 0;
  qplan_npu_reason why = {};
  const qplan_npu_status status = device.driver().load(device.handle(), region.format, region.blob.data(),
                                                       region.blob.size(), &program, &why);
  if (status >= 0) {
    std::string fault = slots_fault(device, program, region);
    (void)device.driver().unload(device.handle(), program);
    return fault;
  }
  if (!is_mistake(status)) return "";  // it cannot say now
  const std::string text(why.text, strnlen(why.text, sizeof(why.text)));
  return text.empty() ? cat("status ", status_text(status)) : cat(text, ", status ", status_text(status));
}

}  // namespace qplan::target::external
