// Weights that transfers copy to scratch memory before their kernels read them there, instead of in place.
#ifndef QPLAN_SRC_ETHOSU_COMPILER_WEIGHT_COPIES_H_
#define QPLAN_SRC_ETHOSU_COMPILER_WEIGHT_COPIES_H_

#include <cstddef>
#include <cstdint>
#include <map>
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
  // The same layer as kernels for some channels each.
  std::vector<std::vector<Kernel>> slicings;
};

// Weights and scales of a kernel's cores, which follow each other.
uint64_t weight_bytes(const Kernel& kernel);
// The kernel with them at a place.
Kernel with_weights_at(Kernel kernel, uint32_t region, uint64_t offset);

constexpr size_t kBeforeAll = SIZE_MAX, kWhole = SIZE_MAX;
// The weights of a unit, in scratch memory.
struct WeightCopy {
  size_t unit = 0;
  size_t after = kBeforeAll;  // the first transfer starts after this operation
  uint64_t offset = 0, bytes = 0;
  uint32_t first_node = 0, last_node = 0;  // while it is there
  // Which of the operation's slicings runs: its kernels' weights take the two halves of the memory in turn,
  // each copied while the kernel before it runs.
  size_t slicing = kWhole;

  uint64_t slice_offset(size_t slice) const {
    return slicing == kWhole ? offset : offset + slice % 2 * (bytes / 2);
  }
};
// The kernel that reads a copy, before its weights are there.
const Kernel& sliced_kernel(const PlannedOperation& planned, const WeightCopy& copy, size_t slice);

// The copies with which the region takes fewer cycles by the cost model, beside the values that are placed,
// in scratch memory of at most so many bytes. In the order of their transfers.
std::vector<WeightCopy> choose_weight_copies(const Config& config, const RegionPlan& plan,
                                             const Placement& placement,
                                             const std::vector<PlannedOperation>& operations,
                                             uint64_t scratch_bytes);

// Visits what the stream has, in its order: on_transfer(copy, slice) and on_operation(operation, copy or
// null, slice).
template <typename OnTransfer, typename OnOperation>
void visit_stream(const std::vector<PlannedOperation>& operations, const std::vector<WeightCopy>& copies,
                  const OnTransfer& on_transfer, const OnOperation& on_operation) {
  std::map<size_t, const WeightCopy*> of_units;
  for (const WeightCopy& copy : copies) of_units[copy.unit] = &copy;
  size_t next = 0;
  // Copies before everything first: kBeforeAll + 1 is 0.
  for (size_t i = 0;; ++i) {
    while (next < copies.size() && copies[next].after + 1 == i) on_transfer(copies[next++], 0);
    if (i == operations.size()) return;
    const PlannedOperation& planned = operations[i];
    const auto found = planned.convolution() == nullptr ? of_units.end() : of_units.find(planned.unit);
    const WeightCopy* const copy = found == of_units.end() ? nullptr : found->second;
    const bool is_sliced = copy != nullptr && copy->slicing != kWhole;
    const size_t slices = is_sliced ? planned.slicings[copy->slicing].size() : 1;
    for (size_t slice = 0; slice < slices; ++slice) {
      on_operation(i, copy, slice);
      if (slice + 1 < slices) on_transfer(*copy, slice + 1);
    }
  }
}

}  // namespace qplan::ethosu::compiler

#endif  // QPLAN_SRC_ETHOSU_COMPILER_WEIGHT_COPIES_H_
