// Windows of convolutions and pools as their attributes define them, over the height and width of rank 4.
#ifndef QPLAN_SRC_PACKER_IMPORT_ONNX_WINDOW_H_
#define QPLAN_SRC_PACKER_IMPORT_ONNX_WINDOW_H_

#include "src/packer/import/onnx/op_context.h"

namespace qplan::onnx {

enum class Layout { kNchw, kNhwc };

inline std::string layout_name(Layout layout) { return layout == Layout::kNchw ? "NCHW" : "NHWC"; }
// Attribute channels_last of ONNX Runtime's own operators.
Layout layout_of(const OpContext& op);

// Height and width of rank 4; Unsupported for other ranks, by name: "rank 3 data".
ir::Ints spatial(const ir::Shape& shape, Layout layout);

struct Window {
  ir::Ints kernel, strides, dilations;  // height, width
  ir::Ints padding;                     // top, left, bottom, right
  bool ceil_padding = false;            // some of it is there only for attribute ceil_mode
};
// kernel: the weights' extents; where it is empty attribute kernel_shape must be there. Reads auto_pad,
// ceil_mode, dilations, kernel_shape, pads, strides.
Window read_window(const OpContext& op, const ir::Ints& input, const ir::Ints& kernel);

}  // namespace qplan::onnx

#endif  // QPLAN_SRC_PACKER_IMPORT_ONNX_WINDOW_H_
