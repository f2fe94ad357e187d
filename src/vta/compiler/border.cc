#include "src/vta/compiler/border.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "src/vta/compiler/alu_instruction.h"
#include "src/vta/compiler/transfer.h"
#include "src/vta/compiler/uop_tables.h"

namespace qplan::target::vta {
namespace {

namespace isa = ::qplan::vta;

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
std::vector<isa::Instruction> stores(const std::vector<Area>& areas, int64_t chunk) {
  std::vector<isa::Instruction> result;
  for (const Area& area : areas) {
    const int64_t row = std::min(area.row, chunk);
    const int64_t rows = chunk / row;
    for (int64_t y = 0; y < area.rows; y += rows) {
      for (int64_t x = 0; x < area.row; x += row) {
        result.push_back(transfer(isa::Opcode::kStore, isa::Memory::kOut, 0, area.begin + y * area.stride + x,
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
  UopTables uops(config);
  const UopTables::Place place = uops.use({isa::Uop{}});
  CompiledUnit unit;
  unit.name = name;
  std::vector<isa::Instruction>& code = unit.stream.instructions;
  unit.stream.labels.push_back({0, name});
  unit.stream.relocations.push_back({0, kUops});
  code.push_back(transfer(isa::Opcode::kLoad, isa::Memory::kUop, place.begin, place.dram, 1, 1, 1));
  AluStep step;
  step.source = AluStep::Source::kReset;
  code.push_back(alu_instruction(step, chunk, 1, place.begin));
  step.source = AluStep::Source::kImmediate;
  step.op = isa::AluOp::kAdd;
  step.immediate = value;
  code.push_back(alu_instruction(step, chunk, 1, place.begin));
  code.back().push_next = true;
  const size_t first = code.size();
  for (const isa::Instruction& store : stores(areas, chunk)) {
    unit.stream.relocations.push_back({static_cast<uint32_t>(code.size()), kOutput});
    code.push_back(store);
  }
  code[first].pop_prev = true;
  code.back().push_prev = true;
  code.emplace_back().pop_next = true;  // FINISH

  unit.regions.resize(2);
  unit.regions[kUops].name = "micro-ops";
  unit.regions[kUops].data = uops.bytes();
  unit.regions[kOutput].kind = UnitRegion::Kind::kOutput;
  unit.estimate = estimate_cycles(config, code);
  return unit;
}

}  // namespace qplan::target::vta
