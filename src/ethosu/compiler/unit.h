// A unit: one node of a region (a composite, or an operator that stands alone) as kernels of a command
// stream.
#ifndef QPLAN_SRC_ETHOSU_COMPILER_UNIT_H_
#define QPLAN_SRC_ETHOSU_COMPILER_UNIT_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "src/ethosu/compiler/stream_writer.h"
#include "src/ethosu/isa/kernel.h"
#include "src/packer/layer/quantized_layer.h"
#include "src/packer/target/target.h"

namespace qplan::ethosu::compiler {

using target::Candidate;
using target::Constraint;
using Rows = std::vector<Constraint>;

// A tensor as an image: its last three axes. nullopt unless all axes before them have one element.
struct Image {
  int64_t h = 1, w = 1, d = 1;
};
std::optional<Image> image_of(const ir::TensorType& type);

// The bytes of constants that the blob carries, and where each of them is.
class ConstantData {
 public:
  // At a multiple of 16 bytes; the same bytes are kept once.
  ByteRange add(std::span<const uint8_t> bytes);
  const std::vector<uint8_t>& bytes() const { return bytes_; }
  static constexpr uint32_t kRegion = 0;

 private:
  std::vector<uint8_t> bytes_;
  std::map<std::vector<uint8_t>, uint64_t> known_;
};

// What a unit writes its kernels with. Maps have region, base, strides and dtype; zero points are the unit's.
struct UnitContext {
  const Config& config;
  std::span<const FeatureMap> inputs;
  std::span<const FeatureMap> outputs;
  ConstantData& constants;
  StreamWriter& stream;
  bool is_estimate;  // cycles alone are of interest: constants are left out
  // Rows of the output at a time, for which blocks are chosen; 0: all of them.
  uint32_t block_rows = 0;
};

struct Unit {
  std::string name;
  std::vector<ir::ValueId> inputs;  // of the candidate's function
  // PackError (QPLAN_MODEL_UNSUPPORTED) where no block fits. Null: the output is the input's bytes.
  std::function<void(const UnitContext&)> emit;
  // Parts of one value, along an axis of the image: inputs of a concatenation, outputs of a split. Where the
  // region stores a part inside of the whole, nothing is copied.
  enum class Parts { kNone, kInputs, kOutputs } parts = Parts::kNone;
  size_t axis = 0;  // 0 height, 1 width, 2 channels
  // The device's maps have one signedness. Where the first input, or the output, alone is uint8, the kernels
  // read or write it as int8, its elements less 128; a copy before or after them makes one of the other.
  bool reads_as_int8 = false, writes_as_int8 = false;
};

// A candidate whose constraints hold as a unit.
using UnitReader = Unit (*)(const Candidate& candidate);
Unit read_layer_unit(const Candidate& candidate);  // convolutions, depthwise ones, fully connected layers
Unit read_add_unit(const Candidate& candidate);
Unit read_mul_unit(const Candidate& candidate);
Unit read_extremum_unit(const Candidate& candidate);
Unit read_max_pool_unit(const Candidate& candidate);
Unit read_average_pool_unit(const Candidate& candidate);
Unit read_mean_unit(const Candidate& candidate);
Unit read_clip_unit(const Candidate& candidate);
Unit read_requantize_unit(const Candidate& candidate);
Unit read_lookup_unit(const Candidate& candidate);
Unit read_reshape_unit(const Candidate& candidate);
Unit read_concatenate_unit(const Candidate& candidate);
Unit read_split_unit(const Candidate& candidate);

// ---- what units share

[[noreturn]] void refuse_unit(const std::string& name, const std::string& reason);
// A dense map's strides, for h x w x d elements.
void set_dense(FeatureMap* map);
// Sets block and weight order; refuses where no block fits.
void set_block(const UnitContext& context, const std::string& name, Kernel* kernel);
// With its block.
void add_kernel(const UnitContext& context, const std::string& name, Kernel kernel);
// The accumulators of a kernel before they are scaled, as 1 x 1 averages: copies, clamps and rescales.
Kernel copy_kernel(const FeatureMap& from, const FeatureMap& to);
// Between uint8 and int8: the elements less kSignOffset, or that much more.
constexpr int32_t kSignOffset = 128;
Kernel sign_copy_kernel(const FeatureMap& from, const FeatureMap& to);
// shift: positive to the left.
Scale scale_of(const QuantizedMultiplier& multiplier);

// A constant operand; the constraints demand that it is one number.
float scale_operand(const Candidate& c, const ir::Node& node, size_t operand);
int32_t zero_point_operand(const Candidate& c, const ir::Node& node, size_t operand);
layer::Clamp clamp_of(const Candidate& c);

// An addition whose device result does not depend on how the scaled operand is rounded.
struct AddNode {
  FeatureMap lhs, rhs, out;  // dtype and zero point
  layer::AddMultipliers multipliers;
  layer::Clamp clamp;
};
AddNode read_add(const Candidate& c);
bool is_add_exact(const AddNode& add);

// Where the device's accumulators stay, whatever the input is: both sums of products of one sign.
struct AccumulatorBound {
  int64_t least = 0, most = 0;
};
std::vector<AccumulatorBound> accumulator_bounds(const layer::QuantizedLayer& layer);

// ---- constraints, by composite
Rows conv2d_constraints();
Rows depthwise_constraints();
Rows dense_constraints();
Rows add_constraints();
Rows mul_constraints();
Rows extremum_constraints();
Rows max_pool2d_constraints();
Rows avg_pool2d_constraints();
Rows mean_constraints();
Rows clip_constraints();
Rows requantize_constraints();
Rows lookup_constraints();
Rows reshape_constraints();
Rows concatenate_constraints();
Rows split_constraints();

}  // namespace qplan::ethosu::compiler

#endif  // QPLAN_SRC_ETHOSU_COMPILER_UNIT_H_
