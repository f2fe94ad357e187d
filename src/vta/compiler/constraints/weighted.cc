// The conditions of layers of weights, and those that they share with other operators.
#include <algorithm>
#include <string>

#include "src/packer/ir/cat.h"
#include "src/packer/layer/quantized_layer.h"
#include "src/packer/op/op_def.h"
#include "src/vta/compiler/target.h"

namespace qplan::vta::compiler {

// ---- what rows of several composites share

Geometry geometry_of(const Candidate& c) {
  if (const ir::Node* mean = c.node("mean")) return layer::mean_geometry(c.function(), *mean);
  if (const ir::Node* pool = c.node("pool")) return layer::pool_geometry(c.function(), *pool);
  return c.layer().geometry;
}

Constraint batch(const std::string& prefix) {
  return {prefix + "batch", "one image", "pack the model with a batch of 1",
          [](const Candidate& c) -> std::string {
            const int64_t n = geometry_of(c).batch;
            return n == 1 ? "" : cat("a batch of ", n, ", limit 1");
          }};
}

Constraint row_stride(const std::string& prefix) {
  return {prefix + "row",
          cat("a padded row times its blocks of 16 channels is at most ", kMaxDmaStride,
              " elements, in the input and in the output"),
          kNothingToChange, [](const Candidate& c) -> std::string {
            const Geometry g = geometry_of(c);
            const int64_t in = product(g.padded_w(), blocks(g.in_c)), out = product(g.out_w, blocks(g.out_c));
            if (std::max(in, out) <= kMaxDmaStride) return "";
            return cat("a row of ", in, " elements in the input and ", out, " in the output, limit ",
                       kMaxDmaStride);
          }};
}

Constraint stride(const std::string& prefix, const Config& config) {
  const int64_t limit = max_factor(config);
  return {prefix + "stride", cat("strides of at most ", limit), kNothingToChange,
          [limit](const Candidate& c) -> std::string {
            const op::Window2d w = geometry_of(c).window;
            if (std::max(w.stride_h, w.stride_w) <= limit) return "";
            return cat("strides ", w.stride_h, " and ", w.stride_w, ", limit ", limit);
          }};
}

Constraint buffers(const std::string& prefix, int64_t (*weight_bytes)(const Candidate&)) {
  return {prefix + "buffer",
          cat("input with its border, output and weights are at most ", kMaxBufferBytes, " bytes each"),
          kNothingToChange, [weight_bytes](const Candidate& c) -> std::string {
            const Geometry g = geometry_of(c);
            const int64_t in = product(g.batch, g.padded_h(), g.padded_w(), blocks(g.in_c), kInpBytes);
            const int64_t out = product(g.batch, g.out_h, g.out_w, blocks(g.out_c), kInpBytes);
            const int64_t weights = weight_bytes(c);
            if (std::max({in, out, weights}) <= kMaxBufferBytes) return "";
            return cat("input ", in, ", output ", out, ", weights ", weights,
                       " bytes in the device's layout, limit ", kMaxBufferBytes);
          }};
}

Rows requantization(const Config& config, const std::string& op) {
  Rows rows;
  rows.push_back({"vta.requantize.contract", "contract tfl2",
                  "pack with --contract=tfl2 if these results are acceptable",
                  [op](const Candidate& c) -> std::string {
                    const ir::Node* node = c.node(op);
                    const std::string& contract = op::attr_string(*node, "contract");
                    if (contract == "tfl2") return "";
                    return cat("contract '", contract, "' has no exact sequence on the ALU, expected 'tfl2'");
                  }});
  rows.push_back({"vta.requantize.mul", "the design has the ALU's MUL and left shift",
                  "use a design with MUL, or a model whose scales are powers of two",
                  [has_mul = config.has_multiply](const Candidate&) -> std::string {
                    return has_mul ? "" : "this design of VTA has no MUL (mul=off), which tfl2 needs";
                  }});
  return rows;
}

// ---- layers of weights: what c.layer() says of them (src/packer/layer/quantized_layer.h).

namespace {

using layer::is_8_bit;
using layer::QuantizedLayer;

Constraint dtypes(const std::string& prefix) {
  return {prefix + "dtype", "input, weights and output are int8 or uint8", kQuantizeTo8Bits,
          [](const Candidate& c) -> std::string {
            const QuantizedLayer& layer = c.layer();
            const bool leaves = layer.nodes.requantize != nullptr;
            if (is_8_bit(layer.input_dtype) && is_8_bit(layer.weight_dtype) &&
                (!leaves || is_8_bit(layer.output_dtype)))
              return "";
            return cat("input ", layer.input_dtype, ", weights ", layer.weight_dtype,
                       leaves ? cat(", output ", layer.output_dtype) : std::string(),
                       "; expected int8 or uint8");
          }};
}

Constraint layout(const std::string& prefix) {
  return {prefix + "layout", "activations are NHWC, weights OHWI, bias and scales along the channels",
          kRunThePasses, [](const Candidate& c) -> std::string {
            const QuantizedLayer& layer = c.layer();
            if (!layer.is_canonical) return "layouts other than NHWC and OHWI";
            if (!layer.has_bias_on_last_axis) return "the bias is not along the channels";
            return layer.requantizes_channels ? ""
                                              : "the scales of the requantisation are not along the channels";
          }};
}

// The border is written once, with one value.
Constraint padding(const std::string& prefix) {
  return {prefix + "padding", "one value around the input, along height and width",
          "let the packer fold the nn.pad", [](const Candidate& c) -> std::string {
            const ir::Node* pad = c.layer().nodes.pad;
            if (pad == nullptr) return "";
            if (op::attr_string(*pad, "pad_mode") != "constant") return "nn.pad does not pad with a constant";
            const auto& widths = op::attr_int_lists(*pad, "pad_width");
            for (const size_t axis : {size_t{0}, widths.size() - 1}) {
              if (std::ranges::any_of(widths[axis], [](int64_t width) { return width != 0; }))
                return cat("nn.pad pads axis ", axis, " too");
            }
            const op::Window2d w = c.layer().geometry.window;
            const bool both = (w.pad_top | w.pad_left | w.pad_bottom | w.pad_right) != 0;
            return both ? "nn.pad and the layer itself pad" : "";
          }};
}

// The accumulator's bound, proved from the actual weights.
Constraint bound() {
  return {"vta.requantize.bound",
          cat("every accumulator, shifted left by its multiplier's exponent, is at most ", kTfl2Bound,
              " (2^29) for any input; proved from weights and bias"),
          "smaller weights or a bias within the range; nothing to change for most models",
          [](const Candidate& c) -> std::string {
            const auto ranges = c.layer().accumulator_ranges();
            if (!ranges || !c.layer().scales) return "";
            const std::vector<QuantizedMultiplier> multipliers = c.layer().multipliers();
            for (size_t o = 0; o < ranges->size(); ++o) {
              const int64_t magnitude = (*ranges)[o].magnitude();
              const int32_t shift = std::max(multipliers[o].shift, 0);
              if (shift < 31 && magnitude <= (kTfl2Bound >> shift)) continue;
              return cat("the accumulator of channel ", o, " may reach ", magnitude, ", shifted left by ",
                         shift, "; limit ", kTfl2Bound);
            }
            return "";
          }};
}

Constraint accumulator_zero_point() {
  return {"vta.requantize.zero_point", "the accumulator's zero point is 0", kNothingToChange,
          [](const Candidate& c) -> std::string {
            const layer::Part<int32_t>& zero_point = c.layer().accumulator_zero_point;
            if (!zero_point) return zero_point.why();
            return *zero_point == 0 ? ""
                                    : cat("the accumulator's zero point is ", *zero_point, ", expected 0");
          }};
}

Rows layer_requantization(const Config& config) {
  Rows rows = requantization(config, "requantize");
  rows.push_back(accumulator_zero_point());
  rows.push_back(bound());
  return rows;
}

// What stays on the CPU must have a kernel there: nothing but requantize reads int32, with one scale or one
// per channel. They may also be a result of the function.
Rows requantization_on_cpu() {
  return {{"vta.acc32.readers",
           "the accumulators are read by qnn.requantize, which the CPU does, and by nothing else",
           "a requantisation after the bias", [](const Candidate& c) -> std::string {
             const std::string reader = c.reader_besides_requantize();
             return reader.empty() ? "" : cat("the accumulators are read by ", reader);
           }}};
}

// ---- tiles: the smallest one is a position of the output for one block of input and of output channels

// 1, or 2 where weights less their zero point are beyond int8: w = clamp(w, -128, 127) + rest.
int64_t num_weight_planes(const QuantizedLayer& layer) {
  if (!layer.weights) return 1;
  const layer::LayerWeights::Range& range = layer.weights->range();
  return range.min < -128 || range.max > 127 ? 2 : 1;
}

Constraint weight_range(const std::string& prefix) {
  return {prefix + "weights",
          cat("weights less their zero point are from ", kMinWeight, " to ", kMaxWeight,
              "; beyond int8 (-128 to 127) as the sum of two int8 weights, at twice the cost"),
          "weights that are quantised symmetrically (zero point 0)", [](const Candidate& c) -> std::string {
            const layer::Part<layer::LayerWeights>& weights = c.layer().weights;
            if (!weights) return "";
            const layer::LayerWeights::Range& range = weights->range();
            if (range.min >= kMinWeight && range.max <= kMaxWeight) return "";
            return cat("weights less their zero point reach from ", range.min, " to ", range.max, ", limit ",
                       kMinWeight, " to ", kMaxWeight);
          }};
}

Constraint gemm_kernel(const std::string& prefix, const Config& config) {
  const int64_t limit = int64_t{std::min(config.wgt_elements, config.uop_elements)};
  return {prefix + "kernel",
          cat("the taps of one block of channels fit the weight and the micro-op memory: at most ", limit,
              ", half of it where weights are sums of two"),
          kOtherMemories, [limit](const Candidate& c) -> std::string {
            const Geometry g = c.layer().geometry;
            const int64_t planes = num_weight_planes(c.layer());
            if (product(g.taps(), planes) <= limit) return "";
            return cat("a kernel of ", g.window.kernel_h, " x ", g.window.kernel_w, " needs ", g.taps(),
                       " times ", planes, " weight elements, limit ", limit);
          }};
}

Constraint gemm_tile(const std::string& prefix, const Config& config) {
  return {prefix + "tile",
          cat("the window of one position fits the input memory (", config.inp_elements,
              " elements), its working set the accumulators (", config.acc_elements, ")"),
          kOtherMemories, [config](const Candidate& c) -> std::string {
            constexpr int64_t kWorkingSet = 1 + 3 + 7;  // accumulator, temporaries, constants per channel
            const Geometry g = c.layer().geometry;
            const int64_t window = product(g.window_h(), g.window_w());
            if (window <= config.inp_elements && kWorkingSet <= config.acc_elements) return "";
            return cat("a window of ", g.window_h(), " x ", g.window_w(), " needs ", window, " of ",
                       config.inp_elements, " input elements and ", kWorkingSet, " of ", config.acc_elements,
                       " accumulators");
          }};
}

int64_t gemm_weight_bytes(const Candidate& c) {
  const Geometry& g = c.layer().geometry;
  const int64_t in_blocks = g.is_depthwise() ? 1 : blocks(g.in_c);
  return product(blocks(g.out_c), in_blocks, g.taps(), num_weight_planes(c.layer()), kWgtBytes);
}

// ---- lists

Rows gemm_constraints(const std::string& prefix, const Config& config) {
  return {dtypes(prefix),       layout(prefix),
          weight_range(prefix), gemm_tile(prefix, config),
          row_stride(prefix),   buffers(prefix, gemm_weight_bytes)};
}

Rows conv_constraints(const std::string& prefix, const Config& config) {
  Rows rows = gemm_constraints(prefix, config);
  append(&rows, {batch(prefix), stride(prefix, config), padding(prefix), gemm_kernel(prefix, config)});
  rows.push_back({prefix + "groups", "one group, or as many as channels (depthwise)",
                  "a convolution without groups", [](const Candidate& c) -> std::string {
                    const Geometry g = c.layer().geometry;
                    return g.groups == 1 ? "" : cat(g.groups, " groups of ", g.in_c, " channels, limit 1");
                  }});
  return rows;
}

}  // namespace

Rows conv2d_constraints(const Config& config) {
  Rows rows = conv_constraints("vta.conv2d.", config);
  append(&rows, layer_requantization(config));
  return rows;
}

Rows dense_constraints(const Config& config) {
  Rows rows = gemm_constraints("vta.dense.", config);
  append(&rows, layer_requantization(config));
  return rows;
}

Rows conv2d_acc32_constraints(const Config& config) {
  Rows rows = conv_constraints("vta.conv2d.", config);
  append(&rows, requantization_on_cpu());
  return rows;
}

Rows dense_acc32_constraints(const Config& config) {
  Rows rows = gemm_constraints("vta.dense.", config);
  append(&rows, requantization_on_cpu());
  return rows;
}

// As GEMM with diagonal weights: the limits are those of INP and WGT.
Rows depthwise_constraints(const Config& config) {
  const std::string prefix = "vta.depthwise.";
  Rows rows = gemm_constraints(prefix, config);
  append(&rows, {batch(prefix), stride(prefix, config), padding(prefix), gemm_kernel(prefix, config)});
  rows.push_back({prefix + "multiplier", "as many output channels as input channels",
                  "a depthwise convolution with channel multiplier 1", [](const Candidate& c) -> std::string {
                    const Geometry g = c.layer().geometry;
                    if (g.out_c == g.in_c) return "";
                    return cat(g.out_c, " output channels of ", g.in_c, ", limit ", g.in_c);
                  }});
  append(&rows, layer_requantization(config));
  return rows;
}

}  // namespace qplan::vta::compiler
