#include <algorithm>
#include <vector>

#include "src/vta/compiler/streams/stream.h"

namespace qplan::vta::compiler {
namespace {

// Calls visit(index into the dense tensor, index into the packed one) for every byte of the tensor.
template <typename Visit>
void for_each_byte(const ActivationLayout& layout, const Visit& visit) {
  size_t dense = 0;
  for (int64_t y = 0; y < layout.h; ++y) {
    for (int64_t x = 0; x < layout.w; ++x) {
      // The blocks of a position follow each other: its channels are contiguous.
      const int64_t position = layout.element(y, x) * kInpBytes;
      for (int64_t c = 0; c < layout.channels; ++c) visit(dense++, static_cast<size_t>(position + c));
    }
  }
}

// Writes into the element and, with two planes, the one after it.
void put_weight(int64_t element, int64_t o, int64_t i, int weight, int64_t planes,
                std::vector<uint8_t>* packed) {
  const auto at = static_cast<size_t>(element * kWgtBytes + o * kBlock + i);
  const int first = std::clamp(weight, -128, 127);
  (*packed)[at] = static_cast<uint8_t>(first);
  if (planes == 2) (*packed)[at + static_cast<size_t>(kWgtBytes)] = static_cast<uint8_t>(weight - first);
}

}  // namespace

std::vector<uint8_t> pack_activations(const ActivationLayout& layout, std::span<const uint8_t> dense,
                                      uint8_t flip, int8_t border) {
  std::vector<uint8_t> packed(static_cast<size_t>(layout.bytes()), static_cast<uint8_t>(border));
  for_each_byte(layout, [&](size_t from, size_t to) { packed[to] = dense[from] ^ flip; });
  return packed;
}

std::vector<uint8_t> unpack_activations(const ActivationLayout& layout, std::span<const uint8_t> packed,
                                        uint8_t flip) {
  std::vector<uint8_t> dense(static_cast<size_t>(layout.h * layout.w * layout.channels));
  for_each_byte(layout, [&](size_t to, size_t from) { dense[to] = packed[from] ^ flip; });
  return dense;
}

std::vector<uint8_t> pack_gemm_weights(const Geometry& geometry, std::span<const int16_t> weights,
                                       int64_t planes) {
  const int64_t taps = geometry.taps(), in_blocks = blocks(geometry.in_c);
  std::vector<uint8_t> packed(
      static_cast<size_t>(blocks(geometry.out_c) * taps * in_blocks * planes * kWgtBytes), 0);
  size_t from = 0;
  for (int64_t o = 0; o < geometry.out_c; ++o) {
    for (int64_t tap = 0; tap < taps; ++tap) {
      for (int64_t i = 0; i < geometry.in_c; ++i) {
        const int64_t element = ((o / kBlock * taps + tap) * in_blocks + i / kBlock) * planes;
        put_weight(element, o % kBlock, i % kBlock, weights[from++], planes, &packed);
      }
    }
  }
  return packed;
}

std::vector<uint8_t> pack_diagonal_weights(const Geometry& geometry, std::span<const int16_t> weights,
                                           int64_t planes) {
  const int64_t taps = geometry.taps();
  std::vector<uint8_t> packed(static_cast<size_t>(blocks(geometry.out_c) * taps * planes * kWgtBytes), 0);
  size_t from = 0;
  for (int64_t c = 0; c < geometry.out_c; ++c) {
    for (int64_t tap = 0; tap < taps; ++tap)
      put_weight((c / kBlock * taps + tap) * planes, c % kBlock, c % kBlock, weights[from++], planes,
                 &packed);
  }
  return packed;
}

// The border of a value that stays on the device: its readers pad, so somebody must write what they read.
namespace {

enum BorderRegion : uint32_t { kUops, kOutput };

// rows x row elements of the border, stride elements apart.
struct Area {
  int64_t begin, rows, row, stride;
  int64_t elements() const { return rows * row; }
};

std::vector<Area> areas_of(const ActivationLayout& l) {
  const int64_t row = l.row_elements(), inner = l.w * l.channel_blocks();
  const int64_t first = l.element(0, 0), end = l.element(l.h - 1, l.w - 1) + l.channel_blocks();
  // What is left of a row and right of the one before is one piece.
  const Area all[] = {
      {0, 1, first, 0}, {first + inner, l.h - 1, row - inner, row}, {end, 1, l.elements() - end, 0}};
  std::vector<Area> areas;
  for (const Area& area : all) {
    if (area.elements() > 0) areas.push_back(area);
  }
  return areas;
}

// Stores from elements [0, chunk) of the chip, each of which holds the value.
std::vector<Instruction> stores(const std::vector<Area>& areas, int64_t chunk) {
  std::vector<Instruction> result;
  for (const Area& area : areas) {
    const int64_t row = std::min(area.row, chunk);
    const int64_t rows = chunk / row;
    for (int64_t y = 0; y < area.rows; y += rows) {
      for (int64_t x = 0; x < area.row; x += row) {
        result.push_back(transfer(Opcode::kStore, Memory::kOut, 0, area.begin + y * area.stride + x,
                                  std::min(rows, area.rows - y), std::min(row, area.row - x), area.stride));
      }
    }
  }
  return result;
}

// Elements on the chip that hold the value. To set them takes two cycles each; stores begin after it.
int64_t choose_chunk(const Config& config, const std::vector<Area>& areas) {
  const int64_t limit = std::min<int64_t>(config.acc_elements, (int64_t{1} << 14) - 1);  // iter_in
  int64_t largest = 0;
  for (const Area& area : areas) largest = std::max(largest, area.elements());
  int64_t best = 0, least = 0;
  for (int64_t chunk = std::min(largest, limit); chunk > 0; chunk /= 2) {
    const int64_t cycles =
        2 * chunk + static_cast<int64_t>(stores(areas, chunk).size()) * config.dma_latency_cycles;
    if (best == 0 || cycles < least) {
      best = chunk;
      least = cycles;
    }
  }
  return best;
}

}  // namespace

CompiledUnit compile_border(const Config& config, const ActivationLayout& layout, int8_t value,
                            const std::string& name) {
  const std::vector<Area> areas = areas_of(layout);
  const int64_t chunk = choose_chunk(config, areas);
  StreamWriter stream(config, {carried_region("micro-ops"), output_region()}, kUops);
  const uint16_t uop = stream.use_uops({Uop{}});
  stream.add(alu_instruction(AluStep::reset(AccBlock::kAccumulator), chunk, 1, uop));
  stream.add(
      alu_instruction(AluStep::by_immediate(AluOp::kAdd, AccBlock::kAccumulator, value), chunk, 1, uop));
  stream.back().push_next = true;
  const size_t first = stream.size();
  for (const Instruction& store : stores(areas, chunk)) stream.add(store, kOutput);
  stream.at(first).pop_prev = true;
  stream.back().push_prev = true;
  return stream.finish(name);
}

}  // namespace qplan::vta::compiler
