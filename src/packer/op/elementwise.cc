// Operators on numbers as they are, without quantisation: one element in, one out (clip, cast, functions of
// one real number); two with broadcasting; comparisons and selection.
#include <cmath>

#include "src/packer/error.h"
#include "src/packer/op/attributes.h"
#include "src/packer/op/evaluate.h"
#include "src/packer/op/infer.h"

namespace qplan::op {
namespace {

std::vector<ir::TensorType> infer_clip(const InferInput& input) {
  check_dtype(input, 0,
              {ir::kInt8, ir::kUint8, ir::kInt16, ir::kInt32, ir::kInt64, ir::kFloat32, ir::kFloat64});
  const double min = attr_float(input.node, "a_min"), max = attr_float(input.node, "a_max");
  if (!(min <= max)) invalid("attribute 'a_min' must not be larger than 'a_max', and neither may be NaN");
  // Bounds outside of an integer dtype, infinite ones too, limit nothing; fractions have no agreed rounding.
  const auto fraction = [](double value) { return std::isfinite(value) && std::nearbyint(value) != value; };
  if (!input.type(0).dtype.is_float() && (fraction(min) || fraction(max))) {
    invalid(cat("attributes 'a_min' and 'a_max' must be integers for ", input.type(0).dtype));
  }
  return {input.type(0)};
}

std::vector<ir::TensorType> infer_cast(const InferInput& input) {
  check_dtype(input, 0, kArithmetic);
  return {{dtype_attr(input.node, "dtype", kArithmetic), input.type(0).shape}};
}

std::vector<ir::TensorType> infer_number(const InferInput& input) {
  check_dtype(input, 0, kArithmetic);
  if (input.type(0).dtype == ir::kBool)
    unsupported("dtype bool of 'data' is not supported, expected numbers");
  return {input.type(0)};
}

std::vector<ir::TensorType> infer_real(const InferInput& input) {
  check_dtype(input, 0, {ir::kFloat32, ir::kFloat64});
  return {input.type(0)};
}

void check_pair(const InferInput& input, size_t lhs, size_t rhs) {
  check_dtype(input, lhs, kArithmetic);
  check_same_dtype(input, rhs, lhs);
}

std::vector<ir::TensorType> infer_arithmetic(const InferInput& input) {
  check_pair(input, 0, 1);
  return {{input.type(0).dtype, broadcast_shape(input.type(0).shape, input.type(1).shape)}};
}

std::vector<ir::TensorType> infer_integers(const InferInput& input) {
  check_dtype(input, 0, {ir::kInt32, ir::kInt64});
  return infer_arithmetic(input);
}

std::vector<ir::TensorType> infer_powers(const InferInput& input) {
  check_dtype(input, 0, {ir::kFloat32});
  return infer_arithmetic(input);
}

std::vector<ir::TensorType> infer_comparison(const InferInput& input) {
  check_pair(input, 0, 1);
  return {{ir::kBool, broadcast_shape(input.type(0).shape, input.type(1).shape)}};
}

std::vector<ir::TensorType> infer_where(const InferInput& input) {
  check_dtype(input, 0, {ir::kBool});
  check_pair(input, 1, 2);
  const ir::Shape values = broadcast_shape(input.type(1).shape, input.type(2).shape);
  return {{input.type(1).dtype, broadcast_shape(input.type(0).shape, values)}};
}

using Infer = std::vector<ir::TensorType> (*)(const InferInput&);
using Function = double (*)(const ir::Node& node, double x);

// function: comparisons are written so that NaN fails them and comes out as it is.
OpDef unary(std::string name, Infer infer, Function function, std::vector<AttrDef> attrs = {}) {
  return {.name = std::move(name),
          .operands = {{"data"}},
          .attrs = std::move(attrs),
          .kind = OpKind::kElementwise,
          .keeps_shape = true,
          .keeps_dtype = true,
          .follows_layout = true,
          .infer = infer,
          .evaluate = evaluate_unary,
          .function = function};
}

OpDef arithmetic(std::string name, std::string quantized_form = "") {
  return {.name = std::move(name),
          .operands = {{"lhs"}, {"rhs"}},
          .kind = OpKind::kBroadcast,
          .keeps_dtype = true,
          .follows_layout = true,
          .quantized_form = std::move(quantized_form),
          .infer = infer_arithmetic,
          .evaluate = evaluate_binary};
}

// The larger or smaller of two integers in one quantisation is that of the two reals.
OpDef extremum(std::string name) {
  OpDef op = arithmetic(std::move(name));
  op.quantization = Quantization::kShared;
  return op;
}

OpDef comparison(std::string name) {
  return {.name = std::move(name),
          .operands = {{"lhs"}, {"rhs"}},
          .kind = OpKind::kBroadcast,
          .quantization = Quantization::kShared,
          .result_dtype = ir::kBool,
          .follows_layout = true,
          .infer = infer_comparison,
          .evaluate = evaluate_binary};
}

// The attribute as kernels have it. With it, functions of float32 that are written in double and rounded to
// float32 after each product, sum, quotient and root are those of float32 (docs/numerics/float32.md): double
// has digits enough that rounding twice gives what rounding once does.
double attr_float32(const ir::Node& node, std::string_view name) {
  return double{to_float32(attr_float(node, name))};
}

}  // namespace

OpDef list::clip() {
  return {.name = "clip",
          .operands = {{"data"}},
          .attrs = {with_role(AttrRole::kDataValue, {"a_min", AttrKind::kFloat}),
                    with_role(AttrRole::kDataValue, {"a_max", AttrKind::kFloat})},
          .kind = OpKind::kElementwise,
          .quantization = Quantization::kShared,
          .keeps_shape = true,
          .keeps_dtype = true,
          .follows_layout = true,
          .work = Work::kTable,
          .infer = infer_clip,
          .evaluate = evaluate_clip};
}

OpDef list::cast() {
  return {.name = "cast",
          .operands = {{"data"}},
          .attrs = {with_role(AttrRole::kDtype, {"dtype", AttrKind::kString})},
          .kind = OpKind::kElementwise,
          .keeps_shape = true,
          .converts = true,
          .follows_layout = true,
          .work = Work::kConvert,
          .infer = infer_cast,
          .evaluate = evaluate_cast};
}

OpDef list::add() { return arithmetic("add", "qnn.add"); }
OpDef list::subtract() { return arithmetic("subtract", "qnn.subtract"); }
OpDef list::multiply() { return arithmetic("multiply", "qnn.mul"); }
OpDef list::divide() { return arithmetic("divide"); }
OpDef list::floor_divide() {
  OpDef op = arithmetic("floor_divide");
  op.infer = infer_integers;
  op.evaluate = nullptr;
  return op;
}
OpDef list::floor_mod() {
  OpDef op = floor_divide();
  op.name = "floor_mod";
  return op;
}
OpDef list::maximum() { return extremum("maximum"); }
OpDef list::minimum() { return extremum("minimum"); }
OpDef list::power() {
  OpDef op = arithmetic("power");
  op.infer = infer_powers;
  op.evaluate = nullptr;
  return op;
}
OpDef list::less() { return comparison("less"); }
OpDef list::less_equal() { return comparison("less_equal"); }
OpDef list::equal() { return comparison("equal"); }

OpDef list::where() {
  return {.name = "where",
          .operands = {{.name = "condition", .dtype = ir::kBool}, {"x"}, {"y"}},
          .kind = OpKind::kBroadcast,
          .quantization = Quantization::kShared,
          .keeps_dtype = true,
          .follows_layout = true,
          .infer = infer_where,
          .evaluate = evaluate_where};
}

OpDef list::nn_relu() {
  return unary("nn.relu", infer_number, [](const ir::Node&, double x) { return x < 0 ? 0.0 : x; });
}
OpDef list::nn_leaky_relu() {
  return unary("nn.leaky_relu", infer_real,
               [](const ir::Node& node, double x) { return 0 < x ? x : attr_float32(node, "alpha") * x; },
               {{"alpha", AttrKind::kFloat, 0.25}});
}
OpDef list::sigmoid() {
  OpDef op = unary("sigmoid", infer_real, [](const ir::Node&, double x) { return sigmoid_function(x); });
  op.quantized_form = "qnn.sigmoid";
  op.work = Work::kTable;
  return op;
}
OpDef list::tanh() {
  OpDef op = unary("tanh", infer_real, [](const ir::Node&, double x) { return tanh_function(x); });
  op.work = Work::kTable;
  return op;
}
OpDef list::exp() {
  return unary("exp", infer_real, [](const ir::Node&, double x) { return exp_function(x); });
}
OpDef list::sqrt() {
  return unary("sqrt", infer_real, [](const ir::Node&, double x) { return std::sqrt(x); });
}
OpDef list::rsqrt() {
  return unary("rsqrt", infer_real,
               [](const ir::Node&, double x) { return 1 / double{to_float32(std::sqrt(x))}; });
}
OpDef list::log() {
  return unary("log", infer_real, [](const ir::Node&, double x) { return log_function(x); });
}
OpDef list::erf() {
  return unary("erf", infer_real, [](const ir::Node&, double x) { return erf_function(x); });
}
OpDef list::sin() {
  return unary("sin", infer_real, [](const ir::Node&, double x) { return sine_function(x, 0); });
}
OpDef list::cos() {
  return unary("cos", infer_real, [](const ir::Node&, double x) { return sine_function(x, 1); });
}
// Relay writes it by other operators; here it is one, since exp(x) - 1 would lose digits near 0.
OpDef list::nn_elu() {
  return unary("nn.elu", infer_real,
               [](const ir::Node& node, double x) {
                 return 0 < x ? x
                              : attr_float32(node, "alpha") * double{to_float32(exp_less_one_function(x))};
               },
               {{"alpha", AttrKind::kFloat, 1.0}});
}
OpDef list::negative() {
  return unary("negative", infer_number, [](const ir::Node&, double x) { return -x; });
}
OpDef list::abs() {
  return unary("abs", infer_number, [](const ir::Node&, double x) { return std::fabs(x); });
}
OpDef list::round() {
  return unary("round", infer_number, [](const ir::Node&, double x) { return round_half_even(x); });
}
OpDef list::floor() {
  return unary("floor", infer_number, [](const ir::Node&, double x) { return std::floor(x); });
}
OpDef list::ceil() {
  return unary("ceil", infer_number, [](const ir::Node&, double x) { return std::ceil(x); });
}
OpDef list::hard_sigmoid() {
  const auto function = [](const ir::Node& node, double x) {
    const double y = to_float32(to_float32(attr_float32(node, "alpha") * x) + attr_float32(node, "beta"));
    return y < 0 ? 0.0 : y > 1 ? 1.0 : y;
  };
  return unary("hard_sigmoid", infer_real, function,
               {{"alpha", AttrKind::kFloat, 0.2}, {"beta", AttrKind::kFloat, 0.5}});
}

}  // namespace qplan::op
