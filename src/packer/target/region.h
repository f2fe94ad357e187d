// What a target's compiler makes of a region: a program for the device, and how the tensors at the region's
// border lie in the buffers that the program reads and writes.
#ifndef QPLAN_SRC_PACKER_TARGET_REGION_H_
#define QPLAN_SRC_PACKER_TARGET_REGION_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "format/plan_generated.h"
#include "src/packer/error.h"
#include "src/packer/ir/module.h"
#include "src/packer/target/target.h"

namespace qplan::target {

// Where the elements of a packed row-major tensor lie in a buffer: format/plan.fbs, NpuBind.
struct Arrangement {
  std::vector<uint64_t> strides;  // bytes, one per axis
  uint64_t origin = 0;            // byte of the first element
  uint64_t byte_stride = 1;       // between the bytes of one element
  uint64_t size = 0;              // bytes of the buffer
  uint8_t fill = 0;               // of an input: what all other bytes hold
  uint8_t flip = 0;               // xored to each byte of an element
  uint32_t block = 0;             // elements of the last axis in a block; 0: it is not divided
  uint64_t block_stride = 0;      // bytes, from each block to the next
  bool takes_any_fill = false;    // of an input: the program ignores all other bytes
  bool leaves_fill = false;       // of an output: all other bytes hold `fill` after a job

  // The packed tensor itself: the device can work on its bytes in place.
  bool is_packed(const ir::TensorType& type) const;
};
Arrangement packed_arrangement(const ir::TensorType& type);
// Whether a program reads a tensor as another program has left it. Elements of neither share bytes.
bool may_stay(const Arrangement& output, const Arrangement& input, const ir::TensorType& type);
// The offset after the last of the tensor's elements; nullopt where it does not fit into 64 bits.
std::optional<uint64_t> end_of_elements(const Arrangement& arrangement, const ir::TensorType& type);

struct RegionSlot {
  uint32_t slot = 0;
  format::NpuUse use = format::NpuUse_SCRATCH;
  uint32_t index = 0;       // of the parameter (INPUT) or result (OUTPUT) of the region's function
  Arrangement arrangement;  // SCRATCH: size alone
  uint32_t alignment = 64;  // bytes, of the buffer
  format::MemoryClass memory_class = format::MemoryClass_ANY;  // where it should be; not FLASH
};

// Estimated, of one composite (a node of the region's function).
struct UnitCycles {
  std::string name;
  uint64_t cycles = 0;
  uint64_t alu_instructions_per_tile = 0;  // 0 where there is no such thing
};

struct CompiledRegion {
  uint32_t format = 0;  // FourCC
  std::vector<uint8_t> blob;
  std::vector<RegionSlot> slots;
  uint64_t program_bytes = 0;
  uint64_t cycles = 0;  // estimated, from the first instruction to the last
  std::vector<UnitCycles> units;
  // False for a program that was compiled before: nobody knows operators that the CPU could run in its place.
  bool has_fallback = true;
  uint64_t macs = 0;    // of such a program: its operators do not say them
  std::string warning;  // what the user should know of the region, one line; "": nothing
  format::MemoryClass memory_class = format::MemoryClass_ANY;  // where the blob should be
};

// The program of a region's function.
struct RegionProgram {
  const ir::Function* function = nullptr;
  const CompiledRegion* code = nullptr;
};

// A program that the device cannot take.
struct ProgramRefusal {
  size_t program = 0;            // position in what was asked about
  std::optional<uint32_t> node;  // of its function, which is to blame; none: the region as a whole
  Reason reason;
};

// What every reader of plans relies on: each parameter and result in one slot, elements inside of their
// buffers, each slot once. PackError (QPLAN_INTERNAL) naming target and region: the target's compiler is
// wrong.
void check_region(const Target& target, const ir::Function& function, const CompiledRegion& region);

struct RefusedNode {
  uint32_t node = 0;  // of the region's function
  Reason reason;
};

// Thrown by a compiler that cannot take nodes of the region's function: the partition takes their units off
// the target, with these reasons, and tries again. Each try places the whole model: a compiler that continues
// after the first node that it refuses is called less often.
class RegionRefused : public PackError {
 public:
  RegionRefused(uint32_t node, Reason reason) : RegionRefused({{node, std::move(reason)}}) {}
  // At least one.
  explicit RegionRefused(std::vector<RefusedNode> nodes)
      : PackError(QPLAN_MODEL_UNSUPPORTED, nodes.at(0).reason.text), nodes_(std::move(nodes)) {}
  const std::vector<RefusedNode>& nodes() const { return nodes_; }

 private:
  std::vector<RefusedNode> nodes_;
};

// Attempts at the nodes of a region. A refusal of one node is kept, and the next node is tried.
class NodeAttempts {
 public:
  // The reason where a unit does not fit: its id, and what the user may do.
  NodeAttempts(std::string id, std::string hint) : id_(std::move(id)), hint_(std::move(hint)) {}

  // False: refused, by RegionRefused or by a PackError (QPLAN_MODEL_UNSUPPORTED), for a unit that does not
  // fit.
  bool attempt(uint32_t node, const std::function<void()>& run);
  // RegionRefused with all of them, where there are some.
  void check();

 private:
  std::string id_, hint_;
  std::vector<RefusedNode> refused_;
};

// A node of a region's function as the row of the target's table that takes it matches it: in the function of
// the composite that it calls, or by itself.
struct MatchedNode {
  size_t row = 0;  // of the table
  const ir::Node& node;
  const ir::Function& function;
  pattern::Pre pre;
  pattern::Matches matches;

  Candidate candidate() const { return {pre, matches}; }
  // The value of the region's function that a value of the match is; nullopt: a constant of the composite.
  std::optional<ir::ValueId> outer_value(ir::ValueId value) const;
};
// target: for messages. RegionRefused (<target>.region.unit) where the table has no row.
MatchedNode match_node(std::string_view target, std::span<const PatternRow> table, const ir::Module& module,
                       const ir::Function& region, uint32_t node);

}  // namespace qplan::target

#endif  // QPLAN_SRC_PACKER_TARGET_REGION_H_
