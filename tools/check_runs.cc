#include "tools/check_runs.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <utility>

#include "tools/error.h"
#include "tools/input.h"
#include "tools/plan_facts.h"
#include "tools/tensor.h"
#include "tools/words.h"

namespace qplan::tools {
namespace {

namespace fs = std::filesystem;

// "DIR/output0.bin" or ".npy"; "" where neither is there.
std::string tensor_file(const fs::path& directory, const std::string& stem) {
  for (const char* extension : {".bin", ".npy"}) {
    const fs::path path = directory / (stem + extension);
    std::error_code error;
    if (fs::is_regular_file(path, error)) return path.string();
  }
  return "";
}

TensorBytes read_tensors(const fs::path& directory, const char* noun, int direction,
                         const std::vector<qplan_tensor_info>& infos) {
  TensorBytes tensors;
  for (uint32_t i = 0; i < infos.size(); ++i) {
    const std::string stem = noun + std::to_string(i), path = tensor_file(directory, stem);
    if (path.empty()) {
      throw Failure("'" + directory.string() + "': has no " + stem + ".bin or " + stem + ".npy for " +
                    describe(direction, i, infos[i]));
    }
    tensors.push_back(load_input(path, infos[i], describe(direction, i, infos[i]), {}));
  }
  return tensors;
}

CheckCase read_case(const fs::path& directory, const PlanFile& plan, const TensorBytes& given) {
  const std::vector<qplan_tensor_info> inputs = tensor_infos(plan.plan(), QPLAN_INPUT);
  CheckCase result;
  result.name = directory.filename().empty() ? directory.parent_path().filename().string()
                                             : directory.filename().string();
  const bool has_inputs = inputs.empty() || !tensor_file(directory, "input0").empty();
  if (!has_inputs && given.empty()) {
    throw Failure("'" + directory.string() +
                  "': has no input0.bin or input0.npy beside its outputs; put it there or give --input");
  }
  result.inputs = given.empty() ? read_tensors(directory, "input", QPLAN_INPUT, inputs) : given;
  result.outputs = read_tensors(directory, "output", QPLAN_OUTPUT, tensor_infos(plan.plan(), QPLAN_OUTPUT));
  return result;
}

}  // namespace

std::vector<CheckCase> expected_cases(const std::string& directory, const PlanFile& plan,
                                      const TensorBytes& given) {
  std::error_code error;
  if (!fs::is_directory(directory, error)) throw Failure("--expect '" + directory + "': is not a directory");
  if (!tensor_file(directory, "output0").empty()) return {read_case(directory, plan, given)};
  std::vector<fs::path> below;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory, error)) {
    if (!tensor_file(entry.path(), "output0").empty()) below.push_back(entry.path());
  }
  if (below.empty()) {
    throw Failure("--expect '" + directory +
                  "': neither it nor a directory in it has output0.bin or output0.npy");
  }
  std::ranges::sort(below);
  std::vector<CheckCase> cases;
  for (const fs::path& path : below) cases.push_back(read_case(path, plan, given));
  if (inspect_plan(plan).at("states").empty()) return cases;
  for (size_t i = 1; i < cases.size(); ++i)
    cases[i].previous = std::make_shared<const CheckCase>(cases[i - 1]);
  return cases;
}

std::vector<const CheckCase*> runs_before(const CheckCase& run) {
  std::vector<const CheckCase*> runs;
  for (const CheckCase* at = run.previous.get(); at != nullptr; at = at->previous.get()) runs.push_back(at);
  std::ranges::reverse(runs);
  return runs;
}

namespace {

// The session of a side, whose runs follow each other.
class SideSession {
 public:
  SideSession(const CheckSide& side, bool with_tensors)
      : inputs_(tensor_infos(side.plan->plan(), QPLAN_INPUT)),
        outputs_(tensor_infos(side.plan->plan(), QPLAN_OUTPUT)),
        platform_(make_platform(QPLAN_LOG_WARNING)) {
    if (with_tensors) tensors_.attach(platform_);
    session_ = std::make_unique<Session>(*side.plan, side.options, &platform_);
    tensors_.watch(session_->get());
  }

  void invoke(const TensorBytes& inputs) {
    tensors_.clear();
    for (uint32_t i = 0; i < inputs_.size(); ++i) {
      std::vector<uint8_t> bytes = inputs[i];
      session_->write(i, packed_tensor(inputs_[i], bytes.data()));
    }
    session_->invoke();
  }
  // Those of the last run.
  TensorBytes outputs() {
    TensorBytes outputs;
    for (uint32_t i = 0; i < outputs_.size(); ++i) {
      outputs.emplace_back(outputs_[i].size_bytes);
      session_->read(i, packed_tensor(outputs_[i], outputs.back().data()));
    }
    return outputs;
  }
  [[nodiscard]] const std::vector<StepTensor>& tensors() const { return tensors_.tensors(); }
  void close() { session_->close(); }

 private:
  const std::vector<qplan_tensor_info> inputs_, outputs_;
  qplan_platform platform_;  // these two outlive the session
  StepTensors tensors_;
  std::unique_ptr<Session> session_;
};

}  // namespace

CheckRun run_check_side(const CheckSide& side, const CheckCase& inputs, bool with_tensors) {
  SideSession session(side, with_tensors);
  for (const CheckCase* earlier : runs_before(inputs)) session.invoke(earlier->inputs);
  session.invoke(inputs.inputs);
  CheckRun run;
  run.outputs = session.outputs();
  run.tensors = session.tensors();
  session.close();
  return run;
}

std::span<const CheckCase> cases_of_session(std::span<const CheckCase> cases, size_t at) {
  size_t begin = at, end = at + 1;
  while (begin > 0 && cases[begin].previous != nullptr) --begin;
  while (end < cases.size() && cases[end].previous != nullptr) ++end;
  return cases.subspan(begin, end - begin);
}

std::vector<TensorBytes> run_check_cases(const CheckSide& side, std::span<const CheckCase> cases,
                                         const std::function<void()>& before_each) {
  std::vector<TensorBytes> outputs;
  std::unique_ptr<SideSession> session;
  for (const CheckCase& inputs : cases) {
    before_each();
    if (session == nullptr || inputs.previous == nullptr) {
      if (session != nullptr) session->close();
      session.reset();  // a device may have one session
      session = std::make_unique<SideSession>(side, false);
      for (const CheckCase* earlier : runs_before(inputs)) session->invoke(earlier->inputs);
    }
    session->invoke(inputs.inputs);
    outputs.push_back(session->outputs());
  }
  if (session != nullptr) session->close();
  return outputs;
}

}  // namespace qplan::tools
