// The kinds of operators since driver ABI 1.3: what a list says of them gives the CPU's bytes.
#include <gtest/gtest.h>

#include <random>
#include <set>
#include <string>
#include <vector>

#include "src/packer/target/external/external.h"
#include "tests/packer/target/external_helpers.h"

namespace qplan::target::external::external_test {
namespace {

constexpr size_t kElements = 120;

// Takes concatenations, sums and products of any shapes too.
qplan_npu_target general() {
  static const std::vector<const char*> names = [] {
    std::vector<const char*> all(std::begin(kAll), std::end(kAll));
    all.insert(all.begin(), {"qplan.qadd_broadcast", "qplan.qmul_broadcast", "qplan.qconcat_n"});
    return all;
  }();
  qplan_npu_target library = acme();
  library.composites = names.data();
  library.num_composites = static_cast<uint32_t>(names.size());
  return library;
}

// What the list of a network's only operator says.
qplan_oplist_op only_operator(const qplan_npu_target& library, const std::string& text) {
  const partition::PartitionResult placed = place(library, text);
  if (placed.regions.size() != 1) {
    ADD_FAILURE() << "no region of " << text;
    return {};
  }
  const CompiledRegion region =
      make_target({&library}, {}).compile(placed.module, *placed.module.find(placed.regions[0].function));
  qplan_oplist list = {};
  EXPECT_EQ(qplan_oplist_open(region.blob.data(), region.blob.size(), &list, nullptr), QPLAN_NPU_OK);
  EXPECT_EQ(list.header.num_ops, 1u);
  return qplan_oplist_op_at(&list, 0);
}

std::string list_reason(const qplan_npu_target& library, const std::string& text) {
  const std::vector<Reason> found = reasons(library, text);
  return found.size() == 1 && found[0].id == "acme.list" ? found[0].text : "?";
}

TEST(NpuOperators, EachHasANameOfItsOwn) {
  std::set<std::string> names = {qplan_npu_op_kind_name(0)};
  for (uint32_t op = 1; op <= QPLAN_NPU_OP_LAST; ++op)
    EXPECT_TRUE(names.insert(qplan_npu_op_kind_name(op)).second) << op;
  EXPECT_STREQ(qplan_npu_op_kind_name(QPLAN_NPU_OP_MUL_BROADCAST), "mul_broadcast");
  EXPECT_STREQ(qplan_npu_op_kind_name(QPLAN_NPU_OP_LAST + 1), "?");
  EXPECT_STREQ(qplan_npu_contract_name(QPLAN_NPU_ACC32), "acc32");
}

TEST(ExternalKinds, SoftmaxUnderEachContract) {
  for (const std::string dtype : {"int8", "uint8"}) {
    const std::string zero = dtype == "int8" ? "-128" : "0";
    for (const std::string scale : {"0.1f", "0.7f", "0.0001f"}) {
      SCOPED_TRACE(dtype + ", " + scale);
      const std::string input = "%x: Tensor[(4, 30), " + dtype + "]";
      const auto text = [&](const std::string& output) {
        return main_text(input, "  %0 = qnn.softmax(%x, " + scale + ", 3, " + output + ");\n  %0");
      };
      for (const std::string& output : {"0.00390625f, " + zero + ", beta=1.5f, contract=\"tfl2\"",
                                        std::string("0.0041f, 7, contract=\"f32e\"")}) {
        if (dtype == "int8") {
          expect_like_the_cpu<int8_t>(text(output), 120, 1);
        } else {
          expect_like_the_cpu<uint8_t>(text(output), 120, 1);
        }
      }
    }
  }
  const auto refused = [](const std::string& rest) {
    return list_reason(acme(), main_text(kImage, "  %0 = qnn.softmax(%x, 0.1f, 3, " + rest + ");\n  %0"));
  };
  EXPECT_EQ(refused("0.00390625f, -128, axis=1"), "a softmax along axis 1, not the last");
  EXPECT_EQ(refused("0.1f, -128"), "the output's scale of a softmax is not 1/256");
  EXPECT_EQ(refused("0.00390625f, 0"), "the zero point of a softmax is the least value, but under f32e");
}

TEST(ExternalKinds, TransposedConvolutionsUnderEachContract) {
  std::mt19937 random(1);
  for (const std::string contract : {"tfl2", "tfl1", "f32e"}) {
    for (const std::string shape : {"strides=[2, 1], crop=[1, 0], output_size=[9, 6]",
                                    "strides=[3, 4], crop=[0, 1], output_size=[17, 18]"}) {
      SCOPED_TRACE(contract + ", " + shape);
      expect_like_the_cpu<int8_t>(
          main_text(kImage, "  %0 = qnn.conv2d_transpose(%x, const(Tensor[(7, 3, 2, 6), int8], [" +
                                numbers(random, 7 * 36, -127, 127) + "]), -3, 0, 0.5f, 0.5f, " + shape +
                                ");\n  %1 = nn.bias_add(%0, const(Tensor[(7), int32], [" +
                                numbers(random, 7, -9000, 9000) +
                                "]), axis=3);\n  %2 = qnn.requantize(%1, 0.25f, 0, 40f, 5, axis=3, "
                                "out_dtype=\"int8\", contract=\"" +
                                contract + "\");\n  %3 = clip(%2, a_min=-100f, a_max=90f);\n  %3"),
          kElements, 1);
    }
  }
}

std::string taken(const std::string& from, const std::string& to, int axis,
                  const std::vector<int>& positions) {
  std::string list;
  for (const int position : positions) list += (list.empty() ? "" : ", ") + std::to_string(position);
  return "  " + to + " = take(" + from + ", const(Tensor[(" + std::to_string(positions.size()) +
         "), int32], [" + list + "]), axis=" + std::to_string(axis) + ");\n";
}

// Positions as TensorFlow Lite computes them in float32: RESIZE_NEAREST_NEIGHBOR of 5 x 4 elements.
TEST(ExternalKinds, ResizesToTheNearestElement) {
  struct Case {
    const char* name;
    uint32_t flags;
    std::vector<int> rows, columns;
  };
  const Case cases[] = {
      {"twice", 0, {0, 0, 1, 1, 2, 2, 3, 3, 4, 4}, {0, 0, 1, 1, 2, 2, 3, 3}},
      {"to 3 x 7", 0, {0, 1, 3}, {0, 0, 1, 1, 2, 2, 3}},
      {"to 3 x 7, centres", QPLAN_NPU_OP_HALF_PIXEL_CENTERS, {0, 2, 4}, {0, 0, 1, 2, 2, 3, 3}},
      {"to 4 x 7, corners", QPLAN_NPU_OP_ALIGN_CORNERS, {0, 1, 3, 4}, {0, 1, 1, 2, 2, 3, 3}},
      {"height alone", 0, {0, 0, 1, 1, 2, 2, 3, 3, 4, 4}, {}}};
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    std::string body = taken("%x", "%0", 1, c.rows);
    if (!c.columns.empty()) body += taken("%0", "%1", 2, c.columns);
    const std::string text = main_text(kImage, body + (c.columns.empty() ? "  %0" : "  %1"));
    expect_like_the_cpu<int8_t>(text, kElements, 1);
    const qplan_oplist_op op = only_operator(acme(), text);
    EXPECT_EQ(op.op, uint32_t{QPLAN_NPU_OP_RESIZE_NEAREST});
    EXPECT_EQ(op.flags, c.flags);
  }
  const auto refused = [](const std::string& body) {
    return list_reason(acme(), main_text(kImage, body + "  %0"));
  };
  EXPECT_EQ(refused(taken("%x", "%0", 1, {4, 3, 2, 1, 0})),
            "positions that no resize to the nearest element has");
  EXPECT_EQ(refused(taken("%x", "%0", 3, {0, 1, 2, 3, 4, 5})),
            "a resize of other axes than height and width of NHWC");
}

TEST(ExternalKinds, InterpolatingResizes) {
  for (const std::string mode : {"asymmetric", "half_pixel", "align_corners"}) {
    for (const std::string size : {"[10, 8]", "[3, 9]", "[1, 1]"}) {
      SCOPED_TRACE(mode + ", " + size);
      const std::string body = "  %0 = image.resize2d(%x, size=" + size +
                               ", layout=\"NHWC\", coordinate_transformation_mode=\"" + mode + "\");\n  %0";
      expect_like_the_cpu<int8_t>(main_text(kImage, body), kElements, 1);
      expect_like_the_cpu<uint8_t>(main_text("%x: Tensor[(1, 5, 4, 6), uint8]", body), kElements, 1);
    }
  }
}

TEST(ExternalKinds, ConcatenationsOfSeveralTensorsAlongAnyAxis) {
  const std::string parts =
      "  %0 = clip(%x, a_min=-50f, a_max=50f);\n"
      "  %1 = nn.max_pool2d(%x, pool_size=[5, 1], strides=[5, 1], layout=\"NHWC\");\n";
  for (const std::string joined :
       {"(%x, %0, %x), axis=3", "(%x, %0), axis=2", "(%0, %1, %x, %1), axis=1", "(%x, %x), axis=0"}) {
    SCOPED_TRACE(joined);
    const bool has_pool = joined.find("%1") != std::string::npos;
    const bool has_clip = joined.find("%0") != std::string::npos;
    expect_like_the_cpu<int8_t>(main_text(kImage, parts + "  %2 = concatenate(" + joined + ");\n  %2"),
                                kElements, 1u + has_pool + has_clip, general());
  }
  std::string nine;
  for (int i = 0; i < 9; ++i) nine += i == 0 ? "%x" : ", %x";
  EXPECT_EQ(list_reason(general(), main_text(kImage, "  %0 = concatenate((" + nine + "), axis=3);\n  %0")),
            "a concatenation of 9 tensors, expected 2 to 8");
}

TEST(ExternalKinds, SumsAndProductsOfShapesThatBroadcast) {
  std::mt19937 random(3);
  const std::string channels = "const(Tensor[(6), int8], [" + numbers(random, 6, -128, 127) + "])";
  const std::string rows = "const(Tensor[(5, 1, 1), int8], [" + numbers(random, 5, -128, 127) + "])";
  for (const std::string contract : {"contract=\"tfl2\"", "contract=\"f32e\""}) {
    for (const std::string& operands : {"%x, " + channels, rows + ", %x", std::string("%x, %x")}) {
      SCOPED_TRACE(operands + ", " + contract);
      for (const std::string rest : {"qnn.add(", "qnn.mul("}) {
        const std::string scales =
            rest == "qnn.add(" ? "0.5f, 3, 0.25f, -4, 0.7f, 2, " : "0.5f, 3, 0.25f, -4, 9f, 2, ";
        expect_like_the_cpu<int8_t>(
            main_text(kImage, "  %0 = " + rest + operands + ", " + scales + contract +
                                  ");\n  %1 = clip(%0, a_min=-100f, a_max=90f);\n  %1"),
            kElements, 1, general());
      }
    }
    // The mean of each channel scales its channel, as in squeeze-and-excitation.
    expect_like_the_cpu<int8_t>(
        main_text(kImage, "  %0 = qnn.mean(%x, 0.5f, 3, 0.05f, -4, axis=[1, 2], keepdims=True, " + contract +
                              ");\n  %1 = qnn.mul(%x, %0, 0.5f, 3, 0.05f, -4, 3f, 2, " + contract +
                              ");\n  %1"),
        kElements, 2, general());
  }
  // A library that does not name the composite is never asked.
  EXPECT_EQ(list_reason(acme(), main_text(kImage, "  %0 = qnn.add(%x, " + channels +
                                                      ", 1f, 0, 1f, 0, 1f, 0);\n  %0")),
            "inputs and output have one shape");
}

TEST(ExternalKinds, PatternsOfTheLibraryThatEndInAClip) {
  const qplan_npu_pattern_step product[] = {{"qnn.mul", 0, 0}, {"clip", 0, 0}};
  const qplan_npu_pattern_step mean[] = {{"qnn.mean", 0, 0}, {"clip", 0, 0}};
  const qplan_npu_pattern_step layer[] = {
      {"qnn.conv2d_transpose", 0, 0}, {"nn.bias_add", 1, 0}, {"qnn.requantize", 0, 0}, {"clip", 0, 0}};
  const qplan_npu_pattern patterns[] = {{"acme.mul_clip", nullptr, product, 2, 0},
                                        {"acme.mean_clip", nullptr, mean, 2, 0},
                                        {"acme.transposed_clip", nullptr, layer, 4, 0}};
  qplan_npu_target library = acme();
  library.patterns = patterns;
  library.num_patterns = 3;
  library.num_composites = 0;
  std::mt19937 random(4);
  for (const std::string& body :
       {std::string("qnn.mul(%x, %x, 0.5f, 3, 0.25f, -4, 9f, 2)"),
        std::string("qnn.mean(%x, 0.5f, 3, 0.05f, -4, axis=[1, 2], keepdims=True)"),
        "qnn.requantize(qnn.conv2d_transpose(%x, const(Tensor[(2, 1, 1, 6), int8], [" +
            numbers(random, 12, -127, 127) +
            "]), -3, 0, 0.5f, 0.5f, output_size=[5, 4]), 0.25f, 0, 40f, 5, axis=3, out_dtype=\"int8\")"}) {
    SCOPED_TRACE(body);
    const std::string clipped = "  %0 = " + body + ";\n  %1 = clip(%0, a_min=-20f, a_max=30f);\n  %1";
    expect_like_the_cpu<int8_t>(main_text(kImage, clipped), kElements, 1, library);
    EXPECT_TRUE(place(library, main_text(kImage, "  %0 = " + body + ";\n  %0")).regions.empty());
  }
}

// A list of version 1.0 has shorter records.
TEST(ExternalKinds, ListsOfTheFirstVersionAreRead) {
  const std::string text = main_text(kImage, "  %0 = clip(%x, a_min=-50f, a_max=50f);\n  %0");
  const qplan_npu_target library = acme();
  const partition::PartitionResult placed = place(library, text);
  const CompiledRegion region =
      make_target({&library}, {}).compile(placed.module, *placed.module.find(placed.regions[0].function));
  std::vector<uint8_t> blob = region.blob;
  qplan_oplist_header header;
  std::memcpy(&header, blob.data(), sizeof(header));
  // The bytes that the record grew by, taken off it and given to the names, so that nothing else moves.
  const auto shorter = static_cast<uint32_t>(sizeof(qplan_oplist_op)) - QPLAN_OPLIST_OP_BYTES_1_0;
  const auto record = static_cast<std::ptrdiff_t>(qplan_oplist_tensors_end(&header));
  std::vector<uint8_t> names(
      blob.begin() + record + static_cast<std::ptrdiff_t>(header.op_bytes),
      blob.begin() + record + static_cast<std::ptrdiff_t>(header.op_bytes + header.names_bytes));
  names.resize(names.size() + shorter);
  std::ranges::copy(names, blob.begin() + record + QPLAN_OPLIST_OP_BYTES_1_0);
  header.version = 0x00010000;
  header.op_bytes = QPLAN_OPLIST_OP_BYTES_1_0;
  header.names_bytes += shorter;
  std::memcpy(blob.data(), &header, sizeof(header));
  seal_oplist(&blob);
  qplan_oplist list = {};
  qplan_npu_reason why = {};
  ASSERT_EQ(qplan_oplist_open(blob.data(), blob.size(), &list, &why), QPLAN_NPU_OK) << why.text;
  const qplan_oplist_op op = qplan_oplist_op_at(&list, 0);
  EXPECT_EQ(op.op, uint32_t{QPLAN_NPU_OP_CLIP});
  EXPECT_EQ(op.clamp_max, 50);
  EXPECT_EQ(op.more_inputs[0], QPLAN_OPLIST_NONE);
  EXPECT_EQ(op.num_inputs, 0u);
}

}  // namespace
}  // namespace qplan::target::external::external_test
