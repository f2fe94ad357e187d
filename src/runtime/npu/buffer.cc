#include <string.h>

#include "format/container.h"
#include "src/base/checked.h"
#include "src/runtime/npu/client.h"
#include "src/runtime/npu/driver_answers.h"

namespace qplan {
namespace {

// Null for storage that holds no buffer of a living session.
NpuBuffer* live(qplan_buffer* buffer) {
  auto* found = reinterpret_cast<NpuBuffer*>(buffer);
  if (buffer == nullptr || found->tag != NpuBuffer::kLive || found->session->tag != Session::kLive)
    return nullptr;
  return found;
}

qplan_status fail(const NpuBuffer& buffer, const char* what, qplan_npu_status status) {
  return buffer.session->error.set(QPLAN_DEVICE_ERROR) << "buffer: driver '" << buffer.device->driver->name
                                                       << "' " << what << ": " << npu_status_text(status);
}

bool is_bound(const NpuBuffer& buffer) {
  const Session& session = *buffer.session;
  for (const auto* tensors : {session.function->inputs(), session.function->outputs()}) {
    for (uint32_t i = 0; i < format::count_of(tensors); ++i) {
      const uint32_t t = tensors->Get(i);
      const auto* at = static_cast<const uint8_t*>(session.data[t]);
      if (at >= buffer.memory && at < buffer.memory + buffer.size) return true;
    }
  }
  return false;
}

}  // namespace

const NpuBuffer* find_buffer(const Session& session, const void* bytes, uint64_t size) {
  const auto* at = static_cast<const uint8_t*>(bytes);
  for (const NpuBuffer* buffer = session.npu->buffers; buffer != nullptr; buffer = buffer->next) {
    if (at >= buffer->memory && at < buffer->memory + buffer->size &&
        size <= static_cast<uint64_t>(buffer->memory + buffer->size - at)) {
      return buffer;
    }
  }
  return nullptr;
}

bool is_live_buffer(const Session& session, const qplan_buffer* storage) {
  if (session.npu == nullptr) return false;
  const NpuBuffer* buffer = session.npu->buffers;
  while (buffer != nullptr && static_cast<const void*>(buffer) != storage) buffer = buffer->next;
  return buffer != nullptr;
}

qplan_status create_buffer(Session* session, NpuDevice* device, const DLTensor& tensor,
                           qplan_buffer* storage) {
  Error& error = session->error;
  if (!device->takes_jobs()) {
    return error.set(QPLAN_DRIVER_MISSING) << "buffer: the device of '" << name_of_target(*session, *device)
                                           << "' takes no jobs: " << device_reason(*session, *device);
  }
  if (tensor.ndim < 0 || static_cast<uint32_t>(tensor.ndim) > format::kMaxRank ||
      (tensor.ndim > 0 && tensor.shape == nullptr) || tensor.dtype.lanes != 1 ||
      format::dtype_name(tensor.dtype.code, tensor.dtype.bits) == nullptr) {
    return error.set(QPLAN_INVALID_ARGUMENT)
           << "buffer: rank " << int32_t{tensor.ndim} << " or dtype of code " << uint32_t{tensor.dtype.code}
           << ", " << uint32_t{tensor.dtype.bits} << " bits is not one that a plan's tensor has";
  }
  NpuBuffer buffer;
  memset(&buffer, 0, sizeof(buffer));
  int64_t size = tensor.dtype.bits / 8;
  for (int32_t i = 0; i < tensor.ndim; ++i) {
    buffer.shape[i] = tensor.shape[i];
    if (buffer.shape[i] >= 1 && checked_mul(size, buffer.shape[i], &size)) continue;
    return error.set(QPLAN_INVALID_ARGUMENT) << "buffer: extent " << buffer.shape[i] << " of axis " << i;
  }
  buffer.session = session;
  buffer.device = device;
  buffer.size = static_cast<uint64_t>(size);
  buffer.dtype = tensor.dtype;
  buffer.ndim = tensor.ndim;
  qplan_npu_buffer_request request = {};
  request.struct_size = sizeof(request);
  request.usage = QPLAN_NPU_USE_INPUT | QPLAN_NPU_USE_OUTPUT;
  request.min_bytes = buffer.size;
  uint32_t num_banks = 0;
  for (const NpuBank& taken : device->banks) {
    if (taken.buffer == 0) continue;
    const format::Bank& bank = session->plan.bank(taken.index);
    if (bank.alignment() > request.alignment) request.alignment = bank.alignment();
    // Nothing says which of several banks the tensor would be in.
    request.memory_class = num_banks++ == 0 ? uint32_t{bank.memory_class()} : 0;
  }
  const qplan_npu_driver& driver = *device->driver;
  qplan_npu_status status = driver.alloc(device->device, &request, &buffer.handle);
  if (lacks_class(status, request.memory_class)) {
    request.memory_class = QPLAN_NPU_MEMORY_CLASS_ANY;
    status = driver.alloc(device->device, &request, &buffer.handle);
  }
  if (status < 0) return fail(buffer, "gives no memory", status);
  void* memory = nullptr;
  qplan_npu_layout layout = {};
  layout.struct_size = sizeof(layout);
  status = driver.layout(device->device, buffer.handle, &layout);
  if (status >= 0) {
    status = driver.map(device->device, buffer.handle, QPLAN_NPU_READ | QPLAN_NPU_WRITE, &memory);
  }
  if (status >= 0 && memory == nullptr) status = QPLAN_NPU_E_UNSUPPORTED;
  if (status < 0) {
    (void)driver.release(device->device, buffer.handle);
    return fail(buffer, "does not map its memory", status);
  }
  (void)driver.unmap(device->device, buffer.handle, QPLAN_NPU_READ | QPLAN_NPU_WRITE);
  buffer.memory = static_cast<uint8_t*>(memory);
  buffer.device_address = layout.device_address;
  buffer.tag = NpuBuffer::kLive;
  buffer.next = session->npu->buffers;
  memset(storage->opaque, 0, sizeof(storage->opaque));
  memcpy(storage->opaque, &buffer, sizeof(buffer));
  session->npu->buffers = reinterpret_cast<NpuBuffer*>(storage);
  return QPLAN_OK;
}

qplan_status begin_buffer_access(qplan_buffer* storage, uint32_t access, DLTensor* view) {
  NpuBuffer* buffer = live(storage);
  if (buffer == nullptr || view == nullptr || access == 0 ||
      access > (QPLAN_BUFFER_READ | QPLAN_BUFFER_WRITE))
    return QPLAN_INVALID_ARGUMENT;
  Error& error = buffer->session->error;
  if (buffer->access != 0) return error.set(QPLAN_INVALID_STATE) << "buffer: access has begun already";
  if (buffer->session->is_running())
    return error.set(QPLAN_INVALID_STATE) << "buffer: the session is running";
  // What the CPU does not write, it must not lose when it ends: READ comes along with WRITE.
  void* memory = nullptr;
  const qplan_npu_status status = buffer->device->driver->map(
      buffer->device->device, buffer->handle,
      (access & QPLAN_BUFFER_WRITE) != 0 ? QPLAN_NPU_READ | QPLAN_NPU_WRITE : QPLAN_NPU_READ, &memory);
  if (status < 0) return fail(*buffer, "does not map its memory", status);
  buffer->access = access;
  view->data = buffer->memory;
  view->device.device_type = kDLCPU;
  view->device.device_id = 0;
  view->ndim = buffer->ndim;
  view->dtype = buffer->dtype;
  view->shape = buffer->shape;
  view->strides = nullptr;
  view->byte_offset = 0;
  return QPLAN_OK;
}

qplan_status end_buffer_access(qplan_buffer* storage) {
  NpuBuffer* buffer = live(storage);
  if (buffer == nullptr) return QPLAN_INVALID_ARGUMENT;
  if (buffer->access == 0)
    return buffer->session->error.set(QPLAN_INVALID_STATE) << "buffer: access has not begun";
  const uint32_t access = (buffer->access & QPLAN_BUFFER_WRITE) != 0 ? QPLAN_NPU_READ | QPLAN_NPU_WRITE
                                                                     : uint32_t{QPLAN_NPU_READ};
  buffer->access = 0;
  const qplan_npu_status status =
      buffer->device->driver->unmap(buffer->device->device, buffer->handle, access);
  if (status < 0) return fail(*buffer, "does not unmap its memory", status);
  return QPLAN_OK;
}

qplan_status destroy_buffer(qplan_buffer* storage) {
  NpuBuffer* buffer = live(storage);
  if (buffer == nullptr) return QPLAN_INVALID_ARGUMENT;
  Session* session = buffer->session;
  if (session->is_running() || is_bound(*buffer))
    return session->error.set(QPLAN_INVALID_STATE) << "buffer: it is bound, or the session is running";
  NpuBuffer** at = &session->npu->buffers;
  while (*at != nullptr && *at != buffer) at = &(*at)->next;
  if (*at == nullptr) return QPLAN_INVALID_ARGUMENT;  // a copy of the storage
  // It is forgotten afterwards: a driver that refuses now, since a job uses the buffer, may be asked again.
  const qplan_npu_status status = buffer->device->driver->release(buffer->device->device, buffer->handle);
  if (status < 0 && QPLAN_NPU_CLASS(status) != QPLAN_NPU_CLASS_GONE)
    return fail(*buffer, "does not take its memory back", status);
  *at = buffer->next;
  buffer->tag = 0;
  return QPLAN_OK;
}

qplan_status finish_run(Session* session) {
  qplan_status result = QPLAN_OK;
  if (session->npu->buffers == nullptr) return result;
  const auto* outputs = session->function->outputs();
  for (uint32_t i = 0; i < format::count_of(outputs); ++i) {
    const void* at = session->data[outputs->Get(i)];
    const uint64_t size = session->plan.tensor(outputs->Get(i)).size();
    const NpuBuffer* buffer = find_buffer(*session, at, size);
    if (buffer == nullptr) continue;
    const auto offset = static_cast<uint64_t>(static_cast<const uint8_t*>(at) - buffer->memory);
    const qplan_npu_status status =
        buffer->device->driver->flush(buffer->device->device, buffer->handle, offset, size);
    // A device that is gone reads nothing any more, and the CPU has its bytes.
    const bool is_gone = QPLAN_NPU_CLASS(status) == QPLAN_NPU_CLASS_GONE && !buffer->device->has_lost_job;
    if (status < 0 && !is_gone && result == QPLAN_OK)
      result = fail(*buffer, "does not flush its memory", status);
  }
  return result;
}

}  // namespace qplan
