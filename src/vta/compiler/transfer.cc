#include "src/vta/compiler/transfer.h"

namespace qplan::target::vta {

namespace isa = ::qplan::vta;

isa::Instruction transfer(isa::Opcode opcode, isa::Memory memory, int64_t sram, int64_t dram, int64_t rows,
                          int64_t row, int64_t stride) {
  isa::Instruction i;
  i.opcode = opcode;
  i.memory = memory;
  i.sram_base = u16(sram);
  i.dram_base = static_cast<uint32_t>(dram);
  i.y_size = u16(rows);
  i.x_size = u16(row);
  i.x_stride = u16(stride);
  return i;
}

std::vector<isa::Instruction> transfer_box(isa::Opcode opcode, isa::Memory memory, int64_t sram,
                                           const ActivationLayout& layout, const Box& box) {
  const int64_t per_position = layout.channel_blocks(), row = layout.row_elements();
  const int64_t dram = layout.element(box.y, box.x) + box.block;
  if (box.blocks == per_position)
    return {transfer(opcode, memory, sram, dram, box.rows, box.cols * per_position, row)};
  // Across whole rows, positions are evenly spaced.
  if (box.cols * per_position == row)
    return {transfer(opcode, memory, sram, dram, box.rows * box.cols, box.blocks, per_position)};
  std::vector<isa::Instruction> result;
  for (int64_t y = 0; y < box.rows; ++y) {
    result.push_back(transfer(opcode, memory, sram + y * box.cols * box.blocks, dram + y * row, box.cols,
                              box.blocks, per_position));
  }
  return result;
}

}  // namespace qplan::target::vta
