// Executes a stream by plain loops over the formulas of the specification: in program order, on memories that
// are flat arrays of numbers, over one flat array of bytes. Shares nothing with the simulator but the decoded
// instruction.
#ifndef QPLAN_TESTS_VTA_SIM_INTERPRETER_H_
#define QPLAN_TESTS_VTA_SIM_INTERPRETER_H_

#include <cstdint>
#include <vector>

#include "src/vta/isa/vta.h"

namespace qplan::vta::testing {

struct Interpreter {
  std::vector<uint32_t> uop = std::vector<uint32_t>(8192);
  std::vector<int64_t> wgt = std::vector<int64_t>(1024 * 256);
  std::vector<int64_t> inp = std::vector<int64_t>(2048 * 16);
  std::vector<int64_t> acc = std::vector<int64_t>(2048 * 16);

  // To 32 bits, as two's complement.
  static int64_t wrap(int64_t value) {
    value &= 0xffffffff;
    return value >= 0x80000000 ? value - 0x100000000 : value;
  }
  static int64_t s8(uint8_t byte) { return byte < 128 ? byte : byte - 256; }

  void run(const std::vector<Instruction>& stream, std::vector<uint8_t>& dram) {
    for (const Instruction& i : stream) step(i, dram);
  }

  void step(const Instruction& i, std::vector<uint8_t>& dram) {
    if (i.opcode == Opcode::kLoad) load(i, dram);
    if (i.opcode == Opcode::kStore) store(i, dram);
    if (i.opcode == Opcode::kGemm) gemm(i);
    if (i.opcode == Opcode::kAlu) alu(i);
  }

  void load(const Instruction& i, const std::vector<uint8_t>& dram) {
    if (i.x_size == 0) return;
    const int width = i.x_pad_0 + i.x_size + i.x_pad_1;
    const int height = i.y_pad_0 + i.y_size + i.y_pad_1;
    for (int row = 0; row < height; ++row) {
      for (int column = 0; column < width; ++column) {
        const bool inside = row >= i.y_pad_0 && row < i.y_pad_0 + i.y_size && column >= i.x_pad_0 &&
                            column < i.x_pad_0 + i.x_size;
        const size_t to = static_cast<size_t>(i.sram_base + row * width + column);
        const size_t element = size_t{i.dram_base} + static_cast<size_t>(row - i.y_pad_0) * i.x_stride +
                               static_cast<size_t>(column - i.x_pad_0);
        const auto byte = [&](size_t size, size_t b) -> uint8_t {
          return inside ? dram[element * size + b] : 0;
        };
        const auto word = [&](size_t size, size_t b) {
          return byte(size, b) + 256u * byte(size, b + 1) + 65536u * byte(size, b + 2) +
                 16777216u * byte(size, b + 3);
        };
        switch (i.memory) {
          case Memory::kUop:
            uop[to] = word(4, 0);
            break;
          case Memory::kWgt:
            for (size_t b = 0; b < 256; ++b) wgt[to * 256 + b] = s8(byte(256, b));
            break;
          case Memory::kInp:
            for (size_t b = 0; b < 16; ++b) inp[to * 16 + b] = s8(byte(16, b));
            break;
          case Memory::kAcc:
            for (size_t b = 0; b < 16; ++b) acc[to * 16 + b] = wrap(word(64, 4 * b));
            break;
          case Memory::kAcc8:
            for (size_t b = 0; b < 16; ++b) acc[to * 16 + b] = s8(byte(16, b));
            break;
          case Memory::kOut:
            break;
        }
      }
    }
  }

  void store(const Instruction& i, std::vector<uint8_t>& dram) const {
    for (size_t row = 0; row < i.y_size; ++row) {
      for (size_t column = 0; column < i.x_size; ++column) {
        for (size_t lane = 0; lane < 16; ++lane) {
          const int64_t value = acc[(i.sram_base + row * i.x_size + column) * 16 + lane];
          dram[(i.dram_base + row * i.x_stride + column) * 16 + lane] = static_cast<uint8_t>(value & 255);
        }
      }
    }
  }

  template <typename Body>
  void loop(const Instruction& i, Body body) {
    for (size_t y = 0; y < i.iter_out; ++y) {
      for (size_t x = 0; x < i.iter_in; ++x) {
        for (size_t u = i.uop_begin; u < i.uop_end; ++u) {
          body(uop[u] % 2048 + y * i.dst_factor_out + x * i.dst_factor_in,
               uop[u] / 2048 % 2048 + y * i.src_factor_out + x * i.src_factor_in,
               uop[u] / 4194304 + y * i.wgt_factor_out + x * i.wgt_factor_in);
        }
      }
    }
  }

  void gemm(const Instruction& i) {
    loop(i, [&](size_t d, size_t s, size_t w) {
      for (size_t o = 0; o < 16; ++o) {
        int64_t sum = i.reset ? 0 : acc[d * 16 + o];
        for (size_t k = 0; k < 16 && !i.reset; ++k) sum += inp[s * 16 + k] * wgt[w * 256 + o * 16 + k];
        acc[d * 16 + o] = wrap(sum);
      }
    });
  }

  void alu(const Instruction& i) {
    loop(i, [&](size_t d, size_t s, size_t) {
      for (size_t lane = 0; lane < 16; ++lane) {
        const int64_t a = acc[d * 16 + lane], b = i.use_imm ? i.imm : acc[s * 16 + lane];
        int64_t result = 0;
        switch (i.alu_op) {
          case AluOp::kMin:
            result = a < b ? a : b;
            break;
          case AluOp::kMax:
            result = a > b ? a : b;
            break;
          case AluOp::kAdd:
            result = a + b;
            break;
          case AluOp::kShr: {
            // Floor of the quotient, or the product with a power of two.
            const int64_t power = int64_t{1} << (b < 0 ? -b : b);
            result = b < 0 ? a * power : (a - ((a % power) + power) % power) / power;
            break;
          }
          case AluOp::kMul:
            // Low 32 bits of the product: the high parts of one factor do not matter.
            result = wrap(a % 65536 * (b % 65536)) + wrap((a / 65536 * (b % 65536) % 65536) * 65536) +
                     wrap((a % 65536 * (b / 65536) % 65536) * 65536);
            break;
        }
        acc[d * 16 + lane] = wrap(result);
      }
    });
  }
};

}  // namespace qplan::vta::testing

#endif  // QPLAN_TESTS_VTA_SIM_INTERPRETER_H_
