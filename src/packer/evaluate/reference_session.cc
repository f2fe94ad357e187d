#include "src/packer/evaluate/reference_session.h"

#include <algorithm>
#include <new>
#include <string>

#include "src/packer/error.h"

namespace qplan::evaluate {

ReferenceSession::ReferenceSession(std::span<const uint8_t> plan) {
  try {
    init(plan);
  } catch (...) {
    release();
    throw;
  }
}

ReferenceSession::~ReferenceSession() { release(); }

void ReferenceSession::init(std::span<const uint8_t> plan) {
  qplan_error error = {};
  error.struct_size = sizeof(error);
  if (qplan_plan_open(&plan_, plan.data(), plan.size(), 0, &error) < 0) fail(error);
  qplan_session_config config = {};
  config.struct_size = sizeof(config);
  config.isa_limit = QPLAN_ISA_REFERENCE;
  config.kernels = qplan_kernels_reference();

  uint32_t count = 0;
  if (qplan_session_memory_needs(&plan_, &config, nullptr, &count, &error) < 0) fail(error);
  std::vector<qplan_memory_need> needs(count);
  if (qplan_session_memory_needs(&plan_, &config, needs.data(), &count, &error) < 0) fail(error);
  std::vector<qplan_memory> memories;
  for (const qplan_memory_need& need : needs) {
    AlignedMemory memory;
    memory.size = std::max<size_t>(static_cast<size_t>(need.size), 1);
    memory.alignment = need.alignment;
    memory.base = ::operator new (memory.size, std::align_val_t{memory.alignment});
    memories_.push_back(memory);
    memories.push_back({memory.base, static_cast<size_t>(need.size)});
  }
  const auto num_memories = static_cast<uint32_t>(memories.size());
  if (qplan_session_init(&plan_, &config, memories.data(), num_memories, &session_, &error) < 0) {
    session_ = nullptr;
    fail(error);
  }
}

void ReferenceSession::release() {
  if (session_ != nullptr) qplan_session_deinit(session_);
  for (const AlignedMemory& memory : memories_)
    ::operator delete (memory.base, std::align_val_t{memory.alignment});
}

std::span<uint8_t> ReferenceSession::io(int direction, uint32_t index) {
  DLTensor view = {};
  if (qplan_session_view(session_, direction, index, &view) < 0) {
    qplan_error error = {};
    error.struct_size = sizeof(error);
    qplan_session_last_error(session_, &error);
    fail(error);
  }
  size_t size = view.dtype.bits / 8u;
  for (int i = 0; i < view.ndim; ++i) size *= static_cast<size_t>(view.shape[i]);
  return {static_cast<uint8_t*>(view.data) + view.byte_offset, size};
}

void ReferenceSession::invoke() {
  if (qplan_session_invoke(session_) == QPLAN_OK) return;
  qplan_error error = {};
  error.struct_size = sizeof(error);
  qplan_session_last_error(session_, &error);
  fail(error);
}

void ReferenceSession::fail(const qplan_error& error) {
  throw PackError(QPLAN_INTERNAL, std::string("the runtime refuses the plan just made: ") + error.text +
                                      " (" + qplan_status_name(error.status) +
                                      "); this is a defect of the packer");
}

}  // namespace qplan::evaluate
