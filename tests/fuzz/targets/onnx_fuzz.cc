// A .onnx model, to the packer; what packs runs. Mutants are ModelProtos.
#include <onnx/onnx_pb.h>

#include "src/packer/import/onnx/op_context.h"
#include "tests/fuzz/model_oracle.h"
#include "tests/fuzz/mutators/protobuf.h"

namespace qplan::fuzz {
namespace {

constexpr size_t kMostBytes = 1 << 16;

const ProtobufMutator& mutator() {
  static const ProtobufMutator kMutator = [] {
    std::vector<std::string> words = {"",
                                      "com.microsoft",
                                      "ai.onnx",
                                      "activations",
                                      "allowzero",
                                      "alpha",
                                      "antialias",
                                      "auto_pad",
                                      "axes",
                                      "axis",
                                      "beta",
                                      "broadcast",
                                      "ceil_mode",
                                      "channels_last",
                                      "clip",
                                      "coordinate_transformation_mode",
                                      "count_include_pad",
                                      "cubic_coeff_a",
                                      "dilations",
                                      "direction",
                                      "end",
                                      "ends",
                                      "epsilon",
                                      "exclude_outside",
                                      "group",
                                      "hidden_size",
                                      "input_forget",
                                      "kernel_shape",
                                      "keepdims",
                                      "layout",
                                      "linear_before_reset",
                                      "max",
                                      "min",
                                      "mode",
                                      "momentum",
                                      "nearest_mode",
                                      "noop_with_empty_axes",
                                      "num_outputs",
                                      "opset",
                                      "output_dtype",
                                      "pads",
                                      "perm",
                                      "ratio",
                                      "saturate",
                                      "shape",
                                      "split",
                                      "start",
                                      "starts",
                                      "storage_order",
                                      "strides",
                                      "to",
                                      "training_mode",
                                      "transA",
                                      "transB",
                                      "value",
                                      "value_float",
                                      "value_floats",
                                      "value_int",
                                      "value_ints",
                                      "block_size",
                                      "SAME_UPPER",
                                      "SAME_LOWER",
                                      "VALID",
                                      "NOTSET",
                                      "forward",
                                      "reverse",
                                      "bidirectional",
                                      "constant",
                                      "reflect",
                                      "edge",
                                      "wrap",
                                      "linear",
                                      "nearest",
                                      "cubic",
                                      "half_pixel",
                                      "align_corners",
                                      "asymmetric",
                                      "pytorch_half_pixel"};
    for (const onnx::ImportRow& row : onnx::rows()) words.emplace_back(row.op_type);
    return ProtobufMutator(words);
  }();
  return kMutator;
}

size_t put(const google::protobuf::Message& model, uint8_t* to, size_t max_size) {
  const size_t size = model.ByteSizeLong();
  if (size > max_size || !model.SerializePartialToArray(to, static_cast<int>(size))) return 0;
  return size;
}

// A file that does not parse is reported by its fields, not logged.
const google::protobuf::LogSilencer kSilence;

}  // namespace
}  // namespace qplan::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace qplan::fuzz;
  if (size > kMostBytes) return -1;
  check_model(data, size, "model.onnx", pack_options());
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned int seed) {
  using namespace qplan::fuzz;
  Random random(seed);
  ::onnx::ModelProto model;
  if (random.chance(0.05) || !model.ParsePartialFromArray(data, static_cast<int>(size)))
    return LLVMFuzzerMutate(data, size, max_size);
  mutator().mutate(random, &model);
  const size_t changed = put(model, data, max_size);
  return changed != 0 ? changed : LLVMFuzzerMutate(data, size, max_size);
}

extern "C" size_t LLVMFuzzerCustomCrossOver(const uint8_t* data1, size_t size1, const uint8_t* data2,
                                            size_t size2, uint8_t* out, size_t max_out_size,
                                            unsigned int seed) {
  using namespace qplan::fuzz;
  Random random(seed);
  ::onnx::ModelProto model, other;
  if (!model.ParsePartialFromArray(data1, static_cast<int>(size1)) ||
      !other.ParsePartialFromArray(data2, static_cast<int>(size2)))
    return 0;
  ProtobufMutator::cross(random, &model, &other);
  return put(model, out, max_out_size);
}
