// Names the case that is running when a crash, a sanitizer or the clock ends the process, and finds the
// slowest case.
#ifndef QPLAN_TESTS_FUZZ_CASE_WATCH_H_
#define QPLAN_TESTS_FUZZ_CASE_WATCH_H_

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#include <sanitizer/common_interface_defs.h>
#define QPLAN_FUZZ_SANITIZER 1
#endif

namespace qplan::testing {

inline constexpr double kMostSecondsPerCase = 10;
inline constexpr unsigned kHangSeconds = 60;  // the process ends here: the case does not come back

namespace internal {

inline char current_case[160] = "none";

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

class CaseWatch {
 public:
  CaseWatch() {
#if defined(QPLAN_FUZZ_SANITIZER)
    __sanitizer_set_death_callback(internal::print_current_case);
    signal(SIGALRM, internal::on_signal);
#else
    for (int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGALRM})
      signal(number, internal::on_signal);
#endif
  }
  ~CaseWatch() {
    alarm(0);
    std::snprintf(internal::current_case, sizeof(internal::current_case), "none");
  }
  CaseWatch(const CaseWatch&) = delete;
  CaseWatch& operator=(const CaseWatch&) = delete;

  // Runs body() as the case `name`.
  template <typename Body>
  void run(const std::string& name, Body&& body) {
    std::snprintf(internal::current_case, sizeof(internal::current_case), "%s", name.c_str());
    alarm(kHangSeconds);
    const auto begin = std::chrono::steady_clock::now();
    {
      SCOPED_TRACE(name);
      body();
    }
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    EXPECT_LT(seconds, kMostSecondsPerCase) << name;
    ++num_cases_;
    if (seconds > slowest_seconds_) {
      slowest_seconds_ = seconds;
      slowest_name_ = name;
    }
  }

  // One line about all cases.
  void report(const std::string& outcomes) const {
    std::printf("  %d cases: %s; slowest %.1f ms: %s\n", num_cases_, outcomes.c_str(), slowest_seconds_ * 1e3,
                slowest_name_.c_str());
  }

 private:
  int num_cases_ = 0;
  double slowest_seconds_ = 0;
  std::string slowest_name_ = "none";
};

}  // namespace qplan::testing

#endif  // QPLAN_TESTS_FUZZ_CASE_WATCH_H_
