#include "src/packer/op/evaluate.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <utility>
#include <xtensor/xmanipulation.hpp>
#include <xtensor/xstrided_view.hpp>

#include "kernels/numeric/float_functions.h"
#include "src/base/checked.h"
#include "src/packer/error.h"
#include "src/packer/op/attributes.h"
#include "src/packer/op/elements.h"
#include "src/packer/op/infer.h"

namespace qplan::op {
namespace {

bool is_packed(ir::DType dtype) { return dtype.bits < 8 && dtype != ir::kBool; }

size_t size_of(ir::DType dtype) { return dtype.bits < 8 ? 1 : dtype.bits / 8U * dtype.lanes; }

}  // namespace

Elements::Elements(const ir::Constant& constant)
    : type_(constant.type()), size_(size_of(type_.dtype)), data_(constant.bytes().data()) {
  if (!is_packed(type_.dtype)) return;
  // Two elements of 4 bits in a byte, the first in the low half.
  const auto count = static_cast<size_t>(type_.num_elements());
  own_.resize(count);
  for (size_t i = 0; i < count; ++i) {
    own_[i] = static_cast<uint8_t>((constant.bytes()[i / 2] >> (i % 2 * 4)) & 15U);
  }
  data_ = own_.data();
}

Elements::Elements(const ir::TensorType& type)
    : type_(type),
      size_(size_of(type.dtype)),
      own_(static_cast<size_t>(type.num_elements()) * size_),
      data_(own_.data()) {}

void Elements::copy(int64_t to, const Elements& other, int64_t from, int64_t count) {
  std::memcpy(at(to), other.at(from), static_cast<size_t>(count) * size_);
}

ir::ConstantRef Elements::finish() && {
  if (is_packed(type_.dtype)) {
    std::vector<uint8_t> packed(static_cast<size_t>(type_.size_bytes()));
    for (size_t i = 0; i < own_.size(); ++i) {
      packed[i / 2] = static_cast<uint8_t>(packed[i / 2] | own_[i] << (i % 2 * 4));
    }
    own_ = std::move(packed);
  }
  return std::make_shared<const ir::Constant>(std::move(type_), std::move(own_));
}

// Evaluation of any operator that has one, and the evaluation of movements: elements are bytes there,
// whatever their dtype.
namespace {

int64_t product(const ir::Shape& shape, size_t begin, size_t end) {
  int64_t result = 1;
  for (size_t i = begin; i < end; ++i) result *= shape[i];
  return result;
}

int64_t index_at(const ir::Constant& indices, size_t i) {
  return indices.type().dtype == ir::kInt32 ? indices.as<int32_t>()[i] : indices.as<int64_t>()[i];
}

}  // namespace

std::vector<ir::TensorType> result_types(const ir::Node& node, Operands operands) {
  ir::Function function("evaluate");
  ir::Node on_constants = node;
  on_constants.operands.clear();
  on_constants.results.clear();
  for (const ir::ConstantRef& operand : operands) {
    on_constants.operands.push_back(function.add_constant(operand));
  }
  return infer_types(function, on_constants);
}

std::optional<Results> evaluate(const ir::Node& node, Operands operands) {
  if (node.op == nullptr || node.op->evaluate == nullptr) return std::nullopt;
  int64_t bytes = 0;
  for (const ir::TensorType& type : result_types(node, operands)) {
    if (!checked_add(bytes, type.size_bytes(), &bytes)) return std::nullopt;
  }
  if (bytes > kMaxEvaluatedBytes) return std::nullopt;
  return node.op->evaluate(node, operands);
}

double unary_function(const ir::Node& node, double x) {
  if (node.op->function == nullptr) {
    throw PackError(QPLAN_INTERNAL, node.op->name + " has no function of one number");
  }
  return node.op->function(node, x);
}

// ---- movements ----

Results evaluate_reshape(const ir::Node& node, Operands operands) {
  const std::span<const uint8_t> bytes = operands[0]->bytes();
  return {std::make_shared<const ir::Constant>(result_types(node, operands)[0],
                                               std::vector<uint8_t>(bytes.begin(), bytes.end()))};
}

Results evaluate_transpose(const ir::Node& node, Operands operands) {
  const Elements from(*operands[0]);
  Elements to(result_types(node, operands)[0]);
  const ir::Ints& axes = attr_ints(node, "axes");
  from.visit([&](const auto* elements) {
    to.assign(xt::transpose(tensor_of(elements, operands[0]->type().shape),
                            std::vector<size_t>(axes.begin(), axes.end())));
  });
  return {std::move(to).finish()};
}

Results evaluate_strided_slice(const ir::Node& node, Operands operands) {
  const ir::TensorType type = result_types(node, operands)[0];
  const ir::Shape& shape = operands[0]->type().shape;
  const Elements from(*operands[0]);
  Elements to(type);
  from.visit([&](const auto* elements) {
    const auto tensor = tensor_of(elements, shape);
    const std::vector<SliceRange> ranges = slice_ranges(node, shape);
    std::vector<ptrdiff_t> strides;
    size_t offset = 0;
    for (size_t i = 0; i < ranges.size(); ++i) {
      const auto stride = static_cast<int64_t>(tensor.strides()[i]);
      // With one element the step is never taken, and might be too large to multiply.
      strides.push_back(ranges[i].count == 1 ? 0 : ranges[i].step * stride);
      offset += static_cast<size_t>(ranges[i].begin * stride);
    }
    to.assign(
        xt::strided_view(tensor, extents(type.shape), std::move(strides), offset, xt::layout_type::dynamic));
  });
  return {std::move(to).finish()};
}

Results evaluate_concatenate(const ir::Node& node, Operands operands) {
  const ir::TensorType type = result_types(node, operands)[0];
  const auto axis = static_cast<size_t>(normalized_axis(attr_int(node, "axis"), type.shape.size()));
  const int64_t outer = product(type.shape, 0, axis), row = product(type.shape, axis, type.shape.size());
  Elements to(type);
  int64_t begin = 0;  // of the operand within a row
  for (const ir::ConstantRef& operand : operands) {
    const Elements from(*operand);
    const int64_t block = product(operand->type().shape, axis, type.shape.size());
    for (int64_t i = 0; i < outer; ++i) to.copy(i * row + begin, from, i * block, block);
    begin += block;
  }
  return {std::move(to).finish()};
}

Results evaluate_split(const ir::Node& node, Operands operands) {
  const Elements from(*operands[0]);
  const ir::Shape& shape = operands[0]->type().shape;
  const auto axis = static_cast<size_t>(normalized_axis(attr_int(node, "axis"), shape.size()));
  const int64_t outer = product(shape, 0, axis), row = product(shape, axis, shape.size());
  Results results;
  int64_t begin = 0;
  for (const ir::TensorType& type : result_types(node, operands)) {
    Elements to(type);
    const int64_t block = product(type.shape, axis, type.shape.size());
    for (int64_t i = 0; i < outer; ++i) to.copy(i * block, from, i * row + begin, block);
    begin += block;
    results.push_back(std::move(to).finish());
  }
  return results;
}

Results evaluate_take(const ir::Node& node, Operands operands) {
  const ir::Shape& shape = operands[0]->type().shape;
  const auto axis = static_cast<size_t>(normalized_axis(attr_int(node, "axis"), shape.size()));
  const Elements from(*operands[0]);
  Elements to(result_types(node, operands)[0]);
  const int64_t outer = product(shape, 0, axis), block = product(shape, axis + 1, shape.size());
  const int64_t extent = shape[axis], count = operands[1]->type().num_elements();
  for (int64_t k = 0; k < count; ++k) {
    const int64_t index = index_at(*operands[1], static_cast<size_t>(k));
    if (index < -extent || index >= extent) {
      throw PackError(QPLAN_MODEL_INVALID,
                      cat("take '", node.name, "': index ", index, " is out of range, expected from ",
                          -extent, " to ", extent - 1));
    }
    const int64_t place = index < 0 ? index + extent : index;
    for (int64_t i = 0; i < outer; ++i) {
      to.copy((i * count + k) * block, from, (i * extent + place) * block, block);
    }
  }
  return {std::move(to).finish()};
}

Results evaluate_where(const ir::Node& node, Operands operands) {
  const ir::TensorType type = result_types(node, operands)[0];
  const Elements condition(*operands[0]), x(*operands[1]), y(*operands[2]);
  Elements to(type);
  const auto broadcast = [&](const auto* elements, size_t operand) {
    return xt::broadcast(tensor_of(elements, operands[operand]->type().shape), extents(type.shape));
  };
  x.visit([&](const auto* of_x) {
    const auto* of_y = reinterpret_cast<decltype(of_x)>(y.at(0));
    const auto choices = broadcast(condition.at(0), 0);
    const auto first = broadcast(of_x, 1), second = broadcast(of_y, 2);
    auto a = first.begin(), b = second.begin();
    int64_t i = 0;
    for (const uint8_t choice : choices) {
      std::memcpy(to.at(i++), choice != 0 ? a->data() : b->data(), sizeof *a);
      ++a;
      ++b;
    }
  });
  return {std::move(to).finish()};
}

// Functions of one real.
namespace {

// exp(x) - 1 for |x| <= 0.5, where the difference would cancel: x + x^2/2! + ... , what is left out is below
// 1e-19.
double expm1_series(double x) {
  double sum = 1.0;
  for (int n = 16; n >= 2; --n) sum = 1.0 + sum * x / n;
  return sum * x;
}

}  // namespace

double exp_function(double x) {
  if (std::isnan(x)) return x;
  if (x > 709.782712893384) return std::numeric_limits<double>::infinity();  // ln of the largest double
  // exp_double ends at 700.
  return x > 700.0 ? exp_double(x - 100.0) * exp_double(100.0) : exp_double(x);
}

double sigmoid_function(double x) {
  if (std::isnan(x)) return x;
  if (x >= 0.0) return 1.0 / (1.0 + exp_function(-x));
  const double e = exp_function(x);  // no large number for a small result
  return e / (1.0 + e);
}

double tanh_function(double x) {
  if (std::isnan(x)) return x;
  if (x < 0.0) return -tanh_function(-x);
  if (x > 20.0) return 1.0;  // 1 - tanh(20) is below 1e-17
  const double e = x <= 0.25 ? expm1_series(2.0 * x) : exp_function(2.0 * x) - 1.0;
  return e / (e + 2.0);
}

double log_function(double x) {
  if (std::isnan(x) || x < 0.0) return std::numeric_limits<double>::quiet_NaN();
  if (x == 0.0) return -std::numeric_limits<double>::infinity();
  if (std::isinf(x)) return x;
  int exponent = 0;
  double m = std::frexp(x, &exponent);  // exact
  if (m < 0.7071067811865476) {
    m *= 2.0;
    --exponent;
  }
  // 2 atanh(t) with |t| < 0.172: what is left out is below 1e-18.
  const double t = (m - 1.0) / (m + 1.0), square = t * t;
  double sum = 0.0;
  for (int n = 23; n >= 1; n -= 2) sum = sum * square + 1.0 / n;
  return 2.0 * t * sum + exponent * 0.6931471805599453;
}

double erf_function(double x) {
  if (std::isnan(x)) return x;
  if (x < 0.0) return -erf_function(-x);
  if (x > 6.0) return 1.0;  // 1 - erf(6) is below 1e-16
  // exp(-x^2) * (x + 2/3 x^3 + 4/15 x^5 + ...), whose terms are all positive.
  double term = x, sum = x;
  for (int n = 1; n < 200; ++n) {
    term *= 2.0 * x * x / (2 * n + 1);
    sum += term;
  }
  return 1.1283791670955126 * exp_function(-x * x) * sum;  // 2 / sqrt(pi)
}

double exp_less_one_function(double x) {
  if (std::isnan(x)) return x;
  return std::fabs(x) <= 0.5 ? expm1_series(x) : exp_function(x) - 1.0;
}

// kernels/numeric/float_functions.h has the same reduction.
double sine_function(double x, uint32_t quarters) {
  constexpr double kTwoOverPi = 0.63661977236758134308;
  constexpr double kHigh = 0x1.921fbp+0, kMiddle = 0x1.5110b4p-22, kLow = 0x1.8469898cc517p-48;
  if (!(std::fabs(x) < 1073741824.0)) return std::numeric_limits<double>::quiet_NaN();
  if (x == 0 && quarters % 2 == 0) return quarters % 4 < 2 ? x : -x;  // -0 less 0 is 0
  const double count = round_half_even(x * kTwoOverPi);
  const double r = ((x - count * kHigh) - count * kMiddle) - count * kLow, square = r * r;
  quarters += static_cast<uint32_t>(static_cast<uint64_t>(static_cast<int64_t>(count)) & 3);
  double sum = 1.0;
  if (quarters % 2 == 0) {
    for (int n = 18; n >= 2; n -= 2) sum = 1.0 - sum * square / (n * (n + 1));
    sum *= r;
  } else {
    for (int n = 19; n >= 1; n -= 2) sum = 1.0 - sum * square / (n * (n + 1));
  }
  return quarters % 4 < 2 ? sum : -sum;
}

double round_half_even(double x) {
  // From 2^52 on every double is an integer; below, adding it leaves no bits for the fraction.
  constexpr double kTwo52 = 4503599627370496.0;
  if (!(std::fabs(x) < kTwo52)) return x;
  const double magnitude = (std::fabs(x) + kTwo52) - kTwo52;
  return std::copysign(magnitude, x);
}

float to_float32(double x) {
  // Half a step beyond the largest float32, from where on rounding goes to infinity.
  constexpr double kLimit = 0x1.ffffffp127;
  if (x >= kLimit) return std::numeric_limits<float>::infinity();
  if (x <= -kLimit) return -std::numeric_limits<float>::infinity();
  return static_cast<float>(x);
}

}  // namespace qplan::op
