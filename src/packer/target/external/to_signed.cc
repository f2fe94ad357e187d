// An operator on uint8 as one on int8, for devices that know int8 alone: every byte has its highest bit
// flipped, so that each stored value is 128 less.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "src/packer/target/external/external.h"

namespace qplan::target::external {
namespace {

constexpr int32_t kShift = 128;
constexpr uint8_t kFlip = 0x80;

bool is_uint8(const DLTensor* t) { return t != nullptr && t->dtype.code == kDLUInt && t->dtype.bits == 8; }

ir::ConstantRef flipped(const ir::Constant& from) {
  std::vector<uint8_t> bytes(from.bytes().begin(), from.bytes().end());
  for (uint8_t& byte : bytes) byte ^= kFlip;
  return std::make_shared<const ir::Constant>(ir::TensorType{ir::kInt8, from.type().shape}, std::move(bytes));
}

// Entries stand where the flipped input finds them.
ir::ConstantRef flipped_table(const ir::Constant& from, bool flips_input) {
  const bool flips_entries = from.type().dtype == ir::kUint8;
  std::vector<uint8_t> bytes(from.bytes().size());
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes[i ^ (flips_input ? kFlip : 0)] =
        static_cast<uint8_t>(from.bytes()[i] ^ (flips_entries ? kFlip : 0));
  }
  return std::make_shared<const ir::Constant>(ir::TensorType{ir::kInt8, from.type().shape}, std::move(bytes));
}

// Halves are rounded away from zero, and what is above zero is another thing in int8: only averages without
// halves are the same. Those are averages of odd numbers of elements, in windows that are all inside.
bool has_no_halves(const qplan_npu_op& op) {
  for (int i = 0; i < 2; ++i) {
    const int64_t end = (op.output->shape[1 + i] - 1) * int64_t{op.strides[i]} + int64_t{op.window[i]};
    if (op.window[i] % 2 == 0 || op.pads[i] != 0 || end > op.inputs[0]->shape[1 + i]) return false;
  }
  return true;
}

std::string rounding_error(const qplan_npu_op& op) {
  if (!is_uint8(op.output)) return "";
  if (op.op == QPLAN_NPU_OP_RESIZE_BILINEAR)
    return "an interpolation of uint8 rounds otherwise than one of int8, which is all that the device has";
  if (op.op == QPLAN_NPU_OP_AVG_POOL2D && op.contract == QPLAN_NPU_TFL2 && !has_no_halves(op))
    return "an average of uint8 over an even number of elements rounds otherwise than one of int8, which is "
           "all that the device has";
  return "";
}

void shift_values(qplan_npu_op* op) {
  const bool has_zero_points = qplan_npu_op_has_contract(op->op);
  for (uint32_t i = 0; i < 2 && has_zero_points && op->op != QPLAN_NPU_OP_SOFTMAX; ++i) {
    if (is_uint8(op->inputs[i])) op->input_zero_points[i] -= kShift;
  }
  if ((op->flags & QPLAN_NPU_OP_PAD_VALUE) != 0 && is_uint8(op->inputs[0])) op->pad_value -= kShift;
  if (!is_uint8(op->output)) return;
  if (has_zero_points) op->output_zero_point -= kShift;
  op->clamp_min -= kShift;
  op->clamp_max -= kShift;
}

}  // namespace

std::string to_signed(ReadOp* read) {
  qplan_npu_op& op = read->op;
  if (std::string error = rounding_error(op); !error.empty()) return error;
  shift_values(&op);
  if (op.op == QPLAN_NPU_OP_LOOKUP) {
    read->weights = flipped_table(*read->weights, is_uint8(op.inputs[0]));
  } else if (is_uint8(op.weights)) {
    op.weights_zero_point -= kShift;
    read->weights = flipped(*read->weights);
  }
  std::vector<std::pair<const DLTensor*, const ir::Constant*>> constants;
  if (read->weights != nullptr) constants.emplace_back(op.weights, read->weights.get());
  for (uint32_t i = 0; i < read->constants.size(); ++i) {
    ir::ConstantRef& constant = read->constants[i];
    const DLTensor* const tensor = qplan_npu_op_input(&op, i);
    if (constant == nullptr || !is_uint8(tensor)) continue;
    constant = flipped(*constant);
    constants.emplace_back(tensor, constant.get());
  }
  for (DLTensor& tensor : read->tensors) {
    if (is_uint8(&tensor)) tensor.dtype.code = kDLInt;
    for (const auto& [place, constant] : constants) {
      if (place == &tensor) tensor.data = const_cast<uint8_t*>(constant->bytes().data());
    }
  }
  const char* const error = qplan_npu_op_check(&op);
  return error == nullptr ? "" : error;
}

}  // namespace qplan::target::external
