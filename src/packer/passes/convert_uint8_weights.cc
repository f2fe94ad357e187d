// uint8 weights w with zero point z become int8 weights w - 128 with zero point z - 128: w - z stays.
#include "src/packer/passes/passes.h"
#include "src/packer/pattern/rebuild.h"

namespace qplan::passes {
namespace {

using pattern::PreNode;
using pattern::Rebuild;

constexpr int32_t kOffset = 128;

ir::ConstantRef to_int8(const ir::Constant& weights) {
  std::vector<uint8_t> bytes(weights.bytes().begin(), weights.bytes().end());
  for (uint8_t& byte : bytes) byte ^= 0x80;  // minus 128 in two's complement
  return std::make_shared<const ir::Constant>(ir::TensorType{ir::kInt8, weights.type().shape},
                                              std::move(bytes));
}

ir::ConstantRef minus_offset(const ir::Constant& zero_points) {
  std::vector<int32_t> values(zero_points.as<int32_t>().begin(), zero_points.as<int32_t>().end());
  for (int32_t& value : values) value -= kOffset;  // values of uint8
  return ir::make_constant(ir::kInt32, zero_points.type().shape, values);
}

}  // namespace

std::unique_ptr<ir::Function> run_convert_uint8_weights(const ir::Module&, const ir::Function& pre,
                                                        PassContext& context) {
  return pattern::rebuild(pre, [&](Rebuild& r, PreNode node) {
    if (!node.is("qnn.conv2d") && !node.is("qnn.dense")) return false;
    const ir::ConstantRef weights = r.pre().constant(node.operand(1));
    if (weights == nullptr || weights->type().dtype != ir::kUint8) return false;
    std::vector<pattern::PostValue> operands = r.operands(node);
    operands[1] = r.post().constant_value(to_int8(*weights), r.pre().name(node.operand(1)));
    operands[3] = r.post().constant_value(minus_offset(*r.pre().constant(node.operand(3))));
    r.replace(node.result(), r.post().call(node.op()->name, operands, node.attrs(), node.name()));
    context.fired("convert_uint8_weights", node.name(), "weights are int8");
    return true;
  });
}

}  // namespace qplan::passes
