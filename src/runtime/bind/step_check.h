// What the glue of all families asks of a step, with one wording for what can be wrong. A plan is untrusted:
// whatever a kernel indexes or divides by has passed through here or through checks of the family's own.
#ifndef QPLAN_SRC_RUNTIME_BIND_STEP_CHECK_H_
#define QPLAN_SRC_RUNTIME_BIND_STEP_CHECK_H_

#include <stddef.h>
#include <stdint.h>

#include "format/container.h"
#include "format/plan_view.h"
#include "kernels/layout.h"
#include "kernels/numeric/dtype.h"
#include "kernels/numeric/requantize.h"
#include "src/runtime/bind/family.h"

namespace qplan {

// Extents of a plan tensor, outermost first. Each is in [1, 2^31), their product below 2^48.
struct Shape {
  uint32_t rank = 0;
  uint32_t extents[format::kMaxRank] = {};

  uint32_t operator[](uint32_t axis) const { return extents[axis]; }
  uint64_t elements() const {
    uint64_t product = 1;
    for (uint32_t i = 0; i < rank; ++i) product *= extents[i];
    return product;
  }
};

inline bool operator==(const Shape& a, const Shape& b) {
  bool equal = a.rank == b.rank;
  for (uint32_t i = 0; equal && i < a.rank; ++i) equal = a.extents[i] == b.extents[i];
  return equal;
}
inline bool operator!=(const Shape& a, const Shape& b) { return !(a == b); }

// A tensor's extents where the plan has them: copies would take much of the stack of a run on small
// processors.
struct Extents {
  const int64_t* values = nullptr;  // null where the rank is 0
  uint32_t rank = 0;

  uint32_t operator[](uint32_t axis) const { return static_cast<uint32_t>(values[axis]); }
};
inline bool operator==(const Extents& a, const Extents& b) {
  bool equal = a.rank == b.rank;
  for (uint32_t i = 0; equal && i < a.rank; ++i) equal = a.values[i] == b.values[i];
  return equal;
}
// Those of the tensor, of which the step's check has accepted the shape.
inline Extents extents_of(const StepView& step, uint32_t tensor) {
  return {step.extents(tensor), step.rank(tensor)};
}

// The shape of a tensor that StepCheck has accepted.
Shape shape_of(const StepTensor& tensor);

// The last extent of a tensor that has been checked, of rank 1 at least, and the product of the others.
inline uint32_t columns_of(const StepView& step, uint32_t tensor) {
  return static_cast<uint32_t>(step.extents(tensor)[step.rank(tensor) - 1]);
}
uint64_t rows_of(const StepView& step, uint32_t tensor);
// The product of all extents.
inline uint64_t elements_of(const StepView& step, uint32_t tensor) {
  return step.rank(tensor) == 0 ? 1 : rows_of(step, tensor) * columns_of(step, tensor);
}
// Whether the two tensors have the same extents.
bool have_same_shape(const StepView& step, uint32_t a, uint32_t b);

// Sets of dtypes.
constexpr uint32_t dtype_bit(Dtype dtype) { return 1u << static_cast<uint32_t>(dtype); }
inline constexpr uint32_t kDtypesU8S8 = dtype_bit(Dtype::kU8) | dtype_bit(Dtype::kS8);
inline constexpr uint32_t kDtypesQuantized = kDtypesU8S8 | dtype_bit(Dtype::kS16);
inline constexpr uint32_t kDtypesAny8To64 = kDtypesU8S8 | dtype_bit(Dtype::kS16) | dtype_bit(Dtype::kS32) |
                                            dtype_bit(Dtype::kS64) | dtype_bit(Dtype::kF32);

// Sets of contracts.
constexpr uint32_t contract_bit(format::Contract contract) { return 1u << contract; }
inline constexpr uint32_t kContractsTfl2F32e =
    contract_bit(format::Contract_TFL2) | contract_bit(format::Contract_F32E);
// Those of requantize.
inline constexpr uint32_t kContractsAccumulator = kContractsTfl2F32e | contract_bit(format::Contract_TFL1);
// Those of layers of weights: the accumulator as it is, too.
inline constexpr uint32_t kContractsLayer = kContractsAccumulator | contract_bit(format::Contract_ACC32);
// The contract of a step that has been checked.
constexpr Contract contract_of(format::Contract contract) { return static_cast<Contract>(contract); }
constexpr format::Contract contract_of(Contract contract) { return static_cast<format::Contract>(contract); }

// Whether a layer's parameters have a float epilogue that this runtime knows; a later one's is passed over,
// since multiplier and shift say all.
inline bool has_float_epilogue(uint32_t epilogue, format::Contract contract) {
  const bool known = epilogue == format::FloatEpilogue_PLAIN || epilogue == format::FloatEpilogue_SIGNED;
  return known && (contract == format::Contract_TFL2 || contract == format::Contract_TFL1);
}
// Copies the float requantisation of a step into the args of its kernel; what it has no entries for is
// null. p: of Params.
template <typename Params, typename Args>
inline void fill_float_epilogue(const format::TableFields& p, format::Contract contract,
                                Args& __restrict args) {
  const auto epilogue = p.scalar<uint8_t>(Params::VT_FLOAT_EPILOGUE);
  if (!has_float_epilogue(epilogue, contract)) return;
  const auto* scale = p.vector<float>(Params::VT_FLOAT_SCALE);
  const auto* offset = p.vector<float>(Params::VT_FLOAT_OFFSET);
  args.float_epilogue = static_cast<FloatEpilogue>(epilogue);
  args.float_scale = scale == nullptr ? nullptr : scale->data();
  args.float_offset = offset == nullptr ? nullptr : offset->data();
}

// Copies fields of Params of 32 bits into args, from the field at slot kFirst to that at kLast; the members
// of args between the byte offsets kFrom and kTo stand in the schema's order.
template <uint32_t kFirst, uint32_t kLast, size_t kFrom, size_t kTo, typename Args>
__attribute__((always_inline)) inline void fill_words(const format::TableFields& p, Args& args) {
  constexpr uint32_t kCount = (kLast - kFirst) / 2 + 1;
  static_assert(kTo - kFrom == 4 * (kCount - 1), "args have a member for each field");
  p.words(kFirst, kCount, reinterpret_cast<uint8_t*>(&args) + kFrom);
}

// 2^100, beyond any scale that is meant: (x - zero_point) * scale stays finite, sums of two of them too, and
// what is divided by a scale may become infinite but not NaN.
inline constexpr float kMaxScale = 0x1p100f;

inline constexpr uint32_t kAnyRank = ~0u;

// One axis of a convolution or pool: output o reads the inputs o * stride + k * dilation - pad, k < kernel.
struct WindowAxis {
  const char* name;  // "height"
  uint32_t input;
  uint32_t output;
  uint32_t kernel;
  uint32_t stride;
  uint32_t dilation;
  uint32_t pad;  // before
};

// Checks return false with the error set: `if (!check.arity(5, 1) || ...) return check.status();`
class StepCheck {
 public:
  StepCheck(const StepView& step, const char* family, Error* error)
      : step_(step), fields_(step.step), family_(family), error_(error) {}

  qplan_status status() const { return error_->status(); }
  bool has_residual() const { return fields_.has(format::KernelStep::VT_RESIDUAL); }
  // The fields of the step's parameters.
  format::TableFields params_fields() const {
    return format::TableFields(fields_.table(format::KernelStep::VT_PARAMS));
  }
  Error* error() const { return error_; }

  // Starts the error "<family>: " of a plan that lies; the caller appends. Converts to false for `return
  // fail() << ..`.
  class Failure {
   public:
    explicit Failure(Error& error) : error_(error) {}
    template <typename T>
    Failure& operator<<(T value) {
      error_ << value;
      return *this;
    }
    operator bool() const { return false; }  // NOLINT: `return check.fail() << "...";`

   private:
    Error& error_;
  };
  Failure fail(qplan_status status = QPLAN_PLAN_CORRUPT, int32_t tensor = -1) const;
  // The same about an input or output: "<family>: <role> ".
  Failure fail_input(uint32_t i, const char* role) const;
  Failure fail_output(uint32_t i, const char* role) const;

  bool arity(uint32_t num_inputs, uint32_t num_outputs) const;
  bool params(format::KernelParams type) const;
  // The step's params of a type that `params` has accepted.
  template <typename Params>
  const Params& params_as() const {
    return *step_.step->params_as<Params>();
  }
  // QPLAN_KERNEL_MISSING unless the contract is of the set that this family computes.
  bool contract(format::Contract found, uint32_t computed) const;

  // QPLAN_KERNEL_MISSING unless the weight layout is one of those, two or more, that this family reads.
  template <typename... Layouts>
  bool layout(uint16_t found, Layouts... read) const {
    const uint16_t layouts[] = {static_cast<uint16_t>(read)...};
    return layout_of(found, layouts, sizeof...(read));
  }

  // An activation: its dtype is in the set, its rank as given, its extents legal, its bytes exactly those of
  // a packed tensor, aligned to its element. shape may be null.
  bool input(uint32_t i, const char* role, uint32_t dtypes, uint32_t rank, Shape* shape) const;
  bool output(uint32_t i, const char* role, uint32_t dtypes, uint32_t rank, Shape* shape) const;
  // A constant: lies in a CONSTANT bank, has the dtype and exactly `count` elements in bytes; the shape that
  // the plan gives it is not looked at (packed layouts have none).
  bool constant(uint32_t i, const char* role, Dtype dtype, uint64_t count) const;
  // Checks constant weights, of a size that has been checked, for zeros after each tap, if their layout needs
  // them (layout_needs_zeros).
  bool zeros_after_taps(uint32_t i, uint16_t layout, const LayoutWindow& window) const;
  // The contents of a constant int32 input of `count` entries.
  bool constant_range(uint32_t i, const char* role, uint64_t count, int32_t min, int32_t max) const;
  // The contents of a constant float32 input of `count` entries: finite and not negative.
  bool constant_scales(uint32_t i, const char* role, uint64_t count) const;
  // bias, multiplier, shift of `count` channels, at inputs first .. first + 2; under F32E bias and scale;
  // under ACC32 bias alone. The bias is int32; with wide_bias it may be int64, whose multipliers' shifts are
  // at most kMaxWideShift.
  bool channel_constants(format::Contract contract, uint32_t first, uint64_t count,
                         bool wide_bias = false) const;
  // multiplier and shift of `count` channels, at inputs first and first + 1; under F32E scale.
  bool multipliers(format::Contract contract, uint32_t first, uint64_t count, int32_t max_shift = 30) const;

  // The float epilogue of `count` channels, where there is one: as many entries in both vectors. Their values
  // may be anything.
  template <typename Params>
  bool float_epilogue(const format::TableFields& p, format::Contract contract, uint64_t count) const {
    if (!has_float_epilogue(p.scalar<uint8_t>(Params::VT_FLOAT_EPILOGUE), contract)) return true;
    return float_epilogue_entries("float_scale", p.vector<float>(Params::VT_FLOAT_SCALE), count) &&
           float_epilogue_entries("float_offset", p.vector<float>(Params::VT_FLOAT_OFFSET), count);
  }

  bool range(const char* name, int64_t value, int64_t min, int64_t max) const;
  // A zero point or another value that must lie in the dtype.
  bool in_dtype(const char* name, int32_t value, Dtype dtype) const;
  // dtype's min <= clamp_min <= clamp_max <= dtype's max.
  bool clamp(int32_t clamp_min, int32_t clamp_max, Dtype dtype) const;
  // clamp_min <= clamp_max, both numbers; they may be infinite.
  bool float_clamp(float clamp_min, float clamp_max) const;
  // Dtype, zero point and clamp of a layer of weights. Under ACC32 the dtype is int32 and the others are 0;
  // else it is 8 bits wide and holds them.
  bool layer_output(format::Contract contract, Dtype dtype, int32_t zero_point, int32_t clamp_min,
                    int32_t clamp_max) const;
  // Operators that compute with int16 do so under TFL2 alone.
  bool contract_of_dtype(format::Contract contract, Dtype dtype) const;
  // A multiplier in [0, 2^31) and a shift in [-31, 30], as requantize_tfl2 wants them (numeric/requantize.h).
  bool multiplier(const char* name, int32_t multiplier, int32_t shift) const;
  // A scale under F32E: in (0, kMaxScale].
  bool scale(const char* name, float value) const;

  // Kernel, stride and dilation are >= 1 and every o * stride + k * dilation, and pad, is below 2^31:
  // positions and their differences fit int32. Windows may lie outside the input completely.
  bool window(const WindowAxis& axis) const;
  // Besides: every window holds at least one element of the input (dilation 1), so that pools have something
  // to do.
  bool window_touches_input(const WindowAxis& axis) const;

 private:
  bool layout_of(uint16_t found, const uint16_t* read, size_t count) const;
  bool float_epilogue_entries(const char* name, const flatbuffers::Vector<float>* values,
                              uint64_t count) const;
  bool tensor(uint32_t index, const char* role, uint32_t dtypes, uint32_t rank, Shape* shape) const;

  using Indices = flatbuffers::Vector<uint32_t>;
  const Indices* inputs() const { return fields_.vector<uint32_t>(format::KernelStep::VT_INPUTS); }
  const Indices* outputs() const { return fields_.vector<uint32_t>(format::KernelStep::VT_OUTPUTS); }

  const StepView& step_;
  const format::TableFields fields_;  // of the step
  const char* family_;
  Error* error_;  // null where nothing is checked
};

// Conversions that also move the channels of images: the shapes of their tensors say so.

// Whether `last` is `planes`, [n,c,...], with the channels last, [n,...,c]. Equal shapes move nothing.
template <typename AnyShape>
inline bool moves_channels(const AnyShape& planes, const AnyShape& last) {
  if (planes.rank < 3 || planes.rank != last.rank || planes == last) return false;
  bool moves = planes[0] == last[0] && planes[1] == last[planes.rank - 1];
  for (uint32_t i = 2; i < planes.rank; ++i) moves = moves && planes[i] == last[i - 1];
  return moves;
}

}  // namespace qplan

#endif  // QPLAN_SRC_RUNTIME_BIND_STEP_CHECK_H_
