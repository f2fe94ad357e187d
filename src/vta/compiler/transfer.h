// LOAD and STORE instructions for pieces of activations.
#ifndef QPLAN_SRC_VTA_COMPILER_TRANSFER_H_
#define QPLAN_SRC_VTA_COMPILER_TRANSFER_H_

#include <cstdint>
#include <vector>

#include "src/vta/compiler/config.h"
#include "src/vta/compiler/layout.h"

namespace qplan::target::vta {

// The caller has proved that every value fits its field.
inline uint16_t u16(int64_t value) { return static_cast<uint16_t>(value); }

// rows x row elements, contiguous on the chip, stride elements apart in DRAM.
::qplan::vta::Instruction transfer(::qplan::vta::Opcode opcode, ::qplan::vta::Memory memory, int64_t sram,
                                   int64_t dram, int64_t rows, int64_t row, int64_t stride);

// Blocks of channels of a rectangle of positions: on the chip they are contiguous, [rows][cols][blocks].
struct Box {
  int64_t y = 0, x = 0, rows = 0, cols = 0;  // inside the border; may begin in it
  int64_t block = 0, blocks = 0;
};
// Between the chip (from element sram on) and an activation in DRAM: one instruction, or one for each row.
std::vector<::qplan::vta::Instruction> transfer_box(::qplan::vta::Opcode opcode, ::qplan::vta::Memory memory,
                                                    int64_t sram, const ActivationLayout& layout,
                                                    const Box& box);

}  // namespace qplan::target::vta

#endif  // QPLAN_SRC_VTA_COMPILER_TRANSFER_H_
