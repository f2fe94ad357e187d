// Operators without weights: additions, pools, means, clamps, reshapes.
#include <algorithm>
#include <string>

#include "src/packer/error.h"
#include "src/packer/ir/cat.h"
#include "src/packer/layer/quantized_layer.h"
#include "src/packer/op/infer.h"
#include "src/packer/op/op_def.h"
#include "src/vta/compiler/layers/layers.h"
#include "src/vta/compiler/target.h"

namespace qplan::vta::compiler {
namespace {

using layer::is_8_bit;

int64_t no_weight_bytes(const Candidate&) { return 0; }

// The result of the node captured as `op` has 8 bits; "" means the last node.
Constraint one_dtype(const std::string& prefix, const std::string& op = "") {
  return {prefix + "dtype", "int8 or uint8", kQuantizeTo8Bits, [op](const Candidate& c) -> std::string {
            const ir::Node& node = op.empty() ? c.root() : *c.node(op);
            const ir::DType dtype = c.function().type(node.results[0]).dtype;
            return is_8_bit(dtype) ? "" : cat(dtype, ", expected int8 or uint8");
          }};
}

Constraint pool_layout(const std::string& prefix) {
  return {prefix + "layout", "NHWC", kRunThePasses, [](const Candidate& c) -> std::string {
            return layer::has_canonical_layout(*c.node("pool")) ? "" : "a layout other than NHWC";
          }};
}

// The window's cells beside `others` elements of ACC.
Constraint window_tile(const std::string& prefix, const Config& config, int64_t others) {
  return {
      prefix + "tile",
      cat("the window and the working set of one position fit the accumulators (", config.acc_elements, ")"),
      kOtherMemories, [others, limit = int64_t{config.acc_elements}](const Candidate& c) -> std::string {
        const Geometry g = geometry_of(c);
        const int64_t needed = product(g.window_h(), g.window_w());
        if (needed <= limit - others) return "";
        return cat("a window of ", g.window_h(), " x ", g.window_w(), " needs ", needed, " accumulators and ",
                   others, " for the working set, limit ", limit);
      }};
}

// Multiplier, offset, sum.
constexpr int64_t kAffineWorkingSet = 3;
// Constants and blocks of the sequence for TFL2 with one multiplier.
constexpr int64_t kTfl2WorkingSet = 12;

}  // namespace

Rows add_constraints(const Config& config) {
  const std::string prefix = "vta.add.";
  Rows rows;
  rows.push_back({prefix + "dtype", "both inputs and the output are int8, or all are uint8", kQuantizeTo8Bits,
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
  // Checked again when the layouts are known: a border for the sum's readers makes rows longer.
  rows.push_back(
      {prefix + "row", cat("a row times its blocks of 16 channels is at most ", kMaxDmaStride, " elements"),
       kNothingToChange, [](const Candidate& c) -> std::string {
         const UnitActivation sum = activation(c, c.node("sum")->results[0]);
         const int64_t row = product(sum.w, blocks(sum.channels));
         return row <= kMaxDmaStride ? "" : cat("a row of ", row, " elements, limit ", kMaxDmaStride);
       }});
  append(&rows, requantization(config, "sum"));
  // As the CPU's kernel takes it: the multipliers of tfl2.add are below 1.
  rows.push_back({prefix + "scales", "twice the larger input scale is below 2^20 times the output scale",
                  kNothingToChange, [](const Candidate& c) -> std::string {
                    const ir::Node& sum = *c.node("sum");
                    const auto scale = [&](size_t operand) {
                      const ir::ConstantRef& constant = c.function().value(sum.operands[operand]).constant;
                      return constant == nullptr || constant->as<float>().size() != 1
                                 ? 0.0f
                                 : constant->as<float>()[0];
                    };
                    const float lhs = scale(2), rhs = scale(4), out = scale(6);
                    if (lhs <= 0.0f || rhs <= 0.0f || out <= 0.0f)
                      return "scales that are not one constant each";
                    return layer::add_multipliers(lhs, rhs, out).output.shift <= 0
                               ? ""
                               : "the output's scale is too small for the inputs'";
                  }});
  return rows;
}

Rows avg_pool2d_constraints(const Config& config) {
  const std::string prefix = "vta.avg_pool2d.";
  Rows rows = {one_dtype(prefix, "pool")};
  rows.push_back(pool_layout(prefix));
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
                    const Geometry g = geometry_of(c);
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
  rows.push_back(pool_layout(prefix));
  append(&rows,
         {batch(prefix), stride(prefix, config), row_stride(prefix), buffers(prefix, no_weight_bytes)});
  rows.push_back(window_tile(prefix, config, 1));
  return rows;
}

Rows clip_constraints(const Config& /*config*/) { return {one_dtype("vta.clip.")}; }

Rows reshape_constraints(const Config& /*config*/) {
  return {one_dtype("vta.reshape."),
          {"vta.reshape.channels",
           cat("as many channels (the last axis) before as after, or multiples of ", kBlock,
               " both times: then no byte moves on the device"),
           kNothingToChange, [](const Candidate& c) -> std::string {
             const UnitActivation from = activation(c, c.root().operands[0]);
             const UnitActivation to = activation(c, c.root().results[0]);
             if (lie_alike(from, to)) return "";
             return cat("from ", from.channels, " to ", to.channels,
                        " channels, which are stored in blocks of ", kBlock, " on the device");
           }}};
}

}  // namespace qplan::vta::compiler
