#include "src/packer/target/cpu/lowering.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <vector>

#include "format/container.h"
#include "format/plan_view.h"
#include "src/packer/error.h"
#include "src/packer/ir/cat.h"
#include "src/packer/op/attributes.h"
#include "src/packer/op/op_def.h"

namespace qplan::target::cpu {
namespace {

constexpr TensorId kNoTensor = UINT32_MAX;

template <typename T>
T need(const layer::Part<T>& part) {
  if (!part) refuse(part.why());
  return *part;
}

// What every reader of plans takes (format/plan_view.h). IR tensors may be larger.
void check_tensor(const ir::TensorType& type, const std::string& name) {
  const std::string tensor = "tensor '" + name + "' (" + ir::to_string(type) + ")";
  // A bool is a byte there.
  if (type.dtype != ir::kBool && format::dtype_name(type.dtype.code, type.dtype.bits) == nullptr)
    refuse(tensor + ": plans do not support its dtype");
  if (type.shape.size() > format::kMaxRank) {
    refuse(tensor + ": rank " + std::to_string(type.shape.size()) + ", plans have at most " +
           std::to_string(format::kMaxRank));
  }
  if (type.num_elements() > format::kMaxElements) refuse(tensor + ": more than 2^31 - 1 elements");
}

void check_count(size_t count, uint32_t limit, const char* what) {
  if (count > limit) {
    refuse("the model has " + std::to_string(count) + " " + what + ", a plan at most " +
           std::to_string(limit));
  }
}

// Attributes that importers leave: input_scale_0, input_zero_point_0, ...
Quantization quantization_attr(const ir::Attrs& attrs, const std::string& kind, size_t index) {
  const std::string suffix = "_" + std::to_string(index);
  if (!attrs.has(kind + "_scale" + suffix)) return {};
  Quantization quantization;
  quantization.scales.push_back(static_cast<float>(attrs.get_double(kind + "_scale" + suffix, 1.0)));
  quantization.zero_points.push_back(static_cast<int32_t>(attrs.get_int(kind + "_zero_point" + suffix, 0)));
  return quantization;
}

}  // namespace

Lowering::Lowering(const ir::Function& function, const TargetProfile& profile)
    : function_(function),
      profile_(profile),
      tensor_of_(function.num_values(), kNoTensor),
      uses_(ir::count_uses(function)),
      user_(function.num_values(), kNoNode) {
  program_.name = function.name();
  check_count(function.params().size(), format::kMaxFunctionInputs, "inputs");
  check_count(function.outputs().size(), format::kMaxFunctionOutputs, "outputs");
  for (uint32_t n = 0; n < function.nodes().size(); ++n) {
    for (const ir::ValueId operand : node(n).operands) user_[operand.index] = n;
  }
  for (const ir::ValueId param : function.params()) {
    program_.inputs.push_back(add_activation(type(param), function.value(param).name));
    tensor_of_[param.index] = program_.inputs.back();
  }
}

bool Lowering::is(uint32_t index, std::string_view op) const {
  return index != kNoNode && node(index).op != nullptr && node(index).op->name == op;
}

uint32_t Lowering::only_user(uint32_t index) const {
  const ir::Node& from = node(index);
  if (from.results.size() != 1 || uses_[from.results[0].index] != 1) return kNoNode;
  return user_[from.results[0].index];
}

AccumulatorSource Lowering::accumulator_source(ir::ValueId value) const {
  const ir::Function* function = &function_;
  std::vector<ir::ConstantRef> biases;
  // A call leads into a body, which has none; a bias before a product is one.
  constexpr int kMaxSteps = 4;
  for (int i = 0; i < kMaxSteps; ++i) {
    const ir::Node* node = function->producer(value);
    if (node == nullptr) return {};
    if (node->op == nullptr) {
      function = function == &function_ && body_of_ ? body_of_(node->callee) : nullptr;
      if (function == nullptr) return {};
      const auto result = std::ranges::find(node->results, value);
      value = function->outputs()[static_cast<size_t>(result - node->results.begin())];
    } else if (node->op->name == "nn.bias_add") {
      const ir::Shape& shape = function->type(value).shape;
      const int64_t axis = op::normalized_axis(op::attr_int(*node, "axis"), shape.size());
      const bool along_channels = axis + 1 == std::ssize(shape);
      biases.push_back(along_channels ? function->value(node->operands[1]).constant : nullptr);
      value = node->operands[0];
    } else if (op::is_quantized_product(node->op)) {
      return {function, node, std::move(biases)};
    } else {
      return {};
    }
  }
  return {};
}

const ir::Constant& Lowering::constant(ir::ValueId value, const char* what) const {
  return *need(layer::read_constant(function_, value, what));
}

float Lowering::scale(ir::ValueId value, const char* what) const {
  return need(layer::read_scale(function_, value, what));
}

int32_t Lowering::zero_point(ir::ValueId value, const char* what) const {
  return need(layer::read_zero_point(function_, value, what));
}

TensorId Lowering::tensor(ir::ValueId value) {
  TensorId& tensor = tensor_of_[value.index];
  if (tensor != kNoTensor) return tensor;
  // What a refused node should have defined is given a tensor all the same: the list of refusals goes on.
  if (!function_.is_constant(value)) return define(value);
  const ir::Constant& constant = *function_.value(value).constant;
  const std::span<const uint8_t> bytes = constant.bytes();
  tensor =
      add_constant(constant.type(), std::make_shared<const std::vector<uint8_t>>(bytes.begin(), bytes.end()),
                   function_.value(value).name);
  return tensor;
}

TensorId Lowering::define(ir::ValueId value) {
  const ir::Value& source = function_.value(value);
  const ir::Node* producer = function_.producer(value);
  const std::string& name = source.name.empty() && producer != nullptr ? producer->name : source.name;
  const TensorId id = tensor_of_[value.index] = add_activation(source.type, name);
  describe(value, &program_.tensors[id]);
  return id;
}

// Sets scale and zero point as the operator that computes the value states them. Operators that keep the grid
// of their input (a clamp, a pool) state none; the one before them is asked then.
void Lowering::describe(ir::ValueId value, ProgramTensor* tensor) const {
  constexpr int kMaxSteps = 16;
  for (int i = 0; i < kMaxSteps; ++i) {
    const ir::Node* producer = function_.producer(value);
    if (producer == nullptr || producer->op == nullptr || type(value).dtype != tensor->type.dtype) return;
    const std::optional<size_t> scale = op::scale_of(*producer->op, op::kResult);
    const std::optional<size_t> zero_point = op::zero_point_of(*producer->op, op::kResult);
    if (scale && zero_point && *scale < producer->operands.size() &&
        *zero_point < producer->operands.size()) {
      const ir::ConstantRef scales = function_.value(producer->operands[*scale]).constant;
      const ir::ConstantRef zero_points = function_.value(producer->operands[*zero_point]).constant;
      if (scales == nullptr || zero_points == nullptr || scales->as<float>().size() != 1 ||
          zero_points->as<int32_t>().size() != 1) {
        return;
      }
      tensor->scale = scales->as<float>()[0];
      tensor->zero_point = zero_points->as<int32_t>()[0];
      return;
    }
    const std::vector<size_t> data = op::data_operands(*producer);
    if (!op::passes_quantization(producer->op) || data.empty()) return;
    value = producer->operands[data[0]];
  }
}

TensorId Lowering::add_activation(ir::TensorType type, std::string name) {
  check_tensor(type, name);
  program_.tensors.push_back({std::move(type), std::move(name), nullptr, {}});
  return static_cast<TensorId>(program_.tensors.size() - 1);
}

TensorId Lowering::add_constant(ir::TensorType type, Bytes bytes, std::string name) {
  check_tensor(type, name);
  program_.tensors.push_back({std::move(type), std::move(name), std::move(bytes), {}});
  return static_cast<TensorId>(program_.tensors.size() - 1);
}

// Outputs are tensors of their own where they must be: a constant is not written by a step, and a tensor that
// is an input or an earlier output already has its name and quantisation.
Program Lowering::finish() {
  const ir::Attrs& attrs = function_.attrs();
  std::vector<bool> described(program_.tensors.size(), false);
  for (size_t i = 0; i < program_.inputs.size(); ++i) {
    program_.tensors[program_.inputs[i]].quantization = quantization_attr(attrs, "input", i);
    described[program_.inputs[i]] = true;
  }
  const std::vector<ir::State> states = ir::states_of(function_);
  const std::vector<TensorId> state_inputs(program_.inputs.end() - static_cast<std::ptrdiff_t>(states.size()),
                                           program_.inputs.end());
  program_.inputs.resize(program_.inputs.size() - states.size());
  for (size_t i = 0; i < ir::num_outputs(function_); ++i) {
    TensorId id = tensor(function_.outputs()[i]);
    described.resize(program_.tensors.size(), false);
    const std::string name = i < function_.output_names().size() ? function_.output_names()[i]
                                                                 : std::string(program_.tensors[id].name);
    const Quantization quantization = quantization_attr(attrs, "output", i);
    const ProgramTensor& found = program_.tensors[id];
    const bool differs = found.name != name || found.quantization != quantization;
    const bool is_state = std::ranges::find(state_inputs, id) != state_inputs.end();
    if (found.is_constant() || is_state || (described[id] && differs)) id = add_copy(id);
    described.resize(program_.tensors.size(), false);
    described[id] = true;
    program_.tensors[id].name = name;
    program_.tensors[id].quantization = quantization;
    program_.outputs.push_back(id);
  }
  for (size_t i = 0; i < states.size(); ++i) {
    // The next value is a tensor that only this state has.
    TensorId id = tensor(function_.outputs()[states[i].result]);
    described.resize(program_.tensors.size(), false);
    if (program_.tensors[id].is_constant() || described[id]) id = add_copy(id);
    described.resize(program_.tensors.size(), false);
    described[id] = true;
    ProgramState state = {state_inputs[i], id, UINT32_MAX, states[i].initial[0]};
    const ir::TensorType type = program_.tensors[id].type;
    program_.tensors[id].name = program_.tensors[state.input].name + ".next";
    program_.tensors[id].quantization = program_.tensors[state.input].quantization;
    if (states[i].initial.size() > 1) {
      state.initial = add_constant(type, std::make_shared<const std::vector<uint8_t>>(states[i].initial),
                                   program_.tensors[state.input].name + ".initial");
    }
    program_.states.push_back(state);
  }
  return std::move(program_);
}

TensorId Lowering::add_copy(TensorId from) {
  const ProgramTensor source = program_.tensors[from];
  const TensorId copy = add_activation(source.type, source.name);
  ProgramStep step;
  step.kernel = kKernel_copy;
  step.name = source.name;
  step.inputs = {from};
  step.outputs = {copy};
  step.params = NoParams{};
  add_step(std::move(step));
  return copy;
}

ProgramStep make_step(KernelId kernel, const ir::Node& node) {
  ProgramStep step;
  step.kernel = kernel;
  step.name = node.name;
  return step;
}

void add_unary_step(Lowering& lowering, KernelId kernel, const ir::Node& node, StepParams params) {
  ProgramStep step = make_step(kernel, node);
  step.inputs = {lowering.tensor(node.operands[0])};
  step.outputs = {lowering.define(node.results[0])};
  step.params = std::move(params);
  lowering.add_step(std::move(step));
}

UnaryScales read_unary_scales(const Lowering& lowering, const ir::Node& node) {
  return {lowering.scale(node.operands[unary::kInputScale], "the input's scale"),
          lowering.zero_point(node.operands[unary::kInputZeroPoint], "the input's zero point"),
          lowering.scale(node.operands[unary::kOutputScale], "the output's scale"),
          lowering.zero_point(node.operands[unary::kOutputZeroPoint], "the output's zero point")};
}

void refuse(const std::string& reason) { throw PackError(QPLAN_MODEL_UNSUPPORTED, reason); }

NodeSequence with_clip(const Lowering& lowering, uint32_t node) {
  NodeSequence sequence{node};
  const uint32_t user = lowering.only_user(node);
  if (lowering.is(user, "clip") && is_quantized(lowering.type(lowering.node(user).results[0]).dtype)) {
    sequence.push_back(user);
  }
  return sequence;
}

Clamp sequence_clamp(const Lowering& lowering, const NodeSequence& sequence) {
  const ir::Node& last = lowering.node(sequence.back());
  const ir::DType dtype = lowering.type(last.results[0]).dtype;
  return lowering.is(sequence.back(), "clip") ? clip_clamp(last, dtype) : full_clamp(dtype);
}

ir::ValueId sequence_result(const Lowering& lowering, const NodeSequence& sequence) {
  return lowering.node(sequence.back()).results[0];
}

std::string contract_name(format::Contract contract) {
  std::string name = format::EnumNameContract(contract);
  for (char& c : name) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  return name;
}

format::Contract contract_of(const ir::Node& node, std::initializer_list<format::Contract> computed) {
  return contract_of(node, std::span(computed.begin(), computed.size()));
}

format::Contract contract_of(const ir::Node& node, std::span<const format::Contract> computed) {
  const std::string& name = op::attr_string(node, "contract");
  std::string expected;
  for (const format::Contract contract : computed) {
    if (name == contract_name(contract)) return contract;
    expected += (expected.empty() ? "'" : " or '") + contract_name(contract) + "'";
  }
  refuse("contract '" + name + "' has no rule here, expected " + expected);
}

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
