// TRANSPOSE, PAD, SPLIT, RESIZE_BILINEAR, CONCATENATION: elements of any dtype move (those of 8 and 16 bits
// are interpolated, those of 8 bits rescaled) without regard to scales.
#include <algorithm>

#include "src/packer/import/tflite/op_context.h"
#include "src/packer/op/requantize_bytes.h"

namespace qplan::tfl {

void import_transpose(OpContext& op) {
  op.expect_counts(2, 2, 1);
  const TensorInfo& input = op.input(0);
  op.require_movable(input, op.output());
  const ir::ValueId data = op.value(input);
  ir::Ints axes = op.constant_ints(op.input(1), "permutation values");
  for (int64_t& axis : axes) axis = OpContext::axis_of(axis, op.shape(data).size());
  op.define(op.output(), op.emit("transpose", {data}, {{"axes", axes}}));
}

namespace {

void emit_pad(OpContext& op, ir::ValueId data, ir::ValueId value) {
  const std::vector<int64_t> flat = op.constant_ints(op.input(1), "paddings");
  const size_t rank = op.shape(data).size();
  if (flat.size() != 2 * rank) {
    invalid("there are " + std::to_string(flat.size()) + " paddings, expected " + std::to_string(2 * rank) +
            ", two per dimension");
  }
  std::vector<ir::Ints> pad_width;
  for (size_t i = 0; i < flat.size(); i += 2) pad_width.push_back({flat[i], flat[i + 1]});
  op.define(op.output(), op.emit("nn.pad", {data, value}, {{"pad_width", pad_width}}));
}

// Integers of at most 16 bits stand for reals; wider ones for themselves.
bool is_quantized(const TensorInfo& tensor) {
  return !tensor.dtype->is_float() && tensor.dtype->bits <= 16 && tensor.dtype != ir::kBool;
}

}  // namespace

// The pad value is real 0: the output's zero point.
void import_pad(OpContext& op) {
  op.expect_counts(2, 2, 1);
  op.require_movable(op.input(0), op.output());
  const int32_t value = is_quantized(op.output()) ? op.quantization(op.output()).zero_point : 0;
  emit_pad(op, op.value(op.input(0)), op.zero_point(value));
}

// TFLite takes the value as it is, and demands the output's quantisation of it.
void import_pad_v2(OpContext& op) {
  op.expect_counts(3, 3, 1);
  op.require_movable(op.input(0), op.output());
  const TensorInfo& value = op.input(2);
  if (!op.is_known(value)) throw Unsupported{"a pad value that is not constant"};
  if (value.dtype != op.input(0).dtype) invalid("the pad value is " + type_name(value.file_type));
  op.require_one_quantization(value, op.output());
  ir::ValueId scalar = op.value(value);
  if (op.type(scalar).num_elements() != 1)
    invalid("the pad value has shape " + importer::to_text(value.shape));
  const ir::ConstantRef contents = op.known_contents(value);
  const auto bytes = contents->bytes();
  scalar = op.constant(std::make_shared<const ir::Constant>(
      ir::TensorType{*value.dtype, {}}, std::vector<uint8_t>(bytes.begin(), bytes.end())));
  emit_pad(op, op.value(op.input(0)), scalar);
}

void import_split(OpContext& op) {
  op.expect_counts(2, 2, op.num_outputs());
  const TensorInfo& input = op.input(1);
  for (size_t i = 0; i < op.num_outputs(); ++i) op.require_movable(input, op.output(i));
  const ir::ValueId data = op.value(input);
  const int64_t axis = op.constant_axis(op.input(0), op.shape(data).size());
  const auto sections = static_cast<int64_t>(op.num_outputs());
  if (op.options<tflite::SplitOptions>().num_splits() != sections) {
    invalid("num_splits is " + std::to_string(op.options<tflite::SplitOptions>().num_splits()) +
            ", but there are " + std::to_string(sections) + " outputs");
  }
  const std::vector<ir::ValueId> parts =
      op.emit_many("split", {data}, {{"indices_or_sections", sections}, {"axis", axis}});
  for (size_t i = 0; i < parts.size(); ++i) op.define(op.output(i), parts[i]);
}

void import_split_v(OpContext& op) {
  constexpr size_t kMaxParts = 4096;
  op.expect_counts(3, 3, op.num_outputs());
  const TensorInfo& input = op.input(0);
  for (size_t i = 0; i < op.num_outputs(); ++i) op.require_movable(input, op.output(i));
  const ir::ValueId data = op.value(input);
  ir::Ints sizes = op.constant_ints(op.input(1), "sizes", kMaxParts);
  const int64_t axis = op.constant_axis(op.input(2), op.shape(data).size());
  const int64_t extent = op.shape(data)[static_cast<size_t>(axis)];
  const auto open = std::ranges::find(sizes, -1);
  int64_t rest = extent;
  for (const int64_t size : sizes) {
    if (size < -1 || size > extent) rest = -1;
    if (size > 0 && rest >= 0) rest -= size;
  }
  if (rest < 0 || (open == sizes.end() && rest != 0) || sizes.size() != op.num_outputs() ||
      std::ranges::count(sizes, -1) > 1) {
    invalid("sizes " + importer::to_text(sizes) + " do not make " + std::to_string(op.num_outputs()) +
            " outputs of extent " + std::to_string(extent));
  }
  if (open != sizes.end()) *open = rest;
  if (std::ranges::find(sizes, 0) != sizes.end()) throw Unsupported{"a part without elements"};
  ir::Ints ends;
  for (size_t i = 0; i + 1 < sizes.size(); ++i) ends.push_back((i == 0 ? 0 : ends.back()) + sizes[i]);
  std::vector<ir::ValueId> parts{data};
  if (!ends.empty()) parts = op.emit_many("split", {data}, {{"indices_or_sections", ends}, {"axis", axis}});
  for (size_t i = 0; i < parts.size(); ++i) op.define(op.output(i), parts[i]);
}

void import_resize_bilinear(OpContext& op) {
  op.expect_counts(2, 2, 1);
  const TensorInfo& input = op.input(0);
  op.require_same_quantized({&input, &op.output()});
  const std::vector<int64_t> size = op.constant_ints(op.input(1), "size values");
  if (size.size() != 2) {
    invalid("there are " + std::to_string(size.size()) + " size values, expected height and width");
  }
  const auto& options = op.options<tflite::ResizeBilinearOptions>();
  if (options.align_corners() && options.half_pixel_centers()) {
    invalid("align_corners and half_pixel_centers exclude each other");
  }
  const char* mode = options.align_corners()        ? "align_corners"
                     : options.half_pixel_centers() ? "half_pixel"
                                                    : "asymmetric";
  op.define(op.output(), op.emit("image.resize2d", {op.value(input)},
                                 {{"size", ir::Ints{size[0], size[1]}},
                                  {"layout", std::string("NHWC")},
                                  {"method", std::string("linear")},
                                  {"coordinate_transformation_mode", std::string(mode)}}));
}

// CONCATENATION. Inputs of the output's quantisation are copied. TFLite rescales the others in float32, for
// uint8 only: as an integer requantisation where that gives the same byte for each of the 256 there are, else
// as a table of them.
namespace {

int32_t clamp_u8(int64_t value) { return static_cast<int32_t>(std::clamp<int64_t>(value, 0, 255)); }

// Computes TFLite's ConcatenationWithScaling: round_half_away(q * scale - zero_point * scale) + output zero
// point, all in float32.
int32_t rescaled_in_float(int32_t q, QuantParams in, QuantParams out) {
  const float inverse = 1.0f / out.scale;
  const float scale = in.scale * inverse;
  const float bias = static_cast<float>(-in.zero_point) * scale;
  const float product = static_cast<float>(q) * scale;
  const float value = product + bias;
  if (!(value > -1e6f && value < 1e6f)) return value > 0 ? 255 : 0;  // far outside of the clamp
  const float away = value < 0 ? -0.5f : 0.5f;
  return clamp_u8(static_cast<int64_t>(static_cast<double>(value) + static_cast<double>(away)) +
                  out.zero_point);
}

ir::ValueId rescaled(OpContext& op, const TensorInfo& input, QuantParams out) {
  const ir::ValueId value = op.value(input);
  const QuantParams in = op.quantization(input);
  if (in == out) return value;
  if (input.dtype != ir::kUint8) {
    throw Unsupported{type_name(input.file_type) + " inputs of different quantisation"};
  }
  op::ByteTable wanted;
  for (int32_t q = 0; q < 256; ++q) wanted[static_cast<size_t>(q)] = rescaled_in_float(q, in, out);
  if (!op::tfl2_requantizes_to(wanted, {ir::kUint8, in.scale, in.zero_point},
                               {ir::kUint8, out.scale, out.zero_point})) {
    const std::vector<uint8_t> table(wanted.begin(), wanted.end());
    const ir::ValueId entries =
        op.constant(ir::make_constant(ir::kUint8, {256}, table), op.name() + "/table");
    return op.emit("qnn.lookup", {value, entries}, {});
  }
  return op.emit("qnn.requantize",
                 {value, op.scale(in.scale), op.zero_point(in.zero_point), op.scale(out.scale),
                  op.zero_point(out.zero_point)},
                 {{"out_dtype", std::string("uint8")}});
}

}  // namespace

void import_concatenation(OpContext& op) {
  constexpr size_t kMaxInputs = 4096;
  op.expect_counts(1, kMaxInputs, 1);
  const auto& options = op.options<tflite::ConcatenationOptions>();
  if (options.fused_activation_function() != tflite::ActivationFunctionType_NONE) {
    throw Unsupported{"a fused activation"};
  }
  const TensorInfo& output = op.output();
  std::vector<ir::ValueId> parts;
  for (size_t i = 0; i < op.num_inputs(); ++i) {
    const TensorInfo& input = op.input(i);
    if (op.graph().is_empty(input)) continue;
    op.require_movable(input, output);
    const bool copied = !is_quantized(output) || (input.num_scales() == 0 && output.num_scales() == 0);
    parts.push_back(copied ? op.value(input) : rescaled(op, input, op.quantization(output)));
  }
  if (parts.empty()) throw Unsupported{"a result without elements"};
  const size_t rank = op.shape(parts[0]).size();
  const int64_t axis = OpContext::axis_of(options.axis(), rank);
  op.define(output, op.emit("concatenate", parts, {{"axis", axis}}));
}

// Blocks of space as batches, and back: SPACE_TO_BATCH_ND, BATCH_TO_SPACE_ND. The axes between the batch and
// the rest are split into blocks, whose positions become the outermost part of the batch.
namespace {

struct Blocks {
  ir::Ints extents;               // of a block, by axis of space
  std::vector<ir::Ints> borders;  // what is padded, or cut off, before and after
};

Blocks read_blocks(OpContext& op, size_t rank) {
  Blocks blocks;
  blocks.extents = op.constant_ints(op.input(1), "block extents");
  const std::vector<int64_t> borders = op.constant_ints(op.input(2), "paddings");
  const size_t axes = blocks.extents.size();
  if (axes == 0 || axes + 1 > rank || borders.size() != 2 * axes)
    invalid("there are " + std::to_string(axes) + " block extents and " + std::to_string(borders.size()) +
            " paddings for rank " + std::to_string(rank));
  if (rank + axes > ir::kMaxRank) throw Unsupported{"so many axes"};
  for (size_t i = 0; i < axes; ++i) {
    const int64_t before = borders[2 * i], after = borders[2 * i + 1];
    if (blocks.extents[i] < 1 || before < 0 || after < 0) invalid("a block extent or a padding is negative");
    blocks.borders.push_back({before, after});
  }
  return blocks;
}

// positions, then the batch, then the blocks, then the rest; or as they are in space.
ir::Ints block_axes(size_t blocks, size_t rank, bool to_batch) {
  ir::Ints axes;
  const auto at = [](size_t i) { return static_cast<int64_t>(i); };
  if (to_batch) {
    for (size_t i = 0; i < blocks; ++i) axes.push_back(at(2 + 2 * i));
    axes.push_back(0);
    for (size_t i = 0; i < blocks; ++i) axes.push_back(at(1 + 2 * i));
  } else {
    axes.push_back(at(blocks));
    for (size_t i = 0; i < blocks; ++i) {
      axes.push_back(at(blocks + 1 + i));
      axes.push_back(at(i));
    }
  }
  for (size_t i = blocks + 1; i < rank; ++i) axes.push_back(at(i + blocks));
  return axes;
}

}  // namespace

void import_space_to_batch_nd(OpContext& op) {
  op.expect_counts(3, 3, 1);
  op.require_movable(op.input(0), op.output());
  op.require_one_quantization(op.input(0), op.output());
  ir::ValueId data = op.value(op.input(0));
  const size_t rank = op.shape(data).size();
  const Blocks blocks = read_blocks(op, rank);
  std::vector<ir::Ints> width(rank, ir::Ints{0, 0});
  std::copy(blocks.borders.begin(), blocks.borders.end(), width.begin() + 1);
  if (std::ranges::any_of(blocks.borders, [](const ir::Ints& border) { return border != ir::Ints{0, 0}; })) {
    const int32_t value = is_quantized(op.output()) ? op.quantization(op.output()).zero_point : 0;
    data = op.emit("nn.pad", {data, op.zero_point(value)}, {{"pad_width", width}});
  }
  const ir::Shape s = op.shape(data);
  ir::Shape split = {s[0]}, result = {s[0]};
  for (size_t i = 0; i < blocks.extents.size(); ++i) {
    const int64_t block = blocks.extents[i], extent = s[i + 1];
    if (extent % block != 0)
      invalid("extent " + std::to_string(extent) + " is no multiple of block " + std::to_string(block));
    split.insert(split.end(), {extent / block, block});
    result[0] *= block;
    result.push_back(extent / block);
  }
  split.insert(split.end(), s.begin() + static_cast<ptrdiff_t>(result.size()), s.end());
  result.insert(result.end(), s.begin() + static_cast<ptrdiff_t>(result.size()), s.end());
  const ir::ValueId moved = op.emit("transpose", {op.reshaped(data, split)},
                                    {{"axes", block_axes(blocks.extents.size(), rank, true)}});
  op.define(op.output(), op.reshaped(moved, result));
}

void import_batch_to_space_nd(OpContext& op) {
  op.expect_counts(3, 3, 1);
  op.require_movable(op.input(0), op.output());
  op.require_one_quantization(op.input(0), op.output());
  const ir::ValueId data = op.value(op.input(0));
  const ir::Shape s = op.shape(data);
  const Blocks blocks = read_blocks(op, s.size());
  int64_t positions = 1;
  for (const int64_t block : blocks.extents) positions *= block;
  if (positions < 1 || s[0] % positions != 0)
    invalid("batch " + std::to_string(s[0]) + " is no multiple of " + std::to_string(positions));
  ir::Shape split = blocks.extents, result = {s[0] / positions};
  split.push_back(s[0] / positions);
  split.insert(split.end(), s.begin() + 1, s.end());
  ir::Ints begin = {0}, end = {s[0] / positions};
  for (size_t i = 0; i < blocks.extents.size(); ++i) {
    const int64_t extent = s[i + 1] * blocks.extents[i];
    const ir::Ints& crop = blocks.borders[i];
    result.push_back(extent);
    begin.push_back(crop[0]);
    end.push_back(extent - crop[1]);
    if (begin.back() >= end.back()) throw Unsupported{"a result without elements"};
  }
  result.insert(result.end(), s.begin() + static_cast<ptrdiff_t>(result.size()), s.end());
  const ir::ValueId moved = op.emit("transpose", {op.reshaped(data, split)},
                                    {{"axes", block_axes(blocks.extents.size(), s.size(), false)}});
  const ir::ValueId whole = op.reshaped(moved, result);
  const bool cuts = std::ranges::any_of(blocks.borders, [](const ir::Ints& crop) {
    return crop != ir::Ints{0, 0};
  });
  op.define(op.output(), cuts ? op.emit("strided_slice", {whole}, {{"begin", begin}, {"end", end}}) : whole);
}

}  // namespace qplan::tfl
