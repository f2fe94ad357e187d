// Imports an ONNX model node by node; says first what a model that cannot be imported was made for.
#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "src/packer/error.h"
#include "src/packer/import/custom_operator.h"
#include "src/packer/import/import.h"
#include "src/packer/import/onnx/model_file.h"
#include "src/packer/import/onnx/op_context.h"
#include "src/packer/ir/cat.h"

namespace qplan::onnx {
namespace {

using importer::UnsupportedList;

// ---- what the model was made for, and how it was quantised

constexpr std::string_view kMicrosoft = "com.microsoft";
constexpr char kStatic[] =
    "quantise it statically (onnxruntime.quantization.quantize_static with calibration data)";

using Names = std::span<const std::string_view>;
constexpr std::string_view kDynamic[] = {"DynamicQuantizeLinear", "MatMulInteger",
                                         "ConvInteger",           "DynamicQuantizeMatMul",
                                         "DynamicQuantizeLSTM",   "MatMulIntegerToFloat"};
constexpr std::string_view kWeightOnly[] = {"MatMulNBits", "MatMulBnb4", "MatMulFpQ4",
                                            "GatherBlockQuantized"};
constexpr std::string_view kProducts[] = {"Conv", "ConvTranspose", "Gemm", "MatMul", "LSTM", "GRU"};
constexpr std::string_view kQonnx[] = {"Quant",        "IntQuant", "FloatQuant",
                                       "BipolarQuant", "Trunc",    "MultiThreshold"};
constexpr std::string_view kStaticForms[] = {"QuantizeLinear", "DequantizeLinear", "QGemm"};

bool is_one_of(std::string_view text, Names list) { return std::ranges::find(list, text) != list.end(); }

bool is_any_of(Names list, const UnsupportedList& unsupported) {
  return std::ranges::any_of(list, [&](std::string_view name) { return unsupported.mentions(name); });
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

  std::vector<std::string> notes(const UnsupportedList& unsupported) const {
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
    if (dynamic_.count > 0 && is_any_of(kDynamic, unsupported)) {
      notes.push_back(cat("the model is quantised dynamically (first ", dynamic_.first,
                          "): the scales of its activations would be found while it runs; ", kStatic));
    }
    if (weight_only_.count > 0 && is_any_of(kWeightOnly, unsupported)) {
      notes.push_back(cat("only the weights of the model are quantised, in blocks (first ",
                          weight_only_.first, "); ", kStatic));
    }
    if (products_.count > 0 && is_any_of(kProducts, unsupported) && !has_quantised_ &&
        dynamic_.count + weight_only_.count + qonnx_.count == 0) {
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
    if (domain.empty() && is_one_of(op, kQonnx)) qonnx_.add(node);
    if (is_one_of(op, kDynamic)) dynamic_.add(node);
    if (domain == kMicrosoft && is_one_of(op, kWeightOnly)) weight_only_.add(node);
    if (is_one_of(op, kStaticForms) || op.starts_with("QLinear")) has_quantised_ = true;
    if (domain.empty() && is_one_of(op, kProducts)) products_.add(node);
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

std::vector<std::string> model_notes(const Model& model, const UnsupportedList& unsupported) {
  Survey survey;
  survey.look(model.nodes);
  for (const Function& function : model.functions) survey.look(function.nodes);
  return survey.notes(unsupported);
}

namespace {

// Versions of operators are known up to this opset of ONNX's own domain. A newer one may have changed an
// operator; what it could have added, attributes and inputs, is refused where it is used.
constexpr int64_t kNewestOpset = 25;

// Functions that call functions: those that exporters write do so a few times.
constexpr size_t kMaxCalls = 32;

using Opsets = std::unordered_map<std::string, int64_t>;  // by domain

int64_t opset_of(const Opsets& opsets, const std::string& domain) {
  const auto found = opsets.find(domain);
  if (found == opsets.end()) invalid("the model states no opset of domain " + in_quotes(domain));
  return found->second;
}

Opsets read_opsets(const Model& model, const std::string& place, const LogFunction& log) {
  Opsets opsets;
  for (const OpsetImport& opset : model.opsets) {
    const auto [known, is_new] = opsets.emplace(opset.domain, opset.version);
    if (!is_new && known->second != opset.version) {
      invalid("the model states two opsets of domain " + in_quotes(opset.domain));
    }
    if (is_new && log && opset.domain.empty() && opset.version > kNewestOpset) {
      log(QPLAN_LOG_WARNING, place + "opset " + std::to_string(opset.version) + " is newer than " +
                                 std::to_string(kNewestOpset) +
                                 ", the newest that is known: its operators are read as of that one");
    }
  }
  return opsets;
}

bool reads_unknown(Graph& graph, const NodeInfo& node) {
  return std::ranges::any_of(
      node.inputs, [&](const std::string& name) { return !name.empty() && !graph.value(name).is_known(); });
}

// Outputs that no row defined: those of an operator that is not imported (the rest of the model is looked
// through for more of them, and the module is thrown away), and optional ones that nobody reads.
void define_unknown(Graph& graph, const NodeInfo& node) {
  for (const std::string& output : node.outputs) {
    if (!output.empty() && !graph.is_defined(output)) graph.define(output, {});
  }
}

// An inference text without the operator and node name that it begins with.
std::string reason_of(const PackError& error, const std::string& node_name) {
  const std::string text = error.what();
  const std::string place = "'" + node_name + "': ";
  const size_t at = text.find(place);
  return at == std::string::npos ? text : text.substr(at + place.size());
}

// Lists the operators of the node's subgraphs: "Add inside Loop".
void list_subgraphs(const NodeInfo& node, UnsupportedList* unsupported) {
  for (const Attribute& attribute : node.attributes) {
    if (attribute.graph == nullptr) continue;
    for (const NodeInfo& inner : attribute.graph->nodes) {
      const std::string& name = !inner.name.empty() || inner.outputs.empty() ? inner.name : inner.outputs[0];
      unsupported->add(operator_name(inner) + " inside " + operator_name(node), in_quotes(name));
      list_subgraphs(inner, unsupported);
    }
  }
}

// The nodes of a graph, of the subgraphs that replace a node and of the functions that nodes call.
class NodeImporter {
 public:
  NodeImporter(Graph& graph, Opsets opsets, UnsupportedList* unsupported, const ImportOptions& options)
      : graph_(graph),
        opsets_(std::move(opsets)),
        unsupported_(unsupported),
        found_(options.operators),
        custom_operators_(options.custom_operators) {
    for (const Function& function : graph.model().functions)
      functions_.emplace(std::pair<std::string_view, std::string_view>(function.domain, function.name),
                         &function);
  }

  void import_nodes(const std::vector<NodeInfo>& nodes) {
    for (size_t i = 0; i < nodes.size(); ++i) {
      const size_t before = unsupported_->size();
      import_node(nodes[i], i);
      if (unsupported_->size() > before) refused_.insert(&nodes[i]);
    }
  }
  // Whether the node, or something inside of it, is not imported.
  bool is_refused(const NodeInfo& node) const { return refused_.contains(&node); }

 private:
  void import_node(const NodeInfo& node, size_t index);
  // The caller's operator that has the node's domain and name, or its name alone. Returns null if none has.
  const qplan_custom_operator* custom_operator_of(const NodeInfo& node) const {
    const qplan_custom_operator* found = importer::find_custom(custom_operators_, operator_name(node));
    return found != nullptr ? found : importer::find_custom(custom_operators_, node.op_type);
  }
  // Nothing where the model has no such function.
  const Function* function_of(const NodeInfo& node) const;
  void import_call(const OpContext& context, const Function& function, const NodeInfo& node);

  Graph& graph_;
  Opsets opsets_;
  UnsupportedList* unsupported_;
  std::vector<SourceOperator>* found_;  // where every operator is noted; null: nowhere
  const std::vector<const qplan_custom_operator*>& custom_operators_;
  std::multimap<std::pair<std::string_view, std::string_view>, const Function*>
      functions_;                       // by domain and name
  std::vector<const Function*> calls_;  // that are being imported
  std::unordered_set<const NodeInfo*> refused_;
};

// The lines about parts that can do without what is refused.
std::string parts_without(Graph& values, const NodeImporter& importer) {
  importer::PartGraph graph = part_graph(values.model());
  std::vector<bool> refused;
  for (const NodeInfo& node : values.model().nodes) {
    refused.push_back(importer.is_refused(node));
    // Shape arithmetic is done on import: a part neither begins nor ends in it.
    for (const std::string& output : node.outputs) {
      if (!output.empty() && values.value(output).is_constant())
        graph.constants.insert(graph.find(output).front());
    }
  }
  return importer::parts_without(graph, refused);
}

const Function* NodeImporter::function_of(const NodeInfo& node) const {
  const auto [found, end] = functions_.equal_range({node.domain, node.op_type});
  if (found == end) return nullptr;
  if (std::next(found) != end) throw Unsupported{"several functions of this name (overloads)"};
  return found->second;
}

void NodeImporter::import_call(const OpContext& context, const Function& function, const NodeInfo& node) {
  if (std::ranges::find(calls_, &function) != calls_.end()) invalid("the function calls itself");
  if (calls_.size() == kMaxCalls) invalid(cat("functions call each other ", kMaxCalls, " deep"));
  const FunctionCall call = read_call(graph_, function, node, context.name());
  // The function's opsets hold until it ends, however it does.
  struct Frame {
    NodeImporter* importer;
    Opsets outer;
    Frame(NodeImporter* i, const Function* f) : importer(i), outer(i->opsets_) {
      for (const OpsetImport& opset : f->opsets) i->opsets_[opset.domain] = opset.version;
      i->calls_.push_back(f);
    }
    ~Frame() {
      importer->opsets_ = std::move(outer);
      importer->calls_.pop_back();
    }
  };
  std::vector<Value> values;
  {
    const Frame frame(this, &function);
    values = graph_.import_function(call.inputs, call.nodes, call.outputs);
  }
  for (size_t i = 0; i < values.size(); ++i) {
    if (context.has_output(i) && values[i].is_known()) context.define(i, values[i]);
  }
}

void NodeImporter::import_node(const NodeInfo& node, size_t index) {
  const std::string op_name = operator_name(node);
  // A model need not name the opset of a domain that qplan does not know anyway.
  const ImportRow* row = find_row(node.domain, node.op_type);
  const int64_t opset = row == nullptr ? 0 : opset_of(opsets_, node.domain);
  const OpContext context(graph_, node, index, opset);
  const std::string node_name = in_quotes(context.name());
  const size_t at = found_ == nullptr ? 0 : found_->size();  // more may be found inside of the node
  if (found_ != nullptr) found_->push_back({op_name, context.name(), "", 0});
  const auto note = [&](const std::string& reason) {
    if (found_ != nullptr) (*found_)[at].reason = reason;
  };
  try {
    const Function* function = row == nullptr ? function_of(node) : nullptr;
    const bool is_known = row != nullptr || function != nullptr;
    const qplan_custom_operator* custom = is_known ? nullptr : custom_operator_of(node);
    if (!is_known && custom == nullptr) {
      note("not imported");
      unsupported_->add(op_name, node_name);
      list_subgraphs(node, unsupported_);
    } else if (row != nullptr && opset < row->oldest) {
      note(cat("of opset ", opset, ", known from ", row->oldest, " on"));
      unsupported_->add(cat(op_name, " of opset ", opset, " (known from ", row->oldest, " on)"), node_name);
    } else if (reads_unknown(graph_, node)) {
      note("it needs what an operator that is not imported computes");
    } else if (function != nullptr) {
      import_call(context, *function, node);
    } else if (custom != nullptr) {
      import_custom(context, *custom);
    } else {
      row->import_op(context);
      context.refuse_unread_attributes();
    }
  } catch (const Unsupported& use) {
    note(use.reason);
    unsupported_->add(op_name + " with " + use.reason, node_name);
    list_subgraphs(node, unsupported_);
  } catch (const PackError& error) {
    if (error.status() == QPLAN_MODEL_UNSUPPORTED) {
      note(reason_of(error, context.name()));
      unsupported_->add(op_name + " (" + reason_of(error, context.name()) + ")", node_name);
    } else {
      throw PackError(error.status(), cat("node ", index, " ", op_name, " ", node_name, ": ", error.what()));
    }
  }
  define_unknown(graph_, node);
}

ir::Module import_model(const Model& model, const std::string& place, const LogFunction& log,
                        const ImportOptions& options, UnsupportedList* unsupported, std::string* parts) {
  ir::Module module;
  Graph graph(model, module.add_function("main"), log);
  define_inputs(graph, options);
  NodeImporter importer(graph, read_opsets(model, place, log), unsupported, options);
  graph.set_node_importer([&](const std::vector<NodeInfo>& nodes) { importer.import_nodes(nodes); });
  graph.import_nodes(model.nodes);
  if (!unsupported->empty() && options.operators == nullptr) {
    if (options.part.empty()) *parts = parts_without(graph, importer);
    throw PackError(QPLAN_MODEL_UNSUPPORTED, unsupported->text());
  }
  if (!unsupported->empty()) {
    keep_all_results(graph.function());  // the model's outputs may be unknown
  } else {
    define_outputs(graph);
  }
  return module;
}

ir::Module import_checked(std::span<const uint8_t> bytes, const std::string& place, const LogFunction& log,
                          const ImportOptions& options) {
  Model model = read_model(bytes);
  select_part(&model, options);
  UnsupportedList unsupported;
  std::string parts;
  try {
    return import_model(model, place, log, options, &unsupported, &parts);
  } catch (const PackError& error) {
    if (error.status() != QPLAN_MODEL_UNSUPPORTED) throw;
    throw PackError(error.status(),
                    importer::with_notes(model_notes(model, unsupported), error.what(), parts));
  } catch (const Unsupported& use) {
    throw PackError(QPLAN_MODEL_UNSUPPORTED,
                    importer::with_notes(model_notes(model, unsupported), "a model with " + use.reason));
  }
}

// Protobuf's variable-length number; nullopt where the bytes end.
std::optional<uint64_t> read_varint(std::span<const uint8_t>* bytes) {
  uint64_t number = 0;
  for (size_t i = 0; i < bytes->size() && i < 10; ++i) {
    number |= uint64_t{(*bytes)[i] & 0x7fu} << (7 * i);
    if ((*bytes)[i] < 0x80) {
      *bytes = bytes->subspan(i + 1);
      return number;
    }
  }
  return std::nullopt;
}

}  // namespace
}  // namespace qplan::onnx

namespace qplan {

// Walks over the fields of a ModelProto until its graph. Its numbers are the IR version and the model's
// version; a text begins with other bytes.
bool looks_like_onnx(std::span<const uint8_t> bytes) {
  constexpr uint64_t kVarint = 0, kLengthDelimited = 2;
  constexpr uint64_t kGraph = 7;
  const auto is_number = [](uint64_t field) { return field == 1 || field == 5; };
  const auto is_bytes = [](uint64_t field) {
    return (field >= 2 && field <= 8 && field != 5) || field == 14 || field == 20 || field == 25;
  };
  while (!bytes.empty()) {
    const std::optional<uint64_t> tag = onnx::read_varint(&bytes);
    if (!tag) return false;
    const uint64_t field = *tag >> 3, wire_type = *tag & 7;
    const std::optional<uint64_t> number = onnx::read_varint(&bytes);
    if (!number) return false;
    if (wire_type == kVarint && is_number(field)) continue;
    if (wire_type != kLengthDelimited || !is_bytes(field)) return false;
    if (field == kGraph) return true;
    if (*number > bytes.size()) return false;
    bytes = bytes.subspan(*number);
  }
  return false;
}

ir::Module import_onnx(std::span<const uint8_t> bytes, std::string_view name, const LogFunction& log,
                       const ImportOptions& options) {
  const std::string place = "onnx: " + importer::quoted_path(name) + ": ";
  try {
    return onnx::import_checked(bytes, place, log, options);
  } catch (const PackError& error) {
    throw PackError(error.status(), place + error.what());
  }
}

}  // namespace qplan
