// How a library arranges the tensors at the border of its regions: uint8 as int8, and padded channels.
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "src/packer/error.h"
#include "src/packer/target/external/external.h"
#include "tests/packer/target/external_helpers.h"

namespace qplan::target::external::external_test {
namespace {

bool has_uint8(const qplan_npu_op& op) {
  const auto is_uint8 = [](const DLTensor* t) { return t != nullptr && t->dtype.code == kDLUInt; };
  bool found = is_uint8(op.output) || is_uint8(op.weights);
  for (uint32_t i = 0; i < qplan_npu_op_num_inputs(&op); ++i)
    found = found || is_uint8(qplan_npu_op_input(&op, i));
  return found;
}

qplan_npu_status flip_uint8(uint64_t, qplan_npu_slot_layout* slot, qplan_npu_reason*) {
  if (slot->tensor->dtype.code == kDLUInt) slot->flip = 0x80;
  return QPLAN_NPU_OK;
}

// Knows int8 alone.
qplan_npu_target signed_only() {
  static const std::vector<const char*> names = [] {
    std::vector<const char*> all(std::begin(kAll), std::end(kAll));
    all.push_back("qplan.qmul_broadcast");
    return all;
  }();
  qplan_npu_target library = acme();
  library.composites = names.data();
  library.num_composites = static_cast<uint32_t>(names.size());
  library.supported = [](uint64_t, const qplan_npu_op* op, qplan_npu_reason* reasons,
                         uint32_t* count) -> qplan_npu_status {
    const uint32_t room = *count;
    *count = has_uint8(*op) ? 1 : 0;
    if (*count != 0 && room > 0) qplan_oplist_refuse(reasons, 0, 9, 0, 0, 0, "int8 only");
    return *count == 0 ? QPLAN_NPU_OK : QPLAN_NPU_E_UNSUPPORTED;
  };
  library.layout = flip_uint8;
  return library;
}

constexpr char kUint8Image[] = "%x: Tensor[(1, 6, 5, 6), uint8]";
constexpr size_t kUint8Elements = 180;

TEST(ExternalLayout, Uint8NetworksRunOnDevicesThatKnowInt8Alone) {
  std::mt19937 random(1);
  const std::string clip = "  %0 = clip(%x, a_min=20f, a_max=200f);\n";
  const std::string table = "const(Tensor[(256), uint8], [" + numbers(random, 256, 0, 255) + "])";
  const std::string channels = "const(Tensor[(6), uint8], [" + numbers(random, 6, 0, 255) + "])";
  std::vector<std::string> bodies = {
      clip + "  %1 = maximum(%x, %0);\n  %1",
      clip + "  %1 = concatenate((%x, %0), axis=3);\n  %1",
      clip + "  %1 = nn.pad(%0, 7f, pad_width=[[0, 0], [1, 2], [0, 3], [0, 0]]);\n  %1",
      clip + "  %1 = reshape(%0, newshape=[1, 5, 36]);\n  %1",
      clip + "  %1 = qnn.lookup(%0, " + table + ");\n  %1",
      clip + "  %1 = nn.max_pool2d(%0, pool_size=[2, 2], layout=\"NHWC\");\n  %1",
      clip + "  %1 = qnn.avg_pool2d(%0, 0.5f, 9, 0.5f, 9, pool_size=[3, 5], layout=\"NHWC\");\n  %1",
      clip + "  %1 = qnn.softmax(%0, 0.1f, 3, 0.00390625f, 0);\n  %1",
      clip +
          "  %1 = take(%0, const(Tensor[(12), int32], [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5]), axis=1);\n  %1"};
  for (const std::string contract : {", contract=\"tfl2\"", ", contract=\"f32e\""}) {
    bodies.push_back(clip + "  %1 = qnn.add(%x, %0, 0.5f, 130, 0.25f, 4, 0.7f, 120" + contract + ");\n  %1");
    bodies.push_back(clip + "  %1 = qnn.mul(%0, " + channels + ", 0.5f, 130, 0.25f, 4, 9f, 120" + contract +
                     ");\n  %1");
    bodies.push_back(clip + "  %1 = qnn.mean(%0, 0.5f, 130, 0.05f, 90, axis=[1, 2], keepdims=True" +
                     contract + ");\n  %1");
    bodies.push_back(
        "  %0 = nn.pad(%x, 90f, pad_width=[[0, 0], [1, 2], [0, 1], [0, 0]]);\n"
        "  %1 = qnn.conv2d(%0, const(Tensor[(8, 3, 2, 6), uint8], [" +
        numbers(random, 8 * 36, 0, 255) +
        "]), 120, 117, 0.5f, 0.5f, data_layout=\"NHWC\", kernel_layout=\"OHWI\");\n"
        "  %2 = qnn.requantize(%1, 0.25f, 0, 64f, 100, out_dtype=\"uint8\"" +
        contract + ");\n  %3 = clip(%2, a_min=30f, a_max=200f);\n  %3");
  }
  for (const std::string& body : bodies) {
    SCOPED_TRACE(body);
    const std::string text = main_text(kUint8Image, body);
    expect_like_the_cpu<uint8_t>(text, kUint8Elements, body.starts_with(clip) ? 2 : 1, signed_only());
  }
}

TEST(ExternalLayout, OperatorsThatRoundOtherwiseInInt8Stay) {
  const auto refused = [](const std::string& body) -> std::string {
    const std::vector<Reason> found =
        reasons(signed_only(), main_text(kUint8Image, "  %0 = " + body + ";\n  %0"));
    return found.size() == 1 && found[0].id == "acme.list" ? found[0].text : "?";
  };
  const std::string average =
      "an average of uint8 over an even number of elements rounds otherwise than one of int8, which is all "
      "that the device has";
  const std::string pool = "qnn.avg_pool2d(%x, 0.5f, 9, 0.5f, 9, layout=\"NHWC\", pool_size=";
  EXPECT_EQ(refused(pool + "[2, 3])"), average);
  EXPECT_EQ(refused(pool + "[3, 3], padding=[1, 1, 1, 1])"), average);
  EXPECT_EQ(refused(pool + "[3, 3])"), "?");
  EXPECT_EQ(refused("image.resize2d(%x, size=[12, 10], layout=\"NHWC\")"),
            "an interpolation of uint8 rounds otherwise than one of int8, which is all that the device has");
}

// What make_target and compile say of a layout.
template <typename Layout>
std::string fault(Layout layout, bool compiles, const std::string& dtype = "int8") {
  qplan_npu_target library = acme();
  library.layout = layout;
  if (compiles) {
    library.blob_format = QPLAN_NPU_FOURCC('A', 'C', 'M', 'E');
    library.compile = [](uint64_t, const void* list, uint64_t bytes, qplan_npu_write_fn write, void* user,
                         qplan_npu_reason*) { return write(user, list, bytes); };
  }
  try {
    const std::string input = "%x: Tensor[(1, 2, 3, 5), " + dtype + "]";
    const partition::PartitionResult placed =
        place(library, main_text(input, "  %0 = clip(%x, a_min=0f, a_max=50f);\n  %0"));
    const CompiledRegion region =
        make_target({&library}, {}).compile(placed.module, *placed.module.find(placed.regions[0].function));
    EXPECT_FALSE(region.slots.empty());
    return "";
  } catch (const PackError& error) {
    const std::string text = error.what();
    const std::string begin =
        "target library: target 'acme': layout of an input Tensor[(1, 2, 3, 5), " + dtype + "]: ";
    return text.starts_with(begin) ? text.substr(begin.size()) : text;
  }
}

// Channels in multiples of 16, one border pixel to the left.
qplan_npu_status pad_channels(uint64_t, qplan_npu_slot_layout* slot, qplan_npu_reason*) {
  const int64_t* const shape = slot->tensor->shape;
  const auto channels = static_cast<uint64_t>((shape[3] + 15) / 16 * 16);
  slot->strides[3] = 1;
  slot->strides[2] = channels;
  slot->strides[1] = channels * static_cast<uint64_t>(shape[2] + 1);
  slot->strides[0] = slot->strides[1] * static_cast<uint64_t>(shape[1]);
  slot->origin = channels;
  slot->bytes = slot->strides[0] * static_cast<uint64_t>(shape[0]);
  slot->fill = 7;
  slot->alignment = 256;
  return QPLAN_NPU_OK;
}

TEST(ExternalLayout, PaddedChannelsAndBordersAreInThePlan) {
  qplan_npu_target library = acme();
  library.layout = pad_channels;
  library.blob_format = QPLAN_NPU_FOURCC('A', 'C', 'M', 'E');
  library.compile = [](uint64_t, const void* list, uint64_t bytes, qplan_npu_write_fn write, void* user,
                       qplan_npu_reason*) { return write(user, list, bytes); };
  const partition::PartitionResult placed = place(
      library, main_text("%x: Tensor[(1, 2, 3, 5), int8]", "  %0 = clip(%x, a_min=0f, a_max=50f);\n  %0"));
  const CompiledRegion region =
      make_target({&library}, {}).compile(placed.module, *placed.module.find(placed.regions[0].function));
  ASSERT_EQ(region.slots.size(), 2u);
  for (const RegionSlot& slot : region.slots) {
    EXPECT_EQ(slot.arrangement.strides, (std::vector<uint64_t>{128, 64, 16, 1}));
    EXPECT_EQ(slot.arrangement.origin, 16u);
    EXPECT_EQ(slot.arrangement.size, 128u);
    EXPECT_EQ(slot.arrangement.fill, 7);
    EXPECT_EQ(slot.alignment, 256u);
  }
  qplan_oplist list = {};
  ASSERT_EQ(qplan_oplist_open(region.blob.data(), region.blob.size(), &list, nullptr), QPLAN_NPU_OK);
  EXPECT_EQ(qplan_oplist_slot_at(&list, 1).bytes, 128u);
  EXPECT_EQ(qplan_oplist_tensor_at(&list, 0).shape[3], 5);
}

// Blocks of two channels, each with all pixels.
qplan_npu_status divide_channels(uint64_t, qplan_npu_slot_layout* slot, qplan_npu_reason*) {
  const int64_t* const shape = slot->tensor->shape;
  const auto row = static_cast<uint64_t>(shape[2] * 2);
  slot->block = 2;
  slot->block_stride = row * static_cast<uint64_t>(shape[1]);
  slot->strides[2] = 2;
  slot->strides[1] = row;
  slot->strides[0] = slot->block_stride * static_cast<uint64_t>((shape[3] + 1) / 2);
  slot->bytes = slot->strides[0] * static_cast<uint64_t>(shape[0]);
  return QPLAN_NPU_OK;
}

TEST(ExternalLayout, BlocksOfChannelsAreAsked) {
  qplan_npu_target library = acme();
  library.layout = divide_channels;
  library.compile = [](uint64_t, const void*, uint64_t, qplan_npu_write_fn, void*,
                       qplan_npu_reason*) -> qplan_npu_status { return QPLAN_NPU_OK; };
  uint32_t alignment = 0;
  const auto ask = [&](const ir::Shape& shape) {
    return ask_layout(library, 0, {ir::kInt8, shape}, QPLAN_NPU_USE_INPUT, &alignment);
  };
  const Arrangement five = ask({1, 2, 3, 5});
  EXPECT_EQ(five.block, 2u);
  EXPECT_EQ(five.block_stride, 12u);
  EXPECT_EQ(five.size, 36u);
  EXPECT_FALSE(five.is_packed({ir::kInt8, {1, 2, 3, 5}}));
  // A single block, and blocks that follow each other.
  EXPECT_EQ(ask({1, 2, 3, 2}).block, 0u);
  EXPECT_TRUE(ask({1, 2, 3, 2}).is_packed({ir::kInt8, {1, 2, 3, 2}}));
  EXPECT_TRUE(ask({1, 1, 1, 4}).is_packed({ir::kInt8, {1, 1, 1, 4}}));
}

TEST(ExternalLayout, WrongLayoutsAreErrorsOfTheLibrary) {
  EXPECT_EQ(fault(pad_channels, true), "");
  EXPECT_EQ(fault(pad_channels, false),
            "it is not packed, but the program is an operator list, whose tensors are");
  using Slot = qplan_npu_slot_layout;
  EXPECT_EQ(fault(
                [](uint64_t, Slot* slot, qplan_npu_reason*) -> qplan_npu_status {
                  slot->bytes = 29;
                  return QPLAN_NPU_OK;
                },
                true),
            "elements reach beyond its 29 bytes");
  EXPECT_EQ(fault(
                [](uint64_t, Slot* slot, qplan_npu_reason*) -> qplan_npu_status {
                  slot->strides[2] = 4;
                  return QPLAN_NPU_OK;
                },
                true),
            "two elements have the same bytes");
  EXPECT_EQ(fault(divide_channels, true), "");
  EXPECT_EQ(fault(
                [](uint64_t, Slot* slot, qplan_npu_reason* why) -> qplan_npu_status {
                  (void)divide_channels(0, slot, why);
                  slot->block_stride -= 1;
                  return QPLAN_NPU_OK;
                },
                true),
            "two elements have the same bytes");
  EXPECT_EQ(fault(
                [](uint64_t, Slot* slot, qplan_npu_reason* why) -> qplan_npu_status {
                  (void)divide_channels(0, slot, why);
                  slot->bytes = 34;
                  return QPLAN_NPU_OK;
                },
                true),
            "elements reach beyond its 34 bytes");
  EXPECT_EQ(fault(
                [](uint64_t, Slot* slot, qplan_npu_reason*) -> qplan_npu_status {
                  slot->alignment = 48;
                  return QPLAN_NPU_OK;
                },
                true),
            "its alignment is 48, expected a power of two up to 4096");
  EXPECT_EQ(fault(
                [](uint64_t, Slot* slot, qplan_npu_reason*) -> qplan_npu_status {
                  slot->flip = 0x80;
                  return QPLAN_NPU_OK;
                },
                true),
            "its flip is 128, expected 128 of all uint8 tensors or 0 of all, and 0 of other tensors");
  EXPECT_EQ(fault(
                [](uint64_t, Slot*, qplan_npu_reason* why) {
                  return qplan_oplist_refuse(why, QPLAN_NPU_E_UNSUPPORTED, 0, 0, 0, 0, "too wide");
                },
                true),
            "too wide, status -3 (E_UNSUPPORTED)");
  // A library made for target ABI 1.1 is not asked.
  EXPECT_EQ(fault(flip_uint8, false, "uint8"), "");
  qplan_npu_target library = signed_only();
  library.struct_size = offsetof(qplan_npu_target, layout);
  EXPECT_FALSE(flips_uint8(library, 0));
}

}  // namespace
}  // namespace qplan::target::external::external_test
