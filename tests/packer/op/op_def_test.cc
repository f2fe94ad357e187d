#include "src/packer/op/op_def.h"

#include <gtest/gtest.h>

#include <set>

#include "src/packer/error.h"
#include "src/packer/op/attributes.h"

namespace qplan::op::op_def_test {
namespace {

TEST(OpTable, HasEachOperatorOnceAndComplete) {
  std::set<std::string> names;
  for (const OpDef* op : all_ops()) {
    EXPECT_TRUE(names.insert(op->name).second) << op->name;
    EXPECT_EQ(find_op(op->name), op);
    EXPECT_NE(op->infer, nullptr) << op->name;
    EXPECT_FALSE(op->operands.empty()) << op->name;
    for (const AttrDef& attr : op->attrs)
      EXPECT_FALSE(attr.fallback && attr.optional) << op->name << attr.name;
  }
  size_t rows = 0;
#define QPLAN_OP(function) ++rows;
#include "src/packer/op/ops.def"
#undef QPLAN_OP
  EXPECT_EQ(names.size(), rows);
  EXPECT_EQ(find_op("nn.conv3d"), nullptr);
  EXPECT_EQ(find_op(""), nullptr);
}

TEST(OpTable, FallbacksHaveTheKindOfTheirAttribute) {
  for (const OpDef* op : all_ops()) {
    ir::Node node;
    node.op = op;
    for (const AttrDef& def : op->attrs) {
      if (!def.fallback) continue;
      switch (def.kind) {
        case AttrKind::kBool:
          attr_bool(node, def.name);
          break;
        case AttrKind::kInt:
          attr_int(node, def.name);
          break;
        case AttrKind::kFloat:
          attr_float(node, def.name);
          break;
        case AttrKind::kString:
          attr_string(node, def.name);
          break;
        case AttrKind::kInts:
          attr_ints(node, def.name);
          break;
        case AttrKind::kIntLists:
          attr_int_lists(node, def.name);
          break;
        case AttrKind::kIntOrInts:
          break;
      }
    }
  }
}

TEST(Attributes, ValueOrFallbackOrRefusal) {
  ir::Node node;
  node.op = &get_op("qnn.softmax");
  EXPECT_EQ(attr_int(node, "axis"), -1);
  EXPECT_EQ(attr_float(node, "beta"), 1.0);
  node.attrs.set("beta", int64_t{2});
  EXPECT_EQ(attr_float(node, "beta"), 2.0);
  EXPECT_THROW(attr_int(node, "contract"), PackError);
  EXPECT_THROW(attr(node, "strides"), PackError);
  node.op = &get_op("qnn.conv2d");
  EXPECT_THROW(attr(node, "pad_value"), PackError);
  EXPECT_THROW(get_op("nn.conv3d"), PackError);
}

TEST(Shape, WindowsInNormalForm) {
  ir::Node node;
  node.op = &get_op("qnn.conv2d");
  node.attrs = {{"kernel_layout", "HWIO"}, {"padding", ir::Ints{3, 4}}, {"strides", ir::Ints{2}}};
  const Window2d window = conv2d_window(node, {ir::kInt8, {5, 6, 7, 8}});
  EXPECT_EQ(window.kernel_h, 5);
  EXPECT_EQ(window.kernel_w, 6);
  EXPECT_EQ(window.stride_w, 2);
  EXPECT_EQ(window.pad_top, 3);
  EXPECT_EQ(window.pad_bottom, 3);
  EXPECT_EQ(window.pad_right, 4);
  EXPECT_EQ(window.out_h(9), 6);
}

TEST(InferTypes, OperandsThatNobodyCheckedAreRefused) {
  ir::Function function("main");
  const ir::ValueId huge = function.add_param("x", {ir::kInt8, {int64_t{1} << 31, int64_t{1} << 31, 4}});
  const ir::ValueId empty = function.add_param("y", {ir::kInt8, {3, 0}});
  const ir::ValueId negative = function.add_param("z", {ir::kInt8, {-1, -1}});
  const auto message = [&](ir::ValueId operand) -> std::string {
    try {
      function.add_node(get_op("cast"), {operand}, {{"dtype", "int32"}}, "n");
    } catch (const PackError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(message(huge),
            "cast 'n': operand 'data': Tensor[(2147483648, 2147483648, 4), int8] is larger than "
            "1099511627776 bytes");
  EXPECT_EQ(message(empty), "cast 'n': operand 'data': extent 0 of Tensor[(3, 0), int8] must be at least 1");
  EXPECT_EQ(message(negative),
            "cast 'n': operand 'data': extent -1 of Tensor[(-1, -1), int8] must be at least 1");
}

TEST(TensorType, SizesSaturate) {
  const int64_t big = int64_t{1} << 40;
  EXPECT_EQ((ir::TensorType{ir::kInt8, {big, big}}.num_elements()), INT64_MAX);
  EXPECT_EQ((ir::TensorType{ir::kInt32, {big, int64_t{1} << 22}}.size_bytes()), INT64_MAX);
  EXPECT_EQ((ir::TensorType{ir::kInt8, {big, big, 0}}.num_elements()), 0);
  EXPECT_EQ((ir::TensorType{ir::kInt4, {3, 3}}.size_bytes()), 5);
  EXPECT_EQ((ir::TensorType{ir::kBool, {3, 3}}.size_bytes()), 9);
}

}  // namespace
}  // namespace qplan::op::op_def_test
