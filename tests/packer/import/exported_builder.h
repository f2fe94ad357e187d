// Archives of torch.export made by hand, in both forms, sound or broken.
#ifndef QPLAN_TESTS_PACKER_IMPORT_EXPORTED_BUILDER_H_
#define QPLAN_TESTS_PACKER_IMPORT_EXPORTED_BUILDER_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tests/packer/import/pytorch_builder.h"

namespace qplan::pytorch_test {

using Json = nlohmann::ordered_json;

// Arguments of nodes.
inline Json tensor(const std::string& name) { return {{"as_tensor", {{"name", name}}}}; }
inline Json tensors(const std::vector<std::string>& names) {
  Json list = Json::array();
  for (const std::string& name : names) list.push_back({{"name", name}});
  return {{"as_tensors", list}};
}
inline Json integer(int64_t value) { return {{"as_int", value}}; }
inline Json integers(const std::vector<int64_t>& values) { return {{"as_ints", values}}; }
inline Json number(double value) { return {{"as_float", value}}; }
inline Json boolean(bool value) { return {{"as_bool", value}}; }
inline Json dtype(int64_t number) { return {{"as_scalar_type", number}}; }
inline Json none() { return {{"as_none", true}}; }

// The numbers that a program has for element types.
enum ExportedType : uint8_t { kByte = 1, kChar = 2, kLong = 5, kFloat = 7 };

enum class ExportedForm : uint8_t {
  kFiles,    // serialized_*, as PyTorch 2.6 writes it
  kSaved,    // in a folder, with data/weights/model.pt
  kPayloads  // in a folder, with data/weights/weight_0, ... and model_weights_config.json
};

// A program whose graph a test writes: inputs and tensors, then nodes, then outputs.
class ExportedBuilder {
 public:
  using Arguments = std::vector<std::pair<std::string, Json>>;

  ExportedBuilder() {
    program = {{"graph_module",
                {{"graph",
                  {{"inputs", Json::array()},
                   {"outputs", Json::array()},
                   {"nodes", Json::array()},
                   {"tensor_values", Json::object()},
                   {"sym_int_values", Json::object()}}},
                 {"signature", {{"input_specs", Json::array()}, {"output_specs", Json::array()}}}}},
               {"range_constraints", Json::object()},
               {"schema_version", {{"major", 8}, {"minor", 2}}},
               {"torch_version", "2.6.0"}};
  }

  // sizes: an extent, or the text of an expression: {"s0", 3}.
  ExportedBuilder& input(const std::string& name, const Json& sizes, ExportedType type = kFloat) {
    graph()["tensor_values"][name] = meta(sizes, type);
    specs("input_specs").push_back({{"user_input", {{"arg", tensor(name)}}}});
    return *this;
  }
  // A parameter, which the graph calls p_<name>.
  ExportedBuilder& weight(const std::string& name, const std::vector<int64_t>& sizes, ExportedType type,
                          const Bytes& contents) {
    specs("input_specs")
        .push_back({{"parameter", {{"arg", {{"name", "p_" + name}}}, {"parameter_name", name}}}});
    weights_.push_back({name, sizes, type, contents});
    return *this;
  }
  // A tensor that is no parameter: a constant, which the graph calls c_<name>.
  ExportedBuilder& constant(const std::string& name, const std::vector<int64_t>& sizes, ExportedType type,
                            const Bytes& contents) {
    specs("input_specs")
        .push_back({{"tensor_constant", {{"arg", {{"name", "c_" + name}}}, {"tensor_constant_name", name}}}});
    constants_.push_back({name, sizes, type, contents});
    return *this;
  }
  // target: "aten.relu.default". The result has the name.
  ExportedBuilder& node(const std::string& target, const std::string& name, const Arguments& arguments) {
    return raw_node("torch.ops." + target, Json::array({tensor(name)}), arguments);
  }
  ExportedBuilder& raw_node(const std::string& target, const Json& outputs, const Arguments& arguments) {
    Json inputs = Json::array();
    for (const auto& [name, argument] : arguments) inputs.push_back({{"name", name}, {"arg", argument}});
    graph()["nodes"].push_back(
        {{"target", target}, {"inputs", inputs}, {"outputs", outputs}, {"metadata", Json::object()}});
    return *this;
  }
  ExportedBuilder& output(const std::string& name) {
    specs("output_specs").push_back({{"user_output", {{"arg", tensor(name)}}}});
    return *this;
  }

  Json& graph() { return program["graph_module"]["graph"]; }
  Json& specs(const char* which) { return program["graph_module"]["signature"][which]; }

  Bytes build(ExportedForm form = ExportedForm::kFiles) const {
    ZipBuilder zip;
    if (form == ExportedForm::kFiles) {
      zip.add("serialized_exported_program.json", to_bytes(program.dump()));
      zip.add("serialized_state_dict.pt", saved(weights_));
      zip.add("serialized_constants.pt", saved(constants_));
      zip.add("version", to_bytes("8.2"));
      return zip.build();
    }
    zip.add("net/models/model.json", to_bytes(program.dump()));
    add_tensors(zip, form, "weights", "weight_", weights_);
    add_tensors(zip, form, "constants", "tensor_", constants_);
    zip.add("net/archive_format", to_bytes("pt2"));
    zip.add("net/archive_version", to_bytes("0"));
    if (!byte_order.empty()) zip.add("net/byteorder", to_bytes(byte_order));
    return zip.build();
  }

  Json program;
  bool deflates = false;   // the tensors of kFiles
  std::string byte_order;  // empty: the archives do not say

 private:
  struct TensorData {
    std::string name;
    std::vector<int64_t> sizes;
    ExportedType type;
    Bytes contents;
  };

  static Json meta(const Json& sizes, ExportedType type) {
    Json extents = Json::array(), strides = Json::array();
    int64_t stride = 1;
    for (size_t i = sizes.size(); i-- > 0;) {
      strides.insert(strides.begin(), integer(stride));
      if (sizes[i].is_number()) stride *= sizes[i].get<int64_t>();
    }
    for (const Json& size : sizes) {
      extents.push_back(size.is_number()
                            ? integer(size.get<int64_t>())
                            : Json{{"as_expr", {{"expr_str", size}, {"hint", {{"as_int", 2}}}}}});
    }
    return {{"dtype", type},
            {"sizes", extents},
            {"requires_grad", false},
            {"strides", strides},
            {"storage_offset", integer(0)},
            {"device", {{"type", "cpu"}}},
            {"layout", 7}};
  }

  // As torch.save writes a dict of tensors.
  Bytes saved(const std::vector<TensorData>& tensors) const {
    PickleWriter pickle;
    ZipBuilder zip;
    std::vector<std::pair<std::string, Bytes>> storages;
    pickle.op('}').op('(');
    for (const TensorData& data : tensors) {
      const char* storage = data.type == kByte   ? "ByteStorage"
                            : data.type == kChar ? "CharStorage"
                            : data.type == kLong ? "LongStorage"
                                                 : "FloatStorage";
      const int64_t width = data.type == kFloat ? 4 : data.type == kLong ? 8 : 1;
      std::vector<int64_t> strides(data.sizes.size());
      int64_t stride = 1;
      for (size_t i = strides.size(); i-- > 0; stride *= data.sizes[i]) strides[i] = stride;
      const std::string key = std::to_string(storages.size());
      pickle.text(data.name).tensor(storage, key, std::ssize(data.contents) / width, 0, data.sizes, strides);
      storages.emplace_back(key, data.contents);
    }
    pickle.op('u');
    zip.add("archive/data.pkl", pickle.stop());
    for (const auto& [key, contents] : storages) zip.add("archive/data/" + key, contents, deflates);
    if (!byte_order.empty()) zip.add("archive/byteorder", to_bytes(byte_order));
    return zip.build();
  }

  void add_tensors(ZipBuilder& zip, ExportedForm form, const std::string& what, const std::string& prefix,
                   const std::vector<TensorData>& tensors) const {
    const std::string folder = "net/data/" + what + "/";
    if (form == ExportedForm::kSaved) {
      zip.add(folder + "model.pt", saved(tensors));
      return;
    }
    Json config = Json::object();
    for (size_t i = 0; i < tensors.size(); ++i) {
      zip.add(folder + prefix + std::to_string(i), tensors[i].contents);
      config[tensors[i].name] = {{"path_name", prefix + std::to_string(i)},
                                 {"is_param", true},
                                 {"use_pickle", false},
                                 {"tensor_meta", meta(tensors[i].sizes, tensors[i].type)}};
    }
    zip.add(folder + "model_" + what + "_config.json", to_bytes(Json{{"config", config}}.dump()));
  }

  std::vector<TensorData> weights_, constants_;
};

// A network that PT2E quantised: x [1, 2, 4, 4] -> convolution 2x2 of 3 channels, padding 1, ReLU -> its sum
// with itself; the result is the int8 tensor. Weights have one scale per channel.
struct QuantisedNetwork {
  float input_scale = 0.05f;
  int32_t input_zero_point = -3;
  std::vector<int8_t> weights = {17, -127, 33,  4,  -90, 55,  127, -8,   61, -44, 5,   102,
                                 -6, 78,   -71, 19, 88,  -25, 40,  -113, 9,  64,  -37, 2};  // [3, 2, 2, 2]
  std::vector<float> weight_scales = {0.01f, 0.007f, 0.0125f};
  std::vector<float> bias = {0.3f, -0.51f, 0.0725f};
  float conv_scale = 0.021f;
  int32_t conv_zero_point = -128;
  float sum_scale = 0.04f;
  int32_t sum_zero_point = -100;

  ExportedBuilder builder() const {
    const auto quantise = [](const std::string& from, double scale, int64_t zero_point) {
      return ExportedBuilder::Arguments{
          {"input", tensor(from)},      {"scale", number(scale)},    {"zero_point", integer(zero_point)},
          {"quant_min", integer(-128)}, {"quant_max", integer(127)}, {"dtype", dtype(kChar)}};
    };
    const std::string ns = "quantized_decomposed.", q = ns + "quantize_per_tensor.default",
                      dq = ns + "dequantize_per_tensor.default";
    const double in = static_cast<double>(input_scale), conv = static_cast<double>(conv_scale),
                 sum = static_cast<double>(sum_scale);
    ExportedBuilder b;
    b.weight("w", {3, 2, 2, 2}, kChar, bytes_of(weights));
    b.weight("scales", {3}, kFloat, bytes_of(weight_scales));
    b.weight("points", {3}, kLong, bytes_of(std::vector<int64_t>{0, 0, 0}));
    b.weight("bias", {3}, kFloat, bytes_of(bias));
    b.input("x", {"s0", 2, 4, 4});
    b.program["range_constraints"]["s0"] = {{"min_val", 0}, {"max_val", nullptr}};
    b.node(ns + "dequantize_per_channel.default", "dw",
           {{"input", tensor("p_w")},
            {"scales", tensor("p_scales")},
            {"zero_points", tensor("p_points")},
            {"axis", integer(0)},
            {"quant_min", integer(-127)},
            {"quant_max", integer(127)},
            {"dtype", dtype(kChar)}});
    b.node(q, "q", quantise("x", in, input_zero_point));
    b.node(dq, "dx", quantise("q", in, input_zero_point));
    b.node("aten.conv2d.default", "conv",
           {{"input", tensor("dx")},
            {"weight", tensor("dw")},
            {"bias", tensor("p_bias")},
            {"stride", integers({1, 1})},
            {"padding", integers({1, 1})}});
    b.node("aten.relu.default", "relu", {{"self", tensor("conv")}});
    b.node(q, "q1", quantise("relu", conv, conv_zero_point));
    b.node(dq, "d1", quantise("q1", conv, conv_zero_point));
    b.node(dq, "d2", quantise("q1", conv, conv_zero_point));
    b.node("aten.add.Tensor", "sum", {{"self", tensor("d1")}, {"other", tensor("d2")}});
    b.node(q, "q2", quantise("sum", sum, sum_zero_point));
    b.output("q2");
    return b;
  }
};

}  // namespace qplan::pytorch_test

#endif  // QPLAN_TESTS_PACKER_IMPORT_EXPORTED_BUILDER_H_
