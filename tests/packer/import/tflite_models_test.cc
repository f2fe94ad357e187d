// Real networks: group A imports and prints to a fixed point, the others are refused with a list.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/packer/import/import_helpers.h"

namespace qplan::tflite_test::tflite_models_test {
namespace {

std::filesystem::path models_folder() {
  const char* shared = std::getenv("QPLAN_SHARED");
  return std::filesystem::path(shared != nullptr ? shared : "../shared") / "models";
}

std::vector<uint8_t> read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// (file, group) of each line of the manifest; empty when there is none.
std::vector<std::pair<std::string, std::string>> manifest() {
  std::vector<std::pair<std::string, std::string>> entries;
  std::ifstream file(models_folder() / "MANIFEST.tsv");
  std::string line;
  std::getline(file, line);  // headings
  while (std::getline(file, line)) {
    std::istringstream fields(line);
    std::string name, group;
    std::getline(fields, name, '\t');
    std::getline(fields, group, '\t');
    entries.emplace_back(name, group);
  }
  return entries;
}

TEST(TfliteModels, GroupAImportsAndPrintsToAFixedPoint) {
  size_t count = 0;
  for (const auto& [name, group] : manifest()) {
    if (group != "A") continue;
    SCOPED_TRACE(name);
    const std::vector<uint8_t> bytes = read_file(models_folder() / name);
    ASSERT_FALSE(bytes.empty());
    size_t warnings = 0;
    const ir::Module module = import_tflite(
        bytes, name, [&](uint32_t level, const std::string&) { warnings += level <= QPLAN_LOG_WARNING; });
    EXPECT_EQ(warnings, 0u);
    const std::string text = text::print(module);
    EXPECT_TRUE(text::print(text::parse(text, name)) == text) << "print, parse and print differ";
    ++count;
  }
  if (count == 0) GTEST_SKIP() << "no models in " << models_folder() << "; set QPLAN_SHARED";
}

TEST(TfliteModels, OtherGroupsImportOrAreRefusedByName) {
  size_t count = 0;
  for (const auto& [name, group] : manifest()) {
    if (group == "A") continue;
    SCOPED_TRACE(name);
    const std::string error = import_error(read_file(models_folder() / name));
    if (error == "imported") continue;
    EXPECT_TRUE(error.starts_with("-49: tflite: 'net.tflite': ")) << error;
    EXPECT_NE(error.find(" that qplan does not import:"), std::string::npos) << error;
    ++count;
  }
  if (count == 0) GTEST_SKIP() << "no models in " << models_folder() << "; set QPLAN_SHARED";
}

}  // namespace
}  // namespace qplan::tflite_test::tflite_models_test
