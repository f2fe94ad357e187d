// Operators on positions that are known on import: elements gathered and scattered by constant indices, the
// triangle of a matrix, one-hot codes, and numbers that are made of constants alone.
#include <algorithm>
#include <cmath>
#include <limits>

#include "src/base/checked.h"
#include "src/packer/import/onnx/op_context.h"
#include "src/packer/ir/cat.h"
#include "src/packer/op/attributes.h"
#include "src/packer/op/elements.h"

namespace qplan::onnx {
namespace {

// Extents of several tensors can come together here, and those beside one of 0 can be any.
int64_t elements_of(const ir::Shape& shape, size_t begin, size_t end) {
  const std::vector<int64_t> extents(shape.begin() + static_cast<int64_t>(begin),
                                     shape.begin() + static_cast<int64_t>(end));
  const int64_t count = check_extents(extents);
  return std::ranges::find(extents, 0) == extents.end() ? count : 0;
}
int64_t elements_of(const ir::Shape& shape) { return elements_of(shape, 0, shape.size()); }

// A list that the importer makes, charged to the model.
ir::Ints list_of(const OpContext& op, int64_t count) {
  if (count > kMaxPositions) invalid(cat(count, " positions, at most ", kMaxPositions));
  op.graph().charge(static_cast<uint64_t>(count) * sizeof(int64_t));
  return ir::Ints(static_cast<size_t>(count));
}

ir::ConstantRef cast_constant(const OpContext& op, const ir::ConstantRef& constant, ir::DType dtype) {
  if (constant->type().dtype == dtype) return constant;
  if (constant->type().num_elements() == 0)
    return ir::make_constant(dtype, constant->type().shape, std::vector<uint8_t>());
  return op.emit("cast", {constant}, {{"dtype", ir::to_string(dtype)}}).constant;
}

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

// Indices that must be constant, counted from the end where they are negative.
ir::Ints indices_of(const OpContext& op, size_t i) {
  const ir::ConstantRef found = op.constant(i, "indices");
  const ir::DType dtype = found->type().dtype;
  if (dtype != ir::kInt32 && dtype != ir::kInt64) invalid(cat("the indices are ", found->type()));
  return integers_of(op, found);
}
int64_t held(int64_t index, int64_t extent) {
  if (index < -extent || index >= extent)
    invalid(cat("index ", index, " is out of range, expected from ", -extent, " to ", extent - 1));
  return index < 0 ? index + extent : index;
}

// Rows of the data [rows, ...] at these positions, under a new shape.
Value rows_at(const OpContext& op, const Value& data, int64_t rows, const ir::Ints& positions,
              const ir::Shape& shape) {
  if (elements_of(shape) == 0) throw Unsupported{"a result without elements"};
  const int64_t row = op.type(data).num_elements() / rows;
  const Value flat = op.reshape(data, row == 1 ? ir::Shape{rows} : ir::Shape{rows, row});
  return op.reshape(taken(op, flat, 0, positions), shape);
}

// For each list of `count` indices, which are those of the data's axes from `first` on, the row that it
// names. outer(i): the row of the axes before, as their flat position.
template <typename Outer>
ir::Ints rows_named(const OpContext& op, const ir::Ints& indices, const ir::Shape& data, size_t first,
                    size_t count, const Outer& outer) {
  const auto total = static_cast<int64_t>(count == 0 ? 0 : indices.size() / count);
  ir::Ints rows = list_of(op, total);
  for (size_t i = 0; i < rows.size(); ++i) {
    int64_t at = outer(static_cast<int64_t>(i));
    for (size_t k = 0; k < count; ++k)
      at = at * data[first + k] + held(indices[i * count + k], data[first + k]);
    rows[i] = at;
  }
  return rows;
}

// How many axes of the data the last extent of the indices names.
size_t named_axes(const ir::Shape& indices, const ir::Shape& data, size_t first) {
  if (indices.empty() || indices.back() < 1 ||
      indices.back() > static_cast<int64_t>(data.size() - std::min(first, data.size())))
    invalid(cat("the indices have shape ", to_text(indices), " for data of shape ", to_text(data)));
  return static_cast<size_t>(indices.back());
}

}  // namespace

void import_gather_elements(const OpContext& op) {
  op.expect_counts(2, 2);
  const Value& data = op.input(0);
  const ir::Shape shape = op.shape(data), wanted = op.shape(op.input(1));
  const auto axis = static_cast<size_t>(OpContext::axis_of(op.attr_int("axis", 0), shape.size()));
  bool fits = wanted.size() == shape.size();
  for (size_t i = 0; fits && i < shape.size(); ++i) fits = i == axis || wanted[i] <= shape[i];
  if (!fits) invalid(cat("the data is ", op.type(data), ", the indices ", op.type(op.input(1))));
  ir::Ints positions = indices_of(op, 1);
  for (size_t i = 0; i < positions.size(); ++i) {
    int64_t rest = static_cast<int64_t>(i), stride = 1, at = 0;
    for (size_t d = shape.size(); d-- > 0;) {
      at += (d == axis ? held(positions[i], shape[d]) : rest % wanted[d]) * stride;
      rest /= wanted[d];
      stride *= shape[d];
    }
    positions[i] = at;
  }
  op.define(0, rows_at(op, data, elements_of(shape), positions, wanted));
}

void import_gather_nd(const OpContext& op) {
  op.expect_counts(2, 2);
  const Value& data = op.input(0);
  const ir::Shape shape = op.shape(data), of_indices = op.shape(op.input(1));
  const int64_t given = op.attr_int("batch_dims", 0);
  const auto batch = static_cast<size_t>(given);
  if (given < 0 || batch >= shape.size() || batch >= of_indices.size() ||
      !std::equal(shape.begin(), shape.begin() + given, of_indices.begin()))
    invalid(cat("attribute 'batch_dims' is ", given, " for ", op.type(data), " and ", op.type(op.input(1))));
  const size_t named = named_axes(of_indices, shape, batch);
  const int64_t in_batch = elements_of(of_indices, batch, of_indices.size() - 1);
  const ir::Ints rows = rows_named(op, indices_of(op, 1), shape, batch, named,
                                   [&](int64_t i) { return in_batch == 0 ? 0 : i / in_batch; });
  ir::Shape result(of_indices.begin(), of_indices.end() - 1);
  result.insert(result.end(), shape.begin() + static_cast<int64_t>(batch + named), shape.end());
  op.define(0, rows_at(op, data, elements_of(shape, 0, batch + named), rows, result));
}

// The data with rows of the updates in the places of some of its own; of two for one place the last counts.
namespace {

void scatter(const OpContext& op, const ir::Ints& places, int64_t rows) {
  if (op.attr_string("reduction", "none") != "none") throw Unsupported{"attribute 'reduction'"};
  const Value &data = op.input(0), &updates = op.input(2);
  if (op.type(data).dtype != op.type(updates).dtype)
    invalid(cat("the data is ", op.type(data), ", the updates ", op.type(updates)));
  if (places.empty()) return op.define(0, data);
  const ir::Shape shape = op.shape(data);
  const int64_t row = op.type(data).num_elements() / rows, added = static_cast<int64_t>(places.size());
  if (op.type(updates).num_elements() != added * row)
    invalid(cat("the updates are ", op.type(updates), ", expected ", added * row, " elements"));
  ir::Ints positions = list_of(op, rows);
  for (int64_t i = 0; i < rows; ++i) positions[static_cast<size_t>(i)] = i;
  for (int64_t i = 0; i < added; ++i)
    positions[static_cast<size_t>(places[static_cast<size_t>(i)])] = rows + i;
  const Value both =
      op.emit("concatenate", {op.reshape(data, {rows, row}), op.reshape(updates, {added, row})},
              {{"axis", int64_t{0}}});
  op.define(0, op.reshape(taken(op, both, 0, positions), shape));
}

}  // namespace

void import_scatter_nd(const OpContext& op) {
  op.expect_counts(3, 3);
  const ir::Shape shape = op.shape(op.input(0)), of_indices = op.shape(op.input(1));
  const size_t named = named_axes(of_indices, shape, 0);
  const ir::Ints places =
      rows_named(op, indices_of(op, 1), shape, 0, named, [](int64_t) { return int64_t{0}; });
  ir::Shape expected(of_indices.begin(), of_indices.end() - 1);
  expected.insert(expected.end(), shape.begin() + static_cast<int64_t>(named), shape.end());
  if (op.shape(op.input(2)) != expected)
    invalid(cat("the updates are ", op.type(op.input(2)), ", expected shape ", to_text(expected)));
  scatter(op, places, elements_of(shape, 0, named));
}

void import_trilu(const OpContext& op) {
  op.expect_counts(1, 2);
  const Value& data = op.input(0);
  const ir::Shape& shape = op.shape(data);
  if (shape.size() < 2) invalid(cat("the data is ", op.type(data), ", expected matrices"));
  const bool upper = op.attr_int("upper", 1) != 0;
  const ir::Ints k = op.has_input(1) ? op.ints(1, "diagonals") : ir::Ints{0};
  if (k.size() != 1) invalid(cat("there are ", k.size(), " diagonals, expected 1"));
  const int64_t rows = shape[shape.size() - 2], columns = shape.back();
  if (rows > kMaxPositions || columns > kMaxPositions) invalid(cat("a matrix is ", op.type(data)));
  op.graph().charge(static_cast<uint64_t>(rows * columns));
  std::vector<uint8_t> kept(static_cast<size_t>(rows * columns));
  for (int64_t y = 0; y < rows; ++y) {
    for (int64_t x = 0; x < columns; ++x)
      kept[static_cast<size_t>(y * columns + x)] = upper ? x - y >= k[0] : x - y <= k[0];
  }
  op.define(0, op.emit("where", {ir::make_constant(ir::kBool, {rows, columns}, kept), data,
                                 scalar_of(0, op.type(data).dtype)}));
}

// Indices below 0 count from the depth; those out of range are "off" everywhere.
void import_one_hot(const OpContext& op) {
  op.expect_counts(3, 3);
  const Value &indices = op.input(0), &values = op.input(2);
  const ir::ConstantRef given = op.constant(1, "depths");
  if (given->type().num_elements() != 1) invalid(cat("the depth is ", given->type()));
  const double number = numbers_of(*given)[0];
  if (!(number >= 1 && number <= static_cast<double>(kMaxPositions)))
    invalid(cat("the depth is ", number, ", expected from 1 to ", kMaxPositions));
  if (op.shape(values) != ir::Shape{2}) invalid(cat("the values are ", op.type(values), ", expected two"));
  const auto depth = static_cast<int64_t>(number);
  // The codes have the indices' dtype, in which a depth beyond it would wrap.
  const ir::DType dtype = op.type(indices).dtype;
  if (!dtype.is_float() && dtype.bits < 32 && depth - 1 > dtype.max())
    throw Unsupported{cat("depth ", depth, " for indices of ", dtype)};
  const size_t rank = op.shape(indices).size() + 1;
  const auto axis = static_cast<size_t>(OpContext::axis_of(op.attr_int("axis", -1), rank));
  ir::Shape apart = op.shape(indices), codes(rank - axis, 1);
  apart.insert(apart.begin() + static_cast<int64_t>(axis), 1);
  codes[0] = depth;
  const auto matches = [&](int64_t first) {
    ir::Ints all = list_of(op, depth);
    for (size_t i = 0; i < all.size(); ++i) all[i] = first + static_cast<int64_t>(i);
    return op.emit("equal", {op.reshape(indices, apart), integers(op, dtype, codes, all)});
  };
  const auto value = [&](int64_t i) {
    return op.reshape(op.emit("strided_slice", {values}, {{"begin", ir::Ints{i}}, {"end", ir::Ints{i + 1}}}),
                      {});
  };
  Value off = value(0);
  const Value on = value(1);
  if (!dtype.is_unsigned_int()) off = op.emit("where", {matches(-depth), on, off});
  op.define(0, op.emit("where", {matches(0), on, off}));
}

// Numbers of constants.

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
  ir::Ints results = list_of(op, elements_of(shape));
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
  if (as_c || dtype != ir::kInt32)
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
  const int64_t inner = elements_of(shape, axis + 1, shape.size()), extent = shape[axis];
  ir::Ints values = integers_of(op, data.constant);
  if (values.empty()) return data;
  for (int64_t line = 0; line < elements_of(shape, 0, axis) * inner; ++line) {
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
