#include "src/packer/schedule/program_tensors.h"

#include <memory>
#include <utility>

namespace qplan::schedule {
namespace {

using target::ProgramStep;
using target::TensorId;

void renumber(const std::vector<TensorId>& number, std::vector<TensorId>* tensors) {
  for (TensorId& tensor : *tensors) {
    if (tensor < target::kFirstTile) tensor = number[tensor];
  }
}

}  // namespace

void renumber_step(const std::vector<TensorId>& number, ProgramStep* step) {
  renumber(number, &step->inputs);
  renumber(number, &step->outputs);
  for (ProgramStep& stage : step->stages) renumber_step(number, &stage);
}

void drop_tensors(const std::vector<bool>& is_dropped, target::Program* program) {
  std::vector<TensorId> number(program->tensors.size(), 0);
  std::vector<target::ProgramTensor> kept;
  for (size_t t = 0; t < program->tensors.size(); ++t) {
    number[t] = static_cast<TensorId>(kept.size());
    if (!is_dropped[t]) kept.push_back(std::move(program->tensors[t]));
  }
  program->tensors = std::move(kept);
  renumber(number, &program->inputs);
  renumber(number, &program->outputs);
  for (ProgramStep& step : program->steps) {
    renumber_step(number, &step);
    if (step.npu == nullptr) continue;
    auto region = std::make_shared<target::NpuRegion>(*step.npu);
    region->blob = number[region->blob];
    step.npu = std::move(region);
  }
}

}  // namespace qplan::schedule
