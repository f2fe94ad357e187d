// Conditions under which a target takes what a row of its table matched, and what a user reads where one does
// not hold.
#ifndef QPLAN_SRC_PACKER_TARGET_TARGET_H_
#define QPLAN_SRC_PACKER_TARGET_TARGET_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "qplan/npu_target.h"
#include "src/base/checked.h"
#include "src/packer/ir/module.h"
#include "src/packer/layer/quantized_layer.h"
#include "src/packer/pattern/pattern.h"
#include "src/packer/target/profile.h"

namespace qplan::target {

// Why a target does not take something.
struct Reason {
  std::string id;    // stable: "npu.conv2d.groups"
  std::string text;  // what was found and what the limit is
  std::string hint;  // what the user may do about it
  bool operator==(const Reason&) const = default;
};

// One condition on what a row matched. It speaks for itself: where what it looks at cannot be read because
// another condition is violated, it has nothing to say.
template <typename Match>
struct ConstraintOn {
  std::string id;           // "npu.conv2d.groups"
  std::string requirement;  // for docs/supported_ops.md: "one group"
  std::string hint;
  // What stands against it, with the actual value and the limit; empty: it holds.
  std::function<std::string(const Match&)> violation;
};

// Hints of conditions that several targets have.
inline constexpr const char* kNothingToChange = "nothing to change in the model";
inline constexpr const char* kQuantizeTo8Bits = "quantise the model to 8-bit integers";
inline constexpr const char* kRunThePasses =
    "the packer's passes bring models into this form; do not skip any of them";

// All reasons against a match, in the order of the constraints; empty: the target takes it.
template <typename Match>
std::vector<Reason> reasons_against(std::span<const ConstraintOn<Match>> constraints, const Match& match) {
  std::vector<Reason> reasons;
  for (const ConstraintOn<Match>& constraint : constraints) {
    std::string text = constraint.violation(match);
    if (!text.empty()) reasons.push_back({constraint.id, std::move(text), constraint.hint});
  }
  return reasons;
}

// "softmax" of "qnn.softmax": ids say what is done, not in which dialect.
inline std::string_view plain_operator_name(std::string_view op) {
  const size_t dot = op.rfind('.');
  return dot == std::string_view::npos ? op : op.substr(dot + 1);
}

// What a target is to the packer: a description of a device that nodes can be placed on. All of it is data,
// so that a device comes from the packer's own list, from a file or from outside the tree in the same way: a
// name, a priority, an ordered table of patterns with the constraints under which the device executes them
// exactly, and what things cost.

inline constexpr int32_t kCpuPriority = 50;
inline constexpr int32_t kNpuPriority = 500;

// What the cost gate and explain reckon with. All positive.
struct DeviceCosts {
  uint64_t clock_khz = 100'000;
  uint64_t dma_bytes_per_cycle = 8;
  uint64_t dma_latency_cycles = 64;
  uint64_t macs_per_cycle = 256;
  // Energy of a multiply-accumulate with its operands from local memory, and of a byte from or to the memory
  // of the system. Figures for 45 nm of M. Horowitz, "Computing's energy problem", ISSCC 2014: 0.2 pJ for an
  // 8-bit product, 0.1 pJ for a 32-bit sum, 20 pJ for 8 bytes of a 32 KB memory (of which one byte of weights
  // for each product), 1.3 nJ for 8 bytes of DRAM.
  uint64_t fj_per_mac = 2'800;
  uint64_t fj_per_byte = 162'500;
};
// What a pattern matched: the nodes that would become one composite.
struct Candidate {
  const pattern::Pre& pre;
  const pattern::Matches& matches;

  const ir::Function& function() const { return pre.function(); }
  std::span<const uint32_t> nodes() const { return matches.nodes(); }
  const ir::Node& root() const { return function().nodes()[nodes().back()]; }
  // The node that makes the value matched as `name`; null where the pattern left it out.
  const ir::Node* node(std::string_view name) const;
  // The name of an operator, other than qnn.requantize, that reads the layer's accumulators; "" if there is
  // none. The CPU has a kernel on accumulators for qnn.requantize alone. Results of the function do not
  // count.
  std::string reader_besides_requantize() const;
  // The layer of a candidate with a "product". The first call reads it.
  const layer::QuantizedLayer& layer() const;

  mutable std::shared_ptr<const layer::QuantizedLayer> read_layer = nullptr;
};

// One condition of a pattern. Its `violation` is null where the row judges.
using Constraint = ConstraintOn<Candidate>;
void append(std::vector<Constraint>* constraints, std::vector<Constraint> more);
// Saturating product of extents.
template <typename... Factors>
int64_t product(Factors... factors) {
  int64_t result = 1;
  const auto times = [&](int64_t factor) {
    if (!checked_mul(result, factor, &result)) result = INT64_MAX;
  };
  (times(factors), ...);
  return result;
}

struct PatternRow {
  // The name of the composite ("qplan.qconv2d"), whose nodes become a function of their own, or of an
  // operator ("nn.bias_add"), whose node is in a region unchanged.
  std::string name;
  std::string summary;  // for docs/supported_ops.md: what it is, and its operators
  pattern::Pattern pattern;
  std::vector<Constraint> constraints;
  // Cycles of the device from memory to memory, without what crosses a region's boundary.
  std::function<uint64_t(const Candidate&, const DeviceCosts&)> cycles;
  // Set by targets that answer for all constraints at once: the reason against each of them, in their order.
  std::function<std::vector<std::string>(const Candidate&)> judge = {};
  // What it takes is a region of its own, and no cost gate takes it off the device: a program that is
  // compiled already. The operator may have several results.
  bool is_program = false;

  // All reasons against the candidate, in the order of the constraints; empty: the target takes it.
  std::vector<Reason> check(const Candidate& candidate) const;
  bool is_operator() const;
};

// region.h
struct CompiledRegion;
struct RegionProgram;
struct ProgramRefusal;

struct Target {
  std::string name;     // [a-z][a-z0-9_]*: "npu"
  std::string options;  // canonical, in a fixed order: "sram=quarter,mul=on"
  int32_t priority = kNpuPriority;
  bool is_cpu = false;
  TargetProfile profile;  // of the CPU
  CpuCosts cpu_costs;     // of the CPU
  DeviceCosts costs;      // of others
  // What the buffers that a plan has in this device's memory may take together: the runtime allocates them as
  // one. 0: no limit.
  uint64_t max_bank_bytes = 0;
  // Buffers of a region, which one job binds; 0: as many as a plan's step can have.
  uint32_t max_binds = 0;
  // Its tensors' channels are multiples of it.
  uint32_t channel_multiple = 1;
  // The first row that takes a node wins. The CPU takes all nodes; its table, without constraints, says what
  // its kernels compute in one go.
  std::vector<PatternRow> table;
  // The program of a region: a function of the partitioned module, whose nodes are this target's operators
  // and calls of composites. RegionRefused (region.h) for a node that it cannot take; null: targets that only
  // try placements.
  std::function<CompiledRegion(const ir::Module& module, const ir::Function& region)> compile;
  // Asks the device about the programs of all its regions, when nothing else stands against them. Returns
  // those that it refuses. null: nobody is asked.
  std::function<std::vector<ProgramRefusal>(std::span<const RegionProgram> programs)> load;
  // For operators that no row contains, after "operator qnn.softmax": the reason, and a hint.
  std::string no_row_text = "is not known to this target";
  std::string no_row_hint;
};

// ---- targets by name

// A memory whose size a target file may set, in elements.
struct MemoryKey {
  const char* name;
  uint64_t max_elements;
};
// The sizes of a target's memories that a target file sets.
using MemorySizes = std::vector<std::pair<std::string, uint64_t>>;

// A target of the packer's own. The list of them is made where the packer is put together
// (pipeline/pipeline.h): nothing here knows a device by name.
struct TargetKind {
  std::string_view name;  // "npu"
  std::span<const MemoryKey> memories;
  // memories: in place of what the options say of them. PackError (QPLAN_INVALID_ARGUMENT).
  Target (*make)(const TargetOptions& options, const std::optional<MemorySizes>& memories);
  // Its section of docs/supported_ops.md.
  std::string (*page)();
};

// A target from outside the tree (external/external.h).
struct Library {
  const qplan_npu_target* target;
  const qplan_npu_driver* driver = nullptr;  // of the same library; null: it has none that can be called
};
using Libraries = std::span<const Library>;
struct KnownTargets {
  std::span<const TargetKind> own;  // the CPU is one of them
  Libraries libraries = {};         // found before the packer's own
};

// "npu,sram=quarter, cpu,isa=avx512vnni": names, each followed by its options; `priority=` for all of them.
// As written: the first names are preferred among equal priorities. A list without "cpu" gets the default
// one, because every region has its fallback there. PackError (QPLAN_INVALID_ARGUMENT) with the list of what
// is known.
std::vector<Target> parse_targets(std::string_view text, const KnownTargets& known);
// The same from JSON: target_list.cc documents the format. file: for messages.
std::vector<Target> parse_target_file(std::string_view json, std::string_view file,
                                      const KnownTargets& known);

// Highest priority first, the order of the list among equal ones.
std::vector<const Target*> by_priority(std::span<const Target> targets);

// A device that takes single operators of the IR whatever their types are: to try placements, and for drivers
// that bring constraints of their own. PackError for names that are no operators.
Target operators_target(std::string name, const std::vector<std::string>& operators);

// ---- what things cost ----
// Multiply-accumulates of a node: convolutions, transposed ones too, and fully connected layers have some.
// Those with padding count, and those whose results a transposed convolution cuts off.
uint64_t node_macs(const ir::Function& function, const ir::Node& node);
// Which kind of work a node is: by which of a processor's rates its time is estimated.
CpuWork cpu_work(const ir::Function& function, const ir::Node& node);
uint64_t device_ns(const DeviceCosts& costs, uint64_t cycles);
// bytes: of activations and weights.
uint64_t device_pj(const DeviceCosts& costs, uint64_t macs, uint64_t bytes);
// Cycles of one transfer.
uint64_t dma_cycles(const DeviceCosts& costs, uint64_t bytes);

// The patterns of the canonical form (docs/canonical-form.md), from the last operator to the first, and the
// one table of the composites that all targets make of them.

// inner -> clip?, captured as "clip".
pattern::Pattern with_clip(const pattern::Pattern& inner);
// product -> nn.bias_add?, captured as "bias_add" and "bias".
pattern::Pattern with_bias(const pattern::Pattern& product);
// accumulator -> qnn.requantize -> clip?, captured as "requantize".
pattern::Pattern requantized(const pattern::Pattern& accumulator);

enum class Convolution { kAny, kDepthwise, kOthers };
// nn.pad? -> qnn.conv2d with constant weights, captured as "data", "pad", "weight" and "product".
pattern::Pattern convolution(Convolution kind);
// qnn.dense and qnn.conv2d_transpose with constant weights, captured as "data", "weight" and "product".
pattern::Pattern dense();
pattern::Pattern transposed_convolution();

// The patterns name what they capture: "data", "pad", "product", "weight", "bias_add", "bias", "requantize",
// "sum", "lhs", "rhs", "pool", "mean", "clip"; "plain" an operator that is a composite by itself, "general"
// one of those whose kind of operator lists takes any shapes, "inner" the first take of a resize.
struct Composite {
  std::string_view name;       // "qplan.qconv2d"
  std::string_view what;       // "Convolution"
  std::string_view operators;  // "nn.pad? -> qnn.conv2d -> nn.bias_add? -> qnn.requantize -> clip?"
  // qplan/npu_oplist.h has an operator for it, so that targets from outside the tree may name it.
  bool is_in_operator_lists;
  pattern::Pattern (*make)();
};
std::span<const Composite> composites();
// One of the table.
const Composite& composite(std::string_view name);
// "Depthwise convolution, as GEMM with diagonal weights: ..."; note may be "".
std::string summary(const Composite& composite, std::string_view note = "");

// Shared by the two ways of naming targets, as a text and as a file.

// Null where no kind has the name.
const TargetKind* find_kind(std::span<const TargetKind> kinds, std::string_view name);
Target make_named_target(const TargetText& text, const std::optional<MemorySizes>& memories,
                         const KnownTargets& known);
// Adds the CPU if it is missing; refuses names that are there twice.
std::vector<Target> complete_list(std::vector<Target> targets, const KnownTargets& known);

// The CPU: the one kind that this room brings itself.
TargetKind cpu_kind();

// docs/supported_ops.md, written from the tables of the targets.

// The CPU, which takes what is left, comes last.
std::string supported_ops_page(std::span<const TargetKind> kinds);

// ---- sections: TargetKind::page
// The conditions of a table. What the options `variant` require instead is added where it differs.
std::string rows_text(std::span<const PatternRow> rows, std::string_view variant,
                      std::span<const PatternRow> variant_rows);
std::string cpu_page();

}  // namespace qplan::target

#endif  // QPLAN_SRC_PACKER_TARGET_TARGET_H_
