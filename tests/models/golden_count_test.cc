// Every golden case of groups A, B and C, one line each and their count: equal to the byte, within 1e-5 (of
// float outputs), refused by the packer, or wrong. golden_test.cc and float_golden_test.cc run them in more
// ways.
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "tests/models/golden_data.h"
#include "tests/models/model_session.h"
#include "tests/models/near.h"

namespace qplan::testing::golden_count_test {
namespace {

using Json = nlohmann::json;
using Bytes = std::vector<uint8_t>;

constexpr size_t kCases = 142;  // of groups A, B and C

enum class Outcome { kEqual, kNear, kRefused, kWrong };
constexpr const char* kNames[] = {"equal", "near", "refused", "wrong"};

// The worst of the case's outputs.
Outcome outcome_of(const Json& entry, ModelSession& session) {
  const std::filesystem::path folder =
      shared_directory() / "golden" /
      std::filesystem::path(entry.at("model").get<std::string>()).replace_extension() /
      entry.at("case").get<std::string>();
  std::vector<Bytes> inputs;
  for (const Json& name : entry.at("inputs")) inputs.push_back(read_bytes(folder / name.get<std::string>()));
  const std::vector<Bytes> outputs = session.run(inputs);
  const Json& names = entry.at("outputs");
  if (outputs.size() != names.size()) return Outcome::kWrong;
  Outcome worst = Outcome::kEqual;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Bytes expected = read_bytes(folder / names[i].get<std::string>());
    if (outputs[i] == expected) continue;
    const bool is_float = entry.at("output_info").at(i).at("type") == "FLOAT32";
    if (!is_float || !far_element(outputs[i], expected).empty()) return Outcome::kWrong;
    worst = Outcome::kNear;
  }
  return worst;
}

TEST(GoldenCases, AreCountedOneByOne) {
  std::ifstream file(shared_directory() / "golden" / "index.json");
  if (!file) GTEST_SKIP() << kNoDataDirectory;
  std::map<std::string, std::vector<Json>> cases;  // by group and model
  const Json index = Json::parse(file);
  for (const Json& entry : index)
    cases[entry.at("group").get<std::string>() + " " + entry.at("model").get<std::string>()].push_back(entry);
  size_t counts[4] = {0, 0, 0, 0};
  for (const auto& [model, entries] : cases) {
    std::optional<Bytes> plan;
    std::string reason;
    try {
      plan = pack_model(model_path(model.substr(2)).string());
    } catch (const std::runtime_error& error) {
      reason = error.what();
    }
    std::optional<ModelSession> session;
    if (plan) session.emplace(*plan, QPLAN_ISA_AUTO, 1);
    for (const Json& entry : entries) {
      const Outcome outcome = session ? outcome_of(entry, *session) : Outcome::kRefused;
      ++counts[static_cast<size_t>(outcome)];
      std::printf("  %-8s %s, %s %s\n", kNames[static_cast<size_t>(outcome)], model.c_str(),
                  entry.at("case").get<std::string>().c_str(), reason.substr(0, 120).c_str());
    }
  }
  std::printf("  %zu equal, %zu within 1e-5, %zu refused, %zu wrong\n", counts[0], counts[1], counts[2],
              counts[3]);
  EXPECT_GE(index.size(), kCases) << "cases that there were are missing";
  EXPECT_LE(counts[1], 2u) << "cases of floats that were equal are now near";
  EXPECT_EQ(counts[2], 0u) << "cases that packed are now refused";
  EXPECT_EQ(counts[3], 0u) << "cases whose outputs are wrong";
}

}  // namespace
}  // namespace qplan::testing::golden_count_test
