// A unit: one node of a region (a composite, or an operator that stands alone) as a command stream of its
// own, which the region compiler joins with the others'. What a unit is to the region, whichever of the
// device's parts it uses: the activations it reads and writes, and how to compile it once their layouts are
// chosen.
#ifndef QPLAN_SRC_VTA_COMPILER_UNIT_H_
#define QPLAN_SRC_VTA_COMPILER_UNIT_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/packer/target/target.h"
#include "src/vta/compiler/blob_writer.h"
#include "src/vta/compiler/config.h"
#include "src/vta/compiler/estimate.h"
#include "src/vta/compiler/layout.h"

namespace qplan::target::vta {

// What the relocations of a unit's stream index.
struct UnitRegion {
  enum class Kind : uint8_t { kCarried, kInput, kOutput };
  Kind kind = Kind::kCarried;
  ::qplan::vta::RegionKind blob_kind = ::qplan::vta::RegionKind::kConstants;  // kCarried: or kWeights
  // Carried regions of one kind and name are joined over all units: "weights", "constants" (of ACC),
  // "micro-ops".
  std::string name;
  uint32_t operand = 0;       // kInput: of the unit's activation operands; kOutput: 0
  std::vector<uint8_t> data;  // kCarried
};

struct CompiledUnit {
  std::string name;
  // Complete for itself: tokens are balanced, the last instruction is FINISH, which pops the token of the
  // last STORE and no other; dram_base counts elements from the start of the unit's regions. Its first
  // instructions may assume idle modules and nothing about what lies in the memories on the chip.
  Stream stream;
  std::vector<UnitRegion> regions;
  Estimate estimate;  // by itself
  int64_t alu_instructions_per_tile = 0;
};

// What a unit needs of an activation, before layouts are chosen. In the buffer, channels beyond the last
// (up to a multiple of 16) may hold anything.
struct UnitActivation {
  ir::ValueId value;                   // of the candidate's function; in a RegionPlan inputs: of the region's
  int64_t h = 1, w = 1, channels = 1;  // of one image; the rows of a fully connected layer are w
  Border needed;                       // inputs: what the unit reads around it, its padding
  // Inputs: what the border must hold, in the device's terms (uint8 less 128). nullopt: does not matter.
  std::optional<int8_t> border_value;
  bool is_unsigned = false;  // uint8 in the model: on the device with its highest bit flipped
  bool is_int32 = false;     // outputs of ..._acc32: four byte planes of the layout, one after the other
};

struct UnitPlan {
  std::string name;
  // UnitRegion::operand counts them. A value that is read twice (x + x) may be one or two of them; then their
  // layouts are the same.
  std::vector<UnitActivation> inputs;
  UnitActivation output;
  // inputs: layouts with at least the needed borders, which hold border_value. output: its border, if any, is
  // other readers' and must stay untouched. PackError (QPLAN_MODEL_UNSUPPORTED) with the numbers where it
  // does not fit the device. Null: no instructions, the output is the input's bytes under another shape.
  std::function<CompiledUnit(const Config& config, std::span<const ActivationLayout> inputs,
                             const ActivationLayout& output)>
      compile;
};

// A value of the candidate's function as an activation. A tensor of four axes is an image, others are rows of
// positions, as those of fully connected layers are.
UnitActivation activation(const Candidate& candidate, ir::ValueId value);

// row_name: of the row of pattern_table() that matched the candidate. PackError (QPLAN_MODEL_UNSUPPORTED)
// where constants cannot be read, and for rows without a compiler.
UnitPlan read_unit(const Config& config, std::string_view row_name, const Candidate& candidate);

// A row of the table in unit.cc that read_unit() looks up.
struct UnitReader {
  std::string_view row_name;  // "qplan.qconv2d"
  UnitPlan (*read)(const Config& config, const Candidate& candidate);
};

}  // namespace qplan::target::vta

#endif  // QPLAN_SRC_VTA_COMPILER_UNIT_H_
