// Random layers on random configurations, with and without a limit of memory: the device's bytes are the
// reference kernels', without a hazard.
// $QPLAN_ETHOSU_LAYERS sets how many (default 60; each on three configurations).
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "src/packer/partition/partition.h"
#include "src/packer/pipeline/pipeline.h"
#include "src/packer/text/text.h"
#include "tests/ethosu/compiler/simulate.h"
#include "tests/support/random.h"
#include "tests/vta/compiler/simulate_region.h"

namespace qplan::ethosu::testing {
namespace {

using qplan::testing::Random;

// A function as text, made layer by layer.
class Network {
 public:
  explicit Network(uint64_t seed) : random_(seed) {
    is_unsigned_ = pick(0, 3) == 0;
    h_ = pick(1, 14), w_ = pick(1, 14), c_ = pick(1, 40);
    params_ = "%x: Tensor[(1, " + std::to_string(h_) + ", " + std::to_string(w_) + ", " + std::to_string(c_) +
              "), " + dtype() + "]";
    value_ = "%x";
    const int64_t layers = pick(1, 4);
    for (int64_t i = 0; i < layers; ++i) add_layer();
  }
  // Convolutions of a 12 x 12 x 8 input: window, stride, padding on all sides, output channels.
  struct Convolution {
    int64_t window, stride, pad, channels = 8;
  };
  Network(uint64_t seed, const std::vector<Convolution>& layers) : random_(seed), h_(12), w_(12), c_(8) {
    params_ = "%x: Tensor[(1, 12, 12, 8), int8]";
    value_ = "%x";
    for (const auto& [window, stride, pad, channels] : layers)
      convolution(false, window, window, channels,
                  window_text(window, window, {stride, stride, 1, 1}, {pad, pad, pad, pad}));
  }
  // Layers of int16 with biases of int64, in which are all magnitudes that the device's accumulators hold.
  static Network of_int16(uint64_t seed) {
    Network network(seed, {});
    network.is_int16_ = true;
    network.params_ = "%x: Tensor[(1, 12, 12, 8), int16]";
    for (int64_t i = network.pick(1, 3); i > 0; --i) network.add_int16_layer();
    return network;
  }
  std::string text() const { return "def @main(" + params_ + ") {\n" + body_ + "  " + value_ + "\n}\n"; }

 private:
  int64_t pick(int64_t low, int64_t high) { return random_.integers<int64_t>(1, low, high)[0]; }
  std::string dtype() const { return is_int16_ ? "int16" : is_unsigned_ ? "uint8" : "int8"; }
  std::string zero_point() {
    return is_int16_ ? "0" : std::to_string(is_unsigned_ ? pick(0, 255) : pick(-128, 127));
  }
  std::string number() {
    // Powers are spread evenly.
    const double value =
        static_cast<double>(pick(1 << 10, 1 << 11)) / static_cast<double>(1 << (10 + pick(3, 8)));
    return std::to_string(value);
  }
  std::string scale() { return number() + "f"; }
  std::string next() { return "%" + std::to_string(count_++); }
  void emit(const std::string& expression) {
    const std::string name = next();
    body_ += "  " + name + " = " + expression + ";\n";
    value_ = name;
  }
  std::string constant(const std::string& shape, const std::string& type, int64_t count, int64_t low,
                       int64_t high) {
    std::string text = "const(Tensor[(" + shape + "), " + type + "], [";
    for (int64_t i = 0; i < count; ++i) text += (i == 0 ? "" : ", ") + std::to_string(pick(low, high));
    return text + "])";
  }
  std::string scales(int64_t count) {
    std::string text = "const(Tensor[(" + std::to_string(count) + "), float32], [";
    for (int64_t i = 0; i < count; ++i) text += (i == 0 ? "" : ", ") + number();
    return text + "])";
  }
  void maybe_clip() {
    if (pick(0, 2) == 0)
      emit("clip(" + value_ + ", a_min=" +
           (is_int16_      ? "-20000f"
            : is_unsigned_ ? "10f"
                           : "-100f") +
           ", a_max=" +
           (is_int16_      ? "15000f"
            : is_unsigned_ ? "200f"
                           : "90f") +
           ")");
  }

  void add_layer() {
    // Layers that make much of little are for small images.
    const bool is_small = h_ * w_ <= 200;
    switch (pick(0, 17)) {
      case 0:
      case 1:
      case 2:
        return convolution(false);
      case 3:
        return convolution(true);
      case 4:
        return pool("nn.max_pool2d(" + value_ + ", ", "");
      case 5:
        return average();
      case 6:
        return addition();
      case 7:
        return product();
      case 8:
        return table();
      case 9:
        return binary("qnn.subtract");
      case 10:
        return is_small ? transposed_convolution() : product();
      case 11:
        return is_small ? nearest() : product();
      case 12:
        return take();
      case 13:
        return slice();
      case 14:
        return pad();
      case 15:
        return transpose();
      case 16:
        return parts();
      default:
        return softmax();
    }
  }

  // ---- movement
  static std::string list(const std::vector<int64_t>& values) {
    std::string text = "[";
    for (size_t i = 0; i < values.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(values[i]);
    return text + "]";
  }
  int64_t& extent(int64_t axis) { return axis == 1 ? h_ : axis == 2 ? w_ : c_; }
  void take(int64_t axis, const std::vector<int64_t>& positions) {
    emit("take(" + value_ + ", const(Tensor[(" + std::to_string(positions.size()) + "), int32], " +
         list(positions) + "), axis=" + std::to_string(axis) + ")");
    extent(axis) = std::ssize(positions);
  }
  // Each position `factor` times.
  void repeat(int64_t axis, int64_t factor) {
    std::vector<int64_t> positions;
    for (int64_t i = 0; i < extent(axis) * factor; ++i) positions.push_back(i / factor);
    take(axis, positions);
  }
  void nearest() {
    const int64_t first = pick(1, 2);
    repeat(first, 2);
    repeat(3 - first, 2);
  }
  void take() {
    const int64_t axis = pick(1, 3);
    if (axis != 3 && pick(0, 1) == 0 && h_ * w_ <= 200) return repeat(axis, pick(2, 3));
    std::vector<int64_t> positions;
    for (int64_t i = pick(1, 9); i > 0; --i) positions.push_back(pick(-extent(axis), extent(axis) - 1));
    take(axis, positions);
  }
  void slice() {
    std::vector<int64_t> begins = {0}, ends = {1}, steps = {1};
    for (int64_t axis = 1; axis <= 3; ++axis) {
      const int64_t begin = pick(0, extent(axis) - 1), end = pick(begin + 1, extent(axis));
      const int64_t step = axis == 3 ? 1 : pick(1, 3);
      begins.push_back(begin), ends.push_back(end), steps.push_back(step);
      extent(axis) = (end - begin + step - 1) / step;
    }
    emit("strided_slice(" + value_ + ", begin=" + list(begins) + ", end=" + list(ends) +
         ", strides=" + list(steps) + ")");
  }
  void pad() {
    std::string widths = "[[0, 0]";
    for (int64_t axis = 1; axis <= 3; ++axis) {
      const int64_t before = pick(0, 3), after = pick(0, 3);
      widths += ", " + list({before, after});
      extent(axis) += before + after;
    }
    emit("nn.pad(" + value_ + ", " + zero_point() + "f, pad_width=" + widths + "])");
  }
  void transpose() {
    std::vector<int64_t> axes = {1, 2, 3}, extents;
    std::swap(axes[0], axes[static_cast<size_t>(pick(0, 2))]);
    std::swap(axes[1], axes[static_cast<size_t>(pick(1, 2))]);
    for (const int64_t axis : axes) extents.push_back(extent(axis));
    h_ = extents[0], w_ = extents[1], c_ = extents[2];
    axes.insert(axes.begin(), 0);
    emit("transpose(" + value_ + ", axes=" + list(axes) + ")");
  }
  // Two parts, clamped, in the other order.
  void parts() {
    const int64_t axis = pick(1, 3);
    if (extent(axis) == 1) return transpose();
    emit("split(" + value_ + ", indices_or_sections=[" + std::to_string(pick(1, extent(axis) - 1)) +
         "], axis=" + std::to_string(axis) + ")");
    const std::string split = value_;
    emit("clip(" + split + ".0, a_min=" + (is_unsigned_ ? "10f" : "-100f") + ", a_max=90f)");
    emit("concatenate((" + split + ".1, " + value_ + "), axis=" + std::to_string(axis) + ")");
  }
  void softmax() {
    emit("qnn.softmax(" + value_ + ", " + scale() + ", " + zero_point() + ", 0.00390625f, " +
         (is_unsigned_ ? "0" : "-128") + ", axis=-1, contract=\"tfl2\")");
  }

  void transposed_convolution() {
    const int64_t stride = pick(1, 2), kh = pick(1, 5), kw = pick(1, 5);
    const int64_t top = pick(0, kh - 1), left = pick(0, kw - 1);
    const auto output = [&](int64_t in, int64_t kernel, int64_t before) {
      return std::max<int64_t>(1, (in - 1) * stride + kernel - before - pick(0, kernel - 1) + pick(0, 1));
    };
    const int64_t h = output(h_, kh, top), w = output(w_, kw, left);
    const std::string attributes =
        "strides=" + list({stride, stride}) + ", crop=" + list({top, left}) + ", output_size=" + list({h, w});
    convolution(false, kh, kw, pick(1, 30), attributes, pick(0, 3) == 0, "qnn.conv2d_transpose");
    h_ = h, w_ = w;
  }

  // "strides=..., padding=..."; sets the extents of the result.
  std::string window(int64_t kh, int64_t kw, int64_t most_pad, bool may_dilate) {
    const int64_t sy = pick(1, 3), sx = pick(1, 3);
    const int64_t dy = may_dilate ? pick(1, 2) : 1, dx = may_dilate ? pick(1, 2) : 1;
    const int64_t eh = (kh - 1) * dy + 1, ew = (kw - 1) * dx + 1;
    const auto pads = [&](int64_t extent, int64_t window_extent) {
      // Convolutions may have windows that lie in the padding.
      const int64_t most =
          std::min(most_pad, may_dilate && pick(0, 3) == 0 ? window_extent + 2 : window_extent - 1);
      int64_t before = pick(0, most), after = pick(0, most);
      while (extent + before + after < window_extent) ++(before < window_extent - 1 ? before : after);
      return std::pair(before, after);
    };
    const auto [top, bottom] = pads(h_, eh);
    const auto [left, right] = pads(w_, ew);
    return window_text(kh, kw, {sy, sx, dy, dx}, {top, left, bottom, right});
  }
  struct Steps {
    int64_t sy, sx, dy, dx;  // strides and dilations
  };
  struct Pads {
    int64_t top, left, bottom, right;
  };
  std::string window_text(int64_t kh, int64_t kw, const Steps& s, const Pads& p) {
    h_ = (h_ + p.top + p.bottom - (kh - 1) * s.dy - 1) / s.sy + 1;
    w_ = (w_ + p.left + p.right - (kw - 1) * s.dx - 1) / s.sx + 1;
    std::string text = "strides=[" + std::to_string(s.sy) + ", " + std::to_string(s.sx) + "], padding=[" +
                       std::to_string(p.top) + ", " + std::to_string(p.left) + ", " +
                       std::to_string(p.bottom) + ", " + std::to_string(p.right) + "]";
    if (s.dy > 1 || s.dx > 1)
      text += ", dilation=[" + std::to_string(s.dy) + ", " + std::to_string(s.dx) + "]";
    return text;
  }

  void convolution(bool is_depthwise) {
    if (is_depthwise && c_ == 1) is_depthwise = false;
    const int64_t kh = pick(1, std::min<int64_t>(h_ + 1, 5)), kw = pick(1, std::min<int64_t>(w_ + 1, 9));
    // Channels by 16 may be in bricks.
    const int64_t out = is_depthwise ? c_ : pick(0, 2) == 0 ? 16 * pick(2, 4) : pick(1, 50);
    convolution(is_depthwise, kh, kw, out, window(kh, kw, 4, true), pick(0, 3) == 0 && !is_int16_);
  }
  // is_mixed: from uint8 to int8, or the other way.
  void convolution(bool is_depthwise, int64_t kh, int64_t kw, int64_t out, const std::string& window_text,
                   bool is_mixed = false, const std::string& op = "qnn.conv2d") {
    const int64_t in = is_depthwise ? 1 : c_;
    const std::string in_zero_point = zero_point();
    if (is_mixed) is_unsigned_ = !is_unsigned_;
    const bool is_per_channel = !is_unsigned_ && pick(0, 1) == 0;
    const std::string weights = constant(std::to_string(out) + ", " + std::to_string(kh) + ", " +
                                             std::to_string(kw) + ", " + std::to_string(in),
                                         is_unsigned_ ? "uint8" : "int8", out * kh * kw * in,
                                         is_unsigned_ ? 0 : -127, is_unsigned_ ? 255 : 127);
    const std::string in_scale = scale(), out_zero_point = zero_point();
    const std::string weight_scale = is_per_channel ? scales(out) : scale();
    std::string attributes = window_text + (is_depthwise ? ", groups=" + std::to_string(c_) : "");
    if (op == "qnn.conv2d") attributes += ", data_layout=\"NHWC\", kernel_layout=\"OHWI\"";
    if (is_int16_) attributes += ", out_dtype=\"int64\"";
    emit(op + "(" + value_ + ", " + weights + ", " + in_zero_point + ", " +
         (is_unsigned_ ? zero_point() : "0") + ", " + in_scale + ", " + weight_scale + ", " + attributes +
         ", name=\"layer" + std::to_string(count_) + "\")");
    end_layer(out, is_per_channel, out_zero_point);
  }
  // Bias, requantisation, clip.
  void end_layer(int64_t out, bool is_per_channel, const std::string& out_zero_point) {
    const int64_t bias = is_int16_ ? int64_t{1} << pick(4, 38) : 40000;
    emit("nn.bias_add(" + value_ + ", " +
         constant(std::to_string(out), is_int16_ ? "int64" : "int32", out, -bias, bias) + ", axis=3)");
    const std::string product = is_per_channel ? scales(out) : scale();
    const std::string out_scale = is_int16_ ? std::to_string(std::ldexp(1.0, static_cast<int>(pick(-6, 22))))
                                            : std::to_string(pick(1, 400));
    emit("qnn.requantize(" + value_ + ", " + product + ", 0, " + out_scale + "f, " + out_zero_point +
         ", out_dtype=\"" + dtype() + "\", axis=3, contract=\"tfl2\")");
    c_ = out;
    maybe_clip();
  }
  void add_int16_layer() {
    const int64_t kind = pick(0, 3);
    if (kind < 3) return convolution(kind == 2);
    const int64_t out = pick(1, 40);
    emit("qnn.dense(" + value_ + ", " +
         constant(std::to_string(out) + ", " + std::to_string(c_), "int8", out * c_, -127, 127) + ", 0, 0, " +
         scale() + ", " + scale() + ", out_dtype=\"int64\")");
    end_layer(out, pick(0, 1) == 0, "0");
  }

  void pool(const std::string& head, const std::string& tail) {
    const int64_t kh = pick(1, std::min<int64_t>(h_, 5)), kw = pick(1, std::min<int64_t>(w_, 5));
    emit(head + "pool_size=[" + std::to_string(kh) + ", " + std::to_string(kw) + "], " +
         window(kh, kw, 2, false) + ", layout=\"NHWC\"" + tail + ")");
    maybe_clip();
  }
  void average() {
    const std::string s = scale(), z = zero_point();
    pool("qnn.avg_pool2d(" + value_ + ", " + s + ", " + z + ", " + s + ", " + z + ", ",
         ", contract=\"tfl2\"");
  }
  std::string broadcast_shape() {
    const bool whole = pick(0, 1) == 0;
    const auto extent = [&](int64_t e) { return std::to_string(whole || pick(0, 1) == 0 ? e : 1); };
    return "(1, " + extent(h_) + ", " + extent(w_) + ", " + extent(c_) + ")";
  }
  std::string other() {
    const std::string name = "%y" + std::to_string(count_);
    params_ += ", " + name + ": Tensor[" + broadcast_shape() + ", " + dtype() + "]";
    return name;
  }
  void binary(const std::string& op) {
    const std::string second = pick(0, 3) == 0 ? value_ : other();
    const bool swaps = pick(0, 1) == 0;
    const std::string lhs_scale = scale(), rhs_scale = pick(0, 3) == 0 ? lhs_scale : scale();
    emit(op + "(" + (swaps ? second : value_) + ", " + (swaps ? value_ : second) + ", " + lhs_scale + ", " +
         zero_point() + ", " + rhs_scale + ", " + zero_point() + ", 0.25f, " + zero_point() +
         ", contract=\"tfl2\")");
    maybe_clip();
  }
  void addition() { binary("qnn.add"); }
  void product() { binary("qnn.mul"); }
  void table() {
    if (pick(0, 2) == 0) {  // a rescale in float32, of any ratio
      emit("qnn.requantize(" + value_ + ", " + scale() + ", " + zero_point() + ", " + scale() + ", " +
           zero_point() + ", out_dtype=\"" + dtype() + "\", multiplier=\"none\")");
      return;
    }
    emit("qnn.lookup(" + value_ + ", " +
         constant("256", dtype(), 256, is_unsigned_ ? 0 : -128, is_unsigned_ ? 255 : 127) + ")");
  }

  Random random_;
  bool is_unsigned_ = false, is_int16_ = false;
  int64_t h_ = 1, w_ = 1, c_ = 1;
  int64_t count_ = 0;
  std::string params_, body_, value_;
};

size_t num_layers() {
  const char* const text = std::getenv("QPLAN_ETHOSU_LAYERS");
  return text == nullptr ? 60 : static_cast<size_t>(std::strtoul(text, nullptr, 10));
}

struct Counts {
  size_t placed = 0, regions = 0, in_rows = 0;
  size_t labels = 0, repeated_labels = 0;  // a label repeats the one before
  size_t bricks = 0;                       // kernels that write NHCWB16
  size_t copies = 0, slices = 0;  // of weights to scratch memory; a layer's second slice and further ones
};

void count_parts(const Config& config, const std::vector<uint8_t>& bytes, Counts* counts) {
  Blob blob;
  ASSERT_EQ(read_blob(bytes.data(), bytes.size(), config, &blob, nullptr), QPLAN_NPU_OK);
  const auto name = [&](uint32_t i) { return std::string(blob.text + blob_label(blob, i).name); };
  counts->labels += blob.header.num_labels;
  for (uint32_t i = 1; i < blob.header.num_labels; ++i) counts->repeated_labels += name(i) == name(i - 1);
  Registers registers;
  const std::vector<uint32_t> words = stream_words(blob.payload);
  std::string last;
  for (uint32_t at = 0; at < words.size();) {
    const std::string node = blob_node(blob, at);
    Command command;
    ASSERT_FALSE(decode(words.data(), static_cast<uint32_t>(words.size()), &at, &command));
    if (!command.is_operation()) registers.set(command);
    if (command.starts_kernel()) {
      Kernel kernel;
      ASSERT_FALSE(read_kernel(config, registers, command, &kernel));
      counts->bricks += kernel.ofm.is_nhcwb16 ? 1 : 0;
    }
    if (!command.is_operation() || command.code != kOpDmaStart) continue;
    Transfer transfer;
    ASSERT_FALSE(read_transfer(config, registers, &transfer));
    if (transfer.to_shram) continue;
    ++counts->copies;
    counts->slices += node == last ? 1 : 0;
    last = node;
  }
}

// Packs for the target, and compares each region's bytes with the reference kernels'.
void run(const std::string& text, const std::string& target, uint64_t seed, Counts* counts) {
  SCOPED_TRACE("seed " + std::to_string(seed) + " on " + target + ":\n" + (text));
  const Config& config = *find_config(target.substr(0, target.find(',')).c_str());
  const std::vector<target::Target> targets = pipeline::parse_targets(target + ", cpu");
  partition::PartitionOptions options;
  options.cost_gate = false;
  std::optional<partition::CompiledPartition> compiled;
  ASSERT_NO_THROW(
      compiled.emplace(partition::compile_partition(text::parse(text, "test"), targets, options)));
  const partition::CompiledPartition& result = *compiled;
  for (size_t r = 0; r < result.placed.regions.size(); ++r) {
    const partition::Region& region = result.placed.regions[r];
    if (region.target->is_cpu) continue;
    ++counts->regions;
    const ir::Function& function = *result.placed.module.find(region.function);
    counts->placed += function.nodes().size();
    Random random(seed);
    std::vector<ir::ConstantRef> inputs;
    for (const ir::ValueId param : function.params()) {
      const ir::TensorType& type = function.type(param);
      inputs.push_back(ir::make_constant(
          type.dtype, type.shape, random.integers<uint8_t>(static_cast<size_t>(type.size_bytes()), 0, 255)));
    }
    ASSERT_TRUE(result.code[r].has_value());
    const Simulated simulated = simulate_region(config, function, *result.code[r], inputs);
    ASSERT_FALSE(simulated.outcome.fault.is_set()) << simulated.outcome.fault.text;
    counts->in_rows += simulated.outcome.kernels > 2 * function.nodes().size() ? 1 : 0;
    const auto expected = vta::compiler::run_on_cpu(result.placed.module, function, inputs);
    ASSERT_EQ(simulated.outputs.size(), expected.size());
    for (size_t o = 0; o < expected.size(); ++o) {
      const auto bytes = expected[o]->bytes();
      ASSERT_TRUE(std::ranges::equal(simulated.outputs[o], bytes)) << "output " << o;
    }
    count_parts(config, result.code[r]->blob, counts);
    // What the packer estimated is what the simulator counts.
    EXPECT_EQ(simulated.outcome.cycles, result.code[r]->cycles);
  }
}

TEST(EthosuRandomLayers, GiveTheReferencesBytesWithoutAHazard) {
  Counts counts;
  constexpr const char* kMemories[] = {"", ",sram=1", ",sram=2K", ",sram=32K"};
  for (size_t seed = 1; seed <= num_layers(); ++seed) {
    const std::string text = Network(seed).text();
    for (size_t i = 0; i < 3; ++i) {
      const Config& config = kConfigs[(seed + 2 * i + i / 2) % kNumConfigs];
      run(text, config.name + std::string(kMemories[(i + seed) % 4]), seed, &counts);
      if (HasFatalFailure()) return;
    }
  }
  EXPECT_GT(counts.bricks, 0u);
  std::cout << counts.bricks << " kernels that write bricks; " << counts.regions << " regions with "
            << counts.placed << " operators on the device, " << counts.in_rows
            << " of them a few rows at a time, " << counts.copies << " copies of weights\n";
  EXPECT_GT(counts.placed, 2 * num_layers());
  EXPECT_GT(counts.in_rows, num_layers() / 6);
  EXPECT_GT(counts.copies, 0u);
}

TEST(EthosuInt16Layers, GiveTheReferencesBytesWithoutAHazard) {
  Counts counts;
  constexpr const char* kMemories[] = {"", ",sram=1", ",sram=8K", ",sram=64K"};
  for (size_t seed = 1; seed <= num_layers(); ++seed) {
    const std::string text = Network::of_int16(seed).text();
    for (size_t i = 0; i < 3; ++i) {
      const Config& config = kConfigs[(seed + 2 * i + i / 2) % kNumConfigs];
      run(text, config.name + std::string(kMemories[(i + seed) % 4]), seed, &counts);
      if (HasFatalFailure()) return;
    }
  }
  std::cout << counts.regions << " regions with " << counts.placed << " operators on the device, "
            << counts.in_rows << " of them a few rows at a time, " << counts.copies << " copies of weights\n";
  EXPECT_GT(counts.placed, 3 * num_layers());
  EXPECT_GT(counts.in_rows, 0u);
  EXPECT_GT(counts.copies, 0u);
}

// Layers whose weights are worth a copy, with little room for it and with much.
TEST(EthosuWeightCopies, GiveTheReferencesBytesWithoutAHazard) {
  Counts counts;
  constexpr const char* kMemories[] = {"", ",sram=1", ",sram=8K", ",sram=16K", ",sram=32K", ",sram=128K"};
  const size_t networks = (num_layers() + 2) / 3;
  for (size_t seed = 1; seed <= networks; ++seed) {
    Random random(seed);
    std::vector<Network::Convolution> layers;
    for (int64_t i = random.integers<int64_t>(1, 2, 7)[0]; i > 0; --i) {
      const auto picks = random.integers<int64_t>(2, 0, 7);
      const int64_t window = picks[0] < 4 ? 1 : 3;
      layers.push_back({window, picks[0] == 7 ? 2 : 1, window / 2, 8 * (1 + picks[1])});
    }
    const std::string text = Network(seed, layers).text();
    for (size_t i = 0; i < 3; ++i) {
      const Config& config = kConfigs[(seed + 2 * i + i / 2) % kNumConfigs];
      run(text, config.name + std::string(kMemories[(2 * i + seed) % 6]), seed, &counts);
      if (HasFatalFailure()) return;
    }
  }
  std::cout << counts.copies << " copies of weights of " << counts.placed << " layers, " << counts.slices
            << " of them further slices; " << counts.in_rows << " regions a few rows at a time, "
            << counts.bricks << " kernels that write bricks\n";
  EXPECT_GT(counts.copies, networks);
  EXPECT_GT(counts.slices, networks / 4);
  EXPECT_GT(counts.bricks, networks / 4);
}

// The scales' product over the output's is 0.5 in float32, in which the reference computes it, and less in
// float64: every odd product would be rounded otherwise.
TEST(EthosuProducts, ScalesAreMultipliedInFloat32) {
  Counts counts;
  run("def @main(%x: Tensor[(1, 16, 16, 64), int8], %y: Tensor[(1, 16, 16, 64), int8]) {\n"
      "  %0 = qnn.mul(%x, %y, 0.001f, 0, 0.009f, 0, 0.000018f, 0, contract=\"tfl2\");\n  %0\n}\n",
      "ethos-u55-128", 1, &counts);
  EXPECT_EQ(counts.placed, 1u);
}

// Rows of the second convolution, or of the fourth, read nothing but padding.
TEST(EthosuLayersInRows, RowsThatLieInPaddingGiveTheReferencesBytes) {
  Counts counts;
  for (const int64_t pad : {1, 2}) {
    for (const int64_t stride : {1, 2, 3}) {
      const Network network(
          1, {{3, 1, 1}, {1, stride, pad}, {3, 1, 1}, {1, 1, pad}, {3, 1, 1}, {3, 1, 1}, {3, 1, 1}});
      for (const char* const memory : {",sram=1", ",sram=2K"})
        run(network.text(), std::string("ethos-u55-128") + memory, 1, &counts);
    }
  }
  EXPECT_EQ(counts.placed, 12u * 7);
  EXPECT_GE(counts.in_rows, 4u);
  EXPECT_GT(counts.labels, counts.placed);
  EXPECT_EQ(counts.repeated_labels, 0u);
}

}  // namespace
}  // namespace qplan::ethosu::testing
