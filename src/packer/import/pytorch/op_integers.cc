// Operators of quantised tensors that PyTorch computes on the integers, whatever their scale: sums and
// products with a number, batch normalisation, bilinear interpolation.
#include <algorithm>
#include <cmath>

#include "src/packer/import/pytorch/op_context.h"

namespace qplan::pt {
namespace {

// The integers without their zero point, as float32, and back: half_even(x) + zero_point.
ir::ValueId steps_of(OpContext& op, const Flow& input) {
  return op.emit_quantized("qnn.dequantize", {input.value}, {{1.0f, input.quantization->zero_point}}, {});
}
ir::ValueId as_integers(OpContext& op, ir::ValueId steps, int32_t zero_point, ir::DType dtype) {
  return op.emit_quantized("qnn.quantize", {steps}, {{1.0f, zero_point}},
                           {{"out_dtype", ir::to_string(dtype)}, {"rule", std::string("mul_even")}});
}

// f of each integer, by a table. f: int64_t to int64_t in the range of the dtype.
template <typename Function>
ir::ValueId by_table(OpContext& op, const Flow& input, const Function& f) {
  const ir::DType dtype = op.dtype(input);
  std::vector<int8_t> table(256);  // by the byte of the integer
  for (int64_t x = dtype.min(); x <= dtype.max(); ++x)
    table[static_cast<uint8_t>(x)] = static_cast<int8_t>(f(x));
  ir::ConstantRef constant = ir::make_constant(ir::kInt8, {256}, table);
  if (dtype == ir::kUint8)
    constant = ir::make_constant(ir::kUint8, {256}, std::vector<uint8_t>(table.begin(), table.end()));
  return op.emit("qnn.lookup", {input.value, op.constant(constant)}, {});
}

Ref finished(OpContext& op, ir::ValueId value, const QuantParams& output, bool relu) {
  if (relu) value = emit_clamp(op, value, {.min = 0}, output);
  return op.result(value, output);
}

}  // namespace

// The integers stay and their zero point moves, where that is in the dtype's range. Where it is outside, the
// scale grows so that it becomes an end of the range.
Ref add_number(OpContext& op, double number, bool relu) {
  const Flow input = op.quantized_flow(0);
  const ir::DType dtype = op.dtype(input);
  const QuantParams from = *input.quantization;
  const double steps = number / from.exact_scale();
  if (!(std::fabs(steps) < 0x1p30)) throw Unsupported{"a number of more than 2^30 steps"};
  const int64_t zero_point = from.zero_point - round_half_even(steps);
  const int64_t end = std::clamp(zero_point, dtype.min(), dtype.max());
  if (end == zero_point)
    return finished(op, input.value, checked_quantization(from.exact_scale(), zero_point, dtype), relu);
  const auto distance =
      static_cast<double>(end == dtype.min() ? dtype.max() - zero_point : zero_point - dtype.min());
  const QuantParams output = checked_quantization(
      distance / static_cast<double>(dtype.max() - dtype.min()) * from.exact_scale(), end, dtype);
  const float multiplier = from.scale * (1.0f / output.scale);
  const ir::ValueId value = by_table(op, input, [&](int64_t x) {
    const float product = static_cast<float>(x - zero_point) * multiplier;
    return std::clamp(end + round_half_even(static_cast<double>(product)), dtype.min(), dtype.max());
  });
  return finished(op, value, output, relu);
}

// The scale is multiplied; a negative number turns the range around.
Ref multiply_number(OpContext& op, double number, bool relu) {
  const Flow input = op.quantized_flow(0);
  const ir::DType dtype = op.dtype(input);
  const QuantParams from = *input.quantization;
  if (number == 0) return finished(op, by_table(op, input, [](int64_t) { return 0; }), {1.0f, 0}, false);
  const double scale = std::fabs(number) * from.exact_scale();
  if (number > 0) return finished(op, input.value, checked_quantization(scale, from.zero_point, dtype), relu);
  const auto turned = [dtype](int64_t x) { return dtype.max() + dtype.min() - x; };
  return finished(op, by_table(op, input, turned),
                  checked_quantization(scale, turned(from.zero_point), dtype), relu);
}

Ref import_quantized_add_scalar(OpContext& op) { return add_number(op, op.number(1), false); }
Ref import_quantized_add_scalar_relu(OpContext& op) { return add_number(op, op.number(1), true); }
Ref import_quantized_mul_scalar(OpContext& op) { return multiply_number(op, op.number(1), false); }
Ref import_quantized_mul_scalar_relu(OpContext& op) { return multiply_number(op, op.number(1), true); }

// Batch normalisation: q = half_even(fma(factor, x - zero_point, offset)) + output_zero_point, with a factor
// and an offset for each channel. Kernels of float32 round the product, too; so that no integer comes out
// otherwise, an offset is moved by what such a rounding amounts to.
namespace {

struct Line {
  float factor, offset;
};

// What a line is a function of and what becomes of it, both without their zero points.
struct Integers {
  int64_t least;          // of the 256 that go in
  float lowest, highest;  // that come out
};

// Whether a line rounded twice gives the integers of the other one rounded once.
bool gives_same_integers(const Line& twice, const Line& once, const Integers& integers) {
  const auto integer = [&](float sum) {
    return round_half_even(static_cast<double>(std::clamp(sum, integers.lowest, integers.highest)));
  };
  for (int64_t i = 0; i < 256; ++i) {
    const auto x = static_cast<float>(integers.least + i);
    if (integer(twice.factor * x + twice.offset) != integer(std::fma(once.factor, x, once.offset)))
      return false;
  }
  return true;
}

// The line that gives the integers of `once` when it is rounded twice.
Line line_for(const Line& once, const Integers& integers) {
  constexpr int kMostMoves = 64;
  // An eighth of the last place of the largest product whose sum is an integer that comes out.
  const float largest = std::fabs(once.offset) + 512;
  const float move = (std::nextafter(largest, 2 * largest) - largest) / 8;
  for (int i = 0; i <= kMostMoves; ++i) {
    for (const float offset :
         {once.offset + static_cast<float>(i) * move, once.offset - static_cast<float>(i) * move}) {
      const Line line = {once.factor, offset};
      if (gives_same_integers(line, once, integers)) return line;
    }
  }
  throw Unsupported{"numbers for which float32 rounds products in another way than PyTorch"};
}

// One number for each channel.
std::vector<float> channel_numbers(OpContext& op, size_t i, const char* what, int64_t channels) {
  const Tensor* tensor = op.values().get<Tensor>(op.ref(i));
  if (tensor == nullptr) throw Unsupported{cat("a ", what, " that the model computes")};
  const std::vector<double> numbers = op.tensors().read_numbers(*tensor, what);
  if (std::ssize(numbers) != channels)
    invalid(cat("the ", what, " has ", numbers.size(), " values of ", channels, " channels"));
  return {numbers.begin(), numbers.end()};
}

Ref quantized_batch_norm(OpContext& op, bool relu) {
  const Flow input = op.quantized_flow(0);
  const ir::Shape shape = op.shape(input);
  if (shape.size() < 2) throw Unsupported{"a tensor without a channel axis"};
  const ir::DType dtype = op.dtype(input);
  const QuantParams from = *input.quantization, output = op.quantization(6, 7, dtype);
  const int64_t channels = shape[1];
  const std::vector<float> weight = channel_numbers(op, 1, "weight", channels);
  const std::vector<float> bias = channel_numbers(op, 2, "bias", channels);
  const std::vector<float> mean = channel_numbers(op, 3, "mean", channels);
  const std::vector<float> variance = channel_numbers(op, 4, "variance", channels);
  const auto epsilon = static_cast<float>(op.number(5));
  const Integers integers = {.least = dtype.min() - from.zero_point,
                             .lowest = static_cast<float>(dtype.min() - output.zero_point),
                             .highest = static_cast<float>(dtype.max() - output.zero_point)};
  std::vector<float> factors, offsets;
  for (size_t c = 0; c < weight.size(); ++c) {
    const auto inverse = static_cast<float>(1.0 / static_cast<double>(std::sqrt(variance[c] + epsilon)));
    const float gain = inverse * weight[c], centre = bias[c] - mean[c] * inverse * weight[c];
    const Line once = {
        static_cast<float>(static_cast<double>(gain) * (from.exact_scale() / output.exact_scale())),
        static_cast<float>(static_cast<double>(centre) / output.exact_scale())};
    if (!(std::fabs(once.factor) < 1e30f && std::fabs(once.offset) < 1e30f))
      invalid(cat("the numbers of channel ", c, " leave the range of float32"));
    const Line line = line_for(once, integers);
    factors.push_back(line.factor);
    offsets.push_back(line.offset);
  }
  ir::Shape per_channel(shape.size(), 1);
  per_channel[1] = channels;
  const ir::ValueId product =
      op.emit("multiply",
              {steps_of(op, input), op.constant(ir::make_constant(ir::kFloat32, per_channel, factors))}, {});
  const ir::ValueId sum =
      op.emit("add", {product, op.constant(ir::make_constant(ir::kFloat32, per_channel, offsets))}, {});
  return finished(op, as_integers(op, sum, output.zero_point, dtype), output, relu);
}

}  // namespace

Ref import_quantized_batch_norm(OpContext& op) { return quantized_batch_norm(op, false); }
Ref import_quantized_batch_norm_relu(OpContext& op) { return quantized_batch_norm(op, true); }

// Where positions are eighths and the like, no sum of products is rounded, and PyTorch's kernels agree.
// Elsewhere some sums are near a half, and the kernels do not.
Ref interpolated(OpContext& op, const Flow& input, const std::vector<int64_t>& sizes, ir::Attrs attrs,
                 bool aligned) {
  constexpr int64_t kMostExtent = 1 << 15;
  constexpr int64_t kParts = 128;  // 8 bits of an integer and of each weight: the 24 bits of a float32
  const ir::Shape shape = op.shape(input);
  if (sizes == std::vector<int64_t>{shape[2], shape[3]}) return op.result(input, input.value);
  // Such a tensor is channels_last and contiguous at once: PyTorch reads it as one and writes it as the
  // other.
  if (shape[1] > 1 && shape[2] == 1 && shape[3] == 1)
    throw Unsupported{"a quantised tensor of one pixel, whose channels PyTorch mixes up; use expand"};
  for (size_t i = 0; i < 2; ++i) {
    const int64_t in = shape[2 + i], out = sizes[i];
    const int64_t from = aligned ? in - 1 : in, to = aligned ? std::max<int64_t>(out - 1, 1) : out;
    if (in > kMostExtent || out > kMostExtent || from * kParts % to != 0)
      throw Unsupported{
          cat("a quantised tensor from ", in, " to ", out,
              " elements, where kernels of PyTorch round halves one way or the other (a factor of 2, 4 or "
              "8 without align_corners has no such; or interpolate after dequantize)")};
  }
  const ir::ValueId resized = op.emit("image.resize2d", {steps_of(op, input)}, std::move(attrs));
  return op.result(input, as_integers(op, resized, input.quantization->zero_point, op.dtype(input)));
}

}  // namespace qplan::pt
