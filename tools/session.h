// A session on the heap, and the options every running subcommand shares.
#ifndef QPLAN_TOOLS_SESSION_H_
#define QPLAN_TOOLS_SESSION_H_

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "qplan/custom_operator.h"
#include "qplan/host.h"
#include "qplan/qplan.h"
#include "tools/files.h"
#include "tools/npu.h"

namespace qplan::tools {

struct SessionOptions {
  uint32_t threads = 1;
  std::string isa = "auto";
  std::string pool = "threads";
  std::vector<uint32_t>
      processors;         // one for each thread, by Linux's numbers; empty: where the system puts them
  uint64_t max_work = 0;  // 0: no limit
  std::string custom_operators;
  NpuOptions npu;
  // A pool in front of the session's, which may be null; for traces. It must outlive the session.
  std::function<const qplan_thread_pool*(const qplan_thread_pool*)> wrap_pool;
};

// --threads, --affinity, --isa, --pool, --max-work, and those about devices.
void add_session_options(CLI::App& command, SessionOptions& options);

// others, and the files that the options read: of --input, and the libraries of --driver and
// --custom-operators.
std::vector<NamedFile> input_files(const SessionOptions& options, std::vector<NamedFile> others,
                                   const std::vector<std::string>& inputs = {});

// --custom-operators, and the operators of the library (none of "") with those that come with qplan. Failure.
void add_custom_operators_option(CLI::App& command, std::string& path);
struct CustomOperators {
  explicit CustomOperators(const std::string& path);
  const qplan_custom_operator* const* operators = nullptr;
  uint32_t count = 0;
};

// "0-3,6" as numbers; one may be there twice. UsageError.
std::vector<uint32_t> parse_processors(const std::string& text);

// --max-work alone.
void add_max_work_option(CLI::App& command, uint64_t& max_work);

// The names of the ISAs that this machine and build can run, "reference, avx2".
std::string available_isas();
// The names of all that qplan knows, but for auto; or of the available ones.
std::string known_isas(bool available = false, const std::string& between = ", ");

// QPLAN_ISA_* of a name. UsageError for an unknown one, Failure for one that the machine lacks.
uint32_t parse_isa(const std::string& name);

class Session {
 public:
  // hooks: platform functions beside the thread pool, which is set here; may be NULL, else it must outlive
  // the session.
  Session(const PlanFile& plan, const SessionOptions& options, qplan_platform* hooks = nullptr);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  void write(uint32_t input, const DLTensor& tensor);
  void read(uint32_t output, const DLTensor& tensor);
  void invoke();
  // States as in a new session.
  void reset_state();
  [[nodiscard]] qplan_session_info info() const;
  [[nodiscard]] qplan_event step(uint32_t index) const;
  [[nodiscard]] qplan_session* get() const { return session_; }
  // The simulator's failure to write so far; "": none.
  [[nodiscard]] std::string write_error() const { return npu_.write_error(); }
  [[nodiscard]] bool verifies() const { return npu_.verifies(); }
  // Ends the session and closes its devices: the last files are written now. Failure where one could not be.
  void close();
  // How long it took to allocate the memories and to init the session in them.
  [[nodiscard]] uint64_t init_ns() const { return init_ns_; }

 private:
  void check_call(qplan_status status) const;
  // The calling thread to the first of the processors, those of the pool to the others.
  void pin(const SessionOptions& options);
  void make_pool(const SessionOptions& options);

  using Pool = std::unique_ptr<const qplan_thread_pool, void (*)(const qplan_thread_pool*)>;
  using HostSession = std::unique_ptr<qplan_host_session, void (*)(qplan_host_session*)>;
  std::string label_;
  qplan_kernel_set_storage kernels_{};  // these two outlive the session
  Pool pool_;
  qplan_platform own_platform_{};
  NpuDevices npu_;  // outlive the session
  HostSession host_session_;
  qplan_session* session_ = nullptr;
  uint64_t init_ns_ = 0;
};

// A platform that logs warnings to stderr.
qplan_platform make_platform(uint32_t log_level);

}  // namespace qplan::tools

#endif  // QPLAN_TOOLS_SESSION_H_
