// What `qplan report` says of a plan, as data, as a page, as a graph and as a table.
#ifndef QPLAN_TOOLS_REPORT_PAGE_H_
#define QPLAN_TOOLS_REPORT_PAGE_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tools/files.h"
#include "tools/session.h"

namespace qplan::tools {

struct ReportOptions {
  std::string plan;
  SessionOptions session;
  uint32_t runs = 30;               // that are measured; 0: times are estimated
  std::vector<std::string> inputs;  // files; none: random ones
  std::string mean, std;            // of pictures among them
};

// The plan with the time of its steps: measured, or estimated where it is not run. Failure.
nlohmann::ordered_json report_data(const PlanFile& plan, const ReportOptions& options);

// A page that holds the data and loads nothing.
std::string report_html(const nlohmann::ordered_json& data);
// The steps and the tensors between them, for Graphviz.
std::string report_dot(const nlohmann::ordered_json& data);
// A line for each step.
std::string report_csv(const nlohmann::ordered_json& data);

}  // namespace qplan::tools

#endif  // QPLAN_TOOLS_REPORT_PAGE_H_
