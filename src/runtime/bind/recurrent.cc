// Kernel argument binding of layers that carry a state over a sequence (kernels/recurrent/).
#include "kernels/recurrent/recurrent.h"

#include "kernels/float/float.h"
#include "kernels/layout.h"
#include "src/runtime/bind/family.h"
#include "src/runtime/bind/step_check.h"

namespace qplan {

namespace {

// ---- lstm, float_lstm: operands ----

// float_lstm has one bias, and the scales of its weights in the place of the second.
enum LstmInput : uint32_t {
  kLstmInput,
  kLstmInputWeights,
  kLstmRecurrentWeights,
  kLstmInputBias,
  kLstmRecurrentBias,
  kLstmFirstOutput,
  kLstmFirstCell,
  kLstmNumInputs,
  kLstmBias = kLstmInputBias,
  kLstmScales = kLstmRecurrentBias,
};
enum LstmOutput : uint32_t { kLstmOutput, kLstmLastOutput, kLstmLastCell, kLstmNumOutputs };

// Fills the shape from tensors that need not have been checked.
LstmShape lstm_shape(const StepView& step, bool is_coupled, bool time_major) {
  const Shape input = shape_of(step.input(kLstmInput));
  LstmShape shape;
  shape.time_major = time_major;
  shape.num_gates = is_coupled ? kLstmGates - 1 : kLstmGates;
  shape.batch = input[time_major ? 1 : 0];
  shape.steps = input[time_major ? 0 : 1];
  shape.input_c = input[2];
  shape.cells = shape_of(step.input(kLstmFirstCell))[1];
  return shape;
}

bool check_lstm_tensors(const StepCheck& check, const StepView& step, bool is_coupled, bool time_major,
                        Dtype data, Dtype cell) {
  Shape input, output, states[4];
  if (!check.input(kLstmInput, "input", dtype_bit(data), 3, &input) ||
      !check.output(kLstmOutput, "output", dtype_bit(data), 3, &output) ||
      !check.input(kLstmFirstOutput, "first output state", dtype_bit(data), 2, &states[0]) ||
      !check.input(kLstmFirstCell, "first cell state", dtype_bit(cell), 2, &states[1]) ||
      !check.output(kLstmLastOutput, "last output state", dtype_bit(data), 2, &states[2]) ||
      !check.output(kLstmLastCell, "last cell state", dtype_bit(cell), 2, &states[3])) {
    return false;
  }
  const LstmShape shape = lstm_shape(step, is_coupled, time_major);
  for (const Shape& state : states) {
    if (state[0] == shape.batch && state[1] == shape.cells) continue;
    return check.fail() << "a state of " << state[0] << " x " << state[1] << " is not of " << shape.batch
                        << " samples and " << shape.cells << " cells";
  }
  if (output[0] != input[0] || output[1] != input[1] || output[2] != shape.cells) {
    return check.fail_output(kLstmOutput, "output")
           << "is not the input's sequence with " << shape.cells << " channels";
  }
  return check.range("rows of the gates", int64_t{shape.num_gates} * shape.cells, 1, INT32_MAX) &&
         check.range("input channels", shape.input_c, 1, INT32_MAX);
}

// ---- lstm ----

bool check_gate_multipliers(const StepCheck& check, const char* name,
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

bool check_lstm(const StepCheck& check, const StepView& step) {
  if (!check.arity(kLstmNumInputs, kLstmNumOutputs) || !check.params(format::KernelParams_LstmParams))
    return false;
  const auto& p = check.params_as<format::LstmParams>();
  if (!check_lstm_tensors(check, step, p.coupled(), p.time_major(), Dtype::kS8, Dtype::kS16)) return false;
  const LstmShape shape = lstm_shape(step, p.coupled(), p.time_major());
  const uint64_t channels = layout_channels(p.weights_layout(), lstm_rows(shape));
  return check.layout(p.weights_layout(), kLayout_ohwi, kLayout_o16k4) &&
         check.constant(kLstmInputWeights, "input weights", Dtype::kS8,
                        layout_bytes(p.weights_layout(), lstm_rows(shape), shape.input_c)) &&
         check.constant(kLstmRecurrentWeights, "recurrent weights", Dtype::kS8,
                        layout_bytes(p.weights_layout(), lstm_rows(shape), shape.cells)) &&
         check.constant(kLstmInputBias, "input bias", Dtype::kS32, channels) &&
         check.constant(kLstmRecurrentBias, "recurrent bias", Dtype::kS32, channels) &&
         check_gate_multipliers(check, "input", p.input_multiplier(), p.input_shift(), shape.num_gates) &&
         check_gate_multipliers(check, "recurrent", p.recurrent_multiplier(), p.recurrent_shift(),
                                shape.num_gates) &&
         check.multiplier("output", p.output_multiplier(), p.output_shift()) &&
         check.in_dtype("output zero point", p.output_zero_point(), Dtype::kS8) &&
         check.range("cell_bits", p.cell_bits(), 9, 15) &&
         check.range("cell_clip", p.cell_clip(), 0, INT16_MAX);
}

qplan_status bind_lstm(const StepView& step, bool checked, LstmArgs& args, Error* error) {
  const StepCheck check(step, "lstm", error);
  if (checked && !check_lstm(check, step)) return check.status();
  const auto& p = check.params_as<format::LstmParams>();
  args.shape = lstm_shape(step, p.coupled(), p.time_major());
  args.input = static_cast<const int8_t*>(step.input_data(kLstmInput));
  args.input_weights = static_cast<const int8_t*>(step.input_data(kLstmInputWeights));
  args.recurrent_weights = static_cast<const int8_t*>(step.input_data(kLstmRecurrentWeights));
  args.input_bias = static_cast<const int32_t*>(step.input_data(kLstmInputBias));
  args.recurrent_bias = static_cast<const int32_t*>(step.input_data(kLstmRecurrentBias));
  args.first_output = static_cast<const int8_t*>(step.input_data(kLstmFirstOutput));
  args.first_cell = static_cast<const int16_t*>(step.input_data(kLstmFirstCell));
  args.output = static_cast<int8_t*>(step.output_data(kLstmOutput));
  args.last_output = static_cast<int8_t*>(step.output_data(kLstmLastOutput));
  args.last_cell = static_cast<int16_t*>(step.output_data(kLstmLastCell));
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
bool check_float_lstm_constants(const StepCheck& check, const LstmShape& shape, bool is_hybrid,
                                uint16_t layout) {
  const uint64_t rows = lstm_rows(shape), padded = (rows + kFloatBlock - 1) / kFloatBlock * kFloatBlock;
  const Dtype dtype = is_hybrid ? Dtype::kS8 : Dtype::kF32;
  if (is_hybrid ? !check.layout(layout, kLayout_ohwi, kLayout_o16k4) : !check.layout(layout, kLayout_ohwi))
    return false;
  const auto stored = [&](uint64_t count) {
    return is_hybrid ? layout_bytes(layout, rows, count) : padded * count;
  };
  return check.constant(kLstmInputWeights, "input weights", dtype, stored(shape.input_c)) &&
         check.constant(kLstmRecurrentWeights, "recurrent weights", dtype, stored(shape.cells)) &&
         check.constant(kLstmBias, "bias", Dtype::kF32, padded) &&
         check.constant(kLstmScales, "weight scales", Dtype::kF32, uint64_t{2} * shape.num_gates);
}

bool check_float_lstm(const StepCheck& check, const StepView& step) {
  if (!check.arity(kLstmNumInputs, kLstmNumOutputs) || !check.params(format::KernelParams_FloatLstmParams))
    return false;
  const auto& p = check.params_as<format::FloatLstmParams>();
  if (!check_lstm_tensors(check, step, p.coupled(), p.time_major(), Dtype::kF32, Dtype::kF32)) return false;
  return check_float_lstm_constants(check, lstm_shape(step, p.coupled(), p.time_major()), p.hybrid(),
                                    p.weights_layout()) &&
         check.float_clamp(0.0f, p.cell_clip());
}

qplan_status bind_float_lstm(const StepView& step, bool checked, FloatLstmArgs& args, Error* error) {
  const StepCheck check(step, "float_lstm", error);
  if (checked && !check_float_lstm(check, step)) return check.status();
  const auto& p = check.params_as<format::FloatLstmParams>();
  args.shape = lstm_shape(step, p.coupled(), p.time_major());
  args.input = static_cast<const float*>(step.input_data(kLstmInput));
  args.input_weights = step.input_data(kLstmInputWeights);
  args.recurrent_weights = step.input_data(kLstmRecurrentWeights);
  args.bias = static_cast<const float*>(step.input_data(kLstmBias));
  args.input_scales = static_cast<const float*>(step.input_data(kLstmScales));
  args.recurrent_scales = args.input_scales + args.shape.num_gates;
  args.first_output = static_cast<const float*>(step.input_data(kLstmFirstOutput));
  args.first_cell = static_cast<const float*>(step.input_data(kLstmFirstCell));
  args.output = static_cast<float*>(step.output_data(kLstmOutput));
  args.last_output = static_cast<float*>(step.output_data(kLstmLastOutput));
  args.last_cell = static_cast<float*>(step.output_data(kLstmLastCell));
  args.cell_clip = p.cell_clip();
  args.is_hybrid = p.hybrid();
  args.symmetric = p.symmetric();
  args.weights_layout = p.weights_layout();
  return QPLAN_OK;
}

// ---- lstm, float_lstm ----

template <typename Args>
uint64_t lstm_work(const Args& args) {
  const LstmShape& shape = args.shape;
  return saturating_product(shape.batch, shape.steps, lstm_rows(shape),
                            uint64_t{shape.input_c} + shape.cells + 1);
}

// A sample's state is read before its first step, element by element.
bool lstm_in_place(const StepView&, uint32_t output, uint32_t input) {
  return (output == kLstmLastOutput && input == kLstmFirstOutput) ||
         (output == kLstmLastCell && input == kLstmFirstCell);
}

constexpr KernelVariant kLstmVariants[] = {
#define QPLAN_VARIANT(name, isa) QPLAN_VARIANT_ROW(LstmArgs, name, isa),
    QPLAN_LSTM_VARIANTS
#undef QPLAN_VARIANT
};
constexpr KernelVariant kLstmReference[] = {QPLAN_VARIANT_ROW(LstmArgs, lstm_ref, QPLAN_ISA_REFERENCE)};
constexpr KernelVariant kFloatLstmForms[] = {
#define QPLAN_VARIANT(name, isa) QPLAN_VARIANT_ROW(FloatLstmArgs, name, isa),
    QPLAN_FLOAT_LSTM_VARIANTS
#undef QPLAN_VARIANT
};

// The variants of both forms, of weights of float32 and of int8, each of which stands best first. Neither
// form has one for every instruction set of the other.
struct FloatLstmVariants {
  KernelVariant rows[sizeof(kFloatLstmForms) / sizeof(kFloatLstmForms[0])];
};
constexpr FloatLstmVariants best_first() {
  FloatLstmVariants sorted = {};
  uint32_t count = 0;
  for (const KernelVariant& variant : kFloatLstmForms) {
    uint32_t at = count++;
    for (; at > 0 && sorted.rows[at - 1].isa < variant.isa; --at) sorted.rows[at] = sorted.rows[at - 1];
    sorted.rows[at] = variant;
  }
  return sorted;
}
constexpr FloatLstmVariants kFloatLstmVariants = best_first();
constexpr KernelVariant kFloatLstmReference[] = {
    QPLAN_VARIANT_ROW(FloatLstmArgs, float_lstm_ref, QPLAN_ISA_REFERENCE)};

}  // namespace

constexpr KernelFamily kLstmFamily =
    make_family<LstmArgs, bind_lstm, lstm_in_place, lstm_work<LstmArgs>>(kKernel_lstm, "lstm", kLstmVariants);
constexpr KernelFamily kLstmFamilyReference =
    make_family<LstmArgs, bind_lstm, lstm_in_place, lstm_work<LstmArgs>>(kKernel_lstm, "lstm",
                                                                         kLstmReference);
constexpr KernelFamily kFloatLstmFamily =
    make_family<FloatLstmArgs, bind_float_lstm, lstm_in_place, lstm_work<FloatLstmArgs>>(
        kKernel_float_lstm, "float_lstm", kFloatLstmVariants.rows);
constexpr KernelFamily kFloatLstmFamilyReference =
    make_family<FloatLstmArgs, bind_float_lstm, lstm_in_place, lstm_work<FloatLstmArgs>>(
        kKernel_float_lstm, "float_lstm", kFloatLstmReference);

// ---- float_gru ----

namespace {

enum GruInput : uint32_t {
  kGruInput,
  kGruInputWeights,
  kGruRecurrentWeights,
  kGruInputBias,
  kGruRecurrentBias,
  kGruFirstState,
  kGruNumInputs
};
enum GruOutput : uint32_t { kGruOutput, kGruLastState, kGruNumOutputs };

bool check_float_gru(const StepCheck& check) {
  if (!check.arity(kGruNumInputs, kGruNumOutputs) || !check.params(format::KernelParams_FloatGruParams))
    return false;
  constexpr auto kFloats = dtype_bit(Dtype::kF32);
  Shape input, output, first, last;
  if (!check.input(kGruInput, "input", kFloats, 3, &input) ||
      !check.output(kGruOutput, "output", kFloats, 3, &output) ||
      !check.input(kGruFirstState, "first state", kFloats, 2, &first) ||
      !check.output(kGruLastState, "last state", kFloats, 2, &last)) {
    return false;
  }
  const bool time_major = check.params_as<format::FloatGruParams>().time_major();
  const uint32_t batch = input[time_major ? 1 : 0], cells = first[1];
  for (const Shape& state : {first, last}) {
    if (state[0] == batch && state[1] == cells) continue;
    return check.fail() << "a state of " << state[0] << " x " << state[1] << " is not of " << batch
                        << " samples and " << cells << " cells";
  }
  if (output[0] != input[0] || output[1] != input[1] || output[2] != cells) {
    return check.fail_output(kGruOutput, "output")
           << "is not the input's sequence with " << cells << " channels";
  }
  const uint64_t rows = uint64_t{kGruGates} * cells;
  const uint64_t padded = (rows + kFloatBlock - 1) / kFloatBlock * kFloatBlock;
  return check.range("rows of the gates", static_cast<int64_t>(rows), 1, INT32_MAX) &&
         check.range("input channels", input[2], 1, INT32_MAX) &&
         check.constant(kGruInputWeights, "input weights", Dtype::kF32, padded * input[2]) &&
         check.constant(kGruRecurrentWeights, "recurrent weights", Dtype::kF32, padded * cells) &&
         check.constant(kGruInputBias, "input bias", Dtype::kF32, padded) &&
         check.constant(kGruRecurrentBias, "recurrent bias", Dtype::kF32, padded);
}

qplan_status bind_float_gru(const StepView& step, bool checked, FloatGruArgs& args, Error* error) {
  const StepCheck check(step, "float_gru", error);
  if (checked && !check_float_gru(check)) return check.status();
  const auto& p = check.params_as<format::FloatGruParams>();
  const Shape input = shape_of(step.input(kGruInput));
  args.time_major = p.time_major();
  args.reset_after = p.reset_after();
  args.batch = input[args.time_major ? 1 : 0];
  args.steps = input[args.time_major ? 0 : 1];
  args.input_c = input[2];
  args.cells = shape_of(step.input(kGruFirstState))[1];
  args.input = static_cast<const float*>(step.input_data(kGruInput));
  args.input_weights = static_cast<const float*>(step.input_data(kGruInputWeights));
  args.recurrent_weights = static_cast<const float*>(step.input_data(kGruRecurrentWeights));
  args.input_bias = static_cast<const float*>(step.input_data(kGruInputBias));
  args.recurrent_bias = static_cast<const float*>(step.input_data(kGruRecurrentBias));
  args.first_state = static_cast<const float*>(step.input_data(kGruFirstState));
  args.output = static_cast<float*>(step.output_data(kGruOutput));
  args.last_state = static_cast<float*>(step.output_data(kGruLastState));
  return QPLAN_OK;
}

uint64_t float_gru_work(const FloatGruArgs& args) {
  return saturating_product(args.batch, args.steps, gru_rows(args), uint64_t{args.input_c} + args.cells + 1);
}

// A sample's state is read before its first step, element by element.
bool float_gru_in_place(const StepView&, uint32_t output, uint32_t input) {
  return output == kGruLastState && input == kGruFirstState;
}

constexpr KernelVariant kFloatGruVariants[] = {
#define QPLAN_VARIANT(name, isa) QPLAN_VARIANT_ROW(FloatGruArgs, name, isa),
    QPLAN_FLOAT_GRU_VARIANTS
#undef QPLAN_VARIANT
};
constexpr KernelVariant kFloatGruReference[] = {
    QPLAN_VARIANT_ROW(FloatGruArgs, float_gru_ref, QPLAN_ISA_REFERENCE)};

}  // namespace

constexpr KernelFamily kFloatGruFamily =
    make_family<FloatGruArgs, bind_float_gru, float_gru_in_place, float_gru_work>(
        kKernel_float_gru, "float_gru", kFloatGruVariants);
constexpr KernelFamily kFloatGruFamilyReference =
    make_family<FloatGruArgs, bind_float_gru, float_gru_in_place, float_gru_work>(
        kKernel_float_gru, "float_gru", kFloatGruReference);

// ---- svdf ----

namespace {

enum SvdfInput : uint32_t {
  kSvdfInput,
  kSvdfFeatureWeights,
  kSvdfTimeWeights,
  kSvdfFeatureBias,
  kSvdfBias,
  kSvdfFirstState,
  kSvdfNumInputs
};
enum SvdfOutput : uint32_t { kSvdfOutput, kSvdfLastState, kSvdfNumOutputs };

bool check_svdf(const StepCheck& check, const StepView& step) {
  Shape input, output, first, last;
  const uint32_t state_dtypes = dtype_bit(Dtype::kS8) | dtype_bit(Dtype::kS16);
  if (!check.arity(kSvdfNumInputs, kSvdfNumOutputs) || !check.params(format::KernelParams_SvdfParams) ||
      !check.input(kSvdfInput, "input", dtype_bit(Dtype::kS8), 2, &input) ||
      !check.output(kSvdfOutput, "output", dtype_bit(Dtype::kS8), 2, &output) ||
      !check.input(kSvdfFirstState, "first state", state_dtypes, 3, &first)) {
    return false;
  }
  const Dtype dtype = step.input(kSvdfFirstState).dtype;
  if (!check.output(kSvdfLastState, "last state", dtype_bit(dtype), 3, &last)) return false;
  const auto& p = check.params_as<format::SvdfParams>();
  if (first != last)
    return check.fail_output(kSvdfLastState, "last state") << "has another shape than the first";
  const uint64_t filters = first[1], memory = first[2];
  if (first[0] != input[0] || output[0] != input[0])
    return check.fail() << "input, state and output are not of as many samples";
  if (p.rank() == 0 || filters % p.rank() != 0 || output[1] != filters / p.rank()) {
    return check.fail() << filters << " filters of rank " << p.rank() << " do not make " << output[1]
                        << " units";
  }
  return check.range("filters of all samples", static_cast<int64_t>(input[0] * filters), 1, INT32_MAX) &&
         check.constant(kSvdfFeatureWeights, "feature weights", Dtype::kS8, filters * input[1]) &&
         check.constant(kSvdfTimeWeights, "time weights", dtype, filters * memory) &&
         check.constant(kSvdfFeatureBias, "feature bias", Dtype::kS32, filters) &&
         check.constant(kSvdfBias, "bias", Dtype::kS32, output[1]) &&
         check.multiplier("feature", p.feature_multiplier(), p.feature_shift()) &&
         check.multiplier("output", p.output_multiplier(), p.output_shift()) &&
         check.in_dtype("output zero point", p.output_zero_point(), Dtype::kS8);
}

qplan_status bind_svdf(const StepView& step, bool checked, SvdfArgs& args, Error* error) {
  const StepCheck check(step, "svdf", error);
  if (checked && !check_svdf(check, step)) return check.status();
  const auto& p = check.params_as<format::SvdfParams>();
  const Shape input = shape_of(step.input(kSvdfInput)), state = shape_of(step.input(kSvdfFirstState));
  args.input = static_cast<const int8_t*>(step.input_data(kSvdfInput));
  args.feature_weights = static_cast<const int8_t*>(step.input_data(kSvdfFeatureWeights));
  args.time_weights = step.input_data(kSvdfTimeWeights);
  args.feature_bias = static_cast<const int32_t*>(step.input_data(kSvdfFeatureBias));
  args.bias = static_cast<const int32_t*>(step.input_data(kSvdfBias));
  args.first_state = step.input_data(kSvdfFirstState);
  args.output = static_cast<int8_t*>(step.output_data(kSvdfOutput));
  args.last_state = step.output_data(kSvdfLastState);
  args.batch = input[0];
  args.input_c = input[1];
  args.filters = state[1];
  args.rank = p.rank();
  args.memory = state[2];
  args.feature_multiplier = p.feature_multiplier();
  args.feature_shift = p.feature_shift();
  args.output_multiplier = p.output_multiplier();
  args.output_shift = p.output_shift();
  args.output_zero_point = p.output_zero_point();
  args.state_dtype = step.input(kSvdfFirstState).dtype;
  return QPLAN_OK;
}

uint64_t svdf_work(const SvdfArgs& args) {
  return saturating_product(args.batch, args.filters, uint64_t{args.input_c} + args.memory + 1);
}

bool svdf_in_place(const StepView&, uint32_t output, uint32_t input) {
  return output == kSvdfLastState && input == kSvdfFirstState;
}

constexpr KernelVariant kSvdfVariants[] = {
#define QPLAN_VARIANT(name, isa) QPLAN_VARIANT_ROW(SvdfArgs, name, isa),
    QPLAN_SVDF_VARIANTS
#undef QPLAN_VARIANT
};

}  // namespace

constexpr KernelFamily kSvdfFamily =
    make_family<SvdfArgs, bind_svdf, svdf_in_place, svdf_work>(kKernel_svdf, "svdf", kSvdfVariants);
constexpr KernelFamily kSvdfFamilyReference = kSvdfFamily;

}  // namespace qplan
