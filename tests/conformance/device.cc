#include "tests/conformance/device.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>

namespace qplan::conformance {
namespace {

constexpr size_t kGuard = 256;
constexpr uint8_t kGuardByte = 0xe7;
constexpr uint64_t kTimeoutNs = 20'000'000'000;

struct Event {
  std::mutex mutex;
  std::condition_variable changed;
  bool is_set = false;
};

uint64_t host_ns(void*) {
  return static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch() /
                               std::chrono::nanoseconds(1));
}

}  // namespace

// ---- hooks

Hooks::Hooks() {
  platform_.struct_size = sizeof(platform_);
  platform_.now_ns = host_ns;
  hooks_.struct_size = sizeof(hooks_);
  hooks_.platform = &platform_;
  hooks_.user = this;
  hooks_.alloc = allocate;
  hooks_.free = release;
  hooks_.alloc_class = allocate_class;
  hooks_.memory_class = class_of;
  hooks_.mutex_create = [](void*) -> void* { return new std::mutex; };
  hooks_.mutex_destroy = [](void*, void* mutex) { delete static_cast<std::mutex*>(mutex); };
  hooks_.mutex_lock = [](void*, void* mutex) { static_cast<std::mutex*>(mutex)->lock(); };
  hooks_.mutex_unlock = [](void*, void* mutex) { static_cast<std::mutex*>(mutex)->unlock(); };
  hooks_.event_create = [](void*) -> void* { return new Event; };
  hooks_.event_destroy = [](void*, void* event) { delete static_cast<Event*>(event); };
  hooks_.event_wait = [](void*, void* handle, uint64_t timeout_ns) {
    auto* event = static_cast<Event*>(handle);
    std::unique_lock<std::mutex> lock(event->mutex);
    const auto time = std::chrono::nanoseconds(std::min<uint64_t>(timeout_ns, INT64_MAX / 4));
    const bool was_set = event->changed.wait_for(lock, time, [event] { return event->is_set; });
    event->is_set = false;
    return was_set ? 0 : 1;
  };
  hooks_.event_set = [](void*, void* handle) {
    auto* event = static_cast<Event*>(handle);
    const std::lock_guard<std::mutex> lock(event->mutex);
    event->is_set = true;
    event->changed.notify_all();
  };
}

bool Hooks::Block::is_intact() const {
  const auto is_guard = [](uint8_t byte) { return byte == kGuardByte; };
  return std::all_of(bytes.data(), const_cast<const uint8_t*>(begin), is_guard) &&
         std::all_of(const_cast<const uint8_t*>(begin) + size, bytes.data() + bytes.size(), is_guard);
}

void* Hooks::allocate(void* user, size_t size, size_t alignment) {
  auto* self = static_cast<Hooks*>(user);
  const uint64_t number = self->num_allocs_++;
  if (number >= self->fail_from_ || size > (size_t{1} << 31)) return nullptr;
  const std::lock_guard<std::mutex> lock(self->mutex_);
  if (alignment == 0 || (alignment & (alignment - 1)) != 0) {
    self->damage_ = "alloc was called with alignment " + std::to_string(alignment);
    alignment = 64;
  }
  Block block;
  block.size = size;
  block.bytes.assign(size + alignment + 2 * kGuard, kGuardByte);
  const auto at = reinterpret_cast<uintptr_t>(block.bytes.data()) + kGuard;
  block.begin = reinterpret_cast<uint8_t*>((at + alignment - 1) / alignment * alignment);
  uint8_t* begin = block.begin;
  self->blocks_[begin] = std::move(block);
  return begin;
}

void* Hooks::allocate_class(void* user, size_t size, size_t alignment, uint32_t memory_class) {
  auto* self = static_cast<Hooks*>(user);
  if (memory_class == self->taken_away_) return nullptr;
  void* const memory = allocate(user, size, alignment);
  const std::lock_guard<std::mutex> lock(self->mutex_);
  if (memory_class != QPLAN_NPU_MEMORY_CLASS_SRAM && memory_class != QPLAN_NPU_MEMORY_CLASS_DRAM)
    self->damage_ = "alloc_class was called for class " + std::to_string(memory_class);
  if (memory != nullptr) self->blocks_[memory].memory_class = memory_class;
  return memory;
}

// Only of memory that alloc_class gave.
uint32_t Hooks::class_of(void* user, const void* memory) {
  auto* self = static_cast<Hooks*>(user);
  const std::lock_guard<std::mutex> lock(self->mutex_);
  for (const auto& [begin, block] : self->blocks_) {
    if (memory >= block.begin && memory < block.begin + block.size) return block.memory_class;
  }
  return QPLAN_NPU_MEMORY_CLASS_ANY;
}

size_t Hooks::num_live(uint32_t memory_class) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return static_cast<size_t>(std::count_if(blocks_.begin(), blocks_.end(), [&](const auto& entry) {
    return entry.second.memory_class == memory_class;
  }));
}

void Hooks::release(void* user, void* memory) {
  auto* self = static_cast<Hooks*>(user);
  if (memory == nullptr) return;
  const std::lock_guard<std::mutex> lock(self->mutex_);
  const auto found = self->blocks_.find(memory);
  if (found == self->blocks_.end()) {
    self->damage_ = "free was called for memory that alloc did not give, or twice";
    return;
  }
  if (!found->second.is_intact()) self->damage_ = "bytes beside a block that alloc gave were written";
  self->blocks_.erase(found);
}

size_t Hooks::num_live() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return blocks_.size();
}

std::string Hooks::damage() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& [memory, block] : blocks_) {
    if (!block.is_intact()) return "bytes beside a block that alloc gave were written";
  }
  return damage_;
}

// ---- devices

Device::Device(const Subject& s) : driver(*s.driver), subject(s) {
  qplan_npu_reason why = {};
  const qplan_npu_status status = driver.open(hooks.get(), 0, s.options.c_str(), &handle, &why);
  require(status == QPLAN_NPU_OK, "open of device 0 returned " + status_text(status) + ": " + why.text);
  require(handle != 0, "open gave the handle 0, which is none");
  capabilities = sized<qplan_npu_capabilities>();
  require_ok(driver.capabilities(handle, &capabilities), "capabilities");
}

Device::~Device() {
  if (handle != 0) (void)driver.close(handle);
}

void Device::close() {
  const qplan_npu_device closing = handle;
  handle = 0;
  require_ok(driver.close(closing), "close");
  require(hooks.num_live() == 0,
          std::to_string(hooks.num_live()) + " blocks of hooks.alloc did not go back in close");
  require(hooks.damage().empty(), hooks.damage());
}

std::string Device::refusal(const qplan_npu_op& op) const {
  qplan_npu_reason reason = {};
  uint32_t count = 1;
  const qplan_npu_status status = driver.supported(handle, &op, &reason, &count);
  if (status == QPLAN_NPU_OK) return "";
  require_status(status, QPLAN_NPU_E_UNSUPPORTED, "supported of an operator that the device does not take");
  const std::string text(reason.text, strnlen(reason.text, sizeof(reason.text)));
  return text.empty() ? "refused without a reason" : text;
}

Workload Device::make(Size size, uint32_t seed) const {
  Source source = {capabilities, [this](const qplan_npu_op& op) { return refusal(op); }, subject.target, 0};
  if (has_compiler(source)) {
    if (subject.target->configure != nullptr) {
      qplan_npu_reason why = {};
      const qplan_npu_status status =
          subject.target->configure(subject.target_options.c_str(), &source.config, &why);
      require(status == QPLAN_NPU_OK, "configure of the target, with '" + subject.target_options +
                                          "', returned " + status_text(status) + ": " + why.text);
    }
    auto of_target = sized<qplan_npu_capabilities>();
    require_ok(subject.target->capabilities(source.config, &of_target), "capabilities of the target");
    require(of_target.hash == capabilities.hash,
            "the target's capabilities have another hash than the device's: plans for it would be refused; "
            "--target-options and --options name the same device");
  }
  return make_workload(source, size, seed);
}

qplan_npu_status Device::load(uint32_t format, const std::vector<uint8_t>& blob, qplan_npu_program* program,
                              qplan_npu_reason* why) const {
  // In memory of exactly its size, so that sanitizers see a step beyond it.
  const auto copy = std::make_unique<uint8_t[]>(blob.size());
  std::copy(blob.begin(), blob.end(), copy.get());
  return driver.load(handle, format, copy.get(), blob.size(), program, why);
}

qplan_npu_buffer Device::alloc(uint32_t usage, uint64_t bytes) const {
  auto request = sized<qplan_npu_buffer_request>();
  request.usage = usage;
  request.min_bytes = bytes;
  qplan_npu_buffer buffer = 0;
  require_ok(driver.alloc(handle, &request, &buffer), "alloc of " + std::to_string(bytes) + " bytes");
  require(buffer != 0, "alloc gave the handle 0, which is none");
  return buffer;
}

void Device::write(qplan_npu_buffer buffer, const std::vector<uint8_t>& bytes) const {
  void* memory = nullptr;
  require_ok(driver.map(handle, buffer, QPLAN_NPU_WRITE, &memory), "map for writing");
  std::memcpy(memory, bytes.data(), bytes.size());
  require_ok(driver.unmap(handle, buffer, QPLAN_NPU_WRITE), "unmap after writing");
}

std::vector<uint8_t> Device::read(qplan_npu_buffer buffer, size_t bytes) const {
  void* memory = nullptr;
  require_ok(driver.map(handle, buffer, QPLAN_NPU_READ, &memory), "map for reading");
  const auto* from = static_cast<const uint8_t*>(memory);
  std::vector<uint8_t> copy(from, from + bytes);
  require_ok(driver.unmap(handle, buffer, QPLAN_NPU_READ), "unmap after reading");
  return copy;
}

uint64_t Device::counter(uint32_t id) const {
  uint64_t value = 0;
  require_ok(driver.counters(handle, &id, &value, 1), "counters of " + std::to_string(id));
  return value;
}

// ---- workloads

Loaded::Loaded(const Device& device, const Workload& workload) : device_(device), workload_(workload) {
  qplan_npu_reason why = {};
  const qplan_npu_status status = device.load(workload.format, workload.blob, &program, &why);
  require(status == QPLAN_NPU_OK,
          "load of " + workload.text + " returned " + status_text(status) + ": " + why.text);
  for (const Slot& slot : workload.slots) {
    const qplan_npu_buffer buffer = device.alloc(slot.usage, slot.bytes);
    if (!slot.content.empty()) device.write(buffer, slot.content);
    binds_.push_back({slot.slot, 0, buffer, 0, slot.bytes});
  }
}

qplan_npu_submit Loaded::request() const {
  auto request = sized<qplan_npu_submit>();
  request.program = program;
  request.binds = binds_.data();
  request.num_binds = static_cast<uint32_t>(binds_.size());
  return request;
}

qplan_npu_status Loaded::submit(qplan_npu_job* job) const {
  const qplan_npu_submit with = request();
  return device_.driver.submit(device_.handle, &with, job, nullptr);
}

qplan_npu_job Loaded::must_submit() const {
  const qplan_npu_submit with = request();
  qplan_npu_job job = 0;
  qplan_npu_reason why = {};
  const qplan_npu_status status = device_.driver.submit(device_.handle, &with, &job, &why);
  require(status == QPLAN_NPU_OK, "submit returned " + status_text(status) + ": " + why.text);
  require(job != 0, "submit gave the handle 0, which is none");
  return job;
}

qplan_npu_status wait_for(const Device& device, qplan_npu_job job, qplan_npu_report* report) {
  return device.driver.wait(device.handle, job, kTimeoutNs, report);
}

qplan_npu_report Loaded::must_wait(qplan_npu_job job) const {
  auto report = sized<qplan_npu_report>();
  const qplan_npu_status status = wait_for(device_, job, &report);
  require(status == QPLAN_NPU_OK,
          "job of " + workload_.text + " ended with " + status_text(status) + ": " + report.text);
  return report;
}

void Loaded::require_result() const {
  const Slot& slot = workload_.slots[workload_.output];
  const std::vector<uint8_t> actual =
      workload_.unpack(device_.read(binds_[workload_.output].buffer, static_cast<size_t>(slot.bytes)));
  for (size_t i = 0; i < workload_.expected.size(); ++i) {
    require(actual[i] == workload_.expected[i],
            workload_.text + ": output byte " + std::to_string(i) + " is " + std::to_string(actual[i]) +
                ", the reference computes " + std::to_string(workload_.expected[i]));
  }
}

void Loaded::require_unharmed() const {
  for (size_t i = 0; i < workload_.slots.size(); ++i) {
    const Slot& slot = workload_.slots[i];
    if (slot.usage != QPLAN_NPU_USE_INPUT) continue;
    require(device_.read(binds_[i].buffer, slot.content.size()) == slot.content,
            workload_.text + ": input slot " + std::to_string(slot.slot) + " was written");
  }
}

void Loaded::release() const {
  for (const qplan_npu_bind& bind : binds_)
    require_ok(device_.driver.release(device_.handle, bind.buffer), "release");
  require_ok(device_.driver.unload(device_.handle, program), "unload");
}

}  // namespace qplan::conformance
