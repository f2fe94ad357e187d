// The costs of the CPU against the times of the layers of the ten benchmark models, as benchmarks/results has
// them; and costs that are fitted to times.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <regex>
#include <sstream>

#include "qplan/pack.h"
#include "src/packer/error.h"
#include "src/packer/pipeline/pipeline.h"
#include "src/packer/target/cost_file.h"
#include "src/packer/target/target.h"

namespace qplan::target::fit_costs_test {
namespace {

constexpr std::array<const char*, 3> kRecordedIsas = {"avx512vnni", "avx2", "sse41"};

struct RecordedLayer {
  std::string model, name;
  MeasuredStep step;                // ns is 0
  std::array<uint64_t, 3> ns = {};  // by kRecordedIsas; 0: not measured
};

struct Shape {
  std::vector<uint64_t> extents;
  uint64_t bytes = 0;
};

// "1x56x56x24_uint8"
Shape parse_shape(const std::string& text) {
  const std::map<std::string, uint64_t> sizes = {
      {"uint8", 1}, {"int8", 1}, {"int32", 4}, {"float32", 4}, {"int64", 8}};
  const size_t underscore = text.rfind('_');
  Shape shape;
  shape.bytes = sizes.at(text.substr(underscore + 1));
  std::istringstream extents(text.substr(0, underscore));
  for (std::string extent; std::getline(extents, extent, 'x');) {
    shape.extents.push_back(std::stoull(extent));
    shape.bytes *= shape.extents.back();
  }
  return shape;
}

std::optional<CpuWork> work_of_family(const std::string& family, const Shape& input) {
  if (family == "conv2d")
    return is_narrow(input.extents.back()) ? CpuWork::kNarrowConvolution : CpuWork::kConvolution;
  const std::map<std::string, CpuWork> works = {{"fully_connected", CpuWork::kConvolution},
                                                {"depthwise_conv2d", CpuWork::kDepthwise},
                                                {"add", CpuWork::kArithmetic},
                                                {"lut8", CpuWork::kTable},
                                                {"avg_pool2d", CpuWork::kPool},
                                                {"mean", CpuWork::kPool},
                                                {"softmax", CpuWork::kSoftmax},
                                                {"arg_max", CpuWork::kConvert},
                                                {"resize_bilinear", CpuWork::kResize}};
  const auto found = works.find(family);
  return found == works.end() ? std::nullopt : std::optional(found->second);
}

// "  22.40 (  26.7)   22.40 (  26.7)   57.15 (  10.5)
// add/model/9/1x8_uint8+1x8_uint8>1x8_uint8,contract=TFL2"
std::optional<RecordedLayer> parse_line(const std::string& line) {
  static const std::regex kLine(
      R"(\s*(?:-|([\d.]+) \(\s*([\d.]+)\))\s+(?:-|([\d.]+) \(\s*([\d.]+)\))\s+(?:-|([\d.]+) \(\s*([\d.]+)\))\s+)"
      R"((\w+)/(\w[\w.]*)/\d+/([\w+]+)>(\w+).*)");
  std::smatch match;
  if (!std::regex_match(line, match, kLine)) return std::nullopt;
  RecordedLayer layer;
  layer.model = match[8];
  layer.name = match[7].str() + " " + match[9].str() + ">" + match[10].str();
  const Shape output = parse_shape(match[10]);
  Shape input;
  layer.step.bytes = output.bytes;
  std::istringstream inputs(match[9]);
  for (std::string text; std::getline(inputs, text, '+');) {
    const Shape shape = parse_shape(text);
    if (input.extents.empty()) input = shape;
    layer.step.bytes += shape.bytes;
  }
  const std::optional<CpuWork> work = work_of_family(match[7], input);
  if (!work) return std::nullopt;
  layer.step.work = *work;
  double slowest_us = 0, rate = 0;
  for (size_t i = 0; i < kRecordedIsas.size(); ++i) {
    if (!match[2 * i + 1].matched) continue;
    const double us = std::stod(match[2 * i + 1]);
    layer.ns[i] = static_cast<uint64_t>(us * 1e3);
    if (us > slowest_us) rate = std::stod(match[2 * i + 2]);
    slowest_us = std::max(us, slowest_us);
  }
  const bool multiplies =
      *work == CpuWork::kConvolution || *work == CpuWork::kDepthwise || *work == CpuWork::kNarrowConvolution;
  if (multiplies) {  // the rate is GMAC/s; each weight is used once for each pixel
    layer.step.macs = static_cast<uint64_t>(slowest_us * rate * 1e3);
    uint64_t pixels = 1;
    for (size_t i = 0; i + 1 < output.extents.size(); ++i) pixels *= output.extents[i];
    layer.step.weight_bytes = layer.step.macs / pixels;
  }
  return layer;
}

// All but cascades.
std::vector<RecordedLayer> recorded_layers() {
  std::vector<RecordedLayer> layers;
  for (const auto& folder : std::filesystem::directory_iterator("benchmarks/results")) {
    std::ifstream file(folder.path() / "kernels.txt");
    for (std::string line; std::getline(file, line);) {
      if (std::optional<RecordedLayer> layer = parse_line(line)) layers.push_back(std::move(*layer));
    }
  }
  return layers;
}

uint64_t estimate(const CpuCosts& costs, const MeasuredStep& step) {
  return cpu_ns(costs, step.work, step.macs, step.bytes, step.weight_bytes);
}

// How a model's layers were measured and are estimated, on one instruction set.
struct Sum {
  double measured = 0, estimated = 0;
};
std::map<std::string, Sum> sums_by_model(const std::vector<RecordedLayer>& layers, size_t isa,
                                         const CpuCosts& costs) {
  std::map<std::string, Sum> sums;
  for (const RecordedLayer& layer : layers) {
    if (layer.ns[isa] == 0) continue;
    sums[layer.model].measured += static_cast<double>(layer.ns[isa]);
    sums[layer.model].estimated += static_cast<double>(estimate(costs, layer.step));
  }
  return sums;
}

CpuCosts costs_for(size_t isa) {
  return pipeline::parse_targets(std::string("cpu,isa=") + kRecordedIsas[isa])[0].cpu_costs;
}

constexpr double kFactor = 1.5;
bool is_within(double ratio) { return ratio < kFactor && ratio > 1 / kFactor; }

TEST(RecordedLayers, AreThoseOfTheTenModels) {
  const std::vector<RecordedLayer> layers = recorded_layers();
  ASSERT_GT(layers.size(), 200u) << "run in the repository";
  EXPECT_EQ(sums_by_model(layers, 0, costs_for(0)).size(), 10u);
}

TEST(RecordedLayers, EstimatesOfTheTenModelsAreWithinAFactorOfOneAndAHalf) {
  const std::vector<RecordedLayer> layers = recorded_layers();
  for (size_t isa = 0; isa < kRecordedIsas.size(); ++isa) {
    for (const auto& [model, sum] : sums_by_model(layers, isa, costs_for(isa))) {
      EXPECT_TRUE(is_within(sum.estimated / sum.measured))
          << model << " on " << kRecordedIsas[isa] << ": " << sum.estimated / sum.measured;
    }
  }
}

// How many times longer a layer takes than the mean of its model, estimated against measured, whatever the
// machine's speed: layers that take a hundredth of their model's time or more, and 98 of 100 within the
// factor.
TEST(RecordedLayers, RatiosBetweenLayersAreWithinAFactorOfOneAndAHalf) {
  const std::vector<RecordedLayer> layers = recorded_layers();
  for (size_t isa = 0; isa < kRecordedIsas.size(); ++isa) {
    const CpuCosts costs = costs_for(isa);
    const std::map<std::string, Sum> sums = sums_by_model(layers, isa, costs);
    size_t count = 0, within = 0;
    std::string outside;
    for (const RecordedLayer& layer : layers) {
      const Sum& sum = sums.at(layer.model);
      const auto measured = static_cast<double>(layer.ns[isa]);
      if (measured < sum.measured / 100) continue;
      const double ratio =
          static_cast<double>(estimate(costs, layer.step)) / measured * (sum.measured / sum.estimated);
      ++count;
      within += is_within(ratio);
      if (!is_within(ratio)) outside += layer.model + " " + layer.name + ": " + std::to_string(ratio) + "\n";
    }
    EXPECT_GT(count, 140u) << kRecordedIsas[isa];
    EXPECT_GE(within * 100, count * 98) << kRecordedIsas[isa] << "\n" << outside;
  }
}

std::vector<MeasuredStep> steps_of(const std::vector<RecordedLayer>& layers, const CpuCosts& machine) {
  std::vector<MeasuredStep> steps;
  for (const RecordedLayer& layer : layers) {
    steps.push_back(layer.step);
    steps.back().ns = estimate(machine, layer.step);
  }
  return steps;
}

// A machine whose kinds of work are slower by other factors than each other.
CpuCosts another_machine() {
  CpuCosts machine = costs_for(1);
  const auto scale = [&](CpuWork work, uint64_t macs, uint64_t bytes) {
    CpuRate& rate = machine.work[static_cast<size_t>(work)];
    rate = {rate.macs * macs, rate.bytes * bytes};
  };
  scale(CpuWork::kConvolution, 6, 2);
  scale(CpuWork::kNarrowConvolution, 6, 9);
  scale(CpuWork::kDepthwise, 3, 3);
  scale(CpuWork::kArithmetic, 1, 12);
  scale(CpuWork::kPool, 1, 5);
  machine.weights *= 10;
  machine.step_cycles *= 4;
  return machine;
}

TEST(FitCpuCosts, FindsTheCostsOfAnotherMachine) {
  const CpuCosts machine = another_machine();
  const std::vector<MeasuredStep> steps = steps_of(recorded_layers(), machine);
  const CpuCosts fitted = fit_cpu_costs(costs_for(1), steps);
  for (const MeasuredStep& step : steps) {
    const auto measured = static_cast<double>(step.ns);
    EXPECT_NEAR(static_cast<double>(estimate(fitted, step)) / measured, 1, 0.1);
  }
  const auto macs = [](const CpuCosts& costs) {
    return static_cast<double>(costs.of(CpuWork::kConvolution).macs);
  };
  EXPECT_NEAR(macs(fitted) / macs(machine), 1, 0.05);
  EXPECT_EQ(fitted.clock_khz, machine.clock_khz);
  EXPECT_EQ(fitted.pj_per_cycle, machine.pj_per_cycle);
}

TEST(FitCpuCosts, MeasuredTimesOfTheRecordGiveTheSameCostsOrBetterOnes) {
  const std::vector<RecordedLayer> layers = recorded_layers();
  for (size_t isa = 0; isa < kRecordedIsas.size(); ++isa) {
    std::vector<MeasuredStep> steps;
    for (const RecordedLayer& layer : layers) {
      if (layer.ns[isa] == 0) continue;
      steps.push_back(layer.step);
      steps.back().ns = layer.ns[isa];
    }
    const auto error = [&](const CpuCosts& costs) {
      double sum = 0;
      for (const MeasuredStep& step : steps) {
        const double log =
            std::log(static_cast<double>(step.ns) / static_cast<double>(estimate(costs, step)));
        sum += log * log;
      }
      return sum;
    };
    // The table is such a fit, rounded.
    const double fitted = error(fit_cpu_costs(costs_for(isa), steps)), table = error(costs_for(isa));
    EXPECT_LT(fitted, table * 1.001) << kRecordedIsas[isa];
    EXPECT_LT(table, fitted * 1.1) << kRecordedIsas[isa];
  }
}

TEST(FitCpuCosts, WhatNoStepDependsOnKeepsItsRatio) {
  const CpuCosts defaults = costs_for(1);
  CpuCosts machine = defaults;
  for (CpuRate& rate : machine.work) rate = {rate.macs * 5, rate.bytes * 5};
  machine.weights *= 5;
  machine.step_cycles *= 5;
  const MeasuredStep layer = {CpuWork::kDepthwise, 1'354'752, 301'056, 1'728, 0};
  MeasuredStep measured = layer;
  measured.ns = estimate(machine, layer);
  const CpuCosts fitted = fit_cpu_costs(defaults, std::vector(1, measured));
  for (const CpuWork work : {CpuWork::kConvolution, CpuWork::kSoftmax, CpuWork::kMove}) {
    const auto ratio =
        static_cast<double>(fitted.of(work).bytes) / static_cast<double>(defaults.of(work).bytes);
    EXPECT_NEAR(ratio, 5, 0.05) << work_name(work);
  }
  EXPECT_NEAR(static_cast<double>(fitted.copies) / static_cast<double>(defaults.copies), 5, 0.05);
}

TEST(FitCpuCosts, TakesAnyTimes) {
  const MeasuredStep huge = {CpuWork::kConvolution, UINT64_MAX, UINT64_MAX, UINT64_MAX, 1};
  const MeasuredStep slow = {CpuWork::kMove, 0, 0, 0, UINT64_MAX};
  for (const CpuRate& rate : fit_cpu_costs(costs_for(0), std::vector{huge, slow}).work) {
    EXPECT_LE(rate.macs, kMaxCost);
    EXPECT_LE(rate.bytes, kMaxCost);
  }
  EXPECT_EQ(fit_cpu_costs(costs_for(0), {}).macs_per_us(), costs_for(0).macs_per_us());
}

constexpr const char* kMeasured =
    R"({"target": "vta,sram=quarter, cpu,isa=avx2,clock=2GHz,macs_per_us=5", "isa": "sse41", "steps": [
        {"work": "convolution", "macs": 1000000, "bytes": 50000, "weight_bytes": 4000, "ns": 500000}]})";

void append(void* user, const char* bytes, size_t size) {
  static_cast<std::string*>(user)->append(bytes, size);
}
std::string fitted_text(const std::string& measurements) {
  std::string text;
  qplan_error error{};
  error.struct_size = sizeof error;
  const qplan_status status = qplan_fit_costs(measurements.c_str(), append, &text, &error);
  return status == QPLAN_OK ? text : std::string(error.text);
}

TEST(FitCosts, TheFileIsOneThatThePackerReads) {
  const ir::Json json = ir::parse_json(fitted_text(kMeasured));
  ASSERT_TRUE(json.is_object()) << fitted_text(kMeasured);
  const std::vector<Target> targets = pipeline::parse_target_file(ir::json_text(json.at("file")), "t.json");
  ASSERT_EQ(targets.size(), 2u);
  EXPECT_EQ(targets[0].options, pipeline::parse_targets("vta,sram=quarter")[0].options);
  EXPECT_EQ(targets[1].options, "arch=x86_64,isa=avx2");
  const CpuCosts& costs = targets[1].cpu_costs;
  EXPECT_EQ(costs.clock_khz, 2'000'000u);
  const MeasuredStep step = {CpuWork::kConvolution, 1'000'000, 50'000, 4'000, 0};
  EXPECT_NEAR(static_cast<double>(estimate(costs, step)), 500'000, 5'000);
  EXPECT_EQ(json.at("steps").at(0).at("estimated_ns").get<uint64_t>(), estimate(costs, step));
  CpuCosts before = costs_for(2);  // of the instruction set that ran the steps
  before.clock_khz = 2'000'000;
  EXPECT_EQ(json.at("steps").at(0).at("default_ns").get<uint64_t>(), estimate(before, step));
}

TEST(FitCosts, AllCostsSurviveTheFile) {
  CpuCosts costs = another_machine();
  costs.clock_khz = 1'800'000;
  costs.pj_per_cycle = 7;
  const std::string file =
      R"({"targets": [{"target": "cpu,isa=sse41", "costs": )" + ir::json_text(cpu_costs_json(costs)) + "}]}";
  const CpuCosts read = pipeline::parse_target_file(file, "t.json")[0].cpu_costs;
  EXPECT_EQ(cpu_costs_json(read), cpu_costs_json(costs));
  EXPECT_EQ(read.clock_khz, costs.clock_khz);
  EXPECT_EQ(read.copies, costs.copies);
}

TEST(FitCosts, RefusesWhatItDoesNotKnow) {
  const auto with = [](const std::string& from, const std::string& to) {
    std::string text = kMeasured;
    return fitted_text(text.replace(text.find(from), from.size(), to));
  };
  EXPECT_EQ(fitted_text("{"), "target: the text of the measurements is not JSON (byte 2)");
  EXPECT_EQ(fitted_text("{}"), "target: the measurements have no list 'steps'");
  EXPECT_EQ(with("convolution", "walk"), "target: 'walk' of a measured step is no kind of work");
  EXPECT_EQ(with(": 500000", ": 0"), "target: 'ns' of a measured step is 0, expected at least 1");
  EXPECT_EQ(with("50000,", "-1,"), "target: 'bytes' of a measured step is not a whole number");
  EXPECT_EQ(with("sse41", "sse5"), "target: isa 'sse5' of the measurements is not known");
  EXPECT_EQ(with("cpu,isa=avx2,clock=2GHz,macs_per_us=5", "npu"),
            "target: the list has no 'cpu', whose costs are measured");
  EXPECT_EQ(with("clock=2GHz", "clock=2"),
            "target: clock '2' of 'cpu' is not a frequency from 1kHz to 100GHz with its unit; expected like "
            "250MHz or 1.2GHz");
}

TEST(FitCosts, TheFileRefusesKindsAndNumbersThatAreNone) {
  const auto refusal = [](const std::string& costs) -> std::string {
    try {
      (void)pipeline::parse_target_file(R"({"targets": [{"target": "cpu", "costs": )" + costs + "}]}",
                                        "t.json");
    } catch (const PackError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(refusal(R"({"cycles_per_million": []})"),
            "t.json: target: 'cycles_per_million' is not an object");
  EXPECT_EQ(refusal(R"({"cycles_per_million": {"pool": {"macs": 0}}})"),
            "t.json: target: 'macs' is 0, expected a whole number from 1 to 1000000000");
  EXPECT_EQ(refusal(R"({"cycles_per_million": {"weights": {"macs": 1}}})"),
            "t.json: target: key 'macs' of 'weights' of 'cycles_per_million' is not known; known: bytes");
  EXPECT_EQ(
      refusal(R"({"cycles_per_million": {"dance": {}}})"),
      "t.json: target: key 'dance' of 'cycles_per_million' is not known; known: convolution, depthwise, "
      "addition, table, pool, softmax, conversion, copy, resize, narrow_convolution, weights, "
      "boundary_copy");
}

}  // namespace
}  // namespace qplan::target::fit_costs_test
