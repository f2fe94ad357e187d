// Operators on positions that are known on import: elements gathered and scattered by constant indices, the
// triangle of a matrix, one-hot codes.
#include <algorithm>
#include <optional>
#include <string_view>

#include "src/packer/import/onnx/op_context.h"
#include "src/packer/ir/cat.h"

namespace qplan::onnx {
namespace {

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
  if (num_elements(shape, 0, shape.size()) == 0) throw Unsupported{"a result without elements"};
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

// For each index at input 1 the element of the data that it names: of the index's own place, but along
// attribute axis where the index says.
ir::Ints elements_named(const OpContext& op) {
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
  return positions;
}

}  // namespace

void import_gather_elements(const OpContext& op) {
  op.expect_counts(2, 2);
  const Value& data = op.input(0);
  const int64_t count = num_elements(op.shape(data), 0, op.shape(data).size());
  op.define(0, rows_at(op, data, count, elements_named(op), op.shape(op.input(1))));
}

// Rows that the network names, by indices of the first axes.
namespace {

Value rows_computed(const OpContext& op) {
  if (op.attr_int("batch_dims", 0) != 0) throw Unsupported{"batch_dims and indices that are not constant"};
  const Value& indices = op.input(1);
  (void)named_axes(op.shape(indices), op.shape(op.input(0)), 0);
  const bool is_wide = op.type(indices).dtype == ir::kInt64;
  return op.emit(
      "gather_nd",
      {op.input(0), is_wide ? op.emit("cast", {indices}, {{"dtype", std::string("int32")}}) : indices});
}

}  // namespace

void import_gather_nd(const OpContext& op) {
  op.expect_counts(2, 2);
  if (!op.input(1).is_constant()) return op.define(0, rows_computed(op));
  const Value& data = op.input(0);
  const ir::Shape shape = op.shape(data), of_indices = op.shape(op.input(1));
  const int64_t given = op.attr_int("batch_dims", 0);
  const auto batch = static_cast<size_t>(given);
  if (given < 0 || batch >= shape.size() || batch >= of_indices.size() ||
      !std::equal(shape.begin(), shape.begin() + given, of_indices.begin()))
    invalid(cat("attribute 'batch_dims' is ", given, " for ", op.type(data), " and ", op.type(op.input(1))));
  const size_t named = named_axes(of_indices, shape, batch);
  const int64_t in_batch = num_elements(of_indices, batch, of_indices.size() - 1);
  const ir::Ints rows = rows_named(op, indices_of(op, 1), shape, batch, named,
                                   [&](int64_t i) { return in_batch == 0 ? 0 : i / in_batch; });
  ir::Shape result(of_indices.begin(), of_indices.end() - 1);
  result.insert(result.end(), shape.begin() + static_cast<int64_t>(batch + named), shape.end());
  op.define(0, rows_at(op, data, num_elements(shape, 0, batch + named), rows, result));
}

// The data with rows of the updates in the places of some of its own, or combined with these.
namespace {

struct Rows {
  Value data, updates;  // [rows, row], [places, row]
  int64_t row;
};

// The last one of two updates for one place counts.
Value replaced(const OpContext& op, const Rows& of, const ir::Ints& places) {
  const int64_t rows = op.shape(of.data)[0];
  ir::Ints positions = list_of(op, rows);
  for (int64_t i = 0; i < rows; ++i) positions[static_cast<size_t>(i)] = i;
  for (size_t i = 0; i < places.size(); ++i)
    positions[static_cast<size_t>(places[i])] = rows + static_cast<int64_t>(i);
  return taken(op, op.emit("concatenate", {of.data, of.updates}, {{"axis", int64_t{0}}}), 0, positions);
}

// How a reduction combines the data with an update. Rows without an update are combined with a number that
// changes nothing, or, if the operator has no such number, with themselves.
struct Reduction {
  std::string_view name;
  std::string_view combine;
  std::optional<double> neutral;
};
constexpr Reduction kReductions[] = {
    {"add", "add", -0.0}, {"mul", "multiply", 1}, {"max", "maximum", {}}, {"min", "minimum", {}}};

// Updates of one place are combined one after another, as they come: the first of each place in a first
// tensor, the second ones in another.
Value reduced(const OpContext& op, const Reduction& reduction, Rows of, const ir::Ints& places) {
  constexpr size_t kMaxRounds = 64;
  const int64_t rows = op.shape(of.data)[0];
  std::vector<ir::Ints> rounds;  // for each row the number of its update, or -1
  ir::Ints count = list_of(op, rows);
  for (size_t i = 0; i < places.size(); ++i) {
    const auto place = static_cast<size_t>(places[i]), round = static_cast<size_t>(count[place]++);
    if (round >= kMaxRounds)
      throw Unsupported{cat("more than ", kMaxRounds, " updates of one place and attribute 'reduction'")};
    if (round >= rounds.size()) {
      rounds.push_back(list_of(op, rows));
      std::ranges::fill(rounds[round], -1);
    }
    rounds[round][place] = static_cast<int64_t>(i);
  }
  Value neutral;
  if (reduction.neutral) {
    const Value one = op.reshape(scalar_of(*reduction.neutral, op.type(of.data).dtype), {1, 1});
    neutral = op.emit("take", {one, make_vector(ir::kInt64, list_of(op, of.row))}, {{"axis", int64_t{1}}});
  }
  const auto updates = static_cast<int64_t>(places.size());
  for (ir::Ints& round : rounds) {
    for (int64_t i = 0; i < rows; ++i) {
      int64_t& from = round[static_cast<size_t>(i)];
      if (from < 0) from = updates + (reduction.neutral ? 0 : i);
    }
    const Value rest = reduction.neutral ? neutral : of.data;
    const Value all = op.emit("concatenate", {of.updates, rest}, {{"axis", int64_t{0}}});
    of.data = op.emit(reduction.combine, {of.data, taken(op, all, 0, round)});
  }
  return of.data;
}

void scatter(const OpContext& op, const ir::Ints& places, int64_t rows) {
  const std::string how = op.attr_string("reduction", "none");
  const Value &data = op.input(0), &updates = op.input(2);
  if (op.type(data).dtype != op.type(updates).dtype)
    invalid(cat("the data is ", op.type(data), ", the updates ", op.type(updates)));
  const auto* reduction = std::ranges::find(kReductions, how, &Reduction::name);
  if (how != "none" && reduction == std::end(kReductions))
    invalid(cat("attribute 'reduction' is ", in_quotes(how), ", expected none, add, mul, max or min"));
  if (places.empty()) return op.define(0, data);
  const ir::Shape shape = op.shape(data);
  const int64_t row = op.type(data).num_elements() / rows, added = static_cast<int64_t>(places.size());
  if (op.type(updates).num_elements() != added * row)
    invalid(cat("the updates are ", op.type(updates), ", expected ", added * row, " elements"));
  const Rows of = {op.reshape(data, {rows, row}), op.reshape(updates, {added, row}), row};
  op.define(
      0, op.reshape(how == "none" ? replaced(op, of, places) : reduced(op, *reduction, of, places), shape));
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
  scatter(op, places, num_elements(shape, 0, named));
}

void import_scatter_elements(const OpContext& op) {
  op.expect_counts(3, 3);
  const ir::Shape shape = op.shape(op.input(0));
  if (op.shape(op.input(2)) != op.shape(op.input(1)))
    invalid(cat("the updates are ", op.type(op.input(2)), ", the indices ", op.type(op.input(1))));
  scatter(op, elements_named(op), num_elements(shape, 0, shape.size()));
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

}  // namespace qplan::onnx
