// What happens to a model, from its bytes to a plan.
#ifndef QPLAN_SRC_PACKER_PIPELINE_PIPELINE_H_
#define QPLAN_SRC_PACKER_PIPELINE_PIPELINE_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/packer/aligned_bytes.h"
#include "src/packer/error.h"
#include "src/packer/import/import.h"
#include "src/packer/ir/module.h"
#include "src/packer/partition/partition.h"
#include "src/packer/passes/pass.h"
#include "src/packer/schedule/fuse.h"
#include "src/packer/target/target.h"

namespace qplan {

// Targets as JSON (docs/placement.md).
struct TargetFile {
  std::string name;  // for messages
  std::string json;
};

// Measurements (docs/schedules.md).
struct TuningFile {
  std::string name;  // for messages
  std::string text;
  uint32_t num_threads = 1;  // lines that count
};

struct PackOptions {
  std::string target = "cpu";
  std::optional<TargetFile> target_file;  // in place of target
  std::vector<std::string> target_libs;   // shared libraries that describe targets (qplan/npu_target.h)
  // Where operators go: docs/placement.md.
  bool strict_placement = false;  // an operator off the preferred target is an error
  std::vector<std::string> pins;  // "block3/conv=vta"
  bool cost_gate = true;          // regions that are not worth their device go back to the CPU
  partition::Prefer prefer = partition::Prefer::kDefault;  // by what that is judged
  bool fallback = true;  // the CPU's steps and weights for regions are in the plan
  bool strip_names = false;
  schedule::Fuse fuse = schedule::Fuse::kAuto;
  // Bytes that a session with one thread may take, 0: any. Where it takes more, fuse is kMemory.
  uint64_t max_ram = 0;
  uint32_t self_checks = 0;         // runs that qplan_session_self_check compares
  uint32_t planner_iterations = 0;  // 0: the planner's default
  std::string dump_after;           // "", "all", "import" or the name of a pass
  // What stands in the plan in place of what the model says; empty: the model decides.
  std::string contract;              // numeric contract of every operator: "tfl2", "f32e"
  std::string io;                    // dtype of the function's inputs and outputs: "int8", "uint8", "float"
  std::string io_layout;             // of its four-dimensional ones: "nhwc", "nchw"
  bool keep_float = false;           // no lowering rewrites: float patterns are not given integer meaning
  std::vector<std::string> skip;     // passes and rewrites to leave out
  std::optional<TuningFile> tuning;  // where the steps' schedules come from
  ImportOptions import;
  std::string why_not;                        // a rewrite: model_text tells where it does not apply, and why
  std::vector<passes::UserPass> user_passes;  // in addition to the built-in ones
  // canonical_module has the border of canonical bodies (stages.h), whatever io, io_layout and
  // contract say; model_text prints the body alone, without names. pack() does not look at it.
  bool canonical_body = false;
  // All may be empty. summary: one line after a plan was made.
  std::function<void(const std::string& text)> summary;
  LogFunction log;
  std::function<void(std::string_view text)> dump;
  std::function<void(const char* stage, uint32_t done, uint32_t total)> progress;
  std::function<bool()> cancelled;  // asked at each progress; true: PackError (QPLAN_CANCELLED)
  std::function<void()> imported;   // pack() does not look at the model's bytes again
};

// A plan of the model. name: the file's, for messages; its last component is the plan's provenance. The same
// bytes, last component and options (functions aside) give the same plan, on every machine. PackError.
AlignedBytes pack(std::span<const uint8_t> model, std::string_view name, const PackOptions& options);

// The module as imported, or in canonical form for the target.
ir::Module import_model(std::span<const uint8_t> model, std::string_view name, const PackOptions& options);
ir::Module canonical_module(std::span<const uint8_t> model, std::string_view name,
                            const PackOptions& options);
// The imported or canonical module as Relay text, constants included. With options.why_not: its report.
std::string model_text(std::span<const uint8_t> model, std::string_view name, const PackOptions& options,
                       bool canonical);

// Whether two models have one canonical body, in words: differences, which biases are 1 apart, contracts.
// Both are read with the same options.
struct BodyComparison {
  bool same = false;
  std::string text;  // lines
};
struct NamedModel {
  std::span<const uint8_t> bytes;
  std::string_view name;
};
BodyComparison compare_models(const NamedModel& model, const NamedModel& other, const PackOptions& options);

// Which share of the model's operators and multiply-accumulates would run on the CPU of the targets, and what
// would not, as JSON. What is not imported does not end it.
std::string coverage_json(std::span<const uint8_t> model, std::string_view name, const PackOptions& options);

enum class ExplainFormat { kText, kJson, kHtml };
// Which operator of the model would run on which of the targets, and why, as pack() would place it. A plan in
// place of the model: what it remembers of its own placement.
std::string explain_text(std::span<const uint8_t> model, std::string_view name, const PackOptions& options,
                         ExplainFormat format);

}  // namespace qplan

namespace qplan::pipeline {

// The one place where the packer is put together with the devices that it knows by name.

std::span<const target::TargetKind> own_targets();
// As target::parse_targets, of the packer's own targets and of libraries.
std::vector<target::Target> parse_targets(std::string_view text, target::Libraries libraries = {});
std::vector<target::Target> parse_target_file(std::string_view json, std::string_view file,
                                              target::Libraries libraries = {});
// The targets that the options name. PackError (QPLAN_INVALID_ARGUMENT).
std::vector<target::Target> read_targets(const PackOptions& options);
std::string supported_ops_page();

}  // namespace qplan::pipeline

#endif  // QPLAN_SRC_PACKER_PIPELINE_PIPELINE_H_
