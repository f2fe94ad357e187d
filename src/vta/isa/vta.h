// Instructions of VTA (Versatile Tensor Accelerator): sizes, fields, and their place in 16 bytes. The source
// of all numbers is the public specification, apache/tvm-vta, include/vta/{hw_spec.h,hw_spec_const.h}. Shared
// by the packer that emits command streams and by the simulator that runs them; needs neither heap nor the
// standard library.
#ifndef QPLAN_SRC_VTA_ISA_VTA_H_
#define QPLAN_SRC_VTA_ISA_VTA_H_

#include <stddef.h>
#include <stdint.h>

namespace qplan::vta {

// One element: batch 1, 16 channels in, 16 channels out.
constexpr uint32_t kLanes = 16;
constexpr uint32_t kInstructionBytes = 16;
// Bytes in DRAM of one element of each memory.
constexpr uint32_t kUopBytes = 4;
constexpr uint32_t kWgtBytes = kLanes * kLanes;
constexpr uint32_t kInpBytes = kLanes;
constexpr uint32_t kAccBytes = kLanes * 4;
constexpr uint32_t kOutBytes = kLanes;
constexpr uint32_t kAcc8Bytes = kLanes;

// A variant of the device, as data. The fields' widths and the memories' sizes are separate: a stream for a
// device with less memory but the same fields also runs on the larger one, and its bits can be read without
// knowing which it was.
struct Config {
  const char* name;  // of the `target` capability
  // Elements of each memory on the chip.
  uint32_t uop_elements;
  uint32_t wgt_elements;
  uint32_t inp_elements;
  uint32_t acc_elements;
  // Widths of the fields that index them, in bits.
  uint32_t uop_index_bits;
  uint32_t wgt_index_bits;
  uint32_t inp_index_bits;
  uint32_t acc_index_bits;
  // Whether the ALU has MUL and a SHR that takes negative counts; some designs have neither.
  bool has_multiply;
  // Costs (src/vta/isa/vta.h).
  uint32_t clock_khz;
  uint32_t dma_bytes_per_cycle;
  uint32_t dma_latency_cycles;
};

// The public default configuration.
inline constexpr Config kDefaultConfig = {
    "vta-1x16x16_i8w8a32_15_15_18_17", 8192, 1024, 2048, 2048, 13, 10, 11, 11, true, 100000, 8, 64};
// A quarter of each memory, the same fields: streams for it run on the default as well.
inline constexpr Config kQuarterConfig = {
    "vta-1x16x16_i8w8a32_15_15_18_17-quarter", 2048, 256, 512, 512, 13, 10, 11, 11, true, 100000, 8, 64};
// "default", "quarter"; nullptr for other names.
const Config* find_config(const char* name);
// A number for all that a command stream depends on: everything but name and costs.
uint64_t config_hash(const Config& config);

enum class Opcode : uint8_t { kLoad = 0, kStore = 1, kGemm = 2, kFinish = 3, kAlu = 4 };
enum class Memory : uint8_t { kUop = 0, kWgt = 1, kInp = 2, kAcc = 3, kOut = 4, kAcc8 = 5 };
enum class AluOp : uint8_t { kMin = 0, kMax = 1, kAdd = 2, kShr = 3, kMul = 4 };
enum class Module : uint8_t { kLoad = 0, kCompute = 1, kStore = 2 };
constexpr uint32_t kNumModules = 3;
const char* opcode_name(Opcode opcode);
const char* memory_name(Memory memory);
const char* alu_op_name(AluOp op);
const char* module_name(Module module);

// A decoded instruction. Which fields mean something depends on the opcode; the others are zero.
struct Instruction {
  Opcode opcode = Opcode::kFinish;
  // Tokens: pop waits before the instruction, push signals after it. prev and next are the neighbours in the
  // order load, compute, store.
  bool pop_prev = false;
  bool pop_next = false;
  bool push_prev = false;
  bool push_next = false;

  // LOAD, STORE. All in elements of `memory`.
  Memory memory = Memory::kUop;
  uint16_t sram_base = 0;
  uint32_t dram_base = 0;
  uint16_t y_size = 0;
  uint16_t x_size = 0;
  uint16_t x_stride = 0;
  uint8_t y_pad_0 = 0;  // rows of zeros before, 0..15
  uint8_t y_pad_1 = 0;
  uint8_t x_pad_0 = 0;
  uint8_t x_pad_1 = 0;

  // GEMM, ALU: for y < iter_out, x < iter_in, micro-op in [uop_begin, uop_end).
  bool reset = false;  // GEMM: write zeros
  uint16_t uop_begin = 0;
  uint16_t uop_end = 0;
  uint16_t iter_out = 0;
  uint16_t iter_in = 0;
  uint16_t dst_factor_out = 0;
  uint16_t dst_factor_in = 0;
  uint16_t src_factor_out = 0;
  uint16_t src_factor_in = 0;
  uint16_t wgt_factor_out = 0;  // GEMM
  uint16_t wgt_factor_in = 0;   // GEMM
  AluOp alu_op = AluOp::kMin;   // ALU, as are the next two
  bool use_imm = false;
  int16_t imm = 0;
};
bool operator==(const Instruction& a, const Instruction& b);

struct Uop {
  uint16_t dst = 0;  // ACC
  uint16_t src = 0;  // INP for GEMM, ACC for ALU
  uint16_t wgt = 0;  // GEMM only
};

// False when a field does not fit into its bits; bytes are undefined then.
[[nodiscard]] bool encode(const Config& config, const Instruction& instruction,
                          uint8_t bytes[kInstructionBytes]);
// False when the bytes are no instruction: an unknown opcode, memory or ALU operation, or a bit set that
// means nothing.
[[nodiscard]] bool decode(const Config& config, const uint8_t bytes[kInstructionBytes],
                          Instruction* instruction);
[[nodiscard]] bool encode(const Config& config, const Uop& uop, uint32_t* word);
Uop decode(const Config& config, uint32_t word);  // every word is a micro-op

// LOAD of INP and WGT: the load module. STORE: the store module. All else: compute.
Module module_of(const Instruction& instruction);
bool is_memory(const Instruction& instruction);  // LOAD or STORE
// Bytes of one element in DRAM.
uint32_t element_bytes(Memory memory);
// Elements of the memory on the chip; OUT and ACC_8BIT are ACC.
uint32_t memory_elements(const Config& config, Memory memory);

// What a LOAD or STORE touches. x_size 0 makes it a no-op, whatever else it says.
bool is_no_op(const Instruction& instruction);
// Elements on the chip, padding included; they are contiguous from sram_base on.
uint64_t sram_extent(const Instruction& instruction);
// Elements in DRAM from the first to the last, gaps included; 0 when DRAM is not touched.
uint64_t dram_extent(const Instruction& instruction);
// Micro-ops executed by a GEMM or ALU instruction.
uint64_t iterations(const Instruction& instruction);

// What an instruction costs on its module, by itself: no waiting, no contention between modules.
// GEMM: a cycle for each micro-op executed. ALU: one by immediate, two by register (two reads of one memory).
// LOAD and STORE: the latency once, then the bytes of DRAM over the width of the bus; padding is free. No-ops
// and FINISH: nothing.
inline uint64_t dram_bytes(const Instruction& instruction) {
  if (!is_memory(instruction)) return 0;
  return uint64_t{instruction.y_size} * instruction.x_size * element_bytes(instruction.memory);
}

inline uint64_t cycles(const Config& config, const Instruction& instruction) {
  switch (instruction.opcode) {
    case Opcode::kGemm:
      return iterations(instruction);
    case Opcode::kAlu:
      return iterations(instruction) * (instruction.use_imm ? 1 : 2);
    case Opcode::kLoad:
    case Opcode::kStore: {
      const uint64_t bytes = dram_bytes(instruction);
      if (bytes == 0) return 0;
      return config.dma_latency_cycles +
             (bytes + config.dma_bytes_per_cycle - 1) / config.dma_bytes_per_cycle;
    }
    case Opcode::kFinish:
      break;
  }
  return 0;
}

// Multiply-accumulates of a GEMM that accumulates.
inline uint64_t macs(const Instruction& instruction) {
  if (instruction.opcode != Opcode::kGemm || instruction.reset) return 0;
  return iterations(instruction) * kLanes * kLanes;
}

// Instructions and micro-ops as text, one line each:
//   load.inp   [16+120] <- 0x40 8x14/32 pad 0,0,1,0                 pop.next push.next
//   gemm       uop[0,9) 14x14 dst+14,+1 src+32,+2 wgt+0,+0          pop.prev
//   alu.add    uop[0,1) 14x14 dst+14,+1 imm 127
constexpr size_t kDisassemblyBytes = 160;  // enough for every instruction, with its NUL
void disassemble(const Instruction& instruction, char text[kDisassemblyBytes]);

// The four token queues between the modules, and what they make of a stream: whether it can run to its end.
// Each module takes its instructions in order and a pop waits for a push, so the answer does not depend on
// how fast each module is.
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

#endif  // QPLAN_SRC_VTA_ISA_VTA_H_
