// The extents of a layer: those of a convolution, a fully connected layer, or a pool over windows.
#ifndef QPLAN_SRC_PACKER_LAYER_GEOMETRY_H_
#define QPLAN_SRC_PACKER_LAYER_GEOMETRY_H_

#include <cstdint>

#include "src/packer/ir/module.h"
#include "src/packer/op/shape.h"

namespace qplan::layer {

// A fully connected layer is a 1x1 convolution over a row of positions.
struct Geometry {
  int64_t batch = 1;
  int64_t in_h = 1, in_w = 1, in_c = 1;
  int64_t out_h = 1, out_w = 1, out_c = 1;
  int64_t groups = 1;
  op::Window2d window;

  int64_t padded_h() const { return in_h + window.pad_top + window.pad_bottom; }
  int64_t padded_w() const { return in_w + window.pad_left + window.pad_right; }
  int64_t taps() const { return window.kernel_h * window.kernel_w; }
  // Positions of the input that one position of the output looks at.
  int64_t window_h() const { return (window.kernel_h - 1) * window.dilation_h + 1; }
  int64_t window_w() const { return (window.kernel_w - 1) * window.dilation_w + 1; }
  bool is_depthwise() const { return groups > 1 && groups == in_c; }
};

// The layouts may be any that the IR knows.
Geometry product_geometry(const ir::Function& function, const ir::Node& product);  // qnn.conv2d, qnn.dense
Geometry pool_geometry(const ir::Function& function, const ir::Node& pool);
// A mean over height and width: one window over the whole image.
Geometry mean_geometry(const ir::Function& function, const ir::Node& mean);

// Activations are NHWC and the weights of a convolution OHWI. node: a product or a pool.
bool has_canonical_layout(const ir::Node& node);

}  // namespace qplan::layer

#endif  // QPLAN_SRC_PACKER_LAYER_GEOMETRY_H_
