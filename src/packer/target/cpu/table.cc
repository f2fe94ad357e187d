#include <iterator>
#include <vector>

#include "src/packer/ir/cat.h"
#include "src/packer/op/opaque.h"
#include "src/packer/target/cpu/lowering.h"

namespace qplan::target::cpu {

const ir::Node* node_of(const Matched& match, std::string_view op) {
  for (const uint32_t index : match.sequence) {
    const ir::Node& node = match.lowering.node(index);
    if (op.empty() || node.op->name == op) return &node;
  }
  return nullptr;
}

Constraint contract_among(const std::string& prefix, std::initializer_list<format::Contract> computed,
                          std::string_view op) {
  std::string names;
  for (const format::Contract contract : computed) {
    names += cat(names.empty() ? "" : ", ", "`", contract_name(contract), "`");
  }
  return {prefix + "contract", cat("the arithmetic is one of ", names), kNothingToChange,
          [contracts = std::vector(computed), op = std::string(op)](const Matched& match) {
            const ir::Node* node = node_of(match, op);
            return node == nullptr ? "" : refusal_of([&] { contract_of(*node, contracts); });
          }};
}

Constraint operand_is_8_bit(const std::string& prefix, size_t operand) {
  return {prefix + "dtype", "the input is int8 or uint8", kQuantizeTo8Bits,
          [operand](const Matched& match) -> std::string {
            const ir::DType dtype = match.lowering.type(node_of(match)->operands[operand]).dtype;
            return is_8_bit(dtype) ? "" : cat("its dtype is ", dtype, ", expected int8 or uint8");
          }};
}

namespace {

constexpr const char* kQuantize = "quantise the model to 8-bit integers, or activations to int16";

std::string dtype_violation(ir::DType dtype) {
  return is_quantized(dtype) ? "" : cat("its dtype is ", dtype, ", expected int8, uint8 or int16");
}

}  // namespace

Constraint operand_is_quantized(const std::string& prefix, size_t operand) {
  return {prefix + "dtype", "the input is int8, uint8 or int16", kQuantize, [operand](const Matched& match) {
            return dtype_violation(match.lowering.type(node_of(match)->operands[operand]).dtype);
          }};
}

Constraint result_is_quantized(const std::string& prefix) {
  return {
      prefix + "dtype", "the output is int8, uint8 or int16", kQuantize, [](const Matched& match) {
        return dtype_violation(match.lowering.type(sequence_result(match.lowering, match.sequence)).dtype);
      }};
}

Constraint one_quantized_dtype(const std::string& prefix) {
  return {prefix + "dtype", "inputs and output have one dtype, int8, uint8 or int16", kQuantize,
          [](const Matched& match) -> std::string {
            const ir::Node& node = *node_of(match);
            const ir::DType dtype = match.lowering.type(node.results[0]).dtype;
            const ir::DType lhs = match.lowering.type(node.operands[binary::kLhs]).dtype;
            const ir::DType rhs = match.lowering.type(node.operands[binary::kRhs]).dtype;
            if (is_quantized(dtype) && lhs == dtype && rhs == dtype) return "";
            return cat("inputs ", lhs, " and ", rhs, ", output ", dtype,
                       "; the kernel needs inputs and output of one dtype, int8, uint8 or int16");
          }};
}

Constraint int16_contract(const std::string& prefix, std::string_view op) {
  return {prefix + "int16", "int16 is computed under `tfl2`", kNothingToChange,
          [op = std::string(op)](const Matched& match) -> std::string {
            const ir::Node* node = node_of(match, op);
            if (node == nullptr || match.lowering.type(node->results[0]).dtype != ir::kInt16) return "";
            const std::string& contract = op::attr_string(*node, "contract");
            return contract == "tfl2" ? "" : cat("contract '", contract, "' has no rule for int16");
          }};
}

Constraint nhwc(const std::string& prefix) {
  return {prefix + "layout", "the layout is NHWC", kRunThePasses, [](const Matched& match) -> std::string {
            const std::string& layout = op::attr_string(*node_of(match), "layout");
            return layout == "NHWC" ? "" : cat("layout ", layout, ", the kernel needs NHWC");
          }};
}

Constraint scales_are_constants(const std::string& prefix, void (*read)(const Matched& match)) {
  return {prefix + "scales", "scales and zero points are constants that the kernel's multipliers can express",
          kChooseScales, [read](const Matched& match) { return refusal_of([&] { read(match); }); }};
}

namespace {

// An operator of the application's: a step as the node says.
NodeSequence match_custom(const Lowering& lowering, uint32_t node) {
  return lowering.is(node, "custom") ? NodeSequence{node} : NodeSequence{};
}
void lower_custom(Lowering& lowering, const NodeSequence& sequence) {
  const ir::Node& node = lowering.node(sequence.front());
  op::CustomAttributes custom = op::custom_of(node);
  ProgramStep step = make_step(kKernel_custom, node);
  for (const ir::ValueId operand : node.operands) step.inputs.push_back(lowering.tensor(operand));
  for (const ir::ValueId result : node.results) step.outputs.push_back(lowering.define(result));
  step.params = CustomParams{.name = std::move(custom.name),
                             .options = std::move(custom.options),
                             .scales = std::move(custom.scales),
                             .zero_points = std::move(custom.zero_points),
                             .scratch_bytes = custom.scratch_bytes,
                             .state_bytes = custom.state_bytes};
  lowering.add_step(std::move(step));
}
std::vector<TableRow> custom_rows() { return {{"custom", match_custom, {}, lower_custom}}; }

// A program for an NPU, which the CPU only refuses.
NodeSequence match_program(const Lowering& lowering, uint32_t node) {
  return lowering.is(node, op::kProgramOperator) ? NodeSequence{node} : NodeSequence{};
}
void lower_program(Lowering& lowering, const NodeSequence& sequence) {
  throw PackError(QPLAN_INTERNAL,
                  cat("program '", lowering.node(sequence.front()).name, "' was not refused"));
}
std::vector<TableRow> program_rows() {
  return {{"npu.program",
           match_program,
           {{"cpu.program.device", "none: a program of an NPU's compiler runs on its device alone",
             "name the device in --target",
             [](const Matched& match) {
               const std::string& device = op::attr_string(*node_of(match), "device");
               return cat("it is a program that was compiled for '", device,
                          "', which no CPU runs; pack it with --target \"", device, ", cpu\"");
             }}},
           lower_program}};
}

std::vector<TableRow> all_rows() {
  std::vector<TableRow> rows;
  for (const auto& group : {resize_rows, float_rows, layer_rows, gather_rows, number_rows, binary_rows,
                            image_rows, reduce_rows, softmax_rows, unary_chain_rows, quantize_rows,
                            movement_rows, concat_rows, recurrent_rows, custom_rows, program_rows}) {
    std::vector<TableRow> of_group = group();
    rows.insert(rows.end(), std::move_iterator(of_group.begin()), std::move_iterator(of_group.end()));
  }
  return rows;
}

}  // namespace

std::span<const TableRow> lowering_table() {
  static const std::vector<TableRow> table = all_rows();
  return table;
}

}  // namespace qplan::target::cpu
