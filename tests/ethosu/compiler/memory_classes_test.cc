// Plans state the memories that the cost model reckons with: SRAM for what the device works on, flash (U55)
// or DRAM (U65) for constants.
#include <gtest/gtest.h>

#include <string>

#include "src/packer/inspect/inspect.h"
#include "tests/models/model_session.h"

namespace qplan::ethosu::testing {
namespace {

void expect_classes(const std::string& config, format::MemoryClass constants) {
  SCOPED_TRACE(config);
  const std::vector<uint8_t> bytes =
      qplan::testing::pack_model("samples/models/digits.tflite", (config + ", cpu").c_str());
  const inspect::PlanReader reader(bytes);
  const format::PlanView& view = reader.view();
  const format::NpuStep& step = *view.npu_step(0);
  EXPECT_EQ(step.memory_class(), constants);
  for (const format::NpuBind* bind : *step.binds()) EXPECT_EQ(bind->memory_class(), format::MemoryClass_SRAM);
  EXPECT_LT(view.device_bank(1, format::MemoryClass_SRAM), view.num_banks());
  EXPECT_EQ(view.device_bank(1, format::MemoryClass_ANY), view.num_banks());
}

TEST(EthosuMemoryClasses, AreThoseOfTheCostModel) {
  expect_classes("ethos-u55-128", format::MemoryClass_FLASH);
  expect_classes("ethos-u65-256", format::MemoryClass_DRAM);
}

}  // namespace
}  // namespace qplan::ethosu::testing
