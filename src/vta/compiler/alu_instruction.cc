#include "src/vta/compiler/alu_instruction.h"

#include "src/vta/compiler/transfer.h"

namespace qplan::target::vta {

namespace isa = ::qplan::vta;

isa::Instruction over_elements(int64_t elements, int64_t uop) {
  isa::Instruction i;
  i.opcode = isa::Opcode::kAlu;
  i.uop_begin = u16(uop);
  i.uop_end = u16(uop + 1);
  i.iter_out = 1;
  i.iter_in = u16(elements);
  i.dst_factor_in = 1;
  return i;
}

isa::Instruction alu_instruction(const AluStep& step, int64_t positions, int64_t out_blocks, int64_t uop) {
  isa::Instruction i = over_elements(positions * out_blocks, uop);
  i.alu_op = step.op;
  switch (step.source) {
    case AluStep::Source::kReset:
      i.opcode = isa::Opcode::kGemm;
      i.reset = true;
      i.alu_op = isa::AluOp::kMin;
      break;
    case AluStep::Source::kImmediate:
      i.use_imm = true;
      i.imm = step.immediate;
      break;
    case AluStep::Source::kAccBlock:
      i.src_factor_in = 1;
      break;
    case AluStep::Source::kConstant:
      // The same constants at every position.
      i.iter_out = u16(positions);
      i.iter_in = u16(out_blocks);
      i.dst_factor_out = u16(out_blocks);
      i.src_factor_in = 1;
      break;
  }
  return i;
}

}  // namespace qplan::target::vta
