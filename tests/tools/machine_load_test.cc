#include <gtest/gtest.h>
#include <sched.h>

#include "tools/reports.h"

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

TEST(MachineLoad, CountsTheProcessorsThatThereWereBeforeTheThreadWasPinned) {
  const uint32_t usable = usable_cpus();
  cpu_set_t before, one;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  CPU_ZERO(&one);
  for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++cpu) {
    if (CPU_ISSET(cpu, &before)) CPU_SET(cpu, &one);
  }
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  EXPECT_EQ(machine_load().cpus, usable);
  EXPECT_EQ(sched_setaffinity(0, sizeof before, &before), 0);
  EXPECT_EQ(usable, static_cast<uint32_t>(CPU_COUNT(&before)));
}

TEST(MachineLoad, ThisMachineHasACpu) { EXPECT_GE(machine_load().cpus, 1u); }

}  // namespace
}  // namespace qplan::tools::machine_load_test
