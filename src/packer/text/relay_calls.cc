#include "src/packer/text/relay_calls.h"

#include <algorithm>
#include <array>

#include "src/packer/ir/cat.h"
#include "src/packer/op/op_def.h"

namespace qplan::text {
namespace {

// Attributes of Relay that the IR has not. One of `meaningless` says what is done anyway; "*" is any value.
struct Row {
  std::string_view op;  // a whole name, or the end of one behind '*'
  std::string_view attr;
  std::vector<std::string_view> meaningless;  // as value_text writes them
};

const std::vector<Row>& rows() {
  static const std::vector<Row> kRows = {
      {"*conv2d", "out_layout", {"", "NCHW", "NHWC"}},
      {"*conv2d", "auto_scheduler_rewritten_layout", {""}},
      {"*conv2d", "meta_schedule_original_shape", {"*"}},
      {"nn.conv2d", "out_dtype", {"", "float32"}},
      {"*dense", "auto_scheduler_rewritten_layout", {""}},
      {"*dense", "meta_schedule_original_shape", {"*"}},
      {"nn.dense", "out_dtype", {"", "float32"}},
      {"qnn.dequantize", "out_dtype", {"float32"}},
      {"*pool2d", "ceil_mode", {"False", "0"}},
      {"*pool2d", "dilation", {"1", "[1]", "[1, 1]"}},
      {"*pool2d", "out_layout", {"", "NCHW", "NHWC"}},
      {"nn.adaptive_avg_pool2d", "output_size", {"1", "[1]", "[1, 1]"}},
      {"nn.batch_norm", "center", {"True", "1"}},
      {"nn.batch_norm", "scale", {"True", "1"}},
      {"*mean", "exclude", {"False", "0"}},
      {"argmax", "exclude", {"False", "0"}},
      {"argmax", "select_last_index", {"False", "0"}},
      {"reshape", "allowzero", {"False", "0"}},
      {"reshape", "reverse", {"False", "0"}},
      {"strided_slice", "slice_mode", {"end"}},
      {"take", "batch_dims", {"0"}},
      {"take", "mode", {"clip", "fast"}},
      {"nn.dropout", "rate", {"*"}},
      {"image.resize2d", "rounding_method", {"*"}},
      {"image.resize2d", "cubic_alpha", {"*"}},
      {"image.resize2d", "cubic_exclude", {"*"}},
      {"image.resize2d", "extrapolation_value", {"*"}},
      {"image.resize2d", "roi", {"*"}},
      {"image.resize2d", "out_dtype", {""}},
      {"qnn.requantize", "compute_dtype", {"", "None", "int64"}},
      // Scales of operands are scalars here, whose axis means nothing.
      {"qnn.add", "lhs_axis", {"*"}},
      {"qnn.add", "rhs_axis", {"*"}},
      {"qnn.subtract", "lhs_axis", {"*"}},
      {"qnn.subtract", "rhs_axis", {"*"}},
      {"qnn.mul", "lhs_axis", {"*"}},
      {"qnn.mul", "rhs_axis", {"*"}},
  };
  return kRows;
}

bool applies(std::string_view pattern, std::string_view op) {
  return pattern.starts_with('*') ? op.ends_with(pattern.substr(1)) : op == pattern;
}

std::string value_text(const ir::AttrValue& value) {
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "True" : "False";
  if (const auto* integer = std::get_if<int64_t>(&value)) return std::to_string(*integer);
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  if (const auto* ints = std::get_if<ir::Ints>(&value)) {
    std::string joined = "[";
    for (const int64_t i : *ints) joined += (joined.size() == 1 ? "" : ", ") + std::to_string(i);
    return joined + "]";
  }
  return "this value";
}

RelayAttr keep(std::string name, ir::AttrValue value) {
  return {.kind = RelayAttr::Kind::kKeep, .name = std::move(name), .value = std::move(value), .reason = ""};
}
RelayAttr drop() { return {.kind = RelayAttr::Kind::kDrop, .name = "", .value = {}, .reason = ""}; }
RelayAttr refuse(std::string reason) {
  return {.kind = RelayAttr::Kind::kRefuse, .name = "", .value = {}, .reason = std::move(reason)};
}

// Relay's rounding of qnn.requantize. UPWARD adds one half to the 62-bit product and shifts once: that is
// contract tfl1.
RelayAttr read_rounding(const ir::AttrValue& value) {
  const std::string text = value_text(value);
  if (text == "None" || text.empty()) return drop();
  if (text == "UPWARD") return keep("contract", "tfl1");
  if (text == "TONEAREST") {
    return refuse(
        "rounding \"TONEAREST\" (halves away from zero, in one step) is computed by no kernel, expected "
        "\"UPWARD\" or "
        "\"None\"");
  }
  return refuse("unknown rounding \"" + text + "\", expected \"UPWARD\" or \"None\"");
}

}  // namespace

std::string_view ir_operator(std::string_view relay_name) {
  return relay_name == "nn.adaptive_avg_pool2d" ? "nn.global_avg_pool2d" : relay_name;
}

bool is_identity(std::string_view relay_name) {
  return relay_name == "copy" || relay_name == "nn.dropout" || relay_name == "annotation.stop_fusion";
}

RelayAttr read_relay_attr(std::string_view relay_name, const std::string& attr, const ir::AttrValue& value) {
  if (relay_name == "qnn.requantize" && attr == "rounding") return read_rounding(value);
  for (const Row& row : rows()) {
    if (attr != row.attr || !applies(row.op, relay_name)) continue;
    const std::string text = value_text(value);
    std::string expected;
    for (const std::string_view allowed : row.meaningless) {
      if (allowed == "*" || allowed == text) return drop();
      expected += cat(expected.empty() ? "" : " or ", allowed.empty() ? std::string_view("\"\"") : allowed);
    }
    return refuse(cat("attribute '", attr, "' is ", text, ", which is not supported, expected ", expected));
  }
  return keep(attr, value);
}

void complete_relay_call(ir::Node* node, const std::vector<ir::TensorType>& operands) {
  if (node->op == nullptr || operands.empty()) return;
  const ir::Shape& shape = operands[0].shape;
  if (node->op->name == "reshape") {
    const ir::AttrValue* value = node->attrs.find("newshape");
    const auto* given = value != nullptr ? std::get_if<ir::Ints>(value) : nullptr;
    if (given == nullptr || std::ranges::find(*given, 0) == given->end()) return;
    ir::Ints newshape = *given;
    for (size_t i = 0; i < newshape.size() && i < shape.size(); ++i) {
      if (newshape[i] == 0) newshape[i] = shape[i];  // as the operand has it
    }
    node->attrs.set("newshape", std::move(newshape));
  } else if (node->op->name == "qnn.requantize") {
    const ir::AttrValue* value = node->attrs.find("out_dtype");
    const auto* name = value != nullptr ? std::get_if<std::string>(value) : nullptr;
    if (name != nullptr && *name == kOperandDtype)
      node->attrs.set("out_dtype", ir::to_string(operands[0].dtype));
  } else if (node->op->name == "transpose") {
    const auto rank = static_cast<int64_t>(shape.size());
    ir::Ints axes;
    const ir::AttrValue* value = node->attrs.find("axes");
    if (const auto* given = value != nullptr ? std::get_if<ir::Ints>(value) : nullptr) {
      axes = *given;
    } else if (value == nullptr) {
      for (int64_t axis = rank; axis-- > 0;) axes.push_back(axis);  // reversed
    } else {
      return;
    }
    for (int64_t& axis : axes) axis += axis < 0 && axis >= -rank ? rank : 0;
    node->attrs.set("axes", std::move(axes));
  }
}

}  // namespace qplan::text
