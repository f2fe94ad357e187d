// Weights that transfers copy to scratch memory before their kernels read them there, instead of in place.
#ifndef QPLAN_SRC_ETHOSU_COMPILER_WEIGHT_COPIES_H_
#define QPLAN_SRC_ETHOSU_COMPILER_WEIGHT_COPIES_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "src/ethosu/compiler/region.h"
#include "src/ethosu/compiler/stream_writer.h"

namespace qplan::ethosu::compiler {

// An operation of a region before its stream is written.
struct PlannedOperation {
  Operation operation;
  // The kernel for weights in scratch memory, where its block is another one.
  std::optional<Kernel> fast;
  size_t unit = 0;  // of the region's plan
  // Values that are in use from one of these nodes to the other keep their bytes: the operation's node, or
  // the nodes of its cascade.
  uint32_t first_node = 0, last_node = 0;
  bool is_in_cascade = false;

  // nullptr unless it is a convolution.
  const Kernel* convolution() const {
    const Kernel* const kernel = std::get_if<Kernel>(&operation);
    return kernel != nullptr && kernel->is_convolution() ? kernel : nullptr;
  }
  const Kernel& fast_kernel() const { return fast ? *fast : std::get<Kernel>(operation); }
};

// Weights and scales of a kernel's cores, which follow each other.
uint64_t weight_bytes(const Kernel& kernel);
// The kernel with them at a place.
Kernel with_weights_at(Kernel kernel, uint32_t region, uint64_t offset);

constexpr size_t kBeforeAll = SIZE_MAX;
// The weights of a unit.
struct WeightCopy {
  size_t unit = 0;
  size_t after = kBeforeAll;               // the transfer starts after this operation
  uint64_t offset = 0, bytes = 0;          // in scratch memory
  uint32_t first_node = 0, last_node = 0;  // while it is there
};

// The copies with which the region takes fewer cycles by the cost model, beside the values that are placed,
// in scratch memory of at most so many bytes. In the order of their transfers.
std::vector<WeightCopy> choose_weight_copies(const Config& config, const RegionPlan& plan,
                                             const Placement& placement,
                                             const std::vector<PlannedOperation>& operations,
                                             uint64_t scratch_bytes);

// Visits operations and copies in the order of the stream.
template <typename OnCopy, typename OnOperation>
void visit_stream(size_t operations, const std::vector<WeightCopy>& copies, const OnCopy& on_copy,
                  const OnOperation& on_operation) {
  size_t next = 0;
  // Copies before everything first: kBeforeAll + 1 is 0.
  for (size_t i = 0;; ++i) {
    while (next < copies.size() && copies[next].after + 1 == i) on_copy(copies[next++]);
    if (i == operations) return;
    on_operation(i);
  }
}

}  // namespace qplan::ethosu::compiler

#endif  // QPLAN_SRC_ETHOSU_COMPILER_WEIGHT_COPIES_H_
