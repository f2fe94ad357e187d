// Arithmetic on constants. Each dtype of kArithmetic is computed in its own C++ type.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "src/packer/error.h"
#include "src/packer/op/attributes.h"
#include "src/packer/op/elements.h"
#include "src/packer/op/evaluate.h"
#include "src/packer/op/infer.h"

namespace qplan::op {
namespace {

[[noreturn]] void refuse(const ir::Node& node, const std::string& text) {
  throw PackError(QPLAN_MODEL_INVALID, cat(node.op->name, " '", node.name, "': ", text));
}

// work(T()) with the C++ type of the dtype; a bool is a byte that is 0 or 1.
template <typename Work>
auto with_type(ir::DType dtype, const Work& work) {
  if (dtype == ir::kInt8) return work(int8_t());
  if (dtype == ir::kInt16) return work(int16_t());
  if (dtype == ir::kInt32) return work(int32_t());
  if (dtype == ir::kInt64) return work(int64_t());
  if (dtype == ir::kUint8) return work(uint8_t());
  if (dtype == ir::kUint16) return work(uint16_t());
  if (dtype == ir::kUint32) return work(uint32_t());
  if (dtype == ir::kUint64) return work(uint64_t());
  if (dtype == ir::kFloat32) return work(float());
  if (dtype == ir::kFloat64) return work(double());
  if (dtype == ir::kBool) return work(bool());
  throw PackError(QPLAN_INTERNAL, cat("arithmetic on constants of ", dtype));
}

template <typename T>
T load(const uint8_t* bytes) {
  if constexpr (std::is_same_v<T, bool>) {
    return *bytes != 0;
  } else {
    T value;
    std::memcpy(&value, bytes, sizeof value);
    return value;
  }
}

// Which NaN an operation gives, processors decide; here it is one.
template <typename T>
void store(uint8_t* bytes, T value) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(value)) value = std::numeric_limits<T>::quiet_NaN();
  }
  std::memcpy(bytes, &value, sizeof value);
}

template <typename T>
T from_double(double x) {
  if constexpr (std::is_same_v<T, float>) {
    return to_float32(x);
  } else {
    return x;
  }
}

// Towards zero, to the nearest end of the range beyond it; NaN gives 0.
template <typename T>
T saturated(double x) {
  if (std::isnan(x)) return 0;
  // 2^bits of the largest value is a double, the largest value itself may not be.
  const double limit = std::ldexp(1.0, std::numeric_limits<T>::digits);
  if (x >= limit) return std::numeric_limits<T>::max();
  if (x <= (std::is_signed_v<T> ? -limit : 0.0)) return std::numeric_limits<T>::min();
  return static_cast<T>(x);
}

enum class Binary { kAdd, kSubtract, kMultiply, kDivide, kMaximum, kMinimum, kLess, kLessEqual, kEqual };

Binary binary_of(const ir::Node& node) {
  constexpr std::pair<std::string_view, Binary> kNames[] = {
      {"add", Binary::kAdd},       {"subtract", Binary::kSubtract},    {"multiply", Binary::kMultiply},
      {"divide", Binary::kDivide}, {"maximum", Binary::kMaximum},      {"minimum", Binary::kMinimum},
      {"less", Binary::kLess},     {"less_equal", Binary::kLessEqual}, {"equal", Binary::kEqual},
  };
  for (const auto& [name, binary] : kNames) {
    if (name == node.op->name) return binary;
  }
  throw PackError(QPLAN_INTERNAL, "no binary operator " + node.op->name);
}

template <typename T>
T float_arithmetic(Binary binary, T a, T b) {
  switch (binary) {
    case Binary::kAdd:
      return a + b;
    case Binary::kSubtract:
      return a - b;
    case Binary::kMultiply:
      return a * b;
    case Binary::kDivide:
      return a / b;
    case Binary::kMaximum:
      return std::isnan(a) ? a : std::isnan(b) || b > a ? b : a;
    default:
      return std::isnan(a) ? a : std::isnan(b) || b < a ? b : a;
  }
}

template <typename T>
T integer_arithmetic(const ir::Node& node, Binary binary, T a, T b) {
  // Modulo 2^64, of which the result's bits are the low ones.
  const auto x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);
  switch (binary) {
    case Binary::kAdd:
      return static_cast<T>(x + y);
    case Binary::kSubtract:
      return static_cast<T>(x - y);
    case Binary::kMultiply: {
      const uint64_t product = x * y;
      return static_cast<T>(product);
    }
    case Binary::kDivide:
      if (b == 0) refuse(node, "an integer is divided by 0");
      if constexpr (std::is_signed_v<T>) {
        if (b == -1) return static_cast<T>(uint64_t{0} - x);  // the smallest value has no negative
      }
      return static_cast<T>(a / b);
    case Binary::kMaximum:
      return std::max(a, b);
    default:
      return std::min(a, b);
  }
}

template <typename T>
T arithmetic(const ir::Node& node, Binary binary, T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    return float_arithmetic(binary, a, b);
  } else {
    return integer_arithmetic(node, binary, a, b);
  }
}

template <typename T, typename Compute>
void for_each_pair(Operands operands, const ir::Shape& shape, const Compute& compute) {
  const Elements lhs(*operands[0]), rhs(*operands[1]);
  const auto broadcast = [&](const Elements& elements, size_t operand) {
    return xt::broadcast(tensor_of(reinterpret_cast<const ElementBytes<sizeof(T)>*>(elements.at(0)),
                                   operands[operand]->type().shape),
                         extents(shape));
  };
  const auto left = broadcast(lhs, 0), right = broadcast(rhs, 1);
  auto b = right.begin();
  int64_t i = 0;
  for (const auto& a : left) {
    compute(i++, load<T>(a.data()), load<T>(b->data()));
    ++b;
  }
}

// For operators that keep an integer as it is, those on numbers with a fraction.
bool is_identity_on_integers(std::string_view name) {
  return name == "round" || name == "floor" || name == "ceil";
}

template <typename T>
T integer_unary(const ir::Node& node, T x) {
  const std::string& name = node.op->name;
  const auto negated = static_cast<T>(uint64_t{0} - static_cast<uint64_t>(x));
  if (is_identity_on_integers(name)) return x;
  if (name == "negative") return negated;
  if (name == "abs") return x < T{0} ? negated : x;
  if (name == "nn.relu") return x < T{0} ? T{0} : x;
  throw PackError(QPLAN_INTERNAL, name + " on integers");
}

}  // namespace

Results evaluate_binary(const ir::Node& node, Operands operands) {
  const ir::TensorType type = result_types(node, operands)[0];
  const Binary binary = binary_of(node);
  Elements to(type);
  with_type(operands[0]->type().dtype, [&](auto zero) {
    using T = decltype(zero);
    for_each_pair<T>(operands, type.shape, [&](int64_t i, T a, T b) {
      if (binary == Binary::kLess) {
        store<bool>(to.at(i), a < b);
      } else if (binary == Binary::kLessEqual) {
        store<bool>(to.at(i), a <= b);
      } else if (binary == Binary::kEqual) {
        store<bool>(to.at(i), a == b);
      } else {
        store<T>(to.at(i), arithmetic<T>(node, binary, a, b));
      }
    });
  });
  return {std::move(to).finish()};
}

// In the order of the elements and in the arithmetic of the kernels: floats in their dtype, integers in
// int64.
Results evaluate_reduction(const ir::Node& node, Operands operands) {
  const ir::TensorType type = result_types(node, operands)[0];
  const ir::Shape& shape = operands[0]->type().shape;
  const ir::Ints axes = normalized_axes(attr_ints(node, "axis"), shape.size());
  const std::string& name = node.op->name;
  const Binary binary = name == "max"    ? Binary::kMaximum
                        : name == "min"  ? Binary::kMinimum
                        : name == "prod" ? Binary::kMultiply
                                         : Binary::kAdd;
  const bool is_extremum = name == "max" || name == "min";
  ir::Shape strides(shape.size());  // of the result, 0 along the axes that it lacks
  int64_t num_results = 1;
  for (size_t axis = shape.size(); axis-- > 0;) {
    if (std::ranges::binary_search(axes, static_cast<int64_t>(axis))) continue;
    strides[axis] = num_results;
    num_results *= shape[axis];
  }
  const Elements from(*operands[0]);
  Elements to(type);
  with_type(type.dtype, [&](auto zero) {
    using T = decltype(zero);
    using Sum = std::conditional_t<std::is_floating_point_v<T>, T, int64_t>;
    const int64_t num_elements = operands[0]->type().num_elements();
    std::vector<Sum> results(static_cast<size_t>(num_results), binary == Binary::kMultiply ? Sum{1} : Sum{0});
    std::vector<bool> is_begun(results.size(), !is_extremum);
    ir::Shape index(shape.size());
    int64_t place = 0;
    for (int64_t i = 0; i < num_elements; ++i) {
      const auto at = static_cast<size_t>(place);
      const auto x = static_cast<Sum>(load<T>(from.at(i)));
      results[at] = is_begun[at] ? arithmetic<Sum>(node, binary, results[at], x) : x;
      is_begun[at] = true;
      for (size_t axis = shape.size(); axis-- > 0;) {
        place += strides[axis];
        if (++index[axis] < shape[axis]) break;
        place -= strides[axis] * shape[axis];
        index[axis] = 0;
      }
    }
    for (int64_t i = 0; i < num_results; ++i) {
      Sum value = results[static_cast<size_t>(i)];
      if (name == "mean") value /= static_cast<Sum>(num_elements / num_results);
      store<T>(to.at(i), static_cast<T>(value));
    }
  });
  return {std::move(to).finish()};
}

Results evaluate_unary(const ir::Node& node, Operands operands) {
  const ir::TensorType type = result_types(node, operands)[0];
  const Elements from(*operands[0]);
  Elements to(type);
  with_type(type.dtype, [&](auto zero) {
    using T = decltype(zero);
    for (int64_t i = 0; i < type.num_elements(); ++i) {
      const T x = load<T>(from.at(i));
      if constexpr (std::is_floating_point_v<T>) {
        store<T>(to.at(i), from_double<T>(unary_function(node, static_cast<double>(x))));
      } else {
        store<T>(to.at(i), integer_unary<T>(node, x));
      }
    }
  });
  return {std::move(to).finish()};
}

Results evaluate_clip(const ir::Node& node, Operands operands) {
  const ir::TensorType type = result_types(node, operands)[0];
  const double min = attr_float(node, "a_min"), max = attr_float(node, "a_max");
  const Elements from(*operands[0]);
  Elements to(type);
  with_type(type.dtype, [&](auto zero) {
    using T = decltype(zero);
    T low, high;
    if constexpr (std::is_floating_point_v<T>) {
      low = from_double<T>(min);
      high = from_double<T>(max);
    } else {
      low = saturated<T>(min);
      high = saturated<T>(max);
    }
    for (int64_t i = 0; i < type.num_elements(); ++i) {
      const T x = load<T>(from.at(i));
      store<T>(to.at(i), x < low ? low : x > high ? high : x);  // NaN stays
    }
  });
  return {std::move(to).finish()};
}

Results evaluate_cast(const ir::Node& node, Operands operands) {
  const ir::TensorType type = result_types(node, operands)[0];
  const Elements from(*operands[0]);
  Elements to(type);
  with_type(operands[0]->type().dtype, [&](auto from_zero) {
    using From = decltype(from_zero);
    with_type(type.dtype, [&](auto to_zero) {
      using To = decltype(to_zero);
      for (int64_t i = 0; i < type.num_elements(); ++i) {
        const From x = load<From>(from.at(i));
        if constexpr (std::is_same_v<To, bool>) {
          store<To>(to.at(i), x != From{});
        } else if constexpr (std::is_floating_point_v<From> && std::is_floating_point_v<To>) {
          store<To>(to.at(i), from_double<To>(static_cast<double>(x)));
        } else if constexpr (std::is_floating_point_v<From>) {
          store<To>(to.at(i), saturated<To>(static_cast<double>(x)));
        } else {
          store<To>(to.at(i), static_cast<To>(x));
        }
      }
    });
  });
  return {std::move(to).finish()};
}

Results evaluate_softmax(const ir::Node& node, Operands operands) {
  const ir::TensorType type = result_types(node, operands)[0];
  const auto axis = static_cast<size_t>(normalized_axis(attr_int(node, "axis"), type.shape.size()));
  const int64_t extent = type.shape[axis];
  const double beta = attr_float(node, "beta");
  int64_t stride = 1;
  for (size_t d = axis + 1; d < type.shape.size(); ++d) stride *= type.shape[d];
  const Elements from(*operands[0]);
  Elements to(type);
  std::vector<double> row(static_cast<size_t>(extent));
  const auto compute = [&](auto zero) {
    using T = decltype(zero);
    for (int64_t i = 0; i < type.num_elements() / extent; ++i) {
      const int64_t begin = i / stride * stride * extent + i % stride;
      double largest = -std::numeric_limits<double>::infinity(), sum = 0;
      for (int64_t k = 0; k < extent; ++k) {
        const double x = load<T>(from.at(begin + k * stride));
        row[static_cast<size_t>(k)] = x;
        largest = std::max(largest, x);
      }
      for (double& x : row) sum += x = exp_function((x - largest) * beta);
      for (int64_t k = 0; k < extent; ++k) {
        store<T>(to.at(begin + k * stride), from_double<T>(row[static_cast<size_t>(k)] / sum));
      }
    }
  };
  if (type.dtype == ir::kFloat32) {
    compute(float());
  } else {
    compute(double());
  }
  return {std::move(to).finish()};
}

}  // namespace qplan::op
