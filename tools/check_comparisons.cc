
#include <algorithm>
#include <filesystem>

#include "tools/check.h"
#include "tools/command.h"
#include "tools/files.h"
#include "tools/reports.h"
#include "tools/tensor.h"

namespace qplan::tools {

const std::vector<std::string>& known_references() {
  static const std::vector<std::string> kNames = {"reference", "isas",        "threads", "sim",
                                                  "cascades",  "onnxruntime", "tflite",  "all"};
  return kNames;
}

namespace {

// The words of a list with commas.
void add_words(const std::string& list, std::vector<std::string>* words) {
  for (size_t begin = 0; begin <= list.size();) {
    const size_t end = std::min(list.find(',', begin), list.size());
    if (end > begin) words->push_back(list.substr(begin, end - begin));
    begin = end + 1;
  }
}

}  // namespace

std::vector<std::string> against_words(const CheckOptions& options) {
  std::vector<std::string> words;
  for (const std::string& list : options.against) add_words(list, &words);
  return words;
}

bool names_model(const std::string& word) {
  const bool is_known = std::ranges::find(known_references(), word) != known_references().end();
  std::error_code code;
  return !is_known && !is_plan_file(word) && std::filesystem::exists(word, code);
}

Check::Check(const CheckOptions& options) : options_(options) {
  const std::string& path = options.model.model;
  is_plan_ = is_plan_file(path);
  if (is_plan_) {
    plan_ = &plans_.emplace_back(path, QPLAN_PLAN_DIGEST);
  } else {
    plan_ =
        &plans_.emplace_back(path, pack_model(options.model, options.placement, parse_fuse(options.fuse)));
  }
}

void Check::plan_comparisons() {
  read_given();
  for (const std::string& directory : options_.expect) {
    comparisons_.push_back({"", "'" + directory + "'", side(plan_, ""), std::nullopt,
                            expected_cases(directory, *plan_, given_)});
  }
  std::vector<std::string> against = against_words(options_);
  const bool all = std::ranges::find(against, "all") != against.end();
  if (all) against = {"reference", "isas", "threads", "sim", "cascades", "onnxruntime", "tflite"};
  for (const std::string& what : against) add(what, all);
}

void Check::run() {
  Progress progress;
  uint64_t done = 0, total = 0;
  for (const Comparison& comparison : comparisons_) total += comparison.cases.size();
  for (const Comparison& comparison : comparisons_) {
    // The outputs of one session at a time: there may be many cases with large outputs.
    for (size_t begin = 0; begin < comparison.cases.size();) {
      const std::span<const CheckCase> cases = cases_of_session(comparison.cases, begin);
      const std::vector<TensorBytes> found =
          run_check_cases(comparison.found, cases, [&] { progress.update("check", done++, total + 1); });
      for (size_t i = 0; i < found.size(); ++i) outcomes_.push_back(compare(comparison, cases[i], found[i]));
      begin += cases.size();
    }
  }
}

bool Check::all_within() const {
  return std::ranges::all_of(outcomes_, [](const Outcome& outcome) { return outcome.is_within; });
}

void Check::read_given() {
  const std::vector<qplan_tensor_info> infos = tensor_infos(plan_->plan(), QPLAN_INPUT);
  if (options_.inputs.empty()) return;
  if (options_.inputs.size() != infos.size()) {
    throw Failure("plan '" + plan_->path() + "' has " + count_text(infos.size(), "input", "inputs") +
                  ", found " + std::to_string(options_.inputs.size()) + " after --input");
  }
  const PlanMetadata metadata(*plan_);
  for (uint32_t i = 0; i < infos.size(); ++i) {
    given_.push_back(load_input(options_.inputs[i], infos[i], describe(QPLAN_INPUT, i, infos[i]),
                                metadata.normalisation(i, options_.mean, options_.std)));
  }
}

std::vector<CheckCase> Check::cases() {
  if (!given_.empty()) return {{"--input", given_, std::nullopt}};
  std::vector<CheckCase> result;
  for (const std::string& directory : options_.expect) {
    for (CheckCase& one : expected_cases(directory, *plan_, given_)) {
      one.outputs.reset();
      result.push_back(std::move(one));
    }
  }
  for (uint32_t seed = 1; result.empty() || (options_.expect.empty() && seed <= options_.seeds); ++seed)
    result.push_back({"random " + std::to_string(seed), random_inputs(*plan_, seed), std::nullopt});
  return result;
}

CheckSide Check::side(const PlanFile* plan, std::string label) const {
  CheckSide result{std::move(label), plan, options_.session};
  result.options.custom_operators = options_.model.custom_operators;
  return result;
}

CheckSide Check::reference(const PlanFile* plan) const {
  CheckSide result = side(plan, "the reference kernels");
  result.options.isa = "reference";
  result.options.threads = 1;
  result.options.processors.clear();  // one for each of other threads
  result.options.npu.driver = "none";
  result.options.npu.driver_options.clear();
  result.options.npu.verify = false;
  result.options.npu.on_failure = "fallback";
  return result;
}

void Check::add(CheckSide found, std::optional<CheckSide> expected, std::vector<CheckCase> inputs) {
  const std::string label = found.label, against = expected ? expected->label : "";
  comparisons_.push_back({label, against, std::move(found), std::move(expected), std::move(inputs)});
}

void Check::skip(const std::string& what, const std::string& reason, bool all) {
  if (!all) throw Failure("--against " + what + ": " + reason);
  skipped_.emplace_back(what, reason);
}

void Check::add(const std::string& what, bool all) {
  if (what == "reference") return add(side(plan_, "this machine's kernels"), reference(plan_), cases());
  if (what == "isas") return add_isas();
  if (what == "threads") return add_threads();
  if (what == "sim") return add_device(all);
  if (what == "cascades") return add_cascades(all);
  if (what == "onnxruntime") return add_engine(Engine::kOnnxRuntime, "onnxruntime", "ONNX Runtime", all);
  if (what == "tflite") return add_engine(Engine::kTflite, "tflite", "TensorFlow Lite", all);
  add_file(what);
}

void Check::add_isas() {
  std::vector<std::string> isas;
  add_words(available_isas(), &isas);
  for (const std::string& isa : isas) {
    const std::string name = isa.substr(isa.find_first_not_of(' '));
    CheckSide found = side(plan_, "isa " + name);
    found.options.isa = name;
    if (name != "reference") add(std::move(found), reference(plan_), cases());
  }
}

void Check::add_threads() {
  std::vector<uint32_t> counts = {2, 3, 4, machine_load().cpus};
  std::ranges::sort(counts);
  counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
  for (const uint32_t threads : counts) {
    CheckSide found = side(plan_, count_text(threads, "thread", "threads"));
    found.options.threads = threads;
    found.options.processors.clear();
    if (threads > 1) add(std::move(found), reference(plan_), cases());
  }
}

void Check::add_device(bool all) {
  if (device_targets(*plan_).empty()) {
    return skip("sim", "the plan has no regions for a device; pack it with --target \"vta, cpu\"", all);
  }
  CheckSide found = side(plan_, "the device (" + driver_name(options_.session.npu) + ")");
  found.options.npu.on_failure = "fail";
  add(std::move(found), reference(plan_), cases());
}

void Check::add_cascades(bool all) {
  if (is_plan_) return skip("cascades", "needs a model, which can be packed with and without them", all);
  const auto packed = [&](uint32_t fuse, const char* label) {
    return &plans_.emplace_back(label, pack_model(options_.model, options_.placement, fuse));
  };
  const PlanFile* off = packed(QPLAN_FUSE_OFF, "--fuse off");
  CheckSide expected = reference(off);
  expected.label = "the reference kernels without cascades";
  add(side(off, "no cascades"), expected, cases());
  add(side(packed(QPLAN_FUSE_AUTO, "--fuse auto"), "cascades auto"), expected, cases());
  add(side(packed(QPLAN_FUSE_MEMORY, "--fuse memory"), "cascades memory"), expected, cases());
  add(side(packed(QPLAN_FUSE_ALL, "--fuse all"), "cascades all"), expected, cases());
}

void Check::add_engine(Engine engine, const char* what, const char* name, bool all) {
  if (is_plan_) return skip(what, std::string("needs a model that ") + name + " runs", all);
  const std::string& model = options_.model.model;
  const bool is_its = engine == Engine::kTflite ? is_tflite_file(model) : model.ends_with(".onnx");
  if (all && !is_its) return skip(what, std::string(name) + " does not run models of this format", all);
  std::vector<CheckCase> inputs = cases();
  std::string reason;
  if (!run_engine(engine, model, *plan_, &inputs, &reason)) return skip(what, reason, all);
  comparisons_.push_back({"", name, side(plan_, ""), std::nullopt, std::move(inputs)});
}

void Check::add_file(const std::string& path) {
  const PlanFile* other = nullptr;
  if (is_plan_file(path)) {
    other = &plans_.emplace_back(path, QPLAN_PLAN_DIGEST);
  } else if (names_model(path)) {
    ModelOptions model = options_.model;
    model.model = path;
    other = &plans_.emplace_back(path, pack_model(model, options_.placement, parse_fuse(options_.fuse)));
  } else {
    const std::string near = nearest(path, known_references());
    throw Failure("--against '" + path + "': is no file; " +
                  (near.empty() ? "expected a plan, a model or " + joined(known_references())
                                : "did you mean '" + near + "'?"));
  }
  for (const int direction : {QPLAN_INPUT, QPLAN_OUTPUT}) check_same_types(*other, direction);
  add(side(plan_, ""), side(other, "'" + path + "'"), cases());
}

void Check::check_same_types(const PlanFile& other, int direction) const {
  const auto text = [&](const PlanFile& plan) {
    std::string types;
    for (const qplan_tensor_info& info : tensor_infos(plan.plan(), direction))
      types += (types.empty() ? "" : ", ") + dtype_name(info.dtype) + shape_text(info.shape, info.ndim);
    return types;
  };
  if (text(*plan_) == text(other)) return;
  throw Failure("'" + other.path() + "': its " + (direction == QPLAN_INPUT ? "inputs are " : "outputs are ") +
                text(other) + ", those of '" + plan_->path() + "' " + text(*plan_) +
                "; pack both with the same --io and --io-layout");
}

const TensorBytes& Check::expected_outputs(const Comparison& comparison, const CheckCase& inputs) {
  if (!comparison.expected) return *inputs.outputs;
  const CheckSide& side = *comparison.expected;
  const auto key = [&](const CheckCase& of) { return side.label + "\n" + of.name; };
  const auto at = expected_.find(key(inputs));
  if (at != expected_.end()) return at->second;
  const std::span<const CheckCase> cases =
      cases_of_session(comparison.cases, static_cast<size_t>(&inputs - comparison.cases.data()));
  std::vector<TensorBytes> outputs = run_check_cases(side, cases, [] {});
  for (size_t i = 0; i < outputs.size(); ++i) expected_.emplace(key(cases[i]), std::move(outputs[i]));
  return expected_.at(key(inputs));
}

Outcome Check::compare(const Comparison& comparison, const CheckCase& inputs, const TensorBytes& found) {
  Outcome outcome;
  outcome.comparison = &comparison;
  outcome.inputs = &inputs;
  outcome.infos = tensor_infos(comparison.found.plan->plan(), QPLAN_OUTPUT);
  const TensorBytes& expected = expected_outputs(comparison, inputs);
  for (size_t i = 0; i < found.size(); ++i) {
    outcome.outputs.push_back(compare_tensors(outcome.infos[i], expected[i].data(), found[i].data()));
    outcome.is_within = outcome.is_within && outcome.outputs.back().within(options_.tolerance);
  }
  if (!outcome.is_within) explain(comparison, inputs, expected, &outcome);
  return outcome;
}

// The first run of the session of these inputs that differs. What it began needs no explanation again, which
// would repeat all runs before each later one.
const Outcome* Check::different_run_before(const Comparison& comparison, const CheckCase& inputs) const {
  const std::span<const CheckCase> runs =
      cases_of_session(comparison.cases, static_cast<size_t>(&inputs - comparison.cases.data()));
  for (const Outcome& outcome : outcomes_) {
    const bool is_of_session = outcome.inputs >= runs.data() && outcome.inputs < &inputs;
    if (outcome.comparison == &comparison && is_of_session && !outcome.is_within) return &outcome;
  }
  return nullptr;
}

void Check::explain(const Comparison& comparison, const CheckCase& inputs, const TensorBytes& expected,
                    Outcome* outcome) const {
  if (const Outcome* before = different_run_before(comparison, inputs)) {
    outcome->note = "run '" + before->inputs->name +
                    "' of this session differs already, and the network keeps states from run to run; look "
                    "there first";
    return;
  }
  CheckSide other = comparison.expected.value_or(reference(comparison.found.plan));
  if (!comparison.expected && run_check_side(other, inputs, false).outputs != expected) {
    outcome->note =
        "the reference kernels do not give the expected outputs either: no kernel is at fault, but the "
        "plan "
        "means something else (its --contract, --io, or an operator), or the files are of another model or "
        "input";
    return;
  }
  // The directory holds one difference, the first: another one would replace what the first says of it.
  const bool is_first = std::ranges::none_of(
      outcomes_, [](const Outcome& before) { return before.first && !before.first->written.empty(); });
  outcome->first =
      find_first_difference(other, comparison.found, inputs, is_first ? options_.reproduce : std::string());
}

}  // namespace qplan::tools
