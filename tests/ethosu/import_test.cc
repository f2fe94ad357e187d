// Networks that Arm's compiler has compiled, packed and run on the simulator.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <nlohmann/json.hpp>

#include "src/packer/pipeline/pipeline.h"
#include "src/packer/text/text.h"
#include "tests/ethosu/compiled_model.h"
#include "tests/ethosu/compiled_tflite.h"
#include "tests/ethosu/sim_device.h"

namespace qplan::ethosu::testing {
namespace {

using qplan::testing::append_bytes;
using qplan::testing::Buffer;
using qplan::testing::empty_error;
using qplan::testing::ModelSession;
using qplan::testing::pack_bytes;
using qplan::testing::read_bytes;
using Bytes = std::vector<uint8_t>;

constexpr char kDevice[] = "ethos-u55-128";

std::string pack_error(const Bytes& model, const std::string& target) {
  try {
    (void)pack_bytes(model, "net.tflite", target.c_str());
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "packed";
}

nlohmann::json inspected(const Bytes& plan) {
  const Buffer<uint8_t> aligned(plan);
  Bytes text;
  qplan_error error = empty_error();
  if (qplan_inspect_json(aligned.data(), aligned.size(), append_bytes, &text, &error) != QPLAN_OK)
    throw std::runtime_error(error.text);
  return nlohmann::json::parse(text);
}

// ---- networks of a few operators

int32_t tensor(TfliteBuilder& b, const char* name, std::vector<int32_t> shape, float scale, int64_t zero) {
  return b.activation(name, std::move(shape), scale, zero);
}
int32_t x_of(TfliteBuilder& b) { return tensor(b, "x", {1, 3, 3, 2}, 0.5f, 3); }
int32_t convolved(TfliteBuilder& b, const char* name = "y") {
  return tensor(b, name, {1, 3, 3, 3}, 0.25f, -5);
}
int32_t pooled(TfliteBuilder& b) { return tensor(b, "z", {1, 2, 2, 3}, 0.25f, -5); }

void conv(TfliteBuilder& b, int32_t x, int32_t y) {
  Bytes weights(24);
  for (size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<uint8_t>(i * 11 + 1);
  const int32_t w = b.tensor(
      {.name = "w", .shape = {3, 2, 2, 2}, .scales = {0.0625f}, .zero_points = {0}, .data = weights});
  const int32_t bias = b.tensor({.name = "b",
                                 .type = tflite::TensorType_INT32,
                                 .shape = {3},
                                 .scales = {0.03125f},
                                 .zero_points = {0},
                                 .data = tflite_test::bytes_of<int32_t>({10, -200, 300})});
  b.op(tflite::BuiltinOperator_CONV_2D, {x, w, bias}, {y}, tflite::BuiltinOptions_Conv2DOptions,
       tflite::CreateConv2DOptions(b.fbb(), tflite::Padding_SAME, 1, 1, tflite::ActivationFunctionType_NONE,
                                   1, 1)
           .Union());
}
void max_pool(TfliteBuilder& b, int32_t y, int32_t z) {
  b.op(tflite::BuiltinOperator_MAX_POOL_2D, {y}, {z}, tflite::BuiltinOptions_Pool2DOptions,
       tflite::CreatePool2DOptions(b.fbb(), tflite::Padding_VALID, 1, 1, 2, 2).Union());
}
// An operator that the device does not have.
int32_t log_softmax(TfliteBuilder& b, int32_t y) {
  const int32_t s = tensor(b, "s", {1, 3, 3, 3}, 0.0625f, 127);
  b.op(tflite::BuiltinOperator_LOG_SOFTMAX, {y}, {s});
  return s;
}
Bytes conv_source() {
  TfliteBuilder b;
  const int32_t x = x_of(b), y = convolved(b);
  conv(b, x, y);
  return b.finish({x}, {y});
}
Bytes pool_source(float scale, int64_t zero_point) {
  TfliteBuilder b;
  const int32_t y = tensor(b, "y", {1, 3, 3, 3}, scale, zero_point),
                z = tensor(b, "z", {1, 2, 2, 3}, scale, zero_point);
  max_pool(b, y, z);
  return b.finish({y}, {z});
}

Bytes compiled_conv(const Config& config) {
  CompiledTflite c;
  const int32_t x = x_of(c.builder()), y = convolved(c.builder());
  c.program(arm_program(conv_source(), config), {x}, {y});
  return c.finish({x}, {y});
}

// Both give the same bytes, the compiled one on its device. Returns the regions' figures.
std::vector<qplan_region_info> expect_same_bytes(const Bytes& source, const Bytes& compiled,
                                                 const std::string& device_name = kDevice) {
  const SimDevice device(device_name);
  ModelSession expected(pack_bytes(source, "net.tflite"), QPLAN_ISA_REFERENCE, 1);
  ModelSession session(pack_bytes(compiled, "net.tflite", (device_name + ", cpu").c_str()), QPLAN_ISA_AUTO, 1,
                       device.config());
  for (int run = 0; run < 3; ++run) {
    Bytes input(18);
    for (size_t i = 0; i < input.size(); ++i) input[i] = static_cast<uint8_t>((i * 41 + 7) * (run * 2 + 1));
    EXPECT_EQ(session.run({input}), expected.run({input})) << "run " << run;
  }
  std::vector<qplan_region_info> regions(qplan_session_num_regions(session.get()));
  for (uint32_t i = 0; i < regions.size(); ++i) {
    regions[i].struct_size = sizeof(regions[i]);
    EXPECT_EQ(qplan_session_region_info(session.get(), i, &regions[i]), QPLAN_OK);
    EXPECT_EQ(regions[i].device_runs, 3u);
    EXPECT_EQ(regions[i].cpu_runs, 0u);
  }
  return regions;
}

TEST(EthosuImport, AProgramRunsOnItsDevice) {
  for (const Config& config : kConfigs) {
    SCOPED_TRACE(config.name);
    const auto regions = expect_same_bytes(conv_source(), compiled_conv(config), config.name);
    ASSERT_EQ(regions.size(), 1u);
    EXPECT_EQ(regions[0].has_alternative, 0u);
    EXPECT_EQ(regions[0].macs, 9u * 3 * 8);
  }
}

TEST(EthosuImport, OtherOperatorsRunOnTheCpu) {
  TfliteBuilder b;
  const int32_t x = x_of(b), y = convolved(b);
  conv(b, x, y);
  const Bytes source = b.finish({x}, {log_softmax(b, y)});
  CompiledTflite c;
  const int32_t cx = x_of(c.builder()), cy = convolved(c.builder());
  c.program(arm_program(conv_source(), *find_config(kDevice)), {cx}, {cy});
  const Bytes compiled = c.finish({cx}, {log_softmax(c.builder(), cy)});
  EXPECT_EQ(expect_same_bytes(source, compiled).size(), 1u);
  EXPECT_EQ(inspected(pack_bytes(compiled, "net.tflite", "ethos-u55-128, cpu")).at("steps").size(), 2u);
}

TEST(EthosuImport, EachProgramIsARegion) {
  // With an operator of the CPU between them, and side by side.
  for (const bool has_log_softmax : {true, false}) {
    TfliteBuilder b;
    const int32_t x = x_of(b), y = convolved(b);
    conv(b, x, y);
    const int32_t before = has_log_softmax ? log_softmax(b, y) : y;
    const int32_t z = has_log_softmax ? tensor(b, "z", {1, 2, 2, 3}, 0.0625f, 127) : pooled(b);
    max_pool(b, before, z);
    const Bytes source = b.finish({x}, {z});

    CompiledTflite c;
    const Config& config = *find_config(kDevice);
    const ArmProgram first = arm_program(conv_source(), config);
    const int32_t cx = x_of(c.builder()), cy = convolved(c.builder());
    c.program(first, {cx}, {cy});
    const int32_t between = has_log_softmax ? log_softmax(c.builder(), cy) : cy;
    const int32_t cz =
        has_log_softmax ? tensor(c.builder(), "z", {1, 2, 2, 3}, 0.0625f, 127) : pooled(c.builder());
    c.program(has_log_softmax ? arm_program(pool_source(0.0625f, 127), config)
                              : arm_program(pool_source(0.25f, -5), config, first.output_offsets[0]),
              {between}, {cz});
    const auto regions = expect_same_bytes(source, c.finish({cx}, {cz}));
    EXPECT_EQ(regions.size(), 2u);
  }
}

TEST(EthosuImport, AProgramMayHaveSeveralOutputs) {
  const auto source = [] {
    TfliteBuilder b;
    const int32_t x = x_of(b), y = convolved(b), z = pooled(b);
    conv(b, x, y);
    max_pool(b, y, z);
    return b.finish({x}, {y, z});
  };
  CompiledTflite c;
  const int32_t x = x_of(c.builder()), y = convolved(c.builder()), z = pooled(c.builder());
  const ArmProgram program = arm_program(source(), *find_config(kDevice));
  ASSERT_EQ(program.output_offsets.size(), 2u);
  c.program(program, {x}, {y, z});
  EXPECT_EQ(expect_same_bytes(source(), c.finish({x}, {y, z})).size(), 1u);
}

TEST(EthosuImport, ThePlanDeclaresTheMemoryAndKeepsTheQuantisation) {
  const Config& config = *find_config(kDevice);
  const nlohmann::json json =
      inspected(pack_bytes(compiled_conv(config), "net.tflite", "ethos-u55-128, cpu"));
  EXPECT_EQ(json.at("inputs")[0].at("scale"), 0.5);
  EXPECT_EQ(json.at("inputs")[0].at("zero_point"), 3);
  EXPECT_EQ(json.at("outputs")[0].at("scale"), 0.25);
  EXPECT_EQ(json.at("outputs")[0].at("zero_point"), -5);
  const nlohmann::json& region = json.at("regions").at(0);
  EXPECT_EQ(region.at("name"), "qplan_ethos_u55_128_program_0");
  EXPECT_EQ(region.at("alternative_steps"), 0);
  uint64_t scratch = 0;
  for (const nlohmann::json& bind : region.at("binds")) {
    if (bind.at("use") == "scratch") scratch += bind.at("bytes").get<uint64_t>();
  }
  EXPECT_EQ(scratch, arm_program(conv_source(), config).memory_bytes);
  EXPECT_GE(json.at("memory").at("device_bytes").get<uint64_t>(), scratch);
}

TEST(EthosuImport, JobsAreRecorded) {
  const Config& config = *find_config(kDevice);
  const ArmProgram program = arm_program(conv_source(), config);
  const std::filesystem::path directory =
      std::filesystem::path(::testing::TempDir()) / ("qplan_ethosu_import_" + std::to_string(::getpid()));
  const SimDevice device(kDevice, ",record=" + directory.string());
  ModelSession session(pack_bytes(compiled_conv(config), "net.tflite", "ethos-u55-128, cpu"), QPLAN_ISA_AUTO,
                       1, device.config());
  const Bytes input(18, 9), output = session.run({input}).at(0);
  const std::filesystem::path job = directory / "job-0000";
  const Bytes text = read_bytes(job / "job.txt");
  const auto place = [](uint64_t offset) { return "1 " + std::to_string(offset) + " "; };
  EXPECT_EQ(std::string(text.begin(), text.end()),
            "target ethosu\nregion 0 " + std::to_string(program.constants.size()) + "\nregion 1 " +
                std::to_string(program.memory_bytes) + "\nreadonly 0\nload 0 0 load-0.bin\nload " +
                place(program.input_offsets[0]) + "load-1.bin\nrun payload.bin\ncheck " +
                place(program.output_offsets[0]) + "27 check-0.bin\n");
  EXPECT_EQ(read_bytes(job / "payload.bin"), program.payload);
  EXPECT_EQ(read_bytes(job / "load-0.bin"), program.constants);
  EXPECT_EQ(read_bytes(job / "load-1.bin"), input);
  EXPECT_EQ(read_bytes(job / "check-0.bin"), output);
  std::filesystem::remove_all(directory);
}

TEST(EthosuImport, ADeviceThatItWasNotCompiledForIsAnError) {
  const Bytes model = compiled_conv(*find_config(kDevice));
  EXPECT_EQ(pack_error(model, "cpu"),
            "target 'cpu' cannot run 1 of 1 operator: npu.program 'y': it is a program that was compiled for "
            "'ethos-u55-128', which no CPU runs; pack it with --target \"ethos-u55-128, cpu\" "
            "[cpu.program.device]");
  EXPECT_EQ(
      pack_error(model, "ethos-u55-256, cpu"),
      "'y' is a program that was compiled for 'ethos-u55-128' and runs on no other device; pack it with "
      "--target \"ethos-u55-128, cpu\"\n"
      "  not on 'ethos-u55-256': it is a program for 'ethos-u55-128', this device is 'ethos-u55-256' "
      "[ethosu.program.config]");
}

TEST(EthosuImport, CoverageAsksTheTargets) {
  const Bytes model = compiled_conv(*find_config(kDevice));
  const auto survey = [&](const char* target) {
    PackOptions options;
    options.target = target;
    return nlohmann::json::parse(coverage_json(model, "net.tflite", options));
  };
  const nlohmann::json taken = survey("ethos-u55-128, cpu");
  EXPECT_EQ(taken.at("operators").at("run"), 1);
  EXPECT_EQ(taken.at("all_run"), true);
  for (const char* target : {"cpu", "ethos-u55-256, cpu"}) {
    EXPECT_EQ(survey(target).at("operators").at("run"), 0) << target;
    EXPECT_EQ(survey(target).at("missing").size(), 1u) << target;
  }
}

TEST(EthosuImport, ExplainDoesNotRunAProgramOnTheCpu) {
  PackOptions options;
  options.target = "ethos-u55-256, cpu";
  const nlohmann::json json = nlohmann::json::parse(
      explain_text(compiled_conv(*find_config(kDevice)), "net.tflite", options, ExplainFormat::kJson));
  EXPECT_EQ(json.at("units").at(0).at("is_program"), true);
  EXPECT_EQ(json.at("units").at(0).at("cpu_ns"), 0);
  for (const nlohmann::json& device : json.at("devices")) EXPECT_EQ(device.at("ops"), 0) << device;
}

TEST(EthosuImport, NamesOfFormatAndDeviceAreWords) {
  const auto error = [](const std::string& device) -> std::string {
    try {
      (void)text::parse(
          "def @main(%x: Tensor[(1, 4), int8]) {\n  %0 = npu.program((const(Tensor[(1), uint8], "
          "[0]), %x), format=\"ethos-u\", device=\"" +
              device +
              "\", shapes=[[1, 3]], dtypes=\"int8\", memory_bytes=64, input_offsets=[16], "
              "output_offsets=[32]);\n  %0\n}\n",
          "text");
    } catch (const PackError& e) {
      return e.what();
    }
    return "parsed";
  };
  EXPECT_EQ(error("ethos-u55-128"), "parsed");
  for (const char* device : {"", "a\\n\\\"b", "a b"}) {
    EXPECT_NE(error(device).find("characters, expected one or more of a to z, 0 to 9 and '-'"),
              std::string::npos)
        << error(device);
  }
}

// ---- files that are damaged

// The model with another command stream, and with more rows of its output.
Bytes damaged(const std::function<void(ArmProgram*)>& damage, int32_t rows = 3,
              const char* device = kDevice) {
  ArmProgram program = arm_program(conv_source(), *find_config(device));
  damage(&program);
  CompiledTflite c;
  const int32_t x = x_of(c.builder()), y = tensor(c.builder(), "y", {1, rows, 3, 3}, 0.25f, -5);
  c.program(program, {x}, {y});
  return c.finish({x}, {y});
}
std::string error_with(const std::function<void(ArmProgram*)>& damage, int32_t rows = 3) {
  return pack_error(damaged(damage, rows), "ethos-u55-128, cpu");
}

// Gives a register another value, wherever the stream sets it.
void set_register(ArmProgram* program, uint16_t code, bool has_payload, uint32_t value) {
  Payload payload;
  ASSERT_FALSE(read_payload(program->payload.data(), program->payload.size(), &payload));
  std::vector<uint32_t> words(payload.stream_words), result;
  for (uint32_t i = 0; i < payload.stream_words; ++i) words[i] = load_word(payload.stream + uint64_t{i} * 4);
  for (uint32_t at = 0; at < words.size();) {
    Command command;
    ASSERT_FALSE(decode(words.data(), static_cast<uint32_t>(words.size()), &at, &command));
    if (command.code == code && command.has_payload == has_payload)
      has_payload ? command.payload = value : command.parameter = static_cast<uint16_t>(value);
    uint32_t encoded[2];
    result.insert(result.end(), encoded, encoded + encode(command, encoded));
  }
  program->payload = compiler::payload_of(*find_config_word(payload.config_word), result);
}

TEST(EthosuImport, DamagedProgramsAreRefused) {
  const std::string place = "tflite: 'net.tflite': operator 0 custom operator 'ethos-u' 'y': ";
  EXPECT_EQ(error_with([](ArmProgram*) {}), "packed");
  EXPECT_EQ(
      error_with([](ArmProgram* p) { p->payload[0] = 'X'; }),
      place + "its command stream (input 0, " +
          std::to_string(arm_program(conv_source(), *find_config(kDevice)).payload.size()) +
          " bytes) is damaged: it begins with 0x31504f58, expected 'COP1' (0x31504f43); compile the model "
          "again with Vela");
  const std::string truncated = error_with([](ArmProgram* p) { p->payload.resize(p->payload.size() - 8); });
  EXPECT_NE(truncated.find("is damaged: a command stream ends after its payload"), std::string::npos)
      << truncated;
  // An output after the end of the memory, and constants that are not all there.
  const std::string outside = error_with([](ArmProgram* p) { p->memory_bytes = 0, p->output_offsets = {0}; });
  EXPECT_NE(outside.find("an access is outside of its region, found "), std::string::npos) << outside;
  EXPECT_NE(outside.find("ethos-u55-128: program 'y': word "), std::string::npos) << outside;
  const std::string constants = error_with([](ArmProgram* p) { p->constants.resize(16); });
  EXPECT_NE(constants.find("an access is outside of its region, found "), std::string::npos) << constants;
}

TEST(EthosuImport, OutputsThatTheProgramDoesNotWriteAreRefused) {
  const ArmProgram whole = arm_program(conv_source(), *find_config(kDevice));
  const uint64_t offset = whole.output_offsets.at(0);
  const auto expected = [](uint64_t bytes, uint64_t from, uint64_t missing) {
    return "ethos-u55-128: program 'y': output 0 has " + std::to_string(bytes) + " bytes from " +
           std::to_string(from) + " of its memory on, and no operation writes byte " +
           std::to_string(missing) + "; compile the model again with Vela";
  };
  EXPECT_EQ(error_with([](ArmProgram* p) { p->memory_bytes += 9 * 7; }, 10),
            expected(90, offset, offset + 27));
  const uint64_t after = whole.memory_bytes;
  EXPECT_EQ(error_with([&](ArmProgram* p) { p->output_offsets = {after}; }), expected(27, after, after));
  EXPECT_EQ(error_with([](ArmProgram* p) {
              p->payload = compiler::payload_of(*find_config(kDevice), std::vector<uint32_t>{0xffffu << 16});
            }),
            expected(27, offset, offset));
}

// Rows of 10 bytes instead of 9: bounds of a feature map do not tell, the simulator does.
TEST(EthosuImport, AByteOfAnOutputBetweenRowsFaults) {
  const auto far_rows = [](ArmProgram* p) { set_register(p, kOfmStrideY, true, 10); };
  const Bytes plan = pack_bytes(damaged(far_rows), "net.tflite", "ethos-u55-128, cpu");
  const SimDevice device(kDevice);
  ModelSession session(plan, QPLAN_ISA_AUTO, 1, device.config());
  std::string text = "no error";
  try {
    (void)session.run({Bytes(18, 5)});
  } catch (const std::runtime_error& error) {
    text = error.what();
  }
  EXPECT_NE(text.find(" of region 1 is part of an output, and nobody wrote it"), std::string::npos) << text;
}

TEST(EthosuImport, FastScratchThatIsTheOtherScratchIsRefused) {
  const auto use_region_2 = [](ArmProgram* p) { set_register(p, kOfmRegion, false, 2); };
  const std::string text =
      "': its command stream uses the fast scratch memory (region 2), which is one with the other scratch "
      "memory (region 1) unless a U65 has a fast scratch tensor of its own; compile the model again with "
      "Vela";
  EXPECT_EQ(error_with(use_region_2), "ethos-u55-128: program 'y" + text);
  EXPECT_EQ(pack_error(damaged(use_region_2, 3, "ethos-u65-256"), "ethos-u65-256, cpu"),
            "ethos-u65-256: program 'y" + text);
}

// Whatever a byte of the command stream or of the weights becomes, nothing but an error or another result
// follows.
TEST(EthosuImport, FlippedBytesDoNoHarm) {
  const Config& config = *find_config(kDevice);
  const ArmProgram program = arm_program(conv_source(), config);
  size_t refused = 0, faults = 0;
  for (size_t i = 0; i < program.payload.size() + program.constants.size(); ++i) {
    ArmProgram changed = program;
    const bool is_payload = i < program.payload.size();
    (is_payload ? changed.payload[i] : changed.constants[i - program.payload.size()]) ^=
        static_cast<uint8_t>(1 + i * 37 % 255);
    CompiledTflite c;
    const int32_t x = x_of(c.builder()), y = convolved(c.builder());
    c.program(changed, {x}, {y});
    const Bytes model = c.finish({x}, {y});
    Bytes plan;
    try {
      plan = pack_bytes(model, "net.tflite", "ethos-u55-128, cpu");
    } catch (const std::runtime_error&) {
      ++refused;
      continue;
    }
    const SimDevice device(kDevice);
    try {
      ModelSession session(plan, QPLAN_ISA_AUTO, 1, device.config());
      (void)session.run({Bytes(18, 5)});
    } catch (const std::runtime_error&) {
      ++faults;
    }
  }
  EXPECT_GT(refused, 0u);
  EXPECT_GT(faults, 0u);
}

// ---- Arm's own files

// One run of each file; QPLAN_ETHOSU_IMPORTS=all: all runs.
TEST(EthosuImport, FilesOfArmsCompilerGiveTheReferencesBytes) {
  const char* const asked = std::getenv("QPLAN_ETHOSU_IMPORTS");
  const bool all = asked != nullptr && std::string(asked) == "all";
  size_t files = 0, runs = 0;
  for (const CompiledFile& file : compiled_files()) {
    SCOPED_TRACE(file.name);
    ++files;
    const Bytes plan =
        pack_bytes(read_bytes(file.path), file.name.c_str(), (file.accelerator + ", cpu").c_str());
    const SimDevice device(file.accelerator);
    ModelSession session(plan, QPLAN_ISA_AUTO, 1, device.config());
    for (const std::filesystem::path& folder : file.cases) {
      std::vector<Bytes> inputs;
      for (uint32_t i = 0; std::filesystem::exists(folder / ("input" + std::to_string(i) + ".bin")); ++i)
        inputs.push_back(read_bytes(folder / ("input" + std::to_string(i) + ".bin")));
      const std::vector<Bytes> outputs = session.run(inputs);
      for (size_t o = 0; o < outputs.size(); ++o) {
        ASSERT_TRUE(outputs[o] == read_bytes(folder / ("output" + std::to_string(o) + ".bin")))
            << folder.filename() << ", output " << o;
      }
      ++runs;
      if (!all) break;
    }
  }
  if (files == 0) GTEST_SKIP() << qplan::testing::kNoDataDirectory;
  EXPECT_EQ(files, 190u);
  EXPECT_EQ(runs, all ? 263u : 189u);  // one file has no reference
}

}  // namespace
}  // namespace qplan::ethosu::testing
