// qplan explain: which operator would run where, and why.
#include <memory>
#include <string>

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
};

void run(const ExplainOptions& options) {
  PackArguments arguments(options.model);
  arguments.place(options.placement);
  std::string text;
  qplan_error error = make_error();
  arguments.check(
      qplan_explain(options.model.model.c_str(), &arguments.pack_options(),
                    options.json ? QPLAN_EXPLAIN_JSON : QPLAN_EXPLAIN_TEXT, append_to_string, &text, &error),
      error);
  print(text);
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
      "  qplan explain model.onnx --contract tfl2 --json > placement.json");
  command->callback([options]() { run(*options); });
}

}  // namespace qplan::tools
