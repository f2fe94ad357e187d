// Every variant of conv2d and depthwise_conv2d on real layers: GMAC/s, one thread.
#include <benchmark/benchmark.h>

#include <string>

#include "benchmarks/kernels/layers.h"
#include "kernels/cpu.h"
#include "kernels/families.h"

namespace qplan::benchmarks {
namespace {

void run_variant(benchmark::State& state, const KernelVariant& variant, const Layer& layer, bool depthwise,
                 Contract contract) {
  ConvProblem problem(layer, depthwise, contract);
  if (!variant.accepts(&problem.args)) {
    state.SkipWithError("the variant does not accept this layer");
    return;
  }
  const Buffer scratch = aligned_buffer(variant.scratch_bytes(&problem.args));
  const uint32_t units = variant.units(&problem.args);
  for (auto _ : state) {
    variant.run(&problem.args, 0, units, scratch.get());
    benchmark::ClobberMemory();
  }
  state.counters["GMAC/s"] = benchmark::Counter(static_cast<double>(problem.macs) * 1e-9,
                                                benchmark::Counter::kIsIterationInvariantRate);
}

void add_family(const KernelFamily& family, const Layer& layer, bool depthwise,
                Contract contract = Contract::kTfl2) {
  const std::string suffix = contract == Contract::kF32e ? "_f32e" : "";
  for (uint32_t i = 0; i < family.num_variants; ++i) {
    const KernelVariant& variant = family.variants[i];
    if (!cpu_has_isa(variant.isa)) continue;
    benchmark::RegisterBenchmark((std::string(variant.name) + "/" + layer.name + suffix).c_str(), run_variant,
                                 variant, layer, depthwise, contract);
  }
}

const bool kRegistered = [] {
  for (const Layer& layer : kConvLayers) add_family(kConv2dFamily, layer, false);
  for (const Layer& layer : kDepthwiseLayers) add_family(kDepthwiseConv2dFamily, layer, true);
  add_family(kConv2dFamily, kF32eConvLayer, false, Contract::kF32e);
  add_family(kDepthwiseConv2dFamily, kF32eDepthwiseLayer, true, Contract::kF32e);
  return true;
}();

}  // namespace
}  // namespace qplan::benchmarks
