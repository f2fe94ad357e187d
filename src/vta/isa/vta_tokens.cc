#include "src/vta/isa/vta.h"

namespace qplan::vta {
namespace {

constexpr uint8_t bit(Queue queue) { return static_cast<uint8_t>(1u << static_cast<uint32_t>(queue)); }

// Where a module stands: its next instruction, found by walking over those of the others.
struct Cursor {
  uint32_t next = 0;
  Instruction instruction;
  bool is_loaded = false;  // instruction is number next, and the module's
};

}  // namespace

const char* queue_name(Queue queue) {
  switch (queue) {
    case Queue::kLoadToCompute:
      return "load->compute";
    case Queue::kComputeToLoad:
      return "compute->load";
    case Queue::kComputeToStore:
      return "compute->store";
    case Queue::kStoreToCompute:
      return "store->compute";
  }
  return "?";
}

bool token_use(const Instruction& i, TokenUse* use) {
  *use = TokenUse();
  uint8_t prev_in = 0, next_in = 0, prev_out = 0, next_out = 0;  // no queue: 0
  switch (module_of(i)) {
    case Module::kLoad:
      next_in = bit(Queue::kComputeToLoad);
      next_out = bit(Queue::kLoadToCompute);
      break;
    case Module::kCompute:
      prev_in = bit(Queue::kLoadToCompute);
      prev_out = bit(Queue::kComputeToLoad);
      next_in = bit(Queue::kStoreToCompute);
      next_out = bit(Queue::kComputeToStore);
      break;
    case Module::kStore:
      prev_in = bit(Queue::kComputeToStore);
      prev_out = bit(Queue::kStoreToCompute);
      break;
  }
  if (i.pop_prev) use->pops |= prev_in;
  if (i.pop_next) use->pops |= next_in;
  if (i.push_prev) use->pushes |= prev_out;
  if (i.push_next) use->pushes |= next_out;
  const bool names_prev = i.pop_prev || i.push_prev, names_next = i.pop_next || i.push_next;
  return !(names_prev && prev_in == 0) && !(names_next && next_in == 0);
}

TokenResult check_tokens(InstructionAt at, const void* user, uint32_t count) {
  TokenResult result;
  uint32_t tokens[kNumQueues] = {};
  Cursor cursors[kNumModules];
  for (bool moved = true; moved;) {
    moved = false;
    for (uint32_t m = 0; m < kNumModules; ++m) {
      Cursor& cursor = cursors[m];
      for (;;) {  // as far as this module gets
        while (!cursor.is_loaded && cursor.next < count) {
          at(user, cursor.next, &cursor.instruction);
          cursor.is_loaded = module_of(cursor.instruction) == static_cast<Module>(m);
          if (!cursor.is_loaded) ++cursor.next;
        }
        if (!cursor.is_loaded) break;
        TokenUse use;
        if (!token_use(cursor.instruction, &use)) {
          result.fault = TokenFault::kNoSuchQueue;
          result.instruction = cursor.next;
          result.module = static_cast<Module>(m);
          return result;
        }
        uint32_t missing = kNumQueues;
        for (uint32_t q = 0; q < kNumQueues; ++q) {
          if ((use.pops >> q & 1) != 0 && tokens[q] == 0) missing = q;
        }
        if (missing != kNumQueues) break;
        for (uint32_t q = 0; q < kNumQueues; ++q) {
          tokens[q] += static_cast<uint32_t>(use.pushes >> q & 1) - static_cast<uint32_t>(use.pops >> q & 1);
        }
        cursor.is_loaded = false;
        ++cursor.next;
        moved = true;
      }
    }
  }
  for (uint32_t m = 0; m < kNumModules; ++m) {
    if (!cursors[m].is_loaded) continue;
    result.fault = TokenFault::kDeadlock;
    result.instruction = cursors[m].next;
    result.module = static_cast<Module>(m);
    TokenUse use;
    (void)token_use(cursors[m].instruction, &use);
    for (uint32_t q = 0; q < kNumQueues; ++q) {
      if ((use.pops >> q & 1) != 0 && tokens[q] == 0) result.queue = static_cast<Queue>(q);
    }
    return result;
  }
  for (uint32_t q = 0; q < kNumQueues; ++q) {
    if (tokens[q] == 0) continue;
    result.fault = TokenFault::kLeftOver;
    result.queue = static_cast<Queue>(q);
    result.tokens = tokens[q];
    return result;
  }
  return result;
}

}  // namespace qplan::vta
