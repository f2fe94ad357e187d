// qplan-npu-conformance: does a driver keep the rules of qplan/npu_driver.h? Each check runs in a process of
// its own, so that a crash or a hang is one failed check.
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>

#include "qplan/npu_sim.h"
#include "src/packer/pipeline/pipeline.h"
#include "src/packer/target/external/external.h"
#include "tests/conformance/check.h"

namespace qplan::conformance {
namespace {

constexpr unsigned kTimeoutSeconds = 120;
constexpr const char* kExamples =
    "Examples:\n"
    "  qplan-npu-conformance ./libacme_npu.so\n"
    "  qplan-npu-conformance ./libacme_npu.so --options sram=512 --only queue.reset\n"
    "  qplan-npu-conformance sim --json\n"
    "Exit status: 0 when no check failed, 1 when one did, 2 when the driver cannot be tried.";

enum class Outcome : char { kPass = 'p', kFail = 'f', kSkip = 's' };
struct Result {
  const Check* check = nullptr;
  Outcome outcome = Outcome::kFail;
  std::string why;
};

const char* name_of(Outcome outcome) {
  return outcome == Outcome::kPass ? "pass" : outcome == Outcome::kSkip ? "skip" : "fail";
}

// In the child: one letter, then the text.
[[noreturn]] void run_and_tell(const Check& check, const Subject& subject, int pipe) {
  alarm(kTimeoutSeconds);
  std::string said(1, static_cast<char>(Outcome::kPass));
  try {
    if (subject.driver == nullptr && std::strcmp(check.name, "entry.version") != 0)
      throw Skipped("there is no driver");
    check.run(subject);
  } catch (const Skipped& skipped) {
    said = static_cast<char>(Outcome::kSkip) + std::string(skipped.what());
  } catch (const std::exception& error) {
    said = static_cast<char>(Outcome::kFail) + std::string(error.what());
  }
  const ssize_t written = write(pipe, said.data(), std::min<size_t>(said.size(), 4000));
  _exit(written > 0 ? 0 : 3);
}

Result run_check(const Check& check, const Subject& subject) {
  Result result{&check, Outcome::kFail, ""};
  int ends[2];
  if (pipe(ends) != 0) {
    result.why = "no pipe to the check's process";
    return result;
  }
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    run_and_tell(check, subject, ends[1]);
  }
  close(ends[1]);
  std::string said;
  char bytes[4096];
  for (ssize_t count; child > 0 && (count = read(ends[0], bytes, sizeof(bytes))) > 0;)
    said.append(bytes, static_cast<size_t>(count));
  close(ends[0]);
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child) {
    result.why = "no process for the check";
  } else if (WIFSIGNALED(status)) {
    const int signal = WTERMSIG(status);
    result.why = signal == SIGALRM ? "no end within " + std::to_string(kTimeoutSeconds) + " s"
                                   : std::string("crashed: ") + strsignal(signal);
    if (!said.empty()) result.why += ", after: " + said.substr(1);
  } else if (said.empty() || WEXITSTATUS(status) != 0) {
    result.why = "the check's process ended with status " + std::to_string(WEXITSTATUS(status));
  } else {
    result.outcome = static_cast<Outcome>(said[0]);
    result.why = said.substr(1);
  }
  return result;
}

std::vector<Check> all_checks() {
  std::vector<Check> all;
  for (const auto& group :
       {entry_checks(), device_checks(), memory_checks(), blob_checks(), job_checks(), queue_checks()}) {
    all.insert(all.end(), group.begin(), group.end());
  }
  return all;
}

// "" or why not. PackError where the packer would refuse the target beside the driver.
std::string load_driver(const std::string& name, Subject* subject) {
  if (name == "sim") {
    subject->entry = qplan_npu_sim_driver;
  } else {
    // A name without a slash would be searched for elsewhere.
    const std::string path = name.find('/') == std::string::npos ? "./" + name : name;
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return dlerror();
    void* symbol = dlsym(library, QPLAN_NPU_DRIVER_ENTRY_NAME);
    if (symbol == nullptr) return "'" + name + "' does not export " QPLAN_NPU_DRIVER_ENTRY_NAME;
    subject->entry = reinterpret_cast<qplan_npu_driver_entry_fn>(symbol);
    if (dlsym(library, QPLAN_NPU_TARGET_ENTRY_NAME) != nullptr)
      subject->target = target::external::load_library(path, pipeline::own_targets()).target;
  }
  subject->driver = subject->entry(QPLAN_NPU_ABI);
  return "";
}

void print_json(const std::string& driver, const std::vector<Result>& results, size_t failed) {
  nlohmann::ordered_json json;
  json["driver"] = driver;
  json["failed"] = failed;
  json["checks"] = nlohmann::ordered_json::array();
  for (const Result& result : results) {
    json["checks"].push_back({{"name", result.check->name},
                              {"rule", result.check->rule},
                              {"result", name_of(result.outcome)},
                              {"why", result.why}});
  }
  std::printf("%s\n", json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
}

int run(int argc, char** argv) {
  CLI::App app("Checks a driver against the rules of qplan/npu_driver.h.");
  app.footer(kExamples);
  std::string driver;
  std::vector<std::string> only;
  Subject subject;
  bool json = false, list = false;
  app.add_option("driver", driver, "A shared library that exports " QPLAN_NPU_DRIVER_ENTRY_NAME ", or 'sim'");
  app.add_option("--options", subject.options, "Options of the driver, given to open");
  app.add_option("--target-options", subject.target_options,
                 "Options of the library's target, given to configure, whose compile writes the programs");
  app.add_option("--only", only, "Checks to run: names, or what names begin with");
  app.add_option("--layers", subject.num_layers, "Random layers that are compared with the reference")
      ->capture_default_str();
  app.add_flag("--json", json, "Results as JSON");
  app.add_flag("--list", list, "Names and rules of all checks");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  std::vector<Check> checks = all_checks();
  if (!only.empty()) {
    std::erase_if(checks, [&](const Check& check) {
      return std::none_of(only.begin(), only.end(), [&](const std::string& name) {
        return std::string_view(check.name).starts_with(name);
      });
    });
    if (checks.empty()) {
      std::fprintf(stderr, "qplan-npu-conformance: no check is called '%s'; --list names them\n",
                   only[0].c_str());
      return 2;
    }
  }
  if (list) {
    for (const Check& check : checks) std::printf("%-22s %s\n", check.name, check.rule);
    return 0;
  }
  const std::string error =
      driver.empty() ? "no driver given; --help tells more" : load_driver(driver, &subject);
  if (!error.empty()) {
    std::fprintf(stderr, "qplan-npu-conformance: %s\n", error.c_str());
    return 2;
  }
  std::vector<Result> results;
  size_t failed = 0, skipped = 0;
  for (const Check& check : checks) {
    results.push_back(run_check(check, subject));
    const Result& result = results.back();
    failed += result.outcome == Outcome::kFail ? 1 : 0;
    skipped += result.outcome == Outcome::kSkip ? 1 : 0;
    if (json) continue;
    std::printf("%s  %-22s %s\n", name_of(result.outcome), check.name, check.rule);
    if (!result.why.empty()) std::printf("      %s\n", result.why.c_str());
  }
  if (json) {
    print_json(driver, results, failed);
  } else {
    std::printf("%zu checks, %zu failed, %zu skipped\n", results.size(), failed, skipped);
  }
  return failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace qplan::conformance

int main(int argc, char** argv) {
  try {
    return qplan::conformance::run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "qplan-npu-conformance: %s\n", error.what());
    return 2;
  }
}
