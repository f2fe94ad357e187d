// What a .tflite file says of its inputs and outputs for people: "TFLITE_METADATA", a flatbuffer of its own
// in one of the model's buffers, and the files that it names, in a zip after the model.
#include <algorithm>
#include <cmath>
#include <string>

#include "src/packer/error.h"
#include "src/packer/import/import.h"
#include "src/packer/import/tflite/metadata_subset_generated.h"
#include "src/packer/import/tflite/model_file.h"
#include "src/packer/import/zip_archive.h"
#include "src/packer/ir/cat.h"
#include "src/packer/ir/json.h"

namespace qplan {
namespace {

using ir::Json;
using tfl::invalid;
using tfl::ModelFile;

// A network with more classes than ImageNet's 21,841 names none of them in practice.
constexpr size_t kMaxLabels = 100'000;
constexpr size_t kMaxLabelBytes = size_t{4} << 20;
constexpr size_t kMaxChannels = 4096;

template <typename Vector>
size_t count_of(const Vector* vector) {
  return vector == nullptr ? 0 : vector->size();
}

// The names of a text, one a line; empty lines at the end do not count.
Json lines_of(std::span<const uint8_t> text, const std::string& file) {
  if (text.size() > kMaxLabelBytes)
    invalid(cat("labels ", importer::quoted(file), ": ", text.size(), " bytes, expected at most ",
                kMaxLabelBytes));
  Json lines = Json::array();
  std::string line;
  for (const uint8_t byte : text) {
    if (byte == '\n') {
      lines.push_back(line);
      line.clear();
    } else if (byte != '\r') {
      line += static_cast<char>(byte);
    }
  }
  if (!line.empty()) lines.push_back(line);
  while (!lines.empty() && lines.back() == "") lines.erase(lines.size() - 1);
  if (lines.size() > kMaxLabels)
    invalid(
        cat("labels ", importer::quoted(file), ": ", lines.size(), " names, expected at most ", kMaxLabels));
  return lines;
}

// Labels without a locale come first: a model may bring translations of them.
const tflite_metadata::AssociatedFile* labels_file(const tflite_metadata::TensorMetadata& tensor) {
  const tflite_metadata::AssociatedFile* found = nullptr;
  for (uint32_t i = 0; i < count_of(tensor.associated_files()); ++i) {
    const tflite_metadata::AssociatedFile* file = tensor.associated_files()->Get(i);
    if (file->type() != tflite_metadata::AssociatedFileType_TENSOR_AXIS_LABELS || file->name() == nullptr)
      continue;
    const bool is_plain = file->locale() == nullptr || file->locale()->size() == 0;
    if (found == nullptr || is_plain) found = file;
    if (is_plain) break;
  }
  return found;
}

Json numbers_of(const flatbuffers::Vector<float>* values, const char* what, bool may_be_zero) {
  if (count_of(values) > kMaxChannels)
    invalid(cat(what, ": ", count_of(values), " numbers, expected at most ", kMaxChannels));
  Json numbers = Json::array();
  for (uint32_t i = 0; i < count_of(values); ++i) {
    const float value = values->Get(i);
    if (!std::isfinite(value) || (value == 0 && !may_be_zero))
      invalid(cat(what, " ", i, " is not a finite number", may_be_zero ? "" : " other than 0"));
    numbers.push_back(value);
  }
  return numbers;
}

Json input_json(const tflite_metadata::TensorMetadata& tensor) {
  Json json = Json::object();
  for (uint32_t i = 0; i < count_of(tensor.process_units()); ++i) {
    const auto* options = tensor.process_units()->Get(i)->options_as_NormalizationOptions();
    if (options == nullptr) continue;
    json["mean"] = numbers_of(options->mean(), "mean", true);
    json["std"] = numbers_of(options->std(), "std", false);
    break;
  }
  return json;
}

Json output_json(const tflite_metadata::TensorMetadata& tensor, std::span<const uint8_t> file) {
  Json json = Json::object();
  const tflite_metadata::AssociatedFile* labels = labels_file(tensor);
  if (labels == nullptr) return json;
  const std::string name = labels->name()->str();
  importer::ZipArchive archive(file);
  if (!archive.has(name))
    invalid(cat("labels ", importer::quoted(name), " are not among the model's associated files"));
  json["labels"] = lines_of(archive.read(name), name);
  return json;
}

template <typename Write>
Json tensors_json(const flatbuffers::Vector<flatbuffers::Offset<tflite_metadata::TensorMetadata>>* tensors,
                  size_t expected, const char* what, const Write& write) {
  Json json = Json::array();
  if (count_of(tensors) == 0) return json;
  if (tensors->size() != expected) invalid(cat(tensors->size(), " ", what, ", the model has ", expected));
  for (const auto* tensor : *tensors) json.push_back(write(*tensor));
  return json;
}

}  // namespace

std::string tflite_metadata_json(std::span<const uint8_t> bytes) {
  const ModelFile file(bytes);
  const std::span<const uint8_t> metadata = file.metadata("TFLITE_METADATA");
  if (metadata.empty()) return "";
  try {
    // A copy that is aligned, whatever the buffer is: the verifier looks at offsets in the flatbuffer alone.
    std::vector<uint64_t> copy(metadata.size() / sizeof(uint64_t) + 1);
    std::ranges::copy(metadata, reinterpret_cast<uint8_t*>(copy.data()));
    flatbuffers::Verifier verifier(reinterpret_cast<const uint8_t*>(copy.data()), metadata.size(), 16,
                                   100'000);
    if (!tflite_metadata::VerifyModelMetadataBuffer(verifier)) invalid("the flatbuffer is damaged");
    const auto* graphs = tflite_metadata::GetModelMetadata(copy.data())->subgraph_metadata();
    if (count_of(graphs) == 0) return "";
    const tflite_metadata::SubGraphMetadata& graph = *graphs->Get(0);
    Json json;
    json["inputs"] = tensors_json(graph.input_tensor_metadata(), file.inputs().size(), "inputs", input_json);
    json["outputs"] = tensors_json(graph.output_tensor_metadata(), file.outputs().size(), "outputs",
                                   [&](const auto& tensor) { return output_json(tensor, bytes); });
    const auto is_empty = [](const Json& tensor) { return tensor.empty(); };
    if (std::ranges::all_of(json["inputs"], is_empty) && std::ranges::all_of(json["outputs"], is_empty))
      return "";
    return ir::json_text(json);
  } catch (const PackError& error) {
    throw PackError(error.status(), cat("its metadata: ", error.what()));
  }
}

}  // namespace qplan
