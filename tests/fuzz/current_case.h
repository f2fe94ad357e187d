// Names the case that is running when a crash, a sanitizer or the clock ends the process.
#ifndef QPLAN_TESTS_FUZZ_CURRENT_CASE_H_
#define QPLAN_TESTS_FUZZ_CURRENT_CASE_H_

#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <string>

#include "tests/support/sanitizers.h"

#if QPLAN_ASAN || QPLAN_TSAN
#include <sanitizer/common_interface_defs.h>
#endif

namespace qplan::testing {

inline constexpr unsigned kHangSeconds = 60;  // the process ends here: the case does not come back

namespace internal {

inline char current_case[4096] = "none";

// Called while the process dies: nothing here allocates.
inline void print_current_case() {
  static const char kText[] = "\nfuzz: the case was: ";
  (void)!write(STDERR_FILENO, kText, sizeof(kText) - 1);
  (void)!write(STDERR_FILENO, current_case, strlen(current_case));
  (void)!write(STDERR_FILENO, "\n", 1);
}

inline void on_signal(int number) {
  print_current_case();
  signal(number, SIG_DFL);
  raise(number);
}

}  // namespace internal

// Once, before the first case. A sanitizer handles faults itself and then calls back.
inline void watch_cases() {
#if QPLAN_ASAN || QPLAN_TSAN
  __sanitizer_set_death_callback(internal::print_current_case);
  for (const int number : {SIGABRT, SIGALRM}) signal(number, internal::on_signal);
#else
  for (const int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGALRM})
    signal(number, internal::on_signal);
#endif
}

inline void begin_case(const std::string& name) {
  std::snprintf(internal::current_case, sizeof(internal::current_case), "%s", name.c_str());
  alarm(kHangSeconds);
}
inline void end_cases() {
  alarm(0);
  std::snprintf(internal::current_case, sizeof(internal::current_case), "none");
}

}  // namespace qplan::testing

#endif  // QPLAN_TESTS_FUZZ_CURRENT_CASE_H_
