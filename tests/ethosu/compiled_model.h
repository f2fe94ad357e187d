// A .tflite that Arm's compiler has compiled: its command stream, its memories, and where inputs and outputs
// are in them.
#ifndef QPLAN_TESTS_ETHOSU_COMPILED_MODEL_H_
#define QPLAN_TESTS_ETHOSU_COMPILED_MODEL_H_

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "src/ethosu/isa/architecture.h"
#include "src/ethosu/sim/machine.h"
#include "src/packer/import/tflite/tflite_subset_generated.h"
#include "tests/ethosu/compiler/simulate.h"
#include "tests/models/golden_data.h"

namespace qplan::ethosu::testing {

namespace tflite = qplan::tflite;

struct CompiledModel {
  // An input or output of the network, in region 1.
  struct Tensor {
    uint64_t offset = 0, bytes = 0;
  };
  std::vector<uint8_t> payload, constants;
  uint64_t arena_bytes = 0, fast_bytes = 0;
  std::vector<Tensor> inputs, outputs;
};

inline CompiledModel read_compiled_model(const std::vector<uint8_t>& file) {
  const tflite::Model* const model = tflite::GetModel(file.data());
  const tflite::SubGraph* const graph = model->subgraphs()->Get(0);
  if (graph->operators()->size() != 1) throw std::runtime_error("more than one operator");
  const tflite::Operator* const op = graph->operators()->Get(0);
  const auto tensor = [&](int32_t t) { return graph->tensors()->Get(static_cast<uint32_t>(t)); };
  const auto data = [&](int32_t t) {
    const auto* const bytes = model->buffers()->Get(tensor(t)->buffer())->data();
    return bytes == nullptr ? std::vector<uint8_t>() : std::vector<uint8_t>(bytes->begin(), bytes->end());
  };
  const auto bytes_of = [&](int32_t t) {
    uint64_t bytes = 1;
    for (const int32_t extent : *tensor(t)->shape()) bytes *= static_cast<uint64_t>(extent);
    switch (tensor(t)->type()) {
      case tflite::TensorType_INT16:
        return bytes * 2;
      case tflite::TensorType_INT32:
        return bytes * 4;
      default:
        return bytes;
    }
  };
  std::vector<int32_t> offsets;
  for (const tflite::Metadata* const entry : *model->metadata()) {
    if (entry->name()->str() != "OfflineMemoryAllocation") continue;
    const auto* const words = model->buffers()->Get(entry->buffer())->data();
    for (uint32_t at = 12; at + 4 <= words->size(); at += 4)
      offsets.push_back(static_cast<int32_t>(load_word(words->data() + at)));
  }
  CompiledModel result;
  result.payload = data(op->inputs()->Get(0));
  result.constants = data(op->inputs()->Get(1));
  result.arena_bytes = bytes_of(op->inputs()->Get(2));
  result.fast_bytes = bytes_of(op->inputs()->Get(3));
  const auto place = [&](int32_t t) {
    const CompiledModel::Tensor at = {static_cast<uint64_t>(offsets.at(static_cast<size_t>(t))), bytes_of(t)};
    result.arena_bytes = std::max(result.arena_bytes, at.offset + at.bytes);
    return at;
  };
  for (const int32_t t : *graph->inputs()) result.inputs.push_back(place(t));
  for (const int32_t t : *graph->outputs()) result.outputs.push_back(place(t));
  return result;
}

struct CompiledRun {
  sim::Outcome outcome;
  std::vector<std::vector<uint8_t>> outputs;
};

// Region 0 is constant; what nobody wrote in the others is undefined.
inline CompiledRun run_compiled(const CompiledModel& model, const std::vector<std::vector<uint8_t>>& inputs) {
  Payload payload;
  if (const Problem p = read_payload(model.payload.data(), model.payload.size(), &payload))
    throw std::runtime_error(p.text);
  const Config* const config = find_config_word(payload.config_word);
  if (config == nullptr) throw std::runtime_error("an unknown configuration");
  std::vector<uint8_t> constants = model.constants, arena(model.arena_bytes, 0xa5),
                       fast(model.fast_bytes, 0xa5);
  sim::Memory memory(*config);
  memory.set_region(0, constants.data(), constants.size(), false, true);
  memory.set_region(1, arena.data(), arena.size(), true, false);
  memory.set_region(2, fast.data(), fast.size(), true, false);
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].size() != model.inputs.at(i).bytes) throw std::runtime_error("an input of another size");
    memory.define(1, model.inputs[i].offset, inputs[i].data(), inputs[i].size());
  }
  sim::Machine machine(*config, &memory);
  CompiledRun run;
  run.outcome = machine.run(stream_words(payload));
  for (const CompiledModel::Tensor& output : model.outputs) {
    const auto begin = arena.begin() + static_cast<int64_t>(output.offset);
    run.outputs.emplace_back(begin, begin + static_cast<int64_t>(output.bytes));
  }
  return run;
}

// The files of ../shared/ethosu.
struct CompiledFile {
  std::string name, accelerator;
  std::filesystem::path path, source;
  std::vector<std::filesystem::path> cases;  // folders with input0.bin and output0.bin
  // Estimated by Arm's compiler: of the device, and with its memories.
  uint64_t cycles = 0, total_cycles = 0;
};

inline std::vector<CompiledFile> compiled_files() {
  const std::filesystem::path shared = qplan::testing::shared_directory();
  std::ifstream index(shared / "ethosu" / "index.json");
  std::vector<CompiledFile> files;
  if (!index) return files;
  const nlohmann::json all = nlohmann::json::parse(index);
  for (const nlohmann::json& entry : all.at("files")) {
    CompiledFile file;
    file.name = entry.at("file");
    file.accelerator = entry.value("accelerator", "");
    file.path = shared / "ethosu" / file.name;
    file.cycles = entry.value("vela_npu_cycles", uint64_t{0});
    file.total_cycles = entry.value("vela_total_cycles", uint64_t{0});
    const auto path_of = [&](const std::string& path) {
      return path.starts_with("shared/") ? shared / path.substr(7) : shared / "ethosu" / path;
    };
    file.source = path_of(entry.value("source", ""));
    for (const std::string folder : entry.at("cases")) file.cases.push_back(path_of(folder));
    files.push_back(std::move(file));
  }
  return files;
}

}  // namespace qplan::ethosu::testing

#endif  // QPLAN_TESTS_ETHOSU_COMPILED_MODEL_H_
