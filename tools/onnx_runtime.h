// ONNX Runtime as a reference for `qplan check`, where its Python or npm package is installed.
#ifndef QPLAN_TOOLS_ONNX_RUNTIME_H_
#define QPLAN_TOOLS_ONNX_RUNTIME_H_

#include <string>
#include <vector>

#include "tools/check_runs.h"
#include "tools/files.h"

namespace qplan::tools {

// Runs the model on the inputs of each case, by the names of plan's inputs, and sets their outputs. False
// where that cannot be: reason says why, and what to install. Failure where ONNX Runtime refuses the model.
bool run_onnx_runtime(const std::string& model, const PlanFile& plan, std::vector<CheckCase>* cases,
                      std::string* reason);

}  // namespace qplan::tools

#endif  // QPLAN_TOOLS_ONNX_RUNTIME_H_
