// Code that the tests of the ONNX importer share.
#ifndef QPLAN_TESTS_PACKER_IMPORT_ONNX_HELPERS_H_
#define QPLAN_TESTS_PACKER_IMPORT_ONNX_HELPERS_H_

#include <string>
#include <vector>

#include "src/packer/import/import.h"
#include "src/packer/ir/module.h"
#include "tests/packer/import/import_helpers.h"
#include "tests/packer/import/onnx_builder.h"

namespace qplan::onnx_test {

inline ir::Module import_builder(const OnnxBuilder& builder, const ImportOptions& options = {},
                                 std::vector<std::string>* log = nullptr) {
  ir::Module module = import_onnx(
      builder.finish(), "net.onnx",
      [&](uint32_t, const std::string& text) {
        if (log != nullptr) log->push_back(text);
      },
      options);
  ir::verify(module);
  return module;
}

inline std::string import_body(const OnnxBuilder& builder, const ImportOptions& options = {}) {
  return tflite_test::body_of(import_builder(builder, options));
}

inline std::string refusal(const std::vector<uint8_t>& bytes, const ImportOptions& options = {}) {
  try {
    ir::verify(import_onnx(bytes, "net.onnx", {}, options));
  } catch (const PackError& error) {
    return std::to_string(error.status()) + ": " + tflite_test::without_closing(error.what());
  }
  return "imported";
}
inline std::string refusal(const OnnxBuilder& builder, const ImportOptions& options = {}) {
  return refusal(builder.finish(), options);
}

// The beginning of every refusal.
inline const std::string kInvalid = std::to_string(QPLAN_MODEL_INVALID) + ": onnx: 'net.onnx': ";
inline const std::string kList =
    std::to_string(QPLAN_MODEL_UNSUPPORTED) + ": onnx: 'net.onnx': 1 operator that qplan does not import: ";

// x -> one operator -> y, with constants as further inputs.
struct Unary {
  std::string op;
  std::vector<Message> attributes = {};
  int64_t opset = 13;
  int type = kFloat;
  std::vector<int64_t> shape = {1, 2, 4, 4};
  std::vector<std::vector<int64_t>> ints = {};  // int64 inputs after x
};
inline OnnxBuilder unary_model(const Unary& unary) {
  OnnxBuilder b(unary.opset);
  b.input("x", unary.type, unary.shape);
  Names inputs{"x"};
  for (const auto& values : unary.ints) {
    inputs.push_back("c" + std::to_string(inputs.size()));
    b.ints(inputs.back(), values);
  }
  b.node(unary.op, inputs, {"y"}, unary.attributes);
  // Neither type nor shape of the output is declared.
  b.graph().message(12, Message().bytes(1, "y"));
  return b;
}
inline std::string unary_body(const Unary& unary) { return import_body(unary_model(unary)); }
inline std::string unary_refusal(const Unary& unary) { return refusal(unary_model(unary)); }

}  // namespace qplan::onnx_test

#endif  // QPLAN_TESTS_PACKER_IMPORT_ONNX_HELPERS_H_
