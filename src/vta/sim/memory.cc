#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "src/vta/sim/machine.h"

namespace qplan::sim {

uint64_t AddressSpace::take(uint64_t bytes) {
  if (bytes > end_) return 0;
  const uint64_t pages = (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
  uint64_t at = kArenaBase;
  for (const auto& [address, taken] : used_) {
    if (address - at >= pages) break;
    at = address + taken;
  }
  if (at > end_ || pages > end_ - at) return 0;
  used_[at] = pages;
  return at;
}

Block::Block(const qplan_device_hooks& hooks, uint64_t bytes, uint8_t fill, uint32_t memory_class) {
  void* memory = nullptr;
  if (hooks.alloc_class != nullptr && memory_class != QPLAN_NPU_MEMORY_CLASS_ANY) {
    memory = hooks.alloc_class(hooks.user, bytes, kPageBytes, memory_class);
    hooks_ = &hooks;
  } else if (hooks.alloc != nullptr) {
    memory = hooks.alloc(hooks.user, bytes, kPageBytes);
    hooks_ = &hooks;
  } else {
    memory = ::operator new(bytes, std::align_val_t(kPageBytes), std::nothrow);
  }
  data_ = static_cast<uint8_t*>(memory);
  if (data_ != nullptr) std::memset(data_, fill, bytes);
}

Block& Block::operator=(Block&& other) noexcept {
  std::swap(hooks_, other.hooks_);
  std::swap(data_, other.data_);
  return *this;
}

Block::~Block() {
  if (data_ == nullptr) return;
  if (hooks_ == nullptr) {
    ::operator delete(data_, std::align_val_t(kPageBytes));
  } else if (hooks_->free != nullptr) {
    hooks_->free(hooks_->user, data_);
  }
}

namespace {

// [offset, offset + count) widened to cache lines and cut to the buffer.
std::pair<uint64_t, uint64_t> lines(const Buffer& buffer, uint64_t offset, uint64_t count) {
  const uint64_t begin = offset / kCacheLineBytes * kCacheLineBytes;
  const uint64_t end = (offset + count + kCacheLineBytes - 1) / kCacheLineBytes * kCacheLineBytes;
  return {begin, std::min(end, buffer.bytes)};
}

}  // namespace

void Buffer::flush(uint64_t offset, uint64_t count) {
  if (host == device || count == 0) return;
  const auto [begin, end] = lines(*this, offset, count);
  std::memcpy(device + begin, host + begin, end - begin);
}

void Buffer::invalidate(uint64_t offset, uint64_t count) {
  if (host == device || count == 0) return;
  const auto [begin, end] = lines(*this, offset, count);
  std::memcpy(host + begin, device + begin, end - begin);
}

namespace {

bool holds(const Segment& segment, uint64_t address, uint64_t bytes) {
  return address >= segment.address && address - segment.address <= segment.bytes &&
         bytes <= segment.bytes - (address - segment.address);
}

}  // namespace

void Dram::add(Segment segment) {
  if (segment.is_writable) {
    Touches untouched = {};
    untouched.is_known = segment.is_initialised ? 1 : 0;
    segment.touches.assign((segment.bytes + kGranule - 1) / kGranule, untouched);
  }
  segments_.push_back(std::move(segment));
}

Segment* Dram::find(uint64_t address, uint64_t bytes) {
  if (last_ < segments_.size() && holds(segments_[last_], address, bytes)) return &segments_[last_];
  for (size_t i = 0; i < segments_.size(); ++i) {
    if (!holds(segments_[i], address, bytes)) continue;
    last_ = i;
    return &segments_[i];
  }
  return nullptr;
}

void Dram::forget_touches() {
  for (Segment& segment : segments_) {
    for (Touches& touches : segment.touches) {
      const uint32_t is_known = touches.is_known;
      touches = {};
      touches.is_known = is_known & 1;
    }
  }
}

}  // namespace qplan::sim
