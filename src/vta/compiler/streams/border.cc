// The border of a value that stays on the device: its readers pad, so somebody must write what they read.
#include <algorithm>
#include <vector>

#include "src/vta/compiler/streams/alu_stream.h"
#include "src/vta/compiler/streams/stream_writer.h"

namespace qplan::vta::compiler {
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
