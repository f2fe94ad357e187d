// Self-checks of packed networks: they pass on every instruction set, thread count and device, and name the
// step of each weight that loses a bit.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "capi/plan_handle.h"
#include "format/plan_view.h"
#include "qplan/npu_sim.h"
#include "tests/models/model_session.h"
#include "tests/support/isas.h"

namespace qplan::testing::self_check_models_test {
namespace {

constexpr char kDigits[] = "samples/models/digits.tflite";
constexpr uint32_t kRuns = 2;

struct Packed {
  std::vector<uint8_t> plan;
  std::string error;
};

Packed pack_checked(const std::string& model, const char* target = nullptr, uint32_t fuse = QPLAN_FUSE_AUTO,
                    uint32_t runs = kRuns, bool fallback = true) {
  qplan_pack_options options = pack_options(target);
  options.self_checks = runs;
  options.fuse = fuse;
  options.no_fallback = fallback ? 0 : 1;
  Packed packed;
  collect_error(&options, &packed.error);
  qplan_error error = empty_error();
  (void)qplan_pack_file(model.c_str(), &options, append_bytes, &packed.plan, &error);
  return packed;
}

std::string error_of(qplan_session* session) {
  qplan_error error = empty_error();
  qplan_session_last_error(session, &error);
  return error.text;
}

void expect_passes(const std::vector<uint8_t>& plan, const qplan_npu_device_config* device = nullptr) {
  for (const uint32_t isa : kIsas) {
    if (qplan_isa_available(isa) == 0) continue;
    for (const uint32_t threads : {1u, 3u}) {
      ModelSession session(plan, isa, threads, device);
      EXPECT_EQ(qplan_session_self_check(session.get()), QPLAN_OK)
          << qplan_isa_name(isa) << ", " << threads << " threads: " << error_of(session.get());
    }
  }
}

TEST(SelfCheckOfDigits, PassesOnEveryInstructionSetWithAndWithoutCascades) {
  for (const uint32_t fuse : {QPLAN_FUSE_OFF, QPLAN_FUSE_AUTO, QPLAN_FUSE_ALL}) {
    const Packed packed = pack_checked(kDigits, nullptr, fuse);
    ASSERT_FALSE(packed.plan.empty()) << packed.error;
    expect_passes(packed.plan);
  }
}

TEST(SelfCheckOfDigits, IsTheSameInEveryPlanOfIt) {
  EXPECT_EQ(pack_checked(kDigits).plan, pack_checked(kDigits).plan);
  EXPECT_GT(pack_checked(kDigits).plan.size(), pack_model(kDigits).size());
}

TEST(SelfCheckOfDigits, PassesOnTheSimulatorAndOnTheCpuInItsPlace) {
  const Packed packed = pack_checked(kDigits, "vta, cpu");
  ASSERT_FALSE(packed.plan.empty()) << packed.error;
  expect_passes(packed.plan);
  const qplan_npu_driver* driver = qplan_npu_sim_driver(QPLAN_NPU_ABI);
  qplan_npu_device_config config = {};
  config.struct_size = sizeof(config);
  config.target = "vta";
  config.driver = driver;
  ASSERT_EQ(driver->open(nullptr, 0, "", &config.device, nullptr), QPLAN_NPU_OK);
  {
    ModelSession session(packed.plan, QPLAN_ISA_REFERENCE, 1, &config);
    EXPECT_EQ(qplan_session_self_check(session.get()), QPLAN_OK) << error_of(session.get());
    qplan_region_info region = {};
    region.struct_size = sizeof(region);
    ASSERT_EQ(qplan_session_region_info(session.get(), 0, &region), QPLAN_OK);
    EXPECT_EQ(region.device_runs, kRuns);
  }
  (void)driver->close(config.device);
}

// One bit in the middle of each constant of each step, after the session is made.
TEST(SelfCheckOfDigits, NamesTheStepOfAnyConstantThatLosesABit) {
  for (const char* target : {"cpu", "vta, cpu"}) {
    const Packed packed = pack_checked(kDigits, target, QPLAN_FUSE_OFF);
    ASSERT_FALSE(packed.plan.empty()) << packed.error;
    ModelSession session(packed.plan, QPLAN_ISA_AUTO, 1);
    const format::PlanView view = get_view(session.plan());
    std::vector<bool> seen(view.num_tensors());
    uint32_t flips = 0;
    const auto flip = [&](uint32_t tensor, uint32_t step) {
      if (!view.is_constant(tensor) || seen[tensor]) return;
      seen[tensor] = true;
      ++flips;
      auto* byte = const_cast<uint8_t*>(static_cast<const uint8_t*>(view.constant_data(tensor))) +  // NOLINT
                   view.tensor(tensor).size() / 2;
      *byte ^= 4;
      EXPECT_EQ(qplan_session_self_check(session.get()), QPLAN_SELF_CHECK_FAILED);
      qplan_error error = empty_error();
      qplan_session_last_error(session.get(), &error);
      EXPECT_EQ(error.step, static_cast<int32_t>(step)) << error.text;
      *byte ^= 4;
    };
    for (uint32_t s = 0; s < view.num_steps(); ++s) {
      if (const format::NpuStep* npu = view.npu_step(s)) {
        flip(npu->blob(), s);
        continue;
      }
      for (const uint32_t tensor : *view.step(s).inputs()) flip(tensor, s);
    }
    EXPECT_GT(flips, 10u) << target;
    EXPECT_EQ(qplan_session_self_check(session.get()), QPLAN_OK) << error_of(session.get());
  }
}

std::string relay_file(const std::string& name, const std::string& text) {
  const std::filesystem::path path = std::filesystem::path(::testing::TempDir()) / name;
  std::ofstream(path) << text;
  return path.string();
}

TEST(SelfCheckOfANetwork, IsRefusedWhereNobodyCanSayWhatIsRight) {
  EXPECT_NE(pack_checked(kDigits, "vta, cpu", QPLAN_FUSE_AUTO, 1, false).error.find("has no fallback"),
            std::string::npos);
  EXPECT_NE(pack_checked(kDigits, nullptr, QPLAN_FUSE_AUTO, 65).error.find("65 self-checks"),
            std::string::npos);
  const std::string roots =
      relay_file("qplan_self_check_roots.relay",
                 "#[version = \"0.0.5\"]\ndef @main(%x: Tensor[(1, 64), float32]) {\n  sqrt(%x)\n}\n");
  EXPECT_NE(pack_checked(roots).error.find("computes NaN"), std::string::npos) << pack_checked(roots).error;
}

TEST(SelfCheckOfANetwork, OfFloatsPassesOnEveryInstructionSet) {
  const Packed packed = pack_checked(relay_file("qplan_self_check_floats.relay",
                                                "#[version = \"0.0.5\"]\ndef @main(%x: Tensor[(3, 37), "
                                                "float32]) {\n  %0 = exp(%x);\n  nn.softmax(%0)\n}\n"));
  ASSERT_FALSE(packed.plan.empty()) << packed.error;
  expect_passes(packed.plan);
}

}  // namespace
}  // namespace qplan::testing::self_check_models_test
