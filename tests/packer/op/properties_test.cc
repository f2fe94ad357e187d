// Each property of each row: against the names of operands and attributes, against inference on an example,
// and against evaluation with random data where something evaluates the operator (its OpDef, or the reference
// kernels).
#include "src/packer/op/properties.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <random>
#include <set>

#include "src/packer/evaluate/evaluate.h"
#include "src/packer/op/evaluate.h"
#include "src/packer/op/shape.h"
#include "src/packer/passes/rewrite_pass.h"
#include "src/packer/text/text.h"

namespace qplan::op::properties_test {
namespace {

const char kParams[] =
    "%f: Tensor[(2, 3), float32], %g: Tensor[(4, 2, 3), float32], %b: Tensor[(2, 3), bool], %v: Tensor[(3), "
    "float32], "
    "%q: Tensor[(2, 3), int8], %r: Tensor[(4, 2, 3), int8], %i: Tensor[(2, 3), int32], %one: Tensor[(2, 1, "
    "3), int8], "
    "%w: Tensor[(4, 3), int8], %wf: Tensor[(4, 3), float32], %c: Tensor[(1, 4, 6, 8), int8], "
    "%cf: Tensor[(1, 4, 6, 8), float32], %k: Tensor[(8, 2, 3, 3), int8], %kf: Tensor[(8, 2, 3, 3), float32], "
    "%index: Tensor[(2), int32], %two: Tensor[(2), float32], %three: Tensor[(3), int32], "
    "%h: Tensor[(2, 3), int16], %t: Tensor[(4, 2, 3, 8), int8], "
    // Of a recurrent layer of two cells.
    "%s: Tensor[(1, 5, 3), int8], %sf: Tensor[(1, 5, 3), float32], %wi: Tensor[(8, 3), int8], "
    "%wr: Tensor[(8, 2), int8], %bi: Tensor[(8), int32], %bf: Tensor[(8), float32], "
    "%sy: Tensor[(1, 2), int8], %sc: Tensor[(1, 2), int16], %syf: Tensor[(1, 2), float32], "
    "%ft: Tensor[(4, 5), int16], %fb: Tensor[(4), int32], %fs: Tensor[(2, 4, 5), int16], %j: Tensor[(4, 2, "
    "3), int32]";

std::string table() {
  std::string text = "const(Tensor[(256), uint8], [";
  for (int i = 0; i < 256; ++i) text += (i == 0 ? "" : ", ") + std::to_string((i * 37 + 11) % 256);
  return text + "])";
}

// A call of each operator. Where the results' shape or dtype may differ from the data's, they do.
const std::map<std::string, std::string>& examples() {
  static const std::map<std::string, std::string> kExamples = [] {
    const std::string binary_scales = "0.5f, 1, 0.25f, 2, 0.5f, 3", unary_scales = "0.5f, 1, 0.25f, 3";
    std::map<std::string, std::string> calls = {
        {"qnn.quantize", "%f, 0.5f, 0"},
        {"qnn.dequantize", "%q, 0.5f, 0"},
        {"qnn.requantize", "%i, " + unary_scales},
        {"nn.dynamic_quantize", "%cf, padding=[1, 0, 2, 1]"},
        {"nn.dynamic_dequantize", "%i, %two, %index, %v, %three"},
        {"qnn.conv2d",
         "%c, %k, 0, 0, 0.5f, 0.5f, kernel_size=[3, 3], channels=8, groups=2, padding=[1, 0, 1, 0]"},
        {"nn.conv2d", "%cf, %kf, kernel_size=[3, 3], channels=8, groups=2, padding=[1, 0, 1, 0]"},
        {"qnn.dense", "%q, %w, 0, 0, 0.5f, 0.5f, units=4"},
        {"nn.dense", "%f, %wf, units=4"},
        {"nn.bias_add", "%f, %v"},
        {"qnn.add", "%q, %r, " + binary_scales},
        {"qnn.subtract", "%q, %r, " + binary_scales},
        {"qnn.mul", "%q, %r, " + binary_scales},
        {"qnn.squared_difference", "%q, %r, " + binary_scales},
        {"qnn.prelu", "%r, %q, " + binary_scales},
        {"qnn.batch_matmul", "%q, %w, " + binary_scales + ", transpose_b=True"},
        {"nn.integer_lstm",
         "%s, %wi, %wr, %bi, %bi, %sy, %sc, input_multiplier=[9, 9, 9, 9], input_shift=[0, 0, 0, 0], "
         "recurrent_multiplier=[9, 9, 9, 9], recurrent_shift=[0, 0, 0, 0], output_multiplier=9, "
         "output_shift=-7, output_zero_point=3, cell_bits=12"},
        {"nn.integer_svdf",
         "%q, %w, %ft, %fb, %index, %fs, rank=2, feature_multiplier=9, feature_shift=0, "
         "output_multiplier=9, output_shift=-7, output_zero_point=3"},
        {"nn.integer_softmax", "%q, input_scale=0.5f"},
        {"nn.log_softmax", "%f"},
        {"floor_divide", "%i, %j"},
        {"floor_mod", "%i, %j"},
        {"gather_nd", "%r, %i"},
        {"custom",
         "(%q, %f), operator=\"Op\", options=\"{\\\"a\\\": [1, 2.5]}\", shapes=[[3, 2]], dtypes=\"int16\", "
         "scales=\"[0.5, 0.0, 0.25]\", zero_points=[1, 0, 0], scratch_bytes=8"},
        {"nn.lstm", "%sf, %wi, %wr, %bf, %bf, %syf, %syf"},
        {"qnn.conv2d_transpose", "%c, %t, 0, 0, 0.5f, 0.5f, strides=[2, 1], crop=[1, 0], output_size=[8, 8]"},
        {"qnn.tanh", "%h, 0.5f, 0, 0.000030517578125f, 0"},
        {"qnn.l2_normalize", "%q, 0.5f, 1, 0.0078125f, 0"},
        {"qnn.sum", "%q, " + unary_scales + ", axis=[1]"},
        {"qnn.prod", "%q, " + unary_scales + ", axis=[1]"},
        {"max", "%q, axis=[1]"},
        {"min", "%q, axis=[1]"},
        {"argmin", "%q, axis=1"},
        {"clip", "%q, a_min=-7f, a_max=50f"},
        {"cast", "%q, dtype=\"int32\""},
        {"nn.pad", "%q, 5, pad_width=[[1, 0], [0, 2]]"},
        {"qnn.avg_pool2d", "%c, 0.5f, 3, 0.5f, 3, pool_size=[2, 3], padding=[1, 1], layout=\"NHWC\""},
        {"nn.max_pool2d", "%c, pool_size=[2, 3], layout=\"NHWC\""},
        {"nn.avg_pool2d", "%cf, pool_size=[2, 3]"},
        {"nn.global_avg_pool2d", "%cf"},
        {"qnn.mean", "%q, " + unary_scales + ", axis=[1]"},
        {"mean", "%f, axis=[1]"},
        {"qnn.softmax", "%q, 0.5f, 1, 0.00390625f, -128"},
        {"nn.softmax", "%f"},
        {"qnn.sigmoid", "%q, 0.5f, 1, 0.00390625f, -128"},
        {"reshape", "%q, newshape=[3, 2]"},
        {"squeeze", "%one, axis=[1]"},
        {"expand_dims", "%q, axis=1"},
        {"nn.batch_flatten", "%c"},
        {"transpose", "%q, axes=[1, 0]"},
        {"concatenate", "(%q, %q, %q), axis=1"},
        {"split", "%q, indices_or_sections=3, axis=1"},
        {"strided_slice", "%q, begin=[0, 1], end=[2, 3]"},
        {"take", "%q, %index, axis=1"},
        {"image.resize2d", "%c, size=[7, 9]"},
        {"argmax", "%q, axis=1"},
        {"qnn.lookup", "%q, " + table()},
        {"nn.batch_norm", "%f, %v, %v, %v, %v"},
        {"where", "%b, %f, %g"},
    };
    for (const char* name :
         {"add", "subtract", "multiply", "divide", "maximum", "minimum", "less", "equal"}) {
      calls[name] = "%f, %g";
    }
    for (const char* name : {"nn.relu", "nn.leaky_relu", "sigmoid", "tanh", "exp", "sqrt", "negative", "abs",
                             "round", "floor", "ceil", "hard_sigmoid", "rsqrt", "log", "erf"}) {
      calls[name] = "%f";
    }
    return calls;
  }();
  return kExamples;
}

struct Example {
  ir::Module module;
  const ir::Function& function() const { return module.main(); }
  const ir::Node& node() const { return function().nodes().back(); }
  const ir::TensorType& operand(size_t i) const { return function().type(node().operands[i]); }
  const ir::TensorType& result(size_t i = 0) const { return function().type(node().results[i]); }
};

Example example(const OpDef& op) {
  const std::string call = "%0 = " + op.name + "(" + examples().at(op.name) + ");\n";
  return {text::parse(
      "def @main(" + std::string(kParams) + ") {\n" + call + (op.num_results ? "%0.0" : "%0") + "\n}", "t")};
}

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
    EXPECT_EQ(op->variadic, op->movement == Movement::kJoin || op->name == "custom");
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

// ---- evaluation ----

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
      std::ranges::rotate(bytes, bytes.begin() + 128);
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
}  // namespace qplan::op::properties_test
