// Each property of each row, against the names of operands and attributes and against inference on an
// example. properties_evaluation_test.cc compares them with what operators compute.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "src/packer/op/attributes.h"
#include "src/packer/op/op_def.h"
#include "tests/packer/op/operator_examples.h"

namespace qplan::op::properties_test {
namespace {

using operator_examples::Example;
using operator_examples::example;
using operator_examples::examples;

TEST(OpProperties, EveryOperatorHasAnExample) {
  for (const OpDef* op : all_ops()) EXPECT_TRUE(examples().contains(op->name)) << op->name;
  EXPECT_EQ(examples().size(), all_ops().size());
}

// ---- names ----

TEST(OpProperties, OperandsThatAreScalesAndZeroPointsSayOfWhat) {
  for (const OpDef* op : all_ops()) {
    std::set<size_t> scaled, shifted;
    for (const OperandDef& operand : op->operands) {
      SCOPED_TRACE(op->name + " " + operand.name);
      const bool is_scale = operand.role == OperandRole::kScale,
                 is_zero_point = operand.role == OperandRole::kZeroPoint;
      EXPECT_EQ(is_scale, operand.name.ends_with("scale"));
      EXPECT_EQ(is_zero_point, operand.name.ends_with("zero_point"));
      if (!is_scale && !is_zero_point) continue;
      EXPECT_EQ(operand.dtype, is_scale ? ir::kFloat32 : ir::kInt32);
      EXPECT_TRUE((is_scale ? scaled : shifted).insert(operand.of).second) << "twice of one tensor";
      EXPECT_EQ(operand.of == kResult, operand.name.starts_with("output_"));
      if (operand.of == kResult) continue;
      ASSERT_LT(operand.of, op->operands.size());
      const OperandRole tensor = op->operands[operand.of].role;
      EXPECT_TRUE(tensor == OperandRole::kData || tensor == OperandRole::kWeight);
      EXPECT_EQ(tensor == OperandRole::kWeight, operand.name.starts_with("kernel_"));
    }
    EXPECT_EQ(scaled, shifted) << op->name;
  }
}

TEST(OpProperties, AttributesHaveTheRoleOfTheirName) {
  const std::map<std::string, AttrRole> roles = {
      {"layout", AttrRole::kLayout},     {"data_layout", AttrRole::kLayout},
      {"contract", AttrRole::kContract}, {"kernel_layout", AttrRole::kWeightLayout},
      {"out_dtype", AttrRole::kDtype},   {"dtype", AttrRole::kDtype},
      {"pool_size", AttrRole::kWindow},  {"kernel_size", AttrRole::kWindow},
      {"pad_width", AttrRole::kPerAxis}, {"a_min", AttrRole::kDataValue},
      {"a_max", AttrRole::kDataValue},   {"pad_value", AttrRole::kDataValue},
      {"rule", AttrRole::kRounding},     {"multiplier", AttrRole::kRounding}};
  for (const OpDef* op : all_ops()) {
    std::multiset<AttrRole> seen;
    for (const AttrDef& attr : op->attrs) {
      SCOPED_TRACE(op->name + " " + attr.name);
      seen.insert(attr.role);
      const auto it = roles.find(attr.name);
      if (it != roles.end()) {
        EXPECT_EQ(attr.role, it->second);
      } else if (attr.name == "axis") {
        // An axis of the result, and a list whose empty form has a meaning of its own.
        const bool other = op->name == "expand_dims" || op->name == "squeeze";
        EXPECT_EQ(attr.role, other ? AttrRole::kNone : op->converts ? AttrRole::kScaleAxis : AttrRole::kAxis);
      } else {
        EXPECT_EQ(attr.role, AttrRole::kNone);
      }
      for (const RelayAttrDef& relay : op->relay_attrs) EXPECT_NE(relay.name, attr.name) << "the IR has it";
    }
    for (const AttrRole role : seen) {
      if (role != AttrRole::kNone && role != AttrRole::kDataValue) {
        EXPECT_EQ(seen.count(role), 1u) << op->name;
      }
    }
  }
}

TEST(OpProperties, AgreeWithOneAnother) {
  for (const OpDef* op : all_ops()) {
    SCOPED_TRACE(op->name);
    const bool has_layout = attr_with(op, AttrRole::kLayout) != nullptr;
    const bool has_axis = attr_with(op, AttrRole::kAxis) != nullptr;
    const bool is_quantized = op->quantization == Quantization::kOperands;
    EXPECT_EQ(op->movement != Movement::kNone, op->kind == OpKind::kMovement);
    if (op->kind == OpKind::kMovement) {
      EXPECT_TRUE(op->keeps_dtype && op->quantization == Quantization::kShared);
    }
    if (op->kind == OpKind::kElementwise) {
      EXPECT_TRUE(op->keeps_shape && num_data_operands(*op) == 1);
    }
    if (op->kind == OpKind::kElementwise || op->kind == OpKind::kBroadcast) {
      EXPECT_TRUE(op->follows_layout);
    }
    EXPECT_EQ(op->variadic,
              op->movement == Movement::kJoin || op->name == "custom" || op->name == "npu.program");
    // A transposed convolution has weights, but no pass folds anything into them.
    EXPECT_EQ(is_product(op) || op->name == "qnn.conv2d_transpose",
              operand_with(*op, OperandRole::kWeight).has_value());
    EXPECT_EQ(is_product(op), op->weight_shape != nullptr);
    EXPECT_EQ(is_quantized_product(op), is_product(op) && !is_float_product(op));
    EXPECT_EQ(op->name.starts_with("qnn."), is_quantized);
    EXPECT_FALSE(op->follows_layout && has_layout);
    if (attr_with(op, AttrRole::kWeightLayout) != nullptr) {
      EXPECT_TRUE(has_layout && is_product(op));
    }
    if (attr_with(op, AttrRole::kScaleAxis) != nullptr) {
      EXPECT_TRUE(scale_of(*op, 0) || scale_of(*op, kResult));
    }
    if (operand_with(*op, OperandRole::kPerChannel)) {
      EXPECT_TRUE(has_axis && op->keeps_shape);
    }
    if (op->converts) {
      EXPECT_TRUE(op->keeps_shape && !op->keeps_dtype);
    }
    if (op->contracts_agree) {
      EXPECT_TRUE(has_contract(op));
    }
    if (op->function != nullptr) {
      EXPECT_TRUE(is_real_function(op) && op->kind == OpKind::kElementwise);
    }
    if (op->keeps_dtype) {
      EXPECT_EQ(attr_with(op, AttrRole::kDtype), nullptr);
    }
    if (attr_with(op, AttrRole::kDtype) == nullptr && !op->keeps_dtype) {
      EXPECT_TRUE(op->result_dtype || operand_with(*op, OperandRole::kTable) || op->num_results != nullptr)
          << "what is the results' dtype?";
    }
    if (!is_quantized) continue;
    // Every tensor that may be of 8 bits has scale and zero point.
    const bool has_table = operand_with(*op, OperandRole::kTable).has_value();
    for (size_t i = 0; i < op->operands.size(); ++i) {
      const OperandRole role = op->operands[i].role;
      if (role != OperandRole::kData && role != OperandRole::kWeight) continue;
      if (!op->operands[i].dtype && !has_table) {
        EXPECT_TRUE(scale_of(*op, i)) << op->operands[i].name;
      }
    }
    // Accumulators, int32 or int64, have no scale.
    const bool has_weights = operand_with(*op, OperandRole::kWeight).has_value();
    if (!op->result_dtype && !has_table && !has_weights) {
      EXPECT_TRUE(scale_of(*op, kResult));
    }
  }
}

TEST(OpProperties, QuantizedFormsTakeTheSameDataAndAttributes) {
  for (const OpDef* op : all_ops()) {
    if (op->quantized_form.empty()) continue;
    SCOPED_TRACE(op->name);
    const OpDef* form = find_op(op->quantized_form);
    ASSERT_NE(form, nullptr);
    EXPECT_EQ(form->quantization, Quantization::kOperands);
    EXPECT_EQ(form->kind, op->kind);
    EXPECT_EQ(form->keeps_shape, op->keeps_shape);
    EXPECT_EQ(num_data_operands(*form), num_data_operands(*op));
    for (const AttrDef& attr : op->attrs) {
      EXPECT_NE(std::ranges::find(form->attrs, attr.name, &AttrDef::name), form->attrs.end()) << attr.name;
    }
  }
}

// ---- inference ----

TEST(OpProperties, TypesAreInferredAsDeclared) {
  for (const OpDef* op : all_ops()) {
    SCOPED_TRACE(op->name);
    const Example e = example(*op);
    size_t data = 0;  // the first operand without a dtype of its own
    for (size_t i = 0; i < e.node().operands.size(); ++i) {
      const OperandDef& def = op->operands[op->variadic ? 0 : i];
      if (def.dtype) {
        EXPECT_EQ(e.operand(i).dtype, *def.dtype) << def.name;
      }
      if (def.role == OperandRole::kData && !def.dtype) data = i;
    }
    for (size_t i = 0; i < e.node().results.size(); ++i) {
      // Alpha is broadcast to the data of qnn.prelu; of other binary operators either operand may be.
      if (op->name != "qnn.prelu") {
        EXPECT_EQ(e.result(i).shape == e.operand(0).shape, op->keeps_shape);
      }
      // nn.dynamic_quantize makes scales and zero points, too.
      if (e.result(i).dtype != e.result(0).dtype) continue;
      EXPECT_EQ(e.result(i).dtype == e.operand(data).dtype, op->keeps_dtype);
      if (op->result_dtype) {
        EXPECT_EQ(e.result(i).dtype, *op->result_dtype);
      }
      if (const AttrDef* dtype = attr_with(op, AttrRole::kDtype)) {
        EXPECT_EQ(ir::to_string(e.result(i).dtype), attr_string(e.node(), dtype->name));
      }
    }
    EXPECT_EQ(op->num_results != nullptr ? op->num_results(e.node()) : 1, e.node().results.size());
    if (op->weight_shape != nullptr) {
      const size_t weight = *operand_with(*op, OperandRole::kWeight);
      EXPECT_EQ(op->weight_shape(e.node(), {&e.operand(0).shape, nullptr}), e.operand(weight).shape);
      EXPECT_EQ(e.operand(weight).shape[weight_output_axis(e.node())],
                e.result().shape[result_channel_axis(e.node(), e.result().shape.size())]);
    }
    EXPECT_EQ(window_of(e.function(), e.node()).has_value(), attr_with(op, AttrRole::kWindow) != nullptr);
  }
}

TEST(OpProperties, NormalFormHasTheSameTypesAndStaysAsItIs) {
  for (const OpDef* op : all_ops()) {
    if (op->normalize == nullptr) continue;
    SCOPED_TRACE(op->name);
    const Example e = example(*op);
    ir::Node node = e.node();
    op->normalize({e.function(), e.node()}, &node.attrs);
    EXPECT_EQ(infer_types(e.function(), node)[0], e.result());
    const ir::Attrs once = node.attrs;
    op->normalize({e.function(), node}, &node.attrs);
    EXPECT_EQ(node.attrs, once);
  }
}
}  // namespace
}  // namespace qplan::op::properties_test
