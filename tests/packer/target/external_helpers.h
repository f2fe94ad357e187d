// A target from outside the tree that takes everything, and what it makes of a network in Relay text.
#ifndef QPLAN_TESTS_PACKER_TARGET_EXTERNAL_HELPERS_H_
#define QPLAN_TESTS_PACKER_TARGET_EXTERNAL_HELPERS_H_

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "src/packer/partition/partition.h"
#include "src/packer/pipeline/pipeline.h"
#include "src/packer/target/external/external.h"
#include "src/packer/target/region.h"
#include "tests/conformance/workload.h"
#include "tests/packer/target/lower_helpers.h"

namespace qplan::target::external::external_test {

using qplan::testing::main_text;

inline constexpr uint64_t kHash = 0x1234;
inline constexpr char kImage[] = "%x: Tensor[(1, 5, 4, 6), int8]";

inline qplan_npu_status fill_capabilities(uint64_t, qplan_npu_capabilities* to) {
  to->hash = kHash;
  return QPLAN_NPU_OK;
}
inline qplan_npu_status take_all(uint64_t, const qplan_npu_op*, qplan_npu_reason*, uint32_t* count) {
  *count = 0;
  return QPLAN_NPU_OK;
}
inline const char* const kAll[] = {"qplan.qconv2d",
                                   "qplan.qdepthwise",
                                   "qplan.qdense",
                                   "qplan.qconv2d_transpose",
                                   "qplan.qadd",
                                   "qplan.qmax_pool2d",
                                   "qplan.qavg_pool2d",
                                   "qplan.qmul",
                                   "qplan.qclip",
                                   "qplan.qmean",
                                   "qplan.qmaximum",
                                   "qplan.qminimum",
                                   "qplan.qlookup",
                                   "qplan.qpad",
                                   "qplan.qconcat",
                                   "qplan.qreshape",
                                   "qplan.qsoftmax",
                                   "qplan.qresize_nearest",
                                   "qplan.qresize_bilinear"};
inline const qplan_npu_rule kRules[] = {{7, 0, "acme.channels", "at most 16 channels", "fewer channels"}};

inline qplan_npu_target acme() {
  qplan_npu_target target = {};
  target.struct_size = sizeof(target);
  target.abi = QPLAN_NPU_TARGET_ABI;
  target.name = "acme";
  target.composites = kAll;
  target.num_composites = std::size(kAll);
  target.rules = kRules;
  target.num_rules = std::size(kRules);
  target.capabilities = fill_capabilities;
  target.supported = take_all;
  return target;
}

inline partition::PartitionResult place(const qplan_npu_target& library, const std::string& text) {
  const Library libraries[] = {{&library}};
  const std::vector<Target> targets = pipeline::parse_targets("acme, cpu", libraries);
  return partition::partition(text::parse(text, "test"), targets, {.cost_gate = false});
}

// The reasons of acme against the unit that ends in the node.
inline std::vector<Reason> reasons(const qplan_npu_target& library, const std::string& text) {
  const std::vector<Target> targets = {make_target({&library}, {})};
  const ir::Module module = text::parse(text, "test");
  const pattern::Pre pre(module.main());
  for (const PatternRow& row : targets[0].table) {
    const auto matches = pattern::match(row.pattern, pre, pattern::PreValue{module.main().outputs()[0]});
    if (matches) return row.check({pre, *matches});
  }
  ADD_FAILURE() << "no row matches";
  return {};
}

// Runs a list on a packed input; the bytes of its only output.
inline std::vector<uint8_t> run_list(const CompiledRegion& region, const std::vector<uint8_t>& input) {
  qplan_oplist list = {};
  qplan_npu_reason why = {};
  EXPECT_EQ(qplan_oplist_open(region.blob.data(), region.blob.size(), &list, &why), QPLAN_NPU_OK) << why.text;
  EXPECT_EQ(list.header.capabilities_hash, kHash);
  std::vector<std::vector<uint64_t>> memories;
  std::vector<void*> slots;
  uint32_t output = 0;
  for (uint32_t i = 0; i < list.header.num_slots; ++i) {
    const qplan_oplist_slot slot = qplan_oplist_slot_at(&list, i);
    memories.emplace_back(slot.bytes / 8 + 1, 0x5a5a5a5a5a5a5a5a);
    slots.push_back(memories.back().data());
    const uint8_t* from = slot.usage == QPLAN_NPU_USE_WEIGHTS ? region.blob.data() + slot.data_offset
                          : slot.usage == QPLAN_NPU_USE_INPUT ? input.data()
                                                              : nullptr;
    if (from != nullptr) std::memcpy(slots.back(), from, static_cast<size_t>(slot.bytes));
    if (slot.usage == QPLAN_NPU_USE_OUTPUT) output = i;
  }
  for (uint32_t i = 0; i < list.header.num_ops; ++i) {
    qplan_oplist_call call;
    qplan_oplist_bind(&list, i, slots.data(), &call);
    EXPECT_EQ(qplan_npu_op_check(&call.op), nullptr);
    conformance::compute_reference(call.op);
  }
  const auto* bytes = static_cast<const uint8_t*>(slots[output]);
  return {bytes, bytes + qplan_oplist_slot_at(&list, output).bytes};
}

inline std::string numbers(std::mt19937& random, int64_t count, int64_t low, int64_t high) {
  std::string text;
  for (int64_t i = 0; i < count; ++i) {
    text += i == 0 ? "" : ", ";
    text += std::to_string(low + static_cast<int64_t>(random() % static_cast<uint32_t>(high - low + 1)));
  }
  return text;
}

template <typename T>
void expect_like_the_cpu(const std::string& text, size_t input_elements, uint32_t num_operators,
                         const qplan_npu_target& library = acme()) {
  const partition::PartitionResult placed = place(library, text);
  ASSERT_EQ(placed.regions.size(), 1u) << text;
  const Target target = make_target({&library}, {});
  const CompiledRegion region =
      target.compile(placed.module, *placed.module.find(placed.regions[0].function));
  EXPECT_EQ(region.format, QPLAN_NPU_BLOB_OPLIST);
  EXPECT_EQ(region.units.size(), num_operators);
  EXPECT_GT(region.cycles, 0u);
  std::mt19937 random(5);
  std::vector<T> input(input_elements);
  for (T& value : input) value = static_cast<T>(random());
  const std::vector<T> expected = qplan::testing::run_text<T>(text, input);
  // Where the sign is flipped at the border, the runtime copies in and out.
  uint8_t flips[] = {0, 0};
  for (const RegionSlot& slot : region.slots) {
    if (slot.use != format::NpuUse_SCRATCH) flips[slot.use == format::NpuUse_OUTPUT] = slot.arrangement.flip;
  }
  std::vector<uint8_t> from(input.begin(), input.end());
  for (uint8_t& byte : from) byte ^= flips[0];
  std::vector<uint8_t> actual = run_list(region, from);
  for (uint8_t& byte : actual) byte ^= flips[1];
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) ASSERT_EQ(static_cast<T>(actual[i]), expected[i]) << i;
}

}  // namespace qplan::target::external::external_test

#endif  // QPLAN_TESTS_PACKER_TARGET_EXTERNAL_HELPERS_H_
