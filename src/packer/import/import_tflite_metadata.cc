// Reads what a .tflite file says of its inputs and outputs for people: "TFLITE_METADATA" is a flatbuffer of
// its own in one of the model's buffers, and the files that it names are in a zip after the model. All of it
// is untrusted: the work and the memory for one model are limited, whatever its tensors and outputs share.
#include <algorithm>
#include <cmath>
#include <optional>
#include <string>

#include "format/plan_view.h"
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

// Limits for the labels of all outputs together: one small file may serve as the labels of each output.
// ImageNet, among the largest sets of classes, has 21,841.
constexpr size_t kMaxLabelNames = 100'000;
constexpr size_t kMaxLabelBytes = size_t{4} << 20;
// Means and standard deviations of all inputs together.
constexpr size_t kMaxNumbers = 65'536;

template <typename Vector>
size_t count_of(const Vector* vector) {
  return vector == nullptr ? 0 : vector->size();
}

// The label files of one model.
class LabelFiles {
 public:
  explicit LabelFiles(std::span<const uint8_t> model) : model_(model) {}

  Json read(const std::string& name) {
    // Models whose metadata names no file have no zip.
    if (!archive_) archive_.emplace(model_);
    if (!archive_->has(name))
      invalid(cat("labels ", importer::in_quotes(name), " are not among the model's associated files"));
    const uint64_t size = archive_->entry_bytes(name);
    if (size > kMaxLabelBytes - bytes_) refuse(name, cat(bytes_ + size, " bytes"), kMaxLabelBytes);
    bytes_ += size;
    return lines_of(archive_->read(name), name);
  }

 private:
  // The names of a text, one a line; empty lines at the end do not count.
  Json lines_of(std::span<const uint8_t> text, const std::string& name) {
    Json lines = Json::array();
    std::string line;
    size_t num_empty = 0;  // lines before this one that are not written yet
    const auto end_line = [&] {
      ++num_empty;
      if (line.empty()) return;
      if (num_empty > kMaxLabelNames - names_) refuse(name, cat("more than ", kMaxLabelNames, " names"), kMaxLabelNames);
      names_ += num_empty;
      for (; num_empty > 1; --num_empty) lines.push_back("");
      lines.push_back(line);
      num_empty = 0;
      line.clear();
    };
    for (const uint8_t byte : text) {
      if (byte == '\n') {
        end_line();
      } else if (byte != '\r') {
        line += static_cast<char>(byte);
      }
    }
    end_line();
    return lines;
  }

  [[noreturn]] static void refuse(const std::string& name, const std::string& found, size_t expected) {
    invalid(cat("labels ", importer::in_quotes(name), ": with those of the outputs before it, there are ",
                found, ", expected at most ", expected, "; shorten the file"));
  }

  std::span<const uint8_t> model_;
  std::optional<importer::ZipArchive> archive_;
  uint64_t bytes_ = 0;  // of the files that were read, once for each output
  size_t names_ = 0;
};

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

// num_numbers: of all inputs so far.
Json numbers_of(const flatbuffers::Vector<float>* values, const char* what, bool may_be_zero,
                size_t* num_numbers) {
  *num_numbers += count_of(values);
  if (*num_numbers > kMaxNumbers)
    invalid(cat(what, ": with those of the inputs before it, there are ", *num_numbers,
                " numbers, expected at most ", kMaxNumbers, "; write one for all channels"));
  Json numbers = Json::array();
  for (uint32_t i = 0; i < count_of(values); ++i) {
    const float value = values->Get(i);
    if (!std::isfinite(value) || (value == 0 && !may_be_zero))
      invalid(cat(what, " ", i, " is not a finite number", may_be_zero ? "" : " other than 0"));
    numbers.push_back(value);
  }
  return numbers;
}

Json input_json(const tflite_metadata::TensorMetadata& tensor, size_t* num_numbers) {
  Json json = Json::object();
  for (uint32_t i = 0; i < count_of(tensor.process_units()); ++i) {
    const auto* options = tensor.process_units()->Get(i)->options_as_NormalizationOptions();
    if (options == nullptr) continue;
    json["mean"] = numbers_of(options->mean(), "mean", true, num_numbers);
    json["std"] = numbers_of(options->std(), "std", false, num_numbers);
    break;
  }
  return json;
}

Json output_json(const tflite_metadata::TensorMetadata& tensor, LabelFiles* files) {
  Json json = Json::object();
  const tflite_metadata::AssociatedFile* labels = labels_file(tensor);
  if (labels != nullptr) json["labels"] = files->read(labels->name()->str());
  return json;
}

template <typename Write>
Json tensors_json(const flatbuffers::Vector<flatbuffers::Offset<tflite_metadata::TensorMetadata>>* tensors,
                  size_t expected, size_t most, const char* what, const Write& write) {
  Json json = Json::array();
  if (count_of(tensors) == 0) return json;
  if (tensors->size() > most) invalid(cat(tensors->size(), " ", what, ", expected at most ", most));
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
    size_t num_numbers = 0;
    LabelFiles files(bytes);
    json["inputs"] =
        tensors_json(graph.input_tensor_metadata(), file.inputs().size(), format::kMaxFunctionInputs,
                     "inputs", [&](const auto& tensor) { return input_json(tensor, &num_numbers); });
    json["outputs"] =
        tensors_json(graph.output_tensor_metadata(), file.outputs().size(), format::kMaxFunctionOutputs,
                     "outputs", [&](const auto& tensor) { return output_json(tensor, &files); });
    const auto is_empty = [](const Json& tensor) { return tensor.empty(); };
    if (std::ranges::all_of(json["inputs"], is_empty) && std::ranges::all_of(json["outputs"], is_empty))
      return "";
    return ir::json_text(json);
  } catch (const PackError& error) {
    throw PackError(error.status(), cat("its metadata: ", error.what()));
  }
}

}  // namespace qplan
