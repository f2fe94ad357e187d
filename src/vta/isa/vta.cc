#include "src/vta/isa/vta.h"

#include "src/base/text.h"

namespace qplan::vta {
namespace {

// Puts fields one after the other into two little-endian words, or takes them out. A field may not cross the
// middle.
class FieldWriter {
 public:
  template <typename T>
  void field(T& value, uint32_t bits) {
    const uint64_t number = static_cast<uint64_t>(value);
    if (number >> bits != 0) fits_ = false;
    words_[at_ / 64] |= number << at_ % 64;
    at_ += bits;
  }
  void second_word() { at_ = 64; }
  // Returns whether every field fitted.
  bool finish(uint8_t* bytes) const {
    for (uint32_t i = 0; i < kInstructionBytes; ++i)
      bytes[i] = static_cast<uint8_t>(words_[i / 8] >> i % 8 * 8);
    return fits_;
  }

 private:
  uint64_t words_[2] = {0, 0};
  uint32_t at_ = 0;
  bool fits_ = true;
};

class FieldReader {
 public:
  explicit FieldReader(const uint8_t* bytes) {
    for (uint32_t i = 0; i < kInstructionBytes; ++i) words_[i / 8] |= uint64_t{bytes[i]} << i % 8 * 8;
  }
  template <typename T>
  void field(T& value, uint32_t bits) {
    const uint64_t mask = (uint64_t{1} << bits) - 1;
    value = static_cast<T>(words_[at_ / 64] >> at_ % 64 & mask);
    words_[at_ / 64] &= ~(mask << at_ % 64);
    at_ += bits;
  }
  void second_word() { at_ = 64; }
  // Whether every bit that is set was part of a field.
  bool finish() const { return words_[0] == 0 && words_[1] == 0; }

 private:
  uint64_t words_[2] = {0, 0};
  uint32_t at_ = 0;
};

template <typename Fields>
void head(Fields& fields, Instruction& i) {
  fields.field(i.opcode, 3);
  fields.field(i.pop_prev, 1);
  fields.field(i.pop_next, 1);
  fields.field(i.push_prev, 1);
  fields.field(i.push_next, 1);
}

template <typename Fields>
void memory_fields(Fields& fields, Instruction& i) {
  fields.field(i.memory, 3);
  fields.field(i.sram_base, 16);
  fields.field(i.dram_base, 32);
  fields.second_word();
  fields.field(i.y_size, 16);
  fields.field(i.x_size, 16);
  fields.field(i.x_stride, 16);
  fields.field(i.y_pad_0, 4);
  fields.field(i.y_pad_1, 4);
  fields.field(i.x_pad_0, 4);
  fields.field(i.x_pad_1, 4);
}

// What GEMM and ALU share. The source of a GEMM is INP, that of an ALU instruction ACC.
template <typename Fields>
void loop_fields(const Config& config, uint32_t src_bits, Fields& fields, Instruction& i) {
  fields.field(i.reset, 1);
  fields.field(i.uop_begin, config.uop_index_bits);
  fields.field(i.uop_end, config.uop_index_bits + 1);
  fields.field(i.iter_out, 14);
  fields.field(i.iter_in, 14);
  fields.second_word();
  fields.field(i.dst_factor_out, config.acc_index_bits);
  fields.field(i.dst_factor_in, config.acc_index_bits);
  fields.field(i.src_factor_out, src_bits);
  fields.field(i.src_factor_in, src_bits);
}

template <typename Fields>
void all_fields(const Config& config, Fields& fields, Instruction& i) {
  switch (i.opcode) {
    case Opcode::kLoad:
    case Opcode::kStore:
      memory_fields(fields, i);
      break;
    case Opcode::kGemm:
      loop_fields(config, config.inp_index_bits, fields, i);
      fields.field(i.wgt_factor_out, config.wgt_index_bits);
      fields.field(i.wgt_factor_in, config.wgt_index_bits);
      break;
    case Opcode::kAlu: {
      loop_fields(config, config.acc_index_bits, fields, i);
      fields.field(i.alu_op, 3);
      fields.field(i.use_imm, 1);
      uint16_t imm = static_cast<uint16_t>(i.imm);
      fields.field(imm, 16);
      i.imm = static_cast<int16_t>(imm);
      break;
    }
    case Opcode::kFinish:
      break;
  }
}

bool equal(const char* a, const char* b) {
  while (*a != '\0' && *a == *b) {
    ++a;
    ++b;
  }
  return *a == *b;
}

constexpr uint64_t kFnvOffset = 14695981039346656037u;
constexpr uint64_t kFnvPrime = 1099511628211u;

}  // namespace

const Config* find_config(const char* name) {
  if (equal(name, "default")) return &kDefaultConfig;
  if (equal(name, "quarter")) return &kQuarterConfig;
  return nullptr;
}

uint64_t config_hash(const Config& config) {
  const uint32_t numbers[] = {kLanes,
                              config.uop_elements,
                              config.wgt_elements,
                              config.inp_elements,
                              config.acc_elements,
                              config.uop_index_bits,
                              config.wgt_index_bits,
                              config.inp_index_bits,
                              config.acc_index_bits,
                              config.has_multiply ? 1u : 0u};
  uint64_t hash = kFnvOffset;  // FNV-1a over the numbers as little-endian bytes
  for (const uint32_t number : numbers) {
    for (uint32_t shift = 0; shift < 32; shift += 8) hash = (hash ^ (number >> shift & 0xff)) * kFnvPrime;
  }
  return hash;
}

const char* opcode_name(Opcode opcode) {
  switch (opcode) {
    case Opcode::kLoad:
      return "load";
    case Opcode::kStore:
      return "store";
    case Opcode::kGemm:
      return "gemm";
    case Opcode::kFinish:
      return "finish";
    case Opcode::kAlu:
      return "alu";
  }
  return "?";
}

const char* memory_name(Memory memory) {
  switch (memory) {
    case Memory::kUop:
      return "uop";
    case Memory::kWgt:
      return "wgt";
    case Memory::kInp:
      return "inp";
    case Memory::kAcc:
      return "acc";
    case Memory::kOut:
      return "out";
    case Memory::kAcc8:
      return "acc8";
  }
  return "?";
}

const char* alu_op_name(AluOp op) {
  switch (op) {
    case AluOp::kMin:
      return "min";
    case AluOp::kMax:
      return "max";
    case AluOp::kAdd:
      return "add";
    case AluOp::kShr:
      return "shr";
    case AluOp::kMul:
      return "mul";
  }
  return "?";
}

const char* module_name(Module module) {
  switch (module) {
    case Module::kLoad:
      return "load";
    case Module::kCompute:
      return "compute";
    case Module::kStore:
      return "store";
  }
  return "?";
}

bool operator==(const Instruction& a, const Instruction& b) {
  return a.opcode == b.opcode && a.pop_prev == b.pop_prev && a.pop_next == b.pop_next &&
         a.push_prev == b.push_prev && a.push_next == b.push_next && a.memory == b.memory &&
         a.sram_base == b.sram_base && a.dram_base == b.dram_base && a.y_size == b.y_size &&
         a.x_size == b.x_size && a.x_stride == b.x_stride && a.y_pad_0 == b.y_pad_0 &&
         a.y_pad_1 == b.y_pad_1 && a.x_pad_0 == b.x_pad_0 && a.x_pad_1 == b.x_pad_1 && a.reset == b.reset &&
         a.uop_begin == b.uop_begin && a.uop_end == b.uop_end && a.iter_out == b.iter_out &&
         a.iter_in == b.iter_in && a.dst_factor_out == b.dst_factor_out &&
         a.dst_factor_in == b.dst_factor_in && a.src_factor_out == b.src_factor_out &&
         a.src_factor_in == b.src_factor_in && a.wgt_factor_out == b.wgt_factor_out &&
         a.wgt_factor_in == b.wgt_factor_in && a.alu_op == b.alu_op && a.use_imm == b.use_imm &&
         a.imm == b.imm;
}

bool encode(const Config& config, const Instruction& instruction, uint8_t bytes[kInstructionBytes]) {
  Instruction fields_of = instruction;  // fields() takes references, to serve reading as well
  FieldWriter fields;
  head(fields, fields_of);
  all_fields(config, fields, fields_of);
  return fields.finish(bytes);
}

bool decode(const Config& config, const uint8_t bytes[kInstructionBytes], Instruction* instruction) {
  *instruction = Instruction();
  FieldReader fields(bytes);
  head(fields, *instruction);
  if (instruction->opcode > Opcode::kAlu) return false;
  all_fields(config, fields, *instruction);
  return fields.finish() && instruction->memory <= Memory::kAcc8 && instruction->alu_op <= AluOp::kMul;
}

bool encode(const Config& config, const Uop& uop, uint32_t* word) {
  const uint32_t acc = config.acc_index_bits, wgt = config.wgt_index_bits;
  *word = uint32_t{uop.dst} | uint32_t{uop.src} << acc | uint32_t{uop.wgt} << 2 * acc;
  return uop.dst >> acc == 0 && uop.src >> acc == 0 && uop.wgt >> wgt == 0;
}

Uop decode(const Config& config, uint32_t word) {
  const uint32_t acc = config.acc_index_bits, wgt = config.wgt_index_bits;
  const uint32_t acc_mask = (1u << acc) - 1, wgt_mask = (1u << wgt) - 1;
  Uop uop;
  uop.dst = static_cast<uint16_t>(word & acc_mask);
  uop.src = static_cast<uint16_t>(word >> acc & acc_mask);
  uop.wgt = static_cast<uint16_t>(word >> 2 * acc & wgt_mask);
  return uop;
}

Module module_of(const Instruction& instruction) {
  if (instruction.opcode == Opcode::kStore) return Module::kStore;
  if (instruction.opcode != Opcode::kLoad) return Module::kCompute;
  const bool for_gemm = instruction.memory == Memory::kInp || instruction.memory == Memory::kWgt;
  return for_gemm ? Module::kLoad : Module::kCompute;
}

bool is_memory(const Instruction& instruction) {
  return instruction.opcode == Opcode::kLoad || instruction.opcode == Opcode::kStore;
}

uint32_t element_bytes(Memory memory) {
  switch (memory) {
    case Memory::kUop:
      return kUopBytes;
    case Memory::kWgt:
      return kWgtBytes;
    case Memory::kInp:
      return kInpBytes;
    case Memory::kAcc:
      return kAccBytes;
    case Memory::kOut:
      return kOutBytes;
    case Memory::kAcc8:
      return kAcc8Bytes;
  }
  return 0;
}

uint32_t memory_elements(const Config& config, Memory memory) {
  switch (memory) {
    case Memory::kUop:
      return config.uop_elements;
    case Memory::kWgt:
      return config.wgt_elements;
    case Memory::kInp:
      return config.inp_elements;
    case Memory::kAcc:
    case Memory::kOut:
    case Memory::kAcc8:
      return config.acc_elements;
  }
  return 0;
}

bool is_no_op(const Instruction& instruction) { return is_memory(instruction) && instruction.x_size == 0; }

uint64_t sram_extent(const Instruction& i) {
  if (is_no_op(i)) return 0;
  return (uint64_t{i.x_pad_0} + i.x_size + i.x_pad_1) * (uint64_t{i.y_pad_0} + i.y_size + i.y_pad_1);
}

uint64_t dram_extent(const Instruction& i) {
  if (is_no_op(i) || i.y_size == 0) return 0;
  return (uint64_t{i.y_size} - 1) * i.x_stride + i.x_size;
}

uint64_t iterations(const Instruction& i) {
  if (i.uop_end < i.uop_begin) return 0;
  return uint64_t{i.iter_out} * i.iter_in * static_cast<uint64_t>(i.uop_end - i.uop_begin);
}

// ---- instructions as text

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
