// qplan explain: which operator would run where, and why.
#include <memory>
#include <string>

#include "qplan/host.h"
#include "qplan/pack.h"
#include "tools/command.h"
#include "tools/error.h"
#include "tools/model_options.h"
#include "tools/text_sink.h"

namespace qplan::tools {
namespace {

struct ExplainOptions {
  ModelOptions model;
  PlacementOptions placement;
  bool json = false;
  std::string html;
};

void run(const ExplainOptions& options) {
  if (options.json && !options.html.empty())
    throw UsageError("--json and --html: found both, expected one of them");
  PackArguments arguments(options.model);
  arguments.place(options.placement);
  const int format = options.json           ? QPLAN_EXPLAIN_JSON
                     : options.html.empty() ? QPLAN_EXPLAIN_TEXT
                                            : QPLAN_EXPLAIN_HTML;
  std::string text;
  qplan_error error = make_error();
  arguments.check(qplan_explain(options.model.model.c_str(), &arguments.pack_options(), format,
                                append_to_string, &text, &error),
                  error);
  if (options.html.empty()) {
    print(text);
  } else {
    check(qplan_file_write(options.html.c_str(), text.data(), text.size(), &error), error, "");
  }
}

}  // namespace

void add_explain_command(CLI::App& app) {
  auto options = std::make_shared<ExplainOptions>();
  options->model.target = "vta, cpu";
  CLI::App* command =
      app.add_subcommand("explain", "Tell which operator of a model would run where, and why");
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
      "Without --target the targets are \"vta, cpu\". Nothing is packed; the figures are those of the plan "
      "that "
      "`qplan pack` would make with the same options. MODEL may be a plan that was packed for a device: then "
      "it "
      "tells what was decided.\n"
      "Examples:\n"
      "  qplan explain model.tflite\n"
      "  qplan explain model.tflite --target \"vta,sram=quarter, cpu\"\n"
      "  qplan explain model.qplan\n"
      "  qplan explain model.tflite --html placement.html\n"
      "  qplan explain model.onnx --contract tfl2 --json > placement.json");
  command->callback([options]() { run(*options); });
}

}  // namespace qplan::tools
