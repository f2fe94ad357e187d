#include "benchmarks/common/packed_model.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string_view>

#include "src/packer/op/attributes.h"
#include "src/packer/op/op_def.h"
#include "src/packer/pipeline/pipeline.h"

namespace qplan::benchmarks {
namespace {

// Operators one beside the other, of every dtype, which are no network to make integers of.
constexpr std::string_view kOperators = "operators.relay";

std::vector<uint8_t> read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("'" + path + "' cannot be read");
  return {std::istreambuf_iterator<char>(file), {}};
}

// Canonical data is NHWC, canonical weights are OHWI.
std::vector<Convolution> convolutions_of(const ir::Function& main) {
  std::vector<Convolution> found;
  for (const ir::Node& node : main.nodes()) {
    if (node.op == nullptr || node.op->name != "qnn.conv2d") continue;
    const ir::Shape& input = main.type(node.operands[0]).shape;
    const ir::Shape& output = main.type(node.results[0]).shape;
    const op::Window2d window = op::conv2d_window(node, main.type(node.operands[1]));
    found.push_back({input[0], input[1], input[2], input[3], output[1], output[2], output[3], window.kernel_h,
                     window.kernel_w, window.stride_h, window.stride_w, window.dilation_h, window.dilation_w,
                     window.pad_top, window.pad_left, op::attr_int(node, "groups")});
  }
  return found;
}

}  // namespace

PackedModel::PackedModel(const std::string& path, schedule::Fuse fuse)
    : name_(std::filesystem::path(path).stem().string()) {
  const std::vector<uint8_t> model = read_file(path);
  PackOptions options;
  options.fuse = fuse;
  options.keep_float = path.ends_with(kOperators);
  if (path.ends_with(".relay")) options.import.synthesize_constants = 1;  // other files have theirs
  bytes_ = pack(model, path, options);
  options.skip = {"remove_dead_channels"};  // a peer computes the model's
  convolutions_ = convolutions_of(canonical_module(model, path, options).main());
  Error error;
  if (view_.open(bytes_.data(), bytes_.size(), false, &error) < 0) throw std::runtime_error(error.text());
}

}  // namespace qplan::benchmarks
