// Argument checks of the C API for devices, around src/runtime/npu.h, and for their buffers, around
// src/runtime/npu/buffer.cc.
#include <string.h>

#include "qplan/qplan.h"
#include "src/runtime/npu/client.h"
#include "src/runtime/session.h"
#include "src/runtime/structs.h"

using qplan::NpuDevice;
using qplan::NpuRegion;
using qplan::NpuState;
using qplan::Session;

namespace {

// Null for NULL and for a session that was taken down.
template <typename Handle>
auto* live(Handle* session) {
  return session != nullptr && session->tag == Session::kLive ? session : nullptr;
}

void put_text(const char* text, char (&to)[qplan::kNpuTextBytes]) {
  uint32_t i = 0;
  for (; i + 1 < sizeof(to) && text[i] != '\0'; ++i) to[i] = text[i];
  to[i] = '\0';
}

const char* target_name(const Session& session, const NpuDevice& device) {
  return session.plan.plan().targets()->Get(device.target)->name()->c_str();
}

qplan_status finish(Session* session, qplan_status status) {
  if (status < 0) qplan::log_text(session->platform, QPLAN_LOG_ERROR, session->error.text());
  return status;
}

}  // namespace

uint32_t qplan_session_num_regions(const qplan_session* session) {
  const qplan_session* s = live(session);
  return s == nullptr || s->npu == nullptr ? 0 : s->npu->num_regions;
}

qplan_status qplan_session_region_info(const qplan_session* session, uint32_t index,
                                       qplan_region_info* info) {
  const qplan_session* s = live(session);
  if (s == nullptr || info == nullptr) return QPLAN_INVALID_ARGUMENT;
  if (index >= qplan_session_num_regions(session)) return QPLAN_NOT_FOUND;
  const NpuRegion& region = s->npu->regions[index];
  const uint32_t step = s->step_index(region.step);
  const qplan::format::NpuStep& npu = *s->plan.npu_step(step);
  qplan_region_info found = {};
  found.step = step;
  found.name = s->plan.step_name(step);
  found.target = target_name(*s, *region.device);
  found.on_device = region.is_on_device() ? 1 : 0;
  found.status = region.is_on_device()       ? qplan_status{QPLAN_OK}
                 : region.status == QPLAN_OK ? qplan_status{QPLAN_DEVICE_ERROR}
                                             // the device takes no jobs any more
                                             : region.status;
  found.num_operators = npu.num_operators();
  found.has_alternative = npu.num_alternative_steps() > 0 ? 1 : 0;
  found.macs = npu.macs();
  found.device_runs = region.device_runs;
  found.cpu_runs = region.cpu_runs;
  found.failures = region.failures;
  found.mismatches = region.mismatches;
  found.copies = region.copies;
  found.copy_bytes = region.copy_bytes;
  found.last_cycles = region.last_cycles;
  put_text(region.is_on_device() ? region.text : qplan::region_reason(*s, region), found.text);
  return qplan::fill_fields(found, info) ? QPLAN_OK : QPLAN_INVALID_ARGUMENT;
}

uint32_t qplan_session_num_devices(const qplan_session* session) {
  const qplan_session* s = live(session);
  return s == nullptr || s->npu == nullptr ? 0 : s->npu->num_devices;
}

qplan_status qplan_session_device_info(const qplan_session* session, uint32_t index,
                                       qplan_device_info* info) {
  const qplan_session* s = live(session);
  if (s == nullptr || info == nullptr) return QPLAN_INVALID_ARGUMENT;
  if (index >= qplan_session_num_devices(session)) return QPLAN_NOT_FOUND;
  const NpuState& npu = *s->npu;
  const NpuDevice& device = npu.devices[index];
  qplan_device_info found = {};
  found.state = device.state;
  found.target = target_name(*s, device);
  found.driver = device.driver == nullptr ? "" : device.driver->name;
  found.last_status = device.last_status;
  for (uint32_t r = 0; r < npu.num_regions; ++r) {
    if (npu.regions[r].device != &device) continue;
    found.num_regions += npu.regions[r].is_on_device() ? 1 : 0;
    found.program_bytes += npu.regions[r].program_bytes;
  }
  found.jobs = device.jobs;
  found.failed_jobs = device.failed_jobs;
  found.timeouts = device.timeouts;
  found.retries = device.retries;
  found.fallbacks = device.fallbacks;
  found.resets = device.resets;
  found.cycles = device.cycles;
  put_text(device.text, found.text);
  for (const qplan::NpuBank& bank : device.banks) {
    if (bank.is_misplaced) found.misplaced_bytes += s->plan.bank(bank.index).size();
  }
  return qplan::fill_fields(found, info) ? QPLAN_OK : QPLAN_INVALID_ARGUMENT;
}

qplan_status qplan_session_recover_device(qplan_session* session, uint32_t index) {
  qplan_session* s = live(session);
  if (s == nullptr) return QPLAN_INVALID_ARGUMENT;
  const uint32_t count = qplan_session_num_devices(session);
  if (index >= count) {
    return finish(s, s->error.set(QPLAN_NOT_FOUND) << "recover_device: device " << index << " of " << count);
  }
  if (s->is_running() || s->npu->client == nullptr) {
    return finish(s, s->error.set(QPLAN_INVALID_STATE)
                         << "recover_device: the session "
                         << (s->is_running() ? "is running" : "was made without a client"));
  }
  return finish(s, s->npu->client->recover(s, &s->npu->devices[index]));
}

// ---- buffers

qplan_status qplan_buffer_create(qplan_session* session, uint32_t index, const DLTensor* tensor,
                                 uint32_t flags, qplan_buffer* buffer) {
  if (live(session) == nullptr || buffer == nullptr) return QPLAN_INVALID_ARGUMENT;
  // Zeroed, its neighbours in the session's list would be lost, and the driver's memory with it.
  if (qplan::is_live_buffer(*session, buffer)) {
    return finish(session, session->error.set(QPLAN_INVALID_STATE)
                               << "buffer: the storage already contains a buffer; destroy it first");
  }
  memset(buffer, 0, sizeof(*buffer));
  const uint32_t count = session->npu == nullptr ? 0 : session->npu->num_devices;
  if (index >= count) {
    return finish(session, session->error.set(QPLAN_NOT_FOUND)
                               << "buffer: device " << index << " of " << count);
  }
  if (session->is_running()) {
    return finish(session, session->error.set(QPLAN_INVALID_STATE) << "buffer: the session is running");
  }
  if (tensor == nullptr || flags != 0) {
    return finish(session, session->error.set(QPLAN_INVALID_ARGUMENT)
                               << "buffer: " << (tensor == nullptr ? "tensor is NULL" : "flags are not 0"));
  }
  return finish(session, qplan::create_buffer(session, &session->npu->devices[index], *tensor, buffer));
}

qplan_status qplan_buffer_begin_access(qplan_buffer* buffer, uint32_t access, DLTensor* view) {
  return qplan::begin_buffer_access(buffer, access, view);
}

qplan_status qplan_buffer_end_access(qplan_buffer* buffer) { return qplan::end_buffer_access(buffer); }

qplan_status qplan_buffer_destroy(qplan_buffer* buffer) { return qplan::destroy_buffer(buffer); }
