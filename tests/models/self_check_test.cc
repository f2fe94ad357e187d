// Self-checks of packed networks: they pass on every instruction set, thread count and device, and name the
// step of each weight that loses a bit.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "format/plan_view.h"
#include "qplan/npu_sim.h"
#include "src/runtime/structs.h"
#include "tests/models/model_session.h"
#include "tests/packer/import/tflite_builder.h"
#include "tests/support/isas.h"

namespace qplan::testing::self_check_models_test {
namespace {

constexpr char kDigits[] = "samples/models/digits.tflite";
constexpr uint32_t kRuns = 2;

struct Packed {
  std::vector<uint8_t> plan;
  std::string error;
};

// A model of these bytes in a file that goes with this.
class ModelFile {
 public:
  // `extension`: "tflite" or "relay", by which the packer knows what it reads.
  ModelFile(const std::string& extension, const std::string& contents)
      : path_(std::filesystem::path(::testing::TempDir()) /
              ("qplan_self_check_" + std::to_string(::getpid()) + "." + extension)) {
    std::ofstream(path_, std::ios::binary) << contents;
  }
  ~ModelFile() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
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

// Flips one bit in the middle of a constant or a first state, after the session is made, and back.
class Flips {
 public:
  explicit Flips(const std::vector<uint8_t>& plan)
      : session_(plan, QPLAN_ISA_AUTO, 1), view_(get_view(session_.plan())), seen_(view_.num_tensors()) {}

  // Where tensor is a constant, the step that a self-check must name.
  void flip(uint32_t tensor, uint32_t step, const std::string& what = "constants") {
    if (!view_.is_constant(tensor) || seen_[tensor]) return;
    seen_[tensor] = true;
    ++count_;
    auto* byte = const_cast<uint8_t*>(static_cast<const uint8_t*>(view_.constant_data(tensor))) +  // NOLINT
                 view_.tensor(tensor).size() / 2;
    *byte ^= 4;
    EXPECT_EQ(qplan_session_self_check(session_.get()), QPLAN_SELF_CHECK_FAILED) << view_.tensor_name(tensor);
    qplan_error error = empty_error();
    qplan_session_last_error(session_.get(), &error);
    EXPECT_EQ(error.step, static_cast<int32_t>(step)) << error.text;
    EXPECT_NE(std::string(error.text).find("its " + what + " have checksum"), std::string::npos)
        << error.text;
    *byte ^= 4;
  }
  void flip_constants_of_steps() {
    for (uint32_t s = 0; s < view_.num_steps(); ++s) {
      if (const format::NpuStep* npu = view_.npu_step(s)) {
        flip(npu->blob(), s);
        for (const uint32_t tensor : *npu->inputs()) flip(tensor, s);
        continue;
      }
      for (const uint32_t tensor : *view_.step(s).inputs()) flip(tensor, s);
    }
  }
  uint32_t count() const { return count_; }
  const format::PlanView& view() const { return view_; }
  qplan_session* session() { return session_.get(); }

 private:
  ModelSession session_;
  const format::PlanView view_;
  std::vector<bool> seen_;
  uint32_t count_ = 0;
};

TEST(SelfCheckOfDigits, NamesTheStepOfAnyConstantThatLosesABit) {
  for (const char* target : {"cpu", "vta, cpu"}) {
    for (const uint32_t fuse : {QPLAN_FUSE_OFF, QPLAN_FUSE_ALL}) {
      const Packed packed = pack_checked(kDigits, target, fuse);
      ASSERT_FALSE(packed.plan.empty()) << packed.error;
      Flips flips(packed.plan);
      flips.flip_constants_of_steps();
      EXPECT_GT(flips.count(), 10u) << target << ", " << fuse;
      EXPECT_EQ(qplan_session_self_check(flips.session()), QPLAN_OK) << error_of(flips.session());
    }
  }
}

// kept, from a first value of its own: double = x + x; y = kept = double + kept.
std::vector<uint8_t> model_with_state() {
  using tflite_test::TfliteBuilder;
  TfliteBuilder b;
  const auto bytes = [&](const char* name) { return b.activation(name, {1, 8}, 0.5f, 0); };
  const auto handle = [&] {
    const int32_t tensor = b.tensor({.name = "handle", .type = tflite::TensorType_RESOURCE, .shape = {1}});
    b.op(tflite::BuiltinOperator_VAR_HANDLE, {}, {tensor}, tflite::BuiltinOptions_VarHandleOptions,
         tflite::CreateVarHandleOptionsDirect(b.fbb(), "", "kept").Union());
    return tensor;
  };
  const auto add = [&](int32_t left, int32_t right, int32_t to) {
    b.op(tflite::BuiltinOperator_ADD, {left, right}, {to}, tflite::BuiltinOptions_AddOptions,
         tflite::CreateAddOptions(b.fbb()).Union());
  };
  const int32_t x = bytes("x"), twice = bytes("twice"), y = bytes("y"), kept = bytes("kept");
  b.op(tflite::BuiltinOperator_CALL_ONCE, {}, {}, tflite::BuiltinOptions_CallOnceOptions,
       tflite::CreateCallOnceOptions(b.fbb(), 1).Union());
  const int32_t variable = handle();
  b.op(tflite::BuiltinOperator_READ_VARIABLE, {variable}, {kept});
  add(x, x, twice);
  add(twice, kept, y);
  b.op(tflite::BuiltinOperator_ASSIGN_VARIABLE, {variable, y}, {});
  b.end_subgraph({x}, {y});
  const int32_t first = b.tensor({.name = "first",
                                  .shape = {1, 8},
                                  .scales = {0.5f},
                                  .zero_points = {0},
                                  .data = {1, 2, 3, 4, 5, 6, 7, 8}});
  b.op(tflite::BuiltinOperator_ASSIGN_VARIABLE, {handle(), first}, {});
  return b.finish({}, {});
}

TEST(SelfCheckOfANetwork, NamesTheStepThatReadsAFirstStateThatLostABit) {
  const std::vector<uint8_t> model = model_with_state();
  const Packed packed = pack_checked(ModelFile("tflite", std::string(model.begin(), model.end())).path());
  ASSERT_FALSE(packed.plan.empty()) << packed.error;
  Flips flips(packed.plan);
  const format::Function& function = flips.view().function(0);
  ASSERT_EQ(format::count_of(function.states()), 1u);
  const format::State& state = *function.states()->Get(0);
  for (uint32_t s = 0; s < flips.view().num_steps() && flips.count() == 0; ++s) {
    for (const uint32_t tensor : *flips.view().step(s).inputs()) {
      if (tensor == state.input()) flips.flip(state.initial(), s, "constants and initial states");
    }
  }
  EXPECT_EQ(flips.count(), 1u);
  EXPECT_EQ(qplan_session_self_check(flips.session()), QPLAN_OK) << error_of(flips.session());
}

TEST(SelfCheckOfDigits, StaysWithThePlanThatGetsOtherSchedules) {
  const Packed packed = pack_checked(kDigits);
  ASSERT_FALSE(packed.plan.empty()) << packed.error;
  ModelSession before(packed.plan, QPLAN_ISA_AUTO, 1);
  std::string schedules = "[";
  for (uint32_t s = 0; s < get_view(before.plan()).num_steps(); ++s) schedules += s == 0 ? "null" : ", null";
  qplan_error error = empty_error();
  std::vector<uint8_t> plan;
  const Buffer<uint8_t> bytes(packed.plan);
  ASSERT_EQ(
      qplan_reschedule(bytes.data(), bytes.size(), (schedules + "]").c_str(), append_bytes, &plan, &error),
      QPLAN_OK)
      << error.text;
  expect_passes(plan);
}

TEST(SelfCheckOfANetwork, IsRefusedWhereNobodyCanSayWhatIsRight) {
  EXPECT_EQ(
      pack_checked(kDigits, "vta, cpu", QPLAN_FUSE_AUTO, 1, false).error,
      "self-check: the plan has no fallback for region 'qplan_vta_main_0', and the CPU must compute what its "
      "device is compared with; pack it without --fallback none, or without --self-check where the region "
      "is a program that was compiled before");
  for (const uint32_t count : {65u, UINT32_MAX}) {
    EXPECT_EQ(pack_checked(kDigits, nullptr, QPLAN_FUSE_AUTO, count).error,
              "pack options: self_checks is " + std::to_string(count) + ", expected at most 64");
  }
  const ModelFile roots("relay",
                        "#[version = \"0.0.5\"]\ndef @main(%x: Tensor[(1, 64), float32]) {\n  sqrt(%x)\n}\n");
  EXPECT_NE(pack_checked(roots.path()).error.find("computes NaN"), std::string::npos)
      << pack_checked(roots.path()).error;
}

TEST(SelfCheckOfANetwork, OfFloatsPassesOnEveryInstructionSet) {
  const Packed packed = pack_checked(ModelFile("relay",
                                               "#[version = \"0.0.5\"]\ndef @main(%x: Tensor[(3, 37), "
                                               "float32]) {\n  %0 = exp(%x);\n  nn.softmax(%0)\n}\n")
                                         .path());
  ASSERT_FALSE(packed.plan.empty()) << packed.error;
  expect_passes(packed.plan);
}

}  // namespace
}  // namespace qplan::testing::self_check_models_test
