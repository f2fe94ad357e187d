// Sizes, numbers, conditions and lists of these: everything that is known when the model is read.
#include <algorithm>
#include <cmath>

#include "src/packer/import/pytorch/op_context.h"

namespace qplan::pt {
namespace {

// Nothing where one of the items is no T.
template <typename T>
std::optional<bool> equal_as(const ValueTable& values, Ref a, Ref b) {
  const T *x = values.get<T>(a), *y = values.get<T>(b);
  if (x == nullptr || y == nullptr) return std::nullopt;
  return *x == *y;
}

// Items of lists, which have one type each.
bool is_equal_item(const ValueTable& values, Ref a, Ref b) {
  for (const std::optional<bool>& equal : {equal_as<int64_t>(values, a, b), equal_as<double>(values, a, b),
                                           equal_as<bool>(values, a, b), equal_as<std::string>(values, a, b)})
    if (equal) return *equal;
  throw Unsupported{"lists of other than numbers and strings"};
}

bool are_equal(const ValueTable& values, const std::vector<Ref>& a, const std::vector<Ref>& b) {
  return std::ranges::equal(a, b, [&](Ref x, Ref y) { return is_equal_item(values, x, y); });
}

// Numbers, or strings and lists, which are only equal or not.
Ref compare(OpContext& op, Comparison comparison, bool (*holds)(double a, double b)) {
  const auto* a = op.values().get<std::string>(op.ref(0));
  const auto* b = op.values().get<std::string>(op.ref(1));
  if (a != nullptr && b != nullptr) return op.add(holds(a->compare(*b), 0.0));
  const auto *list = items_of(op.values(), op.ref(0)), *other = items_of(op.values(), op.ref(1));
  const bool is_order = holds(0.0, 1.0) != holds(1.0, 0.0);
  if (list != nullptr && other != nullptr && is_order) throw Unsupported{"lists, of which one comes first"};
  if (list != nullptr && other != nullptr)
    return op.add(holds(are_equal(op.values(), *list, *other) ? 0.0 : 1.0, 0.0));
  if (op.is_flow(0) || op.is_flow(1)) return compare_tensors(op, comparison);
  return op.add(holds(op.number(0), op.number(1)));
}

bool is_same(OpContext& op) { return op.has(0) == op.has(1) && (!op.has(0) || op.ref(0) == op.ref(1)); }

}  // namespace

Ref import_size(OpContext& op) {
  const ir::Shape shape = op.shape(op.flow(0));
  if (op.has(1)) return op.add(shape[static_cast<size_t>(OpContext::axis_of(op.integer(1), shape.size()))]);
  List list;
  for (const int64_t extent : shape) list.items.push_back(op.add(extent));
  return op.add(std::move(list));
}

Ref import_dim(OpContext& op) { return op.add(static_cast<int64_t>(op.shape(op.flow(0)).size())); }

Ref import_eq(OpContext& op) {
  return compare(op, Comparison::kEqual, [](double a, double b) { return a == b; });
}
Ref import_ne(OpContext& op) {
  return compare(op, Comparison::kNotEqual, [](double a, double b) { return a != b; });
}
Ref import_lt(OpContext& op) {
  return compare(op, Comparison::kLess, [](double a, double b) { return a < b; });
}
Ref import_gt(OpContext& op) {
  return compare(op, Comparison::kGreater, [](double a, double b) { return a > b; });
}
Ref import_le(OpContext& op) {
  return compare(op, Comparison::kLessEqual, [](double a, double b) { return a <= b; });
}
Ref import_ge(OpContext& op) {
  return compare(op, Comparison::kGreaterEqual, [](double a, double b) { return a >= b; });
}
Ref import_is(OpContext& op) { return op.add(is_same(op)); }
Ref import_isnot(OpContext& op) { return op.add(!is_same(op)); }
Ref import_not(OpContext& op) { return op.add(!op.boolean(0)); }

Ref import_len(OpContext& op) {
  if (op.is_flow(0)) {
    const ir::Shape& shape = op.shape(op.flow(0));
    if (shape.empty()) invalid("a tensor of rank 0 has no length");
    return op.add(shape[0]);
  }
  const std::vector<Ref>* items = items_of(op.values(), op.ref(0));
  if (items == nullptr) invalid(cat(kind_name(op.values().at(op.ref(0))), " has no length"));
  return op.add(static_cast<int64_t>(items->size()));
}

// Arithmetic on two numbers. Integers wrap; where one of the two is a double, so is the result.
namespace {

// Towards minus infinity, as Python divides.
int64_t floor_quotient(int64_t a, int64_t b) {
  if (b == 0) invalid("division by zero");
  if (b == -1) return static_cast<int64_t>(0 - static_cast<uint64_t>(a));
  const int64_t quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

int64_t truncated_quotient(int64_t a, int64_t b) {
  const int64_t quotient = floor_quotient(a, b);
  return quotient < 0 && b != -1 && a % b != 0 ? quotient + 1 : quotient;
}

// With the sign of the divisor.
int64_t remainder(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) -
                              static_cast<uint64_t>(floor_quotient(a, b)) * static_cast<uint64_t>(b));
}
double remainder(double a, double b) {
  const double rest = std::fmod(a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

template <typename Compute>
Ref computed(OpContext& op, const PlainNumber& a, const PlainNumber& b, const Compute& compute) {
  const auto *x = std::get_if<int64_t>(&a), *y = std::get_if<int64_t>(&b);
  if (x != nullptr && y != nullptr) return op.add(compute(*x, *y));
  const auto real = [](const PlainNumber& n) {
    return std::visit([](auto value) { return static_cast<double>(value); }, n);
  };
  return op.add(compute(real(a), real(b)));
}

// Both arguments must be numbers.
template <typename Compute>
Ref computed(OpContext& op, const Compute& compute) {
  const std::optional<PlainNumber> a = op.plain_number(0), b = op.plain_number(1);
  if (!a || !b) throw Unsupported{"arguments other than two numbers"};
  return computed(op, *a, *b, compute);
}

// An integer of what has no fraction.
Ref rounded(OpContext& op, double value) {
  if (!(std::fabs(value) < 9007199254740992.0)) invalid("a number does not fit an integer");
  return op.add(static_cast<int64_t>(value));
}

template <typename T>
T quotient_as(const std::string& rounding, T a, T b) {
  if constexpr (std::is_same_v<T, int64_t>) {
    return rounding == "floor" ? floor_quotient(a, b) : truncated_quotient(a, b);
  } else {
    return rounding == "floor" ? std::floor(a / b) : std::trunc(a / b);
  }
}

}  // namespace

std::optional<Ref> number_arithmetic(OpContext& op, char sign) {
  const std::optional<PlainNumber> left = op.plain_number(0), right = op.plain_number(1);
  if (!left || !right) return std::nullopt;
  return computed(op, *left, *right, [&](auto a, auto b) {
    // Unsigned integers wrap as machines do.
    using T = decltype(a);
    using Wide = std::conditional_t<std::is_same_v<T, int64_t>, uint64_t, double>;
    const auto x = static_cast<Wide>(a), y = static_cast<Wide>(b);
    return static_cast<T>(sign == '+' ? x + y : sign == '-' ? x - y : x * y);
  });
}

// A quotient without a rounding mode is a double, of integers, too.
std::optional<Ref> number_quotient(OpContext& op, const std::string& rounding) {
  const std::optional<PlainNumber> left = op.plain_number(0), right = op.plain_number(1);
  if (!left || !right) return std::nullopt;
  if (rounding.empty()) return op.add(op.number(0) / op.number(1));
  if (rounding != "floor" && rounding != "trunc") invalid("rounding mode " + in_quotes(rounding));
  return computed(op, *left, *right, [&](auto a, auto b) { return quotient_as(rounding, a, b); });
}

// Whole powers of integers are integers as far as a double holds them.
std::optional<Ref> number_power(OpContext& op) {
  const std::optional<PlainNumber> base = op.plain_number(0), exponent = op.plain_number(1);
  if (!base || !exponent) return std::nullopt;
  const double power = std::pow(op.number(0), op.number(1));
  const bool are_integers = base->index() == 0 && exponent->index() == 0;
  if (!are_integers || power != std::trunc(power) || !(std::fabs(power) < 9007199254740992.0))
    return op.add(power);
  return op.add(static_cast<int64_t>(power));
}

// -INT64_MIN is itself: wrapping, as machines do.
Ref number_negative(OpContext& op, const PlainNumber& number) {
  if (const auto* integer = std::get_if<int64_t>(&number))
    return op.add(static_cast<int64_t>(0 - static_cast<uint64_t>(*integer)));
  return op.add(-std::get<double>(number));
}

Ref number_to(OpContext& op, int64_t type) {
  const double value = op.number(0);
  if (type == static_cast<int64_t>(ScalarType::kFloat64)) return op.add(value);
  if (type == static_cast<int64_t>(ScalarType::kFloat32))
    return op.add(static_cast<double>(static_cast<float>(value)));
  if (type != static_cast<int64_t>(ScalarType::kInt64)) throw Unsupported{"a number of another dtype"};
  return import_int(op);
}

// TorchScript's floor and ceil of numbers are integers.
Ref import_floor(OpContext& op) { return rounded(op, std::floor(op.number(0))); }
Ref import_ceil(OpContext& op) { return rounded(op, std::ceil(op.number(0))); }

Ref import_floordiv(OpContext& op) {
  return computed(op, [](auto a, auto b) { return quotient_as("floor", a, b); });
}

Ref import_remainder(OpContext& op) {
  return computed(op, [](auto a, auto b) { return remainder(a, b); });
}

// The greater or lesser of two numbers, or of the numbers of one list.
namespace {

Ref extreme(OpContext& op, bool is_max) {
  const auto pick = [is_max](auto a, auto b) { return is_max ? std::max(a, b) : std::min(a, b); };
  const std::vector<Ref>* items = items_of(op.values(), op.ref(0));
  if (items == nullptr || op.has(1)) return computed(op, pick);
  const std::vector<Ref> numbers = *items;
  if (numbers.empty()) invalid("an empty list has no least and no greatest item");
  Ref found = numbers[0];
  for (const Ref item : numbers) {
    const std::optional<PlainNumber> a = op.as_plain_number(found), b = op.as_plain_number(item);
    if (!a || !b) throw Unsupported{"a list of other than numbers"};
    found = computed(op, *a, *b, pick);
  }
  return found;
}

}  // namespace

Ref import_number_max(OpContext& op) { return extreme(op, true); }
Ref import_number_min(OpContext& op) { return extreme(op, false); }

Ref import_int(OpContext& op) {
  if (const std::optional<PlainNumber> number = op.plain_number(0); number && number->index() == 0)
    return op.add(std::get<int64_t>(*number));
  return rounded(op, std::trunc(op.number(0)));
}

Ref import_float(OpContext& op) { return op.add(op.number(0)); }
Ref import_bool(OpContext& op) { return op.add(op.number(0) != 0); }

Ref import_is_quantized(OpContext& op) { return op.add(op.flow(0).quantization.has_value()); }
Ref import_warn(OpContext& op) { return op.add(None{}); }
Ref import_raise(OpContext& op) { invalid("the model raises an exception: " + in_quotes(op.text(0, ""))); }

// A device is where tensors are; the plan decides where it runs.
Ref import_device(OpContext& op) { return op.add(std::string("cpu")); }

// The number of the element type.
Ref import_dtype(OpContext& op) {
  const Flow input = op.flow(0);
  const bool is_quantized = input.quantization.has_value();
  const ir::DType dtype = op.dtype(input);
  for (const ScalarType type :
       {ScalarType::kFloat32, ScalarType::kInt64, ScalarType::kInt32, ScalarType::kBool, ScalarType::kFloat16,
        ScalarType::kFloat64, ScalarType::kInt16, ScalarType::kInt8, ScalarType::kUint8, ScalarType::kQint8,
        ScalarType::kQuint8, ScalarType::kQint32}) {
    const bool is_quantized_type = type >= ScalarType::kQint8;
    if (is_quantized == is_quantized_type && dtype_of(type) == dtype)
      return op.add(static_cast<int64_t>(type));
  }
  throw Unsupported{"a " + ir::to_string(dtype) + " tensor"};
}

Ref import_list(OpContext& op) {
  const std::vector<Ref>* items = items_of(op.values(), op.ref(0));
  if (items == nullptr)
    throw Unsupported{cat("found ", kind_name(op.values().at(op.ref(0))), ", expected a list")};
  return op.add(List{*items});
}

namespace {

// Counts the comparisons of so many items with this one.
void charge_search(OpContext& op, size_t items, Ref wanted) {
  constexpr size_t kTextBytesPerItem = 16;
  const auto* text = op.values().get<std::string>(wanted);
  const size_t each = 1 + (text == nullptr ? 0 : text->size() / kTextBytesPerItem);
  op.charge_elements(static_cast<int64_t>(items * each));
}

}  // namespace

// The item of a list, or the value of a key, which may be new.
Ref import_set_item(OpContext& op) {
  const Ref value = op.ref(2);
  if (List* list = op.values().get<List>(op.ref(0))) {
    const auto size = std::ssize(list->items);
    const int64_t index = op.integer(1);
    if (index < -size || index >= size)
      invalid(cat("index ", index, " is out of range for ", size, " items"));
    list->items[static_cast<size_t>(index < 0 ? index + size : index)] = value;
    return op.ref(0);
  }
  Dict* dict = op.values().get<Dict>(op.ref(0));
  if (dict == nullptr)
    invalid("found " + std::string(kind_name(op.values().at(op.ref(0)))) + ", expected a list or a dict");
  charge_search(op, dict->entries.size(), op.ref(1));
  for (auto& [key, old] : dict->entries) {
    if (!is_equal_item(op.values(), key, op.ref(1))) continue;
    old = value;
    return op.ref(0);
  }
  dict->entries.emplace_back(op.ref(1), value);
  return op.ref(0);
}

// Whether a dict has the key, or a list the item.
Ref import_contains(OpContext& op) {
  const auto is_wanted = [&](Ref item) { return is_equal_item(op.values(), item, op.ref(1)); };
  if (const Dict* dict = op.values().get<Dict>(op.ref(0))) {
    charge_search(op, dict->entries.size(), op.ref(1));
    return op.add(
        std::ranges::any_of(dict->entries, is_wanted, [](const auto& entry) { return entry.first; }));
  }
  const std::vector<Ref>* items = items_of(op.values(), op.ref(0));
  if (items == nullptr)
    throw Unsupported{cat("found ", kind_name(op.values().at(op.ref(0))), ", expected a dict or a list")};
  charge_search(op, items->size(), op.ref(1));
  return op.add(std::ranges::any_of(*items, is_wanted));
}

// A list grows under all of its names.
Ref import_append(OpContext& op) {
  List* list = op.values().get<List>(op.ref(0));
  if (list == nullptr)
    invalid("found " + std::string(kind_name(op.values().at(op.ref(0)))) + ", expected a list");
  list->items.push_back(op.ref(1));
  return op.ref(0);
}

}  // namespace qplan::pt
