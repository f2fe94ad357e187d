// qplan tune --calibrate: what this machine takes for work of each kind, as a target file. docs/placement.md.
#ifndef TOOLS_CALIBRATE_H_
#define TOOLS_CALIBRATE_H_

#include <string>
#include <vector>

#include "tools/model_options.h"
#include "tools/session.h"

namespace qplan::tools {

struct CalibrateOptions {
  ModelOptions model;
  PlacementOptions placement;
  SessionOptions session;
  std::vector<std::string> more;  // plans and models beside the model
  std::string file;
  double budget_s = 20;
};

// Measures the steps, prints how near the estimates come, writes the file. UsageError, Failure.
void calibrate(const CalibrateOptions& options);

}  // namespace qplan::tools

#endif  // TOOLS_CALIBRATE_H_
