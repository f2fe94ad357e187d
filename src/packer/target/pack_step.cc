#include <cmath>
#include <type_traits>
#include <vector>

#include "src/packer/target/program.h"

namespace qplan::target {
namespace {

using flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;

// ---- tables of parameters ----

// for_each_field(params, visit): visit(value, add) for each field of the table; `add` is the function of the
// table's builder that writes the value.
#define QPLAN_PARAMS(table)                                                                        \
  template <typename Visit>                                                                        \
  void for_each_field([[maybe_unused]] const table& params, [[maybe_unused]] const Visit& visit) { \
    using Builder [[maybe_unused]] = format::table##Builder;
#define QPLAN_FIELD(type, name, shown) visit(params.name, &Builder::add_##name);
#define QPLAN_FLOAT_EPILOGUES(name)                      \
  visit(params.name.form, &Builder::add_float_epilogue); \
  visit(params.name.scale, &Builder::add_float_scale);   \
  visit(params.name.offset, &Builder::add_float_offset);
#define QPLAN_PARAMS_END(table) }
#include "src/packer/target/step_params.def"

// What is written before its table, as what: a vector or a string.
template <typename T>
struct Referenced {
  static constexpr bool kIs = false;
};
template <typename T>
struct Referenced<std::vector<T>> {
  static constexpr bool kIs = true;
  using Type = flatbuffers::Vector<T>;
};
template <>
struct Referenced<std::string> {
  static constexpr bool kIs = true;
  using Type = flatbuffers::String;
};
template <>
struct Referenced<std::vector<CustomOption>> {
  static constexpr bool kIs = true;
  using Type = flatbuffers::Vector<Offset<format::CustomOption>>;
};
template <typename T>
inline constexpr bool kIsReferenced = Referenced<std::decay_t<T>>::kIs;

template <typename Integer>
Offset<flatbuffers::Vector<Integer>> pack_vector(const std::vector<Integer>& values,
                                                 FlatBufferBuilder& builder) {
  return builder.CreateVector(values);
}

// A float epilogue's; absent where there is no form. Kernels load 16 entries at a time.
constexpr size_t kEpilogueAlignment = 64;
static_assert(kEpilogueAlignment <= FLATBUFFERS_MAX_ALIGNMENT,
              "FlatBuffers' assertions refuse it (QplanThirdParty.cmake)");
Offset<flatbuffers::Vector<float>> pack_vector(const std::vector<float>& values, FlatBufferBuilder& builder) {
  if (values.empty()) return 0;
  builder.ForceVectorAlignment(values.size(), sizeof(float), kEpilogueAlignment);
  return builder.CreateVector(values);
}

Offset<flatbuffers::String> pack_vector(const std::string& text, FlatBufferBuilder& builder) {
  return builder.CreateString(text);
}

Offset<flatbuffers::Vector<Offset<format::CustomOption>>> pack_vector(
    const std::vector<CustomOption>& options, FlatBufferBuilder& builder) {
  std::vector<Offset<format::CustomOption>> packed;
  for (const CustomOption& option : options) {
    const auto name = builder.CreateString(option.name);
    const auto numbers = builder.CreateVector(option.numbers);
    const auto text = option.text ? builder.CreateString(*option.text) : Offset<flatbuffers::String>();
    packed.push_back(format::CreateCustomOption(builder, name, numbers, text));
  }
  return builder.CreateVector(packed);
}

// A -0 equals the default of its field, 0, and would be left out like one.
template <typename T>
bool is_negative_zero([[maybe_unused]] T value) {
  if constexpr (std::is_floating_point_v<T>) return value == 0 && std::signbit(value);
  return false;
}

// Vectors are written before the table begins, and are the last of the fields that are added.
template <typename TableBuilder, typename Params>
auto pack_table(const Params& params, FlatBufferBuilder& builder) {
  std::vector<flatbuffers::uoffset_t> vectors;
  for_each_field(params, [&](const auto& value, auto) {
    if constexpr (kIsReferenced<decltype(value)>) vectors.push_back(pack_vector(value, builder).o);
  });
  TableBuilder table(builder);
  for_each_field(params, [&](const auto& value, auto add) {
    if constexpr (!kIsReferenced<decltype(value)>) {
      builder.ForceDefaults(is_negative_zero(value));
      (table.*add)(value);
    }
  });
  builder.ForceDefaults(false);
  size_t next = 0;
  for_each_field(params, [&](const auto& value, auto add) {
    if constexpr (kIsReferenced<decltype(value)>)
      (table.*add)(Offset<typename Referenced<std::decay_t<decltype(value)>>::Type>(vectors[next++]));
  });
  return table.Finish();
}

// The fields of layers are packed below.
#define QPLAN_PARAMS(table)                                                                      \
  [[maybe_unused]] Offset<format::table> pack(const table& params, FlatBufferBuilder& builder) { \
    return pack_table<format::table##Builder>(params, builder);                                  \
  }
#include "src/packer/target/step_params.def"

// ---- steps ----

// The parameters that a step of layers has are its layers, which call `pack_call` again.
Offset<void> pack_layers(const ProgramStep& cascade, size_t num_tensors, FlatBufferBuilder& builder);

Offset<void> pack_params(const ProgramStep& step, size_t num_tensors, FlatBufferBuilder& builder) {
  switch (step.params.type()) {
#define QPLAN_PARAMS(table)                                       \
  case kParamsType<table>:                                        \
    if constexpr (std::is_same_v<table, CascadeParams>) {         \
      return pack_layers(step, num_tensors, builder);             \
    } else {                                                      \
      return pack(*step.params.get_if<table>(), builder).Union(); \
    }
#include "src/packer/target/step_params.def"
    case format::KernelParams_NONE:
      break;
  }
  return 0;
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
  if (step.residual) call.residual = pack(step.residual->sum, builder);
  return call;
}

void add_call(const ProgramStep& step, const PackedCall& call, format::KernelStepBuilder* table) {
  table->add_kernel(step.kernel);
  table->add_inputs(call.inputs);
  table->add_outputs(call.outputs);
  table->add_params_type(step.params.type());
  table->add_params(call.params);
  table->add_residual(call.residual);
  table->add_residual_is_input1(step.residual && step.residual->is_input1);
}

Offset<void> pack_layers(const ProgramStep& cascade, size_t num_tensors, FlatBufferBuilder& builder) {
  std::vector<Offset<format::KernelStep>> layers;
  for (const ProgramStep& layer : cascade.layers) {
    const PackedCall call = pack_call(layer, num_tensors, builder);
    format::KernelStepBuilder table(builder);
    add_call(layer, call, &table);
    layers.push_back(table.Finish());
  }
  std::vector<Offset<format::Tensor>> tiles;
  for (const ProgramTensor& tile : cascade.tiles) tiles.push_back(pack_tile(tile, builder));
  const auto layer_vector = builder.CreateVector(layers);
  const auto tile_vector = builder.CreateVector(tiles);
  const CascadeParams& params = *cascade.params.get_if<CascadeParams>();
  return format::CreateCascadeParams(builder, layer_vector, tile_vector, params.keeps_arguments,
                                     params.binds_in_scratch)
      .Union();
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

bool StepParams::operator==(const StepParams& other) const {
  if (type_ != other.type_) return false;
  if (table_ == other.table_) return true;
  switch (type_) {
#define QPLAN_PARAMS(table) \
  case kParamsType<table>:  \
    return *get_if<table>() == *other.get_if<table>();
#include "src/packer/target/step_params.def"
    case format::KernelParams_NONE:
      break;
  }
  return true;
}

}  // namespace qplan::target
