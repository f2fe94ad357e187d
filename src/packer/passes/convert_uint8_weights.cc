// uint8 weights w with zero point z become int8 weights w - 128 with zero point z - 128: w - z stays.
#include "src/packer/op/properties.h"
#include "src/packer/passes/passes.h"
#include "src/packer/passes/signedness.h"
#include "src/packer/pattern/rebuild.h"

namespace qplan::passes {
namespace {

using pattern::PreNode;
using pattern::Rebuild;

constexpr int32_t kOffset = -128;

}  // namespace

std::unique_ptr<ir::Function> run_convert_uint8_weights(const ir::Module&, const ir::Function& pre,
                                                        PassContext& context) {
  return pattern::rebuild(pre, [&](Rebuild& r, PreNode node) {
    if (!op::is_quantized_product(node.op())) return false;
    const size_t weight = *op::operand_with(*node.op(), op::OperandRole::kWeight);
    const size_t zero_point = *op::zero_point_of(*node.op(), weight);
    const ir::ConstantRef weights = r.pre().constant(node.operand(weight));
    if (weights == nullptr || weights->type().dtype != ir::kUint8) return false;
    std::vector<pattern::PostValue> operands = r.operands(node);
    operands[weight] =
        r.post().constant_value(other_signedness(*weights), r.pre().name(node.operand(weight)));
    operands[zero_point] =
        r.post().constant_value(moved_zero_points(*r.pre().constant(node.operand(zero_point)), kOffset));
    r.replace(node.result(), r.post().call(node.op()->name, operands, node.attrs(), node.name()));
    context.fired("convert_uint8_weights", node.name(), "weights are int8");
    return true;
  });
}

}  // namespace qplan::passes
