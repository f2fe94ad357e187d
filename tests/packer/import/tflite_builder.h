// Writes small .tflite files for tests, tensor by tensor, operator by operator.
#ifndef QPLAN_TESTS_PACKER_IMPORT_TFLITE_BUILDER_H_
#define QPLAN_TESTS_PACKER_IMPORT_TFLITE_BUILDER_H_

#include <cstring>
#include <string>
#include <vector>

#include "src/packer/import/tflite/tflite_subset_generated.h"

namespace qplan::tflite_test {

struct TensorSpec {
  std::string name;
  tflite::TensorType type = tflite::TensorType_INT8;
  std::vector<int32_t> shape = {};  // empty: a number
  std::vector<float> scales = {};
  std::vector<int64_t> zero_points = {};
  int32_t quantized_dimension = 0;
  std::vector<uint8_t> data = {};  // empty: not a constant
  bool is_variable = false;
  flatbuffers::Offset<tflite::SparsityParameters> sparsity = 0;
  std::vector<int32_t> signature = {};  // empty: absent
  uint32_t buffer = 0;  // if data is empty: the index of a buffer that another tensor has added
};

template <typename T>
std::vector<uint8_t> bytes_of(const std::vector<T>& values) {
  std::vector<uint8_t> bytes(values.size() * sizeof(T));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

class TfliteBuilder {
 public:
  flatbuffers::FlatBufferBuilder& fbb() { return fbb_; }

  // The index of the tensor.
  int32_t tensor(const TensorSpec& spec) {
    uint32_t buffer = spec.buffer;
    if (!spec.data.empty()) {
      buffer = static_cast<uint32_t>(buffers_.size());
      buffers_.push_back(spec.data);
    }
    flatbuffers::Offset<tflite::QuantizationParameters> quantization;
    if (!spec.scales.empty()) {
      quantization = tflite::CreateQuantizationParametersDirect(
          fbb_, nullptr, nullptr, &spec.scales, &spec.zero_points, tflite::QuantizationDetails_NONE, 0,
          spec.quantized_dimension);
    }
    tensors_.push_back(tflite::CreateTensorDirect(fbb_, &spec.shape, spec.type, buffer, spec.name.c_str(),
                                                  quantization, spec.is_variable, spec.sparsity,
                                                  spec.signature.empty() ? nullptr : &spec.signature));
    return static_cast<int32_t>(tensors_.size()) - 1;
  }
  // Another int8 tensor over an existing buffer.
  int32_t tensor_of_buffer(const std::string& name, const std::vector<int32_t>& shape, uint32_t buffer) {
    tensors_.push_back(
        tflite::CreateTensorDirect(fbb_, &shape, tflite::TensorType_INT8, buffer, name.c_str()));
    return static_cast<int32_t>(tensors_.size()) - 1;
  }
  int32_t activation(const std::string& name, std::vector<int32_t> shape, float scale, int64_t zero_point,
                     tflite::TensorType type = tflite::TensorType_INT8) {
    return tensor({.name = name,
                   .type = type,
                   .shape = std::move(shape),
                   .scales = {scale},
                   .zero_points = {zero_point}});
  }
  int32_t ints(const std::string& name, const std::vector<int32_t>& values) {
    return tensor({.name = name,
                   .type = tflite::TensorType_INT32,
                   .shape = {static_cast<int32_t>(values.size())},
                   .data = bytes_of(values)});
  }

  // code 32 with a custom_code: a custom operator.
  void op(int32_t code, const std::vector<int32_t>& inputs, const std::vector<int32_t>& outputs,
          tflite::BuiltinOptions options_type = tflite::BuiltinOptions_NONE,
          flatbuffers::Offset<void> options = 0, const char* custom_code = nullptr,
          const std::vector<uint8_t>& custom_options = {}) {
    const auto narrow = static_cast<int8_t>(code < 127 ? code : 127);
    codes_.push_back(tflite::CreateOperatorCodeDirect(fbb_, narrow, custom_code, 1,
                                                      static_cast<tflite::BuiltinOperator>(code)));
    operators_.push_back(tflite::CreateOperatorDirect(fbb_, static_cast<uint32_t>(codes_.size()) - 1, &inputs,
                                                      &outputs, options_type, options,
                                                      custom_options.empty() ? nullptr : &custom_options));
  }

  // A named buffer beside the network.
  void metadata(const std::string& name, const std::vector<uint8_t>& bytes) {
    metadata_.push_back(
        tflite::CreateMetadataDirect(fbb_, name.c_str(), static_cast<uint32_t>(buffers_.size())));
    buffers_.push_back(bytes);
  }

  // What follows belongs to the next subgraph; the first one is the model's main.
  void end_subgraph(const std::vector<int32_t>& inputs, const std::vector<int32_t>& outputs) {
    graphs_.push_back(tflite::CreateSubGraphDirect(fbb_, &tensors_, &inputs, &outputs, &operators_, "graph"));
    tensors_.clear();
    operators_.clear();
  }

  std::vector<uint8_t> finish(const std::vector<int32_t>& inputs, const std::vector<int32_t>& outputs,
                              uint32_t version = 3) {
    std::vector<flatbuffers::Offset<tflite::Buffer>> buffers;
    for (const std::vector<uint8_t>& data : buffers_) {
      fbb_.ForceVectorAlignment(data.size(), 1, 16);
      const auto vector = data.empty() ? 0 : fbb_.CreateVector(data);
      buffers.push_back(tflite::CreateBuffer(fbb_, vector));
    }
    end_subgraph(inputs, outputs);
    fbb_.Finish(tflite::CreateModelDirect(fbb_, version, &codes_, &graphs_, "test", &buffers, nullptr,
                                          metadata_.empty() ? nullptr : &metadata_),
                "TFL3");
    return {fbb_.GetBufferPointer(), fbb_.GetBufferPointer() + fbb_.GetSize()};
  }

 private:
  flatbuffers::FlatBufferBuilder fbb_;
  std::vector<std::vector<uint8_t>> buffers_{{}};  // buffer 0 is empty by convention
  std::vector<flatbuffers::Offset<tflite::Tensor>> tensors_;
  std::vector<flatbuffers::Offset<tflite::OperatorCode>> codes_;
  std::vector<flatbuffers::Offset<tflite::Operator>> operators_;
  std::vector<flatbuffers::Offset<tflite::SubGraph>> graphs_;
  std::vector<flatbuffers::Offset<tflite::Metadata>> metadata_;
};

// One convolution: [1, 3, 3, 2] -> 3 channels, kernel 2x2, SAME, as tests want it different from.
struct ConvSpec {
  tflite::TensorType type = tflite::TensorType_INT8;
  float input_scale = 0.5f, output_scale = 0.25f, bias_scale = 0.125f;
  int64_t input_zero_point = 3, output_zero_point = -5;
  std::vector<float> weight_scales = {0.25f};
  std::vector<int64_t> weight_zero_points = {0};
  int32_t weight_axis = 0;
  tflite::Padding padding = tflite::Padding_SAME;
  int32_t stride = 1, dilation = 1;
  tflite::ActivationFunctionType activation = tflite::ActivationFunctionType_NONE;
  bool bias = true;
  std::vector<int32_t> output_shape = {1, 3, 3, 3};
};

inline std::vector<uint8_t> conv_model(const ConvSpec& spec) {
  TfliteBuilder b;
  const int32_t x = b.activation("x", {1, 3, 3, 2}, spec.input_scale, spec.input_zero_point, spec.type);
  std::vector<uint8_t> weights(3 * 2 * 2 * 2);
  for (size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<uint8_t>(i + 1);
  const int32_t w = b.tensor({.name = "w",
                              .type = spec.type,
                              .shape = {3, 2, 2, 2},
                              .scales = spec.weight_scales,
                              .zero_points = spec.weight_zero_points,
                              .quantized_dimension = spec.weight_axis,
                              .data = weights});
  // The axis of a bias with one scale says nothing, here as in person_detect.
  const int32_t bias = b.tensor({.name = "b",
                                 .type = tflite::TensorType_INT32,
                                 .shape = {3},
                                 .scales = {spec.bias_scale},
                                 .zero_points = {0},
                                 .quantized_dimension = 3,
                                 .data = bytes_of<int32_t>({10, -20, 30})});
  const int32_t y =
      b.activation("y", spec.output_shape, spec.output_scale, spec.output_zero_point, spec.type);
  b.op(tflite::BuiltinOperator_CONV_2D, {x, w, spec.bias ? bias : -1}, {y},
       tflite::BuiltinOptions_Conv2DOptions,
       tflite::CreateConv2DOptions(b.fbb(), spec.padding, spec.stride, spec.stride, spec.activation,
                                   spec.dilation, spec.dilation)
           .Union());
  return b.finish({x}, {y});
}

}  // namespace qplan::tflite_test

#endif  // QPLAN_TESTS_PACKER_IMPORT_TFLITE_BUILDER_H_
