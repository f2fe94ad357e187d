// qplan emit-c: a plan as C for firmware.
#include <memory>
#include <string>

#include "qplan/pack.h"
#include "tools/emitted_files.h"
#include "tools/error.h"
#include "tools/files.h"
#include "tools/model_options.h"
#include "tools/words.h"

namespace qplan::tools {
namespace {

struct EmitOptions {
  std::string plan;
  std::string directory;
  std::string name;
  std::string isa;
  bool aot = false;
};

void run(const EmitOptions& options) {
  check_output_directory(options.directory);
  const PlanFile plan(options.plan);
  const std::string name = options.name.empty() ? identifier_of(options.plan) : options.name;
  qplan_emit_options emit_options{};
  emit_options.struct_size = sizeof emit_options;
  emit_options.aot = options.aot ? 1 : 0;
  emit_options.name = name.c_str();
  emit_options.isa = emitted_isa(options.isa);
  EmittedFiles files;
  qplan_error error = make_error();
  check(qplan_emit_c(plan.bytes(), plan.size(), &emit_options, append_file, &files, &error), error,
        "'" + options.plan + "'");
  print(write_emitted(files, options.directory));
}

}  // namespace

void add_emit_c_command(CLI::App& app) {
  auto options = std::make_shared<EmitOptions>();
  CLI::App* command = app.add_subcommand("emit-c", "Write a plan as C for firmware");
  command->add_option("PLAN", options->plan, "Plan file")->required()->type_name("");
  command->add_option("-o,--output", options->directory, "Folder for the files; created where it is missing")
      ->required()
      ->type_name("DIR");
  command->add_flag(
      "--aot", options->aot,
      "Direct calls of the kernels, with constant arguments: nothing is verified or looked up at run "
      "time. Without it, the plan is an array that the runtime opens");
  command->add_option("--name", options->name, "Of files and functions (default: the plan file's)")
      ->type_name("NAME");
  command
      ->add_option("--isa", options->isa,
                   "With --aot: the instruction set of the kernels (default: one that every processor of the "
                   "plan's architecture has)")
      ->type_name("ISA");
  command->footer(
      "The files are C99, need include/ of qplan alone and link with libqplan.a. They define NAME_init, "
      "NAME_input,\n"
      "NAME_run and NAME_output; NAME.h has the sizes, types and quantisation of inputs and outputs.\n"
      "Examples:\n"
      "  qplan emit-c kws.qplan -o kws\n"
      "  qplan emit-c kws.qplan -o kws --aot --name keywords");
  command->callback([options]() { run(*options); });
}

}  // namespace qplan::tools
