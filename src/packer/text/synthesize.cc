#include <algorithm>
#include <cstring>
#include <string>

#include "src/packer/op/op_def.h"
#include "src/packer/text/draft.h"

namespace qplan::text {
namespace {

// Steps that a quantised weight or bias reaches in either direction.
constexpr double kWeightSteps = 100;
constexpr double kBiasSteps = 1000;

// SplitMix64: each state gives one well-mixed number.
class Generator {
 public:
  Generator(uint64_t seed, std::string_view name) : state_(seed) {
    for (const char c : name) state_ = next() ^ static_cast<unsigned char>(c);
  }
  uint64_t next() {
    state_ += 0x9e3779b97f4a7c15;
    uint64_t z = state_;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
  }
  int64_t integer(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(next() % static_cast<uint64_t>(high - low + 1));
  }
  // A multiple of 2^-20 in [-1, 1].
  double unit() { return static_cast<double>(integer(-(1 << 20), 1 << 20)) / (1 << 20); }

 private:
  uint64_t state_;
};

// qnn.quantize of a weight: what it makes of the elements sets their range.
double quantized_amplitude(const Draft& draft, const ir::Node& node, double fallback) {
  if (node.op->name != "qnn.quantize" || node.operands.size() < 2) return fallback;
  const ir::ConstantRef& scale = draft[node.operands[1]].constant;
  if (scale == nullptr || scale->type().dtype != ir::kFloat32) return fallback;
  const ir::AttrValue* dtype = node.attrs.find("out_dtype");
  const auto* name = dtype != nullptr ? std::get_if<std::string>(dtype) : nullptr;
  const double steps = name != nullptr && *name == "int32" ? kBiasSteps : kWeightSteps;
  return static_cast<double>(std::ranges::min(scale->as<float>())) * steps;
}

// The result is the operand in another shape, order, dtype or quantisation.
bool is_passed_on(const op::OpDef& op) {
  return op.converts || op.movement == op::Movement::kReshape || op.movement == op::Movement::kPermute;
}

// The use of operand i of the node; result: the recipe of the node's result.
Recipe recipe_of_use(const Draft& draft, const ir::Node& node, size_t i, const Recipe& result) {
  if (node.op == nullptr || node.op->variadic || i >= node.op->operands.size()) return {};
  const op::OperandDef& operand = node.op->operands[i];
  if (operand.positive) return {.kind = Recipe::Kind::kVariance};
  switch (operand.role) {
    case op::OperandRole::kScale:
      return {.kind = Recipe::Kind::kScale};
    case op::OperandRole::kZeroPoint:
      return {.kind = Recipe::Kind::kZeroPoint};
    case op::OperandRole::kWeight:
    case op::OperandRole::kPerChannel:
      return {.kind = Recipe::Kind::kWeight};
    case op::OperandRole::kData:
      if (!is_passed_on(*node.op)) return {};
      return {.kind = result.kind, .amplitude = quantized_amplitude(draft, node, result.amplitude)};
    case op::OperandRole::kDataValue:
    case op::OperandRole::kTable:
    case op::OperandRole::kIndices:
      break;
  }
  return {};
}

template <typename T, typename Make>
ir::ConstantRef fill(const ir::TensorType& type, const Make& make) {
  std::vector<uint8_t> bytes(static_cast<size_t>(type.size_bytes()));
  for (size_t at = 0; at + sizeof(T) <= bytes.size(); at += sizeof(T)) {
    const T value = make();
    std::memcpy(&bytes[at], &value, sizeof value);
  }
  return std::make_shared<const ir::Constant>(type, std::move(bytes));
}

double real_element(Generator* generator, const Recipe& recipe) {
  switch (recipe.kind) {
    case Recipe::Kind::kScale:
      return 0.01 * (1.0 + 0.5 * generator->unit());
    case Recipe::Kind::kVariance:
      return 1.0 + 0.5 * generator->unit();
    case Recipe::Kind::kZeroPoint:
      return 0;
    case Recipe::Kind::kWeight:
    case Recipe::Kind::kData:
      break;
  }
  return recipe.amplitude * generator->unit();
}

}  // namespace

std::vector<Recipe> find_recipes(const Draft& draft) {
  std::vector<Recipe> recipes(draft.values.size());
  std::vector<bool> is_used(draft.values.size()), is_data(draft.values.size());
  // Users come after the nodes that they use, so going backwards a result's recipe is known before its
  // operands' recipes.
  for (size_t n = draft.nodes.size(); n-- > 0;) {
    const ir::Node& node = draft.nodes[n].node;
    const Recipe result = node.results.size() == 1 ? recipes[node.results[0].index] : Recipe();
    for (size_t i = 0; i < node.operands.size(); ++i) {
      const uint32_t operand = node.operands[i].index;
      const Recipe recipe = recipe_of_use(draft, node, i, result);
      if (recipe.kind == Recipe::Kind::kData) is_data[operand] = true;
      if (is_data[operand]) {
        recipes[operand] = Recipe();
      } else if (!is_used[operand]) {
        recipes[operand] = recipe;
      }
      is_used[operand] = true;
    }
  }
  return recipes;
}

ir::ConstantRef synthesize(const ir::TensorType& type, const Recipe& recipe, uint64_t seed,
                           std::string_view name) {
  Generator generator(seed, name);
  const bool zero = recipe.kind == Recipe::Kind::kZeroPoint;
  const auto integer = [&](int64_t low, int64_t high) { return zero ? 0 : generator.integer(low, high); };
  if (type.dtype == ir::kFloat32) {
    return fill<float>(type, [&] { return static_cast<float>(real_element(&generator, recipe)); });
  }
  if (type.dtype == ir::kFloat64) return fill<double>(type, [&] { return real_element(&generator, recipe); });
  if (type.dtype == ir::kInt32)
    return fill<int32_t>(type, [&] { return static_cast<int32_t>(integer(-1000, 1000)); });
  if (type.dtype == ir::kInt64) return fill<int64_t>(type, [&] { return integer(-1000, 1000); });
  if (type.dtype == ir::kBool)
    return fill<uint8_t>(type, [&] { return static_cast<uint8_t>(integer(0, 1)); });
  if (type.dtype == ir::kInt8)
    return fill<int8_t>(type, [&] { return static_cast<int8_t>(integer(-127, 127)); });
  return fill<uint8_t>(type, [&] { return static_cast<uint8_t>(integer(0, 255)); });  // bits of any dtype
}

}  // namespace qplan::text
