#include "src/packer/target/pack_step.h"

#include <vector>

namespace qplan::target {
namespace {

using flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;

// StepParams has its alternatives in the order of the schema's union.
#define QPLAN_KERNEL(id, family, descriptor, Params)                                                      \
  static_assert(                                                                                          \
      std::is_same_v<                                                                                     \
          std::variant_alternative_t<format::KernelParamsTraits<format::Params>::enum_value, StepParams>, \
          Params>);
#include "format/kernels.def"
#undef QPLAN_KERNEL

// ---- one function for each table of parameters; fields in the schema's order ----

struct FloatVectors {
  Offset<flatbuffers::Vector<float>> scale, offset;
};

FloatVectors pack_vectors(const FloatForms& forms, FlatBufferBuilder& builder) {
  if (forms.form == format::FloatForm_NONE) return {};
  FloatVectors vectors;
  // Kernels load 16 entries at a time.
  builder.ForceVectorAlignment(forms.scale.size(), sizeof(float), 64);
  vectors.scale = builder.CreateVector(forms.scale);
  builder.ForceVectorAlignment(forms.offset.size(), sizeof(float), 64);
  vectors.offset = builder.CreateVector(forms.offset);
  return vectors;
}

template <typename TableBuilder>
void add_float_forms(const FloatForms& forms, const FloatVectors& vectors, TableBuilder* table) {
  if (forms.form == format::FloatForm_NONE) return;
  table->add_float_form(forms.form);
  table->add_float_scale(vectors.scale);
  table->add_float_offset(vectors.offset);
}

Offset<void> pack(const std::monostate&, FlatBufferBuilder&) { return 0; }

Offset<void> pack(const Conv2dParams& p, FlatBufferBuilder& builder) {
  const FloatVectors vectors = pack_vectors(p.float_forms, builder);
  format::Conv2dParamsBuilder table(builder);
  table.add_contract(p.contract);
  table.add_weights_layout(p.weights_layout);
  table.add_kernel_h(p.kernel_h);
  table.add_kernel_w(p.kernel_w);
  table.add_stride_h(p.stride_h);
  table.add_stride_w(p.stride_w);
  table.add_dilation_h(p.dilation_h);
  table.add_dilation_w(p.dilation_w);
  table.add_pad_top(p.pad_top);
  table.add_pad_left(p.pad_left);
  table.add_groups(p.groups);
  table.add_input_zero_point(p.input_zero_point);
  table.add_weights_zero_point(p.weights_zero_point);
  table.add_pad_value(p.pad_value);
  table.add_output_zero_point(p.output_zero_point);
  table.add_clamp_min(p.clamp_min);
  table.add_clamp_max(p.clamp_max);
  add_float_forms(p.float_forms, vectors, &table);
  return table.Finish().Union();
}

Offset<void> pack(const FullyConnectedParams& p, FlatBufferBuilder& builder) {
  const FloatVectors vectors = pack_vectors(p.float_forms, builder);
  format::FullyConnectedParamsBuilder table(builder);
  table.add_contract(p.contract);
  table.add_weights_layout(p.weights_layout);
  table.add_input_zero_point(p.input_zero_point);
  table.add_weights_zero_point(p.weights_zero_point);
  table.add_output_zero_point(p.output_zero_point);
  table.add_clamp_min(p.clamp_min);
  table.add_clamp_max(p.clamp_max);
  add_float_forms(p.float_forms, vectors, &table);
  return table.Finish().Union();
}

Offset<void> pack(const Pool2dParams& p, FlatBufferBuilder& builder) {
  format::Pool2dParamsBuilder table(builder);
  table.add_contract(p.contract);
  table.add_pool_h(p.pool_h);
  table.add_pool_w(p.pool_w);
  table.add_stride_h(p.stride_h);
  table.add_stride_w(p.stride_w);
  table.add_pad_top(p.pad_top);
  table.add_pad_left(p.pad_left);
  table.add_clamp_min(p.clamp_min);
  table.add_clamp_max(p.clamp_max);
  table.add_input_scale(p.input_scale);
  table.add_input_zero_point(p.input_zero_point);
  table.add_output_scale(p.output_scale);
  table.add_output_zero_point(p.output_zero_point);
  table.add_count_include_pad(p.count_include_pad);
  return table.Finish().Union();
}

Offset<format::AddParams> pack_add(const AddParams& p, FlatBufferBuilder& builder) {
  format::AddParamsBuilder table(builder);
  table.add_contract(p.contract);
  table.add_left_shift(p.left_shift);
  table.add_input1_zero_point(p.input1_zero_point);
  table.add_input1_multiplier(p.input1_multiplier);
  table.add_input1_shift(p.input1_shift);
  table.add_input2_zero_point(p.input2_zero_point);
  table.add_input2_multiplier(p.input2_multiplier);
  table.add_input2_shift(p.input2_shift);
  table.add_output_zero_point(p.output_zero_point);
  table.add_output_multiplier(p.output_multiplier);
  table.add_output_shift(p.output_shift);
  table.add_clamp_min(p.clamp_min);
  table.add_clamp_max(p.clamp_max);
  table.add_input1_scale(p.input1_scale);
  table.add_input2_scale(p.input2_scale);
  table.add_output_scale(p.output_scale);
  table.add_float_scale1(p.float_scale1);
  table.add_float_scale2(p.float_scale2);
  table.add_float_offset(p.float_offset);
  return table.Finish();
}

Offset<void> pack(const AddParams& p, FlatBufferBuilder& builder) { return pack_add(p, builder).Union(); }

Offset<void> pack(const MulParams& p, FlatBufferBuilder& builder) {
  format::MulParamsBuilder table(builder);
  table.add_contract(p.contract);
  table.add_input1_zero_point(p.input1_zero_point);
  table.add_input2_zero_point(p.input2_zero_point);
  table.add_output_zero_point(p.output_zero_point);
  table.add_output_multiplier(p.output_multiplier);
  table.add_output_shift(p.output_shift);
  table.add_clamp_min(p.clamp_min);
  table.add_clamp_max(p.clamp_max);
  table.add_input1_scale(p.input1_scale);
  table.add_input2_scale(p.input2_scale);
  table.add_output_scale(p.output_scale);
  return table.Finish().Union();
}

Offset<void> pack(const MeanParams& p, FlatBufferBuilder& builder) {
  format::MeanParamsBuilder table(builder);
  table.add_contract(p.contract);
  table.add_axes(p.axes);
  table.add_input_zero_point(p.input_zero_point);
  table.add_output_zero_point(p.output_zero_point);
  table.add_output_multiplier(p.output_multiplier);
  table.add_output_shift(p.output_shift);
  table.add_scale(p.scale);
  return table.Finish().Union();
}

Offset<void> pack(const SoftmaxParams& p, FlatBufferBuilder& builder) {
  format::SoftmaxParamsBuilder table(builder);
  table.add_contract(p.contract);
  table.add_input_multiplier(p.input_multiplier);
  table.add_input_left_shift(p.input_left_shift);
  table.add_diff_min(p.diff_min);
  table.add_output_scale(p.output_scale);
  table.add_output_zero_point(p.output_zero_point);
  return table.Finish().Union();
}

Offset<void> pack(const Lut8Params&, FlatBufferBuilder& builder) {
  return format::Lut8ParamsBuilder(builder).Finish().Union();
}

Offset<void> pack(const QuantizeParams& p, FlatBufferBuilder& builder) {
  format::QuantizeParamsBuilder table(builder);
  table.add_rule(p.rule);
  table.add_scale(p.scale);
  table.add_zero_point(p.zero_point);
  return table.Finish().Union();
}

Offset<void> pack(const DequantizeParams& p, FlatBufferBuilder& builder) {
  format::DequantizeParamsBuilder table(builder);
  table.add_scale(p.scale);
  table.add_zero_point(p.zero_point);
  return table.Finish().Union();
}

Offset<void> pack(const RequantizeParams& p, FlatBufferBuilder& builder) {
  const FloatVectors vectors = pack_vectors(p.float_forms, builder);
  format::RequantizeParamsBuilder table(builder);
  table.add_contract(p.contract);
  table.add_input_zero_point(p.input_zero_point);
  table.add_output_zero_point(p.output_zero_point);
  table.add_multiplier(p.multiplier);
  table.add_shift(p.shift);
  table.add_clamp_min(p.clamp_min);
  table.add_clamp_max(p.clamp_max);
  table.add_scale(p.scale);
  table.add_axis(p.axis);
  add_float_forms(p.float_forms, vectors, &table);
  return table.Finish().Union();
}

Offset<void> pack(const PadParams& p, FlatBufferBuilder& builder) {
  return format::CreatePadParams(builder, builder.CreateVector(p.before), p.value).Union();
}

Offset<void> pack(const TransposeParams& p, FlatBufferBuilder& builder) {
  return format::CreateTransposeParams(builder, builder.CreateVector(p.permutation)).Union();
}

Offset<void> pack(const ConcatParams& p, FlatBufferBuilder& builder) {
  return format::CreateConcatParams(builder, p.axis).Union();
}

Offset<void> pack(const SplitParams& p, FlatBufferBuilder& builder) {
  return format::CreateSplitParams(builder, p.axis).Union();
}

Offset<void> pack(const ResizeBilinearParams& p, FlatBufferBuilder& builder) {
  format::ResizeBilinearParamsBuilder table(builder);
  table.add_rule(p.rule);
  table.add_align_corners(p.align_corners);
  table.add_half_pixel_centers(p.half_pixel_centers);
  return table.Finish().Union();
}

Offset<void> pack(const ArgMaxParams& p, FlatBufferBuilder& builder) {
  return format::CreateArgMaxParams(builder, p.axis).Union();
}

Offset<void> pack(const CopyParams&, FlatBufferBuilder& builder) {
  return format::CopyParamsBuilder(builder).Finish().Union();
}

// ---- steps ----

// The parameters that a step of layers has are its layers, which call `pack_call` again.
Offset<void> pack_layers(const ProgramStep& chain, size_t num_tensors, FlatBufferBuilder& builder);

Offset<void> pack_params(const ProgramStep& step, size_t num_tensors, FlatBufferBuilder& builder) {
  return std::visit(
      [&](const auto& params) -> Offset<void> {
        if constexpr (std::is_same_v<std::decay_t<decltype(params)>, ChainParams>) {
          return pack_layers(step, num_tensors, builder);
        } else {
          return pack(params, builder);
        }
      },
      step.params);
}

// A tile is numbered from the plan's last tensor on.
std::vector<uint32_t> plan_tensors(std::vector<TensorId> tensors, size_t num_tensors) {
  for (TensorId& tensor : tensors) {
    if (tensor >= kFirstTile) tensor += static_cast<uint32_t>(num_tensors) - kFirstTile;
  }
  return tensors;
}

struct PackedCall {
  Offset<flatbuffers::Vector<uint32_t>> inputs, outputs;
  Offset<void> params;
  Offset<format::AddParams> residual;
};

PackedCall pack_call(const ProgramStep& step, size_t num_tensors, FlatBufferBuilder& builder) {
  PackedCall call;
  call.inputs = builder.CreateVector(plan_tensors(step.inputs, num_tensors));
  call.outputs = builder.CreateVector(plan_tensors(step.outputs, num_tensors));
  call.params = pack_params(step, num_tensors, builder);
  if (step.residual) call.residual = pack_add(step.residual->sum, builder);
  return call;
}

void add_call(const ProgramStep& step, const PackedCall& call, format::KernelStepBuilder* table) {
  table->add_kernel(step.kernel);
  table->add_inputs(call.inputs);
  table->add_outputs(call.outputs);
  table->add_params_type(type_of(step.params));
  table->add_params(call.params);
  table->add_residual(call.residual);
  table->add_residual_is_input1(step.residual && step.residual->is_input1);
}

Offset<void> pack_layers(const ProgramStep& chain, size_t num_tensors, FlatBufferBuilder& builder) {
  std::vector<Offset<format::KernelStep>> stages;
  for (const ProgramStep& stage : chain.stages) {
    const PackedCall call = pack_call(stage, num_tensors, builder);
    format::KernelStepBuilder table(builder);
    add_call(stage, call, &table);
    stages.push_back(table.Finish());
  }
  std::vector<Offset<format::Tensor>> tiles;
  for (const ProgramTensor& tile : chain.tiles) tiles.push_back(pack_tile(tile, builder));
  const auto stage_vector = builder.CreateVector(stages);
  const auto tile_vector = builder.CreateVector(tiles);
  return format::CreateChainParams(builder, stage_vector, tile_vector).Union();
}

}  // namespace

Offset<format::KernelStep> pack_kernel_step(const ProgramStep& step, size_t num_tensors,
                                            FlatBufferBuilder& builder) {
  const PackedCall call = pack_call(step, num_tensors, builder);
  format::KernelStepBuilder table(builder);
  add_call(step, call, &table);
  table.add_macs(step.macs);
  table.add_min_units_per_task(step.min_units_per_task);
  table.add_schedule(step.schedule.bytes);
  return table.Finish();
}

Offset<format::Tensor> pack_tile(const ProgramTensor& tile, FlatBufferBuilder& builder) {
  const auto shape = builder.CreateVector(tile.type.shape);
  format::TensorBuilder table(builder);
  table.add_type_code(tile.type.dtype.code);
  table.add_type_bits(tile.type.dtype.bits);
  table.add_shape(shape);
  table.add_size(static_cast<uint64_t>(tile.type.size_bytes()));
  return table.Finish();
}

}  // namespace qplan::target
