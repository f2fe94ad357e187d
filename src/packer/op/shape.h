// Axes and windows in normal form. Lowerings read them here instead of interpreting attributes a second time.
#ifndef QPLAN_SRC_PACKER_OP_SHAPE_H_
#define QPLAN_SRC_PACKER_OP_SHAPE_H_

#include <array>
#include <cstdint>
#include <optional>
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

}  // namespace qplan::op

#endif  // QPLAN_SRC_PACKER_OP_SHAPE_H_
