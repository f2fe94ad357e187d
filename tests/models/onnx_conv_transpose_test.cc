// ConvTranspose through plans, against its definition: each element of the data adds a window of products to
// the output. The pads before the output and the output's extents are written out for each case.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "tests/models/model_session.h"
#include "tests/packer/import/onnx_builder.h"

namespace qplan::testing::onnx_conv_transpose_test {
namespace {

using namespace onnx_test;  // NOLINT: the words of the builder

using Extents = std::vector<int64_t>;  // of height and width, or of the width alone

struct Transposed {
  std::vector<Message> attributes = {};  // but for group, strides and dilations
  Extents pads = {0, 0};                 // elements that are cut off before the output
  Extents output = {};                   // its extents
  Extents strides = {1, 1}, dilations = {1, 1}, data = {3, 4}, kernel = {3, 3};
  int64_t groups = 1;
};

OnnxBuilder model_of(const Extents& data, const std::vector<int64_t>& weights_shape,
                     const std::vector<float>& weights, const std::vector<float>& bias,
                     std::vector<Message> attributes) {
  OnnxBuilder b(17);
  b.input("x", kFloat, data).constant<float>("w", kFloat, weights_shape, weights);
  b.constant<float>("bias", kFloat, {static_cast<int64_t>(bias.size())}, bias);
  b.node("ConvTranspose", {"x", "w", "bias"}, {"y"}, std::move(attributes));
  b.graph().message(12, Message().bytes(1, "y"));
  return b;
}

std::vector<float> run(const OnnxBuilder& b, const std::vector<float>& x) {
  ModelSession session(pack_bytes(b.finish(), "net.onnx"), QPLAN_ISA_AUTO, 1);
  std::vector<uint8_t> bytes(x.size() * sizeof(float));
  std::memcpy(bytes.data(), x.data(), bytes.size());
  const std::vector<uint8_t> y = session.run({bytes}).at(0);
  std::vector<float> values(y.size() / sizeof(float));
  std::memcpy(values.data(), y.data(), y.size());
  return values;
}

// Everything is a small integer, so that float32 is exact.
void expect_sums(const std::string& what, Transposed t) {
  SCOPED_TRACE(what);
  constexpr size_t kIn = 4, kOut = 6;
  const size_t of_group = kOut / static_cast<size_t>(t.groups);
  const size_t rank = t.data.size();
  std::vector<Message> attributes = t.attributes;
  attributes.push_back(attr_int("group", t.groups));
  attributes.push_back(attr_ints("strides", t.strides));
  attributes.push_back(attr_ints("dilations", t.dilations));
  std::vector<int64_t> data_shape = {1, kIn}, weights_shape = {kIn, static_cast<int64_t>(of_group)};
  data_shape.insert(data_shape.end(), t.data.begin(), t.data.end());
  weights_shape.insert(weights_shape.end(), t.kernel.begin(), t.kernel.end());
  if (rank == 1) {
    for (Extents* extents : {&t.pads, &t.output, &t.strides, &t.dilations, &t.data, &t.kernel})
      extents->insert(extents->begin(), extents == &t.pads ? 0 : 1);
  }
  const int64_t height = t.data[0], width = t.data[1], area = height * width;
  const int64_t window = t.kernel[0] * t.kernel[1], output_area = t.output[0] * t.output[1];
  std::vector<float> x(kIn * static_cast<size_t>(area)), w(kIn * of_group * static_cast<size_t>(window));
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i * 7 % 11) - 5;
  for (size_t i = 0; i < w.size(); ++i) w[i] = static_cast<float>(i * 5 % 13) - 6;
  std::vector<float> bias(kOut), expected(kOut * static_cast<size_t>(output_area));
  for (size_t o = 0; o < kOut; ++o) bias[o] = static_cast<float>(o) - 2;
  for (size_t i = 0; i < expected.size(); ++i) expected[i] = bias[i / static_cast<size_t>(output_area)];
  for (size_t i = 0; i < kIn; ++i) {
    for (int64_t at = 0; at < area; ++at) {
      for (size_t o = 0; o < of_group; ++o) {
        for (int64_t k = 0; k < window; ++k) {
          const int64_t y = at / width * t.strides[0] + k / t.kernel[1] * t.dilations[0] - t.pads[0];
          const int64_t z = at % width * t.strides[1] + k % t.kernel[1] * t.dilations[1] - t.pads[1];
          if (y < 0 || y >= t.output[0] || z < 0 || z >= t.output[1]) continue;
          const size_t channel = i / (kIn / static_cast<size_t>(t.groups)) * of_group + o;
          expected[channel * static_cast<size_t>(output_area) + static_cast<size_t>(y * t.output[1] + z)] +=
              x[i * static_cast<size_t>(area) + static_cast<size_t>(at)] *
              w[(i * of_group + o) * static_cast<size_t>(window) + static_cast<size_t>(k)];
        }
      }
    }
  }
  EXPECT_EQ(run(model_of(data_shape, weights_shape, w, bias, std::move(attributes)), x), expected);
}

Message pads(int64_t pad) { return attr_ints("pads", {pad, pad, pad, pad}); }

TEST(OnnxConvTransposeSums, StridesPadsDilationsAndGroups) {
  expect_sums("default", {.output = {5, 6}});
  expect_sums("strides", {.output = {7, 9}, .strides = {2, 2}});
  expect_sums("output padding", {.attributes = {pads(1), attr_ints("output_padding", {1, 1})},
                                 .pads = {1, 1},
                                 .output = {6, 8},
                                 .strides = {2, 2}});
  expect_sums("groups",
              {.attributes = {pads(1)}, .pads = {1, 1}, .output = {7, 10}, .strides = {3, 3}, .groups = 2});
  expect_sums("dilations", {.attributes = {pads(3)}, .pads = {3, 3}, .output = {1, 2}, .dilations = {2, 2}});
}

// Without pads there are 7 x 9 outputs. An odd pad is before the output except under SAME_UPPER.
TEST(OnnxConvTransposeSums, OutputShapeSplitsThePads) {
  const auto asked = [](const Extents& shape, const char* mode, const Extents& pads) {
    expect_sums(mode, {.attributes = {attr_ints("output_shape", shape), attr_string("auto_pad", mode)},
                       .pads = pads,
                       .output = {shape.end() - 2, shape.end()},
                       .strides = {2, 2}});
  };
  for (const char* mode : {"NOTSET", "VALID", "SAME_LOWER"}) asked({6, 6}, mode, {1, 2});
  asked({6, 6}, "SAME_UPPER", {0, 1});
  asked({5, 7}, "NOTSET", {1, 1});
  asked({1, 6, 4, 8}, "NOTSET", {2, 1});
  expect_sums("output_padding counts",
              {.attributes = {attr_ints("output_shape", {5, 9}), attr_ints("output_padding", {1, 1})},
               .pads = {2, 1},
               .output = {5, 9},
               .strides = {2, 2}});
}

// The elements that are missing are at the end, where no window of the data reaches: the bias alone.
TEST(OnnxConvTransposeSums, OutputShapeMayBeLargerThanTheNaturalOne) {
  // As ONNX's own case convtranspose_output_shape.
  expect_sums("1 more", {.attributes = {attr_ints("output_shape", {10, 8})},
                         .output = {10, 8},
                         .strides = {3, 2},
                         .data = {3, 3}});
  for (const char* mode : {"NOTSET", "SAME_UPPER", "SAME_LOWER"}) {
    expect_sums(mode, {.attributes = {attr_ints("output_shape", {8, 31}), attr_string("auto_pad", mode)},
                       .output = {8, 31},
                       .strides = {2, 2}});
  }
  expect_sums("one axis more, one less", {.attributes = {attr_ints("output_shape", {9, 6})},
                                          .pads = {0, 2},
                                          .output = {9, 6},
                                          .strides = {2, 2}});
}

// SAME makes extent times stride outputs.
TEST(OnnxConvTransposeSums, SamePads) {
  const Message upper = attr_string("auto_pad", "SAME_UPPER"), lower = attr_string("auto_pad", "SAME_LOWER");
  expect_sums("upper, 1", {.attributes = {upper}, .output = {6, 8}, .strides = {2, 2}});
  expect_sums("lower, 1", {.attributes = {lower}, .pads = {1, 1}, .output = {6, 8}, .strides = {2, 2}});
  expect_sums("upper, 2", {.attributes = {upper}, .pads = {1, 1}, .output = {3, 4}});
  expect_sums("lower, 2", {.attributes = {lower}, .pads = {1, 1}, .output = {3, 4}});
}

TEST(OnnxConvTransposeSums, OneAxis) {
  const auto line = [](std::vector<Message> attributes) {
    return run(model_of({1, 1, 3}, {1, 1, 3}, {1, 2, 3}, {0}, std::move(attributes)), {1, 2, 3});
  };
  using Floats = std::vector<float>;
  EXPECT_EQ(line({}), (Floats{1, 4, 10, 12, 9}));
  const Message four = attr_ints("output_shape", {4});
  EXPECT_EQ(line({four}), (Floats{4, 10, 12, 9}));
  EXPECT_EQ(line({four, attr_string("auto_pad", "SAME_LOWER")}), (Floats{4, 10, 12, 9}));
  EXPECT_EQ(line({four, attr_string("auto_pad", "SAME_UPPER")}), (Floats{1, 4, 10, 12}));
  EXPECT_EQ(line({attr_ints("output_shape", {7})}), (Floats{1, 4, 10, 12, 9, 0, 0}));
  EXPECT_EQ(line({attr_ints("pads", {-1, -2})}), (Floats{0, 1, 4, 10, 12, 9, 0, 0}));
  expect_sums("channels", {.attributes = {attr_ints("output_shape", {7})},
                           .pads = {1},
                           .output = {7},
                           .strides = {2},
                           .dilations = {1},
                           .data = {4},
                           .kernel = {2},
                           .groups = 2});
}

// Expects that ConvTranspose of data [1, 1, 3] by a window of 3 is refused for the reason.
void expect_refused(const std::vector<Message>& attributes, const std::string& reason) {
  std::string refusal = "packed";
  try {
    (void)pack_bytes(model_of({1, 1, 3}, {1, 1, 3}, {1, 2, 3}, {0}, attributes).finish(), "net.onnx");
  } catch (const std::runtime_error& error) {
    refusal = error.what();
  }
  EXPECT_NE(refusal.find(reason), std::string::npos) << refusal;
}

// ONNX's text asks for extent * stride outputs, its shape inference for the natural ones.
TEST(OnnxConvTransposeSums, SameWithAWindowShorterThanTheStrideIsRefused) {
  for (const char* mode : {"SAME_UPPER", "SAME_LOWER"}) {
    expect_refused({attr_string("auto_pad", mode), attr_ints("strides", {4})},
                   "auto_pad SAME and a window of 3 at stride 4, for which ONNX's operator and its shape "
                   "inference have 12 and 11 outputs; state output_shape or pads instead");
  }
}

TEST(OnnxConvTransposeSums, PadsThatLeaveNothingAreRefused) {
  expect_refused({attr_ints("pads", {4, 4})}, "pads of 4 and 4, which leave nothing of 5 outputs");
}

// No smaller output is packed instead.
TEST(OnnxConvTransposeSums, OutputsBeyondTheLimitsAreRefused) {
  constexpr int64_t kTooMany = int64_t{1} << 31;
  for (const int64_t extent : {kTooMany, kTooMany + 1, int64_t{1} << 32, int64_t{1} << 62}) {
    expect_refused({attr_ints("output_shape", {extent})}, "ConvTranspose 'y': attribute 'output_shape' is [" +
                                                              std::to_string(extent) +
                                                              "], expected values from 1 to 2147483647");
  }
  expect_refused({attr_ints("output_shape", {kTooMany - 1})}, "'y': its kernel refuses");
  expect_refused({attr_ints("output_padding", {kTooMany})},
                 "ConvTranspose with an output axis of 2147483653 elements, more than 2147483647 ('y')");
  expect_refused({attr_ints("pads", {0, -kTooMany})},
                 "ConvTranspose with an output axis of 2147483653 elements, more than 2147483647 ('y')");
  expect_refused(
      {attr_ints("strides", {kTooMany})},
      "an axis of 3 elements at stride 2147483648, more than 2147483648 with the zeros between them");
  expect_refused({attr_ints("dilations", {kTooMany})},
                 "a window of 4294967297, more than 2147483648 elements");
}

}  // namespace
}  // namespace qplan::testing::onnx_conv_transpose_test
