// What `qplan inspect` and `qplan pack` print about a plan.
#ifndef QPLAN_TOOLS_REPORTS_H_
#define QPLAN_TOOLS_REPORTS_H_

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>

#include "tools/plan_file.h"

namespace qplan::tools {

// The text of qplan_inspect_json. Failure, with label, when the plan is not valid.
std::string inspect_text(const void* plan, size_t size, const std::string& label);

// "65.4 kB" beside exact figures, decimal units.
std::string size_text(uint64_t bytes);

// The page that `qplan inspect` prints.
std::string inspect_page(const nlohmann::ordered_json& plan);

// The lines that `qplan pack` prints below its first one: steps, MACs, bytes; indented.
std::string pack_summary(const nlohmann::ordered_json& plan);

// Whether a target of the plan is no CPU.
bool has_devices(const nlohmann::ordered_json& plan);

// What `qplan import` prints about a model without --print.

// relay: the text of qplan_import_text. Lines for inputs, outputs and the operators by kind, most frequent
// first; each indented and ended by a line feed.
std::string ir_summary(const std::string& relay);

// The output of `qplan explain` when the CPU runs everything: which kernel computes which operator, and why
// one is slower than it could be.

// The kernels are those that this machine would choose: the plan does not decide about them. Failure where no
// session can be made of the plan.
// {"isa": "avx2", "macs": 301000000, "steps": [{"step", "op", "kernel", "name", "macs", "bytes", "schedule",
// "notes": [...]},
// ...]}
nlohmann::ordered_json cpu_explain_json(const PlanFile& plan);

// The same as a table, with a line below a step for each note.
std::string cpu_explain_text(const nlohmann::ordered_json& report);

}  // namespace qplan::tools

#endif  // QPLAN_TOOLS_REPORTS_H_
