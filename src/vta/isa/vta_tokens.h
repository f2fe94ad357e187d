// The four token queues between the modules, and what they make of a stream: whether it can run to its end.
// Each module takes its instructions in order and a pop waits for a push, so the answer does not depend on
// how fast each module is.
#ifndef QPLAN_SRC_VTA_ISA_VTA_TOKENS_H_
#define QPLAN_SRC_VTA_ISA_VTA_TOKENS_H_

#include <stddef.h>

#include "src/vta/isa/vta.h"

namespace qplan::vta {

enum class Queue : uint8_t {
  kLoadToCompute = 0,
  kComputeToLoad = 1,
  kComputeToStore = 2,
  kStoreToCompute = 3,
};
constexpr uint32_t kNumQueues = 4;
const char* queue_name(Queue queue);  // "load->compute"

// The queues that an instruction takes from and puts into. Bits: 1 << Queue.
struct TokenUse {
  uint8_t pops = 0;
  uint8_t pushes = 0;
};
// False when the instruction names a neighbour that its module has not: LOAD has no prev, STORE no next.
[[nodiscard]] bool token_use(const Instruction& instruction, TokenUse* use);

enum class TokenFault : uint8_t { kNone, kNoSuchQueue, kDeadlock, kLeftOver };
struct TokenResult {
  TokenFault fault = TokenFault::kNone;
  uint32_t instruction = 0;  // kNoSuchQueue, kDeadlock: the one that names the queue, the one that waits
  Module module = Module::kLoad;
  Queue queue = Queue::kLoadToCompute;  // kDeadlock: waited for; kLeftOver: that keeps tokens
  uint32_t tokens = 0;                  // kLeftOver: how many
};

// at(user, i, &instruction) gives instruction i of count. Every instruction is asked for three times at most.
using InstructionAt = void (*)(const void* user, uint32_t index, Instruction* instruction);
TokenResult check_tokens(InstructionAt at, const void* user, uint32_t count);

}  // namespace qplan::vta

#endif  // QPLAN_SRC_VTA_ISA_VTA_TOKENS_H_
