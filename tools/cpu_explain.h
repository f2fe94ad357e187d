// The output of `qplan explain` when the CPU runs everything: which kernel computes which operator, and why
// one is slower than it could be.
#ifndef TOOLS_CPU_EXPLAIN_H_
#define TOOLS_CPU_EXPLAIN_H_

#include <nlohmann/json.hpp>
#include <string>

#include "tools/plan_file.h"

namespace qplan::tools {

// The kernels are those that this machine would choose: the plan does not decide about them. Failure where no
// session can be made of the plan.
// {"isa": "avx2", "macs": 301000000, "steps": [{"step", "op", "kernel", "name", "macs", "bytes", "schedule",
// "notes": [...]},
// ...]}
nlohmann::ordered_json cpu_explain_json(const PlanFile& plan);

// The same as a table, with a line below a step for each note.
std::string cpu_explain_text(const nlohmann::ordered_json& report);

}  // namespace qplan::tools

#endif  // TOOLS_CPU_EXPLAIN_H_
