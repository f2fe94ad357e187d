// Kernels as emitted C calls them: which variants it names, and what it must know of their arguments.
#include <cstddef>
#include <string_view>
#include <type_traits>
#include <utility>

#include "kernels/conv2d/conv2d.h"
#include "kernels/depthwise_conv2d/depthwise_conv2d.h"
#include "kernels/elementwise/add.h"
#include "kernels/elementwise/elementwise.h"
#include "kernels/matmul/matmul.h"
#include "kernels/movement/movement.h"
#include "kernels/softmax/softmax.h"
#include "kernels/spatial/spatial.h"
#include "src/packer/emit/emit.h"
#include "src/runtime/cascade.h"

namespace qplan::emit {
namespace {

// The variant <family>_dsp_form; null for families that have none.
const KernelVariant* form_of(uint16_t kernel) {
  switch (kernel) {
    case kKernel_conv2d:
      return &kConv2dFamilyForm.variants[0];
    case kKernel_depthwise_conv2d:
      return &kDepthwiseConv2dFamilyForm.variants[0];
    case kKernel_fully_connected:
      return &kFullyConnectedFamilyForm.variants[0];
    default:
      return nullptr;
  }
}

// Whether the variant computes a step that <family>_dsp would compute.
bool is_enough(const KernelVariant& form, const StepView& step, uint32_t isa) {
  const KernelFamily& family = *qplan_kernels_all()->families[step.step->kernel()];
  alignas(kArgsAlignment) uint8_t args[kMaxArgsBytes];
  Error error;
  if (family.bind(step, true, args, &error) < 0) return false;
  const KernelVariant* chosen = choose_variant(family, args, isa, SIZE_MAX, step.step->schedule());
  return chosen->isa == QPLAN_ISA_DSP && form.accepts(args);
}

// Whether the output is written over the beginning of a larger input, which no form does.
bool overwrites_input(const format::PlanView& view, const format::KernelStep& step) {
  if (step.kernel() != kKernel_conv2d) return false;
  const format::Tensor &from = view.tensor(step.inputs()->Get(0)), &to = view.tensor(step.outputs()->Get(0));
  return from.size() != to.size() && format::ranges_overlap(from, to);
}

}  // namespace

std::map<uint16_t, const KernelVariant*> form_variants(const format::PlanView& view, uint32_t isa,
                                                       bool has_direct_layers) {
  std::map<uint16_t, const KernelVariant*> variants;  // null: not enough for a step
  const auto look = [&](const StepView& step, bool is_excluded) {
    const uint16_t kernel = step.step->kernel();
    const KernelVariant* const form = form_of(kernel);
    if (form == nullptr) return;
    const auto found = variants.emplace(kernel, form).first;
    if (is_excluded || !is_enough(*form, step, isa)) found->second = nullptr;
  };
  const format::Function& main = *view.find_function(nullptr);
  for (uint32_t i = 0; i < main.num_steps(); ++i) {
    const uint32_t index = main.first_step() + i;
    if (view.npu_step(index) != nullptr) continue;
    const StepView step = StepView::without_addresses(view.plan(), view.step(index), view.bytes());
    look(step, overwrites_input(view, *step.step));
    const format::CascadeParams* cascade = step.step->params_as_CascadeParams();
    for (uint32_t k = 0; k < (cascade == nullptr ? 0 : cascade->layers()->size()); ++k) {
      look(cascade_layer(step, k), !has_direct_layers);
    }
  }
  std::erase_if(variants, [](const auto& entry) { return entry.second == nullptr; });
  return variants;
}

// What C must know of the arguments of kernels: the same fields in the same order have the same layout in
// both languages, whatever the size of a pointer.

namespace {

template <typename T>
constexpr const char* integer_type() {
  if constexpr (sizeof(T) == 1) return std::is_signed_v<T> ? "int8_t" : "uint8_t";
  if constexpr (sizeof(T) == 2) return std::is_signed_v<T> ? "int16_t" : "uint16_t";
  if constexpr (sizeof(T) == 4) return std::is_signed_v<T> ? "int32_t" : "uint32_t";
  return std::is_signed_v<T> ? "int64_t" : "uint64_t";
}

template <typename T>
constexpr const char* pointed_type() {
  using To = std::remove_const_t<std::remove_pointer_t<T>>;
  if constexpr (std::is_void_v<To>)
    return "void";
  else if constexpr (std::is_floating_point_v<To>)
    return "float";
  else
    return integer_type<To>();
}

template <typename T>
constexpr ArgsField field(const char* name, size_t offset, size_t struct_alignment = 0) {
  using Element = std::remove_extent_t<T>;
  const auto alignment = static_cast<uint32_t>(struct_alignment == 0 ? sizeof(Element) : struct_alignment);
  constexpr uint32_t kCount = std::is_array_v<T> ? sizeof(T) / sizeof(Element) : 1;
  if constexpr (std::is_pointer_v<Element>) {
    constexpr bool kIsInput = std::is_const_v<std::remove_pointer_t<Element>>;
    return {name,
            pointed_type<Element>(),
            kIsInput ? ArgsField::kInput : ArgsField::kOutput,
            sizeof(Element),
            kCount,
            offset,
            false,
            alignment};
  } else if constexpr (std::is_floating_point_v<Element>) {
    return {name, "float", ArgsField::kFloat, sizeof(Element), kCount, offset, true, alignment};
  } else if constexpr (std::is_enum_v<Element>) {
    using Number = std::underlying_type_t<Element>;
    return {name,     integer_type<Number>(), ArgsField::kInteger, sizeof(Element), kCount, offset, false,
            alignment};
  } else if constexpr (std::is_same_v<Element, bool>) {
    return {name, "uint8_t", ArgsField::kInteger, sizeof(Element), kCount, offset, false, alignment};
  } else {
    return {name,
            integer_type<Element>(),
            ArgsField::kInteger,
            sizeof(Element),
            kCount,
            offset,
            std::is_signed_v<Element>,
            alignment};
  }
}

// Structs within others have no fields that offsetof knows by a standard; all compilers do.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winvalid-offsetof"
#define FIELD(Args, name) field<decltype(Args::name)>(#name, offsetof(Args, name))
#define PART(Args, part, Part, prefix, name)                                             \
  field<decltype(Part::name)>(prefix #name, offsetof(Args, part) + offsetof(Part, name), \
                              offsetof(Part, name) == 0 ? alignof(Part) : 0)

#define ADD_FORMULA(F)                                                                                     \
  F(contract), F(dtype), F(left_shift), F(input1_zero_point), F(input1_multiplier), F(input1_shift),       \
      F(input2_zero_point), F(input2_multiplier), F(input2_shift), F(output_zero_point),                   \
      F(output_multiplier), F(output_shift), F(clamp_min), F(clamp_max), F(input1_scale), F(input2_scale), \
      F(output_scale), F(float_scale1), F(float_scale2), F(float_offset)
#define BROADCAST(F) F(elements), F(rank), F(extents), F(a_strides), F(b_strides)

#define F(name) FIELD(Conv2dArgs, name)
#define SUM(name) PART(Conv2dArgs, residual_sum, AddFormula, "residual_", name)
constexpr ArgsField kConv2d[] = {F(input),
                                 F(weights),
                                 F(bias),
                                 F(multiplier),
                                 F(shift),
                                 F(scale),
                                 F(float_scale),
                                 F(float_offset),
                                 F(output),
                                 F(batch),
                                 F(input_h),
                                 F(input_w),
                                 F(input_c),
                                 F(output_h),
                                 F(output_w),
                                 F(output_c),
                                 F(kernel_h),
                                 F(kernel_w),
                                 F(stride_h),
                                 F(stride_w),
                                 F(dilation_h),
                                 F(dilation_w),
                                 F(pad_top),
                                 F(pad_left),
                                 F(groups),
                                 F(input_zero_point),
                                 F(weights_zero_point),
                                 F(pad_value),
                                 F(output_zero_point),
                                 F(clamp_min),
                                 F(clamp_max),
                                 F(contract),
                                 F(float_epilogue),
                                 F(input_dtype),
                                 F(output_dtype),
                                 F(weights_layout),
                                 F(schedule),
                                 F(has_wide_bias),
                                 F(int16_groups),
                                 F(num_weight_rests),
                                 F(has_residual),
                                 F(residual),
                                 F(residual_is_a),
                                 ADD_FORMULA(SUM)};
#undef F
#define F(name) FIELD(FullyConnectedArgs, name)
constexpr ArgsField kFullyConnected[] = {F(input),
                                         F(weights),
                                         F(bias),
                                         F(multiplier),
                                         F(shift),
                                         F(scale),
                                         F(float_scale),
                                         F(float_offset),
                                         F(output),
                                         F(rows),
                                         F(input_c),
                                         F(output_c),
                                         F(input_zero_point),
                                         F(weights_zero_point),
                                         F(output_zero_point),
                                         F(clamp_min),
                                         F(clamp_max),
                                         F(contract),
                                         F(float_epilogue),
                                         F(has_wide_bias),
                                         F(input_dtype),
                                         F(output_dtype),
                                         F(int16_groups),
                                         F(weights_layout),
                                         F(schedule)};
#undef F
#define F(name) FIELD(Pool2dArgs, name)
constexpr ArgsField kPool2d[] = {F(contract),
                                 F(dtype),
                                 F(input),
                                 F(output),
                                 F(batch),
                                 F(input_h),
                                 F(input_w),
                                 F(channels),
                                 F(output_h),
                                 F(output_w),
                                 F(pool_h),
                                 F(pool_w),
                                 F(stride_h),
                                 F(stride_w),
                                 F(pad_top),
                                 F(pad_left),
                                 F(clamp_min),
                                 F(clamp_max),
                                 F(input_scale),
                                 F(output_scale),
                                 F(input_zero_point),
                                 F(output_zero_point),
                                 F(count_include_pad)};
#undef F
#define F(name) FIELD(AddArgs, name)
#define SHAPE(name) PART(AddArgs, broadcast, Broadcast, "broadcast_", name)
constexpr ArgsField kAdd[] = {ADD_FORMULA(F), F(a), F(b), F(output), BROADCAST(SHAPE)};
#undef F
#undef SHAPE
#define F(name) FIELD(MulArgs, name)
#define SHAPE(name) PART(MulArgs, broadcast, Broadcast, "broadcast_", name)
constexpr ArgsField kMul[] = {F(contract),
                              F(dtype),
                              F(a),
                              F(b),
                              F(output),
                              BROADCAST(SHAPE),
                              F(input1_zero_point),
                              F(input2_zero_point),
                              F(output_zero_point),
                              F(output_multiplier),
                              F(output_shift),
                              F(clamp_min),
                              F(clamp_max),
                              F(input1_scale),
                              F(input2_scale),
                              F(output_scale)};
#undef F
#undef SHAPE
#define F(name) FIELD(SoftmaxArgs, name)
constexpr ArgsField kSoftmax[] = {F(contract),
                                  F(dtype),
                                  F(input),
                                  F(output),
                                  F(rows),
                                  F(depth),
                                  F(input_multiplier),
                                  F(input_left_shift),
                                  F(diff_min),
                                  F(table),
                                  F(output_scale),
                                  F(output_zero_point)};
#undef F
#define F(name) FIELD(Lut8Args, name)
constexpr ArgsField kLut8[] = {F(input), F(table), F(output), F(elements)};
#undef F
#define F(name) FIELD(CopyArgs, name)
constexpr ArgsField kCopy[] = {F(input), F(output), F(bytes)};
#undef F
#pragma GCC diagnostic pop

// Natural layout: no field was left out, and C gives them the same places.
template <size_t count>
constexpr size_t laid_out(const ArgsField (&fields)[count]) {
  size_t at = 0, alignment = 1;
  for (const ArgsField& of : fields) {
    at = (at + of.alignment - 1) / of.alignment * of.alignment;
    if (at != of.offset) return 0;
    at += size_t{of.size} * of.count;
    alignment = of.size > alignment ? of.size : alignment;
  }
  return (at + alignment - 1) / alignment * alignment;
}
static_assert(laid_out(kConv2d) == sizeof(Conv2dArgs) && laid_out(kPool2d) == sizeof(Pool2dArgs) &&
                  laid_out(kFullyConnected) == sizeof(FullyConnectedArgs) &&
                  laid_out(kAdd) == sizeof(AddArgs) && laid_out(kMul) == sizeof(MulArgs) &&
                  laid_out(kSoftmax) == sizeof(SoftmaxArgs) && laid_out(kLut8) == sizeof(Lut8Args) &&
                  laid_out(kCopy) == sizeof(CopyArgs),
              "a field is missing here");

struct Row {
  uint16_t kernel;
  const char* name;
  std::span<const ArgsField> fields;
};
constexpr Row kRows[] = {
    {kKernel_conv2d, "qplan_conv2d_args", kConv2d},
    {kKernel_depthwise_conv2d, "qplan_conv2d_args", kConv2d},
    {kKernel_fully_connected, "qplan_fully_connected_args", kFullyConnected},
    {kKernel_avg_pool2d, "qplan_pool2d_args", kPool2d},
    {kKernel_max_pool2d, "qplan_pool2d_args", kPool2d},
    {kKernel_add, "qplan_add_args", kAdd},
    {kKernel_sub, "qplan_add_args", kAdd},
    {kKernel_mul, "qplan_mul_args", kMul},
    {kKernel_softmax, "qplan_softmax_args", kSoftmax},
    {kKernel_lut8, "qplan_lut8_args", kLut8},
    {kKernel_copy, "qplan_copy_args", kCopy},
};

// FNV-1a, 32 bits.
constexpr uint32_t add_text(uint32_t hash, std::string_view text) {
  for (const char c : text) hash = (hash ^ static_cast<uint8_t>(c)) * 16777619u;
  return (hash ^ 0xffu) * 16777619u;
}
// Taken of all that C has of the structs; sizes of pointers differ among processors.
constexpr uint32_t fingerprint() {
  uint32_t hash = 2166136261u;
  for (const Row& row : kRows) {
    hash = add_text(hash, row.name);
    for (const ArgsField& field : row.fields) {
      hash = add_text(add_text(hash, field.name), field.c_type);
      const bool is_pointer = field.kind == ArgsField::kInput || field.kind == ArgsField::kOutput;
      for (const uint32_t part : {uint32_t{field.kind}, is_pointer ? 0 : field.size, field.count})
        hash = (hash ^ part) * 16777619u;
    }
  }
  return hash;
}
template <uint32_t found>
struct Fingerprint {
  static_assert(
      found == kArgsFingerprint,
      "the arguments of kernels are others now: give qplan_firmware_kernels_<number> of "
      "include/qplan/firmware.h, capi/firmware.cc and emit.h the next number, so that C written for "
      "the ones before does not link, and kArgsFingerprint the value found");
};
template struct Fingerprint<fingerprint()>;

}  // namespace

std::span<const ArgsField> args_fields(uint16_t kernel) {
  for (const Row& row : kRows) {
    if (row.kernel == kernel) return row.fields;
  }
  return {};
}

const char* args_struct(uint16_t kernel) {
  for (const Row& row : kRows) {
    if (row.kernel == kernel) return row.name;
  }
  return nullptr;
}

}  // namespace qplan::emit
