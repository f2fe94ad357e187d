// What passes made of rewrites share: running their rows, and reading what stands in quantising nodes.
#ifndef QPLAN_SRC_PACKER_PASSES_REWRITE_PASS_H_
#define QPLAN_SRC_PACKER_PASSES_REWRITE_PASS_H_

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "src/packer/passes/pass.h"
#include "src/packer/pattern/rewrite.h"

namespace qplan::passes {

// Visits until nothing fires, or until a round of the pipeline is better spent on the other passes: the rest
// is left to the next one. Rows that the context skips are left out; each firing goes to PassContext::fired.
// cost: of rows that make a large constant from one which others read too, so that a small file could ask for
// any amount: the bytes, which are taken from PassContext::fold_budget. A row that would take more than is
// left does not fire.
using Cost = std::function<int64_t(const pattern::RewriteContext& context)>;
std::unique_ptr<ir::Function> run_rewrites(std::span<const pattern::Rewrite> rewrites,
                                           const ir::Function& pre, PassContext& context,
                                           const Cost& cost = {});

// ---- patterns ----
pattern::Pattern scalar_constant();
// 8-bit data under a qnn.dequantize with one scale: the data as `name`, the node's result as "dq_<name>".
pattern::Pattern dequantized(const std::string& name);
// qnn.quantize to 8 bits with one scale.
pattern::Pattern quantized(pattern::Pattern data);

// ---- what rows read ----
// The first element of a constant scale or zero point, which the pattern has found to be a scalar.
float scale_of(const pattern::Pre& pre, pattern::PreValue value);
int32_t zero_point_of(const pattern::Pre& pre, pattern::PreValue value);
// The value of a scalar constant of a dtype that nn.pad takes.
std::optional<double> scalar_value(const ir::Constant& constant);
// For reasons: "add 'x'", "parameter '%y'", "a constant".
std::string describe(const pattern::Pre& pre, pattern::PreValue value);
std::string count_text(uint64_t count, std::string_view noun);  // "1 value", "3 values"

}  // namespace qplan::passes

#endif  // QPLAN_SRC_PACKER_PASSES_REWRITE_PASS_H_
