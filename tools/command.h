// The subcommands: each adds itself to the application, one file each.
#ifndef TOOLS_COMMAND_H_
#define TOOLS_COMMAND_H_

#include <CLI/CLI.hpp>

namespace qplan::tools {

void add_pack_command(CLI::App& app);
void add_run_command(CLI::App& app);
void add_inspect_command(CLI::App& app);
void add_bench_command(CLI::App& app);
void add_tune_command(CLI::App& app);
void add_check_command(CLI::App& app);
void add_disasm_command(CLI::App& app);
void add_emit_c_command(CLI::App& app);
void add_import_command(CLI::App& app);
void add_explain_command(CLI::App& app);
void add_npu_command(CLI::App& app);
void add_npu_info_command(CLI::App& npu);

}  // namespace qplan::tools

#endif  // TOOLS_COMMAND_H_
