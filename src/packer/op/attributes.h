// What attributes of nodes say, as numbers and structs: axes, windows and slices in normal form, and
// operators whose insides qplan does not know. Importers, lowerings and devices read them here instead of
// interpreting attributes a second time.
#ifndef QPLAN_SRC_PACKER_OP_ATTRIBUTES_H_
#define QPLAN_SRC_PACKER_OP_ATTRIBUTES_H_

#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/packer/ir/module.h"

namespace qplan::op {

// axis in [-rank, rank) as [0, rank); PackError otherwise.
int64_t normalized_axis(int64_t axis, size_t rank);
// Sorted, each once; all axes for an empty list. PackError when one is out of range or named twice.
ir::Ints normalized_axes(const ir::Ints& axes, size_t rank);

// Where the axes of a four-dimensional tensor stand. For activations c is the channel axis; for weights o and
// i.
struct DataLayout {
  size_t n, h, w, c;
};
struct WeightLayout {
  size_t o, h, w, i;
};
DataLayout data_layout(std::string_view name);      // "NCHW", "NHWC"
WeightLayout weight_layout(std::string_view name);  // "OIHW", "OHWI", "HWIO"

// A convolution's or pool's window over height and width.
struct Window2d {
  int64_t kernel_h = 1, kernel_w = 1;
  int64_t stride_h = 1, stride_w = 1;
  int64_t dilation_h = 1, dilation_w = 1;
  int64_t pad_top = 0, pad_left = 0, pad_bottom = 0, pad_right = 0;

  int64_t out_h(int64_t in_h) const;  // at least 1; PackError where the window does not fit
  int64_t out_w(int64_t in_w) const;
  bool is_padded() const { return (pad_top | pad_left | pad_bottom | pad_right) != 0; }
};
Window2d conv2d_window(const ir::Node& node, const ir::TensorType& weight);  // qnn.conv2d, nn.conv2d
Window2d pool2d_window(const ir::Node& node);                                // the pools
// The window of any operator that has one (AttrRole::kWindow); nullopt for the others.
std::optional<Window2d> window_of(const ir::Function& function, const ir::Node& node);
// How much padding after the data completes the last window of a pool that rounds its number of outputs up,
// as attribute ceil_mode of PyTorch and ONNX asks. A window that would begin after data and padding is left
// out.
int64_t ceil_padding(int64_t extent, int64_t pad_begin, int64_t pad_end, int64_t covered, int64_t stride);
// The axis of a product's output channels (is_product): in its weights, and in its result.
size_t weight_output_axis(const ir::Node& product);
size_t result_channel_axis(const ir::Node& product, size_t result_rank);
// The window as attributes, all of them; `kernel` is the name of that of its extents.
void write_window(const Window2d& window, const char* kernel, ir::Attrs* attrs);

// One axis of a strided_slice: count elements from begin on, step apart. A step may be negative, a count 0.
struct SliceRange {
  int64_t begin = 0, step = 1, count = 0;
};
// The ranges of every axis in order; an axis that the node does not name is taken whole. PackError for lists
// of different lengths, a step of 0, an axis named twice.
std::vector<SliceRange> slice_ranges(const ir::Node& node, const ir::Shape& shape);

// NumPy's broadcasting; PackError naming the extents that do not fit.
ir::Shape broadcast_shape(const ir::Shape& a, const ir::Shape& b);

// ---- operators whose insides qplan does not know ----

// `custom`: an operator of the application's (qplan/custom_operator.h).

// An option: numbers, which are finite, or a text.
struct CustomOption {
  std::string name;
  std::vector<double> numbers = {};
  std::optional<std::string> text = std::nullopt;
  bool operator==(const CustomOption&) const = default;
};

struct CustomAttributes {
  std::string name;  // of the operator: "TFLite_Detection_PostProcess"
  std::vector<CustomOption> options;
  std::vector<ir::TensorType> outputs;
  // One for each input, then one for each output; a scale of 0 says that the tensor is not quantised.
  std::vector<float> scales;
  std::vector<int32_t> zero_points;
  uint64_t scratch_bytes = 0;
  uint64_t state_bytes = 0;  // above 0: the last operand and the last result are a state beside those
};

// What a plan can hold.
inline constexpr size_t kMaxCustomOptions = 256;

// The dtypes of operands and results of such operators.
inline constexpr std::initializer_list<ir::DType> kDeclaredDTypes = {ir::kInt8,  ir::kUint8, ir::kInt16,
                                                                     ir::kInt32, ir::kInt64, ir::kFloat32};
// The results that attributes `shapes` and `dtypes` declare, of operators whose results nothing else says.
std::vector<ir::TensorType> declared_results(const ir::Node& node);

ir::Attrs attrs_of(const CustomAttributes& custom);
// PackError (QPLAN_MODEL_INVALID) with a text that begins after the node's name.
CustomAttributes custom_of(const ir::Node& node);

// `npu.program`: a program that another compiler made for an NPU, as the attributes of a node have it. It has
// no other form: which operators became it is not known.

inline constexpr std::string_view kProgramOperator = "npu.program";

struct ProgramAttributes {
  std::string format;  // of the program's bytes: "ethos-u"
  std::string device;  // that it was made for: "ethos-u55-128"
  std::vector<ir::TensorType> outputs;
  bool has_constants = false;
  // The memory that it works in, and a faster one beside it; bytes.
  uint64_t memory_bytes = 0, fast_memory_bytes = 0;
  // Where its inputs are in the memory before it runs, and its outputs after it.
  std::vector<uint64_t> input_offsets, output_offsets;
};

ir::Attrs attrs_of(const ProgramAttributes& program);
// PackError (QPLAN_MODEL_INVALID) with a text that begins after the node's name.
ProgramAttributes program_of(const ir::Node& node);

// The node's operands: the program and its constants, which are constants, then its inputs.
inline size_t first_input(const ProgramAttributes& program) { return program.has_constants ? 2 : 1; }

}  // namespace qplan::op

#endif  // QPLAN_SRC_PACKER_OP_ATTRIBUTES_H_
