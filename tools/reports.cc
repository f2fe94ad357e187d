// What reports know of a plan, from its JSON, and of the machine that measures it.
#include "tools/reports.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "qplan/host.h"
#include "qplan/qplan.h"
#include "tools/command.h"
#include "tools/tensor.h"

namespace qplan::tools {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kGmacs = 66, kBytesPerNs = 24.5, kNsPerCycle = 10;

uint64_t bytes_of(const Json& plan, const Json& tensors) {
  uint64_t bytes = 0;
  for (const Json& tensor : tensors)
    bytes += plan.at("tensors").at(tensor.get<size_t>()).at("bytes").get<uint64_t>();
  return bytes;
}

// Bytes that the ranges [begin, end) cover.
uint64_t covered(std::vector<std::pair<uint64_t, uint64_t>> ranges) {
  std::ranges::sort(ranges);
  uint64_t bytes = 0, end = 0;
  for (const auto& [first, last] : ranges) {
    if (last > end) bytes += last - std::max(first, end);
    end = std::max(end, last);
  }
  return bytes;
}

}  // namespace

Json inspect_plan(const PlanFile& plan) {
  return Json::parse(inspect_text(plan.bytes(), plan.size(), plan.path()));
}

uint64_t step_bytes(const Json& plan, const Json& step) {
  return bytes_of(plan, step.at("inputs")) + bytes_of(plan, step.at("outputs"));
}

std::string step_target(const Json& step) {
  if (step.at("op") == "npu") return step.at("params").at("target").get<std::string>();
  return step.contains("alternative") ? "" : "cpu";
}

double estimated_ns(const Json& plan, const Json& step) {
  if (step.at("op") == "npu") {
    for (const Json& region : plan.at("regions")) {
      if (region.at("step") == step.at("index"))
        return region.at("estimated_cycles").get<double>() * kNsPerCycle;
    }
  }
  if (step.contains("alternative")) return 0;
  return std::max(step.at("macs").get<double>() / kGmacs,
                  static_cast<double>(step_bytes(plan, step)) / kBytesPerNs);
}

double estimated_ns(const Json& plan) {
  double ns = 0;
  for (const Json& step : plan.at("steps")) ns += estimated_ns(plan, step);
  return ns;
}

MemoryOverTime memory_over_time(const Json& plan) {
  const size_t num_steps = plan.at("steps").size();
  MemoryOverTime result;
  result.bytes.assign(num_steps, 0);
  result.alive.resize(num_steps);
  const Json& tensors = plan.at("tensors");
  for (uint32_t t = 0; t < tensors.size(); ++t) {
    if (plan.at("banks").at(tensors[t].at("bank").get<size_t>()).at("kind") != "arena") continue;
    const auto last = std::min<size_t>(tensors[t].at("last_use").get<size_t>() + 1, num_steps);
    for (size_t s = tensors[t].at("first_use").get<size_t>(); s < last; ++s) result.alive[s].push_back(t);
  }
  for (size_t s = 0; s < num_steps; ++s) {
    std::vector<std::pair<uint64_t, uint64_t>> ranges;
    for (const uint32_t t : result.alive[s]) {
      // Memory areas have addresses of their own.
      const uint64_t begin =
          tensors[t].at("offset").get<uint64_t>() + (tensors[t].at("bank").get<uint64_t>() << 48);
      ranges.emplace_back(begin, begin + tensors[t].at("bytes").get<uint64_t>());
    }
    result.bytes[s] = covered(std::move(ranges));
    if (result.bytes[s] > result.bytes[result.peak_step]) result.peak_step = static_cast<uint32_t>(s);
  }
  return result;
}

// ---- metadata

namespace {

std::vector<double> numbers_of(const Json& tensor, const char* name) {
  std::vector<double> numbers;
  if (!tensor.contains(name)) return numbers;
  for (const Json& number : tensor.at(name)) numbers.push_back(number.get<double>());
  return numbers;
}

void check_std(const std::vector<double>& std, const std::string& what) {
  if (std::ranges::find(std, 0.0) != std.end()) throw UsageError(what + ": must not be 0");
}

}  // namespace

PlanMetadata::PlanMetadata(const PlanFile& plan) {
  const Json metadata = inspect_plan(plan).at("metadata");
  if (metadata.is_null()) return;
  try {
    const std::vector<qplan_tensor_info> infos = tensor_infos(plan.plan(), QPLAN_INPUT);
    for (const Json& input : metadata.at("inputs")) {
      inputs_.push_back({numbers_of(input, "mean"), numbers_of(input, "std")});
      check_std(inputs_.back().std, "std");
      // The published schema: quantised again, the bytes of a picture are those of an 8-bit input.
      const size_t i = inputs_.size() - 1;
      if (i < infos.size() && infos[i].dtype.bits == 8) inputs_.back() = {};
    }
    for (const Json& output : metadata.at("outputs")) {
      outputs_.emplace_back();
      if (!output.contains("labels")) continue;
      // The names are the model's: what controls a terminal becomes '?'.
      for (const Json& label : output.at("labels"))
        outputs_.back().push_back(one_line(label.get<std::string>()));
    }
  } catch (const std::exception& error) {
    throw Failure("plan '" + plan.path() + "': its metadata is damaged: " + one_line(error.what()) +
                  "; pack the model again");
  }
}

Normalisation PlanMetadata::normalisation(uint32_t input, const std::string& mean,
                                          const std::string& std) const {
  if (mean.empty() && std.empty()) return input < inputs_.size() ? inputs_[input] : Normalisation{};
  Normalisation given;
  if (!mean.empty()) given.mean = parse_channel_values(mean, "--mean");
  if (!std.empty()) given.std = parse_channel_values(std, "--std");
  check_std(given.std, "--std");
  return given;
}

const std::vector<std::string>& PlanMetadata::labels(uint32_t output) const {
  static const std::vector<std::string> kNoLabels;
  return output < outputs_.size() ? outputs_[output] : kNoLabels;
}

uint32_t usable_cpus() {
  static const uint32_t at_first = [] {
    cpu_set_t cpus;
    // cpu_set_t holds 1,024 processors; on larger machines all that are online count.
    const long online = ::sysconf(_SC_NPROCESSORS_ONLN);
    const long usable = ::sched_getaffinity(0, sizeof cpus, &cpus) == 0 ? CPU_COUNT(&cpus) : online;
    return static_cast<uint32_t>(std::max(usable, 1L));
  }();
  return at_first;
}

MachineLoad machine_load() {
  MachineLoad load;
  if (::getloadavg(&load.average, 1) != 1) load.average = 0;
  load.cpus = usable_cpus();
  return load;
}

std::vector<std::string> load_warnings(const MachineLoad& load, uint32_t threads, const TimeSummary& times,
                                       uint64_t runs) {
  // A machine whose other work leaves each thread a CPU of its own counts as quiet. Half a thread is what a
  // desktop's background takes.
  constexpr double kBackground = 0.5;
  // On quiet machines 90 % of the runs stay within a few percent of the median.
  constexpr double kSpread = 1.25;
  constexpr uint64_t kMinRuns = 10;
  std::vector<std::string> warnings;
  char text[200];
  if (load.average > kBackground && load.average + threads > load.cpus + kBackground) {
    std::snprintf(text, sizeof text, "the machine was busy before the runs: load average %.1f on %u %s",
                  load.average, load.cpus, load.cpus == 1 ? "CPU" : "CPUs");
    warnings.push_back(text);
  }
  const auto median = static_cast<double>(times.median_ns), p90 = static_cast<double>(times.p90_ns);
  if (runs >= kMinRuns && p90 > kSpread * median) {
    std::snprintf(text, sizeof text, "the runs spread widely: p90 is %.2f times the median",
                  p90 / std::max(median, 1.0));
    warnings.push_back(text);
  }
  return warnings;
}

namespace {

#if defined(__x86_64__)
// Twelve sums that do not wait for each other: more than latency times throughput of any of these
// instructions. The values in the registers do not matter, because integers take the same time for all
// values.
constexpr uint64_t kSumsPerRound = 12;
#define QPLAN_PEAK_LOOP(sum)                                                                           \
  asm volatile("1:\n.irp i, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11\n" sum "\n.endr\ndec %0\njnz 1b\n"    \
               : "+r"(rounds)                                                                          \
               :                                                                                       \
               : "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", \
                 "xmm10", "xmm11", "xmm12")

void avx512vnni_rounds(uint64_t rounds) {
  QPLAN_PEAK_LOOP("vpdpbusd %%zmm14, %%zmm15, %%zmm\\i");
  asm volatile("vzeroupper");
}
void avxvnni_rounds(uint64_t rounds) {
  QPLAN_PEAK_LOOP("%{vex%} vpdpbusd %%ymm14, %%ymm15, %%ymm\\i");
  asm volatile("vzeroupper");
}
void avx2_rounds(uint64_t rounds) {
  QPLAN_PEAK_LOOP("vpmaddwd %%ymm14, %%ymm15, %%ymm12\nvpaddd %%ymm12, %%ymm\\i, %%ymm\\i");
  asm volatile("vzeroupper");
}
void sse41_rounds(uint64_t rounds) {
  QPLAN_PEAK_LOOP("movdqa %%xmm15, %%xmm12\npmaddwd %%xmm14, %%xmm12\npaddd %%xmm12, %%xmm\\i");
}

struct PeakLoop {
  uint32_t isa;
  uint64_t macs_per_sum;
  void (*run)(uint64_t rounds);
};
constexpr PeakLoop kLoops[] = {{QPLAN_ISA_AVX512VNNI, 64, avx512vnni_rounds},
                               {QPLAN_ISA_AVXVNNI, 32, avxvnni_rounds},
                               {QPLAN_ISA_AVX2, 16, avx2_rounds},
                               {QPLAN_ISA_SSE41, 8, sse41_rounds}};
#endif

}  // namespace

double measure_peak_gmacs(uint32_t isa) {
#if defined(__x86_64__)
  constexpr uint64_t kRounds = 20'000;
  constexpr int kMeasurements = 100;
  for (const PeakLoop& loop : kLoops) {
    if (loop.isa != isa || qplan_isa_available(isa) == 0) continue;
    uint64_t best_ns = UINT64_MAX;
    for (int i = 0; i < kMeasurements; ++i) {
      const uint64_t begin = qplan_host_now_ns(nullptr);
      loop.run(kRounds);
      best_ns = std::min(best_ns, qplan_host_now_ns(nullptr) - begin);
    }
    const double macs = static_cast<double>(kRounds * kSumsPerRound * loop.macs_per_sum);
    return macs / static_cast<double>(std::max<uint64_t>(best_ns, 1));
  }
#endif
  static_cast<void>(isa);
  return 0;
}

double measure_read_gbytes() {
  constexpr size_t kWords = size_t{64} << 17;  // of 8 bytes
  const std::vector<uint64_t> words(kWords, 1);
  uint64_t best_ns = UINT64_MAX;
  for (int i = 0; i < 3; ++i) {
    const uint64_t begin = qplan_host_now_ns(nullptr);
    uint64_t sums[4] = {};  // that do not wait for each other
    for (size_t k = 0; k < kWords; k += 4) {
      for (size_t s = 0; s < 4; ++s) sums[s] += words[k + s];
    }
    const uint64_t ns = qplan_host_now_ns(nullptr) - begin;
    // A use of the sums, which the compiler would leave out else.
    if (sums[0] + sums[1] + sums[2] + sums[3] == kWords) best_ns = std::min(best_ns, ns);
  }
  return static_cast<double>(kWords * sizeof(uint64_t)) / static_cast<double>(std::max<uint64_t>(best_ns, 1));
}

}  // namespace qplan::tools
