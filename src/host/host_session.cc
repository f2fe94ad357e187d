// A session whose memories come from the heap.
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <vector>

#include "qplan/host.h"
#include "src/host/host_error.h"

namespace {

// Zeroed: the operating system hands out such pages for nothing, and an input that was never written then has
// the same bytes in every run.
class AlignedBlock {
 public:
  AlignedBlock(uint64_t size, uint32_t alignment) {
    if (size > SIZE_MAX - alignment) return;
    block_.reset(std::calloc(static_cast<size_t>(size) + alignment, 1));
    const auto address = reinterpret_cast<uintptr_t>(block_.get());
    offset_ = (alignment - address % alignment) % alignment;
  }
  bool is_allocated() const { return block_ != nullptr; }
  void* get() const { return static_cast<char*>(block_.get()) + offset_; }

 private:
  struct Free {
    void operator()(void* block) const { std::free(block); }
  };
  std::unique_ptr<void, Free> block_;
  size_t offset_ = 0;
};

}  // namespace

struct qplan_host_session {
  std::vector<AlignedBlock> blocks;
  qplan_session* session = nullptr;
};

qplan_status qplan_host_session_create(const qplan_plan* plan, const qplan_session_config* config,
                                       qplan_host_session** host_session, qplan_error* error) {
  using qplan::host::report;
  if (host_session == nullptr)
    return report(error, QPLAN_INVALID_ARGUMENT, "host session: host_session is NULL");
  *host_session = nullptr;
  try {
    uint32_t count = 0;
    qplan_status status = qplan_session_memory_needs(plan, config, nullptr, &count, error);
    if (status != QPLAN_OK) return status;
    std::vector<qplan_memory_need> needs(count);
    status = qplan_session_memory_needs(plan, config, needs.data(), &count, error);
    if (status != QPLAN_OK) return status;
    auto made = std::make_unique<qplan_host_session>();
    std::vector<qplan_memory> memories;
    for (const qplan_memory_need& need : needs) {
      made->blocks.emplace_back(need.size, need.alignment);
      if (!made->blocks.back().is_allocated()) {
        return report(
            error, QPLAN_OUT_OF_MEMORY,
            "host session: no " + std::to_string(need.size) + " bytes for bank " + std::to_string(need.bank));
      }
      memories.push_back({made->blocks.back().get(), static_cast<size_t>(need.size)});
    }
    status = qplan_session_init(plan, config, memories.data(), count, &made->session, error);
    if (status == QPLAN_OK) *host_session = made.release();
    return status;
  } catch (const std::bad_alloc&) {
    return report(error, QPLAN_OUT_OF_MEMORY, "");
  }
}

qplan_session* qplan_host_session_get(qplan_host_session* host_session) {
  return host_session == nullptr ? nullptr : host_session->session;
}

void qplan_host_session_destroy(qplan_host_session* host_session) {
  if (host_session == nullptr) return;
  qplan_session_deinit(host_session->session);
  delete host_session;
}
