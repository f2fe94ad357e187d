#include <algorithm>

#include "src/packer/import/onnx/model_file.h"
#include "src/packer/ir/cat.h"

namespace qplan::onnx {
namespace {

constexpr std::string_view kMicrosoft = "com.microsoft";
constexpr char kStatic[] =
    "quantise it statically (onnxruntime.quantization.quantize_static with calibration data)";

bool is_one_of(std::string_view text, std::initializer_list<std::string_view> list) {
  return std::ranges::find(list, text) != list.end();
}

// Operators of one kind, and the first of them.
struct Found {
  size_t count = 0;
  std::string first;
  void add(const NodeInfo& node) {
    if (count++ > 0) return;
    const std::string name = !node.name.empty() || node.outputs.empty() ? node.name : node.outputs[0];
    first = operator_name(node) + " " + in_quotes(name);
  }
};

class Survey {
 public:
  void look(const std::vector<NodeInfo>& nodes) {
    for (const NodeInfo& node : nodes) {
      look_at(node);
      for (const Attribute& attribute : node.attributes) {
        if (attribute.graph != nullptr) look(attribute.graph->nodes);
      }
    }
  }

  std::vector<std::string> notes() const {
    std::vector<std::string> notes;
    if (compiled_.count > 0) {
      notes.push_back(cat("the model is compiled for a device: ", compiled_.first,
                          compiled_for_.empty() ? "" : " (made by " + in_quotes(compiled_for_) + ")",
                          " holds a program for it; pack the model that was compiled"));
    }
    if (optimised_.count > 0) {
      notes.push_back(cat("the model was optimised by ONNX Runtime for one processor (first ",
                          optimised_.first,
                          "); save it with at most ORT_ENABLE_EXTENDED, or pack the model before that"));
    }
    if (finn_.count > 0) {
      notes.push_back(cat("the model is compiled by FINN for an FPGA (first ", finn_.first,
                          "); pack the model that FINN was given, exported in QCDQ form"));
    } else if (qonnx_.count > 0) {
      notes.push_back(cat("the model is QONNX (first ", qonnx_.first,
                          "), which qplan does not read; write it with QuantizeLinear and DequantizeLinear: "
                          "brevitas.export.export_onnx_qcdq, or QuantToQCDQ of the qonnx package"));
    }
    if (dynamic_.count > 0) {
      notes.push_back(cat("the model is quantised dynamically (first ", dynamic_.first,
                          "): the scales of its activations would be found while it runs; ", kStatic));
    }
    if (weight_only_.count > 0) {
      notes.push_back(cat("only the weights of the model are quantised, in blocks (first ",
                          weight_only_.first, "); ", kStatic));
    }
    if (products_.count > 0 && !has_quantised_ && dynamic_.count + weight_only_.count + qonnx_.count == 0) {
      notes.push_back(cat("the model is not quantised: its ", products_.count,
                          products_.count == 1 ? " layer" : " layers", " with weights (first ",
                          products_.first, products_.count == 1 ? ") computes" : ") compute", " in float; ",
                          kStatic));
    }
    return notes;
  }

 private:
  void look_at(const NodeInfo& node) {
    const std::string_view domain = node.domain, op = node.op_type;
    if (domain == kMicrosoft && op == "EPContext") {
      compiled_.add(node);
      for (const Attribute& attribute : node.attributes) {
        if (attribute.name == "source" && compiled_for_.empty()) compiled_for_ = attribute.s;
      }
    }
    if (domain == "com.microsoft.nchwc") optimised_.add(node);
    if (domain.starts_with("finn.")) finn_.add(node);
    if (domain.starts_with("qonnx.") || domain == "onnx.brevitas") qonnx_.add(node);
    // Some exporters leave the domain out.
    if (domain.empty() &&
        is_one_of(op, {"Quant", "IntQuant", "FloatQuant", "BipolarQuant", "Trunc", "MultiThreshold"})) {
      qonnx_.add(node);
    }
    if (is_one_of(op, {"DynamicQuantizeLinear", "MatMulInteger", "ConvInteger", "DynamicQuantizeMatMul",
                       "DynamicQuantizeLSTM", "MatMulIntegerToFloat"})) {
      dynamic_.add(node);
    }
    if (domain == kMicrosoft &&
        is_one_of(op, {"MatMulNBits", "MatMulBnb4", "MatMulFpQ4", "GatherBlockQuantized"})) {
      weight_only_.add(node);
    }
    if (is_one_of(op, {"QuantizeLinear", "DequantizeLinear", "QGemm"}) || op.starts_with("QLinear")) {
      has_quantised_ = true;
    }
    if (domain.empty() && is_one_of(op, {"Conv", "ConvTranspose", "Gemm", "MatMul", "LSTM", "GRU", "RNN"})) {
      products_.add(node);
    }
  }

  Found compiled_, optimised_, finn_, qonnx_, dynamic_, weight_only_, products_;
  std::string compiled_for_;
  bool has_quantised_ = false;
};

}  // namespace

std::string operator_name(const NodeInfo& node) {
  std::string name = node.domain.empty() ? node.op_type : node.domain + "." + node.op_type;
  if (name.empty()) name = "?";
  return clean_name(name.substr(0, 120));
}

std::vector<std::string> model_notes(const Model& model) {
  Survey survey;
  survey.look(model.nodes);
  return survey.notes();
}

}  // namespace qplan::onnx
