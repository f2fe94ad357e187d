// The formulas of numbers.h as they stand there.
#include <string.h>

#include <type_traits>

#include "kernels/elementwise/broadcast.h"
#include "kernels/numbers/numbers.h"
#include "kernels/numeric/axes.h"
#include "kernels/numeric/requantize.h"

namespace qplan {

namespace int_binary_ref {
namespace {

// The divisor -1 is a case of its own: the smallest integer has no negative.
template <typename T>
T div(T a, T b) {
  if (b == 0) return 0;
  return b == -1 ? static_cast<T>(0 - static_cast<std::make_unsigned_t<T>>(a)) : a / b;
}

template <typename T>
T floor_div(T a, T b) {
  const T quotient = div(a, b);
  if (b == 0 || b == -1) return quotient;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

template <typename T>
T floor_mod(T a, T b) {
  if (b == 0 || b == -1) return 0;
  const T rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

template <typename T>
T combined(IntBinary op, T a, T b) {
  const auto x = static_cast<std::make_unsigned_t<T>>(a), y = static_cast<std::make_unsigned_t<T>>(b);
  switch (op) {
    case IntBinary::kAdd:
      return static_cast<T>(x + y);
    case IntBinary::kSub:
      return static_cast<T>(x - y);
    case IntBinary::kMul:
      return static_cast<T>(x * y);
    case IntBinary::kMaximum:
      return a < b ? b : a;
    case IntBinary::kMinimum:
      return b < a ? b : a;
    case IntBinary::kFloorDiv:
      return floor_div(a, b);
    case IntBinary::kFloorMod:
      return floor_mod(a, b);
    case IntBinary::kDiv:
      return div(a, b);
  }
  return 0;
}

}  // namespace

Refusal accepts(const IntBinaryArgs&) { return Refusal::kNone; }
size_t scratch_bytes(const IntBinaryArgs&) { return 0; }
uint32_t work_items(const IntBinaryArgs& args) { return num_chunks(args.broadcast.elements); }

void run(const IntBinaryArgs& args, uint32_t begin, uint32_t end, void*) {
  const ElementRange range = chunk_range(args.broadcast.elements, begin, end);
  const auto combine = [&](auto a, auto b) { return combined(args.op, a, b); };
  if (args.dtype == Dtype::kS64) {
    combine_as<int64_t>(args, range, combine);
  } else {
    combine_as<int32_t>(args, range, combine);
  }
}

}  // namespace int_binary_ref

namespace int_reduce_ref {
namespace {

// In 64 bits, whose low ones are those of a sum or product modulo 2^32.
template <typename T>
int64_t reduced(const IntReduceArgs& args, const T* first) {
  const bool is_extremum =
      args.reduction == IntReduction::kMaximum || args.reduction == IntReduction::kMinimum;
  int64_t value = is_extremum ? *first : args.reduction == IntReduction::kProduct ? 1 : 0;
  for_each_reduced(args, first, [&](int64_t element) {
    switch (args.reduction) {
      case IntReduction::kMean:
      case IntReduction::kSum:
        value = static_cast<int64_t>(static_cast<uint64_t>(value) + static_cast<uint64_t>(element));
        break;
      case IntReduction::kMaximum:
        value = value < element ? element : value;
        break;
      case IntReduction::kMinimum:
        value = element < value ? element : value;
        break;
      case IntReduction::kProduct:
        value = static_cast<int64_t>(static_cast<uint64_t>(value) * static_cast<uint64_t>(element));
        break;
    }
  });
  return args.reduction == IntReduction::kMean ? value / static_cast<int64_t>(args.num_reduced) : value;
}

template <typename T>
void run_typed(const IntReduceArgs& args, const ElementRange& range) {
  for (uint64_t at = range.begin; at < range.end; ++at) {
    const uint64_t offset = strided_offset(at, args.kept_rank, args.kept_extents, args.kept_strides);
    static_cast<T*>(args.output)[at] =
        static_cast<T>(reduced(args, static_cast<const T*>(args.input) + offset));
  }
}

}  // namespace

Refusal accepts(const IntReduceArgs&) { return Refusal::kNone; }
size_t scratch_bytes(const IntReduceArgs&) { return 0; }
uint32_t work_items(const IntReduceArgs& args) { return num_chunks(args.num_outputs); }

void run(const IntReduceArgs& args, uint32_t begin, uint32_t end, void*) {
  const ElementRange range = chunk_range(args.num_outputs, begin, end);
  if (args.dtype == Dtype::kS64) {
    run_typed<int64_t>(args, range);
  } else {
    run_typed<int32_t>(args, range);
  }
}

}  // namespace int_reduce_ref

namespace cast_ref {
namespace {

// A float32 as an integer of `bits` bits, of which one is the sign's where it has one.
int64_t truncated(float x, uint32_t bits, bool is_signed) {
  if (x != x) return 0;
  const float limit = bits == 8    ? (is_signed ? 128.0f : 256.0f)
                      : bits == 16 ? 32768.0f
                      : bits == 32 ? 0x1p31f
                                   : 0x1p63f;
  const float least = is_signed ? -limit : 0.0f;
  if (x <= least) return is_signed ? static_cast<int64_t>(least) : 0;
  // The largest integer is one less than the limit, which only small dtypes have as a float32.
  if (x >= limit) return bits == 64 ? INT64_MAX : static_cast<int64_t>(limit) - 1;
  return static_cast<int64_t>(x);
}

template <typename Out>
Out cast_one(float x) {
  return static_cast<Out>(truncated(x, sizeof(Out) * 8, static_cast<Out>(-1) < static_cast<Out>(0)));
}
template <typename Out>
Out cast_one(int64_t x) {
  return static_cast<Out>(static_cast<uint64_t>(x));
}
template <>
float cast_one<float>(float x) {
  return x;
}
template <>
float cast_one<float>(int64_t x) {
  return static_cast<float>(x);
}

template <typename In, typename Wide, typename Out>
void run_elements(const CastArgs& args, const ElementRange& range) {
  const In* in = static_cast<const In*>(args.input);
  Out* out = static_cast<Out*>(args.output);
  for (uint64_t i = range.begin; i < range.end; ++i) out[i] = cast_one<Out>(static_cast<Wide>(in[i]));
}

template <typename In, typename Wide>
void run_output(const CastArgs& args, const ElementRange& range) {
  switch (args.output_dtype) {
    case Dtype::kU8:
      return run_elements<In, Wide, uint8_t>(args, range);
    case Dtype::kS8:
      return run_elements<In, Wide, int8_t>(args, range);
    case Dtype::kS16:
      return run_elements<In, Wide, int16_t>(args, range);
    case Dtype::kS32:
      return run_elements<In, Wide, int32_t>(args, range);
    case Dtype::kS64:
      return run_elements<In, Wide, int64_t>(args, range);
    case Dtype::kF32:
      return run_elements<In, Wide, float>(args, range);
    case Dtype::kOther:
      break;
  }
}

}  // namespace

Refusal accepts(const CastArgs&) { return Refusal::kNone; }
size_t scratch_bytes(const CastArgs&) { return 0; }
uint32_t work_items(const CastArgs& args) { return num_chunks(args.elements); }

void run(const CastArgs& args, uint32_t begin, uint32_t end, void*) {
  const ElementRange range = chunk_range(args.elements, begin, end);
  switch (args.input_dtype) {
    case Dtype::kU8:
      return run_output<uint8_t, int64_t>(args, range);
    case Dtype::kS8:
      return run_output<int8_t, int64_t>(args, range);
    case Dtype::kS16:
      return run_output<int16_t, int64_t>(args, range);
    case Dtype::kS32:
      return run_output<int32_t, int64_t>(args, range);
    case Dtype::kS64:
      return run_output<int64_t, int64_t>(args, range);
    case Dtype::kF32:
      return run_output<float, float>(args, range);
    case Dtype::kOther:
      break;
  }
}

}  // namespace cast_ref

namespace gather_nd_ref {

Refusal accepts(const GatherNdArgs&) { return Refusal::kNone; }
size_t scratch_bytes(const GatherNdArgs&) { return 0; }
uint32_t work_items(const GatherNdArgs& args) { return num_chunks(args.outer * args.rows); }

void run(const GatherNdArgs& args, uint32_t begin, uint32_t end, void*) {
  const ElementRange range = chunk_range(args.outer * args.rows, begin, end);
  for (uint64_t i = range.begin; i < range.end; ++i) {
    const int32_t* indices = args.indices + i % args.rows * args.rank;
    uint64_t place = 0;
    for (uint32_t axis = 0; axis < args.rank; ++axis) {
      const int64_t extent = args.extents[axis];
      int64_t index = indices[axis];
      if (index < 0) index += extent;
      index = index < 0 ? 0 : index >= extent ? extent - 1 : index;
      place = place * args.extents[axis] + static_cast<uint64_t>(index);
    }
    memcpy(args.output + i * args.block_bytes,
           args.input + i / args.rows * args.outer_bytes + place * args.block_bytes,
           static_cast<size_t>(args.block_bytes));
  }
}

}  // namespace gather_nd_ref
}  // namespace qplan
