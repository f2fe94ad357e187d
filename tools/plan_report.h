// What `qplan inspect` and `qplan pack` print about a plan.
#ifndef TOOLS_PLAN_REPORT_H_
#define TOOLS_PLAN_REPORT_H_

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>

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

}  // namespace qplan::tools

#endif  // TOOLS_PLAN_REPORT_H_
