// dequantize -> float operators -> quantize becomes operators on integers (qdq_to_integer.h lists the rows).
// Lowering: the contract in which a float operator is meant is that of the quantize after it.
#include "src/packer/passes/qdq_to_integer.h"

#include "src/packer/ir/cat.h"
#include "src/packer/op/shape.h"
#include "src/packer/passes/passes.h"
#include "src/packer/passes/rewrite_pass.h"

namespace qplan::passes {
namespace {

using pattern::PreNode;
using pattern::Rebuild;
using pattern::Rewrite;

std::vector<Rewrite> all_rows() {
  std::vector<Rewrite> rows;
  for (auto make : {movement_rewrites, layer_rewrites, elementwise_rewrites}) {
    for (Rewrite& row : make()) rows.push_back(std::move(row));
  }
  return rows;
}

// As sink_dequantize, for the one movement with several results, which no row can replace.
std::unique_ptr<ir::Function> sink_below_split(const ir::Function& pre, PassContext& context) {
  constexpr const char* kName = "sink_dequantize";
  if (context.skipped(kName)) return nullptr;
  return pattern::rebuild(pre, [&](Rebuild& r, PreNode node) {
    if (!node.is("split")) return false;
    const auto dequantize = r.post().producer(r[node.operand(0)], "qnn.dequantize");
    if (!dequantize || !r.post().type(dequantize->operand(1)).shape.empty() ||
        !r.post().type(dequantize->operand(2)).shape.empty()) {
      return false;
    }
    const auto parts = r.post().call_all("split", {dequantize->operand(0)}, node.attrs(), node.name());
    for (size_t i = 0; i < parts.size(); ++i) {
      r.replace(node.result(i),
                r.post().call("qnn.dequantize", {parts[i], dequantize->operand(1), dequantize->operand(2)},
                              dequantize->attrs(), dequantize->name()));
    }
    context.fired(kName, node.name(), "exact: the dequantisation comes after it");
    return true;
  });
}

}  // namespace

std::span<const Rewrite> qdq_to_integer_rewrites() {
  static const std::vector<Rewrite> kRewrites = all_rows();
  return kRewrites;
}

std::unique_ptr<ir::Function> run_qdq_to_integer(const ir::Module&, const ir::Function& pre,
                                                 PassContext& context) {
  if (context.keep_float) return nullptr;
  std::unique_ptr<ir::Function> split = sink_below_split(pre, context);
  std::unique_ptr<ir::Function> rest = run_rewrites(qdq_to_integer_rewrites(), split ? *split : pre, context);
  return rest != nullptr ? std::move(rest) : std::move(split);
}

}  // namespace qplan::passes
