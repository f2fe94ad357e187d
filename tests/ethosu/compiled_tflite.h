// Small .tflite files in the form in which Arm's compiler leaves them, custom operators `ethos-u` beside
// others, made of what this project's compiler makes of their parts. The same networks as plain .tflite files
// say what they compute.
#ifndef QPLAN_TESTS_ETHOSU_COMPILED_TFLITE_H_
#define QPLAN_TESTS_ETHOSU_COMPILED_TFLITE_H_

#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "src/ethosu/compiler/target.h"
#include "src/ethosu/isa/blob.h"
#include "src/packer/inspect/inspect.h"
#include "tests/models/model_session.h"
#include "tests/packer/import/tflite_builder.h"

namespace qplan::ethosu::testing {

using tflite_test::TensorSpec;
using tflite_test::TfliteBuilder;

// A region's command stream as Arm's compiler has it: constants are region 0, everything else is in region 1.
struct ArmProgram {
  std::vector<uint8_t> payload, constants;
  uint64_t memory_bytes = 0;
  std::vector<uint64_t> input_offsets, output_offsets;
};

// The stream's maps in region 1: `places` has where our regions are in it.
inline std::vector<uint32_t> in_one_region(const std::vector<uint32_t>& words,
                                           const std::vector<uint64_t>& places) {
  struct Map {
    uint16_t region_code, base_code;
    std::optional<uint16_t> region = std::nullopt;
    uint64_t base = 0;
  };
  std::vector<Map> maps = {{kIfmRegion, kIfmBase0}, {kOfmRegion, kOfmBase0}, {kIfm2Region, kIfm2Base0}};
  std::vector<uint32_t> result;
  const auto write = [&](const Command& command) {
    uint32_t encoded[2];
    const uint32_t count = encode(command, encoded);
    result.insert(result.end(), encoded, encoded + count);
  };
  for (uint32_t at = 0; at < words.size();) {
    Command command;
    if (decode(words.data(), static_cast<uint32_t>(words.size()), &at, &command))
      throw std::runtime_error("a stream that cannot be decoded");
    bool is_kept = true;
    for (Map& map : maps) {
      if (command.starts_kernel() && map.region) {
        write({map.region_code, false, 1, 0});
        write({map.base_code, true, 0, static_cast<uint32_t>(map.base + places.at(*map.region))});
      }
      if (!command.has_payload && command.code == map.region_code) map.region = command.parameter;
      if (command.has_payload && command.code == map.base_code) map.base = command.payload;
      is_kept = is_kept && command.code != (command.has_payload ? map.base_code : map.region_code);
    }
    if (is_kept) write(command);
  }
  return result;
}

// source: a .tflite file all of which goes to the device, as one region. It uses the memory from `begin` on,
// a multiple of 16.
inline ArmProgram arm_program(const std::vector<uint8_t>& source, const Config& config, uint64_t begin = 0) {
  const std::vector<uint8_t> plan =
      qplan::testing::pack_bytes(source, "part.tflite", (std::string(config.name) + ", cpu").c_str());
  const inspect::PlanReader reader(plan);
  const format::NpuStep* const step = reader.view().npu_step(0);
  if (step == nullptr) throw std::runtime_error("a part that is not on the device");
  const auto* const bytes = static_cast<const uint8_t*>(reader.view().constant_data(step->blob()));
  Blob blob;
  qplan_npu_reason why = {};
  if (read_blob(bytes, reader.view().tensor(step->blob()).size(), config, &blob, &why) != QPLAN_NPU_OK)
    throw std::runtime_error(why.text);
  ArmProgram program;
  program.memory_bytes = begin;
  std::vector<uint64_t> places;
  for (uint32_t r = 0; r < blob.header.num_regions; ++r) {
    const BlobRegion region = blob_region(blob, r);
    places.push_back(program.memory_bytes);
    // Another region of constants has no bytes.
    if (region.kind == static_cast<uint32_t>(RegionKind::kConstants)) {
      if (r == 0)
        program.constants.assign(bytes + region.data_offset, bytes + region.data_offset + region.bytes);
    } else {
      program.memory_bytes += (region.bytes + 15) / 16 * 16;
    }
  }
  for (uint32_t s = 0; s < blob.header.num_slots; ++s) {
    const BlobSlot slot = blob_slot(blob, s);
    const uint64_t offset = places.at(slot.region) + slot.offset;
    if (slot.usage == QPLAN_NPU_USE_INPUT) program.input_offsets.push_back(offset);
    if (slot.usage == QPLAN_NPU_USE_OUTPUT) program.output_offsets.push_back(offset);
  }
  std::vector<uint32_t> words;
  for (uint32_t i = 0; i < blob.payload.stream_words; ++i)
    words.push_back(load_word(blob.payload.stream + uint64_t{i} * 4));
  program.payload = compiler::payload_of(config, in_one_region(words, places));
  return program;
}

// A network's file, operator by operator; programs as Arm's compiler writes them.
class CompiledTflite {
 public:
  TfliteBuilder& builder() { return builder_; }

  void program(const ArmProgram& program, const std::vector<int32_t>& inputs,
               const std::vector<int32_t>& outputs) {
    const auto bytes = [&](const std::string& name, const std::vector<uint8_t>& data) {
      return builder_.tensor({.name = name,
                              .type = tflite::TensorType_UINT8,
                              .shape = {static_cast<int32_t>(data.size())},
                              .data = data});
    };
    const auto memory = [&](const std::string& name) {
      const int32_t tensor = builder_.tensor({.name = name,
                                              .type = tflite::TensorType_UINT8,
                                              .shape = {static_cast<int32_t>(program.memory_bytes)}});
      offsets_[tensor] = 0;
      return tensor;
    };
    std::vector<int32_t> operands = {bytes("command_stream", program.payload),
                                     bytes("flash", program.constants)};
    operands.push_back(memory("scratch"));
    operands.push_back(memory("scratch_fast"));
    for (size_t i = 0; i < inputs.size(); ++i) {
      operands.push_back(inputs[i]);
      offsets_[inputs[i]] = program.input_offsets.at(i);
    }
    for (size_t o = 0; o < outputs.size(); ++o) offsets_[outputs[o]] = program.output_offsets.at(o);
    builder_.op(tflite::BuiltinOperator_CUSTOM, operands, outputs, tflite::BuiltinOptions_NONE, 0, "ethos-u",
                {1, 4, 1});
    for (const auto& tensors : {operands, outputs}) {
      for (const int32_t t : tensors) num_tensors_ = std::max(num_tensors_, static_cast<size_t>(t) + 1);
    }
  }

  // A tensor has one place: programs that share one must have it at the same offset.
  std::vector<uint8_t> finish(const std::vector<int32_t>& inputs, const std::vector<int32_t>& outputs) {
    std::vector<int32_t> words = {0, 1, static_cast<int32_t>(num_tensors_)};
    for (size_t t = 0; t < num_tensors_; ++t) {
      const auto found = offsets_.find(static_cast<int32_t>(t));
      words.push_back(found == offsets_.end() ? -1 : static_cast<int32_t>(found->second));
    }
    builder_.metadata("OfflineMemoryAllocation", tflite_test::bytes_of(words));
    return builder_.finish(inputs, outputs);
  }

 private:
  TfliteBuilder builder_;
  std::map<int32_t, uint64_t> offsets_;
  size_t num_tensors_ = 0;
};

}  // namespace qplan::ethosu::testing

#endif  // QPLAN_TESTS_ETHOSU_COMPILED_TFLITE_H_
