// One input file of `qplan run` -> the bytes of one input tensor.
#ifndef TOOLS_INPUT_H_
#define TOOLS_INPUT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "qplan/qplan.h"

namespace qplan::tools {

// The conversion of a picture's bytes: (byte - mean) / std, one value for all channels or one per channel.
// Empty: 8-bit inputs take the byte itself (int8: byte - 128).
struct Normalisation {
  std::vector<double> mean;
  std::vector<double> std;
  [[nodiscard]] bool empty() const { return mean.empty() && std.empty(); }
};

// "127.5" or "123.7,116.3,103.5"; option names it in errors. UsageError.
std::vector<double> parse_channel_values(const std::string& text, const std::string& option);

// Where a picture's pixels go in a tensor of this shape.
struct ImageLayout {
  uint32_t height = 0;
  uint32_t width = 0;
  uint32_t channels = 0;  // 1 or 3
  bool channels_first = false;
};
// [1,h,w,c], [1,c,h,w], [h,w,c], [c,h,w] or [1,h,w] with c 1 or 3. Failure, with label, for other shapes.
ImageLayout image_layout(const qplan_tensor_info& info, const std::string& label);

// path is a .npy, a picture, or raw bytes, by its extension. label describes the tensor in errors.
std::vector<uint8_t> load_input(const std::string& path, const qplan_tensor_info& info,
                                const std::string& label, const Normalisation& normalisation);

}  // namespace qplan::tools

#endif  // TOOLS_INPUT_H_
