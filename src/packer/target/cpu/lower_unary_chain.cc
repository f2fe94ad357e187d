// Functions of one 8-bit value, and compositions of them: family lut8. The table is what the operators' own
// arithmetic gives for each of the 256 values.
#include "kernels/logistic/logistic.h"
#include "kernels/numeric/requantize.h"
#include "kernels/numeric/saturate.h"
#include "src/packer/target/cpu/families.h"
#include "src/packer/target/cpu/requantization.h"

namespace qplan::target::cpu {
namespace {

bool is_unary(const Lowering& lowering, uint32_t index) {
  if (!lowering.is(index, "qnn.requantize") && !lowering.is(index, "qnn.sigmoid") &&
      !lowering.is(index, "clip")) {
    return false;
  }
  const ir::Node& node = lowering.node(index);
  return is_8_bit(lowering.type(node.operands[0]).dtype) && is_8_bit(lowering.type(node.results[0]).dtype);
}

// Values of a table are kept as the integers they stand for.
using Table = std::vector<int32_t>;

void apply_clip(const Lowering& lowering, const ir::Node& node, Table* table) {
  const Clamp clamp = clip_clamp(node, lowering.type(node.results[0]).dtype);
  for (int32_t& value : *table) value = value < clamp.min ? clamp.min : value > clamp.max ? clamp.max : value;
}

void apply_requantize(const Lowering& lowering, const ir::Node& node, Table* table) {
  enum Operand { kData, kInputScale, kInputZeroPoint, kOutputScale, kOutputZeroPoint };
  tfl2_contract(node);
  const Clamp clamp = full_clamp(lowering.type(node.results[0]).dtype);
  const int32_t input_zero_point =
      lowering.zero_point(node.operands[kInputZeroPoint], "the input's zero point");
  const int32_t output_zero_point =
      lowering.zero_point(node.operands[kOutputZeroPoint], "the output's zero point");
  const double real = static_cast<double>(lowering.scale(node.operands[kInputScale], "the input's scale")) /
                      static_cast<double>(lowering.scale(node.operands[kOutputScale], "the output's scale"));
  const QuantizedMultiplier multiplier = checked_multiplier(real);
  for (int32_t& value : *table) {
    const int32_t scaled = requantize_tfl2(value - input_zero_point, multiplier.multiplier, multiplier.shift);
    const int64_t shifted = int64_t{scaled} + output_zero_point;
    value = static_cast<int32_t>(shifted < clamp.min ? clamp.min : shifted > clamp.max ? clamp.max : shifted);
  }
}

void apply_sigmoid(const Lowering& lowering, const ir::Node& node, Table* table) {
  enum Operand { kData, kScale, kZeroPoint, kOutputScale, kOutputZeroPoint };
  tfl2_contract(node);
  const ir::DType dtype = lowering.type(node.results[0]).dtype;
  if (lowering.scale(node.operands[kOutputScale], "the output's scale") != 1.0f / 256.0f ||
      lowering.zero_point(node.operands[kOutputZeroPoint], "the output's zero point") != dtype.min()) {
    refuse("its output must have scale 1/256 and zero point " + std::to_string(dtype.min()));
  }
  const float scale = lowering.scale(node.operands[kScale], "the input's scale");
  const int32_t zero_point = lowering.zero_point(node.operands[kZeroPoint], "the input's zero point");
  for (int32_t& value : *table) {
    value = dtype == ir::kInt8 ? int32_t{logistic_s8(static_cast<int8_t>(value), scale, zero_point)}
                               : int32_t{logistic_u8(static_cast<uint8_t>(value), scale, zero_point)};
  }
}

// The values that the bytes 0 to 255 stand for.
Table identity(ir::DType dtype) {
  Table table(256);
  for (int32_t byte = 0; byte < 256; ++byte) {
    table[static_cast<size_t>(byte)] = dtype == ir::kInt8 ? int32_t{static_cast<int8_t>(byte)} : byte;
  }
  return table;
}

}  // namespace

Chain match_unary_chain(const Lowering& lowering, uint32_t node) {
  Chain chain;
  while (node != Lowering::kNoNode && is_unary(lowering, node)) {
    chain.push_back(node);
    node = lowering.only_user(node);
  }
  return chain;
}

void lower_unary_chain(Lowering& lowering, const Chain& chain) {
  const ir::Node& first = lowering.node(chain.front());
  Table table = identity(lowering.type(first.operands[0]).dtype);
  for (const uint32_t index : chain) {
    const ir::Node& node = lowering.node(index);
    if (node.op->name == "clip") {
      apply_clip(lowering, node, &table);
    } else if (node.op->name == "qnn.requantize") {
      apply_requantize(lowering, node, &table);
    } else {
      apply_sigmoid(lowering, node, &table);
    }
  }
  std::vector<uint8_t> bytes;
  for (const int32_t value : table) bytes.push_back(static_cast<uint8_t>(value));

  const ir::ValueId result = chain_result(lowering, chain);
  ProgramStep step = make_step(kKernel_lut8, first);
  const TensorId table_tensor = lowering.add_constant(
      {lowering.type(result).dtype, {256}}, std::make_shared<const std::vector<uint8_t>>(std::move(bytes)),
      first.name + "/table");
  step.inputs = {lowering.tensor(first.operands[0]), table_tensor};
  step.outputs = {lowering.define(result)};
  step.params_type = format::KernelParams_Lut8Params;
  step.write_params = params_writer<format::Lut8ParamsBuilder>([](format::Lut8ParamsBuilder&) {});
  lowering.add_step(std::move(step));
}

}  // namespace qplan::target::cpu
