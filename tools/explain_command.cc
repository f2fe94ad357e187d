// qplan explain: which operator would run where, and why.
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "qplan/host.h"
#include "qplan/pack.h"
#include "tools/command.h"
#include "tools/error.h"
#include "tools/files.h"
#include "tools/model_options.h"
#include "tools/reports.h"
#include "tools/words.h"

namespace qplan::tools {
namespace {

struct ExplainOptions {
  ModelOptions model;
  PlacementOptions placement;
  bool json = false;
  std::string html;
};

// Whether the target list has a device: a word that is neither "cpu" nor an option of one, "vta" in
// "vta,sram=quarter, cpu".
bool names_device(const ExplainOptions& options) {
  if (!options.placement.target_file.empty()) return true;
  const std::string& list = options.model.target;
  for (size_t begin = 0; begin < list.size();) {
    const size_t end = std::min(list.find(',', begin), list.size());
    const size_t first = std::min(list.find_first_not_of(' ', begin), end);
    const std::string word = list.substr(first, end - first);
    if (!word.empty() && word.find('=') == std::string::npos && word.substr(0, word.find(' ')) != "cpu")
      return true;
    begin = end + 1;
  }
  return false;
}

// The packer's report of the placement.
std::string placement_text(const ExplainOptions& options, int format) {
  PackArguments arguments(options.model);
  arguments.place(options.placement);
  std::string text;
  qplan_error error = make_error();
  arguments.check(qplan_explain(options.model.model.c_str(), &arguments.pack_options(), format,
                                append_to_string, &text, &error),
                  error);
  return text;
}

// The steps that run on the CPU, of a plan or of the plan that a model would become.
std::string cpu_text(const ExplainOptions& options, bool is_plan) {
  if (!options.html.empty()) {
    throw Failure("--html: draws what runs on which device, '" + options.model.model +
                  "' is a plan for the CPU alone; leave --html out, or draw a model");
  }
  const std::string path = options.model.model;
  const auto report =
      is_plan
          ? cpu_explain_json(PlanFile(path))
          : cpu_explain_json(PlanFile(path, pack_model(options.model, options.placement, QPLAN_FUSE_AUTO)));
  if (!options.json) return cpu_explain_text(report);
  // For a model the JSON includes the report of the placement, as with devices.
  auto json = is_plan ? nlohmann::ordered_json::object()
                      : nlohmann::ordered_json::parse(placement_text(options, QPLAN_EXPLAIN_JSON));
  json["isa"] = report.at("isa");
  json["steps"] = report.at("steps");
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

bool is_for_cpu_alone(const PlanFile& plan) {
  return !has_devices(
      nlohmann::ordered_json::parse(inspect_text(plan.bytes(), plan.size(), "'" + plan.path() + "'")));
}

void run(const ExplainOptions& options) {
  if (options.json && !options.html.empty())
    throw UsageError("--json and --html: found both, expected one of them");
  check_outputs({{"--html", options.html}}, input_files(options.model, options.placement));
  const bool is_plan = is_plan_file(options.model.model);
  const bool is_cpu = is_plan ? is_for_cpu_alone(PlanFile(options.model.model))
                              : !names_device(options) && options.html.empty();
  const int format = options.json           ? QPLAN_EXPLAIN_JSON
                     : options.html.empty() ? QPLAN_EXPLAIN_TEXT
                                            : QPLAN_EXPLAIN_HTML;
  const std::string text = is_cpu ? cpu_text(options, is_plan) : placement_text(options, format);
  if (options.html.empty()) {
    print(text);
    return;
  }
  qplan_error error = make_error();
  check(qplan_file_write(options.html.c_str(), text.data(), text.size(), &error), error, "");
}

}  // namespace

void add_explain_command(CLI::App& app) {
  auto options = std::make_shared<ExplainOptions>();
  CLI::App* command =
      app.add_subcommand("explain", "Show where each operator of a model runs, as which kernel, and why");
  add_model_options(*command, options->model);
  add_placement_options(*command, options->placement);
  command->add_flag("--json", options->json, "As JSON");
  command
      ->add_option(
          "--html", options->html,
          "Write one HTML page there, which needs nothing else: the graph drawn, and the reasons of each "
          "operator")
      ->type_name("FILE");
  command->footer(
      "For the CPU (without --target): the steps of the plan that `qplan pack` would make, the kernels "
      "that this machine runs\n"
      "them with, and why one is slow. With a device in --target: what runs there and what does not, "
      "with all reasons.\n"
      "MODEL may be a plan: then explain shows what was decided.\n"
      "Examples:\n"
      "  qplan explain model.tflite\n"
      "  qplan explain model.tflite --target \"vta, cpu\"\n"
      "  qplan explain model.tflite --target \"vta,sram=quarter, cpu\"\n"
      "  qplan explain model.qplan\n"
      "  qplan explain model.tflite --target \"vta, cpu\" --html placement.html\n"
      "  qplan explain model.onnx --target \"vta, cpu\" --contract tfl2 --json > placement.json");
  command->callback([options]() { run(*options); });
}

}  // namespace qplan::tools
