// Operators without weights.
#include <algorithm>

#include "src/ethosu/compiler/target.h"
#include "src/packer/error.h"
#include "src/packer/ir/cat.h"
#include "src/packer/op/infer.h"
#include "src/packer/op/op_def.h"
#include "src/packer/op/requantize_bytes.h"

namespace qplan::ethosu::compiler {
namespace {

using layer::is_8_bit;

// All activations of the node have one 8-bit dtype. operands: how many of them are activations, 0: all.
Constraint one_dtype(const std::string& prefix, const char* node, size_t operands) {
  return {prefix + "dtype", "inputs and outputs are all int8, or all uint8", kQuantizeTo8Bits,
          [=, name = std::string(node)](const Candidate& c) -> std::string {
            const ir::Node& found = name.empty() ? c.root() : *c.node(name);
            const ir::DType dtype = c.function().type(found.results[0]).dtype;
            const size_t count = operands == 0 ? found.operands.size() : operands;
            for (size_t i = 0; i < count; ++i) {
              const ir::DType other = c.function().type(found.operands[i]).dtype;
              if (other != dtype) return cat(other, " to ", dtype);
            }
            return is_8_bit(dtype) ? "" : cat(dtype, ", expected int8 or uint8");
          }};
}

// The node's activations are images of at most 65536 in each extent.
Constraint images(const std::string& prefix, const char* node, size_t operands) {
  return {prefix + "shape",
          cat("at most three axes beside those of extent 1 in front, each of at most ", kMaxExtent),
          kNothingToChange, [=, name = std::string(node)](const Candidate& c) -> std::string {
            const ir::Node& found = name.empty() ? c.root() : *c.node(name);
            std::vector<ir::ValueId> values(found.results.begin(), found.results.end());
            const size_t count = operands == 0 ? found.operands.size() : operands;
            for (size_t i = 0; i < count; ++i) values.push_back(found.operands[i]);
            for (const ir::ValueId value : values) {
              const auto image = image_of(c.function().type(value));
              if (!image || std::max({image->h, image->w, image->d}) > kMaxExtent)
                return cat(c.function().type(value));
            }
            return "";
          }};
}

Constraint activations(const std::string& prefix, const char* node, size_t operands) {
  return {prefix + "constant", "its inputs are activations", kNothingToChange,
          [=, name = std::string(node)](const Candidate& c) -> std::string {
            const ir::Node& found = name.empty() ? c.root() : *c.node(name);
            const size_t count = operands == 0 ? found.operands.size() : operands;
            for (size_t i = 0; i < count; ++i) {
              if (c.function().value(found.operands[i]).constant != nullptr)
                return cat("input ", i, " is a constant");
            }
            return "";
          }};
}

// Each input has the output's shape, or one of them has extents 1 where it is repeated.
Constraint broadcast(const std::string& prefix, const char* node) {
  return {prefix + "broadcast", "one input has the output's shape; the other may have extents of 1",
          kNothingToChange, [name = std::string(node)](const Candidate& c) -> std::string {
            const ir::Node& found = name.empty() ? c.root() : *c.node(name);
            const auto out = image_of(c.function().type(found.results[0]));
            size_t whole = 0;
            for (const size_t operand : {size_t{0}, size_t{1}}) {
              const auto in = image_of(c.function().type(found.operands[operand]));
              if (in && out && in->h == out->h && in->w == out->w && in->d == out->d) ++whole;
            }
            if (whole > 0) return "";
            return cat(c.function().type(found.operands[0]), " and ", c.function().type(found.operands[1]));
          }};
}

Constraint pool_window(const std::string& prefix, int64_t most_taps) {
  return {prefix + "window",
          cat("windows of at most 256 rows and ", most_taps, " cells, strides of at most 3, one image"),
          kNothingToChange, [most_taps](const Candidate& c) -> std::string {
            const layer::Geometry g = layer::pool_geometry(c.function(), *c.node("pool"));
            const op::Window2d& w = g.window;
            const bool strides = (g.out_h == 1 || w.stride_h <= 3) && (g.out_w == 1 || w.stride_w <= 3);
            const bool dilates = w.dilation_h != 1 || w.dilation_w != 1;
            if (g.batch == 1 && w.kernel_h <= 256 && product(w.kernel_h, w.kernel_w) <= most_taps &&
                strides && !dilates)
              return "";
            return cat("a window of ", w.kernel_h, " x ", w.kernel_w, ", strides ", w.stride_h, " and ",
                       w.stride_w, ", a batch of ", g.batch);
          }};
}

Constraint pool_layout(const std::string& prefix) {
  return {prefix + "layout", "NHWC", kRunThePasses, [](const Candidate& c) -> std::string {
            return layer::has_canonical_layout(*c.node("pool")) ? "" : "a layout other than NHWC";
          }};
}

float scale_at(const Candidate& c, const ir::Node& node, size_t operand) {
  return c.function().value(node.operands[operand]).constant->as<float>()[0];
}

}  // namespace

Rows activation_rows(const std::string& prefix, const char* node, size_t operands) {
  return {one_dtype(prefix, node, operands), images(prefix, node, operands),
          activations(prefix, node, operands)};
}

bool are_scalars(const Candidate& c, const ir::Node& node, size_t first, size_t last) {
  for (size_t i = first; i < last; ++i) {
    const ir::ConstantRef& constant = c.function().value(node.operands[i]).constant;
    if (constant == nullptr || constant->type().num_elements() != 1) return false;
  }
  return true;
}

Rows quantization_rows(const std::string& prefix, const char* node, size_t first, size_t last) {
  const std::string name = node;
  return {{prefix + "contract", "contract tfl2", "pack with --contract=tfl2 if these results are acceptable",
           [name](const Candidate& c) -> std::string {
             const std::string& contract = op::attr_string(*c.node(name), "contract");
             return contract == "tfl2" ? "" : cat("contract '", contract, "', expected 'tfl2'");
           }},
          {prefix + "scales", "scales and zero points are one constant each", kNothingToChange,
           [=](const Candidate& c) -> std::string {
             return are_scalars(c, *c.node(name), first, last)
                        ? ""
                        : "scales or zero points per channel, or computed";
           }}};
}

namespace {

// A sum or a difference.
Rows sum_constraints(const std::string& prefix) {
  Rows rows = activation_rows(prefix, "sum", 2);
  rows.push_back(broadcast(prefix, "sum"));
  append(&rows, quantization_rows(prefix, "sum", 2, 8));
  rows.push_back({prefix + "range", "twice the larger input scale is below 2^20 times the output scale",
                  kNothingToChange, [](const Candidate& c) -> std::string {
                    const ir::Node& sum = *c.node("sum");
                    if (!are_scalars(c, sum, 2, 8)) return "";
                    const auto m =
                        layer::add_multipliers(scale_at(c, sum, 2), scale_at(c, sum, 4), scale_at(c, sum, 6));
                    const bool fits = m.output.shift <= 0 && m.output.shift >= -31 &&
                                      std::min(m.lhs.shift, m.rhs.shift) >= -11;
                    return fits ? "" : "input and output scales that are too far apart";
                  }});
  rows.push_back(
      {prefix + "rounding",
       "the result does not depend on how the device rounds its scaled operand; tried for all pairs",
       kNothingToChange, [](const Candidate& c) -> std::string {
         const ir::Node& sum = *c.node("sum");
         if (!are_scalars(c, sum, 2, 8) || !is_8_bit(c.function().type(sum.results[0]).dtype)) return "";
         const AddNode add = read_add(c);
         const auto& m = add.multipliers;
         if (m.output.shift > 0 || m.output.shift < -31 || std::min(m.lhs.shift, m.rhs.shift) < -11)
           return "";
         return is_add_exact(add) ? "" : "some pair of operands gives two results";
       }});
  return rows;
}

}  // namespace

Rows add_constraints() { return sum_constraints("ethosu.add."); }

Rows subtract_constraints() { return sum_constraints("ethosu.subtract."); }

Rows mul_constraints() {
  const std::string prefix = "ethosu.mul.";
  Rows rows = activation_rows(prefix, "product", 2);
  rows.push_back(broadcast(prefix, "product"));
  append(&rows, quantization_rows(prefix, "product", 2, 8));
  rows.push_back({prefix + "range", "the product of the input scales is below the output scale",
                  kNothingToChange, [](const Candidate& c) -> std::string {
                    const ir::Node& node = *c.node("product");
                    if (!are_scalars(c, node, 2, 8)) return "";
                    const double real = static_cast<double>(scale_at(c, node, 2)) *
                                        static_cast<double>(scale_at(c, node, 4)) /
                                        static_cast<double>(scale_at(c, node, 6));
                    return real < 1.0 ? "" : cat("a multiplier of ", static_cast<float>(real));
                  }});
  return rows;
}

Rows extremum_constraints() {
  const std::string prefix = "ethosu.extremum.";
  Rows rows = activation_rows(prefix, "", 2);
  rows.push_back(broadcast(prefix, ""));
  return rows;
}

Rows max_pool2d_constraints() {
  const std::string prefix = "ethosu.max_pool2d.";
  Rows rows = activation_rows(prefix, "pool", 1);
  append(&rows, {pool_layout(prefix), pool_window(prefix, 65536)});
  return rows;
}

Rows avg_pool2d_constraints() {
  const std::string prefix = "ethosu.avg_pool2d.";
  Rows rows = activation_rows(prefix, "pool", 1);
  append(&rows, {pool_layout(prefix), pool_window(prefix, 256)});
  append(&rows, quantization_rows(prefix, "pool", 1, 5));
  rows.push_back({prefix + "same", "input and output have one scale and zero point", kNothingToChange,
                  [](const Candidate& c) -> std::string {
                    const ir::Node& pool = *c.node("pool");
                    if (!are_scalars(c, pool, 1, 5)) return "";
                    const bool is_same = scale_at(c, pool, 1) == scale_at(c, pool, 3) &&
                                         zero_point_operand(c, pool, 2) == zero_point_operand(c, pool, 4);
                    return is_same ? "" : "input and output have different scales or zero points";
                  }});
  rows.push_back({prefix + "count", "averages of the cells inside the input", "count_include_pad=False",
                  [](const Candidate& c) -> std::string {
                    return op::attr_bool(*c.node("pool"), "count_include_pad") ? "padding is counted too"
                                                                               : "";
                  }});
  rows.push_back(
      {prefix + "padding", "with padding, windows of at most 8 x 8, at most 3 before and 4 after",
       kNothingToChange, [](const Candidate& c) -> std::string {
         const layer::Geometry g = layer::pool_geometry(c.function(), *c.node("pool"));
         const op::Window2d& w = g.window;
         const int64_t before = std::max(w.pad_top, w.pad_left), after = std::max(w.pad_bottom, w.pad_right);
         if (before + after == 0 || (before <= 3 && after <= 4 && std::max(w.kernel_h, w.kernel_w) <= 8))
           return "";
         return cat("a window of ", w.kernel_h, " x ", w.kernel_w, ", padding ", before, " and ", after);
       }});
  return rows;
}

Rows mean_constraints() {
  const std::string prefix = "ethosu.mean.";
  Rows rows = {one_dtype(prefix, "mean", 1), activations(prefix, "mean", 1)};
  rows.push_back({prefix + "axes",
                  "over height and width of one image of at most 256 rows and 65536 positions",
                  "a mean over the axes 1 and 2 (NHWC)", [](const Candidate& c) -> std::string {
                    const ir::Node& mean = *c.node("mean");
                    const ir::TensorType& data = c.function().type(mean.operands[0]);
                    const size_t rank = data.shape.size();
                    const ir::Ints& axes = op::attr_ints(mean, "axis");
                    if (rank == 4 && op::normalized_axes(axes, rank) == ir::Ints{1, 2} &&
                        data.shape[0] == 1 && data.shape[1] <= 256 &&
                        product(data.shape[1], data.shape[2]) <= 65536 && data.shape[3] <= kMaxExtent)
                      return "";
                    return cat("over the axes ", op::to_text(axes), " of ", data);
                  }});
  append(&rows, quantization_rows(prefix, "mean", 1, 5));
  rows.push_back({prefix + "range", "input and output scales whose ratio is below 2", kNothingToChange,
                  [](const Candidate& c) -> std::string {
                    const ir::Node& mean = *c.node("mean");
                    if (!are_scalars(c, mean, 1, 5)) return "";
                    const double ratio =
                        static_cast<double>(scale_at(c, mean, 1)) / static_cast<double>(scale_at(c, mean, 3));
                    return ratio < 2.0 && ratio > 0.0 ? "" : cat("a ratio of ", static_cast<float>(ratio));
                  }});
  return rows;
}

Rows clip_constraints() { return activation_rows("ethosu.clip.", "", 1); }

Rows requantize_constraints() {
  const std::string prefix = "ethosu.requantize.";
  Rows rows = activation_rows(prefix, "requantize", 1);
  append(&rows, quantization_rows(prefix, "requantize", 1, 5));
  rows.push_back({prefix + "range",
                  "an input scale below 2^8 times the output scale, or a table in place of a multiplier",
                  kNothingToChange, [](const Candidate& c) -> std::string {
                    const ir::Node& node = *c.node("requantize");
                    if (op::requantizes_in_float(node) || !are_scalars(c, node, 1, 5)) return "";
                    const double ratio =
                        static_cast<double>(scale_at(c, node, 1)) / static_cast<double>(scale_at(c, node, 3));
                    return ratio > 0.0 && ratio < 256.0 ? "" : cat("a ratio of ", static_cast<float>(ratio));
                  }});
  return rows;
}

Rows lookup_constraints() {
  const std::string prefix = "ethosu.lookup.";
  Rows rows = activation_rows(prefix, "", 1);
  rows.push_back({prefix + "table", "a constant table of 256 entries", kNothingToChange,
                  [](const Candidate& c) -> std::string {
                    const ir::ConstantRef& table = c.function().value(c.root().operands[1]).constant;
                    return table != nullptr && table->bytes().size() == 256 ? "" : "a table that is computed";
                  }});
  return rows;
}

}  // namespace qplan::ethosu::compiler
