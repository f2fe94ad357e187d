// qplan: packs models, runs plans, tells what is in them.
#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <exception>
#include <new>
#include <string>

#include "tools/command.h"
#include "tools/error.h"
#include "tools/files.h"

namespace qplan::tools {
namespace {

int fail(const std::string& text, int exit_code) {
  std::fprintf(stderr, "qplan: %s\n", one_line(text).c_str());
  return exit_code;
}

// "qplan pack" where a subcommand was named, for the hint in usage errors.
std::string command_name(const CLI::App& app) {
  const auto subcommands = app.get_subcommands();
  return subcommands.empty() ? "qplan" : "qplan " + subcommands.front()->get_name();
}

int run(int argc, char** argv) {
  CLI::App app("Packs quantised neural networks into plans and runs them.", "qplan");
  app.set_version_flag("--version", "qplan " QPLAN_VERSION, "Print the version and exit");
  app.set_help_flag("-h,--help", "Print this help and exit");
  app.require_subcommand(1);
  app.footer(
      "Examples:\n"
      "  qplan pack model.tflite -o model.qplan\n"
      "  qplan run model.qplan --input cat.bmp --labels labels.txt\n"
      "  qplan bench model.qplan --threads 2\n"
      "Exit status: 0 success, 1 something is wrong with a model, plan, file or machine, 2 wrong usage.\n"
      "'qplan COMMAND --help' tells more about each command.");
  add_pack_command(app);
  add_run_command(app);
  add_inspect_command(app);
  add_bench_command(app);
  add_check_command(app);
  add_disasm_command(app);
  add_import_command(app);
  try {
    app.parse(argc, argv);
    finish_stdout();
    return kExitOk;
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {  // --help, --version
      app.exit(error);
      std::cout.flush();
      finish_stdout();
      return kExitOk;
    }
    return fail(std::string(error.what()) + "; see '" + command_name(app) + " --help'", kExitUsage);
  } catch (const UsageError& error) {
    return fail(std::string(error.what()) + "; see '" + command_name(app) + " --help'", kExitUsage);
  }
}

}  // namespace
}  // namespace qplan::tools

int main(int argc, char** argv) {
  // A file size limit is an error of the write, with a text, not the end of the process.
  std::signal(SIGXFSZ, SIG_IGN);
  try {
    return qplan::tools::run(argc, argv);
  } catch (const std::bad_alloc&) {
    return qplan::tools::fail("out of memory", qplan::tools::kExitFailure);
  } catch (const std::exception& error) {
    return qplan::tools::fail(error.what(), qplan::tools::kExitFailure);
  }
}
