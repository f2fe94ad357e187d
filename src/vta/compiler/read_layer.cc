#include "src/vta/compiler/read_layer.h"

#include <utility>
#include <variant>

#include "src/packer/error.h"
#include "src/packer/ir/cat.h"
#include "src/packer/op/op_def.h"
#include "src/packer/target/cpu/lowering.h"

namespace qplan::target::vta {
namespace {

class Reader {
 public:
  explicit Reader(const Candidate& candidate)
      : c_(candidate), function_(candidate.function()), product_(*candidate.node("product")) {}

  ReadLayer read() {
    GemmLayer& layer = result_.layer;
    layer.name = product_.name;
    layer.geometry = geometry(c_);
    result_.flips_input = function_.type(product_.operands[0]).dtype == ir::kUint8;
    layer.input_zero_point = zero_point(product_.operands[2], "the input's zero point", result_.flips_input);
    if (const ir::AttrValue* value = product_.attrs.find("pad_value")) {
      layer.padding = static_cast<int8_t>(std::get<int64_t>(*value) - (result_.flips_input ? 128 : 0));
    }
    if (const ir::Node* pad = c_.node("pad")) unpad(*pad);
    weights();
    bias();
    if (c_.node("requantize") != nullptr) {
      requantization();
    } else {
      layer.leaves_int32 = true;
    }
    return std::move(result_);
  }

 private:
  [[noreturn]] void refuse(const std::string& reason) const {
    throw PackError(QPLAN_MODEL_UNSUPPORTED, cat("vta: layer '", product_.name, "': ", reason));
  }

  const ir::Constant& constant(ir::ValueId value, const char* what) const {
    const ir::ConstantRef& constant = function_.value(value).constant;
    if (constant == nullptr) refuse(cat(what, " is not a constant"));
    return *constant;
  }
  // In the device's terms.
  int32_t zero_point(ir::ValueId value, const char* what, bool is_unsigned) const {
    return constant(value, what).as<int32_t>()[0] - (is_unsigned ? 128 : 0);
  }

  // A value of the data's dtype, written as one of three.
  static int32_t pad_value(const ir::Constant& constant) {
    const ir::DType dtype = constant.type().dtype;
    if (dtype == ir::kFloat32) return static_cast<int32_t>(constant.as<float>()[0]);
    if (dtype == ir::kInt32) return constant.as<int32_t>()[0];
    return dtype == ir::kUint8 ? constant.as<uint8_t>()[0] : constant.as<int8_t>()[0];
  }

  // The window then pads as far as nn.pad did, with its value.
  void unpad(const ir::Node& pad) {
    Geometry& g = result_.layer.geometry;
    const auto& widths = op::attr_int_lists(pad, "pad_width");  // NHWC
    g.in_h -= widths[1][0] + widths[1][1];
    g.in_w -= widths[2][0] + widths[2][1];
    g.window.pad_top = widths[1][0], g.window.pad_bottom = widths[1][1];
    g.window.pad_left = widths[2][0], g.window.pad_right = widths[2][1];
    result_.layer.padding = static_cast<int8_t>(pad_value(constant(pad.operands[1], "nn.pad's value")) -
                                                (result_.flips_input ? 128 : 0));
  }

  void weights() {
    const auto range = weight_range(c_);
    auto weights = centred_weights(c_);
    if (!range || !weights) refuse("its weights are not 8-bit constants in the order OHWI");
    // Before they are narrowed to 16 bits.
    if (range->min < kMinWeight || range->max > kMaxWeight)
      refuse(cat("weights less their zero point reach from ", range->min, " to ", range->max));
    result_.layer.weights = *std::move(weights);
  }

  void bias() {
    GemmLayer& layer = result_.layer;
    layer.bias.assign(static_cast<size_t>(layer.geometry.out_c), 0);
    const ir::Node* bias_add = c_.node("bias_add");
    if (bias_add == nullptr) return;
    const ir::Constant& bias = constant(bias_add->operands[1], "the bias");
    if (bias.type().dtype != ir::kInt32 || bias.as<int32_t>().size() != layer.bias.size())
      refuse(cat("bias ", bias.type(), ", expected ", layer.bias.size(), " int32"));
    const auto values = bias.as<int32_t>();
    layer.bias.assign(values.begin(), values.end());
  }

  void requantization() {
    GemmLayer& layer = result_.layer;
    const ir::Node& requantize = *c_.node("requantize");
    const ir::Node& root = c_.root();
    const ir::DType dtype = function_.type(root.results[0]).dtype;
    auto quantized = multipliers(c_);
    if (!quantized) refuse("its scales do not fit its channels");
    layer.multipliers = *std::move(quantized);
    result_.flips_output = dtype == ir::kUint8;
    layer.output_zero_point =
        zero_point(requantize.operands[4], "the output's zero point", result_.flips_output);
    const cpu::Clamp clamp =
        c_.node("clip") != nullptr ? cpu::clip_clamp(root, dtype) : cpu::full_clamp(dtype);
    layer.clamp_min = clamp.min - (result_.flips_output ? 128 : 0);
    layer.clamp_max = clamp.max - (result_.flips_output ? 128 : 0);
  }

  const Candidate& c_;
  const ir::Function& function_;
  const ir::Node& product_;
  ReadLayer result_;
};

}  // namespace

ReadLayer read_layer(const Candidate& candidate) { return Reader(candidate).read(); }

}  // namespace qplan::target::vta
