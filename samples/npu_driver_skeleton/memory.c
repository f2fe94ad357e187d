/* Buffers. CPU and device are the same here, so that nothing needs to be flushed; a driver whose device has
 * its own view of memory calls hooks.cache_clean and cache_invalidate in unmap, map, flush and invalidate. */
#include <stdlib.h>

#include "skeleton.h"

struct buffer* find_buffer(struct device* device, uint64_t handle) {
  struct buffer* buffer = device->buffers;
  while (buffer != NULL && buffer->handle != handle) buffer = buffer->next;
  return buffer;
}

void free_buffer(struct device* device, struct buffer* buffer) {
  if (!buffer->is_imported) device_free(device, buffer->memory);
  free(buffer);
}

/* Packed, row-major: strides and bytes of a tensor. 0: there is no such tensor. */
static int lay_out(const DLTensor* tensor, qplan_npu_layout* layout) {
  const uint64_t bits = (uint64_t)tensor->dtype.bits * tensor->dtype.lanes;
  uint64_t elements = 1;
  int32_t axis;
  if (tensor->ndim < 0 || tensor->ndim > QPLAN_NPU_MAX_DIMS || (tensor->ndim > 0 && tensor->shape == NULL) ||
      bits % 8 != 0) {
    return 0;
  }
  for (axis = tensor->ndim - 1; axis >= 0; --axis) {
    layout->strides[axis] = (int64_t)elements;
    if (tensor->shape[axis] < 0 ||
        (tensor->shape[axis] > 0 && elements > SKELETON_MAX_BUFFER / (uint64_t)tensor->shape[axis]))
      return 0;
    elements *= (uint64_t)tensor->shape[axis];
  }
  layout->num_strides = (uint32_t)tensor->ndim;
  layout->bytes = elements * (bits / 8);
  return 1;
}

/* The classes that the platform tells apart. */
uint32_t memory_classes(const struct device* device) {
  return device->hooks.alloc_class == NULL
             ? 0
             : 1u << QPLAN_NPU_MEMORY_CLASS_SRAM | 1u << QPLAN_NPU_MEMORY_CLASS_DRAM;
}

static uint32_t class_of(const struct device* device, const void* memory) {
  return device->hooks.memory_class == NULL ? QPLAN_NPU_MEMORY_CLASS_ANY
                                            : device->hooks.memory_class(device->hooks.user, memory);
}

static qplan_npu_status requirements(const struct device* device, const qplan_npu_buffer_request* from,
                                     qplan_npu_buffer_request* request, qplan_npu_layout* all) {
  if (!copy_in(request, sizeof(*request), from)) return QPLAN_NPU_E_ARGUMENT;
  memset(all, 0, sizeof(*all));
  all->memory_kind = QPLAN_NPU_MEMORY_COHERENT;
  if (request->memory_kind != 0 && request->memory_kind != QPLAN_NPU_MEMORY_COHERENT)
    return QPLAN_NPU_E_UNSUPPORTED;
  if (request->memory_class >= QPLAN_NPU_NUM_MEMORY_CLASSES) return QPLAN_NPU_E_ARGUMENT;
  if (memory_classes(device) == 0) request->memory_class = QPLAN_NPU_MEMORY_CLASS_ANY;
  if (request->memory_class == QPLAN_NPU_MEMORY_CLASS_FLASH) return QPLAN_NPU_E_UNSUPPORTED;
  all->memory_class = request->memory_class;
  all->alignment = request->alignment > SKELETON_ALIGNMENT ? request->alignment : SKELETON_ALIGNMENT;
  if ((request->alignment & (request->alignment - 1)) != 0) return QPLAN_NPU_E_ARGUMENT;
  if (all->alignment > SKELETON_ALIGNMENT) return QPLAN_NPU_E_UNSUPPORTED;
  if (request->tensor != NULL && !lay_out(request->tensor, all)) return QPLAN_NPU_E_ARGUMENT;
  if (all->bytes < request->min_bytes) all->bytes = request->min_bytes;
  if (all->bytes == 0) all->bytes = 1;
  return all->bytes > SKELETON_MAX_BUFFER ? QPLAN_NPU_E_UNSUPPORTED : QPLAN_NPU_OK;
}

qplan_npu_status skeleton_requirements(qplan_npu_device handle, const qplan_npu_buffer_request* from,
                                       qplan_npu_layout* layout) {
  qplan_npu_buffer_request request;
  qplan_npu_layout all;
  struct device* device;
  qplan_npu_status status;
  if (!can_fill(layout)) return QPLAN_NPU_E_ARGUMENT;
  lock();
  device = find_device(handle);
  status = device == NULL ? QPLAN_NPU_E_ARGUMENT : requirements(device, from, &request, &all);
  unlock();
  if (status == QPLAN_NPU_OK) copy_out(layout, &all, sizeof(all));
  return status;
}

/* imported: memory of the caller, or NULL. */
static qplan_npu_status make_buffer(qplan_npu_device handle, const qplan_npu_buffer_request* from,
                                    uint8_t* imported, qplan_npu_buffer* result) {
  qplan_npu_buffer_request request;
  struct device* device;
  struct buffer* buffer;
  qplan_npu_status status;
  if (result == NULL) return QPLAN_NPU_E_ARGUMENT;
  buffer = (struct buffer*)calloc(1, sizeof(*buffer));
  if (buffer == NULL) return QPLAN_NPU_E_MEMORY;
  lock();
  device = find_device(handle);
  status = device == NULL ? QPLAN_NPU_E_ARGUMENT : requirements(device, from, &request, &buffer->layout);
  if (status == QPLAN_NPU_OK) {
    const uint32_t asked = request.memory_class;
    buffer->is_imported = imported != NULL;
    buffer->memory =
        imported != NULL ? imported : (uint8_t*)device_alloc(device, buffer->layout.bytes, asked);
    if (buffer->memory == NULL) {
      status = asked == QPLAN_NPU_MEMORY_CLASS_SRAM ? QPLAN_NPU_E_ONCHIP : QPLAN_NPU_E_MEMORY;
    } else {
      const uint32_t found = class_of(device, buffer->memory);
      if (imported != NULL && asked != QPLAN_NPU_MEMORY_CLASS_ANY && found != QPLAN_NPU_MEMORY_CLASS_ANY &&
          found != asked)
        status = QPLAN_NPU_E_UNSUPPORTED;
      if (found != QPLAN_NPU_MEMORY_CLASS_ANY) buffer->layout.memory_class = found;
    }
  }
  if (status == QPLAN_NPU_OK) {
    buffer->usage = request.usage;
    buffer->layout.device_address =
        (uint64_t)(uintptr_t)buffer->memory; /* a device behind an IOMMU maps it here */
    device->counters[QPLAN_NPU_COUNTER_BUFFER_BYTES] += buffer->layout.bytes;
    buffer->handle = *result = device->next_handle++;
    buffer->next = device->buffers;
    device->buffers = buffer;
  }
  unlock();
  if (status != QPLAN_NPU_OK) free(buffer);
  return status;
}

qplan_npu_status skeleton_alloc(qplan_npu_device handle, const qplan_npu_buffer_request* request,
                                qplan_npu_buffer* buffer) {
  return make_buffer(handle, request, NULL, buffer);
}

qplan_npu_status skeleton_import(qplan_npu_device handle, const qplan_npu_buffer_request* request,
                                 uint32_t kind, uint64_t value, uint64_t offset, qplan_npu_buffer* buffer) {
  struct device* device;
  lock();
  device = find_device(handle);
  unlock();
  if (device == NULL) return QPLAN_NPU_E_ARGUMENT;
  if (kind != QPLAN_NPU_IMPORT_POINTER) return QPLAN_NPU_E_UNSUPPORTED;
  if (value == 0 || value + offset < value || (value + offset) % SKELETON_ALIGNMENT != 0)
    return QPLAN_NPU_E_ARGUMENT;
  return make_buffer(handle, request, (uint8_t*)(uintptr_t)value + offset, buffer);
}

qplan_npu_status skeleton_release(qplan_npu_device handle, qplan_npu_buffer which) {
  qplan_npu_status status = QPLAN_NPU_E_ARGUMENT;
  struct device* device;
  struct buffer **at, *buffer = NULL;
  lock();
  device = find_device(handle);
  if (device != NULL) {
    for (at = &device->buffers; *at != NULL && (*at)->handle != which; at = &(*at)->next) continue;
    buffer = *at;
    if (buffer != NULL) status = buffer->users > 0 ? QPLAN_NPU_E_BUSY : QPLAN_NPU_OK;
    if (status == QPLAN_NPU_OK) {
      *at = buffer->next;
      device->counters[QPLAN_NPU_COUNTER_BUFFER_BYTES] -= buffer->layout.bytes;
      free_buffer(device, buffer);
    }
  }
  unlock();
  return status;
}

/* The layout and address of a buffer. */
static qplan_npu_status look_up(qplan_npu_device handle, qplan_npu_buffer which, qplan_npu_layout* layout,
                                uint8_t** memory) {
  struct device* device;
  struct buffer* buffer;
  lock();
  device = find_device(handle);
  buffer = device == NULL ? NULL : find_buffer(device, which);
  if (buffer != NULL) {
    *layout = buffer->layout;
    *memory = buffer->memory;
  }
  unlock();
  return buffer == NULL ? QPLAN_NPU_E_ARGUMENT : QPLAN_NPU_OK;
}

qplan_npu_status skeleton_layout(qplan_npu_device handle, qplan_npu_buffer which, qplan_npu_layout* to) {
  qplan_npu_layout layout;
  uint8_t* memory;
  if (!can_fill(to) || look_up(handle, which, &layout, &memory) != QPLAN_NPU_OK) return QPLAN_NPU_E_ARGUMENT;
  copy_out(to, &layout, sizeof(layout));
  return QPLAN_NPU_OK;
}

static int is_access(uint32_t access) { return access != 0 && access <= (QPLAN_NPU_READ | QPLAN_NPU_WRITE); }

qplan_npu_status skeleton_map(qplan_npu_device handle, qplan_npu_buffer which, uint32_t access, void** to) {
  qplan_npu_layout layout;
  uint8_t* memory;
  if (to == NULL || !is_access(access) || look_up(handle, which, &layout, &memory) != QPLAN_NPU_OK)
    return QPLAN_NPU_E_ARGUMENT;
  *to = memory;
  return QPLAN_NPU_OK;
}

qplan_npu_status skeleton_unmap(qplan_npu_device handle, qplan_npu_buffer which, uint32_t access) {
  qplan_npu_layout layout;
  uint8_t* memory;
  return is_access(access) ? look_up(handle, which, &layout, &memory) : QPLAN_NPU_E_ARGUMENT;
}

qplan_npu_status skeleton_flush(qplan_npu_device handle, qplan_npu_buffer which, uint64_t offset,
                                uint64_t bytes) {
  qplan_npu_layout layout;
  uint8_t* memory;
  const qplan_npu_status status = look_up(handle, which, &layout, &memory);
  if (status != QPLAN_NPU_OK || offset > layout.bytes || bytes > layout.bytes - offset)
    return QPLAN_NPU_E_ARGUMENT;
  return QPLAN_NPU_OK;
}
