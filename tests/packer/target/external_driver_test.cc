// The driver of a library is asked, while packing, about the program that goes into the plan.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "src/packer/error.h"
#include "src/packer/partition/partition.h"
#include "src/packer/pipeline/pipeline.h"
#include "src/packer/target/external/external.h"
#include "src/packer/target/region.h"
#include "tests/packer/target/lower_helpers.h"
#include "tests/support/fake_npu.h"

namespace qplan::target::external::external_driver_test {
namespace {

constexpr uint64_t kHash = 0x1234;
const char* const kComposites[] = {"qplan.qclip"};

// What the driver answers, and what it was asked.
struct Script {
  qplan_npu_status open = QPLAN_NPU_OK;
  bool knows_options = true;
  uint64_t hash = kHash;
  qplan_npu_status load = QPLAN_NPU_OK;
  const char* text = "";
  uint32_t place = QPLAN_OPLIST_NONE;  // of why
  uint32_t input_usage = QPLAN_NPU_USE_INPUT;
  qplan_npu_status info = QPLAN_NPU_OK;
  uint32_t slots = 3;  // of the program: constants, an input, an output
  uint64_t bytes = 20;
  uint32_t opened = 0, closed = 0, loaded = 0, unloaded = 0;
  std::string blob;
};
Script script;

qplan_npu_driver scripted_driver() {
  qplan_npu_driver driver = *qplan::testing::FakeNpu::driver();
  driver.open = [](const qplan_device_hooks*, uint32_t, const char* options, qplan_npu_device* device,
                   qplan_npu_reason*) -> qplan_npu_status {
    if (options[0] != '\0' && !script.knows_options) return QPLAN_NPU_E_ARGUMENT;
    if (script.open < 0) return script.open;
    ++script.opened;
    *device = 1;
    return QPLAN_NPU_OK;
  };
  driver.close = [](qplan_npu_device) -> qplan_npu_status {
    ++script.closed;
    return QPLAN_NPU_OK;
  };
  driver.capabilities = [](qplan_npu_device, qplan_npu_capabilities* to) -> qplan_npu_status {
    to->hash = script.hash;
    return QPLAN_NPU_OK;
  };
  driver.load = [](qplan_npu_device, uint32_t, const void* blob, uint64_t bytes, qplan_npu_program* program,
                   qplan_npu_reason* why) -> qplan_npu_status {
    ++script.loaded;
    script.blob.assign(static_cast<const char*>(blob), bytes);
    if (script.load < 0) std::strncpy(why->text, script.text, sizeof(why->text) - 1);
    if (script.load < 0) why->place = script.place;
    *program = 7;
    return script.load;
  };
  driver.unload = [](qplan_npu_device, qplan_npu_program) -> qplan_npu_status {
    ++script.unloaded;
    return QPLAN_NPU_OK;
  };
  driver.program_info = [](qplan_npu_device, qplan_npu_program,
                           qplan_npu_program_info* info) -> qplan_npu_status {
    info->num_regions = script.slots;
    return script.info;
  };
  driver.region_info = [](qplan_npu_device, qplan_npu_program, uint32_t slot,
                          qplan_npu_region_info* info) -> qplan_npu_status {
    info->is_bound = slot == 0 ? 0 : 1;
    info->usage = slot == 1 ? script.input_usage : uint32_t{QPLAN_NPU_USE_OUTPUT};
    info->bytes = slot == 2 ? script.bytes : 20;
    return QPLAN_NPU_OK;
  };
  return driver;
}

// A target with a compiler; its program is "code".
qplan_npu_target scripted_target() {
  qplan_npu_target target = {};
  target.struct_size = sizeof(target);
  target.abi = QPLAN_NPU_TARGET_ABI;
  target.name = "acme";
  target.composites = kComposites;
  target.num_composites = 1;
  target.blob_format = QPLAN_NPU_FOURCC('A', 'C', 'M', 'E');
  target.configure = [](const char*, uint64_t*, qplan_npu_reason*) -> qplan_npu_status {
    return QPLAN_NPU_OK;
  };
  target.capabilities = [](uint64_t, qplan_npu_capabilities* to) -> qplan_npu_status {
    to->hash = kHash;
    return QPLAN_NPU_OK;
  };
  target.supported = [](uint64_t, const qplan_npu_op*, qplan_npu_reason*, uint32_t* count) {
    *count = 0;
    return qplan_npu_status{QPLAN_NPU_OK};
  };
  target.compile = [](uint64_t, const void*, uint64_t, qplan_npu_write_fn write, void* user,
                      qplan_npu_reason*) { return write(user, "code", 4); };
  return target;
}

class DriverOfALibrary : public ::testing::Test {
 protected:
  void SetUp() override { script = Script(); }
  void TearDown() override {
    EXPECT_EQ(script.opened, script.closed);
    EXPECT_EQ(script.unloaded, script.load < 0 ? 0 : script.loaded);
  }

  // "" or why packing ends, or what the driver refuses, for a plan with the region of one clip, which is
  // asked about `times` times at once.
  std::string compile(const std::string& text = "acme, cpu", size_t times = 1) {
    const Library libraries[] = {{&target_, &driver_}};
    const std::vector<Target> targets = pipeline::parse_targets(text, libraries);
    const partition::PartitionResult placed = partition::partition(
        text::parse(
            qplan::testing::main_text("%x: Tensor[(1, 2, 2, 5), int8]", "  clip(%x, a_min=-50f, a_max=50f)"),
            "test"),
        targets, {.cost_gate = false});
    try {
      EXPECT_EQ(placed.regions.size(), 1u);
      const ir::Function& region = *placed.module.find(placed.regions[0].function);
      const CompiledRegion code = targets[0].compile(placed.module, region);
      refusals_ = targets[0].load(std::vector<RegionProgram>(times, {&region, &code}));
      return refusals_.empty() ? "" : refusals_[0].reason.text;
    } catch (const PackError& error) {
      EXPECT_EQ(error.status(), QPLAN_INVALID_ARGUMENT);
      return error.what();
    }
  }

  qplan_npu_target target_ = scripted_target();
  qplan_npu_driver driver_ = scripted_driver();
  std::vector<ProgramRefusal> refusals_;
};

TEST_F(DriverOfALibrary, LoadsWhatItsCompileWrote) {
  EXPECT_EQ(compile(), "");
  EXPECT_EQ(script.loaded, 1u);
  EXPECT_EQ(script.blob, "code");
}

TEST_F(DriverOfALibrary, OpensItsDeviceOnceForAllPrograms) {
  EXPECT_EQ(compile("acme, cpu", 3), "");
  EXPECT_EQ(script.opened, 1u);
  EXPECT_EQ(script.loaded, 3u);
}

TEST_F(DriverOfALibrary, RefusesARegionOrAnOperatorOfIt) {
  script.load = QPLAN_NPU_E_UNSUPPORTED;
  script.text = "acme: too many tiles";
  EXPECT_EQ(compile("acme, cpu", 2),
            "the driver refuses the program of its region: acme: too many tiles; without this operator the "
            "region is smaller");
  ASSERT_EQ(refusals_.size(), 2u);
  EXPECT_EQ(refusals_[1].program, 1u);
  EXPECT_EQ(refusals_[1].reason.id, "acme.load");
  EXPECT_FALSE(refusals_[1].node.has_value());
  script.place = 0;
  EXPECT_EQ(compile(), "the driver refuses the program of its region for it: acme: too many tiles");
  EXPECT_EQ(refusals_[0].node, 0u);
  script.place = 1;  // which the region does not have
  EXPECT_NE(compile(), "");
  EXPECT_FALSE(refusals_[0].node.has_value());
}

TEST_F(DriverOfALibrary, IsQuotedWhereItRefusesTheProgram) {
  script.load = QPLAN_NPU_E_BLOB;
  script.text = "acme: no such opcode";
  EXPECT_EQ(
      compile(),
      "target library: target 'acme': its driver refuses the program that its compile made of region "
      "'qplan_acme_main_0': acme: no such opcode, status -4 (E_BLOB); load of the driver must take what "
      "compile writes");
  script.text = "";
  script.load = -9;
  EXPECT_NE(compile().find("region 'qplan_acme_main_0': status -9; "), std::string::npos);
  target_.compile = nullptr;
  EXPECT_NE(compile().find("driver refuses the operator list of region 'qplan_acme_main_0': "),
            std::string::npos);
}

TEST_F(DriverOfALibrary, IsQuotedWhereItNeedsOtherBuffersThanThePlanBinds) {
  script.bytes = 21;
  EXPECT_NE(compile().find("slot 2: the program needs 21 bytes, the plan binds 20; "), std::string::npos);
  script.bytes = 20;
  script.slots = 4;
  EXPECT_NE(compile().find("slot 3: the program needs it, the plan does not bind it; "), std::string::npos);
  script.slots = 2;
  EXPECT_NE(compile().find("slot 2: the program has 2; "), std::string::npos);
  script.slots = 65537;
  EXPECT_NE(compile().find("the program has 65537 regions, expected at most 65536; "), std::string::npos);
  script.slots = 3;
  script.bytes = 19;
  EXPECT_NE(compile().find("slot 2: the program writes 19 bytes, the plan reads 20 of them; "),
            std::string::npos);
  script.bytes = 20;
  script.input_usage |= QPLAN_NPU_USE_OUTPUT;
  EXPECT_NE(compile().find("slot 1: the program writes it, the plan binds an input; "), std::string::npos);
  script.input_usage = QPLAN_NPU_USE_SCRATCH;
  EXPECT_NE(compile().find("slot 1: the program uses it in another way (8) than the plan binds it; "),
            std::string::npos);
  script.input_usage = QPLAN_NPU_USE_INPUT;
  script.info = QPLAN_NPU_E_ARGUMENT;
  EXPECT_NE(compile().find("the driver states nothing about its program: wrong argument; "),
            std::string::npos);
  script.info = QPLAN_NPU_E_LOST;  // it cannot say now
  EXPECT_EQ(compile(), "");
  EXPECT_EQ(script.loaded, 9u);
}

TEST_F(DriverOfALibrary, SaysNothingWithoutADeviceOfThePlansKind) {
  script.load = QPLAN_NPU_E_BLOB;
  for (const qplan_npu_status status : {QPLAN_NPU_E_ABSENT, QPLAN_NPU_E_BUSY, QPLAN_NPU_E_ARGUMENT}) {
    script.open = status;
    EXPECT_EQ(compile(), "") << status;
  }
  script.open = QPLAN_NPU_OK;
  script.hash = kHash + 1;
  EXPECT_EQ(compile(), "");
  EXPECT_EQ(script.opened, 1u);
  EXPECT_EQ(script.loaded, 0u);
}

TEST_F(DriverOfALibrary, SaysNothingWhereItsDeviceCannotLoadNow) {
  script.load = QPLAN_NPU_E_MEMORY;
  EXPECT_EQ(compile(), "");
  EXPECT_EQ(script.loaded, 1u);
}

TEST_F(DriverOfALibrary, NeedNotKnowTheOptionsOfItsTarget) {
  script.knows_options = false;
  script.load = QPLAN_NPU_E_BLOB;
  script.text = "acme: no such opcode";
  EXPECT_NE(compile("acme,size=2, cpu").find("no such opcode"), std::string::npos);
}

}  // namespace
}  // namespace qplan::target::external::external_driver_test
