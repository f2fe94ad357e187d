// Where two runs begin to differ, and a plan of the step that makes the difference.
#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <utility>

#include "qplan/pack.h"
#include "src/base/listing.h"
#include "tools/check.h"
#include "tools/command.h"
#include "tools/reports.h"
#include "tools/tensor.h"

namespace qplan::tools {
namespace {

using Json = nlohmann::ordered_json;

// How tensors of two runs are told to be the same one: by their number where both runs have one plan, else by
// a name that each of them has once.
class TensorKeys {
 public:
  TensorKeys(const PlanFile& plan, bool by_name)
      : inspected_(Json::parse(inspect_text(plan.bytes(), plan.size(), plan.path()))), by_name_(by_name) {
    if (!by_name_) return;
    for (const Json& step : inspected_.at("steps")) {
      for (const Json& output : step.at("outputs")) ++count_[name_of(output.get<uint32_t>())];
    }
  }

  [[nodiscard]] const Json& plan() const { return inspected_; }
  [[nodiscard]] uint32_t number_of(const StepTensor& tensor) const {
    return inspected_.at("steps").at(tensor.step).at("outputs").at(tensor.output).get<uint32_t>();
  }
  // "": it cannot be told from others.
  [[nodiscard]] std::string key_of(const StepTensor& tensor) const {
    const uint32_t number = number_of(tensor);
    if (!by_name_) return std::to_string(number);
    const std::string name = name_of(number);
    const auto found = count_.find(name);
    // A region and its fallback steps write the same tensors.
    return name.empty() || found == count_.end() || found->second > 2 ? "" : name;
  }

 private:
  [[nodiscard]] std::string name_of(uint32_t number) const {
    return inspected_.at("tensors").at(number).at("name").get<std::string>();
  }

  const Json inspected_;
  const bool by_name_;
  std::map<std::string, uint32_t> count_;
};

bool same_type(const StepTensor& a, const StepTensor& b) {
  return a.info.dtype.code == b.info.dtype.code && a.info.dtype.bits == b.info.dtype.bits &&
         a.bytes.size() == b.bytes.size();
}

// The tensors that the step reads and no constant, each once, as an extracted plan has them as inputs.
std::vector<uint32_t> step_inputs(const Json& plan, uint32_t first, uint32_t end) {
  std::vector<uint32_t> inputs, written;
  const auto has = [](const std::vector<uint32_t>& list, uint32_t t) {
    return std::ranges::find(list, t) != list.end();
  };
  for (uint32_t s = first; s < end; ++s) {
    const Json& step = plan.at("steps").at(s);
    for (const Json& input : step.at("inputs")) {
      const auto t = input.get<uint32_t>();
      const auto bank = plan.at("tensors").at(t).at("bank").get<size_t>();
      if (plan.at("banks").at(bank).at("kind") == "constants" || has(written, t) || has(inputs, t)) continue;
      inputs.push_back(t);
    }
    for (const Json& output : step.at("outputs")) written.push_back(output.get<uint32_t>());
  }
  return inputs;
}

// Writes inputs and expected outputs as `check --expect` reads them, beside other files.
void write_run(OutputFiles* to, const std::string& directory, const TensorBytes& inputs,
               const TensorBytes& outputs, std::vector<NamedBytes> files = {}) {
  for (size_t i = 0; i < inputs.size(); ++i)
    files.push_back({"input" + std::to_string(i) + ".bin", inputs[i].data(), inputs[i].size()});
  for (size_t i = 0; i < outputs.size(); ++i)
    files.push_back({"output" + std::to_string(i) + ".bin", outputs[i].data(), outputs[i].size()});
  to->write(directory, files);
}

class Search {
 public:
  Search(const CheckSide& expected, const CheckSide& found, const CheckCase& inputs)
      : expected_side_(expected),
        found_side_(found),
        inputs_(inputs),
        by_name_(expected.plan != found.plan),
        expected_keys_(*expected.plan, by_name_),
        found_keys_(*found.plan, by_name_),
        expected_(run_check_side(expected, inputs, true)),
        found_(run_check_side(found, inputs, true)) {
    for (const StepTensor& tensor : expected_.tensors) {
      const std::string key = expected_keys_.key_of(tensor);
      if (!key.empty()) expected_by_key_[key] = &tensor;
    }
  }

  FirstDifference run() {
    FirstDifference result;
    for (const StepTensor& tensor : found_.tensors) {
      const StepTensor* expected = counterpart(tensor);
      if (expected == nullptr) {
        ++result.uncompared;
        continue;
      }
      const TensorComparison comparison =
          compare_tensors(tensor.info, expected->bytes.data(), tensor.bytes.data());
      if (comparison.equal()) {
        ++result.compared;
        continue;
      }
      result.found = true;
      result.step = tensor.step;
      result.op = tensor.op;
      result.kernel = tensor.kernel;
      result.step_name = tensor.step_name;
      result.tensor_name = tensor.name;
      result.comparison = comparison;
      return result;
    }
    result.why_not = expected_.outputs == found_.outputs
                         ? "the difference did not appear again in a run whose steps were watched"
                         : "none of the tensors that both runs write differs";
    return result;
  }

  // A plan of the step alone, or of all where that does not show the difference.
  void write(const std::string& directory, FirstDifference* result) const {
    result->written = directory;
    if (write_step(directory, result)) return;
    result->plan = "plan.qplan";
    const std::vector<const CheckCase*> before = runs_before(inputs_);
    OutputFiles files;
    const NamedBytes plan = {result->plan, found_side_.plan->bytes(), found_side_.plan->size()};
    if (before.empty()) {
      write_run(&files, directory, inputs_.inputs, expected_.outputs, {plan});
      files.keep();
      return;
    }
    files.write(directory, std::vector<NamedBytes>{plan});
    // Names of one length sort as numbers do.
    const size_t width = std::max<size_t>(6, std::to_string(before.size()).size());
    const auto folder = [&](size_t run) {
      const std::string number = std::to_string(run);
      return directory + "/run" + std::string(width - number.size(), '0') + number;
    };
    for (size_t run = 0; run < before.size(); ++run)
      write_run(&files, folder(run), before[run]->inputs, *before[run]->outputs);
    write_run(&files, folder(before.size()), inputs_.inputs, expected_.outputs);
    files.keep();
  }

 private:
  [[nodiscard]] const StepTensor* counterpart(const StepTensor& tensor) const {
    const std::string key = found_keys_.key_of(tensor);
    const auto at = key.empty() ? expected_by_key_.end() : expected_by_key_.find(key);
    return at != expected_by_key_.end() && same_type(*at->second, tensor) ? at->second : nullptr;
  }

  // The bytes of a tensor when the step began; null where they are not known.
  [[nodiscard]] const std::vector<uint8_t>* bytes_before(uint32_t number, uint32_t step) const {
    const Json& inputs = found_keys_.plan().at("inputs");
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i].at("tensor") == number) return &inputs_.inputs[i];
    }
    for (const StepTensor& tensor : found_.tensors) {
      if (tensor.step < step && found_keys_.number_of(tensor) == number) return &tensor.bytes;
    }
    return nullptr;
  }

  // False where the step alone does not show the difference.
  bool write_step(const std::string& directory, FirstDifference* result) const {
    const Json& plan = found_keys_.plan();
    const Json& step = plan.at("steps").at(result->step);
    uint32_t end = result->step + 1;
    if (step.at("op") == "npu") {
      end +=
          static_cast<uint32_t>(std::stoul(step.at("params").at("num_alternative_steps").get<std::string>()));
    }
    CheckCase alone;
    for (const uint32_t number : step_inputs(plan, result->step, end)) {
      const std::vector<uint8_t>* bytes = bytes_before(number, result->step);
      if (bytes == nullptr) return false;
      alone.inputs.push_back(*bytes);
    }
    alone.outputs.emplace();
    for (const StepTensor& tensor : found_.tensors) {
      if (tensor.step != result->step) continue;
      const StepTensor* expected = counterpart(tensor);
      if (expected == nullptr) return false;
      alone.outputs->push_back(expected->bytes);
    }
    std::string bytes;
    qplan_error error = make_error();
    check(qplan_extract_step(found_side_.plan->bytes(), found_side_.plan->size(), result->step,
                             append_to_string, &bytes, &error),
          error, "");
    const PlanFile extracted("step " + std::to_string(result->step), bytes);
    CheckSide side = found_side_;
    side.plan = &extracted;
    if (run_check_side(side, alone, false).outputs == *alone.outputs) return false;
    result->plan = "step" + std::to_string(result->step) + ".qplan";
    result->shows_alone = true;
    OutputFiles files;
    write_run(&files, directory, alone.inputs, *alone.outputs,
              {{result->plan, extracted.bytes(), extracted.size()}});
    files.keep();
    return true;
  }

  const CheckSide& expected_side_;
  const CheckSide& found_side_;
  const CheckCase& inputs_;
  const bool by_name_;
  const TensorKeys expected_keys_, found_keys_;
  const CheckRun expected_, found_;
  std::map<std::string, const StepTensor*> expected_by_key_;
};

// The options with which the side runs a plan.
std::string options_text(const SessionOptions& options) {
  std::string text;
  if (options.isa != "auto") text += " --isa " + options.isa;
  if (options.threads != 1) text += " --threads " + std::to_string(options.threads);
  return text;
}

}  // namespace

FirstDifference find_first_difference(const CheckSide& expected, const CheckSide& found,
                                      const CheckCase& inputs, const std::string& directory) {
  Search search(expected, found, inputs);
  FirstDifference result = search.run();
  if (!directory.empty() && result.found) {
    search.write(directory, &result);
    result.command = "qplan check " + directory + "/" + result.plan + " --expect " + directory +
                     options_text(found.options);
  }
  return result;
}

std::string first_difference_text(const FirstDifference& difference) {
  if (!difference.found) return "first different step: not found; " + difference.why_not + "\n";
  std::string text = "first different step: " + std::to_string(difference.step) + " " + difference.op + " '" +
                     short_name(difference.step_name) + "' (" + difference.kernel +
                     "): " + comparison_text(difference.comparison) + " of '" +
                     short_name(difference.tensor_name) + "'; " +
                     count_text(difference.compared, "tensor", "tensors") + " before it equal";
  if (difference.uncompared > 0)
    text += ", " + std::to_string(difference.uncompared) + " that the other plan lacks";
  text += "\n";
  if (difference.command.empty()) return text;
  return text +
         (difference.shows_alone ? "  a plan of that step alone shows it: "
                                 : "  the step alone does not show it, the whole plan does: ") +
         difference.command + "\n";
}

Json first_difference_json(const FirstDifference& difference) {
  Json json;
  if (!difference.found) {
    json["step"] = nullptr;
    json["reason"] = difference.why_not;
    return json;
  }
  json["step"] = difference.step;
  json["op"] = difference.op;
  json["kernel"] = difference.kernel;
  json["name"] = difference.step_name;
  json["tensor"] = difference.tensor_name;
  json["comparison"] = comparison_json(difference.comparison);
  json["equal_before"] = difference.compared;
  json["not_compared"] = difference.uncompared;
  if (!difference.written.empty()) {
    json["reproduced"] = {{"directory", difference.written},
                          {"plan", difference.plan},
                          {"step_alone", difference.shows_alone},
                          {"command", difference.command}};
  }
  return json;
}

}  // namespace qplan::tools
