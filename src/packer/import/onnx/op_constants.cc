// Operators whose operands are all constants: their results are computed on import. Shapes, positions and
// indices come out of them.
#include <algorithm>
#include <cmath>

#include "src/base/checked.h"
#include "src/packer/import/onnx/op_context.h"
#include "src/packer/ir/cat.h"
#include "src/packer/op/attributes.h"
#include "src/packer/op/elements.h"

namespace qplan::onnx {

// Extents of several tensors can come together in one shape, and those beside one of 0 can be any.
int64_t num_elements(const ir::Shape& shape, size_t begin, size_t end) {
  const std::vector<int64_t> extents(shape.begin() + static_cast<int64_t>(begin),
                                     shape.begin() + static_cast<int64_t>(end));
  const int64_t count = check_extents(extents);
  return std::ranges::find(extents, 0) == extents.end() ? count : 0;
}

ir::Ints list_of(const OpContext& op, int64_t count) {
  if (count > kMaxPositions) invalid(cat(count, " positions, at most ", kMaxPositions));
  op.graph().charge(static_cast<uint64_t>(count) * sizeof(int64_t));
  return ir::Ints(static_cast<size_t>(count));
}

namespace {

ir::ConstantRef cast_constant(const OpContext& op, const ir::ConstantRef& constant, ir::DType dtype) {
  if (constant->type().dtype == dtype) return constant;
  if (constant->type().num_elements() == 0)
    return ir::make_constant(dtype, constant->type().shape, std::vector<uint8_t>());
  return op.emit("cast", {constant}, {{"dtype", ir::to_string(dtype)}}).constant;
}

}  // namespace

ir::Ints integers_of(const OpContext& op, const ir::ConstantRef& constant) {
  const int64_t count = constant->type().num_elements();
  ir::Ints all = list_of(op, count);
  const ir::ConstantRef wide = cast_constant(op, constant, ir::kInt64);
  std::ranges::copy(wide->as<int64_t>(), all.begin());
  const bool may_wrap = constant->type().dtype == ir::kUint64;
  if (may_wrap && std::ranges::any_of(all, [](int64_t value) { return value < 0; }))
    throw Unsupported{"integers beyond 2^63"};
  return all;
}

Value integers(const OpContext& op, ir::DType dtype, const ir::Shape& shape, const ir::Ints& values) {
  return cast_constant(op, ir::make_constant(ir::kInt64, shape, values), dtype);
}

void import_size(const OpContext& op) {
  op.expect_counts(1, 1);
  op.define(0, ir::make_constant<int64_t>(ir::kInt64, {}, {op.type(op.input(0)).num_elements()}));
}

void import_non_zero(const OpContext& op) {
  op.expect_counts(1, 1);
  const ir::ConstantRef data = op.constant(0, "data");
  const ir::Shape& shape = data->type().shape;
  const std::vector<double> numbers =
      data->type().num_elements() == 0 ? std::vector<double>() : numbers_of(*data);
  ir::Ints found;
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (numbers[i] != 0) found.push_back(static_cast<int64_t>(i));
  }
  const size_t rank = std::max<size_t>(shape.size(), 1);
  ir::Ints positions = list_of(op, static_cast<int64_t>(rank * found.size()));
  for (size_t i = 0; i < found.size(); ++i) {
    int64_t rest = found[i];
    for (size_t d = shape.size(); d-- > 0; rest /= shape[d])
      positions[d * found.size() + i] = rest % shape[d];
  }
  op.define(0, ir::make_constant(ir::kInt64, {static_cast<int64_t>(rank), std::ssize(found)}, positions));
}

namespace {

// T adds floats one after another, as the operator's function does.
template <typename T>
Value range_of(const OpContext& op, ir::DType dtype, T start, T limit, T delta) {
  if (delta == 0) invalid("the step of the range is 0");
  const double count = std::ceil(static_cast<double>(limit - start) / static_cast<double>(delta));
  if (!(count <= static_cast<double>(kMaxPositions))) invalid(cat("a range of ", count, " elements"));
  std::vector<T> values;
  op.graph().charge(static_cast<uint64_t>(std::max(count, 0.0)) * sizeof(T));
  for (T value = start; static_cast<double>(values.size()) < count; value += delta) values.push_back(value);
  return make_vector(dtype, values);
}

}  // namespace

void import_range(const OpContext& op) {
  op.expect_counts(3, 3);
  const ir::DType dtype = op.type(op.input(0)).dtype;
  const auto one = [&](size_t i, ir::DType wide) {
    const ir::ConstantRef found = op.constant(i, "ends and steps");
    if (found->type().dtype != dtype || found->type().num_elements() != 1)
      invalid(cat("input ", i, " is ", found->type(), ", expected one ", dtype));
    return cast_constant(op, found, wide);
  };
  if (dtype == ir::kFloat32) {
    const auto at = [&](size_t i) { return one(i, dtype)->as<float>()[0]; };
    return op.define(0, range_of(op, dtype, at(0), at(1), at(2)));
  }
  if (dtype == ir::kFloat64) {
    const auto at = [&](size_t i) { return one(i, dtype)->as<double>()[0]; };
    return op.define(0, range_of(op, dtype, at(0), at(1), at(2)));
  }
  const auto at = [&](size_t i) { return one(i, ir::kInt64)->as<int64_t>()[0]; };
  constexpr int64_t kMax = int64_t{1} << 53;  // neither differences nor the value after the last one wrap
  for (const int64_t value : {at(0), at(1), at(2)}) {
    if (value > kMax || value < -kMax) throw Unsupported{"integers beyond 2^53"};
  }
  const Value range = range_of(op, ir::kInt64, at(0), at(1), at(2));
  op.define(0, cast_constant(op, range.constant, dtype));
}

// Functions of constant integers that the IR has no operator for.
namespace {

// compute(a, b) for each pair of the two operands' integers, which broadcast.
template <typename Compute>
Value of_pairs(const OpContext& op, const Compute& compute) {
  const ir::ConstantRef a = op.input(0).constant, b = op.input(1).constant;
  const ir::Shape shape = op::broadcast_shape(a->type().shape, b->type().shape);
  ir::Ints results = list_of(op, num_elements(shape, 0, shape.size()));
  const ir::Ints left = integers_of(op, a), right = integers_of(op, b);
  const std::vector<size_t> from_a = op::broadcast_indices(a->type().shape, shape),
                            from_b = op::broadcast_indices(b->type().shape, shape);
  for (size_t i = 0; i < results.size(); ++i) results[i] = compute(left[from_a[i]], right[from_b[i]]);
  return integers(op, a->type().dtype, shape, results);
}

bool are_constant(const OpContext& op) { return op.input(0).is_constant() && op.input(1).is_constant(); }

// The remainder has the divisor's sign; as_c: the dividend's.
int64_t remainder_of(int64_t a, int64_t b, bool as_c) {
  if (b == 0) invalid("an integer is divided by 0");
  if (b == -1) return 0;  // the smallest integer has no quotient
  const int64_t rest = a % b;
  return !as_c && rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

}  // namespace

void import_mod(const OpContext& op) {
  op.expect_counts(2, 2);
  const bool as_c = op.attr_int("fmod", 0) != 0;
  const ir::DType dtype = op.type(op.input(0)).dtype;
  if (dtype != op.type(op.input(1)).dtype)
    invalid(cat("the operands are ", op.type(op.input(0)), " and ", op.type(op.input(1))));
  if (dtype.is_float()) throw Unsupported{ir::to_string(dtype) + " data"};
  if (are_constant(op))
    return op.define(0, of_pairs(op, [&](int64_t a, int64_t b) { return remainder_of(a, b, as_c); }));
  if (as_c || (dtype != ir::kInt32 && dtype != ir::kInt64))
    throw Unsupported{cat(dtype, " data that is not constant", as_c ? " and attribute 'fmod'" : "")};
  op.define(0, op.emit("floor_mod", {op.input(0), op.input(1)}));
}

std::optional<Value> integer_power(const OpContext& op) {
  const bool are_integers =
      are_constant(op) && !op.type(op.input(0)).dtype.is_float() && !op.type(op.input(1)).dtype.is_float();
  if (!are_integers) return std::nullopt;
  return of_pairs(op, [](int64_t base, int64_t exponent) {
    if (exponent < 0) throw Unsupported{"a negative exponent of integers"};
    int64_t power = 1;
    // Beyond 64 factors only 0, 1 and -1 have a power.
    const int64_t count = exponent > 64 ? 64 + exponent % 2 : exponent;
    for (int64_t i = 0; i < count; ++i) {
      if (!checked_mul(power, base, &power)) throw Unsupported{"a power beyond int64"};
    }
    return power;
  });
}

// Running sums of constant integers along the axis; they wrap.
std::optional<Value> integer_cumulative_sum(const OpContext& op, int64_t axis_of, bool exclusive,
                                            bool reverse) {
  const Value& data = op.input(0);
  if (!data.is_constant() || op.type(data).dtype.is_float()) return std::nullopt;
  const ir::Shape& shape = op.shape(data);
  const auto axis = static_cast<size_t>(axis_of);
  const int64_t inner = num_elements(shape, axis + 1, shape.size()), extent = shape[axis];
  ir::Ints values = integers_of(op, data.constant);
  if (values.empty()) return data;
  for (int64_t line = 0; line < num_elements(shape, 0, axis) * inner; ++line) {
    uint64_t sum = 0;
    for (int64_t i = 0; i < extent; ++i) {
      const int64_t place = reverse ? extent - 1 - i : i;
      int64_t& value = values[static_cast<size_t>((line / inner * extent + place) * inner + line % inner)];
      const uint64_t before = sum;
      sum += static_cast<uint64_t>(value);
      value = static_cast<int64_t>(exclusive ? before : sum);
    }
  }
  return integers(op, op.type(data).dtype, shape, values);
}

}  // namespace qplan::onnx
