#include <gtest/gtest.h>

#include "tools/machine.h"

namespace qplan::tools::machine_load_test {
namespace {

using Warnings = std::vector<std::string>;

constexpr TimeSummary kQuiet = {100, 104, 99, 104};

TEST(MachineLoad, AQuietMachineGetsNoWarning) {
  EXPECT_EQ(load_warnings({0.0, 1}, 1, kQuiet, 30), Warnings());
  EXPECT_EQ(load_warnings({0.4, 1}, 1, kQuiet, 30), Warnings());
  EXPECT_EQ(load_warnings({6.0, 8}, 2, kQuiet, 30), Warnings()) << "a CPU for each thread is left";
  EXPECT_EQ(load_warnings({0.0, 1}, 4, kQuiet, 30), Warnings())
      << "more threads than CPUs are the user's wish";
}

TEST(MachineLoad, WorkOfOthersIsTold) {
  EXPECT_EQ(load_warnings({1.5, 2}, 2, kQuiet, 30),
            Warnings{"the machine was busy before the runs: load average 1.5 on 2 CPUs"});
  EXPECT_EQ(load_warnings({1.0, 1}, 1, kQuiet, 30),
            Warnings{"the machine was busy before the runs: load average 1.0 on 1 CPU"});
}

TEST(MachineLoad, ASpreadOfTheRunsIsTold) {
  EXPECT_EQ(load_warnings({0.0, 2}, 1, {100, 126, 90}, 10),
            Warnings{"the runs spread widely: p90 is 1.26 times the median"});
  EXPECT_EQ(load_warnings({0.0, 2}, 1, {100, 125, 90}, 10), Warnings());
  EXPECT_EQ(load_warnings({0.0, 2}, 1, {100, 300, 90}, 9), Warnings()) << "nine runs are too few to judge";
}

TEST(MachineLoad, ThisMachineHasACpu) { EXPECT_GE(machine_load().cpus, 1u); }

}  // namespace
}  // namespace qplan::tools::machine_load_test
