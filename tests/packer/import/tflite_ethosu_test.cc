// Custom operator `ethos-u`: what Arm's compiler left, as npu.program, and what is refused.
#include <gtest/gtest.h>

#include "src/ethosu/isa/architecture.h"
#include "tests/packer/import/import_helpers.h"
#include "tests/packer/import/tflite_builder.h"

namespace qplan::tflite_test::tflite_ethosu_test {
namespace {

constexpr char kPlace[] = "tflite: 'net.tflite': operator 0 custom operator 'ethos-u' 'y': ";

// One operator from x to y, both in an arena of 64 bytes.
struct Spec {
  std::vector<uint8_t> payload = {};  // empty: one of a stream that ends at once, for ethos-u55-128
  std::vector<uint8_t> options = {1, 4, 1};
  std::vector<int32_t> offsets = {0, 1, 6, -1, -1, 0, 0, 16, 32};  // of tensors, after three numbers
  bool has_metadata = true;
  bool has_inputs = true;
  int32_t memory_bytes = 64;
  bool has_seconds = false;  // a second input and output, tensors 6 and 7
};

std::vector<uint8_t> default_payload(uint32_t config_word = 0x00001807) {
  std::vector<uint8_t> payload(static_cast<size_t>(ethosu::payload_bytes(1)));
  ethosu::write_payload_header(*ethosu::find_config("ethos-u55-128"), 1, payload.data());
  ethosu::store_word(config_word, payload.data() + 8);
  ethosu::store_word(0xffffu << 16, payload.data() + ethosu::kStreamOffset);
  return payload;
}

std::vector<uint8_t> model_of(const Spec& spec) {
  TfliteBuilder b;
  const std::vector<uint8_t> payload = spec.payload.empty() ? default_payload() : spec.payload;
  const auto bytes = [&](const char* name, int32_t size, const std::vector<uint8_t>& data) {
    return b.tensor({.name = name, .type = tflite::TensorType_UINT8, .shape = {size}, .data = data});
  };
  const int32_t stream = bytes("stream", static_cast<int32_t>(payload.size()), payload);
  const int32_t flash = bytes("flash", 0, {}), scratch = bytes("scratch", spec.memory_bytes, {}),
                fast = bytes("fast", 32, {});
  const int32_t x = b.activation("x", {1, 4}, 0.5f, 1), y = b.activation("y", {1, 3}, 0.25f, 2);
  std::vector<int32_t> operands = {stream, flash, scratch, fast};
  if (spec.has_inputs) operands.push_back(x);
  std::vector<int32_t> inputs = {x}, outputs = {y};
  if (spec.has_seconds) {
    inputs.push_back(b.activation("x2", {1, 4}, 0.5f, 1));
    outputs.push_back(b.activation("y2", {1, 3}, 0.25f, 2));
    operands.push_back(inputs[1]);
  }
  b.op(tflite::BuiltinOperator_CUSTOM, operands, outputs, tflite::BuiltinOptions_NONE, 0, "ethos-u",
       spec.options);
  if (spec.has_metadata) b.metadata("OfflineMemoryAllocation", bytes_of(spec.offsets));
  return b.finish(inputs, outputs);
}

TEST(TfliteEthosu, IsAProgramInItsMemory) {
  EXPECT_EQ(
      import_body(model_of({})),
      "%0 = npu.program((const(Tensor[(36), uint8], [67, 79, 80, 49, 1, 0, 16, 0, 7, 24, 0, 0, 0, 0, 6, 16, "
      "5, 0, 0, 0, 5, 0, 0, 0, 5, 0, 0, 0, 2, 0, 1, 0, 0, 0, 255, 255]), %x), format=\"ethos-u\", "
      "device=\"ethos-u55-128\", shapes=[[1, 3]], dtypes=\"int8\", memory_bytes=64, fast_memory_bytes=32, "
      "input_offsets=[16], output_offsets=[32]);\n%0\n");
  // The memory reaches to the end of what is in it.
  EXPECT_NE(import_body(model_of({.memory_bytes = 8})).find("memory_bytes=35,"), std::string::npos);
  EXPECT_NE(import_body(model_of({.options = {}})).find("npu.program"), std::string::npos);
}

std::string error_of(const Spec& spec) { return import_error(model_of(spec)); }

TEST(TfliteEthosu, WhatAnotherCompilerOrDeviceNeedsIsNotImported) {
  const std::string unsupported =
      "-49: tflite: 'net.tflite': the model holds a program of Arm's compiler that "
      "cannot be taken over; pack the .tflite file that Vela was given\n"
      "1 operator that qplan does not import: custom operator 'ethos-u' with ";
  EXPECT_EQ(
      error_of({.has_metadata = false}).find(unsupported + "no metadata 'OfflineMemoryAllocation', which"),
      0u)
      << error_of({.has_metadata = false});
  EXPECT_EQ(error_of({.payload = default_payload(0x20001807)}),
            unsupported +
                "a command stream for a device with configuration word 0x20001807, which is no "
                "Ethos-U55 or U65 ('y')");
  // Ethos-U85, and a later version of U55.
  const auto of_architecture = [](uint32_t config, uint32_t architecture) {
    std::vector<uint8_t> payload = default_payload(config);
    ethosu::store_word(architecture, payload.data() + 12);
    return payload;
  };
  const std::string known = ", expected 1.0.6 (0x10060000) of Ethos-U55 and U65 or an earlier one ('y')";
  EXPECT_EQ(error_of({.payload = of_architecture(0x20001807, 0x20000000)}),
            unsupported + "a command stream for architecture 2.0.0 (0x20000000)" + known);
  EXPECT_EQ(error_of({.payload = of_architecture(0x00001807, 0x10160000)}),
            unsupported + "a command stream for architecture 1.1.6 (0x10160000)" + known);
  EXPECT_EQ(error_of({.options = {2, 4, 1}}), unsupported + "options of kind 2, expected 1 ('y')");
  EXPECT_EQ(error_of({.offsets = {1, 1, 0}}),
            unsupported + "version 1 of metadata 'OfflineMemoryAllocation' ('y')");
  EXPECT_EQ(error_of({.offsets = {0, 7, 6, -1, -1, 0, 0, 16, 32}}),
            unsupported + "metadata 'OfflineMemoryAllocation' for 7 subgraphs, expected 1 ('y')");
  EXPECT_EQ(error_of({.offsets = {0, 1, 6, -1, -1, 64, 0, 16, 32}}),
            unsupported +
                "scratch memory (input 2) from byte 64 of the arena on, expected 0; compile the model again "
                "with Vela ('y')");
}

TEST(TfliteEthosu, PlacesThatOverlapAreInvalid) {
  const auto error = [](std::vector<int32_t> places) {
    std::vector<int32_t> offsets = {0, 1, 8, -1, -1, 0, 0};
    offsets.insert(offsets.end(), places.begin(), places.end());  // of x, y, x2, y2
    return error_of({.offsets = offsets, .has_seconds = true});
  };
  EXPECT_EQ(error({16, 16, 20, 32}), "imported");  // an output may be where an input was
  const std::string end = " of the program's memory, expected a place for each";
  EXPECT_NE(error({16, 32, 19, 40}).find("inputs 0 and 1 share byte 19" + end), std::string::npos)
      << error({16, 32, 19, 40});
  EXPECT_NE(error({16, 40, 20, 38}).find("results 0 and 1 share byte 40" + end), std::string::npos)
      << error({16, 40, 20, 38});
}

TEST(TfliteEthosu, DamagedFilesAreInvalid) {
  const std::string invalid = std::string("-48: ") + kPlace;
  EXPECT_EQ(error_of({.has_inputs = false}),
            invalid +
                "there are 4 inputs, expected a command stream, constants, scratch, fast scratch, and the "
                "network's");
  EXPECT_EQ(error_of({.payload = {1, 2, 3, 4, 5}}),
            invalid +
                "its command stream (input 0, 5 bytes) is damaged: a payload is a multiple of 4 bytes, "
                "found 5, expected 4; compile the model again with Vela");
  std::vector<uint8_t> wrong = default_payload();
  wrong[0] = 'X';
  EXPECT_EQ(
      error_of({.payload = wrong}),
      invalid +
          "its command stream (input 0, 36 bytes) is damaged: it begins with 0x31504f58, expected 'COP1' "
          "(0x31504f43); compile the model again with Vela");
  std::vector<uint8_t> truncated = default_payload();
  truncated.resize(truncated.size() - 4);
  EXPECT_EQ(error_of({.payload = truncated}),
            invalid +
                "its command stream (input 0, 32 bytes) is damaged: a command stream ends after its "
                "payload, found 1, expected 0; compile the model again with Vela");
  EXPECT_EQ(error_of({.offsets = {0, 1}}),
            invalid +
                "metadata 'OfflineMemoryAllocation' has 8 bytes, expected 4 bytes for each of three "
                "numbers and each tensor");
  EXPECT_EQ(error_of({.offsets = {0, 1, 6, 0}}),
            invalid + "metadata 'OfflineMemoryAllocation' has the places of 1 tensors, expected 6");
  EXPECT_EQ(error_of({.offsets = {0, 1, -1, 0}}),
            invalid + "metadata 'OfflineMemoryAllocation' has the places of 1 tensors, expected -1");
  for (const std::vector<int32_t>& offsets :
       {std::vector<int32_t>{0, 1, 6, -1, -1, 0, 0, -1, 32}, std::vector<int32_t>{0, 1, 4, -1, -1, 0, 0}}) {
    EXPECT_EQ(error_of({.offsets = offsets}),
              invalid + "metadata 'OfflineMemoryAllocation' does not say where tensor 4 'x' is in the arena");
  }
}

}  // namespace
}  // namespace qplan::tflite_test::tflite_ethosu_test
