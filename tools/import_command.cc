// qplan import: a model as the packer reads it, as text.
#include <memory>
#include <string>

#include "qplan/pack.h"
#include "tools/command.h"
#include "tools/error.h"
#include "tools/text_sink.h"

namespace qplan::tools {
namespace {

struct ImportOptions {
  std::string model;
  bool canonical = false;
  bool print = false;
};

void run(const ImportOptions& options) {
  std::string text;
  std::string error_text;
  qplan_pack_options pack_options{};
  pack_options.struct_size = sizeof pack_options;
  pack_options.log_level = QPLAN_LOG_WARNING;
  pack_options.user = &error_text;
  pack_options.error_text = append_to_string;
  qplan_error error = make_error();
  const qplan_status status = qplan_import_text(options.model.c_str(), &pack_options,
                                                options.canonical ? 1 : 0, append_to_string, &text, &error);
  if (status < 0 && !error_text.empty()) throw Failure(error_text);
  check(status, error, "");
  if (options.print) print(text);
}

}  // namespace

void add_import_command(CLI::App& app) {
  auto options = std::make_shared<ImportOptions>();
  CLI::App* command = app.add_subcommand("import", "Read a model and print its IR");
  command->add_option("MODEL", options->model, "Model file (.tflite)")->required()->type_name("");
  command->add_flag("--canonical", options->canonical, "After all rewrites; without it as imported");
  command->add_flag("--print", options->print, "Print the IR as text; without it the model is only checked");
  command->footer(
      "Examples:\n"
      "  qplan import model.tflite --print\n"
      "  qplan import model.tflite --canonical --print");
  command->callback([options]() { run(*options); });
}

}  // namespace qplan::tools
