// Everything that a fault script can do, and what the ABI says then; records, replay, listing, trace.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "src/vta/sim/options.h"
#include "tests/vta/sim/sim_device.h"

namespace qplan::sim::fault_test {
namespace {

using vta::testing::product_blob;
using vta::testing::product_of;

const qplan_npu_driver& driver() { return SimDevice::driver(); }

// A directory of its own, gone afterwards.
class Directory {
 public:
  explicit Directory(const std::string& name)
      : path_(std::filesystem::temp_directory_path() /
              ("qplan-npu-" + name + "-" + std::to_string(::testing::UnitTest::GetInstance()->random_seed()) +
               "-" + std::to_string(reinterpret_cast<uintptr_t>(this)))) {
    std::filesystem::create_directories(path_);
  }
  ~Directory() { std::filesystem::remove_all(path_); }
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file) << path;
  return std::string(std::istreambuf_iterator<char>(file), {});
}

void write_text(const std::filesystem::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

// The job fails, says why and where; the next one is right.
void expect_fails_once(const std::string& kind, qplan_npu_status status, const std::string& text) {
  SimDevice d("faults=at=0:4 kind=" + kind);
  d.write(d.input, sample_input());
  EXPECT_EQ(d.run(), status);
  EXPECT_NE(std::string(d.report.text).find(text), std::string::npos) << d.report.text;
  EXPECT_EQ(d.report.fault_instruction, 4u);
  EXPECT_EQ(d.read(d.input), sample_input());
  ASSERT_EQ(driver().reset(d.device), QPLAN_NPU_OK);
  ASSERT_EQ(d.run(), QPLAN_NPU_OK);
  EXPECT_EQ(d.read(d.output), product_of(sample_input()));
}

TEST(SimFaults, BusError) {
  expect_fails_once("bus_error", QPLAN_NPU_E_BUS, "instruction 4: injected bus_error");
}
TEST(SimFaults, BitFlipFoundByParity) { expect_fails_once("bit_flip", QPLAN_NPU_E_BUS, "injected bit_flip"); }
TEST(SimFaults, IllegalInstruction) {
  expect_fails_once("illegal_instruction", QPLAN_NPU_E_ILLEGAL, "injected illegal_instruction");
}

TEST(SimFaults, HangUntilReset) {
  SimDevice d("faults=at=0:2 kind=hang");
  qplan_npu_job job = 0;
  ASSERT_EQ(d.submit(&job), QPLAN_NPU_OK);
  EXPECT_EQ(d.wait(job, 5000000), QPLAN_NPU_PENDING);
  ASSERT_EQ(driver().reset(d.device), QPLAN_NPU_OK);
  EXPECT_EQ(d.wait(job), QPLAN_NPU_E_RESET);
}

TEST(SimFaults, ALostInterruptLooksLikeAHang) {
  SimDevice d("faults=at=0:* kind=lost_interrupt");
  qplan_npu_job job = 0;
  ASSERT_EQ(d.submit(&job), QPLAN_NPU_OK);
  EXPECT_EQ(d.wait(job, 5000000), QPLAN_NPU_PENDING);
  ASSERT_EQ(driver().reset(d.device), QPLAN_NPU_OK);
  EXPECT_EQ(d.wait(job), QPLAN_NPU_E_RESET);
}

TEST(SimFaults, ALateInterruptComes) {
  SimDevice d("faults=at=0:* kind=late_interrupt ms=30");
  d.write(d.input, sample_input());
  qplan_npu_job job = 0;
  ASSERT_EQ(d.submit(&job), QPLAN_NPU_OK);
  EXPECT_EQ(d.wait(job, 1000), QPLAN_NPU_PENDING);
  EXPECT_EQ(d.wait(job), QPLAN_NPU_OK);
  EXPECT_GE(d.report.run_ns, 30000000u);
  EXPECT_EQ(d.read(d.output), product_of(sample_input()));
}

TEST(SimFaults, ALostDeviceTakesEverythingWithIt) {
  SimDevice d("faults=at=1:3 kind=device_lost");
  d.write(d.input, sample_input());
  ASSERT_EQ(d.run(), QPLAN_NPU_OK);
  qplan_npu_job jobs[2] = {};
  ASSERT_EQ(d.submit(&jobs[0]), QPLAN_NPU_OK);
  const qplan_npu_status second = d.submit(&jobs[1]);  // may come before or after
  EXPECT_EQ(d.wait(jobs[0]), QPLAN_NPU_E_LOST);
  EXPECT_EQ(second == QPLAN_NPU_OK ? d.wait(jobs[1]) : second, QPLAN_NPU_E_LOST);
  EXPECT_EQ(d.run(), QPLAN_NPU_E_LOST);
  EXPECT_EQ(d.load(product_blob()), QPLAN_NPU_E_LOST);
  EXPECT_EQ(driver().reset(d.device), QPLAN_NPU_E_LOST);
  d.make_buffer(QPLAN_NPU_USE_INPUT, 16);
  EXPECT_EQ(d.last_alloc, QPLAN_NPU_E_LOST);
  EXPECT_EQ(d.read(d.input), sample_input());  // buffers stay readable
  EXPECT_EQ(QPLAN_NPU_CLASS(QPLAN_NPU_E_LOST), QPLAN_NPU_CLASS_GONE);
}

TEST(SimFaults, ASilentBitFlipChangesOneBitOfAnOutput) {
  SimDevice d("faults=at=0:* kind=silent_bit_flip");
  d.write(d.input, sample_input());
  ASSERT_EQ(d.run(), QPLAN_NPU_OK);
  std::vector<uint8_t> expected = product_of(sample_input());
  expected[0] ^= 0x40;
  EXPECT_EQ(d.read(d.output), expected);
}

TEST(SimFaults, AbsentDevice) {
  qplan_npu_device device = 0;
  qplan_npu_reason why = {};
  EXPECT_EQ(driver().open(nullptr, 0, "faults=at=open:0 kind=absent", &device, &why), QPLAN_NPU_E_ABSENT);
  EXPECT_STREQ(why.text, "sim: there is no device 0");
}

TEST(SimFaults, AllocationFailure) {
  SimDevice d("faults=at=alloc:2 kind=allocation_failure");  // 0 and 1 are the job's
  d.make_buffer(QPLAN_NPU_USE_INPUT, 16);
  EXPECT_EQ(d.last_alloc, QPLAN_NPU_E_MEMORY);
  d.make_buffer(QPLAN_NPU_USE_INPUT, 16);
  EXPECT_EQ(d.last_alloc, QPLAN_NPU_OK);
}

TEST(SimFaults, DamagedBlobs) {
  SimDevice d(
      "faults=at=load:1 kind=truncated_blob; at=load:2 kind=skewed_blob; at=load:3 kind=damaged_blob");
  EXPECT_EQ(d.load(product_blob()), QPLAN_NPU_E_BLOB);
  EXPECT_NE(std::string(d.why.text).find("its header says"), std::string::npos) << d.why.text;
  EXPECT_EQ(d.load(product_blob()), QPLAN_NPU_E_VERSION);
  EXPECT_EQ(d.load(product_blob()), QPLAN_NPU_E_BLOB);
  EXPECT_NE(std::string(d.why.text).find("checksum"), std::string::npos) << d.why.text;
  EXPECT_EQ(d.load(product_blob()), QPLAN_NPU_OK);
}

// With every seed the job ends, if necessary after a reset, and either reports a reason or is right.
TEST(SimFaults, SeededFaultsEndInAResultOrAReason) {
  int failed = 0, right = 0;
  for (uint64_t seed = 0; seed < 30; ++seed) {
    SimDevice d("fault_percent=60,fault_seed=" + std::to_string(seed));
    d.write(d.input, sample_input());
    for (int n = 0; n < 3; ++n) {
      qplan_npu_job job = 0;
      ASSERT_EQ(d.submit(&job), QPLAN_NPU_OK);
      qplan_npu_status status = d.wait(job, 20000000);
      if (status == QPLAN_NPU_PENDING) {
        ASSERT_EQ(driver().reset(d.device), QPLAN_NPU_OK);
        status = d.wait(job);
      }
      if (status == QPLAN_NPU_OK) {
        ++right;
        EXPECT_EQ(d.read(d.output), product_of(sample_input()));
      } else {
        ++failed;
        EXPECT_STRNE(d.report.text, "");
      }
    }
  }
  EXPECT_GT(failed, 20);
  EXPECT_GT(right, 20);
}

TEST(SimFaults, ScriptsAreChecked) {
  std::vector<FaultRule> rules;
  std::string error;
  EXPECT_TRUE(
      parse_faults("at=3:17 kind=late_interrupt ms=5; at=alloc:0 kind=allocation_failure", &rules, &error));
  ASSERT_EQ(rules.size(), 2u);
  EXPECT_EQ(rules[0].number, 3u);
  EXPECT_EQ(rules[0].instruction, 17u);
  EXPECT_EQ(rules[0].milliseconds, 5u);
  for (const char* script :
       {"at=3 kind=hang", "kind=hang", "at=3:1", "at=3:1 kind=fire", "at=load:1 kind=hang",
        "at=x:1 kind=hang", "at=0:99999999999999999999 kind=hang", "at=0:0 kind=hang twice"}) {
    EXPECT_FALSE(parse_faults(script, &rules, &error)) << script;
    EXPECT_NE(error.find("faults: '"), std::string::npos) << error;
  }
}

// ---- records ----

TEST(SimRecord, HasTheStatedFormAndReplays) {
  const Directory directory("record");
  {
    SimDevice d("record=" + directory.path());
    d.write(d.input, sample_input());
    ASSERT_EQ(d.run(), QPLAN_NPU_OK);
    ASSERT_EQ(d.run(), QPLAN_NPU_OK);
  }
  const std::filesystem::path job = std::filesystem::path(directory.path()) / "job-0000";
  // Program memory at 0x1000: 112 bytes of instructions, then micro-ops and weights; the buffers follow.
  EXPECT_EQ(text_of(job / "job.txt"),
            "target vta\nbase 0x1000\nsize 0x3000\nload 0x1100 load-0.bin\nload 0x1200 load-1.bin\nload "
            "0x2000 load-2.bin\n"
            "run instructions.bin\ncheck 0x3000 0x10 check-3.bin\n");
  const std::vector<uint8_t> y = product_of(sample_input());
  EXPECT_EQ(text_of(job / "check-3.bin"), std::string(y.begin(), y.end()));
  EXPECT_EQ(text_of(job / "instructions.bin").size(), 112u);
  EXPECT_TRUE(std::filesystem::exists(std::filesystem::path(directory.path()) / "job-0001" / "job.txt"));

  qplan_npu_report report = {};
  report.struct_size = sizeof(report);
  EXPECT_EQ(qplan_npu_sim_replay(job.c_str(), "explore=8", &report), QPLAN_NPU_OK) << report.text;
  EXPECT_EQ(report.vendor[QPLAN_NPU_SIM_INTERLEAVINGS], 8u);
  EXPECT_EQ(report.cycles, 229u);
  // One byte of the expectation, then of the inputs, then of the stream.
  std::string check = text_of(job / "check-3.bin");
  check[5] ^= 1;
  write_text(job / "check-3.bin", check);
  EXPECT_EQ(qplan_npu_sim_replay(job.c_str(), "", &report), QPLAN_NPU_E_BUS);
  EXPECT_NE(std::string(report.text).find("byte 5 of 'check-3.bin'"), std::string::npos) << report.text;
  write_text(job / "job.txt",
             "target vta\nsize 0x3000\nrun instructions.bin\ncheck 0x3000 0x10 check-3.bin\n");
  EXPECT_EQ(qplan_npu_sim_replay(job.c_str(), "", &report), QPLAN_NPU_E_ILLEGAL);  // nothing loaded
  EXPECT_NE(std::string(report.text).find("which was never stored"), std::string::npos) << report.text;
  write_text(job / "job.txt", "target vta\nburn everything\n");
  EXPECT_EQ(qplan_npu_sim_replay(job.c_str(), "", &report), QPLAN_NPU_E_ARGUMENT);
  EXPECT_STREQ(report.text, "replay: job.txt line 2: cannot understand 'burn'");
  EXPECT_EQ(qplan_npu_sim_replay((directory.path() + "/none").c_str(), "", &report), QPLAN_NPU_E_ARGUMENT);
}

// An output with bytes that the job leaves alone: they are loaded, and what it stores is not.
TEST(SimRecord, BytesThatAreLeftAloneAreLoaded) {
  const Directory directory("gaps");
  vta::testing::BlobBuilder builder;
  const uint32_t uops =
      builder.region(vta::RegionKind::kConstants, vta::testing::uops_raw(vta::kDefaultConfig, {{0, 0, 0}}));
  const uint32_t y = builder.region(vta::RegionKind::kOutput, 48, "y");
  builder.add(vta::testing::load(vta::Memory::kUop, 0, 0, 1), uops)
      .add(vta::testing::tokens("push.next", vta::testing::gemm(0, 1, true)))
      .add(vta::testing::tokens("pop.prev push.prev", vta::testing::store(0, 1, 1)), y)
      .add(vta::testing::tokens("pop.next", vta::testing::finish()));
  {
    SimDevice d("record=" + directory.path());
    ASSERT_EQ(d.load(builder.build()), QPLAN_NPU_OK) << d.why.text;
    const qplan_npu_buffer output = d.make_buffer(QPLAN_NPU_USE_OUTPUT, 48);
    d.write(output, std::vector<uint8_t>(48, 9));
    qplan_npu_job job = 0;
    ASSERT_EQ(d.submit(&job, {{y, 0, output, 0, 48}}), QPLAN_NPU_OK) << d.why.text;
    ASSERT_EQ(d.wait(job), QPLAN_NPU_OK) << d.report.text;
  }
  const std::filesystem::path job = std::filesystem::path(directory.path()) / "job-0000";
  EXPECT_EQ(text_of(job / "load-1.bin"),
            std::string(16, '\x09') + std::string(16, '\xa5') + std::string(16, '\x09'));
  EXPECT_EQ(text_of(job / "check-1.bin"),
            std::string(16, '\x09') + std::string(16, '\0') + std::string(16, '\x09'));
  EXPECT_EQ(qplan_npu_sim_replay(job.c_str(), "", nullptr), QPLAN_NPU_OK);
}

TEST(SimTrace, HasARowForEachModule) {
  const Directory directory("trace");
  const std::string file = directory.path() + "/trace.json";
  {
    SimDevice d("trace=" + file);
    ASSERT_EQ(d.run(), QPLAN_NPU_OK);
  }
  const std::string json = text_of(file);
  EXPECT_EQ(json.substr(0, 41), "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n{");
  for (const char* part : {"\"name\":\"load\"", "\"name\":\"compute\"", "\"name\":\"store\"",
                           "\"name\":\"dense_1\"", "\"ts\":1.62,\"dur\":0.01", "\"macs\":256"}) {
    EXPECT_NE(json.find(part), std::string::npos) << part;
  }
}

// The driver's log, and the status of close, for a device with these options.
struct Closed {
  qplan_npu_status status;
  std::string log;
};
Closed open_and_close(const std::string& options) {
  Closed closed = {};
  qplan_platform platform = {};
  platform.struct_size = sizeof(platform);
  platform.log_level = QPLAN_LOG_ERROR;
  platform.user = &closed.log;
  platform.log = [](void* user, uint32_t, const char* text) { *static_cast<std::string*>(user) += text; };
  qplan_device_hooks hooks = {};
  hooks.struct_size = sizeof(hooks);
  hooks.platform = &platform;
  qplan_npu_device device = 0;
  EXPECT_EQ(driver().open(&hooks, 0, options.c_str(), &device, nullptr), QPLAN_NPU_OK);
  closed.status = driver().close(device);
  EXPECT_EQ(driver().close(device), QPLAN_NPU_E_ARGUMENT);  // closed, whatever it said
  return closed;
}

TEST(SimTrace, AFileThatCannotBeWrittenFailsCloseWithTheReasonInTheLog) {
  const Directory directory("trace");
  EXPECT_EQ(open_and_close("trace=" + directory.path() + "/trace.json").status, QPLAN_NPU_OK);
  const Closed closed = open_and_close("trace=" + directory.path() + "/none/trace.json");
  EXPECT_EQ(closed.status, QPLAN_NPU_E_ARGUMENT);
  EXPECT_EQ(closed.log.rfind("vta-sim: trace: file '", 0), 0u) << closed.log;
  EXPECT_NE(closed.log.find("No such file or directory"), std::string::npos) << closed.log;
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "there is no /dev/full here";
  const Closed full = open_and_close("trace=/dev/full");
  EXPECT_EQ(full.status, QPLAN_NPU_E_ARGUMENT);
  EXPECT_EQ(full.log, "vta-sim: trace: file '/dev/full': cannot write: No space left on device");
}

TEST(SimListing, NamesRegionsAndNodes) {
  const std::vector<uint8_t> blob = product_blob();
  std::vector<std::string> lines;
  const auto collect = [](void* user, const char* text) {
    static_cast<std::vector<std::string>*>(user)->emplace_back(text);
  };
  ASSERT_EQ(qplan_npu_sim_disassemble(blob.data(), blob.size(), "", collect, &lines, nullptr), QPLAN_NPU_OK);
  ASSERT_EQ(lines.size(), 14u);
  EXPECT_EQ(lines[0], "target vta-1x16x16_i8w8a32_15_15_18_17");
  EXPECT_EQ(lines[2], "region weights 'w' (region 1): 256 bytes, aligned to 256, in the blob");
  EXPECT_EQ(lines[8], "dense_1:");
  EXPECT_EQ(lines[9], "     3  gemm.reset uop[0,1) 1x1 dst+0,+0");
  EXPECT_NE(lines[11].find("; output 'y' (region 3)"), std::string::npos) << lines[11];
  EXPECT_EQ(lines[13],
            "229 cycles; busy: load 162, compute 67, store 66; 276 bytes read, 16 bytes written, 256 macs");
  qplan_npu_reason why = {};
  EXPECT_EQ(qplan_npu_sim_disassemble(blob.data(), blob.size(), "sram=quarter", collect, &lines, &why),
            QPLAN_NPU_E_VERSION);
}

}  // namespace
}  // namespace qplan::sim::fault_test
