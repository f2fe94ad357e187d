// Programs with known results: random layers in the blob format of the driver under test.
#ifndef QPLAN_TESTS_CONFORMANCE_WORKLOAD_H_
#define QPLAN_TESTS_CONFORMANCE_WORKLOAD_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "qplan/npu_driver.h"

namespace qplan::conformance {

struct Slot {
  uint32_t slot = 0;
  uint32_t usage = 0;
  uint64_t bytes = 0;
  std::vector<uint8_t> content;  // of inputs
};

struct Workload {
  std::string text;  // "conv2d 5x7x3 -> 3x3x8, tfl2": for messages
  uint32_t format = 0;
  std::vector<uint8_t> blob;
  std::vector<Slot> slots;  // those that are bound
  size_t output = 0;        // position in slots
  // Output bytes of the device as those of the packed tensor.
  std::function<std::vector<uint8_t>(const std::vector<uint8_t>&)> unpack;
  std::vector<uint8_t> expected;
  // The blob with its checksum made right again: for damage that only the reader's rules can find.
  std::function<void(std::vector<uint8_t>*)> seal;
  size_t header_bytes = 0, version_offset = 0, hash_offset = 0;
};

using Ask = std::function<bool(const qplan_npu_op&)>;
// kEndless: one operator, or one instruction, that takes a minute or more; nothing is expected of its output.
enum class Size { kSmall, kRandom, kLong, kEndless };
// The same seed gives the same workload. Operators that `ask` refuses are not used. Skipped where this
// program cannot write for the driver's blob formats, or for what it assumes of its device.
Workload make_workload(const qplan_npu_capabilities& capabilities, const Ask& ask, Size size, uint32_t seed);

// oplist_workload.cc, vta_workload.cc
Workload make_oplist_workload(const qplan_npu_capabilities& capabilities, const Ask& ask, Size size,
                              uint32_t seed);
Workload make_vta_workload(const qplan_npu_capabilities& capabilities, Size size, uint32_t seed);

// The operator by plain loops, on data; the output's bytes are written.
void compute_reference(const qplan_npu_op& op);

}  // namespace qplan::conformance

#endif  // QPLAN_TESTS_CONFORMANCE_WORKLOAD_H_
