// Bytes of coded weights, layer by layer, beside those of Arm's compiler for the same network and
// configuration.
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <tuple>

#include "src/ethosu/isa/weights.h"
#include "src/packer/inspect/inspect.h"
#include "tests/ethosu/compiled_model.h"
#include "tests/models/model_session.h"

namespace qplan::ethosu::testing {
namespace {

using qplan::testing::pack_bytes;
using qplan::testing::read_bytes;

// A layer is known by its weights without their order: how often each value but 0 occurs. Zeros are also
// where the device's order has no weight.
using Values = std::map<int16_t, size_t>;
struct Layer {
  Values values;
  uint64_t bytes = 0;
};

// What kernels of one layer share that compute some of its output channels each; those of a depthwise layer
// read channels of their own.
using Geometry = std::tuple<KernelKind, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint64_t>;
Geometry geometry(const Kernel& k) {
  const uint32_t positions = k.ofm.h * k.ofm.w;
  if (k.kind == KernelKind::kDepthwise) return {k.kind, k.window_h, k.window_w, positions, 0, 0, 0};
  return {k.kind, k.window_h, k.window_w, positions, k.ifm.d, k.ifm.region, k.ifm.base[0]};
}

// The layers of a command stream, in its order. Streams of weights are found through the transfers that copy
// them, and each counts once.
class LayerReader {
 public:
  LayerReader(const Config& config, const Blob& blob)
      : config_(config), constants_(blob.bytes + blob_region(blob, 0).data_offset) {
    const std::vector<uint32_t> words = stream_words(blob.payload);
    Registers registers;
    for (uint32_t at = 0; at < words.size();) {
      Command command;
      Transfer transfer;
      Kernel kernel;
      if (decode(words.data(), static_cast<uint32_t>(words.size()), &at, &command)) break;
      if (!command.is_operation()) registers.set(command);
      if (command.code == kOpDmaStart && command.is_operation() &&
          !read_transfer(config, registers, &transfer) && !transfer.to_shram)
        transfers_.insert(transfers_.begin(), transfer);
      if (command.starts_kernel() && !read_kernel(config, registers, command, &kernel) &&
          kernel.is_convolution())
        add(kernel);
    }
  }
  const std::vector<Layer>& layers() const { return layers_; }

 private:
  uint64_t source_of(const ByteRange& range) const {
    if (range.region == 0) return range.begin;
    for (const Transfer& transfer : transfers_) {
      const ByteRange& to = transfer.to;
      if (to.region == range.region && to.begin <= range.begin && range.begin < to.begin + to.bytes)
        return transfer.from.begin + range.begin - to.begin;
    }
    throw std::runtime_error("weights that no transfer brings");
  }

  void add(const Kernel& kernel) {
    for (uint32_t core = 0; core < kernel.cores; ++core) {
      const ByteRange& range = kernel.weights[core];
      if (!seen_.emplace(source_of(range), range.bytes).second) continue;
      if (!last_ || *last_ != geometry(kernel)) layers_.emplace_back();
      last_ = geometry(kernel);
      // A weight takes at least a twentieth of a bit: in runs of zeros.
      std::vector<int16_t> weights(range.bytes * 160);
      uint64_t count = 0;
      const Problem problem =
          decode_weights(constants_ + source_of(range), range.bytes, weights.data(), weights.size(), &count);
      if (problem) throw std::runtime_error(problem.text);
      weights.resize(count);
      for (const int16_t weight : weights) {
        if (weight != 0) ++layers_.back().values[weight];
      }
      layers_.back().bytes += range.bytes;
    }
  }

  const Config& config_;
  const uint8_t* constants_;
  std::vector<Transfer> transfers_;  // the last one first
  std::map<uint64_t, uint64_t> seen_;
  std::optional<Geometry> last_;
  std::vector<Layer> layers_;
};

std::vector<Layer> layers_of(const std::filesystem::path& model, const std::string& accelerator) {
  const std::vector<uint8_t> plan =
      pack_bytes(read_bytes(model), model.filename().c_str(), (accelerator + ", cpu").c_str());
  const inspect::PlanReader reader(plan);
  std::vector<Layer> layers;
  for (uint32_t i = 0; i < reader.view().num_steps(); ++i) {
    const format::NpuStep* const step = reader.view().npu_step(i);
    if (step == nullptr) continue;
    const auto* const bytes = static_cast<const uint8_t*>(reader.view().constant_data(step->blob()));
    Blob blob;
    qplan_npu_reason why = {};
    const Config& config = *find_config(accelerator.c_str());
    if (read_blob(bytes, reader.view().tensor(step->blob()).size(), config, &blob, &why) != QPLAN_NPU_OK)
      throw std::runtime_error(why.text);
    const LayerReader found(config, blob);
    layers.insert(layers.end(), found.layers().begin(), found.layers().end());
  }
  return layers;
}

// Single operators, one file of each network and some more; QPLAN_ETHOSU_WEIGHTS=all: all of them.
bool is_wanted(const std::string& file) {
  const char* const which = std::getenv("QPLAN_ETHOSU_WEIGHTS");
  const bool is_single = file.starts_with("single/");
  if (which != nullptr && which == std::string("all")) return is_single || file.starts_with("nets/");
  constexpr const char* kFiles[] = {"nets/ad01_int8__u55-128.tflite",
                                    "nets/kws_ref_model__u55-32.tflite",
                                    "nets/kws_ref_model__u55-128.tflite",
                                    "nets/kws_ref_model__u65-512.tflite",
                                    "nets/mobilenet_v1_0.25_128_quant__u55-128.tflite",
                                    "nets/person_detect__u55-128.tflite",
                                    "nets/pretrainedResnet_quant__u55-128.tflite",
                                    "nets/pretrainedResnet_quant__u65-256.tflite"};
  return is_single || std::ranges::find(kFiles, file) != std::end(kFiles);
}

TEST(WeightBytes, OfEachLayerAreAtMostATenthMoreThanWithArmsCompiler) {
  size_t files = 0;
  for (const CompiledFile& file : compiled_files()) {
    if (!is_wanted(file.name)) continue;
    SCOPED_TRACE(file.name);
    ++files;
    std::multimap<Values, uint64_t> of_arm;
    for (const Layer& layer : layers_of(file.path, file.accelerator))
      of_arm.emplace(layer.values, layer.bytes);
    size_t layers = 0;
    for (const Layer& layer : layers_of(file.source, file.accelerator)) {
      SCOPED_TRACE("layer " + std::to_string(layers++));
      const auto same = of_arm.find(layer.values);
      ASSERT_NE(same, of_arm.end()) << "no layer of Arm's compiler has these weights";
      EXPECT_LE(layer.bytes * 10, same->second * 11) << layer.bytes << " bytes, Arm's: " << same->second;
      of_arm.erase(same);
    }
    EXPECT_TRUE(layers > 0 || file.name.starts_with("single/"));
  }
  if (files == 0) GTEST_SKIP() << qplan::testing::kNoDataDirectory;
}

}  // namespace
}  // namespace qplan::ethosu::testing
