#include <cstring>

#include "src/base/sha256.h"
#include "src/packer/error.h"
#include "src/packer/import/import.h"
#include "src/packer/inspect/inspect.h"
#include "src/packer/pipeline/stages.h"

namespace qplan::pipeline {
namespace {

struct Format {
  const char* name;
  bool (*matches)(std::span<const uint8_t> model);
  ir::Module (*import)(std::span<const uint8_t> model, std::string_view name, const LogFunction& log,
                       const ImportOptions& options);
};

// FlatBuffers puts a schema's file identifier after the root offset.
bool is_tflite(std::span<const uint8_t> model) {
  return model.size() >= 8 && std::memcmp(&model[4], "TFL3", 4) == 0;
}

// A zip: of its kinds only PyTorch's archives are models.
bool is_pytorch(std::span<const uint8_t> model) {
  return model.size() >= 4 && std::memcmp(model.data(), "PK\3\4", 4) == 0;
}

// A .tflite model says everything itself.
ir::Module import_tflite_alone(std::span<const uint8_t> model, std::string_view name, const LogFunction& log,
                               const ImportOptions& options) {
  for (const bool given : {!options.bindings.empty(), !options.input_types.empty()}) {
    if (!given) continue;
    const std::string& first =
        options.bindings.empty() ? options.input_types.begin()->first : options.bindings.begin()->first;
    throw PackError(QPLAN_INVALID_ARGUMENT,
                    "'" + std::string(name) +
                        "': a TensorFlow Lite model has its own types and data, nothing can be given for '" +
                        first + "'");
  }
  return import_tflite(model, name, log, options);
}

// Text that has at least a function, the version line or a variable as Relay writes them: other texts (a
// README, a page that a download brought in place of the model) are no models, and a parser's complaint would
// mislead.
bool is_relay(std::span<const uint8_t> model) {
  if (!is_text(model)) return false;
  const std::string_view text(reinterpret_cast<const char*>(model.data()), model.size());
  if (text.find("#[version") != std::string_view::npos || text.find("def @") != std::string_view::npos)
    return true;
  const auto is_one_of = [](char c, std::string_view set) { return set.find(c) != std::string_view::npos; };
  for (size_t at = text.find('%'); at != std::string_view::npos; at = text.find('%', at + 1)) {
    const char before = at == 0 ? '\n' : text[at - 1];
    const char after = at + 1 < text.size() ? text[at + 1] : ' ';
    const bool is_name = (after >= '0' && after <= '9') || (after >= 'a' && after <= 'z') ||
                         (after >= 'A' && after <= 'Z') || is_one_of(after, "_\"");
    if (is_name && is_one_of(before, " \t\r\n(,{=")) return true;
  }
  return false;
}

constexpr Format kFormats[] = {
    {"TensorFlow Lite (.tflite, 'TFL3' at byte 4)", is_tflite, import_tflite_alone},
    {"PyTorch (.pt of TorchScript, .pt2 of torch.export: a zip)", is_pytorch, import_pytorch},
    {"ONNX (.onnx, a ModelProto)", looks_like_onnx, import_onnx},
    {"Relay text ('def @main')", is_relay, import_relay},
};

}  // namespace

ir::Module import_any(std::span<const uint8_t> model, std::string_view name, const LogFunction& log,
                      const ImportOptions& options) {
  std::string known;
  for (const Format& format : kFormats) {
    if (format.matches(model)) return format.import(model, name, log, options);
    known += (known.empty() ? "" : ", ") + std::string(format.name);
  }
  throw PackError(QPLAN_MODEL_INVALID,
                  "'" + std::string(name) + "': is not a model: " + std::to_string(model.size()) + " bytes " +
                      (is_text(model) ? "of text that is no Relay" : "in no format that is known") +
                      "; known: " + known);
}

std::string metadata_of(std::span<const uint8_t> model, std::string_view name, const LogFunction& log) {
  if (!is_tflite(model)) return "";
  try {
    return tflite_metadata_json(model);
  } catch (const PackError& error) {
    if (log)
      log(QPLAN_LOG_WARNING,
          "'" + std::string(name) + "': " + error.what() + "; labels and normalisation are left out");
    return "";
  }
}

std::string last_component(std::string_view path) {
  const size_t slash = path.find_last_of("/\\");
  return std::string(slash == std::string_view::npos ? path : path.substr(slash + 1));
}

std::string sha256_text(std::span<const uint8_t> bytes) {
  Sha256 sha;
  sha.update(bytes.data(), bytes.size());
  uint8_t digest[Sha256::kDigestBytes];
  sha.finish(digest);
  return inspect::hexadecimal(digest, sizeof(digest));
}

}  // namespace qplan::pipeline
