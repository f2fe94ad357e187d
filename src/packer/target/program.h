// A lowered function: tensors and steps as the plan will hold them, before memory is planned.
#ifndef QPLAN_SRC_PACKER_TARGET_PROGRAM_H_
#define QPLAN_SRC_PACKER_TARGET_PROGRAM_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "format/plan_generated.h"
#include "src/packer/ir/types.h"

namespace qplan::target {

using TensorId = uint32_t;
using Bytes = std::shared_ptr<const std::vector<uint8_t>>;

struct Quantization {
  std::vector<float> scales;  // empty: not quantised
  std::vector<int32_t> zero_points;
  int32_t axis = 0;
  bool operator==(const Quantization&) const = default;
};

struct ProgramTensor {
  ir::TensorType type;
  std::string name;
  Bytes constant;  // null for activations
  Quantization quantization;

  bool is_constant() const { return constant != nullptr; }
};

// Writes the table of a step's parameters.
using ParamsWriter = std::function<flatbuffers::Offset<void>(flatbuffers::FlatBufferBuilder& builder)>;

struct ProgramStep {
  uint16_t kernel = 0;  // kernels.def
  std::vector<TensorId> inputs;
  std::vector<TensorId> outputs;
  format::KernelParams params_type = format::KernelParams_NONE;
  ParamsWriter write_params;
  uint64_t macs = 0;
  std::string name;  // of the source operator
};

struct Program {
  std::string name;  // of the function: "main"
  std::vector<ProgramTensor> tensors;
  std::vector<ProgramStep> steps;  // in the order of execution; each activation is written by one step
  std::vector<TensorId> inputs;    // activations, all different
  std::vector<TensorId> outputs;   // activations
};

}  // namespace qplan::target

#endif  // QPLAN_SRC_PACKER_TARGET_PROGRAM_H_
