// What each step of a session writes, through the platform's hooks: for files and for comparisons.
#ifndef QPLAN_TOOLS_STEP_TENSORS_H_
#define QPLAN_TOOLS_STEP_TENSORS_H_

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "qplan/qplan.h"
#include "tools/files.h"

namespace qplan::tools {

// A tensor that a step has written, of one run.
struct StepTensor {
  uint32_t step = 0;    // position in the plan
  uint32_t output = 0;  // of the step
  std::string op;
  std::string kernel;  // the variant that wrote it
  std::string step_name;
  std::string name;        // of the source model; "" where stripped
  qplan_tensor_info info;  // its pointers are good as long as the plan
  std::vector<uint8_t> bytes;
};

// Copies every output of every step while a session runs.
class StepTensors {
 public:
  // Before the session is made: both must outlive it. Functions that were there before are still called.
  void attach(qplan_platform& platform);
  // After.
  void watch(qplan_session* session) { session_ = session; }
  void clear() { tensors_.clear(); }
  // In the order in which they were written. Failure where one could not be read.
  [[nodiscard]] const std::vector<StepTensor>& tensors() const;

 private:
  static void on_end(void* user, const qplan_event* event, qplan_status status);

  qplan_platform before_{};
  qplan_session* session_ = nullptr;
  qplan_status status_ = QPLAN_OK;
  std::vector<StepTensor> tensors_;
};

// "conv1_Relu6" of "conv1/Relu6;conv1/Conv2D": letters, digits and -._ of the first of joined names, at most
// 80 of them; "" of nothing.
std::string file_stem(std::string_view name);

// A little-endian .npy file (version 1) of the tensor; of dtypes that NumPy lacks its bytes as uint8.
std::string npy_file(const qplan_tensor_info& info, const void* bytes);

// The files of `run --dump-tensors`: one .npy for each tensor, and tensors.json, which lists them and the
// steps that hide tensors. prefix: of the files of this run, "run0_" or "". Names are unique over all calls
// with one list.
struct TensorFiles {
  std::vector<std::string> names;
  std::vector<std::string> contents;
  nlohmann::ordered_json index = nlohmann::ordered_json::array();

  void add(const std::vector<StepTensor>& tensors, const std::string& prefix);
  // Adds tensors.json and writes all. plan: for the steps that hide tensors. inputs: files that none of
  // these may replace.
  void write(const std::string& directory, const PlanFile& plan, const std::vector<NamedFile>& inputs);
};

// The steps of a plan (as `inspect --json` prints it) inside which are tensors that no step writes, with the
// reason and what shows them: [{"step", "name", "reason"}, ...].
nlohmann::ordered_json hidden_tensors(const nlohmann::ordered_json& inspected);

}  // namespace qplan::tools

#endif  // QPLAN_TOOLS_STEP_TENSORS_H_
