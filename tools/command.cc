#include "tools/command.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <exception>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <new>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "qplan/host.h"
#include "src/base/text.h"
#include "tools/files.h"
#include "tools/model_options.h"

namespace qplan::tools {

// ---- errors and signals

qplan_error make_error() {
  qplan_error error;
  std::memset(&error, 0, sizeof error);
  error.struct_size = sizeof error;
  error.step = -1;
  error.tensor = -1;
  return error;
}

void check(qplan_status status, const qplan_error& error, const std::string& where) {
  if (status >= 0) return;
  const std::string text = error.text[0] != '\0' ? error.text : qplan_status_name(status);
  throw Failure(where.empty() ? text : where + ": " + text);
}

std::string one_line(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return printable(text);
}

namespace {

// Async-signal-safe. SA_RESETHAND has restored the default, which raise() meets as soon as the handler
// returns.
void clean_up_and_end(int number) {
  qplan_file_remove_temporaries();
  ::raise(number);
}

}  // namespace

void install_signal_handlers() {
  std::signal(SIGXFSZ, SIG_IGN);
  struct sigaction action = {};
  action.sa_handler = clean_up_and_end;
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  ::sigemptyset(&action.sa_mask);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction before = {};
    if (::sigaction(number, nullptr, &before) != 0 || before.sa_handler == SIG_IGN) continue;
    ::sigaction(number, &action, nullptr);
  }
}

// ---- progress

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kSilent{1000};
constexpr std::chrono::milliseconds kBetween{100};
constexpr uint64_t kProgressBarWidth = 20;

// "[#####...............]"
std::string bar_text(uint64_t done, uint64_t total) {
  const uint64_t filled = total == 0 ? 0 : std::min(done, total) * kProgressBarWidth / total;
  return "[" + std::string(filled, '#') + std::string(kProgressBarWidth - filled, '.') + "]";
}

// ", about 12 s left", from how long the done part of a stage took; "" of one that has just begun.
std::string remaining_text(double seconds, uint64_t done, uint64_t total) {
  if (done == 0 || seconds < 1 || done >= total) return "";
  const double left = seconds * static_cast<double>(total - done) / static_cast<double>(done);
  return ", about " + std::to_string(static_cast<uint64_t>(left) + 1) + " s left";
}

}  // namespace

Progress::Progress() {
  if (::isatty(STDERR_FILENO) != 0) thread_ = std::thread([this] { show_until_ended(); });
}

Progress::~Progress() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    clear();
  }
  ended_changed_.notify_one();
  thread_.join();
}

void Progress::update(const char* stage, uint64_t done, uint64_t total) {
  if (!thread_.joinable()) return;
  const std::lock_guard lock(mutex_);
  if (stage_ != stage) stage_begin_ = Clock::now();
  stage_ = stage;
  done_ = done;
  total_ = total;
  if (done >= total) clear();
}

void Progress::clear() {
  stage_.clear();
  if (shown_) std::fputs("\r\x1b[K", stderr);
  shown_ = false;
}

void Progress::show_until_ended() {
  const Clock::time_point begin = Clock::now();
  std::unique_lock lock(mutex_);
  for (auto wait = kSilent; !ended_changed_.wait_for(lock, wait, [this] { return ended_; });
       wait = kBetween) {
    if (stage_.empty()) continue;
    shown_ = true;
    const Clock::time_point now = Clock::now();
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now - begin);
    const std::chrono::duration<double> of_stage = now - stage_begin_;
    std::fprintf(stderr, "\r\x1b[Kqplan: %s %s %llu/%llu, %lld s%s", stage_.c_str(),
                 bar_text(done_, total_).c_str(), static_cast<unsigned long long>(done_),
                 static_cast<unsigned long long>(total_), static_cast<long long>(seconds.count()),
                 remaining_text(of_stage.count(), done_, total_).c_str());
    std::fflush(stderr);
  }
}

// ---- the command line

namespace {

// Help with descriptions wrapped at 100 columns.
class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_option_desc(const CLI::Option* option) const override {
    constexpr size_t kColumns = 100;
    const size_t width = kColumns - get_column_width();
    const std::string text = CLI::Formatter::make_option_desc(option);
    std::string wrapped;
    size_t line_begin = 0;
    for (size_t word = 0; word < text.size();) {
      const size_t end = std::min(text.find(' ', word), text.size());
      if (!wrapped.empty()) {
        const bool fits = wrapped.size() - line_begin + 1 + (end - word) <= width;
        wrapped += fits ? ' ' : '\n';
        if (!fits) line_begin = wrapped.size();
      }
      wrapped.append(text, word, end - word);
      word = end + 1;
    }
    return wrapped;
  }
};

int fail(const std::string& text, int exit_code) {
  std::fprintf(stderr, "qplan: %s\n", one_line(text).c_str());
  return exit_code;
}

int fail(const Failure& failure) {
  fail(failure.what(), kExitFailure);
  for (const std::string& line : failure.details()) std::fprintf(stderr, "  %s\n", one_line(line).c_str());
  return kExitFailure;
}

// "qplan npu replay" as far as subcommands were named, for the hint in usage errors.
std::string command_name(const CLI::App& app) {
  std::string name = "qplan";
  for (const CLI::App* at = &app; !at->get_subcommands().empty();) {
    at = at->get_subcommands().front();
    name += " " + at->get_name();
  }
  return name;
}

// The library starts its texts with a capital; ours do not.
std::string lower_first(std::string text) {
  if (!text.empty() && text[0] >= 'A' && text[0] <= 'Z' &&
      (text.size() < 2 || text[1] < 'A' || text[1] > 'Z')) {
    text[0] = static_cast<char>(text[0] - 'A' + 'a');
  }
  return text;
}

// A word where a command is expected: "unknown command 'pakc'; did you mean 'pack'?". app: the last command
// that was understood.
std::string unknown_command(const CLI::App& app, const std::string& word) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({})) names.push_back(command->get_name());
  const std::string near = nearest(word, names);
  return "unknown command '" + word + "'; " +
         (near.empty() ? "expected " + joined(names) : "did you mean '" + near + "'?");
}

// The commands that the words begin with, and the first word after them that is not a command but is where
// one is expected ("" if the words end there).
std::pair<const CLI::App*, std::string> find_command(const CLI::App& app,
                                                     const std::vector<std::string>& words) {
  const CLI::App* at = &app;
  for (const std::string& word : words) {
    if (word.empty() || word[0] == '-' || at->get_subcommands({}).empty()) break;
    const auto commands = at->get_subcommands({});
    const auto found = std::find_if(commands.begin(), commands.end(),
                                    [&](const CLI::App* command) { return command->get_name() == word; });
    if (found == commands.end()) return {at, word};
    at = *found;
  }
  return {at, ""};
}

// "help", "help pack", "help npu replay": what --help of these commands prints. "npu help" alike.
std::string help_text(CLI::App& app, std::vector<std::string> words) {
  words.erase(std::find(words.begin(), words.end(), "help"));
  const auto [command, unknown] = find_command(app, words);
  if (!unknown.empty()) throw UsageError(unknown_command(*command, unknown));
  std::string prefix;
  for (const CLI::App* parent = command->get_parent(); parent != nullptr; parent = parent->get_parent()) {
    prefix = parent->get_name() + (prefix.empty() ? "" : " ") + prefix;
  }
  return command->help(prefix);
}

bool asks_for_help(const CLI::App& app, const std::vector<std::string>& words) {
  const auto [command, unknown] = find_command(app, words);
  return unknown == "help";
}

// An empty name would count as an option that is not given: `sign -o "$FILE"` would replace its plan.
void refuse_empty_file_names(CLI::App& app) {
  const auto refuse = [](const std::string& text) {
    return text.empty() ? "found '', expected the name of a file or folder" : std::string();
  };
  for (CLI::Option* option : app.get_options()) {
    const std::string type = option->get_type_name();
    for (const char* of_files : {"FILE", "DIR", "PLAN", "MODEL", "OTHER", "CSV", "LOG", "LIB"}) {
      if (type == of_files) option->check(refuse);
    }
  }
  for (CLI::App* command : app.get_subcommands({})) refuse_empty_file_names(*command);
}

int run(int argc, char** argv, std::string (*version_text)()) {
  CLI::App app("Packs quantised neural networks into plans and runs them.", "qplan");
  app.set_version_flag("--version", version_text,
                       "Print version, commit, compiler and instruction sets, and exit");
  app.set_help_flag("-h,--help", "Print this help and exit");
  app.require_subcommand(0, 1);  // none is our own error: the library's would hide a misspelt one
  app.formatter(std::make_shared<HelpFormatter>());
  app.footer(
      "Examples:\n"
      "  qplan pack model.tflite -o model.qplan\n"
      "  qplan run model.qplan --input cat.bmp --labels labels.txt\n"
      "  qplan bench model.qplan --threads 2\n"
      "Exit status: 0 success, 1 something is wrong with a model, plan, file or machine, 2 wrong usage, 3 "
      "`check` or `diff` found a difference.\n"
      "'qplan help COMMAND' describes each command.");
  add_pack_command(app);
  add_run_command(app);
  add_inspect_command(app);
  add_bench_command(app);
  add_tune_command(app);
  add_check_command(app);
  add_diff_command(app);
  add_disasm_command(app);
  add_report_command(app);
  add_eval_command(app);
  add_sign_command(app);
  add_verify_command(app);
  add_emit_c_command(app);
  add_link_command(app);
  add_import_command(app);
  add_explain_command(app);
  add_npu_command(app);
  refuse_empty_file_names(app);
  const std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  try {
    if (asks_for_help(app, words)) {
      print(help_text(app, words));
      finish_stdout();
      return kExitOk;
    }
    const auto [known, unknown] = find_command(app, words);
    if (!unknown.empty()) throw UsageError(unknown_command(*known, unknown));
    app.parse(argc, argv);
    if (app.get_subcommands().empty()) throw UsageError("a command is required");
    finish_stdout();
    return kExitOk;
  } catch (const ExitStatus& status) {
    finish_stdout();
    return status.code;
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {  // --help, --version
      app.exit(error);
      std::cout.flush();
      finish_stdout();
      return kExitOk;
    }
    return fail(lower_first(error.what()) + "; see '" + command_name(app) + " --help'", kExitUsage);
  } catch (const UsageError& error) {
    return fail(std::string(error.what()) + "; see '" + command_name(app) + " --help'", kExitUsage);
  }
}

}  // namespace

int run_command_line(int argc, char** argv, std::string (*version_text)()) {
  install_signal_handlers();
  try {
    return run(argc, argv, version_text);
  } catch (const Failure& failure) {
    return fail(failure);
  } catch (const std::bad_alloc&) {
    return fail("out of memory", kExitFailure);
  } catch (const std::exception& error) {
    return fail(error.what(), kExitFailure);
  }
}

// ---- text

namespace {

// The least number of letters to change, add, leave out or swap with the next one (optimal string alignment).
size_t distance(const std::string& a, const std::string& b) {
  std::vector<std::vector<size_t>> d(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) d[i][0] = i;
  for (size_t k = 0; k <= b.size(); ++k) d[0][k] = k;
  for (size_t i = 1; i <= a.size(); ++i) {
    for (size_t k = 1; k <= b.size(); ++k) {
      const size_t change = d[i - 1][k - 1] + (a[i - 1] == b[k - 1] ? 0 : 1);
      d[i][k] = std::min({change, d[i - 1][k] + 1, d[i][k - 1] + 1});
      if (i > 1 && k > 1 && a[i - 1] == b[k - 2] && a[i - 2] == b[k - 1]) {
        d[i][k] = std::min(d[i][k], d[i - 2][k - 2] + 1);
      }
    }
  }
  return d[a.size()][b.size()];
}

std::string dumped(const nlohmann::ordered_json& value, int indent) {
  return value.dump(indent, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace

std::string json_text(const nlohmann::ordered_json& value) { return dumped(value, -1); }

std::string json_page(const nlohmann::ordered_json& value) { return dumped(value, 2) + "\n"; }

std::string grouped(uint64_t number) {
  std::string text = std::to_string(number);
  for (size_t at = text.size(); at > 3;) text.insert(at -= 3, ",");
  return text;
}

std::string count_text(uint64_t count, std::string_view one, std::string_view many) {
  return grouped(count) + " " + std::string(count == 1 ? one : many);
}

std::string short_count(uint64_t number) {
  const char* const units[] = {"", " k", " M", " G", " T"};
  auto value = static_cast<double>(number);
  size_t unit = 0;
  while (value >= 999.5 && unit + 1 < std::size(units)) {
    value /= 1000;
    ++unit;
  }
  char text[32];
  const int decimals = unit == 0 || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
  std::snprintf(text, sizeof text, "%.*f%s", decimals, value, units[unit]);
  return text;
}

std::string time_text(uint64_t ns) {
  char text[32];
  const auto value = static_cast<double>(ns);
  if (ns < 1'000'000) {
    std::snprintf(text, sizeof text, "%.2f us", value / 1e3);
  } else if (ns < 1'000'000'000) {
    std::snprintf(text, sizeof text, "%.3f ms", value / 1e6);
  } else {
    std::snprintf(text, sizeof text, "%.3f s", value / 1e9);
  }
  return text;
}

std::string csv_text(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"') result += '"';
    result += c;
  }
  return result + "\"";
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

std::string shell_word(const std::string& word) {
  if (word.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._/=,:@+") ==
          std::string::npos &&
      !word.empty()) {
    return word;
  }
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::vector<std::string> split_lines(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    // Two blanks are the indentation that the printer gives each line after the first.
    const size_t word = lines.empty() || text.compare(begin, 2, "  ") != 0 ? begin : begin + 2;
    if (lines.empty() || word < end) lines.push_back(text.substr(word, end - word));
    begin = end + 1;
  }
  return lines;
}

std::string nearest(const std::string& word, const std::vector<std::string>& names) {
  const size_t allowed = word.size() <= 3 ? 1 : 2;
  std::string best;
  size_t best_distance = allowed + 1;
  for (const std::string& name : names) {
    const size_t d = distance(word, name);
    if (d < best_distance && d < name.size()) {
      best = name;
      best_distance = d;
    }
  }
  return best;
}

}  // namespace qplan::tools
