#include <gtest/gtest.h>

#include "src/packer/error.h"
#include "src/packer/ir/module.h"
#include "tests/support/ir_builder.h"

namespace qplan::ir::verifier_test {
namespace {

std::string refusal(const Module& module) {
  try {
    verify(module);
  } catch (const PackError& error) {
    return error.what();
  }
  return "";
}

const TensorType kType{kInt8, {2, 3}};

// %0 = cast(%x, int32), %1 = cast(%0, int8)
struct Chain {
  Module module;
  Function& main = module.add_function("main");
  ValueId x = main.add_param("x", kType);
  Node* first = nullptr;
  Node* second = nullptr;

  Chain() {
    Builder b(&main);
    const ValueId wide = b.call("cast", {x}, {{"dtype", "int32"}}, "widen");
    const ValueId narrow = b.call("cast", {wide}, {{"dtype", "int8"}});
    main.set_outputs({narrow});
    // The only way to break a function is to write to its nodes; passes get them as const.
    first = const_cast<Node*>(&main.nodes()[0]);
    second = const_cast<Node*>(&main.nodes()[1]);
  }
};

TEST(Verifier, AcceptsChain) { EXPECT_EQ(refusal(Chain().module), ""); }

TEST(Verifier, AcceptsEmptyBodyThatReturnsItsParameter) {
  Module module;
  Function& f = module.add_function("f");
  f.set_outputs({f.add_param("x", kType)});
  EXPECT_EQ(refusal(module), "");
}

TEST(Verifier, OperandsComeFromEarlierNodes) {
  Chain chain;
  chain.first->operands[0] = chain.second->results[0];
  EXPECT_EQ(refusal(chain.module),
            "function 'main': cast 'widen': operand 0 is used before the node that makes it");
}

TEST(Verifier, OperandsAreValuesOfTheFunction) {
  Chain chain;
  chain.second->operands[0] = ValueId{77};
  EXPECT_EQ(refusal(chain.module),
            "function 'main': cast (node 1): operand 0 is not a value of the function");
  chain.second->operands[0] = ValueId{};
  EXPECT_EQ(refusal(chain.module),
            "function 'main': cast (node 1): operand 0 is not a value of the function");
}

TEST(Verifier, ResultTypesAreWhatInferenceSays) {
  Chain chain;
  chain.first->attrs.set("dtype", "int16");
  EXPECT_EQ(
      refusal(chain.module),
      "function 'main': cast 'widen': result 0 is Tensor[(2, 3), int32], expected Tensor[(2, 3), int16]");
  chain.first->attrs.set("dtype", "int33");
  EXPECT_EQ(refusal(chain.module), "cast 'widen': attribute 'dtype' names an unknown dtype 'int33'");
}

TEST(Verifier, ResultsBelongToOneNode) {
  Chain chain;
  chain.second->results = chain.first->results;
  EXPECT_EQ(refusal(chain.module), "function 'main': cast (node 1): result 0 is the value of something else");
  chain.second->results = {};
  EXPECT_EQ(refusal(chain.module), "function 'main': cast (node 1): there are no results");
  chain.second->results = {ValueId{78}};
  EXPECT_EQ(refusal(chain.module), "function 'main': cast (node 1): result 0 is not a value of the function");
}

TEST(Verifier, NodeIsOperatorOrCall) {
  Chain chain;
  chain.second->callee = "f";
  EXPECT_EQ(refusal(chain.module), "function 'main': cast (node 1): expected either an operator or a callee");
}

TEST(Verifier, OutputsExistAndAreNamedAllOrNone) {
  Chain chain;
  chain.main.set_outputs({});
  EXPECT_EQ(refusal(chain.module), "function 'main': there are no outputs");
  chain.main.set_outputs({ValueId{9}});
  EXPECT_EQ(refusal(chain.module), "function 'main': an output is not a value of the function");
  chain.main.set_outputs({chain.x}, {"a", "b"});
  EXPECT_EQ(refusal(chain.module), "function 'main': there are 2 output names for 1 outputs");
}

TEST(Verifier, ParameterNamesAreUnique) {
  Chain chain;
  chain.main.add_param("x", kType);
  EXPECT_EQ(refusal(chain.module), "function 'main': two parameters have the name 'x'");
}

TEST(Verifier, TypesAreWithinLimits) {
  Chain chain;
  chain.main.add_param("y", {kInt8, {4, -1}});
  EXPECT_EQ(refusal(chain.module),
            "function 'main': value 'y': extent -1 of Tensor[(4, -1), int8] must be at least 1");
  Chain odd;
  odd.main.add_param("y", {{kDLBfloat, 16, 1}, {4}});
  EXPECT_EQ(refusal(odd.module), "function 'main': value 'y': dtype(4, 16, 1) is not a dtype of the IR");
}

// main calls f, f calls g.
struct Calls {
  Module module;
  Function& g = module.add_function("g");
  Function& f = module.add_function("f");
  Function& main = module.add_function("main");

  void call(Function& caller, const std::string& callee, TensorType param, std::vector<TensorType> results) {
    const ValueId x = caller.add_param("x" + std::to_string(caller.params().size()), std::move(param));
    caller.set_outputs({caller.add_call(callee, {x}, std::move(results), "").results});
  }
};

TEST(Verifier, CallsFitTheirCallee) {
  Calls calls;
  calls.g.set_outputs({calls.g.add_param("x", kType)});
  calls.call(calls.f, "g", kType, {kType});
  calls.call(calls.main, "f", kType, {kType});
  EXPECT_EQ(refusal(calls.module), "");
}

TEST(Verifier, CallsOfOtherTypesAreRefused) {
  Calls wrong_operand;
  wrong_operand.g.set_outputs({wrong_operand.g.add_param("x", kType)});
  wrong_operand.call(wrong_operand.f, "g", {kInt8, {3, 2}}, {kType});
  EXPECT_EQ(refusal(wrong_operand.module),
            "function 'f': call of '@g' (node 0): operand 0 is Tensor[(3, 2), int8], expected Tensor[(2, 3), "
            "int8]");

  Calls wrong_result;
  wrong_result.g.set_outputs({wrong_result.g.add_param("x", kType)});
  wrong_result.call(wrong_result.f, "g", kType, {kType, kType});
  EXPECT_EQ(refusal(wrong_result.module),
            "function 'f': call of '@g' (node 0): there are 2 results, expected 1");

  Calls wrong_count;
  wrong_count.g.set_outputs({wrong_count.g.add_param("x", kType)});
  wrong_count.g.add_param("y", kType);
  wrong_count.call(wrong_count.f, "g", kType, {kType});
  EXPECT_EQ(refusal(wrong_count.module),
            "function 'f': call of '@g' (node 0): there are 1 operands, expected 2");

  Calls missing;
  missing.g.set_outputs({missing.g.add_param("x", kType)});
  missing.call(missing.f, "h", kType, {kType});
  EXPECT_EQ(refusal(missing.module), "function 'f': call of '@h' (node 0): there is no such function");
}

TEST(Verifier, CirclesOfCallsAreRefused) {
  Calls calls;
  calls.call(calls.g, "f", kType, {kType});
  calls.call(calls.f, "g", kType, {kType});
  calls.call(calls.main, "f", kType, {kType});
  EXPECT_EQ(refusal(calls.module), "function 'f': it is part of, or called from, a circle of calls");
}

TEST(Builder, WritesQuantisedNodes) {
  Module module;
  Function& f = module.add_function("main");
  Builder b(&f);
  const ValueId x = f.add_param("x", {kUint8, {1, 2, 5, 5}});
  const QuantParams input{make_scalar(0.5f), make_scalar(128)};
  const QuantParams kernel{make_constant<float>(kFloat32, {3}, {1, 2, 3}), make_scalar(0)};
  const QuantParams sum{make_constant<float>(kFloat32, {3}, {0.5f, 1, 1.5f}), make_scalar(0)};
  const ValueId w = b.constant<int8_t>(kInt8, {3, 2, 1, 1}, {1, 2, 3, 4, 5, 6}, "w");
  const ValueId conv = b.weighted("qnn.conv2d", x, w, input, kernel, {}, "conv");
  const ValueId out =
      b.quantized("qnn.requantize", {conv}, {sum, input}, {{"axis", 1}, {"out_dtype", "uint8"}});
  const std::vector<ValueId> halves =
      b.call_all("split", {out}, {{"indices_or_sections", ir::Ints{1}}, {"axis", 1}});
  f.set_outputs(halves);
  EXPECT_EQ(refusal(module), "");
  EXPECT_EQ(to_string(f.type(halves[1])), "Tensor[(1, 2, 5, 5), uint8]");
  EXPECT_EQ(f.value(w).name, "w");
}

}  // namespace
}  // namespace qplan::ir::verifier_test
