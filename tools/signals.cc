#include "tools/signals.h"

#include <csignal>
#include <initializer_list>

#include "qplan/host.h"

namespace qplan::tools {
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
