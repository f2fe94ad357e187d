#include <stddef.h>

#include "src/runtime/npu/client.h"
#include "src/runtime/npu/driver_answers.h"

namespace qplan {
namespace {

void refuse(NpuRegion* region, qplan_npu_status status, const char* text) {
  region->status = status == QPLAN_NPU_E_VERSION || QPLAN_NPU_CLASS(status) == QPLAN_NPU_CLASS_GONE
                       ? QPLAN_DRIVER_MISSING
                       : QPLAN_DEVICE_ERROR;
  put_text(text_or_status(text, status), region->text);
}

// The binds of a verified step, for check_slots.
class StepBinds {
 public:
  StepBinds(const Session& session, const NpuDevice& device, const format::NpuStep& step,
            const uint64_t* addresses)
      : session_(session), device_(device), step_(step), addresses_(addresses) {}

  uint32_t count() const { return step_.binds()->size(); }
  uint32_t most() const { return device_.max_binds; }
  uint32_t slot(uint32_t b) const { return bind(b).slot(); }
  format::NpuUse use(uint32_t b) const { return bind(b).use(); }
  uint64_t size(uint32_t b) const { return bind(b).size(); }
  uint64_t address(uint32_t b) const { return addresses_[bind(b).memory_class()] + bind(b).offset(); }
  // Up to the last byte that the tensor's elements have; open() proved that they fit.
  uint64_t bytes_read(uint32_t b) const {
    const Arrangement a =
        arrangement_of(bind(b), session_.plan.tensor(step_.outputs()->Get(bind(b).index())));
    uint64_t last = a.origin + (a.element_bytes - 1) * a.byte_stride;
    for (uint32_t axis = 0; axis < a.rank; ++axis) {
      uint64_t reach = 0;
      const uint32_t block = axis + 1 == a.rank ? a.block : 0;
      (void)format::axis_reach(a.extents[axis], a.strides[axis], block, a.block_stride, &reach);
      last += reach;
    }
    return last + 1;
  }

 private:
  const format::NpuBind& bind(uint32_t b) const { return *step_.binds()->Get(b); }

  const Session& session_;
  const NpuDevice& device_;
  const format::NpuStep& step_;
  const uint64_t* addresses_;  // of the device's banks
};

bool check_binds(const Session& session, const format::NpuStep& step, NpuRegion* region, Error* text) {
  const NpuDevice& device = *region->device;
  uint64_t addresses[kNumBankClasses] = {};
  for (uint32_t c = 0; c < kNumBankClasses; ++c) {
    if (device.banks[c].buffer == 0) continue;
    qplan_npu_layout layout = {};
    layout.struct_size = sizeof(layout);
    const qplan_npu_status status = device.driver->layout(device.device, device.banks[c].buffer, &layout);
    if (status < 0) {
      *text << "the driver states nothing about its memory: " << npu_status_text(status);
      return false;
    }
    addresses[c] = layout.device_address;
  }
  const StepBinds binds(session, device, step, addresses);
  return check_slots(*device.driver, device.device, region->program, binds, &region->alignment, text) ==
         QPLAN_NPU_OK;
}

// The plan's bytes outlive the session, and nobody may change them meanwhile.
auto load_function(const qplan_npu_driver& driver) {
  constexpr size_t kBytes =
      offsetof(qplan_npu_driver, load_in_place) + sizeof(qplan_npu_driver::load_in_place);
  const bool has_in_place = driver.struct_size >= kBytes && driver.load_in_place != nullptr;
  return has_in_place ? driver.load_in_place : driver.load;
}

}  // namespace

void load_region(Session* session, NpuRegion* region) {
  NpuDevice* device = region->device;
  if (!device->takes_jobs()) {
    region->status = QPLAN_DRIVER_MISSING;
    put_text(device->text, region->text);
    return;
  }
  const format::NpuStep& step = step_of(*session, *region);
  qplan_npu_reason why = {};
  const qplan_npu_status status =
      load_function(*device->driver)(device->device, step.format(), session->address(step.blob()),
                                     session->plan.tensor(step.blob()).size(), &region->program, &why);
  terminate_text(&why);
  if (status < 0) {
    region->program = 0;
    if (QPLAN_NPU_CLASS(status) >= QPLAN_NPU_CLASS_GONE) device->state = QPLAN_DEVICE_ABSENT;
    device->last_status = status;
    put_text(text_or_status(why.text, status), device->text);
    return refuse(region, status, why.text);
  }
  Error text;
  if (!check_binds(*session, step, region, &text)) {
    unload_region(region);
    return refuse(region, QPLAN_NPU_E_VERSION, text.text());
  }
  qplan_npu_program_info info = {};
  info.struct_size = sizeof(info);
  (void)device->driver->program_info(device->device, region->program, &info);
  region->program_bytes = info.memory_bytes;
  region->estimated_cycles =
      info.estimated_cycles > step.estimated_cycles() ? info.estimated_cycles : step.estimated_cycles();
  region->status = QPLAN_OK;
  region->text[0] = '\0';
}

void unload_region(NpuRegion* region) {
  if (region->program == 0) return;
  (void)region->device->driver->unload(region->device->device, region->program);
  region->program = 0;
  region->program_bytes = 0;
}

}  // namespace qplan
