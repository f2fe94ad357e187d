#include "src/vta/compiler/constraints.h"

#include <algorithm>
#include <string>
#include <utility>

#include "kernels/numeric/quantize_multiplier.h"
#include "src/base/checked.h"
#include "src/packer/error.h"
#include "src/packer/ir/cat.h"
#include "src/packer/op/infer.h"
#include "src/packer/op/op_def.h"
#include "src/packer/op/shape.h"
#include "src/vta/compiler/alu_units.h"
#include "src/vta/compiler/layer.h"

namespace qplan::target::vta {
namespace {

constexpr const char* kNothingToChange = "nothing to change in the model";
constexpr const char* kQuantizeInt8 = "quantise the model to 8-bit integers";
constexpr const char* kOtherMemories = "a configuration with larger memories takes it";

bool is_8_bit(ir::DType dtype) { return dtype == ir::kInt8 || dtype == ir::kUint8; }

using Rows = std::vector<Constraint>;

void append(Rows* rows, Rows more) {
  rows->insert(rows->end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

// Saturating product of extents.
template <typename... Factors>
int64_t product(Factors... factors) {
  int64_t result = 1;
  const auto times = [&](int64_t factor) {
    if (!checked_mul(result, factor, &result)) result = INT64_MAX;
  };
  (times(factors), ...);
  return result;
}

bool last_axis(const ir::Function& function, const ir::Node& node) {
  const size_t rank = function.type(node.results[0]).shape.size();
  return op::normalized_axis(op::attr_int(node, "axis"), rank) == static_cast<int64_t>(rank) - 1;
}

// ---- constraints that several rows have; prefix: "vta.conv2d."

Constraint dtypes(const std::string& prefix) {
  return {prefix + "dtype", "input, weights and output are int8 or uint8", kQuantizeInt8,
          [](const Candidate& c) -> std::string {
            const ir::Node& product = *c.node("product");
            const ir::DType input = c.function().type(product.operands[0]).dtype;
            const ir::DType weight = c.function().type(product.operands[1]).dtype;
            const bool leaves = c.node("requantize") != nullptr;
            const ir::DType output = c.function().type(c.root().results[0]).dtype;
            if (is_8_bit(input) && is_8_bit(weight) && (!leaves || is_8_bit(output))) return "";
            return cat("input ", input, ", weights ", weight,
                       leaves ? cat(", output ", output) : std::string(), "; expected int8 or uint8");
          }};
}

Constraint layout(const std::string& prefix) {
  return {prefix + "layout", "activations are NHWC, weights OHWI, bias and scales along the channels",
          "the packer's passes bring models into this form; leave none of them out",
          [](const Candidate& c) -> std::string {
            if (!has_canonical_layout(c)) return "layouts other than NHWC and OHWI";
            const ir::Node* bias_add = c.node("bias_add");
            if (bias_add != nullptr && !last_axis(c.function(), *bias_add))
              return "the bias is not along the channels";
            const ir::Node* requantize = c.node("requantize");
            if (requantize == nullptr || last_axis(c.function(), *requantize)) return "";
            for (size_t i = 1; i < requantize->operands.size(); ++i) {
              if (c.function().type(requantize->operands[i]).num_elements() > 1)
                return "the scales of the requantisation are not along the channels";
            }
            return "";
          }};
}

Constraint batch(const std::string& prefix) {
  return {prefix + "batch", "one image", "pack the model with a batch of 1",
          [](const Candidate& c) -> std::string {
            const int64_t n = geometry(c).batch;
            return n == 1 ? "" : cat("a batch of ", n, ", limit 1");
          }};
}

// Rows of activations are reached by the 16-bit strides of LOAD and STORE.
Constraint row_stride(const std::string& prefix) {
  return {prefix + "row",
          cat("a padded row times its blocks of 16 channels is at most ", kMaxDmaStride,
              " elements, in the input and in the output"),
          kNothingToChange, [](const Candidate& c) -> std::string {
            const Geometry g = geometry(c);
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
            const op::Window2d w = geometry(c).window;
            if (std::max(w.stride_h, w.stride_w) <= limit) return "";
            return cat("strides ", w.stride_h, " and ", w.stride_w, ", limit ", limit);
          }};
}

// weight_bytes: in the device's layout.
Constraint buffers(const std::string& prefix, int64_t (*weight_bytes)(const Candidate&)) {
  return {prefix + "buffer",
          cat("input with its border, output and weights are at most ", kMaxBufferBytes, " bytes each"),
          kNothingToChange, [weight_bytes](const Candidate& c) -> std::string {
            const Geometry g = geometry(c);
            const int64_t in = product(g.batch, g.padded_h(), g.padded_w(), blocks(g.in_c), kInpBytes);
            const int64_t out = product(g.batch, g.out_h, g.out_w, blocks(g.out_c), kInpBytes);
            const int64_t weights = weight_bytes(c);
            if (std::max({in, out, weights}) <= kMaxBufferBytes) return "";
            return cat("input ", in, ", output ", out, ", weights ", weights,
                       " bytes in the device's layout, limit ", kMaxBufferBytes);
          }};
}

// The border is written once, with one value.
Constraint padding(const std::string& prefix) {
  return {prefix + "padding", "one value around the input, along height and width",
          "let the packer fold the nn.pad", [](const Candidate& c) -> std::string {
            const ir::Node* pad = c.node("pad");
            if (pad == nullptr) return "";
            if (op::attr_string(*pad, "pad_mode") != "constant") return "nn.pad does not pad with a constant";
            const auto& widths = op::attr_int_lists(*pad, "pad_width");
            for (const size_t axis : {size_t{0}, widths.size() - 1}) {
              if (std::ranges::any_of(widths[axis], [](int64_t width) { return width != 0; }))
                return cat("nn.pad pads axis ", axis, " too");
            }
            const op::Window2d w = geometry(c).window;
            const bool both = (w.pad_top | w.pad_left | w.pad_bottom | w.pad_right) != 0;
            return both ? "nn.pad and the layer itself pad" : "";
          }};
}

// ---- requantisation on the device

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

// The accumulator's bound, proved from the actual weights.
Constraint bound() {
  return {"vta.requantize.bound",
          cat("every accumulator, shifted left by its multiplier's exponent, is at most ", kTfl2Bound,
              " (2^29) for any input; proved from weights and bias"),
          "smaller weights or a bias within the range; nothing to change for most models",
          [](const Candidate& c) -> std::string {
            const auto ranges = accumulator_ranges(c);
            const auto shifts = left_shifts(c);
            if (!ranges || !shifts) return "";
            for (size_t o = 0; o < ranges->size(); ++o) {
              const int64_t magnitude = (*ranges)[o].magnitude();
              const int32_t shift = (*shifts)[o];
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
            const ir::ConstantRef& constant = c.function().value(c.node("requantize")->operands[2]).constant;
            if (constant == nullptr) return "the accumulator's zero point is not a constant";
            for (const int32_t value : constant->as<int32_t>()) {
              if (value != 0) return cat("the accumulator's zero point is ", value, ", expected 0");
            }
            return "";
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
           "a requantisation behind the bias", [](const Candidate& c) -> std::string {
             const ir::ValueId result = c.root().results[0];
             const std::span<const ir::Node> nodes = c.function().nodes();
             // Up to the last reader: in canonical order it stands next to the layer.
             auto left = static_cast<int64_t>(c.pre.num_uses(pattern::PreValue{result}));
             left -= std::ranges::count(c.function().outputs(), result);
             for (size_t n = c.nodes().back() + 1; left > 0 && n < nodes.size(); ++n) {
               const int64_t uses = std::ranges::count(nodes[n].operands, result);
               left -= uses;
               if (uses == 0) continue;
               const std::string& reader = nodes[n].op == nullptr ? nodes[n].callee : nodes[n].op->name;
               if (reader != "qnn.requantize") return cat("the accumulators are read by ", reader);
             }
             return "";
           }}};
}

// ---- tiles: the smallest one is a position of the output for one block of input and of output channels

Constraint weight_range(const std::string& prefix) {
  return {prefix + "weights",
          cat("weights less their zero point are from ", kMinWeight, " to ", kMaxWeight,
              "; beyond int8 (-128 to 127) as the sum of two int8 weights, at twice the cost"),
          "weights that are quantised symmetrically (zero point 0)", [](const Candidate& c) -> std::string {
            const auto range = vta::weight_range(c);
            if (!range || (range->min >= kMinWeight && range->max <= kMaxWeight)) return "";
            return cat("weights less their zero point reach from ", range->min, " to ", range->max,
                       ", limit ", kMinWeight, " to ", kMaxWeight);
          }};
}

Constraint gemm_kernel(const std::string& prefix, const Config& config) {
  const int64_t limit = int64_t{std::min(config.wgt_elements, config.uop_elements)};
  return {prefix + "kernel",
          cat("the taps of one block of channels fit the weight and the micro-op memory: at most ", limit,
              ", half of it where weights are sums of two"),
          kOtherMemories, [limit](const Candidate& c) -> std::string {
            const Geometry g = geometry(c);
            const int64_t planes = num_weight_planes(c);
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
            const Geometry g = geometry(c);
            const int64_t window = product(g.window_h(), g.window_w());
            if (window <= config.inp_elements && kWorkingSet <= config.acc_elements) return "";
            return cat("a window of ", g.window_h(), " x ", g.window_w(), " needs ", window, " of ",
                       config.inp_elements, " input elements and ", kWorkingSet, " of ", config.acc_elements,
                       " accumulators");
          }};
}

int64_t gemm_weight_bytes(const Candidate& c) {
  const Geometry g = geometry(c);
  const int64_t in_blocks = g.is_depthwise() ? 1 : blocks(g.in_c);
  return product(blocks(g.out_c), in_blocks, g.taps(), num_weight_planes(c), kWgtBytes);
}
int64_t no_weight_bytes(const Candidate&) { return 0; }

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
                    const Geometry g = geometry(c);
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
                    const Geometry g = geometry(c);
                    if (g.out_c == g.in_c) return "";
                    return cat(g.out_c, " output channels of ", g.in_c, ", limit ", g.in_c);
                  }});
  append(&rows, layer_requantization(config));
  return rows;
}

Rows add_constraints(const Config& config) {
  const std::string prefix = "vta.add.";
  Rows rows;
  rows.push_back({prefix + "dtype", "both inputs and the output are int8, or all are uint8", kQuantizeInt8,
                  [](const Candidate& c) -> std::string {
                    const ir::Node& sum = *c.node("sum");
                    const ir::DType lhs = c.function().type(sum.operands[0]).dtype;
                    const ir::DType rhs = c.function().type(sum.operands[1]).dtype;
                    const ir::DType out = c.function().type(sum.results[0]).dtype;
                    if (is_8_bit(lhs) && lhs == rhs && lhs == out) return "";
                    return cat(lhs, " and ", rhs, " to ", out, "; expected one of int8 or uint8 for all");
                  }});
  rows.push_back({prefix + "shape", "inputs of one shape", "an addition without broadcasting",
                  [](const Candidate& c) -> std::string {
                    const ir::Node& sum = *c.node("sum");
                    const ir::TensorType& lhs = c.function().type(sum.operands[0]);
                    const ir::TensorType& rhs = c.function().type(sum.operands[1]);
                    return lhs.shape == rhs.shape && !lhs.shape.empty() ? "" : cat(lhs, " and ", rhs);
                  }});
  rows.push_back({prefix + "constant", "both inputs are activations", kNothingToChange,
                  [](const Candidate& c) -> std::string {
                    const ir::Node& sum = *c.node("sum");
                    for (const size_t operand : {size_t{0}, size_t{1}}) {
                      if (c.function().value(sum.operands[operand]).constant != nullptr)
                        return cat("the ", operand == 0 ? "left" : "right", " input is a constant");
                    }
                    return "";
                  }});
  rows.push_back({prefix + "buffer", cat("each tensor is at most ", kMaxBufferBytes, " bytes"),
                  kNothingToChange, [](const Candidate& c) -> std::string {
                    const ir::TensorType& type = c.function().type(c.node("sum")->results[0]);
                    if (type.shape.empty()) return "";
                    const int64_t channels = type.shape.back();
                    const int64_t bytes =
                        product(type.num_elements() / channels, blocks(channels), kInpBytes);
                    return bytes <= kMaxBufferBytes
                               ? ""
                               : cat(bytes, " bytes in the device's layout, limit ", kMaxBufferBytes);
                  }});
  append(&rows, requantization(config, "sum"));
  // As the CPU's kernel takes it: the multipliers of tfl2.add are below 1.
  rows.push_back({prefix + "scales", "twice the larger input scale is below 2^20 times the output scale",
                  kNothingToChange, [](const Candidate& c) -> std::string {
                    const ir::Node& sum = *c.node("sum");
                    const auto scale = [&](size_t operand) {
                      const ir::ConstantRef& constant = c.function().value(sum.operands[operand]).constant;
                      return constant == nullptr || constant->as<float>().size() != 1
                                 ? 0.0
                                 : static_cast<double>(constant->as<float>()[0]);
                    };
                    const double lhs = scale(2), rhs = scale(4), out = scale(6);
                    if (lhs <= 0.0 || rhs <= 0.0 || out <= 0.0)
                      return "scales that are not one constant each";
                    const double real = 2.0 * std::max(lhs, rhs) / (static_cast<double>(1 << 20) * out);
                    return quantize_multiplier(real).shift <= 0
                               ? ""
                               : "the output's scale is too small for the inputs'";
                  }});
  return rows;
}

namespace {

// The window's cells beside `others` elements of ACC.
Constraint window_tile(const std::string& prefix, const Config& config, int64_t others) {
  return {
      prefix + "tile",
      cat("the window and the working set of one position fit the accumulators (", config.acc_elements, ")"),
      kOtherMemories, [others, limit = int64_t{config.acc_elements}](const Candidate& c) -> std::string {
        const Geometry g = geometry(c);
        const int64_t needed = product(g.window_h(), g.window_w());
        if (needed <= limit - others) return "";
        return cat("a window of ", g.window_h(), " x ", g.window_w(), " needs ", needed, " accumulators and ",
                   others, " for the working set, limit ", limit);
      }};
}

Constraint one_dtype(const std::string& prefix, const std::string& op) {
  return {prefix + "dtype", "int8 or uint8", kQuantizeInt8, [op](const Candidate& c) -> std::string {
            const ir::DType dtype = c.function().type(c.node(op)->results[0]).dtype;
            return is_8_bit(dtype) ? "" : cat(dtype, ", expected int8 or uint8");
          }};
}

// Multiplier, offset, sum.
constexpr int64_t kAffineWorkingSet = 3;
// Constants and blocks of the sequence for TFL2 with one multiplier.
constexpr int64_t kTfl2WorkingSet = 12;

}  // namespace

Rows avg_pool2d_constraints(const Config& config) {
  const std::string prefix = "vta.avg_pool2d.";
  Rows rows = {one_dtype(prefix, "pool")};
  rows.push_back({prefix + "layout", "NHWC",
                  "the packer's passes bring models into this form; leave none of them out",
                  [](const Candidate& c) -> std::string {
                    return has_canonical_layout(c) ? "" : "a layout other than NHWC";
                  }});
  append(&rows, {batch(prefix), stride(prefix, config), row_stride(prefix), buffers(prefix, no_weight_bytes),
                 window_tile(prefix, config, kAffineWorkingSet)});
  append(&rows, requantization(config, "pool"));
  rows.push_back({prefix + "scales", "input and output have one scale and zero point", kNothingToChange,
                  [](const Candidate& c) -> std::string {
                    const ir::Node& pool = *c.node("pool");
                    const auto constant = [&](size_t operand) -> const ir::ConstantRef& {
                      return c.function().value(pool.operands[operand]).constant;
                    };
                    for (size_t i = 1; i <= 4; ++i) {
                      if (constant(i) == nullptr || constant(i)->type().num_elements() != 1)
                        return "scales or zero points that are not one constant each";
                    }
                    const bool is_same = constant(1)->as<float>()[0] == constant(3)->as<float>()[0] &&
                                         constant(2)->as<int32_t>()[0] == constant(4)->as<int32_t>()[0];
                    return is_same ? "" : "input and output have different scales or zero points";
                  }});
  rows.push_back({prefix + "count", "averages of the cells inside the input", "count_include_pad=False",
                  [](const Candidate& c) -> std::string {
                    return op::attr_bool(*c.node("pool"), "count_include_pad") ? "padding is counted too"
                                                                               : "";
                  }});
  rows.push_back({prefix + "exact",
                  "a multiplication and a shift divide every sum exactly; tried for all of them",
                  "a smaller window", [](const Candidate& c) -> std::string {
                    const Geometry g = geometry(c);
                    if (average_pool(c)) return "";
                    return cat("no multiplier gives the average of every sum of up to ", g.window.kernel_h,
                               " x ", g.window.kernel_w, " cells");
                  }});
  return rows;
}

Rows mean_constraints(const Config& config) {
  const std::string prefix = "vta.mean.";
  Rows rows = {one_dtype(prefix, "mean")};
  rows.push_back({prefix + "axes", "over height and width of an image", "a mean over the axes 1 and 2 (NHWC)",
                  [](const Candidate& c) -> std::string {
                    const ir::Node& mean = *c.node("mean");
                    const size_t rank = c.function().type(mean.operands[0]).shape.size();
                    const ir::Ints& axes = op::attr_ints(mean, "axis");
                    if (rank == 4 && op::normalized_axes(axes, rank) == ir::Ints{1, 2}) return "";
                    return cat("over the axes ", op::to_text(axes), " of ", rank);
                  }});
  append(&rows, {batch(prefix), row_stride(prefix), buffers(prefix, no_weight_bytes),
                 window_tile(prefix, config, kTfl2WorkingSet)});
  append(&rows, requantization(config, "mean"));
  rows.push_back({prefix + "bound",
                  cat("sums, shifted left by the multiplier's exponent, are at most ", kTfl2Bound, " (2^29)"),
                  kNothingToChange, [](const Candidate& c) -> std::string {
                    if (c.function().type(c.node("mean")->operands[0]).shape.size() != 4) return "";
                    try {
                      const auto mean = mean_operator(c);
                      if (!mean) return "scales or zero points that are not one constant each";
                      const int64_t most = 255 * mean->h * mean->w;
                      const int32_t left = std::max(mean->multiplier.shift, 0);
                      if (left < 31 && most <= kTfl2Bound >> left) return "";
                      return cat("the sum may reach ", most, ", shifted left by ", left, "; limit ",
                                 kTfl2Bound);
                    } catch (const PackError& error) {
                      return error.what();
                    }
                  }});
  return rows;
}

Rows max_pool2d_constraints(const Config& config) {
  const std::string prefix = "vta.max_pool2d.";
  Rows rows = {one_dtype(prefix, "pool")};
  rows.push_back({prefix + "layout", "NHWC",
                  "the packer's passes bring models into this form; leave none of them out",
                  [](const Candidate& c) -> std::string {
                    return has_canonical_layout(c) ? "" : "a layout other than NHWC";
                  }});
  append(&rows,
         {batch(prefix), stride(prefix, config), row_stride(prefix), buffers(prefix, no_weight_bytes)});
  rows.push_back(window_tile(prefix, config, 1));
  return rows;
}

Rows clip_constraints() {
  return {{"vta.clip.dtype", "int8 or uint8", kQuantizeInt8, [](const Candidate& c) -> std::string {
             const ir::DType dtype = c.function().type(c.root().results[0]).dtype;
             return is_8_bit(dtype) ? "" : cat(dtype, ", expected int8 or uint8");
           }}};
}

}  // namespace qplan::target::vta
