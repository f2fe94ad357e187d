// What happens to a model, from its bytes to a plan.
#ifndef QPLAN_SRC_PACKER_PIPELINE_PIPELINE_H_
#define QPLAN_SRC_PACKER_PIPELINE_PIPELINE_H_

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/packer/emit/aligned_bytes.h"
#include "src/packer/import/import_options.h"
#include "src/packer/ir/module.h"
#include "src/packer/log.h"
#include "src/packer/passes/user_pass.h"

namespace qplan {

struct PackOptions {
  std::string target = "cpu";
  bool strip_names = false;
  uint32_t planner_iterations = 0;  // 0: the planner's default
  std::string dump_after;           // "", "all", "import" or the name of a pass
  // What stands in the plan in place of what the model says; empty: the model decides.
  std::string contract;           // numeric contract of every operator: "tfl2", "f32e"
  std::string io;                 // dtype of the function's inputs and outputs: "int8", "uint8", "float"
  std::string io_layout;          // of its four-dimensional ones: "nhwc", "nchw"
  bool keep_float = false;        // no lowering rewrites: float patterns are not given integer meaning
  std::vector<std::string> skip;  // passes and rewrites to leave out
  ImportOptions import;
  std::string why_not;                        // a rewrite: model_text tells where it does not apply, and why
  std::vector<passes::UserPass> user_passes;  // in addition to the built-in ones
  bool canonical_body = false;  // model_text prints the body alone: no names, no types of the function's ends
  // All may be empty.
  LogFunction log;
  std::function<void(std::string_view text)> dump;
  std::function<void(const char* stage, uint32_t done, uint32_t total)> progress;
};

// A plan of the model. name: the file's, for messages; its last component is the plan's provenance. The same
// bytes, last component and options (functions aside) give the same plan, on every machine. PackError.
emit::AlignedBytes pack(std::span<const uint8_t> model, std::string_view name, const PackOptions& options);

// The module as imported, or in canonical form for the target.
ir::Module import_model(std::span<const uint8_t> model, std::string_view name, const PackOptions& options);
ir::Module canonical_module(std::span<const uint8_t> model, std::string_view name,
                            const PackOptions& options);
// The imported or canonical module as Relay text, constants included. With options.why_not: its report.
std::string model_text(std::span<const uint8_t> model, std::string_view name, const PackOptions& options,
                       bool canonical);

// Which operator of the model would run on which of options.target's targets, and why; as text or as JSON.
std::string explain_text(std::span<const uint8_t> model, std::string_view name, const PackOptions& options,
                         bool json);

}  // namespace qplan

#endif  // QPLAN_SRC_PACKER_PIPELINE_PIPELINE_H_
