// Each kind of fault at each place under each policy: the outputs are the CPU's or the error says why, the
// reports state what happened, all memory is freed, and nothing waits longer than the timeout.
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>

#include "tests/npu_path/two_regions.h"

namespace qplan::npu_path::fault_matrix_test {
namespace {

constexpr uint32_t kTimeoutUs = 150000;
constexpr uint32_t kPolicies[] = {QPLAN_NPU_FALLBACK, QPLAN_NPU_RETRY, QPLAN_NPU_FAIL};
const char* policy_name(uint32_t policy) {
  return policy == QPLAN_NPU_FALLBACK ? "fallback" : policy == QPLAN_NPU_RETRY ? "retry" : "fail";
}

// Packed once: the plan, its inputs, and what the CPU alone makes of them.
struct Network {
  Bytes plan;
  std::vector<Bytes> inputs, expected;
  std::vector<uint64_t> instructions;  // by job
};

// The target of a device that these options open.
std::string target_of(const std::string& options) {
  return options.find("device=ethos-u55-128") == std::string::npos ? "vta" : "ethos-u55-128";
}

Network make_network(const std::string& target) {
  const std::string own = target == "vta" ? "" : "device=" + target + ",";
  Network network;
  const PackResult packed = pack_text(two_regions_text(), {.target = target + ", cpu"});
  EXPECT_EQ(packed.status, QPLAN_OK) << packed.text;
  network.plan = packed.plan;
  const PackResult cpu = pack_text(two_regions_text(), {.target = "cpu,isa=reference"});
  EXPECT_EQ(cpu.status, QPLAN_OK) << cpu.text;
  NpuSession session(cpu.plan, {.device = false});
  network.inputs = sample_inputs(session, 7);
  network.expected = session.run(network.inputs);
  EXPECT_EQ(network.expected.size(), 1u);
  // The lengths of the streams, from a recorded run without faults.
  const std::filesystem::path directory =
      std::filesystem::temp_directory_path() / ("qplan-fault-matrix-" + std::to_string(::getpid()));
  std::filesystem::remove_all(directory);
  {
    NpuSession device(network.plan, {.simulator = own + "record=" + directory.string(), .target = target});
    EXPECT_EQ(device.status(), QPLAN_OK) << device.text();
    if (!device.is_open()) return network;
    EXPECT_EQ(device.num_regions(), 2u);
    EXPECT_EQ(device.run(network.inputs), network.expected) << device.text();
    EXPECT_EQ(device.region(0).device_runs + device.region(1).device_runs, 2u);
  }
  for (const char* job : {"job-0000", "job-0001"}) {
    // Instructions of VTA, or words of a command stream after the payload's first 32 bytes.
    network.instructions.push_back(
        target == "vta" ? std::filesystem::file_size(directory / job / "instructions.bin") / 16
                        : (std::filesystem::file_size(directory / job / "payload.bin") - 32) / 4);
  }
  std::filesystem::remove_all(directory);
  return network;
}

const Network& network_on(const std::string& options) {
  static const Network vta = make_network("vta"), ethosu = make_network("ethos-u55-128");
  return target_of(options) == "vta" ? vta : ethosu;
}

class FaultMatrix : public ::testing::TestWithParam<const char*> {  // options of open
 protected:
  static const Network& network() { return network_on(GetParam()); }
  void SetUp() override { ASSERT_EQ(network().instructions.size(), 2u); }

  struct Trial {
    std::string fault;  // "at=0:3 kind=hang"
    uint32_t policy;
    uint32_t flags = 0;
    std::string where() const { return fault + " " + policy_name(policy); }
  };

  RunSettings settings(const Trial& trial) const {
    return {.simulator = std::string(GetParam()) + "faults=" + trial.fault,
            .target = target_of(GetParam()),
            .policy = trial.policy,
            .flags = trial.flags,
            .timeout_us = kTimeoutUs};
  }

  // Makes the session, runs it twice with `check` after each, and closes it.
  template <typename Check>
  void run(const Trial& trial, Check check) {
    const auto begin = std::chrono::steady_clock::now();
    NpuSession session(network().plan, settings(trial));
    check(session);
    session.close();
    EXPECT_EQ(session.memory().live(), 0u) << trial.where();
    EXPECT_EQ(session.memory().unknown_frees, 0u) << trial.where();
    const auto spent = std::chrono::steady_clock::now() - begin;
    // At most a timeout for each of two tries in two runs; the rest is this machine's.
    EXPECT_LT(spent, std::chrono::microseconds(4 * kTimeoutUs) + std::chrono::seconds(20)) << trial.where();
  }

  static void expect_outputs(NpuSession& session, const Trial& trial) {
    EXPECT_EQ(session.run(network().inputs), network().expected) << trial.where() << ": " << session.text();
    EXPECT_EQ(session.status(), QPLAN_OK) << trial.where() << ": " << session.text();
  }

  // A job that fails once.
  void expect_job_fault(const Trial& trial, uint32_t job, const std::string& word, qplan_status status) {
    run(trial, [&](NpuSession& session) {
      ASSERT_EQ(session.status(), QPLAN_OK) << trial.where() << ": " << session.text();
      if (trial.policy == QPLAN_NPU_FAIL) {
        EXPECT_TRUE(session.run(network().inputs).empty()) << trial.where();
        EXPECT_EQ(session.status(), status) << trial.where() << ": " << session.text();
        EXPECT_FALSE(session.text().empty()) << trial.where();
      } else {
        expect_outputs(session, trial);
      }
      const qplan_region_info region = session.region(job);
      EXPECT_EQ(region.failures, 1u) << trial.where();
      EXPECT_NE(std::string(region.text).find(word), std::string::npos)
          << trial.where() << ": " << region.text;
      const qplan_device_info device = session.device();
      EXPECT_EQ(device.failed_jobs, 1u) << trial.where();
      EXPECT_LT(device.last_status, 0) << trial.where();
      EXPECT_STRNE(device.text, "") << trial.where();
      const bool is_lost = trial.fault.find("device_lost") != std::string::npos;
      if (trial.policy == QPLAN_NPU_FALLBACK) {
        EXPECT_EQ(device.fallbacks, 1u) << trial.where();
        EXPECT_EQ(region.cpu_runs, 1u) << trial.where();
      } else if (trial.policy == QPLAN_NPU_RETRY && !is_lost) {
        EXPECT_EQ(device.retries, 1u) << trial.where();
        EXPECT_EQ(region.device_runs, 1u) << trial.where();
      }
      if (is_lost) {
        EXPECT_EQ(device.state, uint32_t{QPLAN_DEVICE_ABSENT}) << trial.where();
      }
      EXPECT_EQ(device.timeouts, status == QPLAN_DEVICE_TIMEOUT ? 1u : 0u) << trial.where();
      // The device is used again, unless it is gone.
      if (trial.policy == QPLAN_NPU_FAIL && is_lost) {
        EXPECT_TRUE(session.run(network().inputs).empty()) << trial.where();
        EXPECT_LT(session.status(), 0);
        return;
      }
      const uint64_t before = session.region(job).device_runs;
      expect_outputs(session, trial);
      EXPECT_EQ(session.region(job).device_runs, before + (is_lost ? 0 : 1)) << trial.where();
    });
  }
};

INSTANTIATE_TEST_SUITE_P(All, FaultMatrix,
                         ::testing::Values("", "coherent=0,", "device=ethos-u55-128,",
                                           "device=ethos-u55-128,coherent=0,"),
                         [](const auto& parameter) {
                           const std::string options = parameter.param;
                           return std::string(target_of(options) == "vta" ? "" : "EthosU") +
                                  (options.find("coherent=0") == std::string::npos ? "Coherent"
                                                                                   : "NotCoherent");
                         });

struct JobFault {
  const char* kind;
  const char* word;  // of the report
  qplan_status status;
};

TEST_P(FaultMatrix, InstructionsOfAJob) {
  const JobFault faults[] = {{"hang", "", QPLAN_DEVICE_TIMEOUT},
                             {"bus_error", "bus_error", QPLAN_DEVICE_ERROR},
                             {"illegal_instruction", "illegal_instruction", QPLAN_DEVICE_ERROR},
                             {"bit_flip", "bit_flip", QPLAN_DEVICE_ERROR},
                             {"device_lost", "lost", QPLAN_DEVICE_ERROR}};
  for (const JobFault& fault : faults) {
    for (const uint32_t job : {0u, 1u}) {
      const uint64_t count = network().instructions[job];
      for (const uint64_t at : {uint64_t{0}, count / 2, count - 1}) {
        for (const uint32_t policy : kPolicies) {
          const std::string place = "at=" + std::to_string(job) + ":" + std::to_string(at);
          expect_job_fault({place + " kind=" + fault.kind, policy}, job, fault.word, fault.status);
        }
      }
    }
  }
}

TEST_P(FaultMatrix, LostInterrupts) {
  for (const uint32_t job : {0u, 1u}) {
    for (const uint32_t policy : kPolicies) {
      expect_job_fault({"at=" + std::to_string(job) + ":* kind=lost_interrupt", policy}, job, "",
                       QPLAN_DEVICE_TIMEOUT);
    }
  }
}

// The job had run when it was cancelled: its outputs are whole.
TEST_P(FaultMatrix, AnInterruptLaterThanTheTimeoutIsFetchedByTheCancel) {
  for (const uint32_t policy : kPolicies) {
    const Trial trial{"at=0:* kind=late_interrupt ms=1000", policy};
    run(trial, [&](NpuSession& session) {
      expect_outputs(session, trial);
      EXPECT_EQ(session.region(0).device_runs, 1u) << trial.where();
      EXPECT_EQ(session.device().failed_jobs, 0u) << trial.where();
    });
  }
}

TEST_P(FaultMatrix, AnInterruptThatIsLateButInTimeIsNoFailure) {
  const Trial trial{"at=0:* kind=late_interrupt ms=1", QPLAN_NPU_FAIL};
  run(trial, [&](NpuSession& session) {
    expect_outputs(session, trial);
    EXPECT_EQ(session.device().failed_jobs, 0u);
  });
}

// Nobody finds it but a second computation.
TEST_P(FaultMatrix, SilentBitFlipsAreFoundByVerifying) {
  for (const uint32_t job : {0u, 1u}) {
    for (const uint32_t policy : kPolicies) {
      const Trial trial{"at=" + std::to_string(job) + ":* kind=silent_bit_flip", policy, QPLAN_NPU_VERIFY};
      run(trial, [&](NpuSession& session) {
        ASSERT_EQ(session.status(), QPLAN_OK) << session.text();
        expect_outputs(session, trial);
        EXPECT_EQ(session.region(job).mismatches, 1u) << trial.where();
        EXPECT_EQ(session.region(1 - job).mismatches, 0u) << trial.where();
        EXPECT_STRNE(session.region(job).text, "") << trial.where();
        expect_outputs(session, trial);
        EXPECT_EQ(session.region(job).mismatches, 1u) << trial.where();
      });
    }
  }
  Trial unseen{"at=1:* kind=silent_bit_flip", QPLAN_NPU_FALLBACK};
  run(unseen, [&](NpuSession& session) {
    EXPECT_NE(session.run(network().inputs), network().expected) << "the fault does nothing";
  });
}

// Its first buffer is the bank, the second the application's.
TEST_P(FaultMatrix, ABufferThatCannotBeAllocatedIsRefusedAndNothingElseChanges) {
  for (const uint32_t policy : kPolicies) {
    const Trial trial{"at=alloc:1 kind=allocation_failure", policy};
    run(trial, [&](NpuSession& session) {
      ASSERT_EQ(session.status(), QPLAN_OK) << session.text();
      int64_t extent = 64;
      DLTensor tensor = {};
      tensor.ndim = 1;
      tensor.shape = &extent;
      tensor.dtype = {kDLInt, 8, 1};
      tensor.device = {kDLCPU, 0};
      qplan_buffer buffer = {};
      EXPECT_LT(qplan_buffer_create(session.get(), 0, &tensor, 0, &buffer), 0) << trial.where();
      expect_outputs(session, trial);
      EXPECT_EQ(session.device().state, uint32_t{QPLAN_DEVICE_PRESENT}) << trial.where();
      ASSERT_EQ(qplan_buffer_create(session.get(), 0, &tensor, 0, &buffer), QPLAN_OK) << trial.where();
      EXPECT_EQ(qplan_buffer_destroy(&buffer), QPLAN_OK);
    });
  }
}

// Faults before there are jobs: everything runs on the CPU, or there is no session.
TEST_P(FaultMatrix, OpenAllocateAndLoad) {
  std::vector<std::string> faults = {"at=open:0 kind=absent"};
  for (const int call : {0, 1}) {
    for (const char* kind : {"truncated_blob", "skewed_blob", "damaged_blob"}) {
      faults.push_back("at=load:" + std::to_string(call) + " kind=" + kind);
    }
  }
  // The import of the bank, and the buffer that would shadow it.
  faults.push_back("at=alloc:0 kind=allocation_failure;at=alloc:1 kind=allocation_failure");
  for (const std::string& fault : faults) {
    for (const uint32_t policy : kPolicies) {
      const Trial trial{fault, policy};
      run(trial, [&](NpuSession& session) {
        if (policy == QPLAN_NPU_FAIL) {
          EXPECT_LT(session.status(), 0) << trial.where();
          EXPECT_FALSE(session.text().empty()) << trial.where();
          return;
        }
        ASSERT_EQ(session.status(), QPLAN_OK) << trial.where() << ": " << session.text();
        expect_outputs(session, trial);
        uint32_t on_cpu = 0;
        for (uint32_t r = 0; r < session.num_regions(); ++r) {
          const qplan_region_info region = session.region(r);
          EXPECT_EQ(region.on_device == 0, region.status < 0) << trial.where();
          EXPECT_EQ(region.on_device == 0, region.cpu_runs == 1) << trial.where();
          if (region.on_device == 0) {
            EXPECT_STRNE(region.text, "") << trial.where();
          }
          on_cpu += region.on_device == 0 ? 1 : 0;
        }
        if (policy == QPLAN_NPU_FALLBACK) {
          EXPECT_GT(on_cpu, 0u) << trial.where();
        }
        expect_outputs(session, trial);
      });
    }
  }
}

// One after the other: quarantine, and back from it.
TEST_P(FaultMatrix, ADeviceThatFailsAgainAndAgainGetsNoJobs) {
  std::string script;
  for (int job = 0; job < 3; ++job) {
    script += (job == 0 ? "" : ";") + ("at=" + std::to_string(job) + ":0 kind=bus_error");
  }
  const Trial trial{script, QPLAN_NPU_FALLBACK};
  run(trial, [&](NpuSession& session) {
    ASSERT_EQ(session.status(), QPLAN_OK) << session.text();
    expect_outputs(session, trial);
    EXPECT_EQ(session.device().state, uint32_t{QPLAN_DEVICE_DEGRADED});
    expect_outputs(session, trial);
    EXPECT_EQ(session.device().state, uint32_t{QPLAN_DEVICE_QUARANTINED});
    EXPECT_EQ(session.device().failed_jobs, 3u);
    expect_outputs(session, trial);
    EXPECT_EQ(session.device().jobs, 3u);
    ASSERT_EQ(qplan_session_recover_device(session.get(), 0), QPLAN_OK);
    expect_outputs(session, trial);
    EXPECT_EQ(session.device().state, uint32_t{QPLAN_DEVICE_PRESENT});
    EXPECT_EQ(session.device().jobs, 5u);
  });
}

// Any of the faults that a driver notices, at random.
TEST_P(FaultMatrix, RandomFaultsNeverChangeAByte) {
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    for (const uint32_t policy : {QPLAN_NPU_FALLBACK, QPLAN_NPU_RETRY}) {
      RunSettings s{
          .simulator = std::string(GetParam()) + "fault_percent=40,fault_seed=" + std::to_string(seed),
          .target = target_of(GetParam()),
          .policy = policy,
          .timeout_us = kTimeoutUs};
      NpuSession session(network().plan, s);
      ASSERT_EQ(session.status(), QPLAN_OK) << session.text();
      for (int i = 0; i < 4; ++i) {
        EXPECT_EQ(session.run(network().inputs), network().expected)
            << "seed " << seed << ": " << session.text();
      }
      session.close();
      EXPECT_EQ(session.memory().live(), 0u) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace qplan::npu_path::fault_matrix_test
