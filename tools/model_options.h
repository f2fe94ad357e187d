// The options of `qplan pack`, `qplan explain` and `qplan import` about how a model is read, rewritten and
// placed, and the packer's struct of them.
#ifndef QPLAN_TOOLS_MODEL_OPTIONS_H_
#define QPLAN_TOOLS_MODEL_OPTIONS_H_

#include <CLI/CLI.hpp>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "qplan/pack.h"
#include "tools/command.h"
#include "tools/files.h"

namespace qplan::tools {

struct ModelOptions {
  std::string model;
  std::string target = "cpu";
  std::string contract, io, io_layout;
  std::vector<std::string> input_shapes;      // "x=1x3x224x224:float32"
  std::vector<std::string> bindings;          // "w=w.npy"
  std::vector<std::string> begin_at, end_at;  // names of tensors
  std::string custom_operators;               // a library
  std::string seed;                           // of synthesised constants; empty: none
  bool keep_float = false;
  std::vector<std::string> skip;
  std::string dump_after;
  std::string log_level = "warning";
  bool verbose = false;
};

// The positional argument `name`, which is `what`, and all the options.
void add_model_options(CLI::App& command, ModelOptions& options, const std::string& name = "MODEL",
                       const std::string& what = "Model file");
// The files that they read: MODEL, those of the bindings, and the library of --custom-operators.
std::vector<NamedFile> input_files(const ModelOptions& options);

// Where operators go: of `qplan pack` and `qplan explain`.
struct PlacementOptions {
  std::string target_file;
  std::vector<std::string> target_libs;
  std::string policy = "soft";
  std::vector<std::string> pins;  // "block3/conv=vta"
  bool no_cost_gate = false;
  std::string prefer;  // "npu", "latency", "energy"; empty: the packer's default
  std::string fallback = "cpu";
};
// After add_model_options.
void add_placement_options(CLI::App& command, PlacementOptions& options);
// The input files of both groups of options.
std::vector<NamedFile> input_files(const ModelOptions& model, const PlacementOptions& placement);

// Adds --fuse to `qplan pack` and `qplan tune`; how: "auto".
CLI::Option* add_fuse_option(CLI::App& command, std::string& how);
// QPLAN_FUSE_*.
uint32_t parse_fuse(const std::string& how);
// QPLAN_PREFER_*; of "" the default.
uint32_t parse_prefer(const std::string& what);

// "x=1x3x224x224:float32". UsageError.
struct NamedType {
  std::string name;
  DLDataType dtype{};
  std::vector<int64_t> shape;
};
NamedType parse_input_shape(const std::string& text);

// The packer's options, with everything that they point to. Dumps go to standard output, the log to standard
// error.
class PackArguments {
 public:
  // Reads the files of the bindings. UsageError, Failure.
  explicit PackArguments(const ModelOptions& options);
  PackArguments(const PackArguments&) = delete;
  PackArguments& operator=(const PackArguments&) = delete;

  qplan_pack_options& pack_options() { return options_; }
  // UsageError. options must outlive the arguments.
  void place(const PlacementOptions& options);
  // The packer's line about the placement, once a plan was made.
  const std::string& summary() const { return summary_; }
  // Throws Failure with the packer's whole text unless status is a success.
  void check(qplan_status status, const qplan_error& error) const;

 private:
  struct Binding {
    std::string name;
    std::vector<uint8_t> file;
    std::vector<int64_t> shape;
    DLTensor tensor{};
  };
  void add_binding(const std::string& text);

  qplan_pack_options options_{};
  std::deque<NamedType> types_;
  std::deque<Binding> bindings_;
  std::vector<qplan_named_type> named_types_;
  std::vector<qplan_named_tensor> named_tensors_;
  std::vector<const char*> skip_, begin_at_, end_at_, pins_, target_libs_;
  Progress progress_;
  std::string error_text_, summary_;
};

// The plan of a model. fuse: QPLAN_FUSE_*. UsageError, Failure.
std::string pack_model(const ModelOptions& model, const PlacementOptions& placement, uint32_t fuse);

// The subcommands: each adds itself to the application, one file each.

void add_pack_command(CLI::App& app);
void add_run_command(CLI::App& app);
void add_inspect_command(CLI::App& app);
void add_bench_command(CLI::App& app);
void add_tune_command(CLI::App& app);
void add_check_command(CLI::App& app);
void add_diff_command(CLI::App& app);
void add_disasm_command(CLI::App& app);
void add_report_command(CLI::App& app);
void add_eval_command(CLI::App& app);
void add_sign_command(CLI::App& app);
void add_verify_command(CLI::App& app);
void add_emit_c_command(CLI::App& app);
void add_link_command(CLI::App& app);
void add_import_command(CLI::App& app);
void add_explain_command(CLI::App& app);
void add_npu_command(CLI::App& app);
void add_npu_info_command(CLI::App& npu);

}  // namespace qplan::tools

#endif  // QPLAN_TOOLS_MODEL_OPTIONS_H_
