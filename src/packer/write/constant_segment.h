// Where each constant lies in the plan's constant bank: equal contents lie there once.
#ifndef QPLAN_SRC_PACKER_WRITE_CONSTANT_SEGMENT_H_
#define QPLAN_SRC_PACKER_WRITE_CONSTANT_SEGMENT_H_

#include <cstdint>
#include <vector>

#include "src/packer/target/program.h"

namespace qplan::write {

struct ConstantSegment {
  static constexpr uint64_t kAlignment = 64;

  std::vector<uint64_t> offsets;               // per tensor of the program; 0 for activations
  std::vector<target::TensorId> first_tensor;  // one tensor per distinct content, by rising offset
  uint64_t size = 0;                           // bytes
};

ConstantSegment lay_out_constants(const target::Program& program);

}  // namespace qplan::write

#endif  // QPLAN_SRC_PACKER_WRITE_CONSTANT_SEGMENT_H_
