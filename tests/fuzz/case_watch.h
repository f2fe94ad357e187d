// Runs the cases of a test of damaged files under a clock, and finds the slowest.
#ifndef QPLAN_TESTS_FUZZ_CASE_WATCH_H_
#define QPLAN_TESTS_FUZZ_CASE_WATCH_H_

#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <string>

#include "tests/fuzz/current_case.h"

namespace qplan::testing {

inline constexpr double kMostSecondsPerCase = 10;

class CaseWatch {
 public:
  CaseWatch() { watch_cases(); }
  ~CaseWatch() { end_cases(); }
  CaseWatch(const CaseWatch&) = delete;
  CaseWatch& operator=(const CaseWatch&) = delete;

  // Runs body() as the case `name`.
  template <typename Body>
  void run(const std::string& name, Body&& body) {
    begin_case(name);
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
