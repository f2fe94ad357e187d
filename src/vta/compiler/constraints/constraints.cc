#include "src/vta/compiler/constraints/constraints.h"

#include <algorithm>

#include "src/packer/ir/cat.h"
#include "src/packer/op/op_def.h"

namespace qplan::vta::compiler {

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

}  // namespace qplan::vta::compiler
