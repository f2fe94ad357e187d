// Writes ONNX files byte by byte: protobuf's wire format needs no generated classes, and broken files can be
// written too. Field numbers are those of onnx.proto.
#ifndef QPLAN_TESTS_PACKER_IMPORT_ONNX_BUILDER_H_
#define QPLAN_TESTS_PACKER_IMPORT_ONNX_BUILDER_H_

#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace qplan::onnx_test {

// TensorProto.DataType
inline constexpr int kFloat = 1, kUint8 = 2, kInt8 = 3, kInt16 = 5, kInt32 = 6, kInt64 = 7, kString = 8,
                     kBool = 9, kFloat16 = 10, kDouble = 11, kUint32 = 12, kUint64 = 13;

// One message: fields in the order they are written.
class Message {
 public:
  Message& number(uint32_t field, int64_t value) {
    varint(uint64_t{field} << 3);
    varint(static_cast<uint64_t>(value));
    return *this;
  }
  Message& real(uint32_t field, float value) {
    varint(uint64_t{field} << 3 | 5);
    raw(&value, sizeof value);
    return *this;
  }
  Message& bytes(uint32_t field, std::string_view value) {
    varint(uint64_t{field} << 3 | 2);
    varint(value.size());
    text_ += value;
    return *this;
  }
  Message& message(uint32_t field, const Message& value) { return bytes(field, value.text_); }
  // Numbers in a row.
  template <typename T>
  Message& packed(uint32_t field, const std::vector<T>& values) {
    Message row;
    for (const T value : values) {
      if constexpr (std::is_floating_point_v<T>) {
        row.raw(&value, sizeof value);
      } else {
        row.varint(static_cast<uint64_t>(static_cast<int64_t>(value)));
      }
    }
    return message(field, row);
  }
  const std::string& text() const { return text_; }

 private:
  void varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) text_ += static_cast<char>(value | 0x80);
    text_ += static_cast<char>(value);
  }
  void raw(const void* data, size_t size) { text_.append(static_cast<const char*>(data), size); }

  std::string text_;
};

template <typename T>
std::string raw_bytes(const std::vector<T>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

inline Message tensor_header(std::string_view name, int data_type, const std::vector<int64_t>& dims) {
  Message tensor;
  for (const int64_t extent : dims) tensor.number(1, extent);
  tensor.number(2, data_type);
  if (!name.empty()) tensor.bytes(8, name);
  return tensor;
}
// Values as little-endian bytes.
template <typename T>
Message tensor(std::string_view name, int data_type, const std::vector<int64_t>& dims,
               const std::vector<T>& values) {
  return tensor_header(name, data_type, dims).bytes(9, raw_bytes(values));
}

inline Message attr(std::string_view name, int type) { return Message().bytes(1, name).number(20, type); }
inline Message attr_int(std::string_view name, int64_t value) { return attr(name, 2).number(3, value); }
inline Message attr_float(std::string_view name, float value) { return attr(name, 1).real(2, value); }
inline Message attr_string(std::string_view name, std::string_view value) {
  return attr(name, 3).bytes(4, value);
}
inline Message attr_tensor(std::string_view name, const Message& value) {
  return attr(name, 4).message(5, value);
}
inline Message attr_ints(std::string_view name, const std::vector<int64_t>& values) {
  Message attribute = attr(name, 7);
  for (const int64_t value : values) attribute.number(8, value);
  return attribute;
}
inline Message attr_floats(std::string_view name, const std::vector<float>& values) {
  Message attribute = attr(name, 6);
  for (const float value : values) attribute.real(7, value);
  return attribute;
}

// In the body of a function: the function's attribute `reference` under the operator's name for it.
inline Message attr_reference(std::string_view name, int type, std::string_view reference) {
  return attr(name, type).bytes(21, reference);
}

using Names = std::vector<std::string>;

inline Message node_message(std::string_view op_type, const Names& inputs, const Names& outputs,
                            const std::vector<Message>& attributes = {}, std::string_view domain = "") {
  Message node;
  for (const std::string& name : inputs) node.bytes(1, name);
  for (const std::string& name : outputs) node.bytes(2, name);
  node.bytes(4, op_type);
  for (const Message& attribute : attributes) node.message(5, attribute);
  if (!domain.empty()) node.bytes(7, domain);
  return node;
}

class OnnxBuilder {
 public:
  explicit OnnxBuilder(int64_t opset = 13) { import_opset("", opset); }

  OnnxBuilder& import_opset(std::string_view domain, int64_t version) {
    opsets_.push_back(Message().bytes(1, domain).number(2, version));
    return *this;
  }
  // An extent below 0 is open.
  OnnxBuilder& input(std::string_view name, int data_type, const std::vector<int64_t>& shape) {
    graph_.message(11, value_info(name, data_type, shape));
    return *this;
  }
  OnnxBuilder& output(std::string_view name, int data_type, const std::vector<int64_t>& shape) {
    graph_.message(12, value_info(name, data_type, shape));
    return *this;
  }
  // The type of a tensor between the inputs and the outputs.
  OnnxBuilder& value(std::string_view name, int data_type, const std::vector<int64_t>& shape) {
    graph_.message(13, value_info(name, data_type, shape));
    return *this;
  }
  OnnxBuilder& initializer(const Message& tensor) {
    graph_.message(5, tensor);
    return *this;
  }
  template <typename T>
  OnnxBuilder& constant(std::string_view name, int data_type, const std::vector<int64_t>& shape,
                        const std::vector<T>& values) {
    return initializer(tensor(name, data_type, shape, values));
  }
  OnnxBuilder& scale(std::string_view name, float value) {
    return constant<float>(name, kFloat, {}, {value});
  }
  OnnxBuilder& zero_point(std::string_view name, int8_t value) {
    return constant<int8_t>(name, kInt8, {}, {value});
  }
  OnnxBuilder& ints(std::string_view name, const std::vector<int64_t>& values) {
    return constant<int64_t>(name, kInt64, {static_cast<int64_t>(values.size())}, values);
  }
  OnnxBuilder& node(std::string_view op_type, const Names& inputs, const Names& outputs,
                    const std::vector<Message>& attributes = {}, std::string_view domain = "") {
    graph_.message(1, node_message(op_type, inputs, outputs, attributes, domain));
    return *this;
  }
  // A FunctionProto.
  OnnxBuilder& function(const Message& function) {
    functions_.push_back(function);
    return *this;
  }
  Message& graph() { return graph_; }

  std::vector<uint8_t> finish() const {
    Message model;
    model.number(1, 8).message(7, graph_);
    for (const Message& opset : opsets_) model.message(8, opset);
    for (const Message& function : functions_) model.message(25, function);
    return {model.text().begin(), model.text().end()};
  }

 private:
  static Message value_info(std::string_view name, int data_type, const std::vector<int64_t>& shape) {
    Message dims;
    for (const int64_t extent : shape) {
      dims.message(1, extent < 0 ? Message().bytes(2, "N") : Message().number(1, extent));
    }
    const Message type = Message().message(1, Message().number(1, data_type).message(2, dims));
    return Message().bytes(1, name).message(2, type);
  }

  Message graph_;
  std::vector<Message> opsets_;
  std::vector<Message> functions_;
};

}  // namespace qplan::onnx_test

#endif  // QPLAN_TESTS_PACKER_IMPORT_ONNX_BUILDER_H_
