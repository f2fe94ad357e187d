// Random layers as command streams of VTA, made by the packer's compiler.
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <random>

#include "kernels/numeric/requantize.h"
#include "src/packer/error.h"
#include "src/vta/compiler/streams/stream.h"
#include "src/vta/isa/vta_blob.h"
#include "tests/conformance/check.h"
#include "tests/conformance/workload.h"
#include "tests/support/vta_layer.h"

namespace qplan::conformance {
namespace {

using layer::Geometry;
using vta::Config;
using vta::compiler::CompiledLayer;
using vta::compiler::GemmLayer;

Config config_of(const qplan_npu_capabilities& capabilities) {
  for (const Config& config : {vta::kDefaultConfig, vta::kQuarterConfig}) {
    if (vta::config_hash(config) == capabilities.hash) return config;
  }
  throw Skipped("the driver takes VTA's streams, but for a configuration that this program does not know");
}

class VtaGenerator {
 public:
  VtaGenerator(Size size, uint32_t seed) : size_(size), random_(seed) {
    Geometry& g = layer_.geometry;
    op::Window2d& w = g.window;
    const int64_t most = size == Size::kSmall ? 4 : 12;
    g.in_h = size == Size::kLong ? 40 : between(1, most);
    g.in_w = size == Size::kLong ? 40 : between(1, most);
    g.in_c = size == Size::kLong ? 32 : between(1, size == Size::kSmall ? 16 : 40);
    g.out_c = size == Size::kLong ? 32 : between(1, size == Size::kSmall ? 16 : 40);
    w.kernel_h = w.kernel_w = size == Size::kLong ? 3 : between(1, 3);
    if (size == Size::kRandom) {
      w.stride_h = between(1, 2);
      w.stride_w = between(1, 2);
      w.pad_top = w.pad_bottom = between(0, w.kernel_h - 1);
      w.pad_left = w.pad_right = between(0, w.kernel_w - 1);
    }
    g.in_h = std::max(g.in_h, w.kernel_h);
    g.in_w = std::max(g.in_w, w.kernel_w);
    g.out_h = w.out_h(g.in_h);
    g.out_w = w.out_w(g.in_w);
    const auto outputs = static_cast<size_t>(g.out_c);
    layer_.name = "layer";
    layer_.weights.resize(outputs * static_cast<size_t>(g.taps() * g.in_c));
    for (int16_t& weight : layer_.weights) weight = static_cast<int16_t>(between(-127, 127));
    for (size_t o = 0; o < outputs; ++o) {
      layer_.bias.push_back(static_cast<int32_t>(between(-20000, 20000)));
      layer_.multipliers.push_back({static_cast<int32_t>(between(int64_t{1} << 30, INT32_MAX)),
                                    static_cast<int32_t>(between(-11, -7))});
    }
    layer_.input_zero_point = static_cast<int32_t>(between(-128, 127));
    layer_.output_zero_point = static_cast<int32_t>(between(-128, 127));
    input_.resize(static_cast<size_t>(g.in_h * g.in_w * g.in_c));
    for (uint8_t& value : input_) value = static_cast<uint8_t>(random_());
  }

  Workload run(const Config& config) {
    const CompiledLayer compiled = compile_layer(config, layer_);
    const Geometry& g = layer_.geometry;
    Workload workload;
    workload.text = "conv2d " + std::to_string(g.out_h) + ' ' + std::to_string(g.out_w) + ' ' +
                    std::to_string(g.out_c) + ", tfl2";
    workload.format = QPLAN_NPU_BLOB_VTA;
    workload.blob = compiled.blob;
    Slot in, out;
    in.slot = vta::compiler::kInputRegion;
    in.usage = QPLAN_NPU_USE_INPUT;
    in.content = pack_activations(compiled.input, input_, 0, compiled.input_border);
    in.bytes = in.content.size();
    out.slot = vta::compiler::kOutputRegion;
    out.usage = QPLAN_NPU_USE_OUTPUT;
    out.bytes = static_cast<uint64_t>(compiled.output.bytes());
    workload.slots = {in, out};
    workload.output = 1;
    workload.unpack = [layout = compiled.output](const std::vector<uint8_t>& bytes) {
      return unpack_activations(layout, bytes, 0);
    };
    workload.expected = expected();
    workload.seal = seal;
    workload.header_bytes = sizeof(vta::BlobHeader);
    workload.version_offset = offsetof(vta::BlobHeader, major);
    workload.hash_offset = offsetof(vta::BlobHeader, config_hash);
    return workload;
  }

 private:
  int64_t between(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random_() % static_cast<uint32_t>(high - low + 1));
  }

  static void seal(std::vector<uint8_t>* blob) {
    constexpr size_t kAt = offsetof(vta::BlobHeader, checksum);
    std::memset(blob->data() + kAt, 0, sizeof(uint64_t));
    const uint64_t checksum = vta::blob_checksum(blob->data(), blob->size());
    std::memcpy(blob->data() + kAt, &checksum, sizeof(checksum));
  }

  // The value outside the input is the zero point, and adds nothing.
  std::vector<uint8_t> expected() const {
    const Geometry& g = layer_.geometry;
    const op::Window2d& w = g.window;
    std::vector<uint8_t> bytes;
    for (int64_t i = 0; i < g.out_h * g.out_w * g.out_c; ++i) {
      const int64_t o = i % g.out_c, x = i / g.out_c % g.out_w, y = i / g.out_c / g.out_w;
      int32_t sum = layer_.bias[static_cast<size_t>(o)];
      for (int64_t k = 0; k < g.taps() * g.in_c; ++k) {
        const int64_t iy = y * w.stride_h - w.pad_top + k / g.in_c / w.kernel_w;
        const int64_t ix = x * w.stride_w - w.pad_left + k / g.in_c % w.kernel_w;
        if (iy < 0 || iy >= g.in_h || ix < 0 || ix >= g.in_w) continue;
        const uint8_t byte = input_[static_cast<size_t>((iy * g.in_w + ix) * g.in_c + k % g.in_c)];
        sum += (static_cast<int8_t>(byte) - layer_.input_zero_point) *
               layer_.weights[static_cast<size_t>(o * g.taps() * g.in_c + k)];
      }
      const QuantizedMultiplier& m = layer_.multipliers[static_cast<size_t>(o)];
      bytes.push_back(
          static_cast<uint8_t>(add_clamp(requantize_tfl2(sum, m.multiplier, m.shift),
                                         layer_.output_zero_point, layer_.clamp_min, layer_.clamp_max)));
    }
    return bytes;
  }

  Size size_;
  std::mt19937 random_;
  GemmLayer layer_;
  std::vector<uint8_t> input_;
};

// One GEMM of 2^36 micro-ops that writes zeros, and a store.
Workload endless_workload(const Config& config) {
  using vta::Instruction;
  constexpr uint16_t kUops = 256;
  Instruction load, reset, store, finish;
  load.opcode = vta::Opcode::kLoad;
  load.memory = vta::Memory::kUop;
  load.y_size = 1;
  load.x_size = load.x_stride = kUops;
  reset.opcode = vta::Opcode::kGemm;
  reset.reset = true;
  reset.uop_end = kUops;
  reset.iter_out = reset.iter_in = 16383;
  reset.push_next = true;
  store.opcode = vta::Opcode::kStore;
  store.memory = vta::Memory::kOut;
  store.y_size = store.x_size = store.x_stride = 1;
  store.pop_prev = store.push_prev = true;
  finish.pop_next = true;
  vta::compiler::Stream stream;
  stream.instructions = {load, reset, store, finish};
  stream.relocations = {{0, 0}, {2, 1}};
  std::vector<vta::compiler::Region> regions(2);
  regions[0].kind = vta::RegionKind::kConstants;
  regions[0].data.assign(kUops * vta::kUopBytes, 0);
  regions[1].kind = vta::RegionKind::kOutput;
  regions[1].bytes = vta::kOutBytes;
  const vta::compiler::Estimate estimate = vta::compiler::estimate_cycles(config, stream.instructions);

  Workload workload;
  workload.text = "2^36 micro-ops";
  workload.format = QPLAN_NPU_BLOB_VTA;
  workload.blob = write_blob(config, stream, regions, estimate.total_cycles);
  workload.slots = {{1, QPLAN_NPU_USE_OUTPUT, vta::kOutBytes, {}}};
  return workload;
}

}  // namespace

Workload make_vta_workload(const qplan_npu_capabilities& capabilities, Size size, uint32_t seed) {
  const Config config = config_of(capabilities);
  if (size == Size::kEndless) return endless_workload(config);
  constexpr uint32_t kTries = 50;
  for (uint32_t attempt = 0;; ++attempt) {
    try {
      return VtaGenerator(size, seed * kTries + attempt).run(config);
    } catch (const PackError& error) {  // a layer that this configuration cannot take
      if (attempt == kTries) throw Failed(std::string("no random layer can be compiled: ") + error.what());
    }
  }
}

}  // namespace qplan::conformance
