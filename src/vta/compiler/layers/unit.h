// A unit: one node of a region (a composite, or an operator that stands alone) as a command stream of its
// own, which the region compiler joins with the others'. What a unit is to the region, whichever of the
// device's parts it uses: the activations it reads and writes, and how to compile it once their layouts are
// chosen.
#ifndef QPLAN_SRC_VTA_COMPILER_LAYERS_UNIT_H_
#define QPLAN_SRC_VTA_COMPILER_LAYERS_UNIT_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "src/packer/layer/quantized_layer.h"
#include "src/packer/target/target.h"
#include "src/vta/compiler/streams/layout.h"
#include "src/vta/compiler/streams/stream.h"

namespace qplan::vta::compiler {

using target::Candidate;
using target::Constraint;
using target::DeviceCosts;

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

// ---- operators without weights, in the device's terms: uint8 less 128

[[noreturn]] void refuse_node(const ir::Node& node, const std::string& reason);
bool is_unsigned(const Candidate& candidate, ir::ValueId value);
// An operand that is one constant. PackError (QPLAN_MODEL_UNSUPPORTED) where it is not.
float scale_operand(const Candidate& candidate, const ir::Node& node, size_t operand, const char* what);
// As unsigned as the node's first operand.
int32_t device_zero_point(const Candidate& candidate, const ir::Node& node, size_t operand, const char* what);
// The range of the candidate's clip, or of the dtype.
layer::Clamp device_clamp(const Candidate& candidate);
// The unit without its compile().
UnitPlan plan_unit(const Candidate& candidate, std::string name, const std::vector<ir::ValueId>& inputs);

// A candidate whose constraints hold as a unit. PackError (QPLAN_MODEL_UNSUPPORTED) where constants cannot be
// read.
using UnitReader = UnitPlan (*)(const Candidate& candidate);

// What a candidate costs on the device, whose constraints hold: the count of its own stream, compiled by
// itself, from memory to memory, at the costs given. What the compiler does not take after all counts as its
// multiply-accumulates or its transfers.
// Candidates of the same types, attributes and scalars are compiled once: copies share what they remember.
class UnitCycles {
 public:
  UnitCycles(const Config& config, UnitReader read) : config_(config), read_(read) {}
  uint64_t operator()(const Candidate& candidate, const DeviceCosts& costs) const;

 private:
  uint64_t count(const Candidate& candidate, const DeviceCosts& costs) const;

  Config config_;
  UnitReader read_;
  std::shared_ptr<std::unordered_map<std::string, uint64_t>> known_ =
      std::make_shared<std::unordered_map<std::string, uint64_t>>();
};

}  // namespace qplan::vta::compiler

#endif  // QPLAN_SRC_VTA_COMPILER_LAYERS_UNIT_H_
