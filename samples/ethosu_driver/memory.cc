// Buffers: memory of the hooks or of the caller, at addresses that Arm's driver takes.
#include "shim.h"

namespace qplan::ethosu::shim {
namespace {

constexpr uint64_t kMaxBytes = uint64_t{1} << 31;

// Fills in the layout of a packed, row-major tensor. Returns false if there is no such tensor.
bool lay_out(const DLTensor& tensor, qplan_npu_layout* layout) {
  const uint64_t bits = uint64_t{tensor.dtype.bits} * tensor.dtype.lanes;
  if (tensor.ndim < 0 || tensor.ndim > QPLAN_NPU_MAX_DIMS || (tensor.ndim > 0 && tensor.shape == nullptr) ||
      bits % 8 != 0)
    return false;
  uint64_t elements = 1;
  for (int32_t axis = tensor.ndim - 1; axis >= 0; --axis) {
    layout->strides[axis] = static_cast<int64_t>(elements);
    const int64_t extent = tensor.shape[axis];
    if (extent < 0 || (extent > 0 && elements > kMaxBytes / static_cast<uint64_t>(extent))) return false;
    elements *= static_cast<uint64_t>(extent);
  }
  layout->num_strides = static_cast<uint32_t>(tensor.ndim);
  layout->bytes = elements * (bits / 8);
  return true;
}

// What the device wants of a buffer.
qplan_npu_status lay_out(const Device& device, const qplan_npu_buffer_request* from, qplan_npu_layout* all) {
  qplan_npu_buffer_request request;
  if (!copy_in(from, &request)) return QPLAN_NPU_E_ARGUMENT;
  *all = {};
  all->memory_kind = is_cached(device) ? QPLAN_NPU_MEMORY_CACHED : QPLAN_NPU_MEMORY_COHERENT;
  if (request.memory_kind != 0 && request.memory_kind != all->memory_kind) return QPLAN_NPU_E_UNSUPPORTED;
  if ((request.alignment & (request.alignment - 1)) != 0) return QPLAN_NPU_E_ARGUMENT;
  if (request.alignment > kMemoryAlignment) return QPLAN_NPU_E_UNSUPPORTED;
  if (request.memory_class >= QPLAN_NPU_NUM_MEMORY_CLASSES) return QPLAN_NPU_E_ARGUMENT;
  // Where the platform does not tell classes apart, all memory will do.
  if (memory_classes(device) != 0) {
    all->memory_class = request.memory_class;
    if (request.memory_class == QPLAN_NPU_MEMORY_CLASS_FLASH) return QPLAN_NPU_E_UNSUPPORTED;
  }
  all->alignment = most(request.alignment, kAddressAlignment);
  if (request.tensor != nullptr && !lay_out(*request.tensor, all)) return QPLAN_NPU_E_ARGUMENT;
  if (all->bytes < request.min_bytes) all->bytes = request.min_bytes;
  if (all->bytes == 0) all->bytes = 1;
  return all->bytes > kMaxBytes ? QPLAN_NPU_E_UNSUPPORTED : QPLAN_NPU_OK;
}

qplan_npu_status make_buffer(Device* device, const qplan_npu_buffer_request* request, uint8_t* imported,
                             qplan_npu_buffer* result) {
  qplan_npu_layout layout;
  const qplan_npu_status status = lay_out(*device, request, &layout);
  if (status != QPLAN_NPU_OK) return status;
  if (reinterpret_cast<uintptr_t>(imported) % layout.alignment != 0) return QPLAN_NPU_E_ARGUMENT;
  if (imported != nullptr && device_address(*device, imported) == 0) return QPLAN_NPU_E_UNSUPPORTED;
  const uint32_t asked = layout.memory_class;
  auto* const buffer = static_cast<Buffer*>(allocate(device, sizeof(Buffer)));
  if (buffer == nullptr) return QPLAN_NPU_E_MEMORY;
  *buffer = {};
  buffer->is_imported = imported != nullptr;
  buffer->memory = imported;
  if (imported == nullptr) buffer->memory = static_cast<uint8_t*>(allocate(device, layout.bytes, asked));
  if (buffer->memory == nullptr) {
    give_back(device, buffer);
    return asked == QPLAN_NPU_MEMORY_CLASS_SRAM ? QPLAN_NPU_E_ONCHIP : QPLAN_NPU_E_MEMORY;
  }
  if (const uint32_t found = memory_class_of(*device, buffer->memory); found != QPLAN_NPU_MEMORY_CLASS_ANY) {
    if (imported != nullptr && asked != QPLAN_NPU_MEMORY_CLASS_ANY && found != asked) {
      give_back(device, buffer);
      return QPLAN_NPU_E_UNSUPPORTED;
    }
    layout.memory_class = found;
  }
  buffer->layout = layout;
  buffer->layout.device_address = device_address(*device, buffer->memory);
  device->buffer_bytes += layout.bytes;
  buffer->handle = *result = device->next_handle++;
  buffer->next = device->buffers;
  device->buffers = buffer;
  return QPLAN_NPU_OK;
}

void free_buffer(Device* device, Buffer* buffer) {
  device->buffer_bytes -= buffer->layout.bytes;
  if (!buffer->is_imported) give_back(device, buffer->memory);
  give_back(device, buffer);
}

bool is_access(uint32_t access) { return access != 0 && access <= (QPLAN_NPU_READ | QPLAN_NPU_WRITE); }

bool is_range(const Buffer* buffer, uint64_t offset, uint64_t bytes) {
  return buffer != nullptr && offset <= buffer->layout.bytes && bytes <= buffer->layout.bytes - offset;
}

}  // namespace

Buffer* find_buffer(Device* device, qplan_npu_buffer handle) {
  Buffer* buffer = device->buffers;
  while (buffer != nullptr && buffer->handle != handle) buffer = buffer->next;
  return buffer;
}

void free_buffers(Device* device) {
  while (device->buffers != nullptr) {
    Buffer* const buffer = device->buffers;
    device->buffers = buffer->next;
    free_buffer(device, buffer);
  }
}

qplan_npu_status requirements(qplan_npu_device handle, const qplan_npu_buffer_request* request,
                              qplan_npu_layout* to) {
  const Locked device(handle);
  qplan_npu_layout all;
  if (!device || !can_fill(to)) return QPLAN_NPU_E_ARGUMENT;
  const qplan_npu_status status = lay_out(*device, request, &all);
  if (status == QPLAN_NPU_OK) copy_out(all, to);
  return status;
}

qplan_npu_status alloc_buffer(qplan_npu_device handle, const qplan_npu_buffer_request* request,
                              qplan_npu_buffer* buffer) {
  const Locked device(handle);
  if (!device || buffer == nullptr) return QPLAN_NPU_E_ARGUMENT;
  return make_buffer(&*device, request, nullptr, buffer);
}

qplan_npu_status import_memory(qplan_npu_device handle, const qplan_npu_buffer_request* request,
                               uint32_t kind, uint64_t value, uint64_t offset, qplan_npu_buffer* buffer) {
  const Locked device(handle);
  if (!device || buffer == nullptr) return QPLAN_NPU_E_ARGUMENT;
  if (kind != QPLAN_NPU_IMPORT_POINTER) return QPLAN_NPU_E_UNSUPPORTED;
  const uint64_t at = value + offset;
  if (value == 0 || at < value || at > UINTPTR_MAX) return QPLAN_NPU_E_ARGUMENT;
  return make_buffer(&*device, request, reinterpret_cast<uint8_t*>(static_cast<uintptr_t>(at)), buffer);
}

qplan_npu_status release_buffer(qplan_npu_device handle, qplan_npu_buffer which) {
  const Locked device(handle);
  if (!device) return QPLAN_NPU_E_ARGUMENT;
  Buffer** at = &device->buffers;
  while (*at != nullptr && (*at)->handle != which) at = &(*at)->next;
  Buffer* const buffer = *at;
  if (buffer == nullptr) return QPLAN_NPU_E_ARGUMENT;
  if (buffer->is_in_use) return QPLAN_NPU_E_BUSY;
  *at = buffer->next;
  free_buffer(&*device, buffer);
  return QPLAN_NPU_OK;
}

qplan_npu_status layout(qplan_npu_device handle, qplan_npu_buffer which, qplan_npu_layout* to) {
  const Locked device(handle);
  const Buffer* const buffer = device ? find_buffer(&*device, which) : nullptr;
  if (buffer == nullptr || !can_fill(to)) return QPLAN_NPU_E_ARGUMENT;
  copy_out(buffer->layout, to);
  return QPLAN_NPU_OK;
}

qplan_npu_status map(qplan_npu_device handle, qplan_npu_buffer which, uint32_t access, void** memory) {
  const Locked device(handle);
  const Buffer* const buffer = device ? find_buffer(&*device, which) : nullptr;
  if (buffer == nullptr || memory == nullptr || !is_access(access)) return QPLAN_NPU_E_ARGUMENT;
  if ((access & QPLAN_NPU_READ) != 0) invalidate(*device, buffer->memory, buffer->layout.bytes);
  *memory = buffer->memory;
  return QPLAN_NPU_OK;
}

qplan_npu_status unmap(qplan_npu_device handle, qplan_npu_buffer which, uint32_t access) {
  const Locked device(handle);
  const Buffer* const buffer = device ? find_buffer(&*device, which) : nullptr;
  if (buffer == nullptr || !is_access(access)) return QPLAN_NPU_E_ARGUMENT;
  if ((access & QPLAN_NPU_WRITE) != 0) clean(*device, buffer->memory, buffer->layout.bytes);
  return QPLAN_NPU_OK;
}

qplan_npu_status flush(qplan_npu_device handle, qplan_npu_buffer which, uint64_t offset, uint64_t bytes) {
  const Locked device(handle);
  const Buffer* const buffer = device ? find_buffer(&*device, which) : nullptr;
  if (!is_range(buffer, offset, bytes)) return QPLAN_NPU_E_ARGUMENT;
  clean(*device, buffer->memory + offset, bytes);
  return QPLAN_NPU_OK;
}

qplan_npu_status invalidate_buffer(qplan_npu_device handle, qplan_npu_buffer which, uint64_t offset,
                                   uint64_t bytes) {
  const Locked device(handle);
  const Buffer* const buffer = device ? find_buffer(&*device, which) : nullptr;
  if (!is_range(buffer, offset, bytes)) return QPLAN_NPU_E_ARGUMENT;
  invalidate(*device, buffer->memory + offset, bytes);
  return QPLAN_NPU_OK;
}

}  // namespace qplan::ethosu::shim
