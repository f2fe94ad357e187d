// RFFT2D of rows, whose complex result is two tensors, and REAL, IMAG, COMPLEX_ABS of it: the spectrum of
// audio. The transform is the product with a constant matrix of cosines and sines. DENSIFY, whose constant
// the file reader has filled up already.
#include <cmath>

#include "src/packer/import/tflite/op_context.h"
#include "src/packer/op/evaluate.h"

namespace qplan::tfl {
namespace {

const Graph::Complex& complex_input(OpContext& op) {
  op.expect_counts(1, 1, 1);
  const Graph::Complex* value = op.graph().find_complex(op.input(0));
  if (value == nullptr) throw Unsupported{"complex numbers that RFFT2D did not make"};
  return *value;
}

// cos(2 pi k i / n), or -sin: [n / 2 + 1, n].
ir::ValueId frequencies(OpContext& op, int64_t n, uint32_t quarters, double sign) {
  constexpr double kTwoPi = 6.283185307179586;
  std::vector<float> values;
  for (int64_t k = 0; k <= n / 2; ++k) {
    for (int64_t i = 0; i < n; ++i) {
      const double angle = kTwoPi * static_cast<double>(k * i % n) / static_cast<double>(n);
      values.push_back(static_cast<float>(sign * op::sine_function(angle, quarters)));
    }
  }
  return op.constant(ir::make_constant(ir::kFloat32, {n / 2 + 1, n}, values));
}

}  // namespace

void import_rfft2d(OpContext& op) {
  op.expect_counts(2, 2, 1);
  if (op.input(0).dtype != ir::kFloat32) throw Unsupported{type_name(op.input(0).file_type) + " input"};
  ir::ValueId data = op.value(op.input(0));
  ir::Shape shape = op.shape(data);
  const std::vector<int64_t> length = op.constant_ints(op.input(1), "transform lengths");
  if (length.size() != 2 || shape.size() < 2) invalid("the input and the transform do not have two axes");
  if (length[0] != 1) throw Unsupported{"a transform over two axes"};
  constexpr int64_t kMaxLength = 4096;
  const int64_t n = length[1], extent = shape.back();
  if (n < 1 || n > kMaxLength) throw Unsupported{"a transform of " + std::to_string(n) + " elements"};
  // The first of several rows counts. Longer rows are cut, shorter ones end in zeros.
  ir::Ints end = shape;
  end[end.size() - 2] = 1;
  end.back() = std::min(n, extent);
  if (end != shape) {
    data = op.emit("strided_slice", {data}, {{"begin", ir::Ints(shape.size(), 0)}, {"end", end}});
  }
  if (n > extent) {
    std::vector<ir::Ints> width(shape.size(), ir::Ints{0, 0});
    width.back()[1] = n - extent;
    data = op.emit("nn.pad", {data, op.constant(ir::make_scalar(0.0f))}, {{"pad_width", width}});
  }
  op.charge(2 * static_cast<uint64_t>(n / 2 + 1) * static_cast<uint64_t>(n) * sizeof(float));
  op.graph().define_complex(
      op.output(), {op.emit("nn.dense", {data, frequencies(op, n, 1, 1.0)}, {{"units", n / 2 + 1}}),
                    op.emit("nn.dense", {data, frequencies(op, n, 0, -1.0)}, {{"units", n / 2 + 1}})});
}

void import_real(OpContext& op) {
  const Graph::Complex value = complex_input(op);
  op.define(op.output(), value.real);
}

void import_imag(OpContext& op) {
  const Graph::Complex value = complex_input(op);
  op.define(op.output(), value.imaginary);
}

void import_complex_abs(OpContext& op) {
  const Graph::Complex value = complex_input(op);
  const auto square = [&](ir::ValueId x) { return op.emit("multiply", {x, x}, {}); };
  op.define(op.output(),
            op.emit("sqrt", {op.emit("add", {square(value.real), square(value.imaginary)}, {})}, {}));
}

void import_densify(OpContext& op) {
  op.expect_counts(1, 1, 1);
  const TensorInfo& data = op.input(0);
  if (!data.is_constant()) throw Unsupported{"data that is not constant"};
  op.define(op.output(), op.value(data));
}

}  // namespace qplan::tfl
