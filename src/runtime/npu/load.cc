#include "format/text.h"
#include "src/runtime/npu/client.h"

namespace qplan {
namespace {

// Enough for programs that have weights in many slots; a larger number from a driver is wrong.
constexpr uint32_t kMaxProgramRegions = 65536;
constexpr uint32_t kUses[] = {QPLAN_NPU_USE_INPUT, QPLAN_NPU_USE_OUTPUT, QPLAN_NPU_USE_SCRATCH};

void refuse(NpuRegion* region, qplan_npu_status status, const char* text) {
  region->status = status == QPLAN_NPU_E_VERSION || QPLAN_NPU_CLASS(status) == QPLAN_NPU_CLASS_GONE
                       ? QPLAN_DRIVER_MISSING
                       : QPLAN_DEVICE_ERROR;
  put_text(text_or_status(text, status), region->text);
}

const format::NpuBind* find_bind(const format::NpuStep& step, uint32_t slot) {
  for (uint32_t b = 0; b < step.binds()->size(); ++b) {
    if (step.binds()->Get(b)->slot() == slot) return step.binds()->Get(b);
  }
  return nullptr;
}

// Bytes from the bind's first to the last one that the tensor's elements have; open() proved that they fit.
uint64_t bytes_read(const format::NpuBind& bind, const format::Tensor& tensor) {
  const Arrangement a = arrangement_of(bind, tensor);
  uint64_t last = a.origin + (a.element_bytes - 1) * a.byte_stride;
  for (uint32_t axis = 0; axis < a.rank; ++axis) {
    last += static_cast<uint64_t>(a.extents[axis] - 1) * a.strides[axis];
  }
  return last + 1;
}

// What the program reads and writes is what the plan binds. False: *text says what is not.
bool check_slot(const Session& session, const NpuDevice& device, uint64_t bank_address,
                const format::NpuStep& step, uint32_t slot, const qplan_npu_region_info& info, Error* text) {
  const format::NpuBind* bind = find_bind(step, slot);
  *text << "slot " << slot << ": ";
  if (info.is_bound == 0) {
    *text << "the program carries it, the plan binds it";
    return bind == nullptr;
  }
  if (bind == nullptr) {
    *text << "the program needs it, the plan does not bind it";
    return false;
  }
  if (info.bytes > bind->size()) {
    *text << "the program needs " << info.bytes << " bytes, the plan binds " << bind->size();
    return false;
  }
  if ((info.usage & kUses[bind->use()]) == 0) {
    *text << "the program uses it in another way (" << info.usage << ") than the plan binds it";
    return false;
  }
  // After a failure the CPU begins with the same inputs, which other steps may read too.
  constexpr uint32_t kWrites = QPLAN_NPU_USE_OUTPUT | QPLAN_NPU_USE_SCRATCH;
  if (bind->use() == format::NpuUse_INPUT && (info.usage & kWrites) != 0) {
    *text << "the program writes it, the plan binds an input";
    return false;
  }
  if (bind->use() == format::NpuUse_OUTPUT) {
    const uint64_t bytes = bytes_read(*bind, session.plan.tensor(step.outputs()->Get(bind->index())));
    if (info.bytes < bytes) {
      *text << "the program writes " << info.bytes << " bytes, the plan reads " << bytes << " of them";
      return false;
    }
  }
  if (info.alignment > 1 && (bank_address + bind->offset()) % info.alignment != 0) {
    *text << "its address is no multiple of " << info.alignment << ", which driver "
          << format::Quoted{device.driver->name} << " wants";
    return false;
  }
  return true;
}

bool check_slots(const Session& session, const format::NpuStep& step, NpuRegion* region, Error* text) {
  const NpuDevice& device = *region->device;
  const qplan_npu_driver& driver = *device.driver;
  qplan_npu_program_info program = {};
  program.struct_size = sizeof(program);
  qplan_npu_layout layout = {};
  layout.struct_size = sizeof(layout);
  qplan_npu_status status = driver.program_info(device.device, region->program, &program);
  if (status >= 0) status = driver.layout(device.device, device.buffer, &layout);
  if (status >= 0 && program.num_regions > kMaxProgramRegions) {
    text->set(QPLAN_OK);
    *text << "the program has " << program.num_regions << " regions, expected at most " << kMaxProgramRegions;
    return false;
  }
  region->alignment = 1;
  for (uint32_t slot = 0; status >= 0 && slot < program.num_regions; ++slot) {
    qplan_npu_region_info info = {};
    info.struct_size = sizeof(info);
    status = driver.region_info(device.device, region->program, slot, &info);
    text->set(QPLAN_OK);
    if (status >= 0 && !check_slot(session, device, layout.device_address, step, slot, info, text))
      return false;
    if (info.is_bound != 0 && info.alignment > region->alignment) region->alignment = info.alignment;
  }
  text->set(QPLAN_OK);
  if (status < 0) {
    *text << "the driver states nothing about its program: " << npu_status_text(status);
    return false;
  }
  for (uint32_t b = 0; b < step.binds()->size(); ++b) {
    if (step.binds()->Get(b)->slot() < program.num_regions) continue;
    *text << "slot " << step.binds()->Get(b)->slot() << ": the program has " << program.num_regions;
    return false;
  }
  if (device.max_binds != 0 && step.binds()->size() > device.max_binds) {
    *text << step.binds()->size() << " binds, the device takes " << device.max_binds;
    return false;
  }
  return true;
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
      device->driver->load(device->device, step.format(), session->address(step.blob()),
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
  if (!check_slots(*session, step, region, &text)) {
    unload_region(region);
    return refuse(region, QPLAN_NPU_E_VERSION, text.text());
  }
  qplan_npu_program_info info = {};
  info.struct_size = sizeof(info);
  (void)device->driver->program_info(device->device, region->program, &info);
  region->program_bytes = info.memory_bytes;
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
