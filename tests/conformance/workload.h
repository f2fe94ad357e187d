// Programs with known results: random layers in the blob format of the driver under test.
#ifndef QPLAN_TESTS_CONFORMANCE_WORKLOAD_H_
#define QPLAN_TESTS_CONFORMANCE_WORKLOAD_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "qplan/npu_target.h"

namespace qplan::conformance {

struct Slot {
  uint32_t slot = 0;
  uint32_t usage = 0;
  uint64_t bytes = 0;
  std::vector<uint8_t> content;  // of inputs
  // The tensor in it, where the program has one at its border, and how its packed bytes become the slot's.
  DLDataType dtype = {};
  std::vector<int64_t> shape = {};
  std::function<std::vector<uint8_t>(const std::vector<uint8_t>&)> arrange = nullptr;  // null: as they are
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
  // The blob with its checksum made right again: for damage that only the reader's rules can find. Null of
  // formats that this program does not know; they have no offsets either.
  std::function<void(std::vector<uint8_t>*)> seal;
  size_t header_bytes = 0, version_offset = 0, hash_offset = 0;
};

// What `supported` has against an operator; "": it takes it. Failed for a status that is no answer.
using Ask = std::function<std::string(const qplan_npu_op&)>;
// kEndless: one operator, or one instruction, that takes a minute or more; nothing is expected of its output.
enum class Size { kSmall, kRandom, kLong, kEndless };

// The device that workloads are drawn for.
struct Source {
  const qplan_npu_capabilities& capabilities;
  Ask ask;
  const qplan_npu_target* target = nullptr;  // the packer's side of the same library; null: it has none
  uint64_t config = 0;                       // of the target
};
// The same seed gives the same workload. Kinds, contracts and shapes are drawn until the device takes one.
// Skipped, with what it said of the last, where it takes none, and where this program cannot write for its
// blob formats.
Workload make_workload(const Source& source, Size size, uint32_t seed);

// oplist_workload.cc, vta_workload.cc, ethosu_workload.cc
Workload make_oplist_workload(const Source& source, Size size, uint32_t seed);
Workload make_vta_workload(const qplan_npu_capabilities& capabilities, Size size, uint32_t seed);
Workload make_ethosu_workload(const qplan_npu_capabilities& capabilities, Size size, uint32_t seed);

// The contracts of operators that are drawn: all that there are.
inline constexpr uint32_t kDrawnContracts =
    QPLAN_NPU_TFL2 | QPLAN_NPU_TFL1 | QPLAN_NPU_F32E | QPLAN_NPU_ACC32;
// Any operators at all, whatever a device takes; parameters have data. text: for messages.
using See = std::function<void(const qplan_npu_op& op, const std::string& text)>;
void see_random_operators(uint32_t count, uint32_t seed, const See& see);

// ---- native_workload.cc: formats of the device's own, by the target's `compile`
// Whether the target writes a format that the device takes.
bool has_compiler(const Source& source);
// "" or why the target refuses to say how much scratch the list's program needs. Call it where it asks for
// any.
std::string scratch_of(const Source& source, const Workload& list, uint64_t* bytes);
// Arranges the tensors at the border of a list as the target's `layout` says, which changes their slots.
void ask_arrangements(const Source& source, Workload* list);
// "" or why the compiler refuses the list.
std::string compile_native(const Source& source, const Workload& list, Workload* native);
// The workload of a list, with the blob of its native form.
void become_native(Workload native, Workload* workload);

// The operator by plain loops, on data; the output's bytes are written.
void compute_reference(const qplan_npu_op& op);

}  // namespace qplan::conformance

#endif  // QPLAN_TESTS_CONFORMANCE_WORKLOAD_H_
