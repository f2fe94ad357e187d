// What tools print of a step: its parameters as text, and what the cost model counts of it.
#include <algorithm>
#include <charconv>
#include <optional>

#include "kernels/cpu.h"
#include "kernels/layout.h"
#include "src/base/checked.h"
#include "src/packer/error.h"
#include "src/packer/inspect/inspect.h"
#include "src/packer/target/cost_file.h"
#include "src/packer/target/profile.h"
#include "src/runtime/cascade.h"

namespace qplan::inspect {
namespace {

using Fields = std::vector<std::pair<std::string, std::string>>;

// The shortest decimal that reads back as the same float.
template <typename Number>
std::string shortest(Number value) {
  char digits[32];
  return {digits, std::to_chars(digits, digits + sizeof(digits), value).ptr};
}
std::string text(float value) { return shortest(value); }
std::string text(double value) { return shortest(value); }
std::string text(bool value) { return value ? "true" : "false"; }
template <typename Integer>
std::string text(Integer value) {
  return std::to_string(value);
}
template <typename Integer>
std::string text(const flatbuffers::Vector<Integer>* values) {
  std::string result = "[";
  for (uint32_t i = 0; i < format::count_of(values); ++i) {
    result += (i == 0 ? "" : ", ") + std::to_string(values->Get(i));
  }
  return result + "]";
}
std::string text(const flatbuffers::String* value) { return value == nullptr ? "" : value->str(); }
std::string text(const flatbuffers::Vector<float>* values) {
  std::string result = "[";
  for (uint32_t i = 0; i < format::count_of(values); ++i)
    result += (i == 0 ? "" : ", ") + text(values->Get(i));
  return result + "]";
}
// "{max_detections=10, labels='a'}"
std::string text(const flatbuffers::Vector<flatbuffers::Offset<format::CustomOption>>* options) {
  std::string result = "{";
  for (uint32_t i = 0; i < format::count_of(options); ++i) {
    const format::CustomOption& option = *options->Get(i);
    result += (i == 0 ? "" : ", ") + text(option.name()) + "=";
    if (option.text() != nullptr) {
      result += "'" + text(option.text()) + "'";
      continue;
    }
    const uint32_t count = format::count_of(option.numbers());
    for (uint32_t k = 0; k < count; ++k)
      result += (k == 0 ? (count > 1 ? "[" : "") : ", ") + text(option.numbers()->Get(k));
    result += count == 0 ? "[]" : count > 1 ? "]" : "";
  }
  return result + "}";
}
std::string text(format::Contract contract) { return format::EnumNameContract(contract); }
std::string text(format::FloatEpilogue form) { return format::EnumNameFloatEpilogue(form); }
std::string text(format::QuantizeRule rule) { return format::EnumNameQuantizeRule(rule); }
std::string text(format::FloatPool pool) { return format::EnumNameFloatPool(pool); }
std::string text(format::FloatBinary op) { return format::EnumNameFloatBinary(op); }
std::string text(format::FloatUnary function) { return format::EnumNameFloatUnary(function); }
std::string text(format::ResizeRule rule) { return format::EnumNameResizeRule(rule); }

// ---- fields of tables (src/packer/target/step_params.def) ----

enum class Shown { always, integer, f32e, layout, never };

// Tables without a contract have fields that are always shown.
template <typename Table>
bool is_shown(const Table& table, Shown shown) {
  if constexpr (requires { table.contract(); }) {
    if (shown == Shown::f32e) return table.contract() == format::Contract_F32E;
    if (shown == Shown::integer) return table.contract() != format::Contract_F32E;
  }
  return shown != Shown::never;
}

template <typename T>
std::string field_text(T value, Shown shown) {
  if constexpr (std::is_same_v<T, uint16_t>) {
    if (shown == Shown::layout) return layout_name(value);
  }
  return text(value);
}

#define QPLAN_PARAMS(table)                                        \
  [[maybe_unused]] Fields fields_of(const format::table& params) { \
    Fields result;                                                 \
    (void)params;
#define QPLAN_FIELD(type, name, shown) \
  if (is_shown(params, Shown::shown)) result.emplace_back(#name, field_text(params.name(), Shown::shown));
#define QPLAN_FLOAT_EPILOGUES(name) result.emplace_back("float_epilogue", text(params.float_epilogue()));
#define QPLAN_PARAMS_END(table) \
  return result;                \
  }
#include "src/packer/target/step_params.def"

// "stage0": "conv2d {inputs=[3, 4, 5, 6, 7], ...}", ...; from the number of the plan's tensors on, tiles.
Fields fields_of_layers(const format::CascadeParams& p) {
  Fields result;
  for (uint32_t i = 0; i < p.layers()->size(); ++i) {
    const format::KernelStep& layer = *p.layers()->Get(i);
    std::string text_of_layer = kernel_name(layer.kernel()) + " {inputs=" + text(layer.inputs());
    for (const auto& [name, value] : step_params(layer)) text_of_layer += ", " + name + "=" + value;
    result.emplace_back("stage" + std::to_string(i), text_of_layer + "}");
    if (i < p.tiles()->size()) {
      const format::Tensor& tile = *p.tiles()->Get(i);
      result.emplace_back("tile" + std::to_string(i), dtype_text(tile) + " " + shape_text(tile));
    }
  }
  if (p.keeps_arguments()) result.emplace_back("keeps_arguments", "true");
  if (p.binds_in_scratch()) result.emplace_back("binds_in_scratch", "true");
  return result;
}

Fields params_fields(const format::KernelStep& step) {
  if (const auto* layers = step.params_as_CascadeParams()) return fields_of_layers(*layers);
  switch (step.kernel()) {
    // open() has checked that the table is the kernel's.
#define QPLAN_KERNEL(id, family, descriptor, Params, args_bytes) \
  case id:                                                       \
    return fields_of(*step.params_as_##Params());
#include "format/kernels.def"
#undef QPLAN_KERNEL
    default:
      return {};
  }
}

}  // namespace

std::vector<std::pair<std::string, std::string>> step_params(const format::KernelStep& step) {
  Fields result = params_fields(step);
  if (step.residual() == nullptr) return result;
  result.emplace_back("residual", step.residual_is_input1() ? "input1" : "input2");
  for (const auto& [name, value] : fields_of(*step.residual()))
    result.emplace_back("residual_" + name, value);
  return result;
}

namespace {

using ir::Json;

// The variants that a machine with this instruction set passes over before it takes `taken`.
std::vector<RefusingVariant> passed_over(const KernelFamily& family, const KernelVariant* taken,
                                         const void* args, uint32_t isa) {
  std::vector<RefusingVariant> result;
  for (const KernelVariant& variant : std::span(family.variants, family.num_variants)) {
    if (&variant == taken) break;
    if (!isa_within(variant.isa, isa)) continue;
    const Refusal refusal = variant.refusal(args);
    if (refusal == Refusal::kLayers) continue;  // a kernel of something else
    result.push_back({&variant, refusal == Refusal::kNone
                                    ? "the step's schedule asks for another instruction set"
                                    : refusal_text(refusal)});
  }
  return result;
}

}  // namespace

std::vector<IsaVariant> variants_by_isa(const KernelFamily& family, const void* args,
                                        std::span<const uint32_t> isas, uint64_t schedule) {
  std::vector<IsaVariant> result;
  for (auto isa = isas.rbegin(); isa != isas.rend(); ++isa) {
    const KernelVariant* taken = choose_variant(family, args, *isa, SIZE_MAX, schedule);
    result.push_back({*isa, taken, passed_over(family, taken, args, *isa)});
  }
  return result;
}

std::optional<target::TargetProfile> target_profile(const format::PlanView& view) {
  const auto* targets = view.plan().targets();
  if (format::count_of(targets) == 0 || targets->Get(0)->name() == nullptr) return std::nullopt;
  const auto* options = targets->Get(0)->options();
  std::string text = targets->Get(0)->name()->str();
  if (options != nullptr && options->size() != 0) text += "," + options->str();
  try {
    return target::parse_target(text);
  } catch (const PackError&) {
    return std::nullopt;
  }
}

std::vector<uint32_t> target_isas(const format::PlanView& view) {
  const std::optional<target::TargetProfile> profile = target_profile(view);
  return profile ? profile->isas : std::vector<uint32_t>();
}

Json variants_json(const StepView& step, std::span<const uint32_t> isas) {
  const qplan_kernel_set& all = *qplan_kernels_all();
  const uint16_t kernel = step.step->kernel();
  const KernelFamily* family = kernel < all.num_families ? all.families[kernel] : nullptr;
  if (family == nullptr) return nullptr;
  Error error;
  alignas(kArgsAlignment) uint8_t args[kMaxArgsBytes];
  if (family->bind(step, true, args, &error) < 0) return nullptr;
  Json json = Json::array();
  for (const IsaVariant& of_isa : variants_by_isa(*family, args, isas, step.step->schedule())) {
    json.push_back({{"isa", qplan_isa_name(of_isa.isa)}, {"kernel", of_isa.variant->name}});
    if (of_isa.better.empty()) continue;
    Json& refused = json.back()["refused"] = Json::array();
    for (const RefusingVariant& better : of_isa.better)
      refused.push_back({{"kernel", better.variant->name}, {"reason", better.reason}});
  }
  return json;
}

namespace {

// Those on which a cascade runs its layers, and no kernel that computes all of them.
std::vector<uint32_t> isas_of_layers(const StepView& cascade, std::span<const uint32_t> isas) {
  Error error;
  alignas(kArgsAlignment) uint8_t args[kMaxArgsBytes];
  std::vector<uint32_t> of_layers;
  if (kCascadeFamily.bind(cascade, true, args, &error) < 0) return of_layers;
  for (const IsaVariant& of_isa : variants_by_isa(kCascadeFamily, args, isas, cascade.step->schedule())) {
    const bool runs_layers = of_isa.variant->repeated_work == RepeatedWork::kBorderRows;
    if (runs_layers) of_layers.insert(of_layers.begin(), of_isa.isa);  // the least first, as in `isas`
  }
  return of_layers;
}

}  // namespace

void add_variants(const format::PlanView& view, uint32_t index, std::span<const uint32_t> isas, Json* json) {
  const format::KernelStep& step = view.step(index);
  const StepView of_step = StepView::without_addresses(view.plan(), step, view.bytes());
  (*json)["variants"] = variants_json(of_step, isas);
  const format::CascadeParams* cascade = step.params_as_CascadeParams();
  if (cascade == nullptr || (*json)["variants"].is_null()) return;
  const std::vector<uint32_t> of_layers = isas_of_layers(of_step, isas);
  Json& layers = (*json)["layers"] = Json::array();
  for (uint32_t i = 0; i < cascade->layers()->size(); ++i) {
    const StepView layer = cascade_layer(of_step, i);
    layers.push_back(
        {{"op", kernel_name(layer.step->kernel())}, {"variants", variants_json(layer, of_layers)}});
  }
}

uint64_t repeated_work(const format::PlanView& view, uint32_t index) {
  const format::KernelStep& step = view.step(index);
  const StepView cascade = StepView::without_addresses(view.plan(), step, view.bytes());
  Error error;
  alignas(kArgsAlignment) uint8_t args[kMaxArgsBytes];
  if (step.kernel() != kKernel_chain || kCascadeFamily.bind(cascade, true, args, &error) < 0) return 0;
  const format::Tensor& output = view.tensor(step.outputs()->Get(0));
  for (const uint32_t input : *step.inputs()) {  // in place, all rows are one range
    if (!view.is_constant(input) && format::ranges_overlap(view.tensor(input), output)) return 0;
  }
  uint64_t rows = 0;  // of a layer's output, that are there already but for the range
  uint64_t work = 0;
  for (uint32_t i = step.params_as_CascadeParams()->layers()->size(); i-- > 0;) {
    const StepView layer = cascade_layer(cascade, i);
    const KernelFamily& family = *kCascadeLayerFamilies.find(layer.step->kernel());
    (void)family.bind(layer, false, args, nullptr);
    const int64_t* extents = layer.output_extents(0);
    const uint64_t all_rows = static_cast<uint64_t>(extents[0]) * static_cast<uint64_t>(extents[1]);
    rows = std::min(rows, static_cast<uint64_t>(extents[1]));
    work = saturating_sum(work, family.work(args) / all_rows * rows);
    const RowWindow window = family.row_cut->window(args);
    const uint64_t reach = rows * window.stride + window.window;
    rows = reach > window.stride ? reach - window.stride : 0;
  }
  return work;
}

namespace {

using target::CpuWork;

bool is_of_bytes(const StepView& step) {
  return step.input_dtype(0) == Dtype::kS8 || step.input_dtype(0) == Dtype::kU8;
}

CpuWork convolution_of(const StepView& step) {
  const StepTensor input = step.input(0);
  const bool narrow =
      input.rank > 0 && target::is_narrow(static_cast<uint64_t>(input.extents[input.rank - 1]));
  return narrow ? CpuWork::kNarrowConvolution : CpuWork::kConvolution;
}

// As target::cpu_work tells operators apart. Nothing: cascades, and families that were never measured.
std::optional<CpuWork> kind_of_work(const StepView& step) {
  if (step.num_inputs() == 0) return std::nullopt;
  switch (step.step->kernel()) {
    case kKernel_conv2d:
      return convolution_of(step);
    case kKernel_fully_connected:
    case kKernel_conv2d_transpose:
    case kKernel_batch_matmul:
      return CpuWork::kConvolution;
    case kKernel_depthwise_conv2d:
      return CpuWork::kDepthwise;
    case kKernel_add:
    case kKernel_sub:
    case kKernel_mul:
    case kKernel_maximum:
    case kKernel_minimum:
      return CpuWork::kArithmetic;
    case kKernel_lut8:
      return CpuWork::kTable;
    case kKernel_avg_pool2d:
    case kKernel_max_pool2d:
    case kKernel_mean:
      return CpuWork::kPool;
    case kKernel_softmax:
      return CpuWork::kSoftmax;
    case kKernel_quantize:
    case kKernel_dequantize:
    case kKernel_arg_max:
      return CpuWork::kConvert;
    case kKernel_requantize:
      return is_of_bytes(step) ? CpuWork::kTable : CpuWork::kConvert;
    case kKernel_copy:
    case kKernel_pad:
    case kKernel_transpose:
    case kKernel_concat:
    case kKernel_split:
      return CpuWork::kMove;
    case kKernel_resize_bilinear:
      return CpuWork::kResize;
    default:
      return std::nullopt;
  }
}

}  // namespace

ir::Json cost_json(const StepView& step) {
  const std::optional<CpuWork> work = kind_of_work(step);
  if (!work) return nullptr;
  uint64_t bytes = 0, weight_bytes = 0;
  for (uint32_t i = 0; i < step.num_inputs(); ++i) {
    const StepTensor input = step.input(i);
    (input.is_constant ? weight_bytes : bytes) += input.size_bytes;
  }
  for (uint32_t i = 0; i < step.num_outputs(); ++i) bytes += step.output(i).size_bytes;
  return {{"work", target::work_name(*work)},
          {"macs", step.step->macs()},
          {"bytes", bytes},
          {"weight_bytes", weight_bytes}};
}

}  // namespace qplan::inspect
