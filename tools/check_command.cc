// qplan check: everything that can be known of a plan without running it, and whether it computes what
// something else computes (check.h), or what it computed when it was packed.
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tools/check.h"
#include "tools/command.h"
#include "tools/files.h"
#include "tools/given_options.h"
#include "tools/model_options.h"
#include "tools/number_option.h"
#include "tools/reports.h"
#include "tools/session.h"
#include "tools/tensor.h"

namespace qplan::tools {
namespace {

using Json = nlohmann::ordered_json;

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
// and loads every region on its device. The memory is that of a session with the threads that were asked for.
std::string verify(const PlanFile& plan, const CheckOptions& options) {
  SessionOptions session = options.session;
  session.custom_operators = options.model.custom_operators;
  session.isa = "reference";
  Session reference(plan, session);
  session.isa = "auto";
  Session best(plan, session);
  const qplan_session_info info = best.info();
  const std::string regions = session.npu.driver == "none" ? "" : regions_text(best);
  return "OK: " + grouped(plan.size()) + " bytes, digest and structure verified, " +
         count_text(info.num_steps, "step", "steps") + " bound (" + info.isa_name + ", reference)" + regions +
         ", " + grouped(info.memory_bytes) + " bytes of memory\n";
}

std::string heading(const Outcome& outcome) {
  const Comparison& comparison = *outcome.comparison;
  return (comparison.label.empty() ? "" : comparison.label + " ") + "against " + comparison.against + ", " +
         outcome.inputs->name;
}

std::string text_of(const Check& check, const CheckOptions& options) {
  std::string text;
  uint64_t different = 0;
  for (const Outcome& outcome : check.outcomes()) {
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
  for (const auto& [what, reason] : check.skipped()) text += "skipped    " + what + ": " + reason + "\n";
  text += count_text(check.outcomes().size(), "comparison", "comparisons") + ", ";
  text += different == 0
              ? (options.tolerance == 0 ? std::string("all equal")
                                        : "none beyond " + count_text(options.tolerance, "step", "steps"))
              : std::to_string(different) + " different";
  const bool has_step = std::ranges::any_of(
      check.outcomes(), [](const Outcome& outcome) { return outcome.first && outcome.first->found; });
  if (has_step && options.reproduce.empty())
    text += "; --reproduce DIR writes a plan of the first different step and its input";
  return text + "\n";
}

Json json_of(const Check& check, const CheckOptions& options) {
  Json report;
  report["plan"] = check.plan().path();
  report["equal"] = std::ranges::all_of(check.outcomes(), [](const Outcome& outcome) {
    return std::ranges::all_of(outcome.outputs, &TensorComparison::equal);
  });
  report["tolerance"] = options.tolerance;
  report["within_tolerance"] = check.all_within();
  report["comparisons"] = Json::array();
  for (const Outcome& outcome : check.outcomes()) {
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
  for (const auto& [what, reason] : check.skipped())
    report["skipped"].push_back({{"what", what}, {"reason", reason}});
  return report;
}

// Whether the plan computes on this session what it computed when it was packed. "" where it does, else the
// first step that does not.
std::string self_check(const PlanFile& plan, const CheckOptions& options) {
  SessionOptions session = options.session;
  session.custom_operators = options.model.custom_operators;
  Session checked(plan, session);
  const qplan_status status = qplan_session_self_check(checked.get());
  qplan_error error = make_error();
  qplan_session_last_error(checked.get(), &error);
  if (status != QPLAN_SELF_CHECK_FAILED) check(status, error, "plan '" + plan.path() + "'");
  return status < 0 ? one_line(error.text) : "";
}

void check_self(const PlanFile& plan, const std::string& verified, const CheckOptions& options) {
  const std::string fault = self_check(plan, options);
  const auto count = nlohmann::ordered_json::parse(inspect_text(plan.bytes(), plan.size(), plan.path()))
                         .at("self_checks")
                         .get<uint64_t>();
  if (options.json) {
    Json report = {{"plan", plan.path()}, {"verified", true}, {"self_checks", count}};
    report["self_check"] = fault.empty() ? Json("passed") : Json(fault);
    print(json_page(report));
  } else {
    print(verified + (fault.empty() ? "self-check: passed, " + count_text(count, "run", "runs") + "\n"
                                    : "DIFFERENT  " + fault + "\n"));
  }
  if (!fault.empty()) throw ExitStatus{kExitDifferent};
}

// Whether one of the folders is the other, or within it.
bool share_a_folder(const std::string& a, const std::string& b) {
  std::error_code error;
  const std::filesystem::path paths[] = {std::filesystem::weakly_canonical(a + "/", error),
                                         std::filesystem::weakly_canonical(b + "/", error)};
  const auto [first, second] =
      std::mismatch(paths[0].begin(), paths[0].end(), paths[1].begin(), paths[1].end());
  // The canonical path of a folder may end with an empty part.
  return first == paths[0].end() || second == paths[1].end() || first->empty() || second->empty();
}

// What --reproduce writes has the names that --expect reads.
void check_reproduce(const CheckOptions& options) {
  if (options.reproduce.empty()) return;
  check_output_directory(options.reproduce);
  for (const std::string& folder : options.expect) {
    if (!share_a_folder(folder, options.reproduce)) continue;
    throw Failure("--reproduce '" + options.reproduce + "' and --expect '" + folder +
                  "' would mix their files; give another folder");
  }
  std::vector<NamedFile> inputs =
      input_files(options.session, input_files(options.model, options.placement), options.inputs);
  for (const std::string& against : options.against) inputs.push_back({"--against", against});
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(options.reproduce, error)) {
    const std::string name = entry.path().filename().string();
    for (const char* begin : {"input", "output", "plan", "step"}) {
      if (name.starts_with(begin))
        check_outputs({{"--reproduce", entry.path().string(), NamedFile::Written::kInItsFolder}}, inputs);
    }
  }
}

// Options that the comparisons in question do not read.
void refuse_unused(const CLI::App& command, const CheckOptions& options) {
  if (!options.compares()) {
    const std::string without = "without --expect or --against";
    refuse_without_effect(command, {"--input", "--mean", "--std", "--random", "--tolerance", "--reproduce"},
                          without);
    if (!options.self)
      refuse_without_effect(command, {"--threads", "--affinity", "--isa", "--pool"}, without + " or --self");
    return;
  }
  refuse_unused_normalisation(command, options.inputs);
  if (!options.inputs.empty()) refuse_without_effect(command, {"--random"}, "beside --input");
  if (!options.expect.empty()) {
    refuse_without_effect(command, {"--random"}, "beside --expect");
    return;
  }
  const std::vector<std::string> against = against_words(options);
  const auto is_only = [&](const char* word) {
    return std::ranges::all_of(against, [&](const std::string& other) { return other == word; });
  };
  if (is_only("isas")) refuse_without_effect(command, {"--isa"}, "on --against isas, which has each of them");
  if (is_only("threads")) {
    refuse_without_effect(command, {"--threads", "--affinity"},
                          "on --against threads, which has numbers of its own");
  }
}

void run(const CLI::App& command, const CheckOptions& options) {
  parse_isa(options.session.isa);
  if (!options.against.empty() && against_words(options).empty())
    throw UsageError("--against: names nothing; expected a plan, a model or " + joined(known_references()));
  const bool packs = std::ranges::any_of(against_words(options), names_model);
  if (is_plan_file(options.model.model) && !packs) refuse_options_of_models(command);
  check_reproduce(options);
  driver_options(options.session.npu);
  if (options.self && options.compares())
    throw UsageError("--self compares with nothing else: leave out --expect and --against");
  if (!options.compares()) {
    const PlanFile plan(options.model.model, QPLAN_PLAN_DIGEST);  // a model has nothing to verify
    refuse_unused(command, options);
    check_npu_options(options.session.npu, plan);
    const std::string verified = verify(plan, options);
    if (options.self) {
      check_self(plan, verified, options);
    } else if (options.json) {
      print(json_page({{"plan", plan.path()}, {"verified", true}}));
    } else {
      print(verified);
    }
    return;
  }
  refuse_unused(command, options);
  Check check(options);
  const std::string verified = verify(check.plan(), options);
  check.plan_comparisons();
  check.run();
  print(options.json ? json_page(json_of(check, options)) : verified + text_of(check, options));
  if (!check.all_within()) throw ExitStatus{kExitDifferent};
}

}  // namespace

void add_check_command(CLI::App& app) {
  auto options = std::make_shared<CheckOptions>();
  CLI::App* command =
      app.add_subcommand("check", "Verify a plan, and compare what it computes with something else");
  add_model_options(*command, options->model, "PLAN", "Plan, or model file");
  add_placement_options(*command, options->placement);
  add_fuse_option(*command, options->fuse);
  add_session_options(*command, options->session);
  command
      ->add_option(
          "--expect", options->expect,
          "Compare with the outputs in this directory: output0.bin (or .npy), output1.bin, ..., beside "
          "input0.bin, ... Or with those of all directories in it; for a network with states these are "
          "consecutive runs. May be repeated")
      ->type_name("DIR");
  command
      ->add_option(
          "--against", options->against,
          "Compare with: reference (the reference kernels), isas (each instruction set of this "
          "machine), threads "
          "(2, 3, 4 and all of them), sim (the device of --driver with the CPU), cascades (of a "
          "model: packed with "
          "all, some and none), onnxruntime or tflite (of an ONNX or TFLite model, where it is installed), "
          "all (those of these that apply), or a plan or model. Several with commas")
      ->type_name("WHAT:{reference,isas,threads,sim,cascades,onnxruntime,tflite,all,FILE}");
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
      ->transform(whole_number())
      ->check(CLI::Range(1, 100000).description(""));
  command
      ->add_option("--tolerance", options->tolerance,
                   "Differences of so many steps do not count (default 0): steps of integers, of floats the "
                   "floats that lie between")
      ->type_name("STEPS")
      ->transform(whole_number());
  command
      ->add_option(
          "--reproduce", options->reproduce,
          "Write a plan of the first different step alone there, with its inputs and what is expected "
          "of it")
      ->type_name("DIR");
  command->add_flag(
      "--self", options->self,
      "Run the self-checks of a plan of `pack --self-check`, on the kernels, threads and device of "
      "this command, and name the first step that is wrong");
  command->add_flag("--json", options->json, "Print the result as JSON")
      ->excludes(command->get_option("--dump-after"));
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
      "  qplan check model.qplan --self\n"
      "  qplan check model.qplan --expect golden\n"
      "  qplan check model.tflite --expect golden/cat --expect golden/dog --against all\n"
      "  qplan check model.qplan --against isas,threads --random 10 --reproduce difference\n"
      "  qplan check new.qplan --against old.qplan --input cat.bmp --tolerance 1 --json\n"
      "  qplan check npu.qplan --against sim --driver ./libmy_driver.so");
  command->callback([command, options]() { run(*command, *options); });
}

}  // namespace qplan::tools
