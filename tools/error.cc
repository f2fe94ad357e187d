#include "tools/error.h"

#include <csignal>
#include <cstring>
#include <initializer_list>

#include "qplan/host.h"
#include "src/base/printable.h"

namespace qplan::tools {

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

}  // namespace qplan::tools
