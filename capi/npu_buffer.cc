// qplan_buffer_*: argument checks around src/runtime/npu/buffer.cc. Programs without buffers link neither.
#include <string.h>

#include "qplan/qplan.h"
#include "src/runtime/npu/client.h"
#include "src/runtime/session.h"

using qplan::Session;

namespace {

qplan_status finish(Session* session, qplan_status status) {
  if (status < 0) qplan::log_text(session->platform, QPLAN_LOG_ERROR, session->error.text());
  return status;
}

}  // namespace

qplan_status qplan_buffer_create(qplan_session* session, uint32_t index, const DLTensor* tensor,
                                 uint32_t flags, qplan_buffer* buffer) {
  if (session == nullptr || session->tag != Session::kLive || buffer == nullptr)
    return QPLAN_INVALID_ARGUMENT;
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
