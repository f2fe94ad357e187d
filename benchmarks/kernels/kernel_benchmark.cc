// Every variant of every kernel family on the steps of real models, one thread.
//
// usage: kernel_benchmarks [MODEL...] [--benchmark_...]
// Names: family/variant/model/step/shape. A step that an earlier model has too, with the same shapes and
// arithmetic, is not measured again. Without models: convolutions of a small built-in list, on random data.
#include <benchmark/benchmark.h>

#include <cstdio>
#include <exception>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "benchmarks/common/packed_model.h"
#include "benchmarks/kernels/layers.h"
#include "benchmarks/kernels/plan_step.h"
#include "kernels/cpu.h"
#include "src/runtime/bind/family.h"

namespace qplan::benchmarks {
namespace {

struct Work {
  std::string place;  // "model/step/shape"
  uint64_t macs;
  uint64_t bytes;
};

void run_variant(benchmark::State& state, const KernelVariant& variant, const void* args, const Work& work) {
  const Buffer scratch = aligned_buffer(variant.scratch_bytes(args));
  const uint32_t work_items = variant.work_items(args);
  for (auto _ : state) {
    variant.run(args, 0, work_items, scratch.get());
    benchmark::ClobberMemory();
  }
  const auto rate = [](uint64_t amount) {
    return benchmark::Counter(static_cast<double>(amount) * 1e-9,
                              benchmark::Counter::kIsIterationInvariantRate);
  };
  if (work.macs > 0) state.counters["GMAC/s"] = rate(work.macs);
  if (work.bytes > 0) state.counters["GB/s"] = rate(work.bytes);
}

// args must live as long as the program.
void add_variants(const KernelFamily& family, const void* args, const Work& work) {
  for (uint32_t i = 0; i < family.num_variants; ++i) {
    const KernelVariant& variant = family.variants[i];
    if (!cpu_has_isa(variant.isa) || !variant.accepts(args)) continue;
    const std::string name = std::string(family.name) + "/" + variant.name + "/" + work.place;
    benchmark::RegisterBenchmark(name.c_str(), [&variant, args, work](benchmark::State& state) {
      run_variant(state, variant, args, work);
    });
  }
}

class Benchmarks {
 public:
  // Its layers one by one, and the cascades that the packer makes of them.
  void add_model(const std::string& path) {
    for (const schedule::Fuse fuse : {schedule::Fuse::kOff, schedule::Fuse::kAuto}) add_plan(path, fuse);
  }

  void add_plan(const std::string& path, schedule::Fuse fuse) {
    models_.push_back(std::make_unique<PackedModel>(path, fuse));
    const PackedModel& model = *models_.back();
    for (uint32_t s = 0; s < model.plan().num_steps(); ++s) {
      auto step = std::make_unique<PlanStep>(model, s);
      if (!known_.insert(step->family().name + step->shape()).second) continue;
      add_variants(
          step->family(), step->args(),
          {model.name() + "/" + std::to_string(s) + "/" + step->shape(), step->macs(), step->bytes()});
      steps_.push_back(std::move(step));
    }
  }

  void add_built_in() {
    for (const Layer& layer : kConvLayers) add_convolution(kConv2dFamily, layer, false, Contract::kTfl2);
    for (const Layer& layer : kDepthwiseLayers) {
      add_convolution(kDepthwiseConv2dFamily, layer, true, Contract::kTfl2);
    }
    add_convolution(kConv2dFamily, kF32eConvLayer, false, Contract::kF32e);
    add_convolution(kDepthwiseConv2dFamily, kF32eDepthwiseLayer, true, Contract::kF32e);
  }

 private:
  void add_convolution(const KernelFamily& family, const Layer& layer, bool depthwise, Contract contract) {
    problems_.push_back(std::make_unique<ConvProblem>(layer, depthwise, contract));
    const std::string suffix = contract == Contract::kF32e ? "_f32e" : "";
    add_variants(family, &problems_.back()->args,
                 {"built_in/" + std::to_string(problems_.size()) + "/" + layer.name + suffix,
                  problems_.back()->macs, 0});
  }

  std::vector<std::unique_ptr<PackedModel>> models_;
  std::vector<std::unique_ptr<PlanStep>> steps_;
  std::vector<std::unique_ptr<ConvProblem>> problems_;
  std::set<std::string> known_;
};

}  // namespace
}  // namespace qplan::benchmarks

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  qplan::benchmarks::Benchmarks benchmarks;
  try {
    for (int i = 1; i < argc; ++i) benchmarks.add_model(argv[i]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "kernel_benchmarks: %s\n", error.what());
    return 1;
  }
  if (argc < 2) {
    std::fprintf(stderr, "kernel_benchmarks: no models are given: the built-in list of convolutions\n");
    benchmarks.add_built_in();
  }
  benchmark::RunSpecifiedBenchmarks();
}
