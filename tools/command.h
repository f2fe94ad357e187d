// How the command runs, shows its progress and ends, how a subcommand fails, and the words in which it speaks
// of counts, times and names. The text of a failure is printed as one line, "qplan: ...", each of the details
// on a line below it, and the process exits with the code.
#ifndef QPLAN_TOOLS_COMMAND_H_
#define QPLAN_TOOLS_COMMAND_H_

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "qplan/qplan.h"
#include "tools/files.h"

namespace qplan::tools {

// Runs the command that the words of argv name and returns the exit status of the process. Errors are printed
// to stderr. version_text: what --version prints.
int run_command_line(int argc, char** argv, std::string (*version_text)());

enum ExitCode { kExitOk = 0, kExitFailure = 1, kExitUsage = 2, kExitDifferent = 3 };

// Ends a command that has printed its report with that status: the result is no error, but scripts look at
// it.
struct ExitStatus {
  int code;
};

// Something about the model, the plan, a file or the machine.
class Failure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
  // details: a list of many faults, one a line; text says how many there are.
  Failure(const std::string& text, std::vector<std::string> details)
      : std::runtime_error(text), details_(std::move(details)) {}
  [[nodiscard]] const std::vector<std::string>& details() const { return details_; }

 private:
  std::vector<std::string> details_;
};

// An operator, or something else of the model, that the packer does not support (QPLAN_MODEL_UNSUPPORTED).
class UnsupportedModel : public Failure {
 public:
  using Failure::Failure;
};

// Something about the command line alone.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// An empty qplan_error, ready to be filled.
qplan_error make_error();

// Throws Failure unless status is a success: "where: text" with the text of error, or the status' name where
// the library gave none. where may be empty.
void check(qplan_status status, const qplan_error& error, const std::string& where);

// Control characters (a line break in a file name, say) become '?': an error stays one line.
std::string one_line(std::string text);

// SIGINT, SIGTERM and SIGHUP remove the temporary files of writes under way and then end the process as they
// do by default, so that a shell sees the signal. One that is ignored (nohup) stays ignored. SIGXFSZ is
// ignored: a limit on the size of files is an error of the write, with a text, and not the end of the
// process.
void install_signal_handlers();

// One line on a terminal's stderr that shows the progress of long work, and how much longer it will take.
// Shows nothing during the first second, and never where stderr is not a terminal. A thread of its own writes
// the line, so that work which says nothing for a while shows what it said last, and for how long it has been
// going on.
class Progress {
 public:
  Progress();
  ~Progress();  // clears the line
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // The line disappears where all is done.
  void update(const char* stage, uint64_t done, uint64_t total);

 private:
  void show_until_ended();
  void clear();

  std::mutex mutex_;  // of all that follows
  std::condition_variable ended_changed_;
  bool ended_ = false;
  bool shown_ = false;
  std::string stage_;
  uint64_t done_ = 0;
  uint64_t total_ = 0;
  std::chrono::steady_clock::time_point stage_begin_{};
  std::thread thread_;  // where there is a terminal
};

// ---- text that several commands make: counts, times, names, near misses

// "1 thread", "2 threads".
std::string count_text(uint64_t count, std::string_view one, std::string_view many);

// "1,234,567"
std::string grouped(uint64_t number);

// "301 M", "12.3 k", "999": three digits.
std::string short_count(uint64_t number);

// "12.34 us" below a millisecond, "1.234 ms" below a second, "1.234 s".
std::string time_text(uint64_t ns);

// A field of a CSV file, as RFC 4180 quotes it: in double quotes where it holds a comma, a quote or a line
// end.
std::string csv_text(std::string_view text);

// JSON on one line. Names and paths may hold bytes that are not UTF-8, for which JSON has no form: U+FFFD
// stands in their place.
std::string json_text(const nlohmann::ordered_json& value);
// The same as a page: indented, with a line feed at its end.
std::string json_page(const nlohmann::ordered_json& value);

// "a, b, c"
std::string joined(const std::vector<std::string>& words);

// A word of a shell's command line, in quotes where it needs them.
std::string shell_word(const std::string& word);

// At least one line; without leading blanks of the lines after the first.
std::vector<std::string> split_lines(const std::string& text);

// The one of the names that the word was meant to be: at most two letters wrong, swapped, missing or too many
// (one, in words of up to three letters); "" if no name is so near.
std::string nearest(const std::string& word, const std::vector<std::string>& names);

// Receivers for the library's qplan_write_fn.

// user is a std::string that grows.
inline void append_to_string(void* user, const char* bytes, size_t size) {
  static_cast<std::string*>(user)->append(bytes, size);
}

// To standard output; user is not used.
inline void write_to_stdout(void*, const char* bytes, size_t size) { print({bytes, size}); }

}  // namespace qplan::tools

#endif  // QPLAN_TOOLS_COMMAND_H_
