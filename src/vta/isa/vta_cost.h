// What an instruction costs on its module, by itself: no waiting, no contention between modules.
// GEMM: a cycle for each micro-op executed. ALU: one by immediate, two by register (two reads of one memory).
// LOAD and STORE: the latency once, then the bytes of DRAM over the width of the bus; padding is free. No-ops
// and FINISH: nothing.
#ifndef QPLAN_SRC_VTA_ISA_VTA_COST_H_
#define QPLAN_SRC_VTA_ISA_VTA_COST_H_

#include "src/vta/isa/vta.h"

namespace qplan::vta {

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

}  // namespace qplan::vta

#endif  // QPLAN_SRC_VTA_ISA_VTA_COST_H_
