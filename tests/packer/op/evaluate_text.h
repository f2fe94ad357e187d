// Evaluation through the text form: one expression of constants in, the elements of its results out.
#ifndef QPLAN_TESTS_PACKER_OP_EVALUATE_TEXT_H_
#define QPLAN_TESTS_PACKER_OP_EVALUATE_TEXT_H_

#include <charconv>
#include <cmath>
#include <string>
#include <vector>

#include "src/packer/error.h"
#include "src/packer/op/evaluate.h"
#include "src/packer/text/text.h"

namespace qplan {

inline std::string element_text(const ir::Constant& constant, size_t i) {
  const ir::DType dtype = constant.type().dtype;
  const auto real = [](double value) {
    char buffer[64];
    if (std::isnan(value)) return std::string(std::signbit(value) ? "-nan" : "nan");
    return std::string(buffer, std::to_chars(buffer, buffer + sizeof buffer, value).ptr);
  };
  if (dtype == ir::kFloat32) {
    char buffer[64];
    const float value = constant.as<float>()[i];
    if (std::isnan(value)) return real(value);
    return std::string(buffer, std::to_chars(buffer, buffer + sizeof buffer, value).ptr);
  }
  if (dtype == ir::kFloat64) return real(constant.as<double>()[i]);
  if (dtype == ir::kInt8) return std::to_string(constant.as<int8_t>()[i]);
  if (dtype == ir::kUint8) return std::to_string(constant.as<uint8_t>()[i]);
  if (dtype == ir::kInt16) return std::to_string(constant.as<int16_t>()[i]);
  if (dtype == ir::kInt32) return std::to_string(constant.as<int32_t>()[i]);
  if (dtype == ir::kInt64) return std::to_string(constant.as<int64_t>()[i]);
  if (dtype == ir::kUint64) return std::to_string(constant.as<uint64_t>()[i]);
  if (dtype == ir::kBool) return constant.as<uint8_t>()[i] != 0 ? "True" : "False";
  if (dtype == ir::kInt4) {
    const int nibble = constant.bytes()[i / 2] >> (i % 2 * 4) & 15;
    return std::to_string(nibble < 8 ? nibble : nibble - 16);
  }
  return "?";
}

// "int32(2, 1): 3 4", results joined with "; ", or the message of the PackError.
inline std::string evaluate_text(const std::string& expression) {
  try {
    const ir::Module module = text::parse("def @main() {\n  %0 = " + expression + ";\n  %0\n}", "t");
    const ir::Function& main = module.main();
    const ir::Node& node = main.nodes().front();
    op::Results operands;
    for (const ir::ValueId operand : node.operands) operands.push_back(main.value(operand).constant);
    const auto results = op::evaluate(node, operands);
    if (!results) return "not evaluated";
    std::string text;
    for (const ir::ConstantRef& result : *results) {
      text += (text.empty() ? "" : "; ") + ir::to_string(result->type().dtype) + "(";
      for (size_t i = 0; i < result->type().shape.size(); ++i) {
        text += (i == 0 ? "" : ", ") + std::to_string(result->type().shape[i]);
      }
      text += "):";
      for (int64_t i = 0; i < result->type().num_elements(); ++i) {
        text += " " + element_text(*result, static_cast<size_t>(i));
      }
    }
    return text;
  } catch (const PackError& error) {
    return error.what();
  }
}

// "const(Tensor[(3), int8], [1, 2, 3])"
inline std::string constant(const std::string& type, const std::string& elements) {
  return "const(Tensor[" + type + "], [" + elements + "])";
}

}  // namespace qplan

#endif  // QPLAN_TESTS_PACKER_OP_EVALUATE_TEXT_H_
