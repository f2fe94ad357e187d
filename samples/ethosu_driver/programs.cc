// Programs: a blob is validated once, as a whole, and used where it is when its bytes stay and the device
// reaches them; else it is copied.
#include "shim.h"

namespace qplan::ethosu::shim {
namespace {

bool is_kind(const BlobRegion& region, RegionKind kind) { return region.kind == static_cast<uint32_t>(kind); }

// Parts of a blob begin at multiples of kAddressAlignment from its start.
bool is_usable_in_place(const Device& device, const void* blob) {
  const uint64_t address = device_address(device, blob);
  return address != 0 && address % kAddressAlignment == 0 &&
         reinterpret_cast<uintptr_t>(blob) % kAddressAlignment == 0;
}

void free_program(Device* device, Program* program) {
  for (uint8_t* const arena : program->arena) give_back(device, arena);
  give_back(device, program->copy);
  give_back(device, program);
}

// Memory that the program needs beside the blob.
bool allocate_arenas(Device* device, Program* program) {
  for (uint32_t r = 0; r < program->blob.header.num_regions; ++r) {
    const BlobRegion region = blob_region(program->blob, r);
    if (!is_kind(region, RegionKind::kArena)) continue;
    const uint64_t bytes = region.bytes == 0 ? 1 : region.bytes;
    void* memory = allocate(device, bytes, region.memory_class);
    if (memory == nullptr && region.memory_class != QPLAN_NPU_MEMORY_CLASS_ANY)
      memory = allocate(device, bytes);  // slower, with the same results
    program->arena[r] = static_cast<uint8_t*>(memory);
    if (program->arena[r] == nullptr) return false;
    program->memory_bytes += region.bytes;
  }
  return true;
}

// Constants that should be in DRAM, or in SRAM, and are in flash: a copy there, or null.
uint8_t* copy_to_class(Device* device, const Blob& blob, uint64_t size) {
  const uint32_t asked = constants_memory_class(blob), found = memory_class_of(*device, blob.bytes);
  const bool may_be_anywhere = asked == QPLAN_NPU_MEMORY_CLASS_ANY || asked == QPLAN_NPU_MEMORY_CLASS_FLASH;
  if (may_be_anywhere || found == QPLAN_NPU_MEMORY_CLASS_ANY || found == asked ||
      device->hooks.alloc_class == nullptr)
    return nullptr;
  auto* const copy = static_cast<uint8_t*>(allocate(device, size, asked));
  if (copy != nullptr) memcpy(copy, blob.bytes, static_cast<size_t>(size));
  return copy;
}

qplan_npu_status no_memory(qplan_npu_reason* why, uint64_t bytes) {
  return refuse(why, QPLAN_NPU_E_MEMORY, 0, static_cast<int64_t>(bytes),
                "ethos-u: the platform's alloc has no memory left for the program");
}

qplan_npu_status make_program(Device* device, const void* bytes, uint64_t size, bool in_place,
                              Program** result, qplan_npu_reason* why) {
  Blob blob;
  uint8_t* copy = nullptr;
  if (!in_place || !is_usable_in_place(*device, bytes)) {
    // Validated after the copy: until load returns the caller's bytes are the caller's.
    copy = static_cast<uint8_t*>(allocate(device, size == 0 ? 1 : size));
    if (copy == nullptr) return no_memory(why, size);
    if (size > 0) memcpy(copy, bytes, static_cast<size_t>(size));
    bytes = copy;
  }
  qplan_npu_status status = read_blob(bytes, size, *device->config, &blob, why);
  if (status == QPLAN_NPU_OK && copy == nullptr) {
    copy = copy_to_class(device, blob, size);
    if (copy != nullptr) status = read_blob(bytes = copy, size, *device->config, &blob, why);
  }
  if (status != QPLAN_NPU_OK) {
    give_back(device, copy);
    return status;
  }
  const uint64_t own = sizeof(Program) + uint64_t{blob.header.num_slots} * sizeof(Bound);
  auto* const program = static_cast<Program*>(allocate(device, own));
  if (program == nullptr) {
    give_back(device, copy);
    return no_memory(why, own);
  }
  *program = {};
  program->blob = blob;
  program->copy = copy;
  program->memory_bytes = own + (copy == nullptr ? 0 : size);
  program->bound = reinterpret_cast<Bound*>(program + 1);
  memset(static_cast<void*>(program->bound), 0, blob.header.num_slots * sizeof(Bound));
  if (!allocate_arenas(device, program)) {
    free_program(device, program);
    return no_memory(why, size);
  }
  // The CPU may have written the plan, or the copy.
  clean(*device, bytes, size);
  *result = program;
  return QPLAN_NPU_OK;
}

qplan_npu_status load_blob(qplan_npu_device handle, uint32_t format, const void* blob, uint64_t bytes,
                           bool in_place, qplan_npu_program* result, qplan_npu_reason* why) {
  const Locked device(handle);
  if (!device || result == nullptr || (blob == nullptr && bytes > 0)) return QPLAN_NPU_E_ARGUMENT;
  if (format != kBlobMagic)
    return refuse(why, QPLAN_NPU_E_UNSUPPORTED, kBlobMagic, format, "ethos-u: the format is not 'ETU1'");
  Program* program = nullptr;
  const qplan_npu_status status = make_program(&*device, blob, bytes, in_place, &program, why);
  if (status != QPLAN_NPU_OK) return status;
  program->handle = *result = device->next_handle++;
  program->next = device->programs;
  device->programs = program;
  return QPLAN_NPU_OK;
}

}  // namespace

Program* find_program(Device* device, qplan_npu_program handle) {
  Program* program = device->programs;
  while (program != nullptr && program->handle != handle) program = program->next;
  return program;
}

void free_programs(Device* device) {
  while (device->programs != nullptr) {
    Program* const program = device->programs;
    device->programs = program->next;
    free_program(device, program);
  }
}

qplan_npu_status load(qplan_npu_device device, uint32_t format, const void* blob, uint64_t bytes,
                      qplan_npu_program* program, qplan_npu_reason* why) {
  return load_blob(device, format, blob, bytes, false, program, why);
}

qplan_npu_status load_in_place(qplan_npu_device device, uint32_t format, const void* blob, uint64_t bytes,
                               qplan_npu_program* program, qplan_npu_reason* why) {
  return load_blob(device, format, blob, bytes, true, program, why);
}

qplan_npu_status program_info(qplan_npu_device handle, qplan_npu_program which, qplan_npu_program_info* to) {
  const Locked device(handle);
  const Program* const program = device ? find_program(&*device, which) : nullptr;
  if (program == nullptr || !can_fill(to)) return QPLAN_NPU_E_ARGUMENT;
  qplan_npu_program_info all = {};
  all.num_regions = program->blob.header.num_slots;
  all.memory_bytes = program->memory_bytes;
  all.estimated_cycles = program->blob.header.estimated_cycles;
  all.instructions = program->blob.payload.stream_words;
  all.capabilities_hash = program->blob.header.config_hash;
  all.memory_class = constants_memory_class(program->blob);
  copy_out(all, to);
  return QPLAN_NPU_OK;
}

qplan_npu_status region_info(qplan_npu_device handle, qplan_npu_program which, uint32_t index,
                             qplan_npu_region_info* to) {
  const Locked device(handle);
  const Program* const program = device ? find_program(&*device, which) : nullptr;
  if (program == nullptr || index >= program->blob.header.num_slots || !can_fill(to))
    return QPLAN_NPU_E_ARGUMENT;
  const BlobSlot slot = blob_slot(program->blob, index);
  qplan_npu_region_info all = {};
  all.usage = slot.usage;
  all.is_bound = 1;
  all.alignment = kAddressAlignment;
  all.bytes = slot.bytes;
  all.memory_class = slot_memory_class(program->blob, index);
  copy_out(all, to);
  return QPLAN_NPU_OK;
}

qplan_npu_status unload(qplan_npu_device handle, qplan_npu_program which) {
  const Locked device(handle);
  if (!device) return QPLAN_NPU_E_ARGUMENT;
  Program** at = &device->programs;
  while (*at != nullptr && (*at)->handle != which) at = &(*at)->next;
  Program* const program = *at;
  if (program == nullptr) return QPLAN_NPU_E_ARGUMENT;
  if (device->job.reserved != nullptr && device->job.program == program) return QPLAN_NPU_E_BUSY;
  *at = program->next;
  free_program(&*device, program);
  return QPLAN_NPU_OK;
}

}  // namespace qplan::ethosu::shim
