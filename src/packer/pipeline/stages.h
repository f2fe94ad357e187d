// The stages of a pack, in the order in which pipeline.cc runs them.
#ifndef QPLAN_SRC_PACKER_PIPELINE_STAGES_H_
#define QPLAN_SRC_PACKER_PIPELINE_STAGES_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/packer/error.h"
#include "src/packer/import/import.h"
#include "src/packer/ir/module.h"
#include "src/packer/memory/arena.h"
#include "src/packer/partition/partition.h"
#include "src/packer/passes/pass.h"
#include "src/packer/pipeline/pipeline.h"
#include "src/packer/schedule/fuse.h"
#include "src/packer/schedule/schedule.h"
#include "src/packer/target/profile.h"
#include "src/packer/target/program.h"
#include "src/packer/target/target.h"

namespace qplan::pipeline {

// What the user wants of a network's border and arithmetic in place of what its source says: --contract,
// --io-layout, --io. Each rebuilds main; PackError (QPLAN_INVALID_ARGUMENT) for an unknown word,
// (QPLAN_MODEL_UNSUPPORTED) where the network has no such form.

// Every operator that has a contract means this one ("tfl2", "f32e"); "" changes nothing. Under tfl2 the
// multipliers are formed as TFLite forms them: from the float32 product of the scales for networks of uint8
// activations (passes/rewrite_pass.h) and for fully connected layers with one scale, else in double. On
// the imported module.
void set_contract(ir::Module* module, std::string_view contract);
// Whether the contract asked for is news to the module: no operator means it. On the imported module.
bool means_other_contracts(const ir::Module& module, std::string_view contract);

// Inputs and outputs of four axes as "nhwc" or "nchw"; "" changes nothing. Which order one has follows from
// the first operator that says so; one that never meets such an operator stays, and the log says so. On the
// imported module.
void set_io_layout(ir::Module* module, std::string_view layout, const LogFunction& log);

// Inputs and outputs as "int8", "uint8" or "float"; "" changes nothing. An integer one in place of a float
// one takes the quantisation of the qnn.quantize that reads it (or the qnn.dequantize that makes it) and
// these are dropped; the other 8-bit dtype is a step of re-signing away (zero point +-128, exact); a float
// one in place of an integer one needs the quantisation that the source recorded. Inputs that have neither
// (indices, masks) stay. needs_scales: whoever writes the integers must know their scale, so an input whose
// scale is per axis is refused. On the canonical module.
void set_io_dtype(ir::Module* module, std::string_view io, const LogFunction& log, bool needs_scales = true);

// Models as files: which importer reads them, and what a plan remembers of them.

// The content decides, not the name. PackError (QPLAN_MODEL_INVALID) with the formats known.
ir::Module import_any(std::span<const uint8_t> model, std::string_view name, const LogFunction& log,
                      const ImportOptions& options);
// The plan's metadata (import.h, tflite_metadata_json). Damaged metadata becomes a warning: the network does
// not depend on it.
std::string metadata_of(std::span<const uint8_t> model, std::string_view name, const PackOptions& options);

std::string last_component(std::string_view path);
std::string sha256_text(std::span<const uint8_t> bytes);

// What a caller sees of a pack while it runs: dumps, log, progress. Never part of the result.
class Observer {
 public:
  // PackError (QPLAN_INVALID_ARGUMENT) when dump_after names no stage, skip no pass or rewrite, or a pass of
  // the caller has no place. options must outlive the observer.
  explicit Observer(const PackOptions& options);

  const PackOptions& options() const { return options_; }
  // All passes, in order.
  const std::vector<passes::Stage>& passes() const { return passes_; }
  const LogFunction& log_function() const { return options_.log; }
  void log(uint32_t level, const std::string& text) const;
  // The module's text, where the caller asked for this stage.
  void dump(std::string_view stage, const ir::Module& module) const;
  // A stage begins; progress goes on in it.
  void stage(const char* name, uint32_t done, uint32_t total) const;
  // PackError (QPLAN_CANCELLED) where the caller wants no more.
  void progress(const char* what, uint32_t done, uint32_t total) const;

 private:
  const PackOptions& options_;
  const std::vector<passes::Stage> passes_;
};

// What did not happen, and why: rewrites that came near, and what --skip left undone.

// Near-miss reports: where a rewrite does not apply, and why.

// PackError (QPLAN_INVALID_ARGUMENT) with the names that are known when no pass has the rewrite.
void check_rewrite(std::string_view name, std::span<const passes::Stage> known);

// One line for each node whose operator the rewrite begins at: what its pattern, or its build, missed there.
std::string why_not_report(std::string_view rewrite, std::span<const passes::Stage> known,
                           const ir::Module& module, uint64_t num_fired);

// What --skip left undone.
class LeftOut {
 public:
  // To be asked whenever the pass has its turn: would it, or those of its rewrites that context.skip names,
  // change the module as it is now? The module is only read. Passes of the caller are not asked: what is left
  // out does not run.
  void look(const passes::Stage& pass, const ir::Module& module, const passes::PassContext& context);
  // One line for each pass and rewrite, with the first place where it would have applied.
  const std::vector<std::string>& lines() const { return lines_; }

 private:
  void add(std::string_view kind, std::string_view name, const std::string& firing);

  std::set<std::string, std::less<>> known_;  // names that have a line
  std::vector<std::string> lines_;
};

// Runs the passes of passes.def until none of them changes anything.
enum class Border {
  kAsAsked,    // what options.io, options.io_layout and options.contract say, else the model's
  kOfTheBody,  // the one that all forms of a network share
};

// The module in canonical form, with the contract and the border that the options ask for. Every function
// that a pass makes is verified before the next pass sees it. Returns what options.skip left undone
// (LeftOut), which is logged too: a reason when the target then refuses the module.
std::vector<std::string> canonicalize(ir::Module* module, std::span<const target::Target> targets,
                                      const Observer& observer, Border border = Border::kAsAsked);

// From a canonical module and a list of targets to what each of them runs.
const target::Target& cpu_of(std::span<const target::Target> targets);

// Regions on their devices, with what lowering needs of them.
struct Placed {
  partition::CompiledPartition partition;
  std::vector<std::unique_ptr<ir::Function>> bodies;  // as partition.placed.regions
  target::RegionCodes codes;                          // refers to the two above; of regions with a program

  const ir::Function& main() const { return partition.placed.module.main(); }
  partition::Explain& explain() { return partition.placed.explain; }
};
// module: canonical. targets must outlive the result. PackError as partition::compile_partition.
std::unique_ptr<Placed> place(const ir::Module& module, const std::vector<target::Target>& targets,
                              const PackOptions& options);

// Logs what the compilers of devices say of their regions.
void log_warnings(const Placed& placed, const Observer& observer);
// PackError (QPLAN_INVALID_ARGUMENT) naming a region whose target has no compiler.
void check_all_compiled(const Placed& placed);
// PackError (QPLAN_MODEL_UNSUPPORTED) naming a program of another compiler's that none of the targets takes,
// with the reasons of each.
void check_programs(const Placed& placed, const ir::Function& canonical);

// From a lowered program to what a plan will hold of it: the stages that pack() runs before it writes.

// A program that is fused and scheduled, and its memory plan.
struct Planned {
  target::Program program;
  memory::Arena arena;
};
struct PlannedSizes {
  uint64_t constants = 0;  // bytes in the file
  uint64_t memory = 0;     // bytes of activations and device buffers
};

std::optional<schedule::TuningLog> read_tuning(const PackOptions& options);
schedule::FuseOptions fuse_options(const PackOptions& options, schedule::TuningLog* tuning);
// program: scheduled.
memory::Arena plan_memory(const target::Program& program, const PackOptions& options);

// What pack() makes of a lowered program, without its log. tuning may be null. spare_bytes: of
// schedule::FuseOptions.
Planned plan_program(const target::Program& lowered, const target::TargetProfile& profile,
                     const PackOptions& options, schedule::TuningLog* tuning, uint64_t spare_bytes = 0);
PlannedSizes sizes_of(const Planned& planned);

// Leaves planned, which was made of the lowered program, as it is where a session of its plan takes at most
// options.max_ram bytes, else replaces it by the one of Fuse::kMemory, whose cascades on small devices are as
// fast as the rest of those bytes permits, or, where that takes more, of Fuse::kAuto or kAll. PackError
// (QPLAN_MEMORY_TOO_SMALL) that names the step with the most bytes in use where all of them take more.
void fit_memory(Planned* planned, const target::Program& lowered, const target::TargetProfile& profile,
                const Observer& observer, schedule::TuningLog* tuning);

// Plans the memory anew where the profile has memory areas. PackError (QPLAN_MEMORY_TOO_SMALL) that names the
// step which does not fit, or where a session takes more than options.max_ram bytes in all areas together.
void place_in_areas(Planned* planned, const target::TargetProfile& profile, const PackOptions& options);
// Then chooses constants that are copied into what the areas have left, where the profile asks for it.
void copy_constants(Planned* planned, const target::TargetProfile& profile, const PackOptions& options);

// What the session copies at the regions' boundaries.
void report_copies(const Planned& planned, const target::Target& cpu, partition::Explain* explain);
// What a plan without the CPU's steps for its regions is smaller than the one with them.
void report_savings(const PlannedSizes& with_fallback, const PlannedSizes& without,
                    partition::Explain* explain);

// What must be the same text for every way of writing one network: the canonical function without its border.
//
// The border is how a source hands tensors over: quantised or float, int8 or uint8, NHWC or NCHW. So the
// module whose body is compared has the border Border::kOfTheBody (stages.h): inputs and outputs in the
// dtype of the network's activations (passes/rewrite_pass.h) and in NHWC, and one contract for all
// operators, after each source's own contract made integers of its constants. What a source's contract says
// by itself, as `multiplier` does, is then no sign of the activations' dtype any more.

// The canonical main function between the qnn.quantize of its inputs and the qnn.dequantize of its outputs:
// no names of inputs and outputs, no function attributes, and of contracts nothing (attributes `contract`,
// `rule`, `multiplier`). Nodes keep their names, for reports. A function that main calls has no border.
ir::Function canonical_body(const ir::Function& main);
// main's body, then those of the functions that it calls, by name.
std::vector<ir::Function> canonical_bodies(const ir::Module& module);

// Two bodies side by side.
struct BodyDifference {
  std::string first;               // the first difference in words; empty: the same but for biases
  std::vector<std::string> lines;  // all of them, up to where operators differ and nothing can be compared
  uint64_t biases = 0;             // int32 constants of nn.bias_add whose values differ by 1
  uint64_t biases_total = 0;       // values compared
};
// Biases may be 1 apart, since sources round them differently; a larger distance is a difference.
BodyDifference compare_bodies(const ir::Function& a, const ir::Function& b);
BodyDifference compare_bodies(const std::vector<ir::Function>& a, const std::vector<ir::Function>& b);

// The difference as lines for people. num_nodes: of the first body; contracts: contracts_of each module.
std::string describe(const BodyDifference& difference, size_t num_nodes, const std::string& contracts_a,
                     const std::string& contracts_b);
// The contracts that the operators of an imported module name, in alphabetical order: "f32e, tfl2".
std::string contracts_of(const ir::Module& module);

}  // namespace qplan::pipeline

#endif  // QPLAN_SRC_PACKER_PIPELINE_STAGES_H_
