// Ethos-U55 and U65 as targets: units (one node of a region each, a composite or an operator that stands
// alone, as kernels of a command stream), the constraints under which nodes become units, the table of what
// the targets take, and the program of a region.
#ifndef QPLAN_SRC_ETHOSU_COMPILER_TARGET_H_
#define QPLAN_SRC_ETHOSU_COMPILER_TARGET_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "src/ethosu/isa/architecture.h"
#include "src/ethosu/isa/blob.h"
#include "src/ethosu/isa/stream.h"
#include "src/packer/layer/quantized_layer.h"
#include "src/packer/target/region.h"
#include "src/packer/target/target.h"

namespace qplan::ethosu::compiler {

// ---- a region's program as bytes (stream_writer.cc): kernels and transfers as words of a command stream,
// and the blob with the stream

// The node whose kernels begin at a word.
struct Label {
  uint32_t word = 0;
  std::string name;
};

using Operation = std::variant<Kernel, Transfer>;

class StreamWriter {
 public:
  // operations: gets those that are added, instead of the stream.
  explicit StreamWriter(const Config& config, std::vector<Operation>* operations = nullptr);

  void label(std::string name);
  // SHRAM registers, BLOCKDEP and waits are set here; the block is chosen.
  void add(Kernel kernel);
  // Table transfers wait for all kernels, and are waited for.
  void add(const Transfer& transfer);
  // With OP_STOP.
  std::vector<uint32_t> finish();

  const std::vector<Label>& labels() const { return labels_; }
  uint64_t cycles() const { return time_.cycles(); }
  // The least cycles of all operations if they ran one after the other, which blobs declare.
  uint64_t total_cycles() const { return total_; }
  uint32_t kernels() const { return kernels_; }

 private:
  // A SET that changes nothing is left out.
  void set(Cmd0 code, uint32_t value);
  void set(Cmd1 code, uint64_t value);
  void set_scale(Cmd1 code, const Scale& scale);
  void write(const Command& command);
  void wait_kernels(uint32_t unfinished);
  void wait_transfers(uint32_t unfinished);
  void set_map(const FeatureMap& map, Cmd0 zero_point, Cmd0 region, Cmd1 base);
  void set_window(const Kernel& kernel);
  void set_weights(const Kernel& kernel);
  void set_operands(const Kernel& kernel);
  void set_output(const Kernel& kernel);

  const Config& config_;
  const Memories memories_;
  std::vector<Operation>* added_;
  std::vector<uint32_t> words_;
  std::vector<Label> labels_;
  std::map<uint16_t, uint16_t> values0_;
  std::map<uint16_t, std::pair<uint16_t, uint32_t>> values1_;
  std::optional<Kernel> previous_;  // the kernel before; none: it has ended
  Unfinished unfinished_;
  TimeLine time_;
  uint32_t kernels_ = 0;
  uint64_t total_ = 0;
};

// ---- the blob

struct BlobParts {
  std::vector<BlobRegion> regions;  // data_offset is set here
  std::vector<BlobSlot> slots;
  std::vector<uint8_t> constants;  // of the region of that kind
  std::vector<uint8_t> payload;
  std::vector<Label> labels;
  uint64_t cycles = 0;
};
// Makes the regions say which memories the compiler reckoned with, and the plan's slots those of the regions
// that they are, and not copied to or from.
void state_memories(const Memories& memories, BlobParts* parts, std::vector<target::RegionSlot>* slots);
std::vector<uint8_t> payload_of(const Config& config, std::span<const uint32_t> stream);
std::vector<uint8_t> write_blob(const Config& config, const BlobParts& parts);

using target::append;
using target::Candidate;
using target::Constraint;
using target::kNothingToChange;
using target::kQuantizeTo8Bits;
using target::kRunThePasses;
using target::product;
using Rows = std::vector<Constraint>;

// A tensor as an image: its last three axes. nullopt unless all axes before them have one element.
struct Image {
  int64_t h = 1, w = 1, d = 1;
};
std::optional<Image> image_of(const ir::TensorType& type);

// Part of an image: element i along an axis is element begin + i * step of the whole. The channels' step
// is 1.
struct View {
  uint32_t begin[3] = {0, 0, 0}, step[3] = {1, 1, 1};  // height, width, channels
};

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
  std::span<const FeatureMap> scratch = {};
  // Blocks are chosen for weights that are copied to fast memory.
  bool has_fast_weights = false;
  // A kernel of a layer for so many channels of the output at a time, with weights of its own; 0: one for
  // all.
  uint32_t slice_depth = 0;
};

struct Unit {
  std::string name;
  std::vector<ir::ValueId> inputs;  // of the candidate's function
  // PackError (QPLAN_MODEL_UNSUPPORTED) where no block fits. Null: the output is the input's bytes.
  std::function<void(const UnitContext&)> emit;
  // Parts of one value, along an axis of the image: inputs of a concatenation, outputs of a split. Where the
  // region stores a part inside of the whole, nothing is copied.
  enum class Parts { kNone, kInputs, kOutputs, kView } parts = Parts::kNone;
  size_t axis = 0;  // 0 height, 1 width, 2 channels
  View view;        // kView: of the input, which the output is
  // Rows of the output are not those of the input: it is in no cascade.
  bool needs_whole_maps = false;
  // The kernels read and write maps as they are given, in any format.
  bool takes_bricks = false;
  // Memory that the kernels use between them.
  std::vector<ir::TensorType> scratch = {};
  // The device's maps have one signedness. Where the first input, or the output, alone is uint8, the kernels
  // read or write it as int8, its elements less 128; a copy before or after them makes one of the other.
  bool reads_as_int8 = false, writes_as_int8 = false;
};

// A candidate whose constraints hold as a unit.
using UnitReader = Unit (*)(const Candidate& candidate);
Unit read_layer_unit(const Candidate& candidate);  // convolutions, depthwise ones, fully connected layers
Unit read_add_unit(const Candidate& candidate);    // and differences
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
Unit read_slice_unit(const Candidate& candidate);
Unit read_take_unit(const Candidate& candidate);
Unit read_resize_nearest_unit(const Candidate& candidate);
Unit read_pad_unit(const Candidate& candidate);
Unit read_transpose_unit(const Candidate& candidate);
Unit read_softmax_unit(const Candidate& candidate);

// ---- what units share

[[noreturn]] void refuse_unit(const std::string& name, const std::string& reason);
// A dense map's strides, for h x w x d elements.
void set_dense(FeatureMap* map);
// Sets block and weight order; refuses where no block fits.
void set_block(const UnitContext& context, const std::string& name, Kernel* kernel);
// A map with h, w, d and dtype of a tensor, dense.
FeatureMap map_of_type(const ir::TensorType& type);
// Part of a map, as large as `like`.
FeatureMap view_of(const FeatureMap& whole, const View& view, const FeatureMap& like);
// With its block.
void add_kernel(const UnitContext& context, const std::string& name, Kernel kernel);
// The accumulators of a kernel before they are scaled, as 1 x 1 averages: copies, clamps and rescales.
Kernel copy_kernel(const FeatureMap& from, const FeatureMap& to);
// Between uint8 and int8: the elements less kSignOffset, or that much more.
constexpr int32_t kSignOffset = 128;
Kernel sign_copy_kernel(const FeatureMap& from, const FeatureMap& to);
// shift: positive to the left.
Scale scale_of(const QuantizedMultiplier& multiplier);
// With a multiplier of 16 bits, as accumulators of 64 bits are scaled, rounded once.
Scale reduced_scale_of(const QuantizedMultiplier& multiplier);

// A constant operand; the constraints demand that it is one number.
float scale_operand(const Candidate& c, const ir::Node& node, size_t operand);
int32_t zero_point_operand(const Candidate& c, const ir::Node& node, size_t operand);
layer::Clamp clamp_of(const Candidate& c);

// The axis of the image that an axis of a tensor is, which may count from the last one.
size_t image_axis(int64_t axis, size_t rank);

// An addition, or a difference, whose device result does not depend on how the scaled operand is rounded.
struct AddNode {
  bool is_difference = false;
  FeatureMap lhs, rhs, out;  // dtype and zero point
  layer::AddMultipliers multipliers;
  layer::Clamp clamp;
};
AddNode read_add(const Candidate& c);
bool is_add_exact(const AddNode& add);

// How the device computes a transposed convolution: an ordinary one over the input with a row of zeros after
// each row, and a column after each column, unless the strides are 1. Along an axis whose input has one
// element the stride does not matter.
struct TransposedWindow {
  Upscale upscale = Upscale::kNone;
  int64_t pad_top = 0, pad_left = 0, pad_bottom = 0, pad_right = 0;  // may be negative
  int64_t rows = 0, columns = 0;                                     // of the input with its zeros
};
std::optional<TransposedWindow> transposed_window(const layer::Geometry& geometry);

// Where the device's accumulators stay, whatever the input is: both sums of products of one sign.
struct AccumulatorBound {
  int64_t least = 0, most = 0;
};
std::vector<AccumulatorBound> accumulator_bounds(const layer::QuantizedLayer& layer);

// ---- the block in which a kernel makes its output

// Sets block, weight order and an estimate of the bytes of the weights, whose regions are set: of the blocks
// that fit SHRAM the one with the least estimated cycles, of equal ones the one that fetches least. False
// where none fits.
bool choose_block(const Config& config, Kernel* kernel);
// The same of height and width alone: the depth and the weight order are those that the weights are encoded
// for.
bool choose_block_extent(const Config& config, Kernel* kernel);

// ---- what rows of several composites share

inline constexpr int64_t kMaxExtent = 65536;

// A node without weights, by its name in the pattern ("": the root), whose first operands are activations (0:
// all): one 8-bit dtype, images, no constants.
Rows activation_rows(const std::string& prefix, const char* node, size_t operands);
// Operands [first, last), scales and zero points, are one number each; contract tfl2.
Rows quantization_rows(const std::string& prefix, const char* node, size_t first, size_t last);
// Whether they are one number each.
bool are_scalars(const Candidate& c, const ir::Node& node, size_t first, size_t last);

// ---- constraints, by composite
Rows conv2d_constraints();
Rows depthwise_constraints();
Rows conv2d_transpose_constraints();
Rows dense_constraints();
Rows add_constraints();
Rows subtract_constraints();
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
Rows slice_constraints();
Rows take_constraints();
Rows resize_nearest_constraints();
Rows pad_constraints();
Rows transpose_constraints();
Rows softmax_constraints();

// ---- the targets: which composites and operators they take, and the program of a region

struct Row {
  std::string_view name;  // of target::composites(), or of an operator
  std::string_view note;  // for docs; may be ""
  Rows (*constraints)();
  UnitReader read;
};
std::span<const Row> rows();
std::vector<target::PatternRow> pattern_table(const Config& config);

// One for each configuration: "ethos-u55-128" and its like; option sram=.
std::span<const target::TargetKind> target_kinds();

// region: a function of the module whose nodes are operators or calls of composites of the target's table.
// RegionRefused names a node that the device cannot take.
target::CompiledRegion compile_region(const Config& config, uint64_t sram_bytes, const ir::Module& module,
                                      const ir::Function& region);

// ---- programs that Arm's compiler made (operator npu.program) as regions: nothing is compiled, everything
// is checked.

target::PatternRow program_row(const Config& config);

// region: one node, the program. PackError (QPLAN_MODEL_INVALID) with the word of the command stream that is
// wrong.
target::CompiledRegion compile_program(const Config& config, const ir::Function& region);

}  // namespace qplan::ethosu::compiler

#endif  // QPLAN_SRC_ETHOSU_COMPILER_TARGET_H_
