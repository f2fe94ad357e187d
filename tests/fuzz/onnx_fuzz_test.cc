// Hostile .onnx files: the packer refuses them with a reason, or makes a plan that opens and runs to the end.
// Beside damaged files there are sound ones with nonsense in them: operators of all rows with operands, axes
// and extents drawn from numbers on which arithmetic breaks.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "src/packer/error.h"
#include "src/packer/import/import.h"
#include "src/packer/import/onnx/op_context.h"
#include "tests/fuzz/case_watch.h"
#include "tests/fuzz/mutate.h"
#include "tests/fuzz/pack_and_run.h"
#include "tests/fuzz/sources.h"
#include "tests/packer/import/onnx_builder.h"

namespace qplan::testing::onnx_fuzz_test {
namespace {

using namespace onnx_test;  // the builder's constants and attributes

Outcome pack_and_run(const Bytes& model, uint64_t seed) {
  return pack_and_run_model(model, "model.onnx", fuzz_pack_options(), seed);
}

// Dequantise, float layers, quantise; pads from shape arithmetic; weights as floats.
Bytes qdq_network() {
  OnnxBuilder b;
  b.input("x", kInt8, {1, 2, 4, 4}).scale("s", 0.5f).scale("t", 0.25f).zero_point("z", 1).zero_point("0", 0);
  b.constant<float>("w", kFloat, {2, 2, 3, 3}, std::vector<float>(36, 0.5f));
  b.initializer(tensor_header("c", kInt32, {2}).packed<int32_t>(5, {3, -300}));
  b.constant<float>("cs", kFloat, {}, {0.125f}).constant<int32_t>("c0", kInt32, {}, {0});
  b.ints("pads", {0, 0, 1, 1}).ints("four", {4}).ints("flat", {1, -1});
  b.node("DequantizeLinear", {"x", "s", "z"}, {"xd"});
  b.node("ConstantOfShape", {"four"}, {"none"},
         {attr_tensor("value", tensor<int64_t>("", kInt64, {1}, {0}))});
  b.node("Concat", {"pads", "none"}, {"all"}, {attr_int("axis", 0)}).node("Pad", {"xd", "all"}, {"p"});
  b.node("QuantizeLinear", {"w", "t", "0"}, {"wq"}).node("DequantizeLinear", {"wq", "t", "0"}, {"wd"});
  b.node("DequantizeLinear", {"c", "cs", "c0"}, {"cd"});
  b.node("Conv", {"p", "wd", "cd"}, {"y"},
         {attr_ints("kernel_shape", {3, 3}), attr_string("auto_pad", "SAME_UPPER")});
  b.node("Relu", {"y"}, {"r"})
      .node("QuantizeLinear", {"r", "s", "z"}, {"q"})
      .node("DequantizeLinear", {"q", "s", "z"}, {"d"});
  b.node("MaxPool", {"d"}, {"m"}, {attr_ints("kernel_shape", {2, 2}), attr_ints("strides", {2, 2})});
  b.node("GlobalAveragePool", {"m"}, {"g"}).node("QuantizeLinear", {"g", "s", "z"}, {"gq"});
  b.node("Reshape", {"gq", "flat"}, {"f"}).output("f", kInt8, {1, 2});
  return b.finish();
}

// Integer operators of ONNX and of ONNX Runtime.
Bytes qop_network() {
  OnnxBuilder b;
  b.import_opset("com.microsoft", 1).input("x", kUint8, {1, 1, 3, 3}).scale("s", 0.5f);
  b.constant<uint8_t>("z", kUint8, {}, {3}).constant<int8_t>("0", kInt8, {}, {0});
  b.constant<int8_t>("w", kInt8, {1, 1, 2, 2}, {1, -2, 3, 4})
      .constant<int8_t>("v", kInt8, {4, 2}, std::vector<int8_t>(8, 5));
  b.node("QLinearConv", {"x", "s", "z", "w", "s", "0", "s", "z"}, {"c"});
  b.node("QLinearAdd", {"c", "s", "z", "c", "s", "z", "s", "z"}, {"a"}, {}, "com.microsoft");
  b.node("Flatten", {"a"}, {"f"}).node("QLinearMatMul", {"f", "s", "z", "v", "s", "0", "s", "z"}, {"m"});
  b.node("QLinearSoftmax", {"m", "s", "z", "s", "z"}, {"y"}, {attr_int("opset", 13)}, "com.microsoft");
  return b.output("y", kUint8, {1, 2}).finish();
}

struct Source {
  std::string name;
  Bytes bytes;  // empty: not there
};
std::vector<Source> sources() {
  const auto shared = [](const char* name) {
    const char* folder = std::getenv("QPLAN_SHARED");
    return read_file(std::filesystem::path(folder != nullptr ? folder : "../shared") / name);
  };
  return {{"qdq_network", qdq_network()},
          {"qop_network", qop_network()},
          {"kws_ref_model_B", shared("onnx/kws_ref_model_B.onnx")},
          {"resnet8_torch_qdq", shared("torch/resnet8_torch_qdq.onnx")}};
}

SeedRange seeds(uint64_t share) {
  const uint64_t first = number_from_environment("QPLAN_FUZZ_FIRST_SEED", 0);
  return {first, first + (number_from_environment("QPLAN_FUZZ_SEEDS", 2000) + share - 1) / share};
}

TEST(OnnxFuzz, SoundNetworksRun) {
  for (const Source& source : sources()) {
    if (source.bytes.empty()) continue;
    EXPECT_EQ(pack_and_run(source.bytes, 0), Outcome::kRan) << source.name;
  }
}

TEST(OnnxFuzz, TruncatedAtEveryByte) {
  for (const Source& source : {sources()[0], sources()[1]}) {
    CaseWatch watch;
    Outcomes outcomes;
    for (size_t size = 0; size < source.bytes.size(); ++size) {
      watch.run(source.name + ", truncated to " + std::to_string(size),
                [&] { outcomes.add(pack_and_run(truncated(source.bytes, size), size)); });
    }
    watch.report(outcomes.text());
  }
}

class OnnxFuzzDamage : public ::testing::TestWithParam<Damage> {};

TEST_P(OnnxFuzzDamage, IsRefusedOrRuns) {
  for (const Source& source : sources()) {
    if (source.bytes.empty()) continue;
    CaseWatch watch;
    Outcomes outcomes;
    // Large files are slow and mostly weights.
    const SeedRange range = seeds(source.bytes.size() < 4096 ? 2 : 16);
    for (uint64_t seed = range.begin; seed < range.end; ++seed) {
      watch.run(source.name + ", " + damage_name(GetParam()) + ", seed " + std::to_string(seed),
                [&] { outcomes.add(pack_and_run(damaged(source.bytes, GetParam(), seed), seed)); });
    }
    watch.report(outcomes.text());
  }
}
INSTANTIATE_TEST_SUITE_P(Kinds, OnnxFuzzDamage, ::testing::Values(Damage::kBits, Damage::kWords),
                         [](const auto& test) { return damage_name(test.param); });

// Subgraphs within subgraphs: protobuf's depth is bounded, ours is not even reached.
TEST(OnnxFuzz, DeepNestingIsRefused) {
  for (const int depth : {10, 60, 1000, 20000}) {
    Message graph = Message().bytes(2, "innermost");
    for (int i = 0; i < depth; ++i) {
      const Message node = Message().bytes(1, "x").bytes(2, "y").bytes(4, "If").message(
          5, attr("then_branch", 5).message(6, graph));
      graph = Message().message(1, node);
    }
    const Message model =
        Message().number(1, 8).message(7, graph).message(8, Message().bytes(1, "").number(2, 13));
    EXPECT_EQ(pack_and_run({model.text().begin(), model.text().end()}, 0), Outcome::kRefused) << depth;
  }
}

// Each node doubles the text of what it reads: sizes must be bounded before memory is asked for.
TEST(OnnxFuzz, GrowthIsBounded) {
  CaseWatch watch;
  OnnxBuilder concat, pad, power;
  concat.ints("v0", {1, 2}).ints("i", {0});
  for (int i = 0; i < 60; ++i) {
    const std::string v = "v" + std::to_string(i);
    concat.node("Concat", {v, v}, {"v" + std::to_string(i + 1)}, {attr_int("axis", 0)});
  }
  concat.output("v60", kInt64, {1});
  watch.run("concat", [&] { EXPECT_EQ(pack_and_run(concat.finish(), 0), Outcome::kRefused); });
  power.input("x", kFloat, {1, 1, 2, 2}).ints("p", {0, 0, 1 << 20, 1 << 20, 0, 0, 1 << 20, 1 << 20});
  power.node("Pad", {"x", "p"}, {"y"}).node("Pad", {"y", "p"}, {"z"}).output("z", kFloat, {1});
  watch.run("pad", [&] { EXPECT_EQ(pack_and_run(power.finish(), 0), Outcome::kRefused); });
}

// ---- sound files, nonsense in them ----

const std::vector<int64_t> kNumbers = {0,   1,   2,       3,         -1,        -2,
                                       4,   7,   8,       16,        127,       128,
                                       255, 256, 1 << 16, INT32_MAX, INT32_MIN, int64_t{1} << 32,
                                       40,  100, 65537,   INT64_MAX, INT64_MIN, INT64_MAX / 2,
                                       -3};

class Soup {
 public:
  explicit Soup(uint64_t seed) : random_(seed) {}

  Bytes model() {
    OnnxBuilder b(random_.integer(6, 26));
    b.import_opset("com.microsoft", 1);
    inputs(&b);
    for (int64_t i = 0, count = random_.integer(1, 5); i < count; ++i) add_node(&b, i);
    b.graph().message(12, Message().bytes(1, values_.back()));
    return b.finish();
  }

 private:
  int64_t number() { return random_.chance(0.7) ? random_.integer(-2, 5) : random_.pick(kNumbers); }
  std::vector<int64_t> numbers() {
    std::vector<int64_t> values(static_cast<size_t>(random_.integer(0, random_.chance(0.1) ? 9 : 5)));
    for (int64_t& value : values) value = number();
    return values;
  }

  // Mostly one that imports, so that the nodes after it are reached; the others are cases of their own.
  void add_node(OnnxBuilder* b, int64_t index) {
    const auto rows = onnx::rows();
    const std::string result = "n" + std::to_string(index);
    for (int tries = 0; tries < 30; ++tries) {
      OnnxBuilder tried = *b;
      const onnx::ImportRow& row =
          rows[static_cast<size_t>(random_.integer(0, static_cast<int64_t>(rows.size()) - 1))];
      Names operands;
      for (int64_t k = random_.integer(1, 3); k-- > 0;) operands.push_back(random_.pick(values_));
      if (row.op_type.starts_with("Q") || row.op_type.starts_with("De")) quantized_operands(&operands);
      std::vector<Message> attributes;
      for (int64_t k = random_.integer(0, 2); k-- > 0;) attributes.push_back(attribute());
      if (random_.chance(0.3)) attributes.push_back(attr_ints("kernel_shape", {number(), number()}));
      tried.node(row.op_type, operands, {result}, attributes, row.domain);
      OnnxBuilder whole = tried;
      whole.graph().message(12, Message().bytes(1, result));
      if (!imports(whole.finish()) && random_.chance(0.95)) continue;
      *b = tried;
      values_.insert(values_.end(), {result, result, result});  // later nodes prefer what is new
      return;
    }
  }

  static bool imports(const Bytes& model) {
    try {
      import_onnx(model, "soup.onnx");
      return true;
    } catch (const PackError& error) {
      EXPECT_NE(error.status(), QPLAN_INTERNAL) << error.what();
      return false;
    }
  }

  void inputs(OnnxBuilder* b) {
    b->input("x", kFloat, {1, 2, 4, 4}).input("i", kInt8, {1, 2, 4, 4}).input("m", kUint8, {2, 3});
    b->scale("s", 0.5f).zero_point("z", 1).scale("bad", random_.chance(0.5) ? 0.0f : -1.0f);
    b->constant<float>("w", kFloat, {2, 2, 1, 1}, {1, 2, 3, 4})
        .constant<int8_t>("v", kInt8, {2, 2, 1, 1}, {1, 2, 3, 4});
    b->constant<float>("ss", kFloat, {2}, {0.5f, 0.25f}).constant<float>("e", kFloat, {0}, {});
    b->constant<uint8_t>("t", kBool, {2}, {0, 1}).constant<int32_t>("j", kInt32, {2}, {3, 4});
    const std::vector<int64_t> shape = numbers();
    b->ints("n", shape).ints("k", {number(), number()}).ints("one", {number()});
    // Extents that need not fit the bytes.
    b->initializer(tensor("odd", kFloat, numbers(), std::vector<float>(4)));
    values_ = {"x", "x", "i", "m", "s", "z",   "w",   "v", "ss",
               "e", "t", "j", "n", "k", "one", "odd", "",  "bad"};
  }

  // Tensor, scale, zero point, ...: what the quantised operators want.
  void quantized_operands(Names* operands) {
    *operands = {random_.pick(Names{"i", "m", "x"}), "s", "z"};
    if (random_.chance(0.7))
      operands->insert(operands->end(),
                       {random_.pick(Names{"v", "i", "m"}), random_.pick(Names{"s", "ss"}), "z", "s", "z"});
  }

  Message attribute() {
    static const Names kInts = {"axis",
                                "group",
                                "keepdims",
                                "to",
                                "ceil_mode",
                                "count_include_pad",
                                "transA",
                                "transB",
                                "num_outputs",
                                "start",
                                "end",
                                "allowzero",
                                "training_mode",
                                "opset",
                                "channels_last",
                                "block_size",
                                "output_dtype",
                                "value_int",
                                "storage_order",
                                "noop_with_empty_axes",
                                "broadcast",
                                "batch_dims",
                                "bits",
                                "K",
                                "N",
                                "num_groups",
                                "largest",
                                "fmod",
                                "num_heads",
                                "q_num_heads",
                                "kv_num_heads",
                                "unidirectional",
                                "is_causal",
                                "qk_matmul_output_mode",
                                "interleaved",
                                "rotary_embedding_dim",
                                "gather_axis",
                                "quantize_axis"};
    static const Names kLists = {"axes",  "perm",   "pads", "strides", "dilations", "kernel_shape",
                                 "split", "starts", "ends", "shape",   "value_ints"};
    static const Names kReals = {"alpha", "beta",  "epsilon",  "min",   "max",
                                 "value", "ratio", "momentum", "scale", "softcap"};
    static const Names kTexts = {"auto_pad", "mode", "coordinate_transformation_mode", "equation",
                                 "reduction"};
    const int64_t kind = random_.integer(0, 5);
    if (kind <= 1) return attr_int(random_.pick(kInts), number());
    if (kind <= 3) return attr_ints(random_.pick(kLists), numbers());
    if (kind == 4) {
      static const std::vector<float> kFloats = {0, -1, 1e30f, INFINITY, -INFINITY, NAN, 0.5f};
      return random_.chance(0.3)
                 ? attr_tensor("value", tensor("", kFloat, numbers(), std::vector<float>(1, 2.0f)))
                 : attr_float(random_.pick(kReals), random_.pick(kFloats));
    }
    return attr_string(random_.pick(kTexts),
                       random_.pick(Names{"SAME_UPPER", "SAME_LOWER", "VALID", "linear", "reflect", "\xff",
                                          "ij,jk->ik", "a...,...b", "abcd->", "add", "max"}));
  }

  Random random_;
  Names values_;
};

TEST(OnnxFuzz, OperatorSoup) {
  CaseWatch watch;
  Outcomes outcomes;
  const uint64_t first = number_from_environment("QPLAN_FUZZ_FIRST_SEED", 0);
  const uint64_t count = number_from_environment("QPLAN_FUZZ_SEEDS", 2000);
  for (uint64_t seed = first; seed < first + count; ++seed) {
    watch.run("operator soup, seed " + std::to_string(seed),
              [&] { outcomes.add(pack_and_run(Soup(seed).model(), seed)); });
  }
  watch.report(outcomes.text());
}

}  // namespace
}  // namespace qplan::testing::onnx_fuzz_test
