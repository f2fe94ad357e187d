// One job at a time: base addresses and a payload for Arm's driver, and how they end.
#include <ethosu_driver.h>

#include "shim.h"

namespace qplan::ethosu::shim {
namespace {

RegionKind kind_of(const BlobRegion& region) { return static_cast<RegionKind>(region.kind); }

// ---- binds ----

struct Range {
  const uint8_t* begin;
  uint64_t bytes;
  bool is_written;
};
bool meet(const Range& a, const Range& b) {
  return a.bytes > 0 && b.bytes > 0 && a.begin < b.begin + b.bytes && b.begin < a.begin + a.bytes;
}

Range range_of(const Program& program, uint32_t s) {
  const BlobSlot slot = blob_slot(program.blob, s);
  return {program.bound[s].memory, slot.bytes, slot.usage != QPLAN_NPU_USE_INPUT};
}

// "" or what is wrong.
const char* bind_slots(Device* device, const qplan_npu_submit& submit, Program* program) {
  const uint32_t num_slots = program->blob.header.num_slots;
  for (uint32_t s = 0; s < num_slots; ++s) program->bound[s] = {};
  if (submit.num_binds != num_slots) return "ethos-u: submit binds another number of slots";
  for (uint32_t b = 0; b < submit.num_binds; ++b) {
    const qplan_npu_bind& bind = submit.binds[b];
    Buffer* const buffer = find_buffer(device, bind.buffer);
    if (buffer == nullptr) return "ethos-u: submit binds an unknown buffer";
    if (bind.slot >= num_slots) return "ethos-u: submit binds an unknown slot";
    if (program->bound[bind.slot].buffer != nullptr) return "ethos-u: submit binds a slot twice";
    if (bind.flags != 0) return "ethos-u: submit has unknown flags of a bind";
    if (bind.offset > buffer->layout.bytes || bind.bytes > buffer->layout.bytes - bind.offset)
      return "ethos-u: submit binds bytes beyond the buffer";
    if (bind.bytes < blob_slot(program->blob, bind.slot).bytes)
      return "ethos-u: submit binds less than the slot needs";
    if ((buffer->layout.device_address + bind.offset) % kAddressAlignment != 0)
      return "ethos-u: submit binds an address that is not a multiple of 16";
    program->bound[bind.slot] = {buffer, buffer->memory + bind.offset};
  }
  for (uint32_t a = 0; a < num_slots; ++a) {
    for (uint32_t b = 0; b < a; ++b) {
      const Range one = range_of(*program, a), other = range_of(*program, b);
      if ((one.is_written || other.is_written) && meet(one, other))
        return "ethos-u: submit binds what is written over something else";
    }
  }
  return "";
}

// ---- memory of the job ----

// What region r is, as the CPU sees it.
uint8_t* region_memory(const Program& program, uint32_t r) {
  const Blob& blob = program.blob;
  const BlobRegion region = blob_region(blob, r);
  switch (kind_of(region)) {
    case RegionKind::kConstants:  // which the device reads only
      return const_cast<uint8_t*>(blob.bytes) + region.data_offset;
    case RegionKind::kArena:
      return program.arena[r];
    case RegionKind::kBound:
      break;
  }
  uint32_t s = 0;
  while (blob_slot(blob, s).region != r) ++s;  // read_blob has found that there is one
  return program.bound[s].memory;
}

// Inputs and outputs that are parts of a region are copied between it and their buffers.
void copy_parts(const Device& device, const Program& program, uint32_t usage) {
  for (uint32_t s = 0; s < program.blob.header.num_slots; ++s) {
    const BlobSlot slot = blob_slot(program.blob, s);
    if (slot.usage != usage || !is_copied_slot(program.blob, s)) continue;
    uint8_t* const part = region_memory(program, slot.region) + slot.offset;
    uint8_t* const whole = program.bound[s].memory;
    if (usage == QPLAN_NPU_USE_INPUT) {
      memcpy(part, whole, static_cast<size_t>(slot.bytes));
      clean(device, part, slot.bytes);
    } else {
      invalidate(device, part, slot.bytes);
      memcpy(whole, part, static_cast<size_t>(slot.bytes));
      clean(device, whole, slot.bytes);  // whoever reads it invalidates it first, as after any job
    }
  }
}

// Whether nothing but the device uses the region, if it has any bytes.
bool is_scratch_alone(const Blob& blob, uint32_t r) {
  if (blob_region(blob, r).bytes == 0) return true;
  if (kind_of(blob_region(blob, r)) == RegionKind::kConstants) return false;
  for (uint32_t s = 0; s < blob.header.num_slots; ++s) {
    const BlobSlot slot = blob_slot(blob, s);
    if (slot.region == r && slot.usage != QPLAN_NPU_USE_SCRATCH) return false;
  }
  return true;
}

// ---- start and end ----

qplan_npu_status start(Device* device, Program* program, qplan_npu_reason* why) {
  const Blob& blob = program->blob;
  Job& job = device->job;
  for (uint32_t r = 0; r < kMaxRegions; ++r) job.address[r] = 0, job.bytes[r] = 0;
  for (uint32_t r = 0; r < blob.header.num_regions; ++r) {
    // Arm's driver gets addresses of the CPU; its ethosu_address_remap makes them the device's.
    const uint8_t* const memory = region_memory(*program, r);
    const uint64_t seen = device_address(*device, memory);
    job.address[r] = reinterpret_cast<uintptr_t>(memory);
    job.bytes[r] = static_cast<size_t>(blob_region(blob, r).bytes);
    if (seen == 0 || seen % kAddressAlignment != 0 || job.address[r] % kAddressAlignment != 0)
      return refuse(why, QPLAN_NPU_E_UNSUPPORTED, kAddressAlignment, static_cast<int64_t>(seen),
                    "ethos-u: the device cannot use the address of a region");
  }
  copy_parts(*device, *program, QPLAN_NPU_USE_INPUT);
  ethosu_driver* const driver = reserve();
  if (driver == nullptr)
    return refuse(why, QPLAN_NPU_E_BUSY, 0, 0, "ethos-u: all devices of Arm's driver are in use");
  const uint64_t fast = job.address[kFastMemoryRegion];
  if (ethosu_invoke_async(driver, blob.bytes + blob.header.payload_offset,
                          static_cast<int>(blob.header.payload_bytes), job.address, job.bytes,
                          static_cast<int>(blob.header.num_regions), nullptr) < 0) {
    release(driver);
    return refuse(why, QPLAN_NPU_E_ILLEGAL, 0, 0,
                  "ethos-u: Arm's driver refused the payload; its log says why");
  }
  if (blob.header.num_regions > kFastMemoryRegion && job.address[kFastMemoryRegion] != fast &&
      !is_scratch_alone(blob, kFastMemoryRegion)) {
    release(driver);  // which stops the job
    return refuse(why, QPLAN_NPU_E_UNSUPPORTED, 0, 0,
                  "ethos-u: Arm's driver puts its fast memory in the place of region 2, which the program "
                  "needs; call ethosu_init without fast memory");
  }
  job.reserved = driver;
  return QPLAN_NPU_OK;
}

void end_job(Device* device, qplan_npu_status status, const char* text) {
  Job& job = device->job;
  release(job.reserved);
  job.reserved = nullptr;
  job.status = status;
  job.text = text;
  for (uint32_t s = 0; s < job.program->blob.header.num_slots; ++s)
    job.program->bound[s].buffer->is_in_use = false;
  ++device->jobs;
  if (status != QPLAN_NPU_OK) ++device->failed_jobs;
  if (job.done != nullptr) job.done(job.user, job.handle, status);
}

// Without a clock there is no mutex either, and nobody can stop the wait: Arm's driver sleeps until the end.
void poll(Device* device, bool blocks) {
  switch (ethosu_wait(device->job.reserved, blocks)) {
    case 1:
      return;
    case 0:
      copy_parts(*device, *device->job.program, QPLAN_NPU_USE_OUTPUT);
      return end_job(device, QPLAN_NPU_OK, "");
    case -2:
      return end_job(device, QPLAN_NPU_E_RESET, "ethos-u: somebody else ended the job");
    default:
      return end_job(device, QPLAN_NPU_E_BUS,
                     "ethos-u: the device ended the job with an error; the log of Arm's driver says which");
  }
}

}  // namespace

void stop_job(Device* device, qplan_npu_status status, const char* text) {
  if (device->job.reserved != nullptr) end_job(device, status, text);
}

qplan_npu_status submit(qplan_npu_device handle, const qplan_npu_submit* from, qplan_npu_job* result,
                        qplan_npu_reason* why) {
  qplan_npu_submit submit;
  const Locked device(handle);
  if (!device || !copy_in(from, &submit) || result == nullptr ||
      (submit.num_binds > 0 && submit.binds == nullptr) || (submit.num_after > 0 && submit.after == nullptr))
    return QPLAN_NPU_E_ARGUMENT;
  Program* const program = find_program(&*device, submit.program);
  if (program == nullptr)
    return refuse(why, QPLAN_NPU_E_ARGUMENT, 0, 0, "ethos-u: submit of an unknown program");
  for (uint32_t i = 0; i < submit.num_after; ++i) {
    if (submit.after[i] == 0 || submit.after[i] >= device->next_handle)
      return refuse(why, QPLAN_NPU_E_ARGUMENT, 0, 0, "ethos-u: a job to come after is unknown");
  }
  Job& job = device->job;
  if (job.handle != 0)
    return refuse(why, QPLAN_NPU_E_BUSY, 1, 1,
                  "ethos-u: the device has a job whose end wait has not reported");
  const char* const error = bind_slots(&*device, submit, program);
  if (error[0] != '\0') return refuse(why, QPLAN_NPU_E_ARGUMENT, 0, 0, error);
  const qplan_npu_status status = start(&*device, program, why);
  if (status != QPLAN_NPU_OK) return status;
  for (uint32_t s = 0; s < program->blob.header.num_slots; ++s) program->bound[s].buffer->is_in_use = true;
  job.program = program;
  job.done = submit.done;
  job.user = submit.user;
  job.submitted_ns = now_ns(*device);
  job.handle = *result = device->next_handle++;
  return QPLAN_NPU_OK;
}

qplan_npu_status wait(qplan_npu_device handle, qplan_npu_job which, uint64_t timeout_ns,
                      qplan_npu_report* report) {
  if (which == 0 || (report != nullptr && !can_fill(report))) return QPLAN_NPU_E_ARGUMENT;
  uint64_t begin = 0;
  for (bool is_first = true;; is_first = false) {
    const Locked device(handle);  // again each time: another thread may stop the job or close the device
    if (!device || device->job.handle != which) return QPLAN_NPU_E_ARGUMENT;
    Job& job = device->job;
    const bool has_clock = device->platform != nullptr;
    if (is_first) begin = now_ns(*device);
    if (job.reserved != nullptr) poll(&*device, timeout_ns > 0 && !has_clock);
    if (job.reserved == nullptr) {
      qplan_npu_report all = {};
      all.status = job.status;
      all.fault_instruction = QPLAN_NPU_NO_INSTRUCTION;
      all.run_ns = now_ns(*device) - job.submitted_ns;
      for (size_t i = 0; i + 1 < sizeof(all.text) && job.text[i] != '\0'; ++i) all.text[i] = job.text[i];
      if (report != nullptr) copy_out(all, report);
      job.handle = 0;
      return all.status;
    }
    if (timeout_ns == 0 || (has_clock && now_ns(*device) - begin >= timeout_ns)) return QPLAN_NPU_PENDING;
  }
}

// Arm's driver ends a job only together with the device's reset.
qplan_npu_status cancel(qplan_npu_device handle, qplan_npu_job which) {
  const Locked device(handle);
  return !device || which == 0 || device->job.handle != which ? QPLAN_NPU_E_ARGUMENT : QPLAN_NPU_OK;
}

qplan_npu_status reset(qplan_npu_device handle) {
  const Locked device(handle);
  if (!device) return QPLAN_NPU_E_ARGUMENT;
  ++device->resets;
  stop_job(&*device, QPLAN_NPU_E_RESET, "ethos-u: the device was reset");
  return QPLAN_NPU_OK;
}

}  // namespace qplan::ethosu::shim
