#include <algorithm>
#include <cstddef>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/numeric/requantize.h"
#include "src/packer/error.h"
#include "src/packer/ir/cat.h"
#include "src/packer/layer/quantized_layer.h"
#include "src/packer/op/attributes.h"
#include "src/packer/op/op_def.h"
#include "src/packer/target/external/external.h"

namespace qplan::target::external {
namespace {

enum Place : size_t { kInput, kSecondInput, kWeights, kBias, kOutput, kMoreInputs };

// In the place of an exception: what stands against the candidate.
struct Unreadable {
  std::string text;
};
[[noreturn]] void refuse(std::string text) { throw Unreadable{std::move(text)}; }
template <typename T>
const T& need(const layer::Part<T>& part) {
  if (!part) refuse(part.why());
  return *part;
}

class Reader {
 public:
  Reader(const Candidate& candidate, ReadOp* result)
      : c_(candidate), function_(candidate.function()), r_(*result), op_(result->op) {}

  void run() {
    const ir::Node& root = c_.root();
    r_.name = root.name;
    r_.output = root.results[0];
    op_.struct_size = sizeof(op_);
    op_.name = r_.name.c_str();
    op_.groups = 1;
    std::ranges::fill(op_.strides, 1u);
    std::ranges::fill(op_.dilations, 1u);
    op_.contract = QPLAN_NPU_TFL2;
    op_.output = tensor(kOutput, type(r_.output));
    if (c_.node("product") == nullptr || c_.node("requantize") != nullptr) clamp();
    if (c_.node("product") != nullptr) {
      read_layer(c_.layer());
    } else if (const ir::Node* sum = c_.node("sum")) {
      addition(*sum);
    } else if (const ir::Node* pool = c_.node("pool")) {
      pool2d(*pool);
    } else if (const ir::Node* mean = c_.node("mean")) {
      average(*mean);
    } else if (const ir::Node* plain = c_.node("plain")) {
      plain_operator(*plain);
    } else if (const ir::Node* general = c_.node("general")) {
      general_operator(*general);
    } else {
      op_.op = QPLAN_NPU_OP_CLIP;
      input(kInput, c_.node("clip")->operands[0]);
    }
    if (const char* error = qplan_npu_op_check(&op_)) refuse(error);
  }

 private:
  const ir::TensorType& type(ir::ValueId value) const { return function_.type(value); }

  const DLTensor* tensor(size_t place, const ir::TensorType& type) {
    DLTensor& t = r_.tensors[place];
    r_.shapes[place] = type.shape;
    t.device.device_type = kDLCPU;
    t.dtype = {type.dtype.code, type.dtype.bits, type.dtype.lanes};
    t.ndim = static_cast<int32_t>(type.shape.size());
    t.shape = r_.shapes[place].data();
    return &t;
  }
  void input(Place place, ir::ValueId value) { op_.inputs[place] = operand(place, value); }
  // Activations have no data, constants have.
  const DLTensor* operand(size_t place, ir::ValueId value) {
    const ir::ConstantRef& constant = function_.value(value).constant;
    r_.inputs.push_back(value);
    r_.constants.push_back(constant);
    return constant == nullptr ? tensor(place, type(value)) : constant_tensor(place, *constant);
  }
  float scale(ir::ValueId value, const char* what) const {
    return need(layer::read_scale(function_, value, what));
  }
  int32_t zero_point(ir::ValueId value, const char* what) const {
    return need(layer::read_zero_point(function_, value, what));
  }
  void contract(const std::string& name) {
    op_.contract = name == "tfl2"   ? uint32_t{QPLAN_NPU_TFL2}
                   : name == "tfl1" ? uint32_t{QPLAN_NPU_TFL1}
                   : name == "f32e" ? uint32_t{QPLAN_NPU_F32E}
                                    : 0;
    if (op_.contract == 0) refuse(cat("contract '", name, "' is not known to operator lists"));
  }
  void clamp() {
    const ir::DType dtype = type(r_.output).dtype;
    if (!layer::is_8_bit(dtype)) refuse(cat("the output is ", dtype, ", expected int8 or uint8"));
    const bool has_clip = c_.node("clip") != nullptr;
    const layer::Clamp range = has_clip ? layer::clip_clamp(c_.root(), dtype) : layer::full_clamp(dtype);
    op_.clamp_min = range.min;
    op_.clamp_max = range.max;
  }

  void window(const op::Window2d& w) {
    const auto narrow = [](int64_t value) {
      return static_cast<uint32_t>(std::clamp<int64_t>(value, 0, UINT32_MAX));
    };
    op_.window[0] = narrow(w.kernel_h), op_.window[1] = narrow(w.kernel_w);
    op_.strides[0] = narrow(w.stride_h), op_.strides[1] = narrow(w.stride_w);
    op_.dilations[0] = narrow(w.dilation_h), op_.dilations[1] = narrow(w.dilation_w);
    op_.pads[0] = narrow(w.pad_top), op_.pads[1] = narrow(w.pad_left);
    op_.pads[2] = narrow(w.pad_bottom), op_.pads[3] = narrow(w.pad_right);
  }

  // ---- layers of weights
  const DLTensor* constant_tensor(size_t place, const ir::Constant& constant) {
    DLTensor& t = r_.tensors[place];
    (void)tensor(place, constant.type());
    t.data = const_cast<uint8_t*>(constant.bytes().data());
    return &t;
  }

  void read_layer(const layer::QuantizedLayer& from) {
    const layer::LayerNodes& nodes = from.nodes;
    const std::string& name = nodes.product->op->name;
    const bool is_transposed = name == "qnn.conv2d_transpose", is_conv = name == "qnn.conv2d";
    op_.op = is_transposed ? QPLAN_NPU_OP_CONV2D_TRANSPOSE
             : is_conv     ? QPLAN_NPU_OP_CONV2D
                           : QPLAN_NPU_OP_DENSE;
    input(kInput, nodes.pad != nullptr ? nodes.pad->operands[0] : nodes.product->operands[0]);
    op_.input_zero_points[0] = need(from.input_zero_point);
    r_.weights = need(from.weight_constant);
    op_.weights = constant_tensor(kWeights, *r_.weights);
    op_.weights_zero_point = need(from.weight_zero_point);
    if (is_conv) convolution(from);
    if (is_transposed) window(from.geometry.window);
    op_.window[0] = op_.window[1] = 0;  // the weights have it
    if (!from.has_bias_on_last_axis) refuse("the bias is not along the channels");
    r_.bias = need(from.bias);
    if (r_.bias != nullptr) op_.bias = constant_tensor(kBias, *r_.bias);
    if (nodes.requantize == nullptr) return accumulators(from);
    if (need(from.accumulator_zero_point) != 0) refuse("the accumulator's zero point is not 0");
    op_.output_zero_point = need(from.output_zero_point);
    contract(from.contract);
    layer_scales(from);
  }

  // They leave the device as they are; the CPU's qnn.requantize reads them.
  void accumulators(const layer::QuantizedLayer& from) {
    if (from.nodes.clip != nullptr) refuse("a clip of accumulators");
    if (const std::string reader = c_.reader_besides_requantize(); !reader.empty())
      refuse(cat("the accumulators are read by ", reader, ", expected qnn.requantize"));
    op_.contract = QPLAN_NPU_ACC32;
    op_.clamp_min = INT32_MIN;
    op_.clamp_max = INT32_MAX;
  }

  void convolution(const layer::QuantizedLayer& from) {
    if (!from.is_canonical) refuse("layouts other than NHWC and OHWI");
    const layer::Padding& padding = need(from.padding);
    op_.groups = static_cast<uint32_t>(from.geometry.groups);
    if (padding.value) {
      op_.flags |= QPLAN_NPU_OP_PAD_VALUE;
      op_.pad_value = *padding.value;
    }
    window(from.unpadded_geometry().window);
  }

  void layer_scales(const layer::QuantizedLayer& from) {
    const layer::LayerScales& s = need(from.scales);
    if (!from.requantizes_channels) refuse("the scales of the requantisation are not along the channels");
    op_.num_scales = static_cast<uint32_t>(s.is_one() ? 1 : from.geometry.out_c);
    for (size_t o = 0; o < op_.num_scales; ++o) {
      if (op_.contract == QPLAN_NPU_F32E) {
        r_.scales.push_back(s.f32e(o));
      } else {
        add_multiplier(quantize_multiplier(s.multiplier(o)));
      }
    }
    give_scales();
  }

  void add_multiplier(const QuantizedMultiplier& m) {
    r_.multipliers.push_back(m.multiplier);
    r_.shifts.push_back(m.shift);
  }
  void give_scales() {
    if (!r_.scales.empty()) op_.scales = r_.scales.data();
    if (r_.multipliers.empty()) return;
    op_.multipliers = r_.multipliers.data();
    op_.shifts = r_.shifts.data();
  }

  // ---- others
  struct BinaryScales {
    float lhs, rhs, output;
  };
  // Reads qnn.add and qnn.mul; under f32e the operator has the scales as they are.
  BinaryScales binary(const ir::Node& node) {
    two_inputs(node);
    contract(op::attr_string(node, "contract"));
    const BinaryScales scales = {scale(node.operands[2], "the left scale"),
                                 scale(node.operands[4], "the right scale"),
                                 scale(node.operands[6], "the output's scale")};
    op_.input_zero_points[0] = zero_point(node.operands[3], "the left zero point");
    op_.input_zero_points[1] = zero_point(node.operands[5], "the right zero point");
    op_.output_zero_point = zero_point(node.operands[7], "the output's zero point");
    if (op_.contract == QPLAN_NPU_F32E) r_.scales = {scales.lhs, scales.rhs, scales.output};
    return scales;
  }
  void two_inputs(const ir::Node& node) {
    input(kInput, node.operands[0]);
    input(kSecondInput, node.operands[1]);
  }

  void addition(const ir::Node& sum) {
    op_.op = QPLAN_NPU_OP_ADD;
    sum_of_two(sum);
  }
  void sum_of_two(const ir::Node& sum) {
    op_.num_scales = 3;
    const BinaryScales scales = binary(sum);
    if (op_.contract != QPLAN_NPU_F32E) {  // docs/numerics/add.md
      const layer::AddMultipliers multipliers = layer::add_multipliers(scales.lhs, scales.rhs, scales.output);
      op_.left_shift = layer::kAddLeftShift;
      for (const QuantizedMultiplier& m : {multipliers.lhs, multipliers.rhs, multipliers.output})
        add_multiplier(m);
    }
    give_scales();
  }

  void product(const ir::Node& node) {
    const BinaryScales scales = binary(node);
    if (op_.contract != QPLAN_NPU_F32E)
      add_multiplier(layer::product_multiplier(scales.lhs, scales.rhs, scales.output));
    op_.num_scales = op_.contract == QPLAN_NPU_F32E ? 3 : 1;
    give_scales();
  }

  void average(const ir::Node& mean) {
    op_.op = QPLAN_NPU_OP_MEAN;
    input(kInput, mean.operands[0]);
    const ir::Shape& shape = type(mean.operands[0]).shape;
    std::vector<int64_t> axes = op::attr_ints(mean, "axis");
    std::ranges::sort(axes);
    if (shape.size() != 4 || axes != std::vector<int64_t>{1, 2})
      refuse("a mean over other axes than height and width of NHWC");
    contract(op::attr_string(mean, "contract"));
    const float in = scale(mean.operands[1], "the input's scale");
    const float out = scale(mean.operands[3], "the output's scale");
    op_.input_zero_points[0] = zero_point(mean.operands[2], "the input's zero point");
    op_.output_zero_point = zero_point(mean.operands[4], "the output's zero point");
    op_.num_scales = 1;
    const int64_t count = shape[1] * shape[2];
    if (op_.contract == QPLAN_NPU_F32E) {  // docs/numerics/mean.md
      r_.scales = {in / (out * static_cast<float>(count))};
    } else {
      add_multiplier(layer::mean_multiplier(in, out, static_cast<uint64_t>(count)));
    }
    give_scales();
  }

  struct Kind {
    std::string_view name;
    uint32_t op;
    void (Reader::*read)(const ir::Node& node);
  };
  // An operator that is a composite by itself.
  void plain_operator(const ir::Node& node) {
    // operator list: QPLAN_NPU_OP_* that one operator of the IR is
    constexpr Kind kKinds[] = {{"qnn.mul", QPLAN_NPU_OP_MUL, &Reader::product},
                               {"maximum", QPLAN_NPU_OP_MAXIMUM, &Reader::two_inputs},
                               {"minimum", QPLAN_NPU_OP_MINIMUM, &Reader::two_inputs},
                               {"qnn.lookup", QPLAN_NPU_OP_LOOKUP, &Reader::lookup},
                               {"nn.pad", QPLAN_NPU_OP_PAD, &Reader::pad},
                               {"concatenate", QPLAN_NPU_OP_CONCAT, &Reader::concatenation},
                               {"reshape", QPLAN_NPU_OP_RESHAPE, &Reader::reshape},
                               {"qnn.softmax", QPLAN_NPU_OP_SOFTMAX, &Reader::softmax},
                               {"take", QPLAN_NPU_OP_RESIZE_NEAREST, &Reader::resize_nearest},
                               {"image.resize2d", QPLAN_NPU_OP_RESIZE_BILINEAR, &Reader::resize_bilinear}};
    read_kind(kKinds, node);
  }
  // The same operators of the IR, as kinds that take other shapes too.
  void general_operator(const ir::Node& node) {
    constexpr Kind kKinds[] = {{"concatenate", QPLAN_NPU_OP_CONCAT_N, &Reader::concatenation_of_any},
                               {"qnn.add", QPLAN_NPU_OP_ADD_BROADCAST, &Reader::sum_of_two},
                               {"qnn.mul", QPLAN_NPU_OP_MUL_BROADCAST, &Reader::product}};
    read_kind(kKinds, node);
  }
  void read_kind(std::span<const Kind> kinds, const ir::Node& node) {
    const auto kind = std::ranges::find(kinds, node.op->name, &Kind::name);
    if (kind == kinds.end()) refuse(cat("operator '", node.op->name, "'"));
    op_.op = kind->op;
    (this->*kind->read)(node);
  }

  void reshape(const ir::Node& node) { input(kInput, node.operands[0]); }

  void lookup(const ir::Node& node) {
    input(kInput, node.operands[0]);
    r_.weights = need(layer::read_constant(function_, node.operands[1], "the table"));
    op_.weights = constant_tensor(kWeights, *r_.weights);
  }

  void pad(const ir::Node& node) {
    input(kInput, node.operands[0]);
    const std::vector<ir::Ints>& widths = op::attr_int_lists(node, "pad_width");
    const auto is_zero = [&](size_t axis) { return widths[axis][0] == 0 && widths[axis][1] == 0; };
    if (widths.size() != 4 || !is_zero(0) || !is_zero(3))
      refuse("a pad of other axes than height and width of NHWC");
    for (size_t i = 0; i < 2; ++i) {
      op_.pads[i] = static_cast<uint32_t>(std::min<int64_t>(widths[1 + i][0], UINT32_MAX));
      op_.pads[i + 2] = static_cast<uint32_t>(std::min<int64_t>(widths[1 + i][1], UINT32_MAX));
    }
    op_.flags |= QPLAN_NPU_OP_PAD_VALUE;
    op_.pad_value =
        layer::pad_value(*need(layer::read_constant(function_, node.operands[1], "the padding's value")));
  }

  void concatenation(const ir::Node& node) {
    if (node.operands.size() != 2)
      refuse(cat("a concatenation of ", node.operands.size(), " tensors, expected 2"));
    const auto rank = static_cast<int64_t>(type(node.operands[0]).shape.size());
    const int64_t axis = op::attr_int(node, "axis");
    if (axis != rank - 1 && axis != -1) refuse("a concatenation along another axis than the last");
    two_inputs(node);
  }

  void concatenation_of_any(const ir::Node& node) {
    const size_t count = node.operands.size();
    if (count < 2 || count > QPLAN_NPU_MAX_INPUTS)
      refuse(cat("a concatenation of ", count, " tensors, expected 2 to ", QPLAN_NPU_MAX_INPUTS));
    two_inputs(node);
    for (size_t i = 2; i < count; ++i) r_.more_inputs[i - 2] = operand(kMoreInputs + i - 2, node.operands[i]);
    op_.more_inputs = r_.more_inputs.data();
    op_.num_inputs = static_cast<uint32_t>(count);
    op_.axis = static_cast<uint32_t>(
        op::normalized_axis(op::attr_int(node, "axis"), type(node.operands[0]).shape.size()));
  }

  void softmax(const ir::Node& node) {
    input(kInput, node.operands[0]);
    const size_t rank = type(node.operands[0]).shape.size();
    const int64_t axis = op::normalized_axis(op::attr_int(node, "axis"), rank);
    if (axis + 1 != static_cast<int64_t>(rank)) refuse(cat("a softmax along axis ", axis, ", not the last"));
    contract(op::attr_string(node, "contract"));
    const float in = scale(node.operands[1], "the input's scale");
    const float out = scale(node.operands[3], "the output's scale");
    op_.output_zero_point = zero_point(node.operands[4], "the output's zero point");
    const auto beta = static_cast<float>(op::attr_float(node, "beta"));
    if (op_.contract == QPLAN_NPU_F32E) {
      if (beta != 1.0f) refuse("a softmax under f32e whose beta is not 1");
      r_.scales = layer::softmax_exponentials(in);
      r_.scales.insert(r_.scales.begin(), out);
      op_.num_scales = static_cast<uint32_t>(r_.scales.size());
      return give_scales();
    }
    if (out != 1.0f / 256.0f) refuse("the output's scale of a softmax is not 1/256");
    const auto scaling = layer::softmax_scaling(static_cast<double>(beta) * static_cast<double>(in));
    if (!scaling) refuse("the input's scale of a softmax is too small");
    r_.multipliers = {scaling->multiplier};
    r_.shifts = {scaling->left_shift};
    op_.num_scales = 1;
    give_scales();
  }

  // One take or two, each of the positions that a resize of height or width has. Both are resized in the same
  // way; an axis that keeps its extent is resized in any.
  void resize_nearest(const ir::Node& last) {
    const ir::Node* const inner = c_.node("inner");
    input(kInput, (inner == nullptr ? last : *inner).operands[0]);
    if (type(r_.inputs[0]).shape.size() != 4) refuse("a resize of other axes than height and width of NHWC");
    constexpr uint32_t kWays[] = {0, QPLAN_NPU_OP_HALF_PIXEL_CENTERS, QPLAN_NPU_OP_ALIGN_CORNERS};
    for (const uint32_t flags : kWays) {
      op_.flags = flags;
      if (is_resized(last, inner) && (inner == nullptr || is_resized(*inner, &last))) return;
    }
    refuse("positions that no resize to the nearest element has");
  }
  // Whether a take has the positions of op_.flags. other: the take of the other axis.
  bool is_resized(const ir::Node& take, const ir::Node* other) const {
    const int64_t axis = op::normalized_axis(op::attr_int(take, "axis"), 4);
    if (axis < 1 || axis > 2 ||
        (other != nullptr && op::normalized_axis(op::attr_int(*other, "axis"), 4) == axis))
      refuse("a resize of other axes than height and width of NHWC");
    const ir::Constant& positions =
        *need(layer::read_constant(function_, take.operands[1], "the positions of a resize"));
    if (positions.type().shape.size() != 1) refuse("positions that no resize to the nearest element has");
    const std::vector<int64_t> values = layer::integers(positions);
    for (size_t o = 0; o < values.size(); ++o) {
      const int64_t nearest = qplan_npu_op_nearest(&op_, static_cast<int32_t>(axis), static_cast<int64_t>(o));
      if (values[o] != nearest) return false;
    }
    return true;
  }

  void resize_bilinear(const ir::Node& node) {
    if (op::attr_string(node, "layout") != "NHWC") refuse("layouts other than NHWC");
    input(kInput, node.operands[0]);
    contract(op::attr_string(node, "contract"));
    if (op_.contract != QPLAN_NPU_TFL2) refuse("an interpolation under another contract than tfl2");
    const std::string& mode = op::attr_string(node, "coordinate_transformation_mode");
    if (mode == "align_corners") op_.flags |= QPLAN_NPU_OP_ALIGN_CORNERS;
    if (mode == "half_pixel") op_.flags |= QPLAN_NPU_OP_HALF_PIXEL_CENTERS;
    if (type(node.operands[0]).dtype == ir::kUint8) op_.flags |= QPLAN_NPU_OP_RESIZE_FLOAT;
  }

  void pool2d(const ir::Node& pool) {
    if (op::attr_string(pool, "layout") != "NHWC") refuse("layouts other than NHWC");
    input(kInput, pool.operands[0]);
    window(op::pool2d_window(pool));
    const bool is_max = pool.op->name == "nn.max_pool2d";
    op_.op = is_max ? QPLAN_NPU_OP_MAX_POOL2D : QPLAN_NPU_OP_AVG_POOL2D;
    if (is_max) return;
    contract(op::attr_string(pool, "contract"));
    const float in = scale(pool.operands[1], "the input's scale");
    const float out = scale(pool.operands[3], "the output's scale");
    op_.input_zero_points[0] = zero_point(pool.operands[2], "the input's zero point");
    op_.output_zero_point = zero_point(pool.operands[4], "the output's zero point");
    const bool counts_pads = op::attr_bool(pool, "count_include_pad");
    if (op_.contract == QPLAN_NPU_F32E) {
      if (counts_pads) op_.flags |= QPLAN_NPU_OP_COUNT_INCLUDE_PAD;
      op_.num_scales = 2;
      r_.scales = {in, out};
      return give_scales();
    }
    if (counts_pads) refuse("an average under tfl2 does not count padding");
    if (in != out || op_.input_zero_points[0] != op_.output_zero_point)
      refuse("an average under tfl2 has one scale and zero point for input and output");
  }

  const Candidate& c_;
  const ir::Function& function_;
  ReadOp& r_;
  qplan_npu_op& op_;
};

}  // namespace

std::string read_op(const Candidate& candidate, bool flips, ReadOp* result) {
  try {
    Reader(candidate, result).run();
    return flips ? to_signed(result) : "";
  } catch (const Unreadable& unreadable) {
    return unreadable.text;
  } catch (const PackError& error) {
    return error.what();
  }
}

}  // namespace qplan::target::external
