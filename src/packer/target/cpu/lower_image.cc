// qnn.avg_pool2d, nn.max_pool2d, image.resize2d.
#include "src/packer/op/shape.h"
#include "src/packer/target/cpu/table.h"

namespace qplan::target::cpu {
namespace {

constexpr std::initializer_list<format::Contract> kPoolContracts = {format::Contract_TFL2,
                                                                    format::Contract_F32E};

void add_pool_step(Lowering& lowering, const NodeSequence& sequence, KernelId kernel, Pool2dParams params) {
  const ir::Node& node = lowering.node(sequence.front());
  const op::Window2d window = op::pool2d_window(node);
  const Clamp clamp = sequence_clamp(lowering, sequence);
  params.pool_h = static_cast<uint32_t>(window.kernel_h);
  params.pool_w = static_cast<uint32_t>(window.kernel_w);
  params.stride_h = static_cast<uint32_t>(window.stride_h);
  params.stride_w = static_cast<uint32_t>(window.stride_w);
  params.pad_top = static_cast<uint32_t>(window.pad_top);
  params.pad_left = static_cast<uint32_t>(window.pad_left);
  params.clamp_min = clamp.min;
  params.clamp_max = clamp.max;
  ProgramStep step = make_step(kernel, node);
  step.inputs = {lowering.tensor(node.operands[0])};
  step.outputs = {lowering.define(sequence_result(lowering, sequence))};
  step.params = params;
  lowering.add_step(std::move(step));
}

Constraint no_dilation(const std::string& prefix) {
  return {prefix + "dilation", "no dilation", kNothingToChange, [](const Matched& match) -> std::string {
            const op::Window2d window = op::pool2d_window(*node_of(match));
            return window.dilation_h == 1 && window.dilation_w == 1 ? "" : "the kernel has no dilation";
          }};
}

std::vector<Constraint> pool_constraints(const std::string& prefix) {
  return {operand_is_quantized(prefix, 0), nhwc(prefix), no_dilation(prefix)};
}

struct AverageOperands {
  float input_scale;
  int32_t input_zero_point;
  float output_scale;
  int32_t output_zero_point;
};

AverageOperands read_average(const Lowering& lowering, const ir::Node& node) {
  return {lowering.scale(node.operands[unary::kInputScale], "the input's scale"),
          lowering.zero_point(node.operands[unary::kInputZeroPoint], "the input's zero point"),
          lowering.scale(node.operands[unary::kOutputScale], "the output's scale"),
          lowering.zero_point(node.operands[unary::kOutputZeroPoint], "the output's zero point")};
}

bool averages_in_float(const ir::Node& node) {
  return op::attr_string(node, "contract") == contract_name(format::Contract_F32E);
}

void check_average(const Matched& match) {
  const ir::Node& node = *node_of(match);
  const AverageOperands operands = read_average(match.lowering, node);
  if (averages_in_float(node)) return;
  if (operands.input_scale != operands.output_scale ||
      operands.input_zero_point != operands.output_zero_point) {
    refuse("input and output have different scales or zero points; the kernel needs equal ones");
  }
}

NodeSequence match_avg_pool2d(const Lowering& lowering, uint32_t node) {
  return lowering.is(node, "qnn.avg_pool2d") ? with_clip(lowering, node) : NodeSequence{};
}

std::vector<Constraint> constraints_of_avg_pool2d() {
  const std::string prefix = "cpu.avg_pool2d.";
  std::vector<Constraint> rows = pool_constraints(prefix);
  rows.push_back(contract_among(prefix, kPoolContracts));
  rows.push_back(int16_contract(prefix));
  rows.push_back({prefix + "count_include_pad", "padding is not counted, except under `f32e`",
                  kNothingToChange, [](const Matched& match) -> std::string {
                    const ir::Node& node = *node_of(match);
                    if (averages_in_float(node) || !op::attr_bool(node, "count_include_pad")) return "";
                    return "the kernel does not count padding, except under 'f32e'";
                  }});
  rows.push_back(scales_are_constants(prefix, check_average));
  return rows;
}

void lower_avg_pool2d(Lowering& lowering, const NodeSequence& sequence) {
  const ir::Node& node = lowering.node(sequence.front());
  Pool2dParams params = {.contract = contract_of(node, kPoolContracts)};
  if (params.contract == format::Contract_F32E) {
    const AverageOperands operands = read_average(lowering, node);
    params.input_scale = operands.input_scale;
    params.input_zero_point = operands.input_zero_point;
    params.output_scale = operands.output_scale;
    params.output_zero_point = operands.output_zero_point;
    params.count_include_pad = op::attr_bool(node, "count_include_pad");
  }
  add_pool_step(lowering, sequence, kKernel_avg_pool2d, params);
}

NodeSequence match_max_pool2d(const Lowering& lowering, uint32_t node) {
  return lowering.is(node, "nn.max_pool2d") ? with_clip(lowering, node) : NodeSequence{};
}

std::vector<Constraint> constraints_of_max_pool2d() { return pool_constraints("cpu.max_pool2d."); }

void lower_max_pool2d(Lowering& lowering, const NodeSequence& sequence) {
  add_pool_step(lowering, sequence, kKernel_max_pool2d, {});
}

NodeSequence match_resize_bilinear(const Lowering& lowering, uint32_t node) {
  return lowering.is(node, "image.resize2d") ? NodeSequence{node} : NodeSequence{};
}

std::vector<Constraint> constraints_of_resize_bilinear() {
  const std::string prefix = "cpu.resize2d.";
  return {contract_among(prefix, {format::Contract_TFL2}), operand_is_8_bit(prefix, 0), nhwc(prefix)};
}

void lower_resize_bilinear(Lowering& lowering, const NodeSequence& sequence) {
  const ir::Node& node = lowering.node(sequence.front());
  const std::string& mode = op::attr_string(node, "coordinate_transformation_mode");
  // TFLite interpolates uint8 in float32 and int8 in integers.
  const bool in_float = lowering.type(node.operands[0]).dtype == ir::kUint8;
  ProgramStep step = make_step(kKernel_resize_bilinear, node);
  step.inputs = {lowering.tensor(node.operands[0])};
  step.outputs = {lowering.define(node.results[0])};
  step.params =
      ResizeBilinearParams{.rule = in_float ? format::ResizeRule_TFL_FLOAT : format::ResizeRule_TFL_INTEGER,
                           .align_corners = mode == "align_corners",
                           .half_pixel_centers = mode == "half_pixel"};
  lowering.add_step(std::move(step));
}

}  // namespace

std::vector<TableRow> image_rows() {
  return {
      {"avg_pool2d", match_avg_pool2d, constraints_of_avg_pool2d(), lower_avg_pool2d},
      {"max_pool2d", match_max_pool2d, constraints_of_max_pool2d(), lower_max_pool2d},
      {"resize_bilinear", match_resize_bilinear, constraints_of_resize_bilinear(), lower_resize_bilinear}};
}

}  // namespace qplan::target::cpu
