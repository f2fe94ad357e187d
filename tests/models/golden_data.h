// The reference outputs of the data directory: $QPLAN_SHARED/golden/index.json.
#ifndef QPLAN_TESTS_MODELS_GOLDEN_DATA_H_
#define QPLAN_TESTS_MODELS_GOLDEN_DATA_H_

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

namespace qplan::testing {

struct GoldenCase {
  std::string name;
  std::vector<std::filesystem::path> inputs;
  std::vector<std::filesystem::path> outputs;
};

inline std::filesystem::path shared_directory() {
  const char* path = std::getenv("QPLAN_SHARED");
  return path == nullptr ? "../shared" : path;
}

inline std::filesystem::path model_path(const std::string& model) {
  return shared_directory() / "models" / model;
}

// The cases of each model of the group, by the model's file name; empty when there is no data directory.
inline std::map<std::string, std::vector<GoldenCase>> golden_cases(const std::string& group) {
  std::map<std::string, std::vector<GoldenCase>> cases;
  std::ifstream file(shared_directory() / "golden" / "index.json");
  if (!file) return cases;
  for (const nlohmann::json& entry : nlohmann::json::parse(file)) {
    if (entry.at("group") != group) continue;
    const std::string model = entry.at("model");
    GoldenCase golden;
    golden.name = entry.at("case");
    const std::filesystem::path folder =
        shared_directory() / "golden" / std::filesystem::path(model).replace_extension() / golden.name;
    for (const std::string name : entry.at("inputs")) golden.inputs.push_back(folder / name);
    for (const std::string name : entry.at("outputs")) golden.outputs.push_back(folder / name);
    cases[model].push_back(std::move(golden));
  }
  return cases;
}

// Models of a group as test parameters. One empty name means that the data directory is missing: the test
// skips.
inline std::vector<std::string> golden_models(const std::string& group = "A") {
  std::vector<std::string> models;
  for (const auto& [model, cases] : golden_cases(group)) models.push_back(model);
  if (models.empty()) models.emplace_back();
  return models;
}
inline constexpr char kNoDataDirectory[] =
    "no data directory: set QPLAN_SHARED to a folder with golden/index.json (default: ../shared)";

// A test name of letters, digits and underscores.
inline std::string as_test_name(const std::string& text) {
  std::string name;
  for (const char c : text.empty() ? std::string("no_data") : text) {
    const bool plain = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
    name += plain ? c : '_';
  }
  return name;
}

inline std::vector<uint8_t> read_bytes(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot read " + path.string());
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

}  // namespace qplan::testing

#endif  // QPLAN_TESTS_MODELS_GOLDEN_DATA_H_
