// qplan check: everything that can be known of a plan without running it, and whether it computes what
// something else computes.
#include <algorithm>
#include <cstdint>
#include <deque>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "tools/check_runs.h"
#include "tools/error.h"
#include "tools/files.h"
#include "tools/input.h"
#include "tools/machine.h"
#include "tools/model_options.h"
#include "tools/onnx_runtime.h"
#include "tools/progress.h"
#include "tools/reports.h"
#include "tools/session.h"
#include "tools/tensor.h"
#include "tools/words.h"

namespace qplan::tools {
namespace {

using Json = nlohmann::ordered_json;

struct CheckOptions {
  ModelOptions model;
  PlacementOptions placement;
  SessionOptions session;
  std::string fuse = "auto";
  std::vector<std::string> expect, against, inputs;
  std::string mean, std;
  std::string reproduce;  // a directory
  uint64_t tolerance = 0;
  uint32_t seeds = 1;
  bool json = false;

  [[nodiscard]] bool compares() const { return !expect.empty() || !against.empty(); }
};

const std::vector<std::string>& known_references() {
  static const std::vector<std::string> kNames = {"reference", "isas",        "threads", "sim",
                                                  "cascades",  "onnxruntime", "all"};
  return kNames;
}

// The regions that the devices took; one that a device refused is an error, for it never runs there.
std::string regions_text(const Session& session) {
  const std::vector<qplan_region_info> regions = region_infos(session.get());
  if (regions.empty()) return "";
  for (const qplan_region_info& region : regions) {
    if (region.on_device != 0) continue;
    throw Failure(
        "region '" + one_line(region.name) + "' does not load on '" + one_line(region.target) +
        "': " + (region.text[0] != '\0' ? one_line(region.text) : qplan_status_name(region.status)));
  }
  const std::string driver = one_line(device_infos(session.get()).front().driver);
  return ", " + count_text(regions.size(), "region", "regions") + " loaded (" + driver + ")";
}

// Opens with digest and full verification, then binds every step to a kernel of every ISA this machine has,
// and loads every region on its device.
std::string verify(const PlanFile& plan, const CheckOptions& options) {
  SessionOptions session;
  session.npu = options.session.npu;
  session.max_work = options.session.max_work;
  session.custom_operators = options.model.custom_operators;
  session.isa = "reference";
  Session reference(plan, session);
  session.isa = "auto";
  Session best(plan, session);
  const qplan_session_info info = best.info();
  const std::string regions = session.npu.driver == "none" ? "" : regions_text(best);
  return "OK: " + std::to_string(plan.size()) + " bytes, digest and structure verified, " +
         count_text(info.num_steps, "step", "steps") + " bound (" + info.isa_name + ", reference)" + regions +
         ", " + std::to_string(info.memory_bytes) + " bytes of memory\n";
}

// What gives the same bytes as what.
struct Comparison {
  std::string label;    // "isa avx2"
  std::string against;  // "the reference kernels"
  CheckSide found;
  std::optional<CheckSide> expected;  // nothing: the outputs of the case
  std::vector<CheckCase> cases;
};

struct Outcome {
  const Comparison* comparison;
  const CheckCase* inputs;
  std::vector<qplan_tensor_info> infos;
  std::vector<TensorComparison> outputs;
  bool is_within = true;
  std::optional<FirstDifference> first;
  std::string note;
};

class Check {
 public:
  explicit Check(const CheckOptions& options) : options_(options) {
    const std::string& path = options.model.model;
    is_plan_ = is_plan_file(path);
    if (is_plan_) {
      plan_ = &plans_.emplace_back(path, QPLAN_PLAN_DIGEST);
    } else {
      plan_ =
          &plans_.emplace_back(path, pack_model(options.model, options.placement, parse_fuse(options.fuse)));
    }
  }

  const PlanFile& plan() const { return *plan_; }

  void plan_comparisons() {
    read_given();
    for (const std::string& directory : options_.expect) {
      comparisons_.push_back({"", "'" + directory + "'", side(plan_, ""), std::nullopt,
                              expected_cases(directory, *plan_, given_)});
    }
    std::vector<std::string> against = words(options_.against);
    const bool all = std::ranges::find(against, "all") != against.end();
    if (all) against = {"reference", "isas", "threads", "sim", "cascades", "onnxruntime"};
    for (const std::string& what : against) add(what, all);
  }

  void run() {
    Progress progress;
    uint64_t done = 0, total = 0;
    for (const Comparison& comparison : comparisons_) total += comparison.cases.size();
    for (const Comparison& comparison : comparisons_) {
      for (const CheckCase& inputs : comparison.cases) {
        progress.update("check", done++, total + 1);
        outcomes_.push_back(compare(comparison, inputs));
      }
    }
  }

  [[nodiscard]] bool all_within() const {
    return std::ranges::all_of(outcomes_, [](const Outcome& outcome) { return outcome.is_within; });
  }
  [[nodiscard]] std::string text() const;
  [[nodiscard]] Json json() const;

 private:
  static std::vector<std::string> words(const std::vector<std::string>& lists) {
    std::vector<std::string> result;
    for (const std::string& list : lists) {
      for (size_t begin = 0; begin <= list.size();) {
        const size_t end = std::min(list.find(',', begin), list.size());
        if (end > begin) result.push_back(list.substr(begin, end - begin));
        begin = end + 1;
      }
    }
    return result;
  }

  void read_given() {
    const std::vector<qplan_tensor_info> infos = tensor_infos(plan_->plan(), QPLAN_INPUT);
    if (options_.inputs.empty()) return;
    if (options_.inputs.size() != infos.size()) {
      throw Failure("plan '" + plan_->path() + "' has " + count_text(infos.size(), "input", "inputs") +
                    ", found " + std::to_string(options_.inputs.size()) + " after --input");
    }
    Normalisation normalisation;
    if (!options_.mean.empty()) normalisation.mean = parse_channel_values(options_.mean, "--mean");
    if (!options_.std.empty()) normalisation.std = parse_channel_values(options_.std, "--std");
    for (uint32_t i = 0; i < infos.size(); ++i) {
      given_.push_back(
          load_input(options_.inputs[i], infos[i], describe(QPLAN_INPUT, i, infos[i]), normalisation));
    }
  }

  // The inputs of comparisons that bring none: those that were given, those of --expect, or random ones.
  std::vector<CheckCase> cases() {
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

  CheckSide side(const PlanFile* plan, std::string label) const {
    CheckSide result{std::move(label), plan, options_.session};
    result.options.custom_operators = options_.model.custom_operators;
    return result;
  }

  CheckSide reference(const PlanFile* plan) const {
    CheckSide result = side(plan, "the reference kernels");
    result.options.isa = "reference";
    result.options.threads = 1;
    result.options.npu.driver = "none";
    result.options.npu.driver_options.clear();
    result.options.npu.verify = false;
    result.options.npu.on_failure = "fallback";
    return result;
  }

  void add(CheckSide found, std::optional<CheckSide> expected, std::vector<CheckCase> inputs) {
    const std::string label = found.label, against = expected ? expected->label : "";
    comparisons_.push_back({label, against, std::move(found), std::move(expected), std::move(inputs)});
  }

  // all: what does not apply is left out with a line, else it is an error.
  void skip(const std::string& what, const std::string& reason, bool all) {
    if (!all) throw Failure("--against " + what + ": " + reason);
    skipped_.emplace_back(what, reason);
  }

  void add(const std::string& what, bool all) {
    if (what == "reference") return add(side(plan_, "this machine's kernels"), reference(plan_), cases());
    if (what == "isas") return add_isas();
    if (what == "threads") return add_threads();
    if (what == "sim") return add_device(all);
    if (what == "cascades") return add_cascades(all);
    if (what == "onnxruntime") return add_onnx_runtime(all);
    add_file(what);
  }

  void add_isas() {
    for (const std::string& isa : words({available_isas()})) {
      const std::string name = isa.substr(isa.find_first_not_of(' '));
      CheckSide found = side(plan_, "isa " + name);
      found.options.isa = name;
      if (name != "reference") add(std::move(found), reference(plan_), cases());
    }
  }

  void add_threads() {
    std::vector<uint32_t> counts = {2, 3, 4, machine_load().cpus};
    std::ranges::sort(counts);
    counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
    for (const uint32_t threads : counts) {
      CheckSide found = side(plan_, count_text(threads, "thread", "threads"));
      found.options.threads = threads;
      if (threads > 1) add(std::move(found), reference(plan_), cases());
    }
  }

  void add_device(bool all) {
    if (device_targets(*plan_).empty()) {
      return skip("sim", "the plan has no regions for a device; pack it with --target \"vta, cpu\"", all);
    }
    CheckSide found = side(plan_, "the device (" + driver_name(options_.session.npu) + ")");
    found.options.npu.on_failure = "fail";
    add(std::move(found), reference(plan_), cases());
  }

  void add_cascades(bool all) {
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

  void add_onnx_runtime(bool all) {
    if (is_plan_) return skip("onnxruntime", "needs an ONNX model", all);
    std::vector<CheckCase> inputs = cases();
    std::string reason;
    if (!run_onnx_runtime(options_.model.model, *plan_, &inputs, &reason))
      return skip("onnxruntime", reason, all);
    comparisons_.push_back({"", "ONNX Runtime", side(plan_, ""), std::nullopt, std::move(inputs)});
  }

  // Another plan or model.
  void add_file(const std::string& path) {
    const PlanFile* other = nullptr;
    if (is_plan_file(path)) {
      other = &plans_.emplace_back(path, QPLAN_PLAN_DIGEST);
    } else if (std::ifstream(path).good()) {
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

  void check_same_types(const PlanFile& other, int direction) const {
    const auto text = [&](const PlanFile& plan) {
      std::string types;
      for (const qplan_tensor_info& info : tensor_infos(plan.plan(), direction))
        types += (types.empty() ? "" : ", ") + dtype_name(info.dtype) + shape_text(info.shape, info.ndim);
      return types;
    };
    if (text(*plan_) == text(other)) return;
    throw Failure("'" + other.path() + "': its " +
                  (direction == QPLAN_INPUT ? "inputs are " : "outputs are ") + text(other) + ", those of '" +
                  plan_->path() + "' " + text(*plan_) + "; pack both with the same --io and --io-layout");
  }

  // Expected outputs of a side, which several comparisons share.
  const TensorBytes& expected_outputs(const Comparison& comparison, const CheckCase& inputs) {
    if (!comparison.expected) return *inputs.outputs;
    const CheckSide& side = *comparison.expected;
    const std::string key = side.label + "\n" + inputs.name;
    auto at = expected_.find(key);
    if (at == expected_.end())
      at = expected_.emplace(key, run_check_side(side, inputs.inputs, false).outputs).first;
    return at->second;
  }

  Outcome compare(const Comparison& comparison, const CheckCase& inputs) {
    Outcome outcome;
    outcome.comparison = &comparison;
    outcome.inputs = &inputs;
    outcome.infos = tensor_infos(comparison.found.plan->plan(), QPLAN_OUTPUT);
    const TensorBytes& expected = expected_outputs(comparison, inputs);
    const TensorBytes found = run_check_side(comparison.found, inputs.inputs, false).outputs;
    for (size_t i = 0; i < found.size(); ++i) {
      outcome.outputs.push_back(compare_tensors(outcome.infos[i], expected[i].data(), found[i].data()));
      outcome.is_within = outcome.is_within && outcome.outputs.back().within(options_.tolerance);
    }
    if (!outcome.is_within) explain(comparison, inputs, expected, &outcome);
    return outcome;
  }

  void explain(const Comparison& comparison, const CheckCase& inputs, const TensorBytes& expected,
               Outcome* outcome) const {
    CheckSide other = comparison.expected.value_or(reference(comparison.found.plan));
    if (!comparison.expected && run_check_side(other, inputs.inputs, false).outputs != expected) {
      outcome->note =
          "the reference kernels do not give the expected outputs either: no kernel is at fault, but the "
          "plan "
          "means something else (its --contract, --io, or an operator), or the files are of another model or "
          "input";
      return;
    }
    outcome->first = find_first_difference(other, comparison.found, inputs, options_.reproduce);
  }

  const CheckOptions& options_;
  bool is_plan_ = false;
  std::deque<PlanFile> plans_;
  const PlanFile* plan_ = nullptr;
  TensorBytes given_;
  std::deque<Comparison> comparisons_;
  std::vector<Outcome> outcomes_;
  std::map<std::string, TensorBytes> expected_;
  std::vector<std::pair<std::string, std::string>> skipped_;  // what, reason
};

std::string heading(const Outcome& outcome) {
  const Comparison& comparison = *outcome.comparison;
  return (comparison.label.empty() ? "" : comparison.label + " ") + "against " + comparison.against + ", " +
         outcome.inputs->name;
}

std::string Check::text() const {
  std::string text;
  uint64_t different = 0;
  for (const Outcome& outcome : outcomes_) {
    const bool equal = std::ranges::all_of(outcome.outputs, &TensorComparison::equal);
    text += (equal               ? "equal      "
             : outcome.is_within ? "close      "
                                 : "DIFFERENT  ") +
            heading(outcome) + "\n";
    different += outcome.is_within ? 0 : 1;
    for (size_t i = 0; i < outcome.outputs.size() && !equal; ++i) {
      text += "  " + describe(QPLAN_OUTPUT, static_cast<uint32_t>(i), outcome.infos[i]) + ": " +
              comparison_text(outcome.outputs[i]) + "\n";
    }
    if (!outcome.note.empty()) text += "  " + outcome.note + "\n";
    if (outcome.first) text += "  " + first_difference_text(*outcome.first);
  }
  for (const auto& [what, reason] : skipped_) text += "skipped    " + what + ": " + reason + "\n";
  text += count_text(outcomes_.size(), "comparison", "comparisons") + ", ";
  text += different == 0
              ? (options_.tolerance == 0 ? std::string("all equal")
                                         : "none beyond " + count_text(options_.tolerance, "step", "steps"))
              : std::to_string(different) + " different";
  const bool has_step = std::ranges::any_of(
      outcomes_, [](const Outcome& outcome) { return outcome.first && outcome.first->found; });
  if (has_step && options_.reproduce.empty())
    text += "; --reproduce DIR writes a plan of the first different step and its input";
  return text + "\n";
}

Json Check::json() const {
  Json report;
  report["plan"] = plan_->path();
  report["equal"] = std::ranges::all_of(outcomes_, [](const Outcome& outcome) {
    return std::ranges::all_of(outcome.outputs, &TensorComparison::equal);
  });
  report["tolerance"] = options_.tolerance;
  report["within_tolerance"] = all_within();
  report["comparisons"] = Json::array();
  for (const Outcome& outcome : outcomes_) {
    Json entry;
    entry["what"] = outcome.comparison->label;
    entry["against"] = outcome.comparison->against;
    entry["case"] = outcome.inputs->name;
    entry["within_tolerance"] = outcome.is_within;
    entry["outputs"] = Json::array();
    for (size_t i = 0; i < outcome.outputs.size(); ++i) {
      Json output;
      output["name"] = outcome.infos[i].name;
      output["dtype"] = dtype_name(outcome.infos[i].dtype);
      output["shape"] =
          std::vector<int64_t>(outcome.infos[i].shape, outcome.infos[i].shape + outcome.infos[i].ndim);
      output.update(comparison_json(outcome.outputs[i]));
      entry["outputs"].push_back(std::move(output));
    }
    if (!outcome.note.empty()) entry["note"] = outcome.note;
    if (outcome.first) entry["first_difference"] = first_difference_json(*outcome.first);
    report["comparisons"].push_back(std::move(entry));
  }
  report["skipped"] = Json::array();
  for (const auto& [what, reason] : skipped_)
    report["skipped"].push_back({{"what", what}, {"reason", reason}});
  return report;
}

void run(const CheckOptions& options) {
  parse_isa(options.session.isa);
  if (!options.reproduce.empty()) check_output_directory(options.reproduce);
  driver_options(options.session.npu);
  if (!options.compares()) {
    const PlanFile plan(options.model.model, QPLAN_PLAN_DIGEST);  // a model has nothing to verify
    const std::string verified = verify(plan, options);
    for (const auto& [option, is_given] : {std::pair("--input", !options.inputs.empty()),
                                           std::pair("--reproduce", !options.reproduce.empty())}) {
      if (is_given) throw UsageError(std::string(option) + " needs --expect or --against");
    }
    if (options.json) {
      print(Json{{"plan", plan.path()}, {"verified", true}}.dump(2) + "\n");
    } else {
      print(verified);
    }
    return;
  }
  Check check(options);
  const std::string verified = verify(check.plan(), options);
  check.plan_comparisons();
  check.run();
  print(options.json ? check.json().dump(2, ' ', false, Json::error_handler_t::replace) + "\n"
                     : verified + check.text());
  if (!check.all_within()) throw ExitStatus{kExitDifferent};
}

}  // namespace

void add_check_command(CLI::App& app) {
  auto options = std::make_shared<CheckOptions>();
  CLI::App* command =
      app.add_subcommand("check", "Verify a plan, and compare what it computes with something else");
  add_model_options(*command, options->model);
  add_placement_options(*command, options->placement);
  add_fuse_option(*command, options->fuse);
  add_session_options(*command, options->session);
  command
      ->add_option(
          "--expect", options->expect,
          "Compare with the outputs in this directory: output0.bin (or .npy), output1.bin, ..., beside "
          "input0.bin, ... Or with those of all directories in it. May be repeated")
      ->type_name("DIR");
  command
      ->add_option("--against", options->against,
                   "Compare with: reference (the reference kernels), isas (each instruction set of this "
                   "machine), threads "
                   "(2, 3, 4 and all of them), sim (the device of --driver with the CPU), cascades (of a "
                   "model: packed with "
                   "all, some and none), onnxruntime (of an ONNX model, where it is installed), all (those "
                   "of these that "
                   "apply), or a plan or model. Several with commas")
      ->type_name("WHAT");
  command
      ->add_option("--input", options->inputs,
                   "Inputs as those of `qplan run`, in place of files beside the outputs and of random ones")
      ->type_name("FILE");
  command->add_option("--mean", options->mean, "Of pictures after --input: see `qplan run`")->type_name("M");
  command->add_option("--std", options->std, "See --mean")->type_name("S");
  command
      ->add_option("--random", options->seeds,
                   "How many random inputs are tried where no others are given (default 1)")
      ->type_name("N")
      ->check(CLI::Range(1, 100000));
  command
      ->add_option("--tolerance", options->tolerance,
                   "Differences of so many steps do not count (default 0): steps of integers, of floats the "
                   "floats that lie between")
      ->type_name("STEPS");
  command
      ->add_option(
          "--reproduce", options->reproduce,
          "Write a plan of the first different step alone there, with its inputs and what is expected "
          "of it")
      ->type_name("DIR");
  command->add_flag("--json", options->json, "Print the result as JSON");
  command->footer(
      "Checks the digest and the whole structure, binds every step to a kernel and loads every NPU region on "
      "its device;\n"
      "prints OK or the reason. --driver none leaves the devices out. With --expect or --against it also "
      "runs "
      "the plan,\n"
      "or the plan that `pack` would make of a model, and looks for the first step that makes a difference.\n"
      "Exit status: 0 equal, 3 different, 1 the check could not be made, 2 wrong usage.\n"
      "Examples:\n"
      "  qplan check model.qplan && echo fine\n"
      "  qplan check model.qplan --expect golden\n"
      "  qplan check model.tflite --expect golden/cat --expect golden/dog --against all\n"
      "  qplan check model.qplan --against isas,threads --random 10 --reproduce difference\n"
      "  qplan check new.qplan --against old.qplan --input cat.bmp --tolerance 1 --json\n"
      "  qplan check npu.qplan --against sim --driver ./libmy_driver.so");
  command->callback([options]() { run(*options); });
}

}  // namespace qplan::tools
