// Under which conditions VTA computes a matched layer, to the bit: the rows of docs/supported_ops.md. Limits
// come from the fields of instructions, from the sizes of the memories, and from the ALU's sequence for TFL2.
//
// A condition is one row: id, requirement, hint, and what stands against it. It goes into the list of each
// composite that it holds for: weighted.cc has the layers of weights, alu.cc the other operators.
#ifndef QPLAN_SRC_VTA_COMPILER_CONSTRAINTS_CONSTRAINTS_H_
#define QPLAN_SRC_VTA_COMPILER_CONSTRAINTS_CONSTRAINTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "src/packer/target/target.h"
#include "src/vta/compiler/streams/layout.h"

namespace qplan::vta::compiler {

using target::append;
using target::Candidate;
using target::Constraint;
using target::kNothingToChange;
using target::kQuantizeTo8Bits;
using target::kRunThePasses;
using target::product;
using Rows = std::vector<Constraint>;

Rows conv2d_constraints(const Config& config);
Rows depthwise_constraints(const Config& config);
Rows dense_constraints(const Config& config);
// The same layers with int32 results, which the CPU requantises.
Rows conv2d_acc32_constraints(const Config& config);
Rows dense_acc32_constraints(const Config& config);
Rows add_constraints(const Config& config);
Rows max_pool2d_constraints(const Config& config);
Rows avg_pool2d_constraints(const Config& config);
Rows mean_constraints(const Config& config);
Rows clip_constraints(const Config& config);
Rows reshape_constraints(const Config& config);

// ---- what rows of several composites share

inline constexpr const char* kOtherMemories = "a configuration with larger memories takes it";

// The geometry of "product", "pool" or "mean". With an nn.pad before the layer, the input is the pad's
// result.
Geometry geometry_of(const Candidate& candidate);

// prefix: "vta.conv2d."
Constraint batch(const std::string& prefix);
// Rows of activations are reached by the 16-bit strides of LOAD and STORE.
Constraint row_stride(const std::string& prefix);
Constraint stride(const std::string& prefix, const Config& config);
// weight_bytes: in the device's layout.
Constraint buffers(const std::string& prefix, int64_t (*weight_bytes)(const Candidate&));
// What lets the device requantise the result of the node captured as `op`.
Rows requantization(const Config& config, const std::string& op);

}  // namespace qplan::vta::compiler

#endif  // QPLAN_SRC_VTA_COMPILER_CONSTRAINTS_CONSTRAINTS_H_
