// Each property of each row against evaluation with random data, where something evaluates the operator (its
// OpDef, or the reference kernels).
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <random>
#include <set>

#include "src/packer/evaluate/evaluate.h"
#include "src/packer/op/evaluate.h"
#include "src/packer/op/op_def.h"
#include "src/packer/passes/rewrite_pass.h"
#include "tests/packer/op/operator_examples.h"

namespace qplan::op::properties_evaluation_test {
namespace {

using operator_examples::Example;
using operator_examples::example;

using Constants = std::vector<ir::ConstantRef>;

std::optional<Constants> run(const ir::Node& node, const Constants& operands) {
  if (node.op->evaluate != nullptr) return evaluate(node, operands);
  return evaluate::evaluate_node(node, operands);
}

constexpr uint32_t kSeed = 20261123;

ir::ConstantRef random_constant(const ir::TensorType& type, std::mt19937* random) {
  const auto count = static_cast<size_t>(type.num_elements());
  std::vector<uint8_t> bytes(static_cast<size_t>(type.size_bytes()));
  if (type.dtype == ir::kFloat32) {
    std::vector<float> values(count);
    for (float& value : values)
      value = static_cast<float>(static_cast<int>((*random)() % 4001) - 2000) / 128.0f;
    return ir::make_constant(type.dtype, type.shape, values);
  }
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>((*random)());
  if (type.dtype == ir::kBool) {
    for (uint8_t& byte : bytes) byte &= 1;
  }
  return std::make_shared<const ir::Constant>(type, std::move(bytes));
}

// The example's operands: constants as they are, random data of one shape where one is given.
Constants random_operands(const Example& e, std::mt19937* random, const ir::Shape* shape = nullptr) {
  Constants operands;
  const std::vector<size_t> data = data_operands(e.node());
  for (size_t i = 0; i < e.node().operands.size(); ++i) {
    const ir::Value& value = e.function().value(e.node().operands[i]);
    ir::TensorType type = value.type;
    if (value.kind == ir::ValueKind::kConstant) {
      operands.push_back(value.constant);
    } else if (type.dtype == ir::kInt32 && type.shape.size() == 1) {  // indices
      operands.push_back(ir::make_constant(ir::kInt32, {2}, std::vector<int32_t>{2, 0}));
    } else {
      if (shape != nullptr && std::ranges::find(data, i) != data.end()) type.shape = *shape;
      operands.push_back(random_constant(type, random));
    }
  }
  return operands;
}

ir::ConstantRef rearranged(const ir::Constant& constant, const std::vector<size_t>& order) {
  const size_t size = constant.bytes().size() / order.size();
  std::vector<uint8_t> bytes;
  for (const size_t from : order) {
    const auto element = constant.bytes().subspan(from * size, size);
    bytes.insert(bytes.end(), element.begin(), element.end());
  }
  return std::make_shared<const ir::Constant>(constant.type(), std::move(bytes));
}

ir::ConstantRef each_byte(const ir::Constant& constant, ir::DType dtype,
                          const std::function<uint8_t(uint8_t)>& f) {
  std::vector<uint8_t> bytes(constant.bytes().begin(), constant.bytes().end());
  for (uint8_t& byte : bytes) byte = f(byte);
  return std::make_shared<const ir::Constant>(ir::TensorType{dtype, constant.type().shape}, std::move(bytes));
}

ir::ConstantRef other_signedness(const ir::Constant& constant) {
  return each_byte(constant, constant.type().dtype == ir::kInt8 ? ir::kUint8 : ir::kInt8,
                   [](uint8_t byte) { return static_cast<uint8_t>(byte ^ 0x80); });
}

bool same(const ir::Constant& a, const ir::Constant& b) {
  return a.type() == b.type() && std::ranges::equal(a.bytes(), b.bytes());
}

std::multiset<std::string> elements(const Constants& constants) {
  std::multiset<std::string> result;
  for (const ir::ConstantRef& constant : constants) {
    const size_t size = constant->bytes().size() / static_cast<size_t>(constant->type().num_elements());
    for (size_t i = 0; i < constant->bytes().size(); i += size) {
      const auto element = constant->bytes().subspan(i, size);
      result.insert(std::string(element.begin(), element.end()));
    }
  }
  return result;
}

TEST(OpProperties, ElementwiseOperatorsComputeEveryElementAlike) {
  std::mt19937 random(kSeed);
  std::vector<size_t> order(6);
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::shuffle(order, random);
  const ir::Shape shape = {2, 3};
  size_t count = 0;
  for (const OpDef* op : all_ops()) {
    if (op->kind != OpKind::kElementwise && op->kind != OpKind::kBroadcast) continue;
    if (operand_with(*op, OperandRole::kPerChannel)) continue;
    SCOPED_TRACE(op->name);
    const Example e = example(*op);
    Constants operands = random_operands(e, &random, &shape);
    const auto results = run(e.node(), operands);
    if (!results) {
      ADD_FAILURE() << "nothing evaluates it";
      continue;
    }
    for (const size_t i : data_operands(e.node())) operands[i] = rearranged(*operands[i], order);
    EXPECT_TRUE(same(*rearranged(*(*results)[0], order), *run(e.node(), operands)->at(0)));
    ++count;
  }
  EXPECT_GE(count, 30u);
}

TEST(OpProperties, MovementsHaveTheElementsThatTheyDeclare) {
  std::mt19937 random(kSeed);
  for (const OpDef* op : all_ops()) {
    if (op->kind != OpKind::kMovement) continue;
    SCOPED_TRACE(op->name);
    const Example e = example(*op);
    const Constants operands = random_operands(e, &random);
    const auto results = run(e.node(), operands);
    ASSERT_TRUE(results) << "nothing evaluates it";
    Constants data;
    for (const size_t i : data_operands(e.node())) data.push_back(operands[i]);
    const std::multiset<std::string> before = elements(data), after = elements(*results);
    const auto has_each = [](const auto& all, const auto& some) {
      return std::ranges::all_of(some, [&](const std::string& element) { return all.contains(element); });
    };
    switch (op->movement) {
      case Movement::kReshape:
        EXPECT_TRUE(std::ranges::equal(data[0]->bytes(), (*results)[0]->bytes()));
        break;
      case Movement::kPermute:
      case Movement::kJoin:
        EXPECT_EQ(before, after);
        break;
      case Movement::kSelect:
        EXPECT_TRUE(has_each(before, after));
        break;
      case Movement::kPad:
        EXPECT_TRUE(std::ranges::includes(after, before));
        EXPECT_GT(after.size(), before.size());
        break;
      case Movement::kNone:
        ADD_FAILURE();
    }
  }
}

TEST(OpProperties, WhatFollowsLayoutsIsPermutedWithItsData) {
  std::mt19937 random(kSeed);
  const ir::Shape shape = {2, 3, 4, 5};
  ir::Node transpose;
  transpose.op = &get_op("transpose");
  transpose.attrs.set("axes", passes::kToNhwc);
  const auto to_nhwc = [&](const ir::ConstantRef& constant) {
    return evaluate(transpose, std::vector<ir::ConstantRef>{constant})->at(0);
  };
  size_t count = 0;
  for (const OpDef* op : all_ops()) {
    if (!op->follows_layout) continue;
    SCOPED_TRACE(op->name);
    const Example e = example(*op);
    Constants operands = random_operands(e, &random, &shape);
    ir::Node node = e.node();
    for (const AttrDef& attr : op->attrs) {
      if (attr.role == AttrRole::kPerAxis) {
        node.attrs.set(attr.name, std::vector<ir::Ints>{{0, 0}, {1, 0}, {0, 2}, {3, 4}});
      }
      if (attr.name == "keepdims") node.attrs.set(attr.name, true);
    }
    const auto results = run(node, operands);
    if (!results) continue;  // nn.bias_add, nn.batch_norm, mean: part of a layer only
    for (const size_t i : data_operands(node)) operands[i] = to_nhwc(operands[i]);
    node.attrs = passes::attrs_in_nhwc(node);
    const auto moved = run(node, operands);
    if (!moved) continue;  // qnn.softmax, which has a kernel for the last axis
    for (size_t i = 0; i < results->size(); ++i)
      EXPECT_TRUE(same(*to_nhwc((*results)[i]), *(*moved)[i])) << i;
    ++count;
  }
  EXPECT_GE(count, 30u);
}

// int8 q with zero point z becomes uint8 q + 128 with zero point z + 128, wherever the row says that it is
// so.
TEST(OpProperties, QuantisationMovesWithSignedness) {
  std::mt19937 random(kSeed);
  size_t count = 0;
  for (const OpDef* op : all_ops()) {
    if (op->quantization == Quantization::kNone || op->name == "image.resize2d")
      continue;  // it rounds otherwise
    SCOPED_TRACE(op->name);
    const Example e = example(*op);
    ir::Node node = e.node();
    if (has_contract(op)) node.attrs.set("contract", "f32e");  // rounds without looking at the stored 0
    Constants operands = random_operands(e, &random);
    const std::vector<size_t> data = data_operands(node);
    if (std::ranges::any_of(data, [&](size_t i) { return operands[i]->type().dtype != ir::kInt8; })) continue;
    const auto results = run(node, operands);
    if (!results) continue;  // layers, which have a kernel with their requantisation only
    const auto move_scalar = [&](size_t operand) {
      operands[operand] = ir::make_scalar(operands[operand]->as<int32_t>()[0] + 128);
    };
    for (const size_t i : data) {
      operands[i] = other_signedness(*operands[i]);
      if (const auto zero_point = zero_point_of(*op, i)) move_scalar(*zero_point);
    }
    if (const auto value = operand_with(*op, OperandRole::kDataValue)) move_scalar(*value);
    for (const AttrDef& attr : op->attrs) {
      if (attr.role == AttrRole::kDataValue) node.attrs.set(attr.name, attr_float(node, attr.name) + 128);
    }
    const bool results_move = op->keeps_dtype;
    const auto zero_point = zero_point_of(*op, kResult);
    if (results_move && zero_point) move_scalar(*zero_point);
    if (const auto table = operand_with(*op, OperandRole::kTable)) {
      std::vector<uint8_t> bytes(operands[*table]->bytes().begin(), operands[*table]->bytes().end());
      std::rotate(bytes.begin(), bytes.begin() + 128, bytes.end());
      operands[*table] = std::make_shared<const ir::Constant>(operands[*table]->type(), std::move(bytes));
    }
    const auto moved = run(node, operands);
    ASSERT_TRUE(moved);
    for (size_t i = 0; i < results->size(); ++i) {
      const ir::ConstantRef expected = results_move ? other_signedness(*(*results)[i]) : (*results)[i];
      EXPECT_TRUE(same(*expected, *(*moved)[i])) << i;
    }
    ++count;
  }
  EXPECT_GE(count, 18u);
}

TEST(OpProperties, ChoiceOfElementsCommutesWithMonotoneFunctions) {
  std::mt19937 random(kSeed);
  const auto monotone = [](uint8_t byte) {
    const int value = static_cast<int8_t>(byte);
    return static_cast<uint8_t>(static_cast<int8_t>(value < 0 ? value / 3 : std::min(value * 2, 100)));
  };
  const auto apply = [&](const ir::ConstantRef& constant) {
    return each_byte(*constant, ir::kInt8, monotone);
  };
  std::set<std::string> names;
  for (const OpDef* op : all_ops()) {
    if (!chooses_elements(op)) continue;
    SCOPED_TRACE(op->name);
    names.insert(op->name);
    const Example e = example(*op);
    Constants operands = random_operands(e, &random);
    const auto results = run(e.node(), operands);
    ASSERT_TRUE(results) << "nothing evaluates it";
    operands[0] = apply(operands[0]);
    if (const auto value = operand_with(*op, OperandRole::kDataValue)) {
      const auto byte = static_cast<uint8_t>(operands[*value]->as<int32_t>()[0]);
      operands[*value] = ir::make_scalar(int32_t{static_cast<int8_t>(monotone(byte))});
    }
    EXPECT_TRUE(same(*apply((*results)[0]), *run(e.node(), operands)->at(0)));
  }
  EXPECT_TRUE(names.contains("transpose") && names.contains("nn.max_pool2d") && names.contains("nn.pad"));
  EXPECT_FALSE(names.contains("qnn.avg_pool2d") || names.contains("argmax") || names.contains("clip"));
}

// Scales and zero points stand for what the row says: real = (q - zero point) * scale.
TEST(OpProperties, ConversionsKeepTheReals) {
  std::mt19937 random(kSeed);
  for (const OpDef* op : all_ops()) {
    if (!op->converts || op->quantization != Quantization::kOperands) continue;
    SCOPED_TRACE(op->name);
    const Example e = example(*op);
    Constants operands = random_operands(e, &random);
    if (operands[0]->type().dtype == ir::kInt32) operands[0] = random_constant({ir::kInt8, {2, 3}}, &random);
    const auto results = run(e.node(), operands);
    ASSERT_TRUE(results);
    const auto real_of = [&](int32_t q, size_t tensor) {
      return (q - operands[*zero_point_of(*op, tensor)]->as<int32_t>()[0]) *
             static_cast<double>(operands[*scale_of(*op, tensor)]->as<float>()[0]);
    };
    const auto real = [&](const ir::Constant& constant, size_t tensor, size_t i) -> double {
      if (constant.type().dtype == ir::kFloat32) return static_cast<double>(constant.as<float>()[i]);
      return real_of(constant.as<int8_t>()[i], tensor);
    };
    const bool saturates = (*results)[0]->type().dtype == ir::kInt8;
    for (size_t i = 0; i < 6; ++i) {
      double expected = real(*operands[0], 0, i);
      if (saturates) expected = std::clamp(expected, real_of(-128, kResult), real_of(127, kResult));
      EXPECT_NEAR(expected, real(*(*results)[0], kResult, i), 0.25 + 1e-6);
    }
  }
}

}  // namespace
}  // namespace qplan::op::properties_evaluation_test
