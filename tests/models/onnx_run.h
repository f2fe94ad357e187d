// ONNX operators as models of their own, run through a plan.
#ifndef QPLAN_TESTS_MODELS_ONNX_RUN_H_
#define QPLAN_TESTS_MODELS_ONNX_RUN_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "tests/models/model_session.h"
#include "tests/packer/import/onnx_builder.h"

namespace qplan::testing::onnx_run {

using namespace onnx_test;  // NOLINT: the words of the builder

inline std::vector<uint8_t> packed(const OnnxBuilder& b) { return pack_bytes(b.finish(), "net.onnx"); }

template <typename T>
std::vector<uint8_t> bytes_of(const std::vector<T>& values) {
  std::vector<uint8_t> bytes(values.size() * sizeof(T));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}
template <typename T>
std::vector<T> values_of(const std::vector<uint8_t>& bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

// x and constants -> the operator -> y.
struct Case {
  std::string op;
  std::vector<Message> attributes = {};
  std::string domain = {};
  int64_t opset = 17;
};

template <typename Result, typename T>
std::vector<Result> run(const Case& c, int type, const std::vector<int64_t>& shape, const std::vector<T>& x,
                        const std::function<void(OnnxBuilder&, Names&)>& add_inputs = {}) {
  OnnxBuilder b(c.opset);
  if (!c.domain.empty()) b.import_opset(c.domain, 1);
  b.input("x", type, shape);
  Names inputs{"x"};
  if (add_inputs) add_inputs(b, inputs);
  b.node(c.op, inputs, {"y"}, c.attributes, c.domain);
  b.graph().message(12, Message().bytes(1, "y"));
  ModelSession session(packed(b), QPLAN_ISA_AUTO, 1);
  return values_of<Result>(session.run({bytes_of(x)}).at(0));
}

inline void expect_near(const std::vector<float>& found, const std::vector<double>& expected,
                        const std::string& what) {
  ASSERT_EQ(found.size(), expected.size()) << what;
  double largest = 0;
  for (const double value : expected) largest = std::max(largest, std::fabs(value));
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_NEAR(found[i], expected[i], 1e-5 * std::max(std::fabs(expected[i]), 0.03 * largest))
        << what << ", element " << i;
  }
}

inline std::vector<double> mapped(const std::vector<float>& x, double (*f)(double)) {
  std::vector<double> y;
  for (const float value : x) y.push_back(f(value));
  return y;
}

inline const std::vector<float> kX = {-2.5f, -1, -0.25f, 0.125f, 0.75f, 3};
inline const std::vector<int64_t> kShape = {2, 3};

}  // namespace qplan::testing::onnx_run

#endif  // QPLAN_TESTS_MODELS_ONNX_RUN_H_
