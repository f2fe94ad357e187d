// TensorFlow's lists of tensors, whose elements are known on import.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/packer/import/import_helpers.h"
#include "tests/packer/import/tflite_builder.h"

namespace qplan::tflite_test::tflite_list_test {
namespace {

class ListModel {
 public:
  int32_t floats(const char* name, std::vector<int32_t> extents) {
    return b.tensor({.name = name, .type = tflite::TensorType_FLOAT32, .shape = std::move(extents)});
  }
  int32_t list(const char* name) { return b.tensor({.name = name, .type = tflite::TensorType_VARIANT}); }
  int32_t number(int32_t value) {
    return b.tensor({.name = "number", .type = tflite::TensorType_INT32, .data = bytes_of<int32_t>({value})});
  }
  int32_t op(const char* name, const std::vector<int32_t>& inputs, int32_t output) {
    b.op(tflite::BuiltinOperator_CUSTOM, inputs, {output}, tflite::BuiltinOptions_NONE, 0, name);
    return output;
  }

  TfliteBuilder b;
  int32_t x = floats("x", {2}), y = floats("y", {2}), shape = b.ints("shape", {2});
};

TEST(TfliteLists, ElementsAreStackedInTheirOrder) {
  ListModel m;
  const int32_t none = m.op("FlexTensorListReserve", {m.shape, m.number(2)}, m.list("none"));
  const int32_t one = m.op("FlexTensorListSetItem", {none, m.number(1), m.x}, m.list("one"));
  const int32_t two = m.op("FlexTensorListSetItem", {one, m.number(0), m.y}, m.list("two"));
  const int32_t all = m.op("FlexTensorListStack", {two, m.shape}, m.floats("all", {2, 2}));
  EXPECT_EQ(import_body(m.b.finish({m.x, m.y}, {all})),
            "%0 = reshape(%y, newshape=[1, 2]);\n%1 = reshape(%x, newshape=[1, 2]);\n"
            "%2 = concatenate((%0, %1));\n%2\n");
}

TEST(TfliteLists, AListGrowsAndIsCounted) {
  ListModel m;
  const int32_t none = m.op("EmptyTensorList", {m.shape, m.number(-1)}, m.list("none"));
  const int32_t one = m.op("TensorListPushBack", {none, m.x}, m.list("one"));
  const int32_t count =
      m.op("TensorListLength", {one}, m.b.tensor({.name = "count", .type = tflite::TensorType_INT32}));
  const int32_t last = m.op("TensorListGetItem", {one, m.number(0), m.shape}, m.floats("last", {2}));
  EXPECT_EQ(import_body(m.b.finish({m.x}, {last, count})), "(%x, 1)\n");
}

TEST(TfliteLists, ATensorIsTakenApart) {
  ListModel m;
  const int32_t rows = m.floats("rows", {3, 2});
  const int32_t parts = m.op("TensorListFromTensor", {rows, m.shape}, m.list("parts"));
  const int32_t last = m.op("TensorListGetItem", {parts, m.number(2), m.shape}, m.floats("last", {2}));
  EXPECT_EQ(import_body(m.b.finish({rows}, {last})),
            "%0 = strided_slice(%rows, begin=[0], end=[1], strides=[1], axes=[0]);\n"
            "%1 = reshape(%0, newshape=[2]);\n"
            "%2 = strided_slice(%rows, begin=[1], end=[2], strides=[1], axes=[0]);\n"
            "%3 = reshape(%2, newshape=[2]);\n"
            "%4 = strided_slice(%rows, begin=[2], end=[3], strides=[1], axes=[0]);\n"
            "%5 = reshape(%4, newshape=[2]);\n%5\n");
}

TEST(TfliteLists, RefusedUses) {
  const auto error = [](auto&& build) {
    ListModel m;
    const int32_t result = build(m);
    return import_error(m.b.finish({m.x}, {result}));
  };
  const std::string kOne = "1 operator that qplan does not import: ";
  EXPECT_NE(error([](ListModel& m) {
              const int32_t none = m.op("TensorListReserve", {m.shape, m.number(2)}, m.list("none"));
              const int32_t one = m.op("TensorListSetItem", {none, m.number(1), m.x}, m.list("one"));
              return m.op("TensorListStack", {one, m.shape}, m.floats("all", {2, 2}));
            }).find(kOne + "custom operator 'TensorListStack' with an element that is never set"),
            std::string::npos);
  EXPECT_NE(error([](ListModel& m) {
              const int32_t none = m.op("TensorListReserve", {m.shape, m.number(2)}, m.list("none"));
              return m.op("TensorListGetItem", {none, m.number(0), m.shape}, m.floats("first", {2}));
            }).find("with an element that is read before it is set"),
            std::string::npos);
  EXPECT_NE(error([](ListModel& m) {
              return m.op("TensorListStack", {m.list("unknown"), m.shape}, m.floats("all", {2, 2}));
            }).find("with a list that no operator of the file makes"),
            std::string::npos);
  EXPECT_NE(error([](ListModel& m) {
              const int32_t none = m.op("TensorListReserve", {m.shape, m.number(2)}, m.list("none"));
              return m.op("TensorListSetItem", {none, m.number(2), m.x}, m.list("one"));
            }).find("element 2 of a list of 2"),
            std::string::npos);
  EXPECT_NE(error([](ListModel& m) {
              return m.op("TensorListReserve", {m.shape, m.number(INT32_MAX)}, m.list("none"));
            }).find("with a list of 2147483647 elements, more than 16384"),
            std::string::npos);
  // No operator of these.
  EXPECT_NE(error([](ListModel& m) {
              return m.op("FlexTensorListConcat", {m.x}, m.floats("all", {2}));
            }).find("1 of its operators is TensorFlow's (first 'FlexTensorListConcat')"),
            std::string::npos);
}

}  // namespace
}  // namespace qplan::tflite_test::tflite_list_test
