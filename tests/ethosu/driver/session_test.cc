// Sessions over the driver for Arm's core driver: networks, in place; devices that fail.
#include <gtest/gtest.h>

#include <algorithm>
#include <span>

#include "tests/ethosu/compiled_model.h"
#include "tests/ethosu/driver/core_device.h"
#include "tests/models/model_session.h"

namespace qplan::ethosu::testing::core_session_test {
namespace {

using qplan::testing::ModelSession;
using qplan::testing::pack_bytes;
using qplan::testing::pack_model;
using qplan::testing::read_bytes;
using Bytes = std::vector<uint8_t>;

constexpr char kConfig[] = "ethos-u55-128";

Bytes digits_plan(const std::string& config = kConfig) {
  return pack_model("samples/models/digits.tflite", (config + ", cpu").c_str());
}
Bytes digit(const char* what) { return read_bytes("tests/data/digits/digit7_" + std::string(what) + ".bin"); }

qplan_region_info region_of(ModelSession* session, uint32_t index = 0) {
  qplan_region_info info{};
  info.struct_size = sizeof(info);
  EXPECT_EQ(qplan_session_region_info(session->get(), index, &info), QPLAN_OK);
  return info;
}

void expect_all_on_device(ModelSession* session, uint64_t runs) {
  const uint32_t count = qplan_session_num_regions(session->get());
  EXPECT_GT(count, 0u);
  for (uint32_t r = 0; r < count; ++r) {
    EXPECT_EQ(region_of(session, r).device_runs, runs) << region_of(session, r).text;
    EXPECT_EQ(region_of(session, r).cpu_runs, 0u) << region_of(session, r).text;
  }
}

TEST(EthosuCoreDriver, ANetworkRunsOnEachConfigurationInPlace) {
  for (const std::string config :
       {"ethos-u55-32", "ethos-u55-128", "ethos-u55-256", "ethos-u65-256", "ethos-u65-512"}) {
    SCOPED_TRACE(config);
    CoreDevice device(config);
    {
      ModelSession session(digits_plan(config), QPLAN_ISA_AUTO, 1, device.config());
      for (uint32_t run = 1; run <= 2; ++run) {
        EXPECT_EQ(session.run({digit("input")}).at(0), digit("output"));
        expect_all_on_device(&session, run);
      }
      // Handles and addresses only: command stream and weights stay in the plan.
      EXPECT_LT(device.most_bytes(), 1024u);
    }
    device.close();
    EXPECT_EQ(device.live_bytes(), 0u);
  }
}

TEST(EthosuCoreDriver, RealNetworksGiveTheGoldenBytes) {
  const auto goldens = qplan::testing::golden_cases("A");
  if (goldens.empty()) GTEST_SKIP() << qplan::testing::kNoDataDirectory;
  for (const std::string model : {"kws_ref_model.tflite", "ad01_int8.tflite", "person_detect.tflite"}) {
    SCOPED_TRACE(model);
    CoreDevice device(kConfig, {.has_caches = true});
    ModelSession session(pack_model(qplan::testing::model_path(model).string(), "ethos-u55-128, cpu"),
                         QPLAN_ISA_AUTO, 1, device.config());
    const auto& golden = goldens.at(model).at(0);
    EXPECT_EQ(session.run({read_bytes(golden.inputs.at(0))}).at(0), read_bytes(golden.outputs.at(0)));
    expect_all_on_device(&session, 1);
    EXPECT_LT(device.most_bytes(), 1024u);
    EXPECT_GT(device.cleans, 0u);
    EXPECT_GT(device.invalidates, 0u);
  }
}

// Its inputs and outputs are parts of the scratch memory, to which the driver copies them.
TEST(EthosuCoreDriver, ANetworkOfArmsCompilerGivesTheGoldenBytes) {
  const std::vector<CompiledFile> files = compiled_files();
  if (files.empty()) GTEST_SKIP() << qplan::testing::kNoDataDirectory;
  uint32_t runs = 0;
  for (const CompiledFile& file : files) {
    if (!file.name.starts_with("nets/kws_ref_model__")) continue;
    SCOPED_TRACE(file.name);
    CoreDevice device(file.accelerator, {.has_caches = true});
    ModelSession session(
        pack_bytes(read_bytes(file.path), "net.tflite", (file.accelerator + ", cpu").c_str()), QPLAN_ISA_AUTO,
        1, device.config());
    const auto& folder = file.cases.at(0);
    EXPECT_EQ(session.run({read_bytes(folder / "input0.bin")}).at(0), read_bytes(folder / "output0.bin"));
    expect_all_on_device(&session, 1);
    ++runs;
  }
  EXPECT_GE(runs, 6u);
}

struct Failing {
  CoreDevice device;
  ModelSession session;
  explicit Failing(CoreOptions options = {})
      : device(kConfig, std::move(options)), session(digits_plan(), QPLAN_ISA_AUTO, 1, device.config()) {}
  // A run whose regions end on the CPU with the same bytes. Returns why.
  std::string text_of_fallback() {
    EXPECT_EQ(session.run({digit("input")}).at(0), digit("output"));
    EXPECT_EQ(region_of(&session).device_runs, 0u);
    EXPECT_EQ(region_of(&session).cpu_runs, 1u);
    return region_of(&session).text;
  }
};

TEST(EthosuCoreDriver, AnErrorOfTheDeviceLeadsToTheCpu) {
  Failing f;
  fake_ethosu()->fails = 1;
  EXPECT_EQ(f.text_of_fallback(),
            "ethos-u: the device ended the job with an error; the log of Arm's driver says which");
  fake_ethosu()->fails = 0;
  EXPECT_EQ(f.session.run({digit("input")}).at(0), digit("output"));
  EXPECT_EQ(region_of(&f.session).device_runs, 1u);
}

TEST(EthosuCoreDriver, AJobThatHangsIsStoppedByAReset) {
  Failing f({.has_clock = true});
  fake_ethosu()->hangs = 1;
  EXPECT_EQ(f.text_of_fallback(), "the job did not end in time");
  EXPECT_GE(fake_ethosu()->resets, 1u);
  fake_ethosu()->hangs = 0;
  EXPECT_EQ(f.session.run({digit("input")}).at(0), digit("output"));
  EXPECT_EQ(region_of(&f.session).device_runs, 1u);
}

TEST(EthosuCoreDriver, JobsArePolledUntilTheyEnd) {
  Failing f({.has_clock = true});
  fake_ethosu()->polls = 100;
  EXPECT_EQ(f.session.run({digit("input")}).at(0), digit("output"));
  expect_all_on_device(&f.session, 1);
}

// Arm's driver has a hook of its own for the device's addresses.
TEST(EthosuCoreDriver, ArmsDriverGetsTheAddressesThatTheCpuUses) {
  Failing f({.address_offset = uint64_t{1} << 32});
  EXPECT_EQ(f.session.run({digit("input")}).at(0), digit("output"));
  expect_all_on_device(&f.session, 1);
  EXPECT_LT(f.device.most_bytes(), 1024u) << "in place";
}

// As if ethosu_init had been given it.
std::span<uint8_t> give_fast_memory(size_t bytes) {
  alignas(16) static uint8_t fast[1 << 20];
  std::fill_n(fast, bytes, uint8_t{0xa5});
  fake_ethosu()->fast_memory = reinterpret_cast<uintptr_t>(fast);
  fake_ethosu()->fast_bytes = bytes;
  return std::span(fast, bytes);
}

TEST(EthosuCoreDriver, TheScratchMemoryOfAU65IsTheFastMemoryOfArmsDriver) {
  for (const std::string config : {"ethos-u65-256", "ethos-u65-512"}) {
    SCOPED_TRACE(config);
    CoreDevice device(config);
    ModelSession session(digits_plan(config), QPLAN_ISA_AUTO, 1, device.config());
    const std::span<uint8_t> fast = give_fast_memory(16384);
    EXPECT_EQ(session.run({digit("input")}).at(0), digit("output"));
    expect_all_on_device(&session, 1);
    EXPECT_GT(std::ranges::count_if(fast, [](uint8_t byte) { return byte != 0xa5; }), 1000);
    // Less than the program needs.
    (void)give_fast_memory(16);
    EXPECT_EQ(session.run({digit("input")}).at(0), digit("output"));
    EXPECT_STREQ(region_of(&session).text, "ethos-u: Arm's driver refused the payload; its log says why");
  }
}

// One kernel reads two inputs: the third tensor would be where Arm's driver has its fast memory.
TEST(EthosuCoreDriver, AProgramWithoutScratchMemoryLeavesTheFastMemoryAlone) {
  const std::string text =
      "def @main(%x: Tensor[(1, 4, 4, 16), int8], %y: Tensor[(1, 4, 4, 16), int8]) {\n"
      "  %0 = maximum(%x, %y);\n  %0\n}\n";
  for (const std::string config : {"ethos-u65-256", "ethos-u65-512"}) {
    SCOPED_TRACE(config);
    CoreDevice device(config);
    const std::string target = config + ", cpu";
    qplan_pack_options options = qplan::testing::pack_options(target.c_str());
    options.no_cost_gate = 1;
    ModelSession session(pack_bytes(Bytes(text.begin(), text.end()), "net.relay", options), QPLAN_ISA_AUTO, 1,
                         device.config());
    const std::span<uint8_t> fast = give_fast_memory(16384);
    EXPECT_EQ(session.run({Bytes(256, 3), Bytes(256, 5)}).at(0), Bytes(256, 5));
    expect_all_on_device(&session, 1);
    EXPECT_EQ(std::ranges::count(fast, 0xa5), std::ssize(fast));
  }
}

TEST(EthosuCoreDriver, FastMemoryInThePlaceOfAnInputIsRefused) {
  Failing f;
  (void)give_fast_memory(1 << 20);
  EXPECT_EQ(
      f.text_of_fallback(),
      "ethos-u: Arm's driver puts its fast memory in the place of region 2, which the program needs; call "
      "ethosu_init without fast memory");
  Failing small;
  (void)give_fast_memory(16);
  EXPECT_EQ(small.text_of_fallback(), "ethos-u: Arm's driver refused the payload; its log says why");
}

}  // namespace
}  // namespace qplan::ethosu::testing::core_session_test
