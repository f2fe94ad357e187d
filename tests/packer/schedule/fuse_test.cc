#include "src/packer/schedule/fuse.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "src/packer/schedule/schedule.h"
#include "src/runtime/cascade.h"
#include "tests/packer/target/lower_helpers.h"

namespace qplan::schedule::fuse_test {
namespace {

using qplan::testing::kernels_of;
using qplan::testing::lower_text;
using qplan::testing::main_text;
using target::Program;

constexpr const char* kFirmware = "cpu,arch=cortex-m";

std::string bytes(size_t count) {
  std::string text;
  for (size_t i = 0; i < count; ++i)
    text += (i == 0 ? "" : ", ") + std::to_string(static_cast<int>(i % 7) - 3);
  return "[" + text + "]";
}

// "%3 = requantize(conv2d(%x))", with the accumulator as the value before it; from and to: channels.
std::string pointwise(int value, const std::string& input, int from, int to) {
  const std::string sum = "%" + std::to_string(value), out = "%" + std::to_string(value + 1);
  return "  " + sum + " = qnn.conv2d(" + input + ", const(Tensor[(" + std::to_string(to) + ", 1, 1, " +
         std::to_string(from) + "), int8], " + bytes(static_cast<size_t>(from * to)) +
         "), 0, 0, 1f, 1f, data_layout=\"NHWC\", kernel_layout=\"OHWI\");\n  " + out + " = qnn.requantize(" +
         sum + ", 1f, 0, 4f, 0);\n";
}
std::string depthwise(int value, const std::string& input, int channels) {
  const std::string sum = "%" + std::to_string(value), out = "%" + std::to_string(value + 1);
  return "  " + sum + " = qnn.conv2d(" + input + ", const(Tensor[(" + std::to_string(channels) +
         ", 3, 3, 1), int8], " + bytes(static_cast<size_t>(9 * channels)) +
         "), 0, 0, 1f, 1f, padding=[1, 1, 1, 1], groups=" + std::to_string(channels) +
         ", data_layout=\"NHWC\", kernel_layout=\"OHWI\");\n  " + out + " = qnn.requantize(" + sum +
         ", 1f, 0, 4f, 0);\n";
}

// Four channels, twenty-four between; value %5 is the last convolution's.
std::string bottleneck() {
  return pointwise(0, "%x", 4, 24) + depthwise(2, "%1", 24) + pointwise(4, "%3", 24, 4);
}
constexpr const char* kSum = "  %6 = qnn.add(%5, %x, 1f, 0, 1f, 0, 2f, 0);\n";
constexpr const char* kX = "%x: Tensor[(1, 16, 16, 4), int8]";

Program fuse(const std::string& body, Fuse how, const std::string& target = kFirmware) {
  return fuse_steps(lower_text(main_text(kX, body), target), target::parse_target(target), {.how = how});
}

Program fuse_text(const std::string& text, Fuse how, const std::string& target) {
  return fuse_steps(lower_text(text, target), target::parse_target(target), {.how = how});
}

std::string layers_of(const target::ProgramStep& step) {
  std::string names;
  for (const target::ProgramStep& layer : step.layers) {
    names += (names.empty() ? "" : " ") + inspect::kernel_name(layer.kernel);
  }
  return names;
}

TEST(Fuse, MakesACascadeWhereMemoryIsFullest) {
  const Program program = fuse(bottleneck() + kSum + "  %6", Fuse::kAuto);
  ASSERT_EQ(kernels_of(program), "chain");
  EXPECT_EQ(layers_of(program.steps[0]), "conv2d depthwise_conv2d conv2d");
  EXPECT_EQ(program.steps[0].tiles.size(), 2u);
  EXPECT_EQ(program.steps[0].macs, 256u * (4 * 24 + 9 * 24 + 24 * 4));
}

// The layers between which a model's own border is converted: rows of planes are the first layer's input.
TEST(Fuse, BeginsWithTheConversionOfAnInputInPlanes) {
  const std::string convert = "  %8 = transpose(%x, axes=[0, 2, 3, 1]);\n";
  const std::string layers = pointwise(0, "%8", 4, 24) + depthwise(2, "%1", 24) + pointwise(4, "%3", 24, 4);
  const Program bytes = fuse_text(main_text("%x: Tensor[(1, 4, 16, 16), int8]", convert + layers + "  %5"),
                                  Fuse::kAll, kFirmware);
  ASSERT_EQ(kernels_of(bytes), "chain");
  EXPECT_EQ(layers_of(bytes.steps[0]), "transpose conv2d depthwise_conv2d conv2d");
  const Program reals =
      fuse_text(main_text("%x: Tensor[(1, 4, 16, 16), float32]",
                          "  %7 = qnn.quantize(%x, 0.5f, 3);\n  %8 = transpose(%7, axes=[0, 2, 3, 1]);\n" +
                              layers + "  %5"),
                Fuse::kAll, kFirmware);
  ASSERT_EQ(kernels_of(reals), "chain");
  EXPECT_EQ(layers_of(reals.steps[0]), "quantize conv2d depthwise_conv2d conv2d");
}

// What networks that label pixels end with: between the two lies the largest tensor that they have.
TEST(Fuse, TakesTheIndicesOfResizedRowsInWhereMemoryIsFullest) {
  const std::string resize =
      "  %0 = image.resize2d(%x, size=[33, 33], layout=\"NHWC\", method=\"linear\", "
      "coordinate_transformation_mode=\"align_corners\");\n";
  const Program program =
      fuse_text(main_text("%x: Tensor[(1, 3, 3, 21), uint8]", resize + "  %1 = argmax(%0, axis=3);\n  %1"),
                Fuse::kAuto, kFirmware);
  ASSERT_EQ(kernels_of(program), "chain");
  EXPECT_EQ(layers_of(program.steps[0]), "resize_bilinear arg_max");
}

// What most small networks for pictures begin with.
TEST(Fuse, TakesPoolsIn) {
  const std::string pool = "  %6 = nn.max_pool2d(%1, pool_size=[2, 2], strides=[2, 2], layout=\"NHWC\");\n";
  const Program program =
      fuse(pointwise(0, "%x", 4, 24) + pool + pointwise(4, "%6", 24, 4) + "  %5", Fuse::kAuto);
  ASSERT_EQ(kernels_of(program), "chain");
  EXPECT_EQ(layers_of(program.steps[0]), "conv2d max_pool2d conv2d");
}

// As most networks end with: its tile would be the whole tensor.
TEST(Fuse, LeavesPoolsOfAllRowsApart) {
  const std::string pool = "  %2 = nn.max_pool2d(%1, pool_size=[16, 16], layout=\"NHWC\");\n";
  const Program program =
      fuse(pointwise(0, "%x", 4, 24) + pool + pointwise(3, "%2", 24, 4) + "  %4", Fuse::kAll);
  EXPECT_EQ(kernels_of(program), "conv2d max_pool2d conv2d");
}

// A resize reads any row of its input: what comes before it is whole.
TEST(Fuse, BeginsANewCascadeWithAResize) {
  const std::string resize =
      "  %2 = image.resize2d(%1, size=[32, 32], layout=\"NHWC\", method=\"linear\", "
      "coordinate_transformation_mode=\"asymmetric\");\n";
  const Program program =
      fuse(pointwise(0, "%x", 4, 8) + resize + pointwise(3, "%2", 8, 4) + "  %4", Fuse::kAll);
  ASSERT_EQ(kernels_of(program), "conv2d chain");
  EXPECT_EQ(layers_of(program.steps[1]), "resize_bilinear conv2d");
}

TEST(Fuse, KeepsTransposesOfLayersApart) {
  const Program program =
      fuse(bottleneck() + "  %6 = transpose(%5, axes=[0, 2, 3, 1]);\n" + pointwise(7, "%6", 16, 4) + "  %8",
           Fuse::kAll);
  EXPECT_EQ(kernels_of(program), "chain chain");
  EXPECT_EQ(layers_of(program.steps[1]), "transpose conv2d");
}

// A table between two layers computes in the tile of the first.
TEST(Fuse, TablesTakeNoTilesOfTheirOwn) {
  const auto scratch = [](const std::string& between, int value) {
    Program program =
        fuse(pointwise(0, "%x", 4, 24) + between + depthwise(6, "%" + std::to_string(value), 24) +
                 pointwise(8, "%7", 24, 4) + "  %9",
             Fuse::kAll, "cpu");
    EXPECT_EQ(kernels_of(program), "chain");
    schedule_steps(&program, target::parse_target("cpu"), nullptr);
    return program.scratch_per_worker;
  };
  EXPECT_EQ(scratch("  %5 = qnn.requantize(%1, 1f, 0, 2f, 5);\n", 5), scratch("", 1));
}

TEST(Fuse, TakesTheSumInWhereAllAreFused) {
  const Program program = fuse(bottleneck() + kSum + "  %6", Fuse::kAll);
  ASSERT_EQ(kernels_of(program), "chain");
  EXPECT_EQ(layers_of(program.steps[0]), "conv2d depthwise_conv2d conv2d");
  EXPECT_TRUE(program.steps[0].layers[2].residual);
  // Nothing is left of what lay between.
  size_t activations = 0;
  for (const target::ProgramTensor& tensor : program.tensors) activations += tensor.is_constant() ? 0 : 1;
  EXPECT_EQ(activations, 2u);
}

TEST(Fuse, LeavesLayersApartWhereItIsOff) {
  EXPECT_EQ(kernels_of(fuse(bottleneck() + kSum + "  %6", Fuse::kOff)), "conv2d depthwise_conv2d conv2d add");
}

// 128 KiB, of which the model has 13 KB.
TEST(Fuse, LeavesSmallModelsAloneOnLargeMachines) {
  EXPECT_EQ(kernels_of(fuse(bottleneck() + kSum + "  %6", Fuse::kAuto, "cpu")),
            "conv2d depthwise_conv2d conv2d");
}

TEST(Fuse, LeavesAloneWhatOthersRead) {
  // The first convolution's output is a result, too, or has another reader.
  EXPECT_EQ(kernels_of(fuse(bottleneck() + "  (%5, %1)", Fuse::kAll)), "conv2d chain");
  EXPECT_EQ(kernels_of(fuse(bottleneck() + pointwise(6, "%1", 24, 4) +
                                "  %8 = qnn.add(%5, %7, 1f, 0, 1f, 0, 2f, 0);\n  %8",
                            Fuse::kAll)),
            "conv2d chain conv2d");
}

TEST(Fuse, CutsLongPathsIntoCascades) {
  std::string body;
  for (int i = 0; i < 6; ++i) body += pointwise(2 * i, i == 0 ? "%x" : "%" + std::to_string(2 * i - 1), 4, 4);
  const Program program = fuse(body + "  %11", Fuse::kAll);
  ASSERT_EQ(kernels_of(program), "chain chain");
  EXPECT_EQ(program.steps[0].layers.size(), 4u);
  EXPECT_EQ(program.steps[1].layers.size(), 2u);
}

// A log with times of the plan's steps: of cascades `cascade` ns, of others `layer` ns.
std::string log_of(const std::string& text, Fuse how, uint64_t cascade, uint64_t layer,
                   const std::string& target = "cpu") {
  const AlignedBytes plan =
      evaluate::make_plan(lower_text(text, target), target::parse_target(target), {.how = how});
  const inspect::PlanReader reader(plan.span());
  std::string log;
  std::vector<void*> data(reader.view().num_tensors());
  for (uint32_t t = 0; t < data.size(); ++t)
    data[t] = const_cast<void*>(reader.view().constant_data(t));  // NOLINT
  for (uint32_t s = 0; s < reader.view().num_steps(); ++s) {
    const StepView step = {&reader.view().plan(), &reader.view().step(s), data.data()};
    const bool is_cascade = inspect::kernel_name(step.step->kernel()) == "chain";
    const nlohmann::ordered_json line = {{"key", step_key(step, target_text(reader.view().plan()))},
                                         {"schedule", nlohmann::ordered_json::object()},
                                         {"threads", 1},
                                         {"ns", is_cascade ? cascade : layer}};
    log += line.dump() + "\n";
  }
  return log;
}

// The kernels of a model after a log in which each layer takes 100 ns, and cascades so many.
std::string fused_by_log(const std::string& text, uint64_t cascade, const std::string& target) {
  TuningLog log("log",
                log_of(text, Fuse::kOff, 0, 100, target) + log_of(text, Fuse::kAll, cascade, 100, target), 1);
  return kernels_of(fuse_steps(lower_text(text, target), target::parse_target(target),
                               {.how = Fuse::kAuto, .tuning = &log}));
}

// Two cascades; of the second one the tile has so many channels.
std::string two_cascades(int channels) {
  return main_text("%x: Tensor[(1, 96, 64, 4), int8]",
                   pointwise(0, "%x", 4, 24) + depthwise(2, "%1", 24) + pointwise(4, "%3", 24, 4) +
                       pointwise(6, "%5", 4, channels) + depthwise(8, "%7", channels) +
                       pointwise(10, "%9", channels, 4) + "  %11");
}

std::string block_rows_of(const Program& program) {
  std::string rows;
  for (const target::ProgramStep& step : program.steps)
    rows += std::to_string(knob_value(step.schedule.bytes, kCascadeKnobs, kCascadeBlockRows)) + " ";
  return rows;
}

// Larger blocks of one cascade stay below the scratch of the other one.
TEST(Fuse, MakesMoreRowsAtATimeWhereAnotherStepHasTheScratch) {
  const auto rows_of = [](int channels, const char* target) {
    const Program program = fuse_text(two_cascades(channels), Fuse::kAll, target);
    EXPECT_EQ(kernels_of(program), "chain chain");
    Program scheduled = program, unchanged = program;
    for (target::ProgramStep& step : unchanged.steps) step.schedule.bytes = 0;
    schedule_steps(&scheduled, target::parse_target(target), nullptr);
    schedule_steps(&unchanged, target::parse_target(target), nullptr);
    EXPECT_EQ(scheduled.scratch_per_worker, unchanged.scratch_per_worker);
    return block_rows_of(program);
  };
  EXPECT_EQ(rows_of(192, "cpu,arch=x86_64"), "8 0 ");
  EXPECT_EQ(rows_of(8, "cpu,arch=x86_64"), "0 8 ") << "the first one has the scratch";
  EXPECT_EQ(rows_of(192, "cpu,arch=aarch64"), "0 0 ") << "not measured there";
}

// The log says that the default is fastest: it has no other setting.
TEST(Fuse, LeavesRowsToALogThatHasTimesOfTheStep) {
  const std::string text = two_cascades(192), target = "cpu,arch=x86_64";
  TuningLog log("log", log_of(text, Fuse::kAll, 100, 100, target), 1);
  const Program program =
      fuse_steps(lower_text(text, target), target::parse_target(target), {.how = Fuse::kAll, .tuning = &log});
  EXPECT_EQ(block_rows_of(program), "0 0 ");
}

// Both models are too small for cascades that save memory.
TEST(Fuse, MakesCascadesThatAreFasterByTheLog) {
  const std::string four = main_text(kX, bottleneck() + kSum + "  %6");
  EXPECT_EQ(fused_by_log(four, 399, "cpu"), "chain");
  EXPECT_EQ(fused_by_log(four, 400, "cpu"), "conv2d depthwise_conv2d conv2d");
}

// Packers on x86-64 ask other layers in place of these, of which the log has no times.
TEST(Fuse, MakesCascadesThatAreFasterByTheLogOfAnotherArchitecture) {
  const std::string three = main_text(kX, bottleneck() + "  %5");
  for (const std::string target : {"cpu,arch=aarch64", "cpu,arch=aarch64,isa=i8mm"}) {
    EXPECT_EQ(fused_by_log(three, 299, target), "chain") << target;
    EXPECT_EQ(fused_by_log(three, 300, target), "conv2d depthwise_conv2d conv2d") << target;
  }
}

TEST(Fuse, LeavesOutCascadesThatAreMuchSlowerByTheLog) {
  std::string large = main_text("%x: Tensor[(1, 96, 96, 4), int8]", bottleneck() + "  %5");
  const auto fused = [&](uint64_t cascade) {
    TuningLog log("log", log_of(large, Fuse::kOff, 0, 100) + log_of(large, Fuse::kAll, cascade, 100), 1);
    return kernels_of(
        fuse_steps(lower_text(large), target::parse_target("cpu"), {.how = Fuse::kAuto, .tuning = &log}));
  };
  EXPECT_EQ(fused(330), "chain");
  EXPECT_EQ(fused(331), "conv2d depthwise_conv2d conv2d");
}

// Rows far apart make a tile of more than 256 MiB; it still saves half of the memory.
TEST(Fuse, TilesMayBeLarge) {
  const std::string text =
      main_text("%x: Tensor[(1, 2049, 4096, 4), int8]",
                pointwise(0, "%x", 4, 64) + "  %2 = qnn.conv2d(%1, const(Tensor[(4, 3, 1, 64), int8], " +
                    bytes(4 * 3 * 64) +
                    "), 0, 0, 1f, 1f, padding=[512, 0, 512, 0], dilation=[512, 1], data_layout=\"NHWC\", "
                    "kernel_layout=\"OHWI\");\n  %3 = qnn.requantize(%2, 1f, 0, 4f, 0);\n  %3");
  for (const std::string target : {"cpu", kFirmware}) {
    for (const Fuse how : {Fuse::kAuto, Fuse::kAll}) {
      const AlignedBytes plan =
          evaluate::make_plan(lower_text(text, target), target::parse_target(target), {.how = how});
      const inspect::PlanReader reader(plan.span());
      EXPECT_EQ(inspect::kernel_name(reader.view().step(0).kernel()), "chain") << target;
    }
  }
}

// Layers in the thousands, with as many places that are equally full: the search ends, and says so.
TEST(Fuse, GivesUpOnLongNetworks) {
  const auto gives_up = [](int num_layers) {
    std::string body;
    for (int i = 0; i < num_layers; ++i)
      body += pointwise(2 * i, i == 0 ? "%x" : "%" + std::to_string(2 * i - 1), i % 2 == 0 ? 4 : 8,
                        i % 2 == 0 ? 8 : 4);
    const std::string text = main_text(kX, body + "  %" + std::to_string(2 * num_layers - 1));
    std::string log;
    const Program program =
        fuse_steps(lower_text(text, kFirmware), target::parse_target(kFirmware),
                   {.how = Fuse::kAuto, .log = [&](uint32_t, const std::string& line) { log += line; }});
    EXPECT_LE(program.steps.size(), static_cast<size_t>(num_layers));
    return log.find("not all cascades were tried") != log.npos;
  };
  EXPECT_FALSE(gives_up(20));
  EXPECT_TRUE(gives_up(4000));
}

// Bytes of activations, and of scratch of one worker.
uint64_t memory_of(const std::string& text, Fuse how, const std::string& target) {
  const AlignedBytes plan =
      evaluate::make_plan(lower_text(text, target), target::parse_target(target), {.how = how});
  const inspect::PlanReader reader(plan.span());
  return reader.view().bank(0).size() + reader.view().function(0).scratch_per_worker();
}

// 13 KB, of which a cascade saves most, but not the 128 KiB that `auto` wants of an x86-64.
TEST(Fuse, ForMemoryTakesCascadesThatSaveLittle) {
  const std::string text = main_text(kX, bottleneck() + kSum + "  %6");
  EXPECT_EQ(memory_of(text, Fuse::kAuto, "cpu"), memory_of(text, Fuse::kOff, "cpu"));
  EXPECT_LT(memory_of(text, Fuse::kMemory, "cpu"), memory_of(text, Fuse::kAuto, "cpu"));
}

// A wide path whose tiles, side by side, take more than its layers one after another.
TEST(Fuse, ForMemoryNeverTakesMoreThanAnyOther) {
  std::string wide = pointwise(0, "%x", 4, 24);
  for (int i = 1; i < 6; ++i) {
    const std::string before = "%" + std::to_string(2 * i - 1);
    wide += i % 2 == 1 ? depthwise(2 * i, before, 24) : pointwise(2 * i, before, 24, 24);
  }
  const std::string texts[] = {main_text(kX, bottleneck() + kSum + "  %6"), main_text(kX, wide + "  %11"),
                               main_text("%x: Tensor[(1, 96, 96, 4), int8]", bottleneck() + kSum + "  %6"),
                               main_text("%x: Tensor[(1, 2, 64, 4), int8]", wide + "  %11"),
                               main_text(kX, pointwise(0, "%x", 4, 8) + "  %1")};
  for (const std::string& text : texts) {
    for (const std::string target : {"cpu", "cpu,isa=reference", kFirmware}) {
      const uint64_t least = memory_of(text, Fuse::kMemory, target);
      for (const Fuse other : {Fuse::kOff, Fuse::kAuto, Fuse::kAll}) {
        EXPECT_LE(least, memory_of(text, other, target)) << target << "\n" << text;
      }
    }
  }
}

TEST(Fuse, NeverTakesMoreMemory) {
  for (const std::string target : {"cpu", kFirmware}) {
    const std::string text = main_text(kX, bottleneck() + kSum + "  %6");
    EXPECT_LE(memory_of(text, Fuse::kAuto, target), memory_of(text, Fuse::kOff, target)) << target;
  }
}

}  // namespace
}  // namespace qplan::schedule::fuse_test
