// Command streams of Arm's compiler, run to the bytes of independent references: what proves the simulator.
#include <gtest/gtest.h>

#include <iostream>
#include <optional>

#include "src/ethosu/compiler/target.h"
#include "src/ethosu/isa/stream.h"
#include "tests/ethosu/compiled_model.h"

namespace qplan::ethosu::testing {
namespace {

using qplan::testing::read_bytes;

std::vector<CompiledFile> files_in(const std::string& folder) {
  std::vector<CompiledFile> files;
  for (CompiledFile& file : compiled_files()) {
    if (file.name.starts_with(folder)) files.push_back(std::move(file));
  }
  return files;
}

std::vector<std::vector<uint8_t>> inputs_of(const CompiledModel& model, const std::filesystem::path& folder) {
  std::vector<std::vector<uint8_t>> inputs;
  for (size_t i = 0; i < model.inputs.size(); ++i)
    inputs.push_back(read_bytes(folder / ("input" + std::to_string(i) + ".bin")));
  return inputs;
}

struct Folder {
  const char* name;
  size_t files, runs;
};

class ArmStreams : public ::testing::TestWithParam<Folder> {};

TEST_P(ArmStreams, GiveTheReferencesBytes) {
  const std::vector<CompiledFile> files = files_in(GetParam().name);
  if (files.empty()) GTEST_SKIP() << qplan::testing::kNoDataDirectory;
  EXPECT_EQ(files.size(), GetParam().files);
  size_t runs = 0;
  for (const CompiledFile& file : files) {
    const CompiledModel model = read_compiled_model(read_bytes(file.path));
    for (const std::filesystem::path& folder : file.cases) {
      SCOPED_TRACE(file.name + " on " + folder.filename().string());
      const CompiledRun run = run_compiled(model, inputs_of(model, folder));
      ASSERT_FALSE(run.outcome.fault.is_set()) << run.outcome.fault.text;
      for (size_t o = 0; o < run.outputs.size(); ++o) {
        const std::vector<uint8_t> expected = read_bytes(folder / ("output" + std::to_string(o) + ".bin"));
        ASSERT_TRUE(expected == run.outputs[o]) << "output " << o;
      }
      ++runs;
    }
  }
  EXPECT_EQ(runs, GetParam().runs);
}

INSTANTIATE_TEST_SUITE_P(All, ArmStreams,
                         ::testing::Values(Folder{"nets/", 24, 98}, Folder{"seanet/", 62, 62},
                                           Folder{"single/", 104, 103}),
                         [](const auto& folder) {
                           const std::string name = folder.param.name;
                           return name.substr(0, name.size() - 1);
                         });

// What hardware would run into when a compiler forgot to wait.
TEST(ArmStreams, WithoutWaitsAreHazards) {
  size_t found = 0, changed = 0;
  for (const CompiledFile& file : files_in("nets/kws")) {
    CompiledModel model = read_compiled_model(read_bytes(file.path));
    Payload payload;
    ASSERT_FALSE(read_payload(model.payload.data(), model.payload.size(), &payload));
    for (uint32_t at = 0; at < payload.stream_words;) {
      uint8_t* const word = model.payload.data() + (payload.stream - model.payload.data()) + uint64_t{at} * 4;
      const uint32_t value = load_word(word);
      const bool has_payload = (value >> 14 & 3) == 1;
      // Waits for nothing.
      if (!has_payload && ((value & 0x3ff) == kOpKernelWait || (value & 0x3ff) == kOpDmaWait))
        store_word((value & 0xffff) | 0xffu << 16, word);
      at += has_payload ? 2 : 1;
    }
    const CompiledRun run = run_compiled(model, inputs_of(model, file.cases.at(0)));
    ++changed;
    found += run.outcome.fault.status == QPLAN_NPU_E_HAZARD ? 1 : 0;
  }
  EXPECT_EQ(found, changed);
}

TEST(ArmStreams, WithBlocksThatStartTooEarlyAreHazards) {
  size_t found = 0, changed = 0;
  for (const CompiledFile& file : files_in("nets/pretrainedResnet_quant")) {
    CompiledModel model = read_compiled_model(read_bytes(file.path));
    Payload payload;
    ASSERT_FALSE(read_payload(model.payload.data(), model.payload.size(), &payload));
    for (uint32_t at = 0; at < payload.stream_words;) {
      uint8_t* const word = model.payload.data() + (payload.stream - model.payload.data()) + uint64_t{at} * 4;
      const uint32_t value = load_word(word);
      const bool has_payload = (value >> 14 & 3) == 1;
      if (!has_payload && (value & 0x3ff) == kBlockdep) store_word((value & 0xffff) | 3u << 16, word);
      at += has_payload ? 2 : 1;
    }
    const CompiledRun run = run_compiled(model, inputs_of(model, file.cases.at(0)));
    ++changed;
    found += run.outcome.fault.status == QPLAN_NPU_E_HAZARD ? 1 : 0;
  }
  EXPECT_EQ(found, changed);
}

// Our rule in the place of Arm's, on kernels of all kinds and maps.
TEST(ArmStreams, WithTheBlockdepThatBoundsProveHaveNoHazard) {
  size_t kernels = 0, early = 0, of_arm = 0, files = 0;
  for (const CompiledFile& file : compiled_files()) {
    if (file.cases.empty()) continue;
    SCOPED_TRACE(file.name);
    CompiledModel model = read_compiled_model(read_bytes(file.path));
    Payload payload;
    ASSERT_FALSE(read_payload(model.payload.data(), model.payload.size(), &payload));
    const Config& config = *find_config_word(payload.config_word);
    const std::vector<uint32_t> words = stream_words(payload);
    std::vector<uint32_t> changed;
    const auto write = [&](const Command& command) {
      uint32_t encoded[2];
      const uint32_t count = encode(command, encoded);
      changed.insert(changed.end(), encoded, encoded + count);
    };
    Registers registers;
    std::optional<Kernel> previous;
    for (uint32_t at = 0; at < words.size();) {
      Command command;
      ASSERT_FALSE(decode(words.data(), static_cast<uint32_t>(words.size()), &at, &command));
      if (!command.is_operation()) registers.set(command);
      if (command.starts_kernel()) {
        Kernel kernel;
        ASSERT_FALSE(read_kernel(config, registers, command, &kernel));
        const uint32_t blockdep = previous ? safe_blockdep(*previous, kernel) : 0;
        write({kBlockdep, false, static_cast<uint16_t>(blockdep), 0});
        ++kernels;
        early += blockdep > 0 ? 1 : 0;
        of_arm += kernel.blockdep > 0 ? 1 : 0;
        previous = kernel;
      }
      if (command.has_payload || command.code != kBlockdep) write(command);
    }
    model.payload = compiler::payload_of(config, changed);
    const CompiledRun run = run_compiled(model, inputs_of(model, file.cases.at(0)));
    ASSERT_FALSE(run.outcome.fault.is_set()) << run.outcome.fault.text;
    ASSERT_TRUE(run.outputs.at(0) == read_bytes(file.cases.at(0) / "output0.bin"));
    ++files;
  }
  if (files == 0) GTEST_SKIP() << qplan::testing::kNoDataDirectory;
  std::cout << early << " of " << kernels << " kernels may start early, with Arm's compiler " << of_arm
            << "\n";
  EXPECT_GT(early, 0u);
}

// What a driver looks at before it runs anything takes them all.
TEST(ArmStreams, AreTakenByTheLoadersChecks) {
  size_t taken = 0;
  for (const CompiledFile& file : compiled_files()) {
    const CompiledModel model = read_compiled_model(read_bytes(file.path));
    Payload payload;
    ASSERT_FALSE(read_payload(model.payload.data(), model.payload.size(), &payload));
    RegionLimits limits;
    limits.bytes[0] = model.constants.size();
    limits.bytes[1] = model.arena_bytes, limits.is_writable[1] = true;
    limits.bytes[2] = model.fast_bytes, limits.is_writable[2] = true;
    uint32_t word = 0;
    StreamWork work;
    const Problem problem =
        check_stream(*find_config_word(payload.config_word), payload, limits, &word, &work);
    EXPECT_GT(work.total_cycles, 0u);
    EXPECT_FALSE(problem) << file.name << ", word " << word << ": " << problem.text;
    ++taken;
    // Without the arena there is nothing that it may write.
    limits.bytes[1] = 0;
    EXPECT_TRUE(check_stream(*find_config_word(payload.config_word), payload, limits, &word, &work));
  }
  if (taken == 0) GTEST_SKIP() << qplan::testing::kNoDataDirectory;
  EXPECT_EQ(taken, 190u);
}

// The cost model is that of Arm's compiler, without memories and with them.
TEST(ArmStreams, CostWhatArmsCompilerEstimates) {
  for (const CompiledFile& file : files_in("nets/")) {
    if (file.cycles == 0 || file.name.find("_size") != std::string::npos) continue;
    const CompiledModel model = read_compiled_model(read_bytes(file.path));
    Payload payload;
    ASSERT_FALSE(read_payload(model.payload.data(), model.payload.size(), &payload));
    const Config& config = *find_config_word(payload.config_word);
    Memories memories = default_memories(config);
    // The arena of a U65 is in DRAM, in SRAM are the copies that its compiler makes.
    if (config.is_u65) memories.of[1] = MemoryClass::kDram;
    const StreamCycles found = stream_cycles(config, memories, payload);
    const auto ratio = [](uint64_t a, uint64_t b) { return static_cast<double>(a) / static_cast<double>(b); };
    std::cout << file.name << ": " << found.compute << " cycles, of Arm's compiler " << file.cycles
              << "; with memories " << found.cycles << ", of Arm's compiler " << file.total_cycles << "\n";
    // The model was made for U55; of a U65 it does not know which tensors Arm's compiler keeps in DRAM.
    EXPECT_NEAR(ratio(found.compute, file.cycles), 1.0, config.is_u65 ? 0.11 : 0.07) << file.name;
    EXPECT_NEAR(ratio(found.cycles, file.total_cycles), 1.0, config.is_u65 ? 0.16 : 0.14) << file.name;
  }
}

}  // namespace
}  // namespace qplan::ethosu::testing
