#include "src/packer/passes/signedness.h"

#include <algorithm>

#include "src/packer/op/properties.h"
#include "src/packer/op/shape.h"
#include "src/packer/passes/rewrite_pass.h"
#include "src/packer/pattern/rebuild.h"

namespace qplan::passes {
namespace {

using pattern::Pre;
using pattern::PreNode;

// How many elements of an axis the windows hold: whether that is odd for each of them.
bool all_odd(int64_t in, int64_t out, int64_t kernel, int64_t stride, int64_t pad) {
  for (int64_t o = 0; o < out; ++o) {
    const int64_t begin = std::max<int64_t>(o * stride - pad, 0);
    const int64_t end = std::min(o * stride - pad + kernel, in);
    if ((end - begin) % 2 == 0) return false;
  }
  return true;
}

// The mean of an odd number of integers never lies halfway between two.
bool has_odd_windows(const Pre& pre, PreNode pool) {
  const op::DataLayout layout = op::data_layout(op::attr_string(pool.node(), "layout"));
  const op::Window2d window = op::pool2d_window(pool.node());
  const ir::Shape& in = pre.type(pool.operand(0)).shape;
  const ir::Shape& out = pre.type(pool.result()).shape;
  return all_odd(in[layout.h], out[layout.h], window.kernel_h, window.stride_h, window.pad_top) &&
         all_odd(in[layout.w], out[layout.w], window.kernel_w, window.stride_w, window.pad_left);
}

}  // namespace

bool may_change_signedness(const op::OpDef* op) {
  return op != nullptr && op->quantization != op::Quantization::kNone;
}

bool has_one_dtype(const op::OpDef& op) { return op.keeps_dtype || op.kind == op::OpKind::kBroadcast; }

const char* rounds_by_signedness(const Pre& pre, PreNode node) {
  if (node.is("image.resize2d")) return "it interpolates uint8 in float32 and int8 in integers";
  if (node.is("qnn.l2_normalize")) return "it multiplies numbers of uint8 in finer steps than those of int8";
  const bool averages = node.is("qnn.avg_pool2d") && op::attr_string(node.node(), "contract") != "f32e";
  return averages && !has_odd_windows(pre, node)
             ? "a mean halfway between two integers is rounded away from the stored 0"
             : nullptr;
}

bool contract_has_zero_points(PreNode node) {
  if (!op::has_contract(node.op())) return true;
  const std::string& contract = op::attr_string(node.node(), "contract");
  return contract == "tfl2" || contract == "tfl1" || contract == "f32e";
}

bool is_8_bit(ir::DType dtype) { return dtype == ir::kInt8 || dtype == ir::kUint8; }

bool keeps_reals(const Pre& pre, PreNode node) {
  if (!node.is("qnn.requantize")) return false;
  const ir::DType from = pre.type(node.operand(0)).dtype, to = pre.type(node.result()).dtype;
  if (!is_8_bit(from) || !is_8_bit(to)) return false;
  for (size_t i = 1; i < 5; ++i) {
    if (!pre.type(node.operand(i)).shape.empty()) return false;
  }
  const auto zero_point = [&](size_t i) { return pre.constant(node.operand(i))->as<int32_t>()[0]; };
  return node.operand(1) == node.operand(3) && zero_point(4) - zero_point(2) == to.min() - from.min();
}

ir::ConstantRef other_signedness(const ir::Constant& data) {
  std::vector<uint8_t> bytes(data.bytes().begin(), data.bytes().end());
  for (uint8_t& byte : bytes) byte ^= 0x80;  // plus or minus 128 in two's complement
  const ir::DType dtype = data.type().dtype == ir::kInt8 ? ir::kUint8 : ir::kInt8;
  return std::make_shared<const ir::Constant>(ir::TensorType{dtype, data.type().shape}, std::move(bytes));
}

ir::ConstantRef moved_zero_points(const ir::Constant& zero_points, int32_t offset) {
  std::vector<int32_t> values(zero_points.as<int32_t>().begin(), zero_points.as<int32_t>().end());
  for (int32_t& value : values) value += offset;  // within the other dtype
  return ir::make_constant(ir::kInt32, zero_points.type().shape, values);
}

namespace {

using pattern::Pre;
using pattern::PreNode;

// As int8 weights, whatever dtype they have.
bool has_weight_zero_point(const Pre& pre, PreNode layer) {
  const size_t weight = *op::operand_with(*layer.op(), op::OperandRole::kWeight);
  const ir::ConstantRef zero_points = pre.constant(layer.operand(*op::zero_point_of(*layer.op(), weight)));
  if (zero_points == nullptr) return false;
  const int32_t symmetric = pre.type(layer.operand(weight)).dtype == ir::kUint8 ? 128 : 0;
  return std::ranges::any_of(zero_points->as<int32_t>(), [&](int32_t value) { return value != symmetric; });
}

bool is_uint8_arithmetic(const Pre& pre, PreNode node) {
  if (op::is_quantized_product(node.op())) return has_weight_zero_point(pre, node);
  if (!node.is("qnn.requantize") || op::attr_string(node.node(), "multiplier") != "product_f32") return false;
  // Fully connected layers form it so for both dtypes.
  const auto product = product_of(pre, node.operand(0));
  return product && product->is("qnn.conv2d");
}

}  // namespace

ir::DType activation_dtype(const ir::Function& function) {
  const Pre pre(function);
  for (size_t i = 0; i < function.nodes().size(); ++i) {
    if (is_uint8_arithmetic(pre, PreNode(function, i))) return ir::kUint8;
  }
  return ir::kInt8;
}

}  // namespace qplan::passes
