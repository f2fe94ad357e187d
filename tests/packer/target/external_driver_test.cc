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
    return QPLAN_NPU_OK;
  };
  driver.region_info = [](qplan_npu_device, qplan_npu_program, uint32_t slot,
                          qplan_npu_region_info* info) -> qplan_npu_status {
    info->is_bound = slot == 0 ? 0 : 1;
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

  // "" or why the region of one clip could not be compiled.
  std::string compile(const std::string& text = "acme, cpu") {
    const Library libraries[] = {{&target_, &driver_}};
    const std::vector<Target> targets = pipeline::parse_targets(text, libraries);
    const partition::PartitionResult placed = partition::partition(
        text::parse(
            qplan::testing::main_text("%x: Tensor[(1, 2, 2, 5), int8]", "  clip(%x, a_min=-50f, a_max=50f)"),
            "test"),
        targets, {.cost_gate = false});
    try {
      EXPECT_EQ(placed.regions.size(), 1u);
      targets[0].compile(placed.module, *placed.module.find(placed.regions[0].function));
      return "";
    } catch (const PackError& error) {
      EXPECT_EQ(error.status(), QPLAN_INVALID_ARGUMENT);
      return error.what();
    }
  }

  qplan_npu_target target_ = scripted_target();
  qplan_npu_driver driver_ = scripted_driver();
};

TEST_F(DriverOfALibrary, LoadsWhatItsCompileWrote) {
  EXPECT_EQ(compile(), "");
  EXPECT_EQ(script.loaded, 1u);
  EXPECT_EQ(script.blob, "code");
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
  script.load = QPLAN_NPU_E_UNSUPPORTED;
  EXPECT_NE(compile().find("region 'qplan_acme_main_0': status -3 (E_UNSUPPORTED); "), std::string::npos);
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
  EXPECT_EQ(script.loaded, 3u);
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
