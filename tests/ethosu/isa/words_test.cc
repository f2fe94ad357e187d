// Words, payloads and registers.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "src/ethosu/isa/architecture.h"
#include "src/ethosu/isa/stream.h"

namespace qplan::ethosu {
namespace {

std::string text_of(const Command& command) {
  char text[kDisassemblyBytes];
  disassemble(command, text);
  return text;
}

TEST(EthosuWords, AreReadAsTheyWereWritten) {
  for (const Command& command :
       {Command{kOfmDepthM1, false, 63, 0}, Command{kOfmScale, true, 37, 0x40000001},
        Command{kIfmBase0, true, 0x12, 0x89abcdef}, Command{kOpStop, false, 0xffff, 0}}) {
    uint32_t words[2] = {};
    const uint32_t count = encode(command, words);
    uint32_t at = 0;
    Command read;
    ASSERT_FALSE(decode(words, count, &at, &read));
    EXPECT_EQ(at, count);
    EXPECT_EQ(read.code, command.code);
    EXPECT_EQ(read.has_payload, command.has_payload);
    EXPECT_EQ(read.parameter, command.parameter);
    EXPECT_EQ(read.payload, command.payload);
  }
}

// The first words of a stream that Arm's compiler wrote.
TEST(EthosuWords, MeanWhatArmsCompilerMeans) {
  const uint32_t words[] = {0x00000130, 0x00004030, 0x000002d0, 0x00010131};
  const char* const expected[] = {"DMA0_SRC_REGION     0x0", "DMA0_SRC            0x2d0",
                                  "DMA0_DST_REGION     0x1"};
  uint32_t at = 0;
  for (const char* const line : expected) {
    Command command;
    ASSERT_FALSE(decode(words, 4, &at, &command));
    EXPECT_EQ(text_of(command), line);
  }
  EXPECT_EQ(at, 4u);
}

TEST(EthosuWords, ThatTheDeviceDoesNotKnowAreRefused) {
  for (const uint32_t word : {0x000003ffu, 0x00008002u, 0x00000402u, 0x0000012eu}) {
    uint32_t at = 0;
    Command command;
    EXPECT_TRUE(decode(&word, 1, &at, &command)) << word;
  }
  const uint32_t half = 0x00004010;  // a command whose payload is missing
  uint32_t at = 0;
  Command command;
  EXPECT_TRUE(decode(&half, 1, &at, &command));
}

std::vector<uint8_t> payload_with(const std::vector<uint32_t>& stream) {
  std::vector<uint8_t> bytes(payload_bytes(static_cast<uint32_t>(stream.size())));
  write_payload_header(*find_config("ethos-u55-128"), static_cast<uint32_t>(stream.size()), bytes.data());
  for (size_t i = 0; i < stream.size(); ++i) store_word(stream[i], bytes.data() + kStreamOffset + 4 * i);
  return bytes;
}

TEST(EthosuPayload, IsReadAsItWasWritten) {
  std::vector<uint32_t> stream(70000, 0x00000012);  // longer than 16 bits of length
  stream.back() = 0xffff0000;
  const std::vector<uint8_t> bytes = payload_with(stream);
  Payload payload;
  ASSERT_FALSE(read_payload(bytes.data(), bytes.size(), &payload));
  EXPECT_EQ(payload.config_word, 0x1807u);
  EXPECT_EQ(payload.architecture, 0x10060000u);
  EXPECT_EQ(payload.stream_words, stream.size());
  EXPECT_EQ(payload.stream - bytes.data(), 32);
}

// No prefix of a payload is one, and no byte beyond it is read (under sanitizers).
TEST(EthosuPayload, ThatIsCutIsRefused) {
  const std::vector<uint8_t> bytes = payload_with({0x00000012, 0xffff0000});
  for (size_t size = 0; size < bytes.size(); ++size) {
    const std::vector<uint8_t> cut(bytes.begin(), bytes.begin() + static_cast<int64_t>(size));
    Payload payload;
    EXPECT_TRUE(read_payload(cut.data(), cut.size(), &payload)) << size;
  }
}

TEST(EthosuPayload, ForAnotherArchitectureIsRefused) {
  std::vector<uint8_t> bytes = payload_with({0xffff0000});
  Payload payload;
  store_word(0x20060000, bytes.data() + 12);
  EXPECT_TRUE(read_payload(bytes.data(), bytes.size(), &payload));
  store_word(0x10160000, bytes.data() + 12);
  EXPECT_TRUE(read_payload(bytes.data(), bytes.size(), &payload));
}

TEST(EthosuConfigs, HaveNamesWordsAndHashesOfTheirOwn) {
  for (const Config& a : kConfigs) {
    EXPECT_EQ(find_config(a.name), &a);
    EXPECT_EQ(find_config_word(a.config_word), &a);
    for (const Config& b : kConfigs) EXPECT_EQ(&a == &b, config_hash(a) == config_hash(b));
  }
  EXPECT_EQ(find_config("ethos-u55"), nullptr);
  EXPECT_EQ(find_config("ethos-u55-1280"), nullptr);
}

TEST(EthosuFeatureMaps, HaveFourTiles) {
  FeatureMap map;
  map.h = 4, map.w = 5, map.d = 20;
  map.width0 = 3, map.height0 = 2, map.height1 = 3;
  map.base[0] = 0, map.base[1] = 1000, map.base[2] = 2000, map.base[3] = 3000;
  map.stride_x = 20, map.stride_y = 100;
  EXPECT_EQ(map.address(1, 2, 19), 100u + 40 + 19);
  EXPECT_EQ(map.address(2, 2, 0), 2000u + 40);
  EXPECT_EQ(map.address(2, 3, 0), 1000u + 200);
  EXPECT_EQ(map.address(3, 4, 1), 3000u + 20 + 1);
  map.is_nhcwb16 = true, map.stride_c = 48;
  EXPECT_EQ(map.address(1, 2, 19), 100u + 48 + 32 + 3);
}

// A register that the stream did not set holds whatever it held before.
TEST(EthosuKernels, UseOnlyRegistersThatTheStreamSet) {
  Registers registers;
  Kernel kernel;
  const Problem problem = read_kernel(kConfigs[2], registers, {kOpConv, false, 0, 0}, &kernel);
  ASSERT_TRUE(problem);
  EXPECT_STREQ(problem.text, "an operation uses a register that the stream did not set");
}

}  // namespace
}  // namespace qplan::ethosu
