// The same model gives the same plan wherever and whenever it is packed, and the plan's memory figures are
// those that the runtime asks for.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <locale>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "tests/models/golden_data.h"
#include "tests/models/model_session.h"

namespace qplan::testing::determinism_test {
namespace {

class PlanOf : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (GetParam().empty()) GTEST_SKIP() << kNoDataDirectory;
  }
};

// A directory that goes with the test.
class TemporaryDirectory {
 public:
  explicit TemporaryDirectory(const std::string& name)
      : path_(std::filesystem::temp_directory_path() / ("qplan_" + std::to_string(::getpid()) + "_" + name)) {
    std::filesystem::create_directories(path_);
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// Writes 1000.5 as "1'000,5".
class OtherNumbers : public std::numpunct<char> {
 protected:
  char do_decimal_point() const override { return ','; }
  char do_thousands_sep() const override { return '\''; }
  std::string do_grouping() const override { return "\3"; }
};

// Numbers are written in another way than in C for as long as this lives: in streams always, in printf and
// strtod where the machine has such a locale.
class OtherLocale {
 public:
  OtherLocale() : before_(std::locale()) {
    set_named();
    std::locale::global(std::locale(std::locale(), new OtherNumbers));
  }
  ~OtherLocale() { std::locale::global(before_); }
  const std::string& name() const { return name_; }

 private:
  void set_named() {
    for (const char* name : {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "tr_TR.UTF-8", "C.UTF-8"}) {
      try {
        std::locale::global(std::locale(name));
        name_ = name;
        return;
      } catch (const std::runtime_error&) {  // not on this machine
      }
    }
  }
  std::locale before_;
  std::string name_ = "none";
};

TEST_P(PlanOf, TwoDirectoriesTwoLocalesAndTwoThreadsGiveTheSameBytes) {
  const TemporaryDirectory directory(as_test_name(GetParam()));
  const std::filesystem::path here = directory.path(), there = directory.path() / "deeper";
  std::filesystem::create_directory(there);
  for (const std::filesystem::path& path : {here, there}) {
    std::filesystem::copy_file(model_path(GetParam()), path / GetParam());
  }
  const std::vector<uint8_t> plan = pack_model((here / GetParam()).string());
  std::vector<uint8_t> second, third;
  const OtherLocale locale;
  RecordProperty("locale", locale.name());
  std::thread other([&] { second = pack_model((there / GetParam()).string()); });
  third = pack_model((here / GetParam()).string());
  other.join();
  EXPECT_TRUE(plan == second);
  EXPECT_TRUE(plan == third);
}

uint64_t memory_need(const qplan_plan* plan, uint32_t num_threads) {
  const qplan_thread_pool* pool = qplan_pool_create(num_threads);
  qplan_platform platform{};
  platform.struct_size = sizeof(platform);
  platform.thread_pool = pool;
  qplan_session_config config{};
  config.struct_size = sizeof(config);
  config.kernels = qplan_kernels_all();
  config.platform = &platform;
  qplan_memory_need need{};
  uint32_t count = 1;
  qplan_error error = empty_error();
  EXPECT_EQ(qplan_session_memory_needs(plan, &config, &need, &count, &error), QPLAN_OK) << error.text;
  qplan_pool_destroy(pool);
  return need.size;
}

TEST_P(PlanOf, MemoryFiguresAreWhatTheRuntimeNeeds) {
  const std::vector<uint8_t> bytes = pack_model(model_path(GetParam()).string());
  const Buffer<uint8_t> aligned(bytes);
  std::vector<uint8_t> text;
  ASSERT_EQ(qplan_inspect_json(aligned.data(), aligned.size(), append_bytes, &text, nullptr), QPLAN_OK);
  const nlohmann::json memory = nlohmann::json::parse(text).at("memory");
  EXPECT_GE(memory.at("arena_bytes"), memory.at("arena_lower_bound_bytes"));
  qplan_plan plan{};
  ASSERT_EQ(qplan_plan_open(&plan, aligned.data(), aligned.size(), 0, nullptr), QPLAN_OK);
  const nlohmann::json& totals = memory.at("session_bytes").at(sizeof(void*) == 8 ? "64_bit" : "32_bit");
  for (const uint32_t workers : {1u, 2u, 4u}) {
    EXPECT_EQ(totals.at(std::to_string(workers)), memory_need(&plan, workers)) << workers << " workers";
  }
}

INSTANTIATE_TEST_SUITE_P(Models, PlanOf, ::testing::ValuesIn(golden_models()),
                         [](const auto& test) { return as_test_name(test.param); });

}  // namespace
}  // namespace qplan::testing::determinism_test
