#include "src/base/line_writer.h"
#include "src/vta/isa/vta.h"

namespace qplan::vta {
namespace {

void memory_operands(const Instruction& i, LineWriter& text) {
  if (is_no_op(i)) {
    text << "nothing";
    return;
  }
  const bool is_load = i.opcode == Opcode::kLoad;
  text << "[" << uint32_t{i.sram_base} << "+" << static_cast<uint32_t>(sram_extent(i)) << "] "
       << (is_load ? "<- " : "-> ");
  text.hexadecimal(i.dram_base);
  text << " " << uint32_t{i.y_size} << "x" << uint32_t{i.x_size} << "/" << uint32_t{i.x_stride};
  if (i.y_pad_0 != 0 || i.y_pad_1 != 0 || i.x_pad_0 != 0 || i.x_pad_1 != 0) {
    text << " pad " << uint32_t{i.y_pad_0} << "," << uint32_t{i.y_pad_1} << "," << uint32_t{i.x_pad_0} << ","
         << uint32_t{i.x_pad_1};
  }
}

void factors(const char* name, uint32_t out, uint32_t in, LineWriter& text) {
  text << " " << name << "+" << out << ",+" << in;
}

void loop_operands(const Instruction& i, LineWriter& text) {
  text << "uop[" << uint32_t{i.uop_begin} << "," << uint32_t{i.uop_end} << ") " << uint32_t{i.iter_out} << "x"
       << uint32_t{i.iter_in};
  factors("dst", i.dst_factor_out, i.dst_factor_in, text);
  if (i.opcode == Opcode::kAlu && i.use_imm) {
    text << " imm " << (i.imm < 0 ? "-" : "") << static_cast<uint32_t>(i.imm < 0 ? -int32_t{i.imm} : i.imm);
    return;
  }
  if (i.reset) return;
  factors("src", i.src_factor_out, i.src_factor_in, text);
  if (i.opcode == Opcode::kGemm) factors("wgt", i.wgt_factor_out, i.wgt_factor_in, text);
}

}  // namespace

void disassemble(const Instruction& i, char to[kDisassemblyBytes]) {
  LineWriter text(to, kDisassemblyBytes);
  text << opcode_name(i.opcode);
  if (is_memory(i)) text << "." << memory_name(i.memory);
  if (i.opcode == Opcode::kAlu) text << "." << alu_op_name(i.alu_op);
  if (i.opcode == Opcode::kGemm && i.reset) text << ".reset";
  if (i.opcode != Opcode::kFinish) text.pad_to(11);
  if (is_memory(i)) memory_operands(i, text);
  if (i.opcode == Opcode::kGemm || i.opcode == Opcode::kAlu) loop_operands(i, text);
  if (!i.pop_prev && !i.pop_next && !i.push_prev && !i.push_next) return;
  text.pad_to(64);
  if (i.pop_prev) text << " pop.prev";
  if (i.pop_next) text << " pop.next";
  if (i.push_prev) text << " push.prev";
  if (i.push_next) text << " push.next";
}

}  // namespace qplan::vta
