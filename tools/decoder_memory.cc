#include "tools/decoder_memory.h"

#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace qplan::tools {
namespace {

struct Budget {
  size_t left = 0;
  bool exceeded = false;
};
thread_local Budget budget;

// Before each block its size; as long as the strictest alignment, which the block keeps.
constexpr size_t kPrefix = alignof(std::max_align_t) > sizeof(size_t) ? alignof(std::max_align_t)
                                                                      : sizeof(size_t);

size_t size_of(const void* memory) {
  size_t bytes = 0;
  std::memcpy(&bytes, static_cast<const char*>(memory) - kPrefix, sizeof bytes);
  return bytes;
}

}  // namespace

void* decoder_allocate(size_t bytes) {
  if (budget.left < kPrefix || bytes > budget.left - kPrefix) {
    budget.exceeded = true;
    return nullptr;
  }
  void* block = std::malloc(bytes + kPrefix);
  if (block == nullptr) return nullptr;
  budget.left -= bytes + kPrefix;
  std::memcpy(block, &bytes, sizeof bytes);
  return static_cast<char*>(block) + kPrefix;
}

void* decoder_reallocate(void* memory, size_t bytes) {
  if (memory == nullptr) return decoder_allocate(bytes);
  // A block that moves exists twice for a moment, so that both count.
  void* grown = decoder_allocate(bytes);
  if (grown == nullptr) return nullptr;
  const size_t old_bytes = size_of(memory);
  std::memcpy(grown, memory, old_bytes < bytes ? old_bytes : bytes);
  decoder_free(memory);
  return grown;
}

void decoder_free(void* memory) {
  if (memory == nullptr) return;
  budget.left += size_of(memory) + kPrefix;
  std::free(static_cast<char*>(memory) - kPrefix);
}

DecoderBudget::DecoderBudget(size_t bytes) { budget = {bytes, false}; }
DecoderBudget::~DecoderBudget() { budget = {}; }
bool DecoderBudget::exceeded() const { return budget.exceeded; }

}  // namespace qplan::tools
