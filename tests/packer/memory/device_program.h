// Programs with regions on a device, and the plan of their memory.
#ifndef QPLAN_TESTS_PACKER_MEMORY_DEVICE_PROGRAM_H_
#define QPLAN_TESTS_PACKER_MEMORY_DEVICE_PROGRAM_H_

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <utility>

#include "src/packer/memory/arena.h"

namespace qplan::testing {

// Tensors of 64 bytes and a device; no steps.
inline target::Program device_program(std::initializer_list<const char*> tensors) {
  target::Program program;
  program.devices.push_back({"toy", "", 0});
  for (const char* name : tensors) {
    target::ProgramTensor& tensor = program.tensors.emplace_back();
    tensor.type.dtype = ir::kInt8;
    tensor.type.shape.push_back(64);
    tensor.name = name;
  }
  return program;
}

// From one tensor to one other.
inline std::shared_ptr<target::NpuRegion> device_region(const target::Arrangement& arrangement) {
  auto region = std::make_shared<target::NpuRegion>();
  region->slots = {{0, format::NpuUse_INPUT, 0, arrangement, 64},
                   {1, format::NpuUse_OUTPUT, 0, arrangement, 64}};
  return region;
}

// region: none for a step of the CPU.
inline void add_step(target::Program* program, uint32_t from, uint32_t to,
                     std::shared_ptr<const target::NpuRegion> region = nullptr) {
  target::ProgramStep step;
  step.inputs = {from};
  step.outputs = {to};
  step.npu = std::move(region);
  program->steps.push_back(std::move(step));
}

inline memory::Arena plan_memory(const target::Program& program) {
  return memory::plan_arena(program, {[](uint32_t, uint32_t, uint32_t) { return true; }, nullptr}, 0);
}

}  // namespace qplan::testing

#endif  // QPLAN_TESTS_PACKER_MEMORY_DEVICE_PROGRAM_H_
