#include "src/packer/pipeline/pipeline.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <string_view>

#include "qplan/pack.h"
#include "src/packer/error.h"
#include "src/packer/evaluate/evaluate.h"
#include "src/packer/op/op_def.h"
#include "src/packer/passes/pass.h"
#include "src/packer/pipeline/stages.h"
#include "src/packer/target/program.h"

namespace qplan::pipeline_test {
namespace {

std::vector<uint8_t> digits_model() {
  std::ifstream file("samples/models/digits.tflite", std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

class PipelineOnDigits : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_FALSE(model_.empty()) << "samples/models/digits.tflite is missing"; }
  const std::vector<uint8_t> model_ = digits_model();
};

std::vector<uint8_t> bytes_of(const AlignedBytes& plan) { return {plan.data(), plan.data() + plan.size()}; }

TEST_F(PipelineOnDigits, TheFolderOfTheModelIsNotPartOfThePlan) {
  const PackOptions options;
  EXPECT_EQ(bytes_of(pack(model_, "digits.tflite", options)),
            bytes_of(pack(model_, "/some/where/digits.tflite", options)));
  EXPECT_NE(bytes_of(pack(model_, "digits.tflite", options)),
            bytes_of(pack(model_, "other.tflite", options)));
}

TEST_F(PipelineOnDigits, LogAndDumpDoNotChangeThePlan) {
  PackOptions options;
  const std::vector<uint8_t> plain = bytes_of(pack(model_, "m", options));
  size_t lines = 0, dumps = 0;
  std::set<std::string> stages;
  options.dump_after = "all";
  options.log = [&](uint32_t, const std::string&) { ++lines; };
  options.dump = [&](std::string_view) { ++dumps; };
  options.progress = [&](const char* stage, uint32_t done, uint32_t total) {
    EXPECT_LE(done, total) << stage;
    stages.insert(stage);
  };
  EXPECT_EQ(bytes_of(pack(model_, "m", options)), plain);
  EXPECT_GT(lines, 0u);
  EXPECT_GE(dumps, 1 + passes::all_passes().size());
  // These are the stages, and the work inside them.
  for (const char* stage :
       {"import", "rewrite", "fold_constants", "place and lower", "lower", "plan memory and write", "done"}) {
    EXPECT_EQ(stages.count(stage), 1u) << stage;
  }
}

// Both are possible after each step of each run of a self-check, as they are between other stages.
TEST_F(PipelineOnDigits, SelfChecksTellTheirProgressAndCanBeCancelled) {
  PackOptions options;
  options.self_checks = 2;
  uint32_t calls = 0, last = 0;
  options.progress = [&](const char* stage, uint32_t done, uint32_t total) {
    if (std::string_view(stage) != "self-check") return;
    EXPECT_EQ(done, ++calls);
    last = total;
  };
  pack(model_, "m", options);
  EXPECT_EQ(calls, last);
  EXPECT_GT(calls, 2u);
  for (const uint32_t at : {1u, last / 2 + 1, last}) {
    calls = 0;
    options.cancelled = [&] { return calls == at; };
    try {
      pack(model_, "m", options);
      ADD_FAILURE() << "cancelled at step " << at;
    } catch (const PackError& error) {
      EXPECT_EQ(error.status(), QPLAN_CANCELLED);
      EXPECT_EQ(std::string(error.what()), "packing was cancelled by the caller; nothing was written");
    }
    EXPECT_EQ(calls, at);
  }
}

TEST_F(PipelineOnDigits, DumpAfterOnePassShowsThatPass) {
  PackOptions options;
  std::string text;
  options.dump_after = "fold_zero_point";
  options.dump = [&](std::string_view part) { text += part; };
  pack(model_, "m", options);
  EXPECT_EQ(text.rfind("// after fold_zero_point\n", 0), 0u) << text.substr(0, 80);
  EXPECT_EQ(text.find("// after import"), std::string::npos);
}

TEST_F(PipelineOnDigits, UnknownPassAndTargetAreErrorsThatListTheKnown) {
  PackOptions options;
  options.dump_after = "fold_nothing";
  try {
    pack(model_, "m", options);
    FAIL();
  } catch (const PackError& error) {
    EXPECT_EQ(error.status(), QPLAN_INVALID_ARGUMENT);
    EXPECT_EQ(std::string(error.what())
                  .rfind("dump after: no pass 'fold_nothing'; known: all, import, fold_recurrence", 0),
              0u)
        << error.what();
  }
  options.dump_after.clear();
  options.target = "toaster";
  EXPECT_THROW(pack(model_, "m", options), PackError);
}

TEST_F(PipelineOnDigits, ConstantsOfAModelThatHasItsOwnAreNotMadeUp) {
  PackOptions options;
  options.import.synthesize_constants = 1;
  try {
    pack(model_, "digits.tflite", options);
    FAIL();
  } catch (const PackError& error) {
    EXPECT_EQ(error.status(), QPLAN_INVALID_ARGUMENT);
    EXPECT_STREQ(
        error.what(),
        "'digits.tflite': the model has its constants, only those of a Relay text can be made up; leave "
        "--synthesize-constants out");
  }
}

TEST(Pipeline, UnknownContentListsTheKnownFormats) {
  const std::vector<uint8_t> model(100, 1);
  try {
    pack(model, "net.tflite", {});
    FAIL();
  } catch (const PackError& error) {
    EXPECT_EQ(error.status(), QPLAN_MODEL_INVALID);
    const std::string text = error.what();
    EXPECT_EQ(text.find("'net.tflite': is not a model: 100 bytes in no format that is known; known: "
                        "TensorFlow Lite (.tflite, "
                        "'TFL3' at byte 4), "),
              0u)
        << text;
    EXPECT_NE(text.find("PyTorch"), std::string::npos) << text;
    EXPECT_NE(text.find("Relay text"), std::string::npos) << text;
  }
  EXPECT_THROW(pack({}, "empty", {}), PackError);
}

std::string refusal_of_text(std::string_view text) {
  try {
    pack({reinterpret_cast<const uint8_t*>(text.data()), text.size()}, "m.txt", {});
    return "packed";
  } catch (const PackError& error) {
    return error.what();
  }
}

TEST(Pipeline, TextThatIsNoRelayIsNoModel) {
  for (const std::string_view text : {"# A readme\nIt is 100% text.\n", "<!DOCTYPE html><html>404</html>",
                                      "{\"a\": [1, 2]}", "print('%s' % x)\n"}) {
    EXPECT_EQ(refusal_of_text(text).find("'m.txt': is not a model: " + std::to_string(text.size()) +
                                         " bytes of text that is no Relay; known: TensorFlow Lite"),
              0u)
        << refusal_of_text(text);
  }
}

TEST(Pipeline, TextThatTriesToBeRelayGetsTheParsersAnswer) {
  for (const std::string_view text :
       {"%0 = relu(%x); %0", "def @main(", "#[version = \"9\"]", "fn (%x) {}", "nn.relu(%data)"}) {
    EXPECT_EQ(refusal_of_text(text).find("m.txt:1:"), 0u) << refusal_of_text(text);
  }
}

TEST(Pipeline, HundredThousandOperatorsPackInSeconds) {
  constexpr int kOperators = 100'000;
  ir::Module module;
  ir::Function& main = module.add_function("main");
  const ir::ValueId scale = main.add_constant(ir::make_scalar(1.0f));
  const ir::ValueId zero_point = main.add_constant(ir::make_scalar(int32_t{0}));
  const ir::ValueId input = main.add_param("x", {ir::kInt8, {64}});
  ir::ValueId last = input;
  for (int i = 0; i < kOperators; ++i) {
    last = main.add_node(op::get_op("qnn.add"),
                         {last, input, scale, zero_point, scale, zero_point, scale, zero_point}, {},
                         "add" + std::to_string(i))
               .results[0];
  }
  main.set_outputs({last});
  const auto begin = std::chrono::steady_clock::now();
  const PackOptions options;
  const target::TargetProfile profile = target::parse_target("cpu");
  target::Target cpu;
  cpu.is_cpu = true;
  cpu.profile = profile;
  pipeline::canonicalize(&module, {&cpu, 1}, pipeline::Observer(options));
  const AlignedBytes plan = evaluate::make_plan(target::lower_function(module.main(), profile), profile, {});
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin;
  EXPECT_GT(plan.size(), size_t{kOperators});
  EXPECT_LT(passed.count(), 60.0);
}

// ---- the C API ----

void append(void* user, const char* bytes, size_t size) {
  auto& to = *static_cast<std::vector<uint8_t>*>(user);
  to.insert(to.end(), bytes, bytes + size);
}
void append_text(void* user, const char* bytes, size_t size) {
  static_cast<std::string*>(user)->append(bytes, size);
}

struct PackCall {
  qplan_pack_options options{};
  qplan_error error{};
  std::vector<uint8_t> plan;
  std::string error_text;

  PackCall() {
    options.struct_size = sizeof(options);
    options.user = &error_text;
    options.error_text = append_text;
    error.struct_size = sizeof(error);
  }
  qplan_status bytes(const std::vector<uint8_t>& model) {
    return qplan_pack_bytes(model.data(), model.size(), "m", &options, append, &plan, &error);
  }
  qplan_status file(const char* path) { return qplan_pack_file(path, &options, append, &plan, &error); }
};

TEST_F(PipelineOnDigits, TheCApiGivesTheSamePlanAsCxx) {
  PackCall call;
  ASSERT_EQ(call.bytes(model_), QPLAN_OK) << call.error.text;
  EXPECT_EQ(call.plan, bytes_of(pack(model_, "m", {})));
  PackCall from_file;
  ASSERT_EQ(from_file.file("samples/models/digits.tflite"), QPLAN_OK) << from_file.error.text;
  EXPECT_EQ(from_file.plan, bytes_of(pack(model_, "digits.tflite", {})));
}

TEST_F(PipelineOnDigits, OptionsAndErrorMayBeMissing) {
  std::vector<uint8_t> plan;
  EXPECT_EQ(qplan_pack_bytes(model_.data(), model_.size(), nullptr, nullptr, append, &plan, nullptr),
            QPLAN_OK);
  EXPECT_FALSE(plan.empty());
  EXPECT_EQ(qplan_pack_bytes("x", 1, nullptr, nullptr, append, &plan, nullptr), QPLAN_MODEL_INVALID);
}

TEST_F(PipelineOnDigits, FieldsBeyondStructSizeAreNotRead) {
  PackCall call;
  call.options.struct_size = offsetof(qplan_pack_options, target);
  call.options.target = reinterpret_cast<const char*>(1);
  EXPECT_EQ(call.bytes(model_), QPLAN_OK) << call.error.text;
}

TEST_F(PipelineOnDigits, TextOfTheModuleAndOfThePlan) {
  std::string imported, canonical, json, listing;
  ASSERT_EQ(qplan_import_text("samples/models/digits.tflite", nullptr, 0, append_text, &imported, nullptr),
            QPLAN_OK);
  ASSERT_EQ(qplan_import_text("samples/models/digits.tflite", nullptr, 1, append_text, &canonical, nullptr),
            QPLAN_OK);
  EXPECT_NE(imported.find("def @main"), std::string::npos);
  EXPECT_NE(canonical.find("def @main"), std::string::npos);
  PackCall call;
  ASSERT_EQ(call.bytes(model_), QPLAN_OK);
  EXPECT_EQ(qplan_inspect_json(call.plan.data(), call.plan.size(), append_text, &json, nullptr), QPLAN_OK);
  EXPECT_EQ(qplan_disassemble(call.plan.data(), call.plan.size(), append_text, &listing, nullptr), QPLAN_OK);
  EXPECT_EQ(json.front(), '{');
  EXPECT_EQ(listing.rfind("plan 1.", 0), 0u);
  EXPECT_LT(qplan_inspect_json("nonsense", 8, append_text, &json, &call.error), 0);
  EXPECT_EQ(call.error.status, QPLAN_PLAN_CORRUPT);
}

TEST(PackCApi, ErrorsHaveStatusAndTextAndWriteNothing) {
  PackCall call;
  EXPECT_EQ(call.file("no/such/model.tflite"), QPLAN_FILE_ERROR);
  EXPECT_NE(std::string(call.error.text).find("no/such/model.tflite"), std::string::npos) << call.error.text;
  EXPECT_EQ(call.error.status, QPLAN_FILE_ERROR);
  EXPECT_EQ(call.file("."), QPLAN_FILE_ERROR);
  EXPECT_EQ(call.file(nullptr), QPLAN_INVALID_ARGUMENT);
  EXPECT_EQ(call.bytes({}), QPLAN_MODEL_INVALID);
  call.options.target = "nothing";
  EXPECT_EQ(call.bytes({}), QPLAN_INVALID_ARGUMENT);
  EXPECT_EQ(qplan_pack_bytes(nullptr, 5, "m", nullptr, append, &call.plan, &call.error),
            QPLAN_INVALID_ARGUMENT);
  EXPECT_EQ(qplan_pack_bytes("", 0, "m", nullptr, nullptr, nullptr, &call.error), QPLAN_INVALID_ARGUMENT);
  EXPECT_TRUE(call.plan.empty());
}

TEST(PackCApi, TheWholeErrorGoesThroughErrorText) {
  PackCall call;
  const std::string target = "cpu,isa=" + std::string(400, 'y');
  call.options.target = target.c_str();
  EXPECT_EQ(call.bytes({}), QPLAN_INVALID_ARGUMENT);
  EXPECT_LT(std::string(call.error.text).size(), sizeof(call.error.text));
  EXPECT_NE(call.error_text.find("known: reference, sse41, avx2, avxvnni, avx512vnni"), std::string::npos)
      << call.error_text;
}

// People read error_text, which has lines. Logs get one line.
TEST(PackCApi, AListOfFaultsHasALineForEachInErrorTextAndNoneInError) {
  PackCall call;
  const std::string model =
      "def @main(%x: Tensor[(4), float32], %y: Tensor[(4), int64]) {\n  %0 = negative(%y, name=\"a\");\n"
      "  (abs(%0, name=\"b\"), abs(%x))\n}\n";
  EXPECT_EQ(call.bytes({model.begin(), model.end()}), QPLAN_MODEL_UNSUPPORTED);
  const std::string list =
      "the model is not quantised: all that it computes, it computes in float; quantise its weights and "
      "activations to 8 bits first\n"
      "target 'cpu' cannot run 2 of 3 operators:\n"
      "  1 x negative 'a': no kernel computes it on int64 [cpu.op.negative]\n"
      "  1 x abs 'b': no kernel computes it on int64 [cpu.op.abs]\n"
      "float operators are left:";
  EXPECT_EQ(call.error_text.substr(0, list.size()), list);
  EXPECT_TRUE(
      call.error_text.ends_with("\nto quantise it, use the TFLite converter with a representative "
                                "dataset, or quantize_static of onnxruntime.quantization"))
      << call.error_text;
  const std::string line = call.error.text;
  EXPECT_EQ(line.find('\n'), std::string::npos) << line;
  EXPECT_NE(line.find("8 bits first; target 'cpu' cannot run 2 of 3 operators: 1 x negative 'a': no "
                      "kernel computes it on int64 [cpu.op.negative]; "),
            std::string::npos)
      << line;
}

TEST(PackCApi, SeveralFunctionsAreRefusedWhereADeviceIsNamed) {
  PackCall call;
  call.options.target = "vta, cpu";
  const std::string model =
      "def @f(%y: Tensor[(4), int8]) -> Tensor[(4), int8] {\n  clip(%y, a_min=0f, a_max=6f)\n}\n"
      "def @main(%x: Tensor[(4), int8]) {\n  @f(%x)\n}\n";
  EXPECT_EQ(call.bytes({model.begin(), model.end()}), QPLAN_MODEL_UNSUPPORTED);
  EXPECT_EQ(call.error_text,
            "the module has 2 functions, expected main alone; write what main calls into main");
}

TEST(PackCApi, MemoryExhaustedIsAStatus) {
  PackCall call;
  call.options.target = nullptr;
  call.options.progress = [](void*, const char*, uint32_t, uint32_t) { throw std::bad_alloc(); };
  EXPECT_EQ(call.bytes(digits_model()), QPLAN_OUT_OF_MEMORY);
  EXPECT_TRUE(call.plan.empty());
}

}  // namespace
}  // namespace qplan::pipeline_test
