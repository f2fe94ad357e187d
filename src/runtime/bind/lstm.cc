// Kernel argument binding of lstm and float_lstm.
#include "kernels/lstm/lstm.h"

#include "kernels/float_conv2d/float_conv2d.h"
#include "kernels/layout.h"
#include "src/runtime/bind/family.h"
#include "src/runtime/bind/step_check.h"

namespace qplan {
namespace {

// float_lstm has one bias, and the scales of its weights in the place of the second.
enum Input : uint32_t {
  kInput,
  kInputWeights,
  kRecurrentWeights,
  kInputBias,
  kRecurrentBias,
  kFirstOutput,
  kFirstCell,
  kNumInputs,
  kBias = kInputBias,
  kScales = kRecurrentBias,
};
enum Output : uint32_t { kOutput, kLastOutput, kLastCell, kNumOutputs };

// Fills the shape from tensors that need not have been checked.
LstmShape lstm_shape(const StepView& step, bool is_coupled, bool time_major) {
  const Shape input = shape_of(step.input(kInput));
  LstmShape shape;
  shape.time_major = time_major;
  shape.num_gates = is_coupled ? kLstmGates - 1 : kLstmGates;
  shape.batch = input[time_major ? 1 : 0];
  shape.steps = input[time_major ? 0 : 1];
  shape.input_c = input[2];
  shape.cells = shape_of(step.input(kFirstCell))[1];
  return shape;
}

bool check_tensors(const StepCheck& check, const StepView& step, bool is_coupled, bool time_major, Dtype data,
                   Dtype cell) {
  Shape input, output, states[4];
  if (!check.input(kInput, "input", dtype_bit(data), 3, &input) ||
      !check.output(kOutput, "output", dtype_bit(data), 3, &output) ||
      !check.input(kFirstOutput, "first output state", dtype_bit(data), 2, &states[0]) ||
      !check.input(kFirstCell, "first cell state", dtype_bit(cell), 2, &states[1]) ||
      !check.output(kLastOutput, "last output state", dtype_bit(data), 2, &states[2]) ||
      !check.output(kLastCell, "last cell state", dtype_bit(cell), 2, &states[3])) {
    return false;
  }
  const LstmShape shape = lstm_shape(step, is_coupled, time_major);
  for (const Shape& state : states) {
    if (state[0] == shape.batch && state[1] == shape.cells) continue;
    return check.fail() << "a state of " << state[0] << " x " << state[1] << " is not of " << shape.batch
                        << " samples and " << shape.cells << " cells";
  }
  if (output[0] != input[0] || output[1] != input[1] || output[2] != shape.cells) {
    return check.fail_output(kOutput, "output")
           << "is not the input's sequence with " << shape.cells << " channels";
  }
  return check.range("rows of the gates", int64_t{shape.num_gates} * shape.cells, 1, INT32_MAX) &&
         check.range("input channels", shape.input_c, 1, INT32_MAX);
}

// ---- lstm ----

bool check_multipliers(const StepCheck& check, const char* name,
                       const flatbuffers::Vector<int32_t>* multipliers,
                       const flatbuffers::Vector<int32_t>* shifts, uint32_t num_gates) {
  if (multipliers == nullptr || shifts == nullptr || multipliers->size() != num_gates ||
      shifts->size() != num_gates) {
    return check.fail() << "there are not as many multipliers and shifts of " << name << " as gates, "
                        << num_gates;
  }
  for (uint32_t i = 0; i < num_gates; ++i) {
    if (!check.multiplier(name, multipliers->Get(i), shifts->Get(i))) return false;
  }
  return true;
}

bool check_step(const StepCheck& check, const StepView& step) {
  if (!check.arity(kNumInputs, kNumOutputs) || !check.params(format::KernelParams_LstmParams)) return false;
  const auto& p = check.params_as<format::LstmParams>();
  if (!check_tensors(check, step, p.coupled(), p.time_major(), Dtype::kS8, Dtype::kS16)) return false;
  const LstmShape shape = lstm_shape(step, p.coupled(), p.time_major());
  const uint64_t channels = layout_channels(p.weights_layout(), lstm_rows(shape));
  return check.layout(p.weights_layout(), kLayout_ohwi, kLayout_o16k4) &&
         check.constant(kInputWeights, "input weights", Dtype::kS8,
                        layout_bytes(p.weights_layout(), lstm_rows(shape), shape.input_c)) &&
         check.constant(kRecurrentWeights, "recurrent weights", Dtype::kS8,
                        layout_bytes(p.weights_layout(), lstm_rows(shape), shape.cells)) &&
         check.constant(kInputBias, "input bias", Dtype::kS32, channels) &&
         check.constant(kRecurrentBias, "recurrent bias", Dtype::kS32, channels) &&
         check_multipliers(check, "input", p.input_multiplier(), p.input_shift(), shape.num_gates) &&
         check_multipliers(check, "recurrent", p.recurrent_multiplier(), p.recurrent_shift(),
                           shape.num_gates) &&
         check.multiplier("output", p.output_multiplier(), p.output_shift()) &&
         check.in_dtype("output zero point", p.output_zero_point(), Dtype::kS8) &&
         check.range("cell_bits", p.cell_bits(), 9, 15) &&
         check.range("cell_clip", p.cell_clip(), 0, INT16_MAX);
}

qplan_status bind(const StepView& step, bool checked, LstmArgs& args, Error* error) {
  const StepCheck check(step, "lstm", error);
  if (checked && !check_step(check, step)) return check.status();
  const auto& p = check.params_as<format::LstmParams>();
  args.shape = lstm_shape(step, p.coupled(), p.time_major());
  args.input = static_cast<const int8_t*>(step.input_data(kInput));
  args.input_weights = static_cast<const int8_t*>(step.input_data(kInputWeights));
  args.recurrent_weights = static_cast<const int8_t*>(step.input_data(kRecurrentWeights));
  args.input_bias = static_cast<const int32_t*>(step.input_data(kInputBias));
  args.recurrent_bias = static_cast<const int32_t*>(step.input_data(kRecurrentBias));
  args.first_output = static_cast<const int8_t*>(step.input_data(kFirstOutput));
  args.first_cell = static_cast<const int16_t*>(step.input_data(kFirstCell));
  args.output = static_cast<int8_t*>(step.output_data(kOutput));
  args.last_output = static_cast<int8_t*>(step.output_data(kLastOutput));
  args.last_cell = static_cast<int16_t*>(step.output_data(kLastCell));
  for (uint32_t i = 0; i < args.shape.num_gates; ++i) {
    args.input_multiplier[i] = p.input_multiplier()->Get(i);
    args.input_shift[i] = p.input_shift()->Get(i);
    args.recurrent_multiplier[i] = p.recurrent_multiplier()->Get(i);
    args.recurrent_shift[i] = p.recurrent_shift()->Get(i);
  }
  args.output_multiplier = p.output_multiplier();
  args.output_shift = p.output_shift();
  args.output_zero_point = p.output_zero_point();
  args.cell_bits = p.cell_bits();
  args.cell_clip = p.cell_clip();
  args.weights_layout = p.weights_layout();
  return QPLAN_OK;
}

// ---- float_lstm ----

// Weights, scales and bias of the gates are constants. layout: of int8 weights.
bool check_float_constants(const StepCheck& check, const LstmShape& shape, bool is_hybrid, uint16_t layout) {
  const uint64_t rows = lstm_rows(shape), padded = (rows + kFloatBlock - 1) / kFloatBlock * kFloatBlock;
  const Dtype dtype = is_hybrid ? Dtype::kS8 : Dtype::kF32;
  if (is_hybrid ? !check.layout(layout, kLayout_ohwi, kLayout_o16k4) : !check.layout(layout, kLayout_ohwi))
    return false;
  const auto stored = [&](uint64_t count) {
    return is_hybrid ? layout_bytes(layout, rows, count) : padded * count;
  };
  return check.constant(kInputWeights, "input weights", dtype, stored(shape.input_c)) &&
         check.constant(kRecurrentWeights, "recurrent weights", dtype, stored(shape.cells)) &&
         check.constant(kBias, "bias", Dtype::kF32, padded) &&
         check.constant(kScales, "weight scales", Dtype::kF32, uint64_t{2} * shape.num_gates);
}

bool check_float_step(const StepCheck& check, const StepView& step) {
  if (!check.arity(kNumInputs, kNumOutputs) || !check.params(format::KernelParams_FloatLstmParams))
    return false;
  const auto& p = check.params_as<format::FloatLstmParams>();
  if (!check_tensors(check, step, p.coupled(), p.time_major(), Dtype::kF32, Dtype::kF32)) return false;
  return check_float_constants(check, lstm_shape(step, p.coupled(), p.time_major()), p.hybrid(),
                               p.weights_layout()) &&
         check.float_clamp(0.0f, p.cell_clip());
}

qplan_status bind_float(const StepView& step, bool checked, FloatLstmArgs& args, Error* error) {
  const StepCheck check(step, "float_lstm", error);
  if (checked && !check_float_step(check, step)) return check.status();
  const auto& p = check.params_as<format::FloatLstmParams>();
  args.shape = lstm_shape(step, p.coupled(), p.time_major());
  args.input = static_cast<const float*>(step.input_data(kInput));
  args.input_weights = step.input_data(kInputWeights);
  args.recurrent_weights = step.input_data(kRecurrentWeights);
  args.bias = static_cast<const float*>(step.input_data(kBias));
  args.input_scales = static_cast<const float*>(step.input_data(kScales));
  args.recurrent_scales = args.input_scales + args.shape.num_gates;
  args.first_output = static_cast<const float*>(step.input_data(kFirstOutput));
  args.first_cell = static_cast<const float*>(step.input_data(kFirstCell));
  args.output = static_cast<float*>(step.output_data(kOutput));
  args.last_output = static_cast<float*>(step.output_data(kLastOutput));
  args.last_cell = static_cast<float*>(step.output_data(kLastCell));
  args.cell_clip = p.cell_clip();
  args.is_hybrid = p.hybrid();
  args.symmetric = p.symmetric();
  args.weights_layout = p.weights_layout();
  return QPLAN_OK;
}

// ---- both ----

template <typename Args>
uint64_t work(const Args& args) {
  const LstmShape& shape = args.shape;
  return saturating_product(shape.batch, shape.steps, lstm_rows(shape),
                            uint64_t{shape.input_c} + shape.cells + 1);
}

// A sample's state is read before its first step, element by element.
bool in_place(const StepView&, uint32_t output, uint32_t input) {
  return (output == kLastOutput && input == kFirstOutput) || (output == kLastCell && input == kFirstCell);
}

constexpr KernelVariant kVariants[] = {
#define QPLAN_VARIANT(name, isa) QPLAN_VARIANT_ROW(LstmArgs, name, isa),
    QPLAN_LSTM_VARIANTS
#undef QPLAN_VARIANT
};
constexpr KernelVariant kReference[] = {QPLAN_VARIANT_ROW(LstmArgs, lstm_ref, QPLAN_ISA_REFERENCE)};
constexpr KernelVariant kFloatForms[] = {
#define QPLAN_VARIANT(name, isa) QPLAN_VARIANT_ROW(FloatLstmArgs, name, isa),
    QPLAN_FLOAT_LSTM_VARIANTS
#undef QPLAN_VARIANT
};

// The variants of both forms, of weights of float32 and of int8, each of which stands best first. Neither
// form has one for every instruction set of the other.
struct FloatVariants {
  KernelVariant rows[sizeof(kFloatForms) / sizeof(kFloatForms[0])];
};
constexpr FloatVariants best_first() {
  FloatVariants sorted = {};
  uint32_t count = 0;
  for (const KernelVariant& variant : kFloatForms) {
    uint32_t at = count++;
    for (; at > 0 && sorted.rows[at - 1].isa < variant.isa; --at) sorted.rows[at] = sorted.rows[at - 1];
    sorted.rows[at] = variant;
  }
  return sorted;
}
constexpr FloatVariants kFloatVariants = best_first();
constexpr KernelVariant kFloatReference[] = {
    QPLAN_VARIANT_ROW(FloatLstmArgs, float_lstm_ref, QPLAN_ISA_REFERENCE)};

}  // namespace

constexpr KernelFamily kLstmFamily =
    make_family<LstmArgs, bind, in_place, work<LstmArgs>>(kKernel_lstm, "lstm", kVariants);
constexpr KernelFamily kLstmFamilyReference =
    make_family<LstmArgs, bind, in_place, work<LstmArgs>>(kKernel_lstm, "lstm", kReference);
constexpr KernelFamily kFloatLstmFamily =
    make_family<FloatLstmArgs, bind_float, in_place, work<FloatLstmArgs>>(kKernel_float_lstm, "float_lstm",
                                                                          kFloatVariants.rows);
constexpr KernelFamily kFloatLstmFamilyReference =
    make_family<FloatLstmArgs, bind_float, in_place, work<FloatLstmArgs>>(kKernel_float_lstm, "float_lstm",
                                                                          kFloatReference);

}  // namespace qplan
