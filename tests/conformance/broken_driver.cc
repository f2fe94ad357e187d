// The sample's driver with one thing wrong, which the environment names (QPLAN_BROKEN): what the suite is
// for.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "qplan/npu_oplist.h"

extern "C" const qplan_npu_driver* skeleton_driver_entry(uint32_t abi);

namespace {

const qplan_npu_driver& good() { return *skeleton_driver_entry(QPLAN_NPU_ABI); }

// ---- one function for each fault

qplan_npu_status writes_all(qplan_npu_device device, qplan_npu_capabilities* to) {
  qplan_npu_capabilities all = {};
  all.struct_size = sizeof(all);
  const qplan_npu_status status = good().capabilities(device, &all);
  all.struct_size = to->struct_size;
  if (status == QPLAN_NPU_OK) *to = all;
  return status;
}

qplan_npu_status crashes(qplan_npu_device, qplan_npu_buffer buffer, qplan_npu_layout* layout) {
  layout->bytes = *reinterpret_cast<volatile uint64_t*>(buffer);
  return QPLAN_NPU_OK;
}

qplan_npu_status never_busy(qplan_npu_device device, qplan_npu_buffer buffer) {
  const qplan_npu_status status = good().release(device, buffer);
  return status == QPLAN_NPU_E_BUSY ? QPLAN_NPU_OK : status;
}

// Completes a blob whose header fits with zeros, and corrects it.
qplan_npu_status takes_truncated(qplan_npu_device device, uint32_t format, const void* blob, uint64_t bytes,
                                 qplan_npu_program* program, qplan_npu_reason* why) {
  qplan_oplist_header header;
  if (bytes < sizeof(header)) return good().load(device, format, blob, bytes, program, why);
  std::memcpy(&header, blob, sizeof(header));
  if (header.total_bytes > (1u << 24)) return good().load(device, format, blob, bytes, program, why);
  std::vector<uint8_t> whole(static_cast<size_t>(header.total_bytes));
  std::memcpy(whole.data(), blob, std::min<size_t>(whole.size(), static_cast<size_t>(bytes)));
  if (whole.size() < sizeof(header)) return good().load(device, format, blob, bytes, program, why);
  header.checksum = qplan_oplist_checksum(whole.data(), whole.size());
  std::memcpy(whole.data(), &header, sizeof(header));
  return good().load(device, format, whole.data(), whole.size(), program, why);
}

qplan_npu_status ignores_hash(qplan_npu_device device, uint32_t format, const void* blob, uint64_t bytes,
                              qplan_npu_program* program, qplan_npu_reason* why) {
  std::vector<uint8_t> copy(static_cast<const uint8_t*>(blob), static_cast<const uint8_t*>(blob) + bytes);
  if (bytes >= sizeof(qplan_oplist_header) && qplan_oplist_checksum(blob, bytes) != 0) {
    qplan_oplist_header header;
    std::memcpy(&header, blob, sizeof(header));
    if (header.checksum == qplan_oplist_checksum(blob, bytes)) {
      qplan_npu_capabilities all = {};
      all.struct_size = sizeof(all);
      (void)good().capabilities(device, &all);
      header.capabilities_hash = all.hash;
      header.checksum = 0;
      std::memcpy(copy.data(), &header, sizeof(header));
      header.checksum = qplan_oplist_checksum(copy.data(), bytes);
      std::memcpy(copy.data(), &header, sizeof(header));
    }
  }
  return good().load(device, format, copy.data(), bytes, program, why);
}

// Names a contract for activations of 16 bits, which does not exist.
qplan_npu_status names_no_contract(qplan_npu_device device, qplan_npu_capabilities* to) {
  const qplan_npu_status status = good().capabilities(device, to);
  if (status == QPLAN_NPU_OK) to->contracts |= 8;
  return status;
}

// The last bind is the output in most programs; the first one an input.
qplan_npu_bind first_bind, last_bind;
qplan_npu_status remembers(qplan_npu_device device, const qplan_npu_submit* submit, qplan_npu_job* job,
                           qplan_npu_reason* why) {
  const qplan_npu_status status = good().submit(device, submit, job, why);
  if (status == QPLAN_NPU_OK && submit->num_binds > 0) {
    first_bind = submit->binds[0];
    last_bind = submit->binds[submit->num_binds - 1];
  }
  return status;
}
void flip(qplan_npu_device device, const qplan_npu_bind& bind) {
  void* memory = nullptr;
  if (good().map(device, bind.buffer, QPLAN_NPU_WRITE, &memory) == QPLAN_NPU_OK)
    static_cast<uint8_t*>(memory)[bind.offset] ^= 1;
}
qplan_npu_status spoils_output(qplan_npu_device device, qplan_npu_job job, uint64_t timeout,
                               qplan_npu_report* report) {
  const qplan_npu_status status = good().wait(device, job, timeout, report);
  if (status == QPLAN_NPU_OK) flip(device, last_bind);
  return status;
}
qplan_npu_status writes_input(qplan_npu_device device, qplan_npu_job job, uint64_t timeout,
                              qplan_npu_report* report) {
  const qplan_npu_status status = good().wait(device, job, timeout, report);
  if (status == QPLAN_NPU_OK) flip(device, first_bind);
  return status;
}

qplan_npu_status forgets_done(qplan_npu_device device, const qplan_npu_submit* submit, qplan_npu_job* job,
                              qplan_npu_reason* why) {
  qplan_npu_submit quiet = {};
  if (submit->struct_size == sizeof(quiet)) {
    quiet = *submit;
    quiet.done = nullptr;
    submit = &quiet;
  }
  return good().submit(device, submit, job, why);
}

qplan_npu_status waits_for_ever(qplan_npu_device device, qplan_npu_job job, uint64_t,
                                qplan_npu_report* report) {
  return good().wait(device, job, UINT64_MAX, report);
}

qplan_npu_status blocks_when_full(qplan_npu_device device, const qplan_npu_submit* submit, qplan_npu_job* job,
                                  qplan_npu_reason* why) {
  qplan_npu_status status;
  do status = good().submit(device, submit, job, why);
  while (status == QPLAN_NPU_E_BUSY);
  return status;
}

qplan_npu_status reset_does_nothing(qplan_npu_device) { return QPLAN_NPU_OK; }

// Submits that succeeded; wait until as many jobs are complete. Only where the process has one device.
std::atomic<uint64_t> num_submitted{0};
qplan_npu_status counts_submits(qplan_npu_device device, const qplan_npu_submit* submit, qplan_npu_job* job,
                                qplan_npu_reason* why) {
  const qplan_npu_status status = good().submit(device, submit, job, why);
  if (status == QPLAN_NPU_OK) ++num_submitted;
  return status;
}
void wait_for_jobs(qplan_npu_device device) {
  const uint32_t id = QPLAN_NPU_COUNTER_JOBS;
  for (uint64_t complete = 0; complete < num_submitted;) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (good().counters(device, &id, &complete, 1) != QPLAN_NPU_OK) return;
  }
}
qplan_npu_status reset_waits(qplan_npu_device device) {
  wait_for_jobs(device);
  return good().reset(device);
}
qplan_npu_status close_waits(qplan_npu_device device) {
  wait_for_jobs(device);
  return good().close(device);
}

qplan_npu_status takes_any_range(qplan_npu_device, qplan_npu_buffer, uint64_t, uint64_t) {
  return QPLAN_NPU_OK;
}

// Takes the request for any memory, and says that it is where it was asked.
qplan_npu_status ignores_class(qplan_npu_device device, const qplan_npu_buffer_request* request,
                               qplan_npu_buffer* buffer) {
  qplan_npu_buffer_request anywhere = {};
  std::memcpy(&anywhere, request, std::min<size_t>(request->struct_size, sizeof(anywhere)));
  anywhere.memory_class = QPLAN_NPU_MEMORY_CLASS_ANY;
  return good().alloc(device, &anywhere, buffer);
}

// One allocation in open that is never freed.
qplan_npu_status leaks(const qplan_device_hooks* hooks, uint32_t index, const char* options,
                       qplan_npu_device* device, qplan_npu_reason* why) {
  if (hooks != nullptr && hooks->alloc != nullptr && device != nullptr)
    (void)hooks->alloc(hooks->user, 64, 64);
  return good().open(hooks, index, options, device, why);
}

qplan_npu_driver broken;

}  // namespace

#undef qplan_npu_driver_entry
extern "C" __attribute__((visibility("default"))) const qplan_npu_driver* qplan_npu_driver_entry(
    uint32_t abi) {
  const char* named = std::getenv("QPLAN_BROKEN");
  const std::string fault = named == nullptr ? "" : named;
  if (abi >> 16 != QPLAN_NPU_ABI >> 16 && fault != "serves_any_version") return nullptr;
  broken = good();
  if (fault == "writes_all") broken.capabilities = writes_all;
  if (fault == "crashes") broken.layout = crashes;
  if (fault == "never_busy") broken.release = never_busy;
  if (fault == "takes_truncated") broken.load = takes_truncated;
  if (fault == "ignores_hash") broken.load = ignores_hash;
  if (fault == "spoils_output") broken.submit = remembers, broken.wait = spoils_output;
  if (fault == "writes_input") broken.submit = remembers, broken.wait = writes_input;
  if (fault == "forgets_done") broken.submit = forgets_done;
  if (fault == "waits_for_ever") broken.wait = waits_for_ever;
  if (fault == "blocks_when_full") broken.submit = blocks_when_full;
  if (fault == "reset_does_nothing") broken.reset = reset_does_nothing;
  if (fault == "reset_waits") broken.submit = counts_submits, broken.reset = reset_waits;
  if (fault == "close_waits") broken.submit = counts_submits, broken.close = close_waits;
  if (fault == "takes_any_range") broken.flush = takes_any_range;
  if (fault == "names_no_contract") broken.capabilities = names_no_contract;
  if (fault == "leaks") broken.open = leaks;
  if (fault == "ignores_class") broken.alloc = ignores_class;
  return &broken;
}
