// Einsum through a plan, against sums over all labels in double.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "tests/models/onnx_run.h"
#include "tests/packer/import/onnx_helpers.h"

namespace qplan::testing::onnx_einsum_test {
namespace {

using namespace onnx_run;  // NOLINT: the words of these models

using Extents = std::map<char, int64_t>;

std::vector<int64_t> shape_of(const std::string& labels, const Extents& extents) {
  std::vector<int64_t> shape;
  for (const char label : labels) shape.push_back(extents.at(label));
  return shape;
}

size_t count_of(const std::string& labels, const Extents& extents) {
  int64_t count = 1;
  for (const char label : labels) count *= extents.at(label);
  return static_cast<size_t>(count);
}

std::vector<float> numbers(const std::string& labels, const Extents& extents, int start) {
  std::vector<float> values;
  for (size_t i = 0; i < count_of(labels, extents); ++i)
    values.push_back(static_cast<float>((static_cast<int>(i) * 37 + start) % 19) * 0.25f - 2);
  return values;
}

// The sum of the products at all places of all labels.
std::vector<double> summed(const std::vector<std::string>& terms, const std::string& result,
                           const Extents& extents, const std::vector<std::vector<float>>& operands) {
  std::string all;
  for (const auto& [label, extent] : extents) all += label;
  std::vector<double> sums(count_of(result, extents));
  for (size_t at = 0; at < count_of(all, extents); ++at) {
    Extents place;
    size_t rest = at;
    for (const char label : all) {
      place[label] = static_cast<int64_t>(rest) % extents.at(label);
      rest /= static_cast<size_t>(extents.at(label));
    }
    const auto position = [&](const std::string& labels) {
      int64_t flat = 0;
      for (const char label : labels) flat = flat * extents.at(label) + place.at(label);
      return static_cast<size_t>(flat);
    };
    double product = 1;
    for (size_t i = 0; i < terms.size(); ++i) product *= operands[i][position(terms[i])];
    sums[position(result)] += product;
  }
  return sums;
}

// constant: which operand is one; -1: none.
void expect_einsum(const std::vector<std::string>& terms, const std::string& result, const Extents& extents,
                   const std::string& equation, int constant = -1) {
  OnnxBuilder b(17);
  Names names;
  std::vector<std::vector<float>> operands;
  std::vector<std::vector<uint8_t>> inputs;
  for (const std::string& term : terms) {
    const auto i = static_cast<int>(operands.size());
    operands.push_back(numbers(term, extents, 5 + 3 * i));
    names.push_back("x" + std::to_string(i));
    if (i == constant) {
      b.constant(names.back(), kFloat, shape_of(term, extents), operands.back());
    } else {
      b.input(names.back(), kFloat, shape_of(term, extents));
      inputs.push_back(bytes_of(operands.back()));
    }
  }
  b.node("Einsum", names, {"y"}, {attr_string("equation", equation)});
  ModelSession session(packed(b.output("y", kFloat, shape_of(result, extents))), QPLAN_ISA_AUTO, 1);
  expect_near(values_of<float>(session.run(inputs).at(0)), summed(terms, result, extents, operands),
              equation);
}

TEST(OnnxEinsum, OneOperandIsTransposedAndSummed) {
  const Extents extents = {{'i', 2}, {'j', 3}, {'k', 4}};
  expect_einsum({"ijk"}, "kij", extents, "ijk->kij");
  expect_einsum({"ijk"}, "ki", extents, "ijk->ki");
  expect_einsum({"ijk"}, "", extents, "ijk->");
  expect_einsum({"kji"}, "ijk", extents, "kji");  // without a result: its labels in alphabetical order
}

TEST(OnnxEinsum, ProductsOfMatrices) {
  const Extents extents = {{'b', 2}, {'i', 3}, {'k', 4}, {'j', 5}};
  const Extents matrices = {{'i', 3}, {'k', 4}, {'j', 5}};
  expect_einsum({"ik", "kj"}, "ij", matrices, "ik,kj->ij");
  expect_einsum({"ik", "kj"}, "ij", matrices, "ik , kj");
  expect_einsum({"ik", "jk"}, "ji", matrices, "ik,jk->ji", 1);
  expect_einsum({"bik", "bkj"}, "bij", extents, "bik,bkj->bij");
  expect_einsum({"bik", "kj"}, "bij", extents, "bik,kj->bij", 1);
  expect_einsum({"kj", "bik"}, "bji", extents, "kj,bik->bji", 0);
  expect_einsum({"bik", "bkj"}, "bij", extents, "...ik,...kj->...ij");
  expect_einsum({"ik", "k"}, "i", {{'i', 3}, {'k', 4}}, "ik,k->i");
  expect_einsum({"k", "k"}, "", {{'k', 4}}, "k,k->");
}

TEST(OnnxEinsum, SeveralAxesOfAKindAreOneOfTheMatrices) {
  const Extents heads = {{'b', 2}, {'q', 3}, {'h', 2}, {'d', 4}, {'k', 5}};
  expect_einsum({"bqhd", "bkhd"}, "bhqk", heads, "bqhd,bkhd->bhqk");
  expect_einsum({"bhqk", "bkhd"}, "bqhd", heads, "bhqk,bkhd->bqhd");
  const Extents joined = {{'b', 2}, {'t', 3}, {'h', 2}, {'d', 4}, {'e', 5}};
  expect_einsum({"bthd", "hde"}, "bte", joined, "bthd,hde->bte", 1);
  expect_einsum({"nchw", "kc"}, "nkhw", {{'n', 1}, {'c', 3}, {'h', 2}, {'w', 2}, {'k', 5}}, "nchw,kc->nkhw",
                1);
}

TEST(OnnxEinsum, WithoutSumsElementsAreMultiplied) {
  expect_einsum({"i", "j"}, "ij", {{'i', 3}, {'j', 4}}, "i,j->ij");
  expect_einsum({"ij", "ji"}, "ij", {{'i', 3}, {'j', 4}}, "ij,ji->ij");
  expect_einsum({"ij", "k"}, "ik", {{'i', 3}, {'j', 4}, {'k', 2}}, "ij,k->ik");  // j is summed before that
}

// x -> Q -> DQ -> Einsum -> Q -> y: the product runs on integers, as MatMul's does. By hand.
TEST(OnnxEinsum, QuantizedOperandsAreMultipliedAsIntegers) {
  OnnxBuilder b(17);
  b.input("x", kInt8, {1, 2, 2}).scale("s", 0.5f).zero_point("z", 1);
  b.constant<int8_t>("w", kInt8, {3, 2}, {1, 2, 3, 4, -5, 6}).scale("ws", 0.25f).zero_point("wz", 0);
  b.node("DequantizeLinear", {"x", "s", "z"}, {"d"}).node("DequantizeLinear", {"w", "ws", "wz"}, {"dw"});
  b.node("Einsum", {"d", "dw"}, {"e"}, {attr_string("equation", "bij,kj->bik")});
  b.node("QuantizeLinear", {"e", "s", "z"}, {"y"}).output("y", kInt8, {1, 2, 3});
  ModelSession session(packed(b), QPLAN_ISA_AUTO, 1);
  // (9, -3) and (4, 4) after the zero point, a quarter of the products.
  EXPECT_EQ(values_of<int8_t>(session.run({bytes_of(std::vector<int8_t>{10, -2, 5, 5})}).at(0)),
            (std::vector<int8_t>{2, 5, -15, 4, 8, 2}));
}

TEST(OnnxEinsum, EquationsOfAnotherKindAreRefused) {
  const auto refused = [](const std::string& equation, int operands) {
    OnnxBuilder b(17);
    b.input("x", kFloat, {2, 2});
    b.node("Einsum", Names(static_cast<size_t>(operands), "x"), {"y"}, {attr_string("equation", equation)});
    return refusal(b.output("y", kFloat, {2}));
  };
  EXPECT_EQ(refused("ii->i", 1), kList + "Einsum with a label twice for one operand ('y')");
  EXPECT_EQ(refused("ij,jk,kl->il", 3), kList + "Einsum with 3 operands; use several of two ('y')");
  EXPECT_EQ(refused("ijk->i", 1), kInvalid + "node 0 Einsum 'y': the term 'ijk' is of an operand of rank 2");
  EXPECT_EQ(refused("ij->ik", 1), kInvalid + "node 0 Einsum 'y': attribute 'equation' has the result 'ik'");
  EXPECT_EQ(refused("i1->i", 1), kInvalid + "node 0 Einsum 'y': attribute 'equation' has 'i1'");
  EXPECT_EQ(refused("ij,jk->ik", 1),
            kInvalid + "node 0 Einsum 'y': attribute 'equation' is 'ij,jk->ik' for 1 operands");
}

}  // namespace
}  // namespace qplan::testing::onnx_einsum_test
