// Whole networks in all forms: one plan, and the canonical body of the TFLite file that they were made from.
#include <gtest/gtest.h>

#include "src/packer/inspect/inspect.h"
#include "src/packer/pipeline/pipeline.h"
#include "src/packer/pipeline/stages.h"
#include "tests/models/golden_data.h"

namespace qplan::canonical_form_test {
namespace {

struct Network {
  const char* name;
  const char* io;                  // dtype of its input
  std::vector<const char*> forms;  // .onnx files
};

// As8w, Au8a: weights or activations of the other signedness; qop: QLinearConv and friends.
const std::vector<Network> kNetworks = {
    {"kws_ref_model", "int8", {"A", "Apad", "Au8a", "B", "qop"}},
    {"mobilenet_v1_0.25_128_quant", "uint8", {"A", "Apad", "As8w", "B", "qop"}},
    {"pretrainedResnet_quant", "int8", {"A", "Apad", "Au8a", "B", "qop"}},
    {"tf2_mobilenet_v2_1.0_224_ptq", "int8", {"A", "Au8a", "qop"}},
};

std::filesystem::path onnx_path(const std::string& name, const std::string& form) {
  return testing::shared_directory() / "onnx" / (name + "_" + form + ".onnx");
}

std::string digest(const std::filesystem::path& path, const PackOptions& options) {
  const AlignedBytes plan = pack(testing::read_bytes(path), path.string(), options);
  return inspect::content_digest(inspect::PlanReader(plan.span()).view());
}

ir::Function body(const std::filesystem::path& path, const PackOptions& options) {
  return pipeline::canonical_body(canonical_module(testing::read_bytes(path), path.string(), options).main());
}

class CanonicalForm : public ::testing::TestWithParam<Network> {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(onnx_path(GetParam().name, "A"))) GTEST_SKIP() << testing::kNoDataDirectory;
  }
};

TEST_P(CanonicalForm, AllFormsGiveOnePlan) {
  for (const char* contract : {"", "tfl2", "f32e"}) {
    PackOptions options;
    options.io = GetParam().io;
    options.contract = contract;
    const std::string expected = digest(onnx_path(GetParam().name, "A"), options);
    for (const char* form : GetParam().forms) {
      EXPECT_EQ(digest(onnx_path(GetParam().name, form), options), expected)
          << form << " under '" << contract << "'";
    }
  }
}

// The command without options: qplan import MODEL --canonical --body --print.
TEST_P(CanonicalForm, TheBodyIsOneTextWithoutOptions) {
  PackOptions options;
  options.canonical_body = true;
  const auto text = [&](const std::filesystem::path& path) {
    return model_text(testing::read_bytes(path), path.string(), options, /*canonical=*/true);
  };
  const std::string expected = text(testing::model_path(std::string(GetParam().name) + ".tflite"));
  for (const char* form : GetParam().forms) {
    EXPECT_EQ(text(onnx_path(GetParam().name, form)) == expected, true) << form;
  }
}

TEST_P(CanonicalForm, BothBordersOfIntegersGiveOnePlan) {
  for (const char* io : {"int8", "uint8"}) {
    PackOptions options;
    options.io = io;
    const std::string expected = digest(onnx_path(GetParam().name, "A"), options);
    for (const char* form : GetParam().forms) {
      EXPECT_EQ(digest(onnx_path(GetParam().name, form), options), expected) << form << " as " << io;
    }
  }
}

TEST_P(CanonicalForm, FloatBordersGiveOnePlanToo) {
  PackOptions options;
  options.io = "float";
  const std::string expected = digest(onnx_path(GetParam().name, "A"), options);
  for (const char* form : GetParam().forms) {
    EXPECT_EQ(digest(onnx_path(GetParam().name, form), options), expected) << form;
  }
}

TEST_P(CanonicalForm, TheBodyIsTheTfliteFiles) {
  PackOptions options;
  options.contract = "tfl2";
  options.io = GetParam().io;
  options.io_layout = "nhwc";
  const ir::Function expected = body(testing::model_path(std::string(GetParam().name) + ".tflite"), options);
  for (const char* form : GetParam().forms) {
    const pipeline::BodyDifference difference =
        pipeline::compare_bodies(expected, body(onnx_path(GetParam().name, form), options));
    EXPECT_EQ(difference.first, "") << form;
    EXPECT_EQ(difference.biases, 0u) << form;
    EXPECT_GT(difference.biases_total, 0u) << "nothing was compared";
  }
}

TEST_P(CanonicalForm, ThePlanIsTheTfliteFilesUnderOneContractAndBorder) {
  for (const char* contract : {"tfl2", "f32e"}) {
    PackOptions options;
    options.contract = contract;
    options.io = GetParam().io;
    options.io_layout = "nchw";
    EXPECT_EQ(digest(onnx_path(GetParam().name, "A"), options),
              digest(testing::model_path(std::string(GetParam().name) + ".tflite"), options))
        << contract;
  }
}

INSTANTIATE_TEST_SUITE_P(Networks, CanonicalForm, ::testing::ValuesIn(kNetworks),
                         [](const auto& network) { return testing::as_test_name(network.param.name); });

TEST(CanonicalFormOfQOperators, AreTheSameConvolutionsConstantsAndContracts) {
  const std::string name = "mobilenet_v1_0.25_128_quant";
  if (!std::filesystem::exists(onnx_path(name, "A"))) GTEST_SKIP() << testing::kNoDataDirectory;
  EXPECT_EQ(digest(onnx_path(name, "qop"), {}), digest(onnx_path(name, "A"), {}));
}

}  // namespace
}  // namespace qplan::canonical_form_test
