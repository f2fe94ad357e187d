// Labels and normalisation of TFLite's model metadata, written field by field as the published schema numbers
// them (tflite-support, metadata_schema.fbs), and metadata that is wrong.
#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "src/packer/pipeline/pipeline.h"
#include "tests/packer/import/import_helpers.h"
#include "tests/packer/import/pytorch_builder.h"
#include "tests/packer/import/tflite_builder.h"

namespace qplan::tflite_test::tflite_metadata_test {
namespace {

using Bytes = std::vector<uint8_t>;
using Json = nlohmann::ordered_json;
using flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;
using Table = Offset<void>;

constexpr flatbuffers::voffset_t field(int number) {
  return static_cast<flatbuffers::voffset_t>(4 + 2 * number);
}

Bytes text(const std::string& words) { return {words.begin(), words.end()}; }

struct Spec {
  std::string identifier = "M001";
  std::string file = "labels.txt";  // that the metadata names
  std::string contents = "zero\none\r\ntwo\n\n";
  uint8_t type = 2;  // TENSOR_AXIS_LABELS
  std::vector<float> mean = {127.5f}, std = {127.5f, 1, 2};
  size_t num_outputs = 1;  // of the metadata
  size_t num_model_outputs = 1;
  bool has_zip = true;
};

Table associated_file(FlatBufferBuilder& b, const std::string& name, uint8_t type, const char* locale) {
  const auto text = b.CreateString(name);
  const auto place = b.CreateString(locale);
  const auto start = b.StartTable();
  b.AddOffset(field(0), text);
  b.AddElement<uint8_t>(field(2), type, 0);
  b.AddOffset(field(3), place);
  return b.EndTable(start);
}

Bytes metadata_of(const Spec& spec) {
  FlatBufferBuilder b;
  // ProcessUnit {options_type 0, options 1}; of the union, NormalizationOptions {mean 0, std 1} is the first.
  const auto mean = b.CreateVector(spec.mean), std = b.CreateVector(spec.std);
  auto start = b.StartTable();
  b.AddOffset(field(0), mean);
  b.AddOffset(field(1), std);
  const Table normalization = b.EndTable(start);
  start = b.StartTable();
  b.AddElement<uint8_t>(field(0), 1, 0);
  b.AddOffset(field(1), normalization);
  const std::vector<Table> units = {Table(b.EndTable(start))};
  const auto process_units = b.CreateVector(units);
  // TensorMetadata {name 0, ..., process_units 4, stats 5, associated_files 6}.
  const auto input_name = b.CreateString("image");
  start = b.StartTable();
  b.AddOffset(field(0), input_name);
  b.AddOffset(field(4), process_units);
  const auto inputs = b.CreateVector(std::vector<Table>{Table(b.EndTable(start))});
  const std::vector<Table> files = {associated_file(b, "translated.txt", 2, "de"),
                                    associated_file(b, spec.file, spec.type, "")};
  const auto associated_files = b.CreateVector(files);
  std::vector<Table> outputs;
  for (size_t i = 0; i < spec.num_outputs; ++i) {
    start = b.StartTable();
    b.AddOffset(field(6), associated_files);
    outputs.push_back(b.EndTable(start));
  }
  const auto output_tensors = b.CreateVector(outputs);
  // SubGraphMetadata {input_tensor_metadata 2, output_tensor_metadata 3}; ModelMetadata {subgraph_metadata
  // 3}.
  start = b.StartTable();
  b.AddOffset(field(2), inputs);
  b.AddOffset(field(3), output_tensors);
  const auto graphs = b.CreateVector(std::vector<Table>{Table(b.EndTable(start))});
  start = b.StartTable();
  b.AddOffset(field(3), graphs);
  b.Finish(Table(b.EndTable(start)), spec.identifier.c_str());
  return {b.GetBufferPointer(), b.GetBufferPointer() + b.GetSize()};
}

Bytes model_of(const Bytes& metadata, const Spec& spec) {
  TfliteBuilder b;
  const int32_t x = b.activation("x", {1, 3}, 0.5f, 0), middle = b.activation("middle", {1, 3}, 0.5f, 0),
                y = b.activation("y", {1, 3}, 0.5f, 0);
  b.op(tflite::BuiltinOperator_RELU, {x}, {middle});
  b.op(tflite::BuiltinOperator_RELU6, {middle}, {y});
  b.metadata("min_runtime_version", text("1.5.0"));
  b.metadata("TFLITE_METADATA", metadata);
  const Bytes model = b.finish({x}, std::vector<int32_t>(spec.num_model_outputs, y));
  if (!spec.has_zip) return model;
  pytorch_test::ZipBuilder zip;
  zip.add("translated.txt", text("null\neins\nzwei\n"));
  zip.add("labels.txt", text(spec.contents), true);
  return zip.build(model);
}

Bytes model_of(const Spec& spec) { return model_of(metadata_of(spec), spec); }

std::string error_of(const Bytes& model) {
  try {
    return "read: " + tflite_metadata_json(model);
  } catch (const PackError& error) {
    EXPECT_EQ(error.status(), QPLAN_MODEL_INVALID);
    return error.what();
  }
}

TEST(TfliteMetadata, LabelsAndNormalisationAreRead) {
  const Json json = Json::parse(tflite_metadata_json(model_of({})));
  EXPECT_EQ(json.at("outputs"), Json::parse(R"([{"labels": ["zero", "one", "two"]}])"));
  EXPECT_EQ(json.at("inputs"), Json::parse(R"([{"mean": [127.5], "std": [127.5, 1.0, 2.0]}])"));
}

TEST(TfliteMetadata, APlanKeepsItUnlessItsNamesAreStripped) {
  const Bytes model = model_of({});
  PackOptions options;
  const AlignedBytes plan = pack(model, "net.tflite", options);
  const std::string bytes(reinterpret_cast<const char*>(plan.data()), plan.size());
  EXPECT_NE(bytes.find(tflite_metadata_json(model)), std::string::npos);
  options.strip_names = true;
  const AlignedBytes stripped = pack(model, "net.tflite", options);
  const std::string rest(reinterpret_cast<const char*>(stripped.data()), stripped.size());
  EXPECT_EQ(rest.find("zero"), std::string::npos);
}

TEST(TfliteMetadata, APartHasWhatIsSaidOfItsOwnInputsAndOutputs) {
  const Bytes model = model_of({});
  const Json all = Json::parse(tflite_metadata_json(model));
  const Json begin = Json::parse(tflite_metadata_json(model, {{}, {"middle"}}));
  EXPECT_EQ(begin.at("inputs"), all.at("inputs"));
  EXPECT_EQ(begin.at("outputs"), Json::parse("[{}]"));
  const Json end = Json::parse(tflite_metadata_json(model, {{"middle"}, {}}));
  EXPECT_EQ(end.at("inputs"), Json::parse("[{}]"));
  EXPECT_EQ(end.at("outputs"), all.at("outputs"));
}

TEST(TfliteMetadata, AModelWithoutHasNone) {
  TfliteBuilder b;
  const int32_t x = b.activation("x", {1, 3}, 0.5f, 0), y = b.activation("y", {1, 3}, 0.5f, 0);
  b.op(tflite::BuiltinOperator_RELU, {x}, {y});
  EXPECT_EQ(tflite_metadata_json(b.finish({x}, {y})), "");
  EXPECT_EQ(tflite_metadata_json(conv_model({})), "");
}

TEST(TfliteMetadata, OtherFilesThanLabelsAreLeftOut) {
  Spec spec;
  spec.type = 1;  // DESCRIPTIONS; the labels are the translated ones then
  const Json json = Json::parse(tflite_metadata_json(model_of(spec)));
  EXPECT_EQ(json.at("outputs").at(0).at("labels"), Json::parse(R"(["null", "eins", "zwei"])"));
}

TEST(TfliteMetadata, WrongOnesSayWhatIsWrong) {
  const auto refused = [](const Spec& spec, const char* what) {
    const std::string error = error_of(model_of(spec));
    EXPECT_NE(error.find("its metadata: "), std::string::npos) << error;
    EXPECT_NE(error.find(what), std::string::npos) << error;
  };
  refused({.identifier = "M999"}, "the flatbuffer is damaged");
  refused({.file = "other.txt"}, "labels 'other.txt' are not among the model's associated files");
  refused({.mean = {std::numeric_limits<float>::quiet_NaN()}}, "mean 0 is not a finite number");
  refused({.std = {1, 0}}, "std 1 is not a finite number other than 0");
  refused({.num_outputs = 2}, "2 outputs, the model has 1");
  refused({.has_zip = false}, "zip");
  refused({.contents = std::string(5 << 20, 'a')},
          "there are 5242880 bytes, expected at most 4194304; shorten the file");
  refused({.contents = std::string(200'001, '\n') + "a"},
          "there are more than 100000 names, expected at most 100000; shorten the file");
}

// The same tensor may be any number of outputs, each of which may have the same file.
TEST(TfliteMetadata, LimitsAreThoseOfAllOutputsTogether) {
  const auto read = [](size_t num_outputs, const std::string& contents) {
    Spec spec;
    spec.contents = contents;
    spec.num_outputs = spec.num_model_outputs = num_outputs;
    return error_of(model_of(spec));
  };
  std::string many;
  for (int i = 0; i < 40'000; ++i) many += "a\n";
  EXPECT_TRUE(read(2, many).starts_with("read: ")) << read(2, many);
  EXPECT_NE(read(3, many).find("more than 100000 names"), std::string::npos) << read(3, many);
  const std::string large(3 << 20, 'a');
  EXPECT_TRUE(read(1, large).starts_with("read: "));
  EXPECT_NE(read(2, large).find("there are 6291456 bytes"), std::string::npos) << read(2, large);
  EXPECT_TRUE(read(256, "a\n").starts_with("read: "));
  EXPECT_NE(read(257, "a\n").find("257 outputs, expected at most 256"), std::string::npos) << read(257, "a");
}

TEST(TfliteMetadata, EmptyLinesCountWhereANameFollows) {
  const auto labels = [](const std::string& contents) {
    Spec spec;
    spec.contents = contents;
    return Json::parse(tflite_metadata_json(model_of(spec))).at("outputs").at(0).at("labels");
  };
  EXPECT_EQ(labels("\na\n\n\r\nb" + std::string(200'000, '\n')), Json::parse(R"(["", "a", "", "", "b"])"));
  EXPECT_EQ(labels("\n\n"), Json::array());
}

// Every byte of the metadata and of the zip, damaged: read or refused, and the network is the same.
TEST(TfliteMetadata, DamageIsAWarningAndNeverChangesTheNetwork) {
  const Spec spec;
  const Bytes metadata = metadata_of(spec);
  uint32_t refused = 0;
  for (size_t at = 0; at < metadata.size(); ++at) {
    for (const uint8_t flip : {0x01, 0x80, 0xff}) {
      Bytes damaged = metadata;
      damaged[at] ^= flip;
      refused += error_of(model_of(damaged, spec)).starts_with("read: ") ? 0 : 1;
    }
  }
  EXPECT_GT(refused, metadata.size() / 4);
  Bytes model = model_of(spec);
  for (size_t size = model.size(); size-- > model.size() - 200;) {
    const Bytes truncated(model.begin(), model.begin() + static_cast<ptrdiff_t>(size));
    EXPECT_FALSE(error_of(truncated).starts_with("read: "));
    std::vector<std::string> warnings;
    PackOptions options;
    options.log = [&](uint32_t level, const std::string& line) {
      if (level == QPLAN_LOG_WARNING) warnings.push_back(line);
    };
    const AlignedBytes plan = pack(truncated, "net.tflite", options);
    ASSERT_EQ(warnings.size(), 1u);
    EXPECT_NE(warnings[0].find("labels and normalisation are left out"), std::string::npos);
  }
}

}  // namespace
}  // namespace qplan::tflite_test::tflite_metadata_test
