// Targets from outside the tree: regions in Relay text become operator lists, which give the CPU's bytes;
// what the library refuses stays, with the library's reasons.
#include "src/packer/target/external/external.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <random>
#include <string>
#include <vector>

#include "src/packer/error.h"
#include "src/packer/target/region.h"
#include "tests/packer/target/external_helpers.h"

namespace qplan::target::external::external_test {
namespace {

// At most 16 output channels; additions not at all, for a reason that no rule has.
qplan_npu_status take_some(uint64_t, const qplan_npu_op* op, qplan_npu_reason* reasons, uint32_t* count) {
  const uint32_t room = *count;
  *count = 0;
  const bool is_add = op->op == QPLAN_NPU_OP_ADD;
  const int64_t channels = op->output->shape[op->output->ndim - 1];
  if (!is_add && channels <= 16) return QPLAN_NPU_OK;
  *count = 1;
  if (room > 0)
    qplan_oplist_refuse(reasons, 0, is_add ? 99 : 7, 0, is_add ? 0 : 16, is_add ? 0 : channels,
                        is_add ? "no adder" : "too many channels");
  return QPLAN_NPU_E_UNSUPPORTED;
}

std::string conv_text(const std::string& contract, std::mt19937& random) {
  return "  %0 = qnn.conv2d(%x, const(Tensor[(24, 3, 3, 5), int8], [" + numbers(random, 24 * 45, -127, 127) +
         "]), -3, 0, 0.5f, 0.5f, strides=[2, 1], padding=[1, 1, 1, 1], pad_value=40, data_layout=\"NHWC\", "
         "kernel_layout=\"OHWI\");\n  %1 = nn.bias_add(%0, const(Tensor[(24), int32], [" +
         numbers(random, 24, -9000, 9000) +
         "]), axis=3);\n  %2 = qnn.requantize(%1, 0.25f, 0, 60f, 5, axis=3, "
         "out_dtype=\"int8\", contract=\"" +
         contract + "\");\n";
}

TEST(ExternalTarget, ConvolutionsUnderEachContract) {
  for (const char* contract : {"tfl2", "tfl1", "f32e"}) {
    SCOPED_TRACE(contract);
    std::mt19937 random(1);
    expect_like_the_cpu<int8_t>(
        main_text("%x: Tensor[(1, 9, 7, 5), int8]",
                  conv_text(contract, random) + "  %3 = clip(%2, a_min=-100f, a_max=90f);\n  %3"),
        9 * 7 * 5, 1);
  }
}

TEST(ExternalTarget, UnsignedConvolutionBehindAPad) {
  std::mt19937 random(2);
  expect_like_the_cpu<uint8_t>(
      main_text("%x: Tensor[(1, 6, 6, 7), uint8]",
                "  %0 = nn.pad(%x, 90f, pad_width=[[0, 0], [1, 2], [0, 1], [0, 0]]);\n"
                "  %1 = qnn.conv2d(%0, const(Tensor[(8, 3, 2, 7), uint8], [" +
                    numbers(random, 8 * 42, 0, 255) +
                    "]), 120, 117, 0.5f, 0.5f, data_layout=\"NHWC\", kernel_layout=\"OHWI\");\n"
                    "  %2 = qnn.requantize(%1, 0.25f, 0, 64f, 100, out_dtype=\"uint8\");\n  %2"),
      6 * 6 * 7, 1);
}

// Two operators on the result of a third: scratch memory, and a value that is read twice.
TEST(ExternalTarget, SeveralOperatorsShareScratch) {
  std::mt19937 random(3);
  for (const char* contract : {"tfl2", "f32e"}) {
    SCOPED_TRACE(contract);
    const std::string with = std::string("contract=\"") + contract + "\"";
    expect_like_the_cpu<int8_t>(
        main_text("%x: Tensor[(1, 9, 7, 5), int8]",
                  conv_text(contract, random) +
                      "  %3 = nn.max_pool2d(%2, pool_size=[2, 2], layout=\"NHWC\");\n"
                      "  %4 = clip(%3, a_min=-50f, a_max=50f);\n"
                      "  %5 = qnn.add(%3, %4, 0.5f, 3, 0.25f, -4, 0.7f, 2, " +
                      with +
                      ");\n"
                      "  %6 = qnn.avg_pool2d(%5, 0.5f, 2, 0.5f, 2, pool_size=[2, 3], layout=\"NHWC\", " +
                      with + ");\n  %6"),
        9 * 7 * 5, 5);
  }
}

TEST(ExternalTarget, ProductsAndMeansUnderEachContract) {
  for (const std::string contract : {"contract=\"tfl2\"", "contract=\"f32e\""}) {
    SCOPED_TRACE(contract);
    expect_like_the_cpu<int8_t>(
        main_text(kImage, "  %0 = qnn.mul(%x, %x, 0.5f, 3, 0.25f, -4, 9f, 2, " + contract +
                              ");\n  %1 = clip(%0, a_min=-100f, a_max=90f);\n  %1"),
        120, 1);
    for (const std::string keeps : {"True", "False"}) {
      expect_like_the_cpu<int8_t>(
          main_text(kImage, "  %0 = qnn.mean(%x, 0.5f, 3, 0.05f, -4, axis=[1, 2], keepdims=" + keeps + ", " +
                                contract + ");\n  %0"),
          120, 1);
    }
  }
}

TEST(ExternalTarget, OperatorsWithoutScales) {
  std::mt19937 random(7);
  const std::string clip = "  %0 = clip(%x, a_min=-50f, a_max=50f);\n  ";
  for (const std::string& body :
       {clip + "%1 = maximum(%x, %0);\n  %1", clip + "%1 = minimum(%0, %x);\n  %1",
        clip + "%1 = concatenate((%x, %0), axis=3);\n  %1",
        clip + "%1 = nn.pad(%0, 7f, pad_width=[[0, 0], [1, 2], [0, 3], [0, 0]]);\n  %1",
        clip + "%1 = reshape(%0, newshape=[1, 4, 30]);\n  %1",
        clip + "%1 = qnn.lookup(%0, const(Tensor[(256), int8], [" + numbers(random, 256, -128, 127) +
            "]));\n  %1"}) {
    SCOPED_TRACE(body.substr(clip.size()));
    expect_like_the_cpu<int8_t>(main_text(kImage, body), 120, 2);
  }
}

TEST(ExternalTarget, MovementsThatAListCannotSay) {
  const auto text = [](const std::string& body) -> std::string {
    const std::vector<Reason> found = reasons(acme(), main_text(kImage, "  %0 = " + body + ";\n  %0"));
    return found.size() == 1 && found[0].id == "acme.list" ? found[0].text : "?";
  };
  EXPECT_EQ(text("nn.pad(%x, 7f, pad_width=[[0, 0], [1, 2], [0, 3], [0, 1]])"),
            "a pad of other axes than height and width of NHWC");
  EXPECT_EQ(text("concatenate((%x, %x, %x), axis=3)"), "a concatenation of 3 tensors, expected 2");
  EXPECT_EQ(text("concatenate((%x, %x), axis=1)"), "a concatenation along another axis than the last");
  EXPECT_EQ(text("qnn.mean(%x, 1f, 0, 1f, 0, axis=[1], keepdims=False)"),
            "a mean over other axes than height and width of NHWC");
  EXPECT_EQ(text("qnn.mul(%x, const(Tensor[(6), int8], [1, 2, 3, 4, 5, 6]), 1f, 0, 1f, 0, 1f, 0)"),
            "inputs and output have one shape");
}

TEST(ExternalTarget, RefusalsAreTheLibrarysOwn) {
  qplan_npu_target library = acme();
  library.supported = take_some;
  std::mt19937 random(4);
  const std::string conv = main_text("%x: Tensor[(1, 9, 7, 5), int8]", conv_text("tfl2", random) + "  %2");
  EXPECT_EQ(reasons(library, conv),
            (std::vector<Reason>{{"acme.channels", "too many channels: 24, limit 16", "fewer channels"}}));
  EXPECT_TRUE(place(library, conv).regions.empty());
  const std::string add = main_text("%x: Tensor[(1, 2, 2, 5), int8]",
                                    "  %0 = qnn.add(%x, %x, 0.5f, 3, 0.25f, -4, 0.7f, 2);\n  %0");
  EXPECT_EQ(reasons(library, add), (std::vector<Reason>{{"acme.other", "no adder", ""}}));
}

TEST(ExternalTarget, WhatAListCannotSayIsNotAsked) {
  const std::string conv =
      main_text("%x: Tensor[(1, 3, 6, 6), int8]",
                "  %0 = qnn.conv2d(%x, const(Tensor[(1, 3, 1, 1), int8], [1, 2, 3]), 0, 0, 0.5f, 0.5f);\n"
                "  %1 = qnn.requantize(%0, 0.25f, 0, 64f, 0, out_dtype=\"int8\");\n  %1");
  const std::vector<Reason> found = reasons(acme(), conv);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].id, "acme.list");
  EXPECT_EQ(found[0].text, "layouts other than NHWC and OHWI");
}

TEST(ExternalTarget, PatternsOfTheLibraryAreTriedFirst) {
  qplan_npu_target library = acme();
  const qplan_npu_pattern_step steps[] = {{"nn.pad", 1, 0},
                                          {"qnn.conv2d", 0, 0},
                                          {"nn.bias_add", 1, 0},
                                          {"qnn.requantize", 0, 0},
                                          {"clip", 0, 0}};
  const qplan_npu_pattern pattern = {"acme.conv_clip", "a convolution that is clipped", steps, 5, 0};
  library.patterns = &pattern;
  library.num_patterns = 1;
  std::mt19937 random(5);
  const std::string conv = conv_text("tfl2", random);
  const auto composite = [&](const std::string& text) {
    const partition::PartitionResult placed = place(library, text);
    return std::get<std::string>(*placed.module.functions().back()->attrs().find("Composite"));
  };
  EXPECT_EQ(composite(main_text("%x: Tensor[(1, 9, 7, 5), int8]",
                                conv + "  %3 = clip(%2, a_min=-100f, a_max=90f);\n  %3")),
            "acme.conv_clip");
  EXPECT_EQ(composite(main_text("%x: Tensor[(1, 9, 7, 5), int8]", conv + "  %2")), "qplan.qconv2d");
}

TEST(ExternalTarget, LibrariesThatContradictThemselvesAreRefused) {
  const auto error_of = [](const qplan_npu_target& library) -> std::string {
    try {
      make_target({&library}, {});
      return "";
    } catch (const PackError& error) {
      return error.what();
    }
  };
  qplan_npu_target library = acme();
  const char* const unknown[] = {"qplan.qlstm"};
  library.composites = unknown;
  library.num_composites = 1;
  EXPECT_EQ(error_of(library),
            "target library: target 'acme': composite 'qplan.qlstm' is not known to this packer");
  library = acme();
  const qplan_npu_pattern_step steps[] = {{"nn.bias_add", 0, 0}, {"clip", 0, 0}};
  const qplan_npu_pattern pattern = {"acme.odd", nullptr, steps, 2, 0};
  library.patterns = &pattern;
  library.num_patterns = 1;
  EXPECT_EQ(error_of(library),
            "target library: target 'acme': pattern 'acme.odd': a chain does not begin with 'nn.bias_add'");
  EXPECT_THROW(load_library("/nonexistent/libx.so", pipeline::own_targets()), PackError);
  const qplan_npu_target good = acme();
  const Library libraries[] = {{&good}};
  EXPECT_THROW(pipeline::parse_targets("acme,speed=2, cpu", libraries), PackError);
  EXPECT_EQ(pipeline::parse_targets("acme,priority=7", libraries)[0].priority, 7);
}

// ---- accumulators that leave the device

qplan_npu_status take_acc32(uint64_t, const qplan_npu_op* op, qplan_npu_reason* reasons, uint32_t* count) {
  const uint32_t room = *count;
  *count = op->contract == QPLAN_NPU_ACC32 ? 0 : 1;
  if (*count == 0) return QPLAN_NPU_OK;
  if (room > 0) qplan_oplist_refuse(reasons, 0, 5, 0, 0, 0, "accumulators only");
  return QPLAN_NPU_E_UNSUPPORTED;
}
qplan_npu_target acc32_only() {
  qplan_npu_target library = acme();
  library.supported = take_acc32;
  library.capabilities = [](uint64_t, qplan_npu_capabilities* to) -> qplan_npu_status {
    to->hash = kHash;
    to->contracts = QPLAN_NPU_ACC32;
    to->input_zero_point = to->pad_value = 1;
    return QPLAN_NPU_OK;
  };
  return library;
}

// The accumulators of the device, against those that the CPU computes for a model that ends there.
void expect_accumulators_like_the_cpu(const std::string& layer, const std::string& tail, size_t elements,
                                      const char* composite) {
  const std::string input = "%x: Tensor[(1, 5, 4, 6), int8]";
  const partition::PartitionResult placed = place(acc32_only(), main_text(input, layer + tail));
  ASSERT_EQ(placed.regions.size(), 1u);
  EXPECT_EQ(placed.explain.units[0].composite, composite);
  const qplan_npu_target library = acc32_only();
  const CompiledRegion region =
      make_target({&library}, {}).compile(placed.module, *placed.module.find(placed.regions[0].function));
  std::mt19937 random(9);
  std::vector<int8_t> data(elements);
  for (int8_t& value : data) value = static_cast<int8_t>(random());
  const std::string alone = layer.substr(0, layer.rfind("  %2")) + "  %1";
  const std::vector<int32_t> expected = qplan::testing::run_text<int32_t>(main_text(input, alone), data);
  const std::vector<uint8_t> actual = run_list(region, {data.begin(), data.end()});
  ASSERT_EQ(actual.size(), expected.size() * sizeof(int32_t));
  EXPECT_EQ(std::memcmp(actual.data(), expected.data(), actual.size()), 0);
}

TEST(ExternalTarget, ALayerThatCannotBeRequantisedLeavesAsInt32) {
  std::mt19937 random(6);
  const auto layer = [&](const char* weights, int64_t count, int64_t outputs, const char* more) {
    return "  %0 = qnn.conv2d(%x, const(Tensor[" + std::string(weights) + ", int8], [" +
           numbers(random, count, -127, 127) + "]), -3, 0, 0.5f, 0.5f, padding=[1, 1, 1, 1]" + more +
           ", data_layout=\"NHWC\", kernel_layout=\"OHWI\");\n  %1 = nn.bias_add(%0, const(Tensor[(" +
           std::to_string(outputs) + "), int32], [" + numbers(random, outputs, -9000, 9000) +
           "]), axis=3);\n  %2 = qnn.requantize(%1, 0.25f, 0, 60f, 5, axis=3, out_dtype=\"int8\");\n";
  };
  expect_accumulators_like_the_cpu(layer("(8, 3, 3, 6)", 8 * 54, 8, ""), "  %2", 5 * 4 * 6,
                                   "qplan.qconv2d_acc32");
  expect_accumulators_like_the_cpu(layer("(6, 3, 3, 1)", 6 * 9, 6, ", groups=6"), "  %2", 5 * 4 * 6,
                                   "qplan.qdepthwise_acc32");
  std::string transposed = layer("(8, 3, 3, 6)", 8 * 54, 8, "");
  transposed.replace(transposed.find("qnn.conv2d("), 11, "qnn.conv2d_transpose(");
  const std::string window = "padding=[1, 1, 1, 1], data_layout=\"NHWC\", kernel_layout=\"OHWI\"";
  transposed.replace(transposed.find(window), window.size(),
                     "strides=[2, 1], crop=[1, 0], output_size=[9, 6]");
  expect_accumulators_like_the_cpu(transposed, "  %2", 5 * 4 * 6, "qplan.qconv2d_transpose_acc32");
}

// Only the CPU's qnn.requantize can read them.
TEST(ExternalTarget, AccumulatorsThatSomethingElseReadsStay) {
  std::mt19937 random(7);
  const std::string text =
      main_text("%x: Tensor[(1, 9, 7, 5), int8]",
                conv_text("tfl2", random) + "  %3 = clip(%1, a_min=0f, a_max=6f);\n  (%2, %3)");
  const partition::PartitionResult placed = place(acc32_only(), text);
  EXPECT_TRUE(placed.regions.empty());
  const std::vector<Reason>& found = placed.explain.units[0].verdicts[0].reasons;
  ASSERT_FALSE(found.empty());
  EXPECT_EQ(found[0].id, "acme.list");
  EXPECT_EQ(found[0].text, "the accumulators are read by clip, expected qnn.requantize");
}

// ---- what capabilities say

// The reasons of a device with these capabilities, whose `supported` takes everything.
TEST(External, TheTargetSaysWhatChannelsAreMultiplesOf) {
  qplan_npu_target library = acme();
  EXPECT_EQ(make_target({&library}, {}).channel_multiple, 1u);
  library.capabilities = [](uint64_t, qplan_npu_capabilities* to) -> qplan_npu_status {
    to->channel_pack = 16;
    return QPLAN_NPU_OK;
  };
  EXPECT_EQ(make_target({&library}, {}).channel_multiple, 16u);
}

std::vector<std::string> capability_reasons(void (*change)(qplan_npu_capabilities*),
                                            const std::string& text) {
  static void (*changes)(qplan_npu_capabilities*);
  changes = change;
  qplan_npu_target library = acme();
  library.capabilities = [](uint64_t, qplan_npu_capabilities* to) -> qplan_npu_status {
    to->hash = kHash;
    to->contracts = to->contracts_per_channel = QPLAN_NPU_TFL2;
    to->input_zero_point = to->output_zero_point = to->pad_value = to->channel_pack = 1;
    changes(to);
    return QPLAN_NPU_OK;
  };
  std::vector<std::string> lines;
  for (const Reason& reason : reasons(library, text)) lines.push_back(reason.id + ": " + reason.text);
  return lines;
}

TEST(ExternalTarget, CapabilitiesDecideWhatADeviceGets) {
  std::mt19937 random(8);
  using Lines = std::vector<std::string>;
  const std::string both = "; its 'supported' takes the operator: one of the two is wrong";
  const std::string input = "%x: Tensor[(1, 9, 7, 5), int8]";
  const std::string conv = main_text(input, conv_text("tfl2", random) + "  %2");
  EXPECT_EQ(capability_reasons([](qplan_npu_capabilities*) {}, conv), Lines{});
  EXPECT_EQ(
      capability_reasons([](qplan_npu_capabilities*) {},
                         main_text(input, conv_text("f32e", random) + "  %2")),
      Lines{"acme.capabilities.contracts: the contract is f32e, the device's capabilities have tfl2" + both});
  EXPECT_EQ(
      capability_reasons([](qplan_npu_capabilities* c) { c->input_zero_point = 0; }, conv),
      Lines{"acme.capabilities.zero_points: the input's zero point is -3, the device's capabilities have 0 "
            "only" +
            both});
  EXPECT_EQ(
      capability_reasons([](qplan_npu_capabilities* c) { c->output_zero_point = 0; }, conv),
      Lines{"acme.capabilities.zero_points: the output's zero point is 5, the device's capabilities have 0 "
            "only" +
            both});
  EXPECT_EQ(
      capability_reasons([](qplan_npu_capabilities* c) { c->pad_value = 0; }, conv),
      Lines{
          "acme.capabilities.pad_value: the border has the value 40, the device's capabilities have 0 only" +
          both});
  EXPECT_EQ(
      capability_reasons([](qplan_npu_capabilities* c) { c->channel_pack = 16; }, conv),
      Lines{"acme.capabilities.channels: 5 channels, the device's capabilities have multiples of 16" + both});
  std::string per_channel = conv;
  per_channel.replace(
      per_channel.find("qnn.requantize(%1, 0.25f") + 19, 5, "const(Tensor[(24), float32], [" + [&] {
        std::string list;
        for (int i = 0; i < 24; ++i) list += (i == 0 ? "0." : ", 0.") + std::to_string(20 + i);
        return list;
      }() + "])");
  EXPECT_EQ(capability_reasons([](qplan_npu_capabilities*) {}, per_channel), Lines{});
  EXPECT_EQ(capability_reasons([](qplan_npu_capabilities* c) { c->contracts_per_channel = 0; }, per_channel),
            Lines{"acme.capabilities.contracts: there is a scale for each of 24 channels under tfl2, which "
                  "the device's capabilities have for none" +
                  both});
  // The same under all contracts.
  EXPECT_EQ(capability_reasons([](qplan_npu_capabilities* c) { c->contracts = QPLAN_NPU_ACC32; },
                               main_text(input, "  %0 = clip(%x, a_min=-50f, a_max=50f);\n  %0")),
            Lines{});
}

// A library that refuses what its capabilities exclude contradicts nothing, and is not told that it does.
TEST(ExternalTarget, ARefusalThatCapabilitiesExplainIsNoContradiction) {
  std::mt19937 random(10);
  const std::vector<Reason> found =
      reasons(acc32_only(), main_text("%x: Tensor[(1, 9, 7, 5), int8]", conv_text("tfl2", random) + "  %2"));
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0].text, "the contract is tfl2, the device's capabilities have acc32");
  EXPECT_EQ(found[1].text, "the output's zero point is 5, the device's capabilities have 0 only");
  EXPECT_EQ(found[2].text, "accumulators only");
}

TEST(ExternalTarget, AStatusThatIsNoAnswerIsAnErrorOfTheLibrary) {
  qplan_npu_target library = acme();
  library.supported = [](uint64_t, const qplan_npu_op*, qplan_npu_reason*, uint32_t*) -> qplan_npu_status {
    return QPLAN_NPU_E_ARGUMENT;  // and the count is as it was
  };
  const std::string text =
      main_text("%x: Tensor[(1, 2, 2, 5), int8]", "  %0 = clip(%x, a_min=-50f, a_max=50f);\n  %0");
  try {
    place(library, text);
    FAIL() << "expected PackError";
  } catch (const PackError& error) {
    EXPECT_EQ(std::string(error.what()),
              "target library: target 'acme': supported returned -1 (E_ARGUMENT) for clip '', expected OK or "
              "E_UNSUPPORTED; its first argument is what configure gave, not a device of the driver");
  }
  library.supported = [](uint64_t, const qplan_npu_op*, qplan_npu_reason*, uint32_t*) -> qplan_npu_status {
    return QPLAN_NPU_E_UNSUPPORTED;
  };
  EXPECT_EQ(reasons(library, text), (std::vector<Reason>{{"acme.other", "refused without a reason", ""}}));
}

// The library's own compiler: its format, and the operator that it blames stays on the CPU.
TEST(ExternalTarget, ACompilerOfTheLibrary) {
  qplan_npu_target library = acme();
  library.blob_format = QPLAN_NPU_FOURCC('A', 'C', 'M', 'E');
  library.compile = [](uint64_t, const void* list, uint64_t bytes, qplan_npu_write_fn write, void* user,
                       qplan_npu_reason* why) -> qplan_npu_status {
    qplan_oplist opened;
    const qplan_npu_status status = qplan_oplist_open(list, bytes, &opened, why);
    if (status != QPLAN_NPU_OK) return status;
    if (opened.header.num_ops > 1)
      return qplan_oplist_refuse(why, QPLAN_NPU_E_UNSUPPORTED, 1, 1, 1, 2, "one operator at a time");
    return write(user, "ACME", 4) == QPLAN_NPU_OK ? write(user, "code", 4) : QPLAN_NPU_E_MEMORY;
  };
  const auto compile = [&](const std::string& text) {
    const partition::PartitionResult placed = place(library, text);
    return make_target({&library}, {})
        .compile(placed.module, *placed.module.find(placed.regions[0].function));
  };
  const std::string one = "  %0 = clip(%x, a_min=-50f, a_max=50f);\n";
  const CompiledRegion region = compile(main_text("%x: Tensor[(1, 2, 2, 5), int8]", one + "  %0"));
  EXPECT_EQ(region.format, library.blob_format);
  EXPECT_EQ(std::string(region.blob.begin(), region.blob.end()), "ACMEcode");
  try {
    compile(main_text("%x: Tensor[(1, 2, 2, 5), int8]",
                      one + "  %1 = nn.max_pool2d(%0, pool_size=[2, 2], layout=\"NHWC\");\n  %1"));
    FAIL() << "expected RegionRefused";
  } catch (const RegionRefused& refused) {
    ASSERT_EQ(refused.nodes().size(), 1u);
    EXPECT_EQ(refused.nodes()[0].node, 1u);
    EXPECT_EQ(refused.nodes()[0].reason.text, "one operator at a time");
  }
}

// Bytes of scratch that the slots have; -1: there is none.
int64_t scratch_bytes(const CompiledRegion& region) {
  for (const RegionSlot& slot : region.slots) {
    if (slot.use == format::NpuUse_SCRATCH) return static_cast<int64_t>(slot.arrangement.size);
  }
  return -1;
}

uint64_t wanted_scratch = 0;

// The compiler's program is the list itself, whose slots the test reads.
TEST(ExternalTarget, TheCompilerSaysHowMuchScratchItsProgramNeeds) {
  qplan_npu_target library = acme();
  library.blob_format = QPLAN_NPU_FOURCC('A', 'C', 'M', 'E');
  library.compile = [](uint64_t, const void* list, uint64_t bytes, qplan_npu_write_fn write, void* user,
                       qplan_npu_reason*) { return write(user, list, bytes); };
  library.scratch = [](uint64_t, const void*, uint64_t, uint64_t* bytes, qplan_npu_reason*) {
    *bytes = wanted_scratch;
    return qplan_npu_status{QPLAN_NPU_OK};
  };
  const std::string one = "  %0 = clip(%x, a_min=-50f, a_max=50f);\n";
  const std::string two = one + "  %1 = nn.max_pool2d(%0, pool_size=[2, 2], layout=\"NHWC\");\n  %1";
  const auto compile = [&](const std::string& body) {
    const partition::PartitionResult placed =
        place(library, main_text("%x: Tensor[(1, 2, 2, 5), int8]", body));
    return make_target({&library}, {})
        .compile(placed.module, *placed.module.find(placed.regions[0].function));
  };
  // The bytes that the program states for the list's scratch slot.
  const auto list_bytes = [](const CompiledRegion& region) -> int64_t {
    qplan_oplist list = {};
    EXPECT_EQ(qplan_oplist_open(region.blob.data(), region.blob.size(), &list, nullptr), QPLAN_NPU_OK);
    for (uint32_t i = 0; i < list.header.num_slots; ++i) {
      const qplan_oplist_slot slot = qplan_oplist_slot_at(&list, i);
      if (slot.usage == QPLAN_NPU_USE_SCRATCH) return static_cast<int64_t>(slot.bytes);
    }
    return -1;
  };
  struct Case {
    const std::string& body;
    uint64_t wanted;
    int64_t plan, list;
  };
  // The 20 bytes between the two operators take 64.
  for (const Case& c : {Case{two, 1000, 1000, 1000}, Case{two, 10, 10, 64}, Case{two, 0, -1, 64},
                        Case{one + "  %0", 1000, 1000, 1000}, Case{one + "  %0", 0, -1, -1}}) {
    wanted_scratch = c.wanted;
    const CompiledRegion region = compile(c.body);
    EXPECT_EQ(scratch_bytes(region), c.plan) << c.wanted;
    EXPECT_EQ(list_bytes(region), c.list) << c.wanted;
  }
  wanted_scratch = UINT64_MAX;
  EXPECT_THROW(compile(two), PackError);
  library.struct_size = offsetof(qplan_npu_target, scratch);  // a library made for target ABI 1.0
  EXPECT_EQ(scratch_bytes(compile(two)), 64);
  library = acme();
  library.scratch = [](uint64_t, const void*, uint64_t, uint64_t*, qplan_npu_reason*) {
    return qplan_npu_status{QPLAN_NPU_E_ARGUMENT};
  };
  EXPECT_EQ(scratch_bytes(compile(two)), 64);  // not asked: there is no compiler
  library.compile = [](uint64_t, const void*, uint64_t, qplan_npu_write_fn, void*, qplan_npu_reason*) {
    return qplan_npu_status{QPLAN_NPU_OK};
  };
  library.scratch = [](uint64_t, const void*, uint64_t, uint64_t*, qplan_npu_reason* why) {
    return qplan_oplist_refuse(why, QPLAN_NPU_E_UNSUPPORTED, 1, 1, 0, 0, "too wide a row");
  };
  try {
    compile(two);
    FAIL() << "expected RegionRefused";
  } catch (const RegionRefused& refused) {
    ASSERT_EQ(refused.nodes().size(), 1u);
    EXPECT_EQ(refused.nodes()[0].node, 1u);
    EXPECT_EQ(refused.nodes()[0].reason.text, "too wide a row");
  }
}

}  // namespace
}  // namespace qplan::target::external::external_test
