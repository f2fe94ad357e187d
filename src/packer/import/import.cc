#include "src/packer/import/import.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "kernels/numeric/requantize.h"
#include "src/packer/error.h"
#include "src/packer/import/part.h"
#include "src/packer/ir/cat.h"
#include "src/packer/op/op_def.h"
#include "src/packer/text/syntax.h"
#include "src/packer/text/text.h"

namespace qplan::importer {
namespace {

constexpr char kListed[] = " that qplan does not import:";
constexpr char kWhatToDo[] =
    "to do: replace these operators in the model, or pack a part of it without them (--end-at, --begin-at) "
    "and "
    "run the rest in the application";
constexpr char kCoverage[] = "; `qplan pack MODEL --coverage` prints the share of the model that runs";
constexpr size_t kMaxNameBytes = 1024;
constexpr size_t kMaxQuotedBytes = 120;

// Length of the well-formed UTF-8 sequence (RFC 3629) at the beginning of text; 0 if it begins with no such
// sequence.
size_t utf8_length(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  const size_t length = first < 0x80   ? 1
                        : first < 0xc2 ? 0
                        : first < 0xe0 ? 2
                        : first < 0xf0 ? 3
                        : first < 0xf5 ? 4
                                       : 0;
  if (length == 0 || length > text.size()) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  if (length >= 3) {
    const bool overlong = (first == 0xe0 && byte(1) < 0xa0) || (first == 0xf0 && byte(1) < 0x90);
    const bool surrogate = first == 0xed && byte(1) >= 0xa0;
    const bool too_large = first == 0xf4 && byte(1) >= 0x90;
    if (overlong || surrogate || too_large) return 0;
  }
  return length;
}

}  // namespace

std::string clean_name(std::string_view name) {
  std::string clean;
  size_t i = 0;
  while (i < name.size()) {
    const size_t length = utf8_length(name.substr(i, 4));
    if (clean.size() + (length == 0 ? 1 : length) > kMaxNameBytes) break;
    const bool control = length == 1 && (name[i] < 0x20 || name[i] == 0x7f);
    if (length == 0 || control) {
      clean += '?';
      ++i;
    } else {
      clean.append(name, i, length);
      i += length;
    }
  }
  return clean;
}

std::string in_quotes(std::string_view name) {
  std::string text = clean_name(name.substr(0, kMaxQuotedBytes));
  if (name.size() > kMaxQuotedBytes) text += "...";
  return "'" + text + "'";
}

std::string quoted_path(std::string_view path) {
  // Longer than any path that a system takes.
  constexpr size_t kMaxPathBytes = 4096;
  std::string clean;
  for (size_t begin = 0; begin < std::min(path.size(), kMaxPathBytes);) {
    // In pieces that clean_name keeps whole.
    const std::string piece = clean_name(path.substr(begin));
    clean += piece;
    begin += piece.size();
  }
  return "'" + clean + "'";
}

std::string to_text(const ir::Shape& shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
  return text + "]";
}

std::string to_text(float value) {
  char buffer[64];
  return std::string(buffer, std::to_chars(buffer, buffer + sizeof(buffer), value).ptr);
}

void invalid(const std::string& text) { throw PackError(QPLAN_MODEL_INVALID, text); }

std::string with_notes(const std::vector<std::string>& notes, const std::string& error,
                       const std::string& parts, bool has_coverage) {
  std::string text;
  for (const std::string& note : notes) text += note + "\n";
  text += error;
  // The notes say what to do themselves.
  const bool is_list = error.find(kListed) != std::string::npos;
  if (notes.empty() && is_list) text += std::string("\n") + kWhatToDo + (has_coverage ? kCoverage : "");
  return text + parts;
}

bool UnsupportedList::mentions(std::string_view part) const {
  return std::ranges::any_of(entries_,
                             [&](const auto& entry) { return entry.first.find(part) != std::string::npos; });
}

std::string UnsupportedList::text() const {
  constexpr size_t kMaxLines = 64;
  using Line = std::pair<const std::string, Entry>;
  std::vector<const Line*> lines;
  for (const Line& entry : entries_) lines.push_back(&entry);
  std::ranges::stable_sort(lines, std::greater<>(), [](const Line* line) { return line->second.count; });
  const auto place = [](const Line& line) {
    return cat(line.first, line.second.count > 1 ? " (first " : " (", line.second.first, ")");
  };
  std::string text = cat(total_, total_ == 1 ? " operator" : " operators", kListed);
  if (lines.size() == 1) return text + " " + place(*lines[0]);
  for (size_t i = 0; i < std::min(lines.size(), kMaxLines); ++i) {
    text += cat("\n  ", lines[i]->second.count, " x ", place(*lines[i]));
  }
  if (lines.size() > kMaxLines) text += cat("\n  and ", lines.size() - kMaxLines, " other kinds");
  return text;
}

}  // namespace qplan::importer

namespace qplan {

void keep_all_results(ir::Function& main) {
  constexpr size_t kMaxResults = 250;  // fewer than a plan has outputs
  const std::vector<uint32_t> uses = ir::count_uses(main);
  std::vector<ir::ValueId> outputs(main.outputs().begin(), main.outputs().end());
  for (const ir::Node& node : main.nodes()) {
    for (const ir::ValueId result : node.results) {
      if (uses[result.index] == 0 && outputs.size() < kMaxResults) outputs.push_back(result);
    }
  }
  main.set_outputs(std::move(outputs));
}

namespace {

std::string attr_name(const char* side, const char* what, size_t index) {
  return std::string(side) + what + std::to_string(index);
}

void set(ir::Function& function, const char* side, size_t index, TensorQuantization quantization) {
  function.attrs().set(attr_name(side, "_scale_", index), static_cast<double>(quantization.scale));
  function.attrs().set(attr_name(side, "_zero_point_", index), int64_t{quantization.zero_point});
}

void clear(ir::Function& function, const char* side, size_t index) {
  function.attrs().erase(attr_name(side, "_scale_", index));
  function.attrs().erase(attr_name(side, "_zero_point_", index));
}

std::optional<TensorQuantization> get(const ir::Function& function, const char* side, size_t index) {
  const std::string scale = attr_name(side, "_scale_", index);
  if (!function.attrs().has(scale)) return std::nullopt;
  const int64_t zero_point = function.attrs().get_int(attr_name(side, "_zero_point_", index), 0);
  return TensorQuantization{static_cast<float>(function.attrs().get_double(scale, 0)),
                            static_cast<int32_t>(zero_point)};
}

[[noreturn]] void refuse(const ir::Function& function, const std::string& name, const std::string& text) {
  throw PackError(QPLAN_MODEL_INVALID,
                  cat("function '@", function.name(), "': attribute '", name, "' ", text));
}

void check_scale(const ir::Function& function, const std::string& name) {
  const ir::AttrValue* value = function.attrs().find(name);
  if (value == nullptr) return;
  const auto* integer = std::get_if<int64_t>(value);
  const auto* number = std::get_if<double>(value);
  const double scale = integer != nullptr  ? static_cast<double>(*integer)
                       : number != nullptr ? *number
                                           : std::numeric_limits<double>::quiet_NaN();
  // The smallest subnormal float32 is about 1.4e-45; what is below half of it would become 0.
  const bool fits = scale > 0 && scale <= static_cast<double>(std::numeric_limits<float>::max());
  if (fits && static_cast<float>(scale) > 0) return;
  refuse(function, name, "is not a scale, expected a positive finite number of float32");
}

void check_zero_point(const ir::Function& function, const std::string& name, ir::DType dtype) {
  const ir::AttrValue* value = function.attrs().find(name);
  if (value == nullptr) return;
  const auto* zero_point = std::get_if<int64_t>(value);
  if (zero_point == nullptr) refuse(function, name, "is not a zero point, expected an integer");
  // Beside floats and wide integers a zero point means nothing; it must be one that a plan can hold.
  if (dtype.is_float() || dtype.bits > 32) dtype = ir::kInt32;
  if (*zero_point >= dtype.min() && *zero_point <= dtype.max()) return;
  refuse(function, name,
         cat("is ", *zero_point, ", outside of ", dtype, ": expected ", dtype.min(), " to ", dtype.max()));
}

void check(const ir::Function& function, const char* side, size_t index, ir::DType dtype) {
  check_scale(function, attr_name(side, "_scale_", index));
  check_zero_point(function, attr_name(side, "_zero_point_", index), dtype);
}

}  // namespace

void set_input_quantization(ir::Function& function, size_t index, TensorQuantization quantization) {
  set(function, "input", index, quantization);
}

void set_output_quantization(ir::Function& function, size_t index, TensorQuantization quantization) {
  set(function, "output", index, quantization);
}

void clear_input_quantization(ir::Function& function, size_t index) { clear(function, "input", index); }

void clear_output_quantization(ir::Function& function, size_t index) { clear(function, "output", index); }

std::optional<TensorQuantization> input_quantization(const ir::Function& function, size_t index) {
  return get(function, "input", index);
}

std::optional<TensorQuantization> output_quantization(const ir::Function& function, size_t index) {
  return get(function, "output", index);
}

void check_quantization_attrs(const ir::Function& function) {
  if (function.attrs().empty()) return;
  for (size_t i = 0; i < function.params().size(); ++i) {
    check(function, "input", i, function.type(function.params()[i]).dtype);
  }
  for (size_t i = 0; i < function.outputs().size(); ++i) {
    check(function, "output", i, function.type(function.outputs()[i]).dtype);
  }
}

namespace {

using Known = std::vector<std::optional<TensorQuantization>>;  // by value

std::optional<TensorQuantization> read(const ir::Function& function, ir::ValueId scale,
                                       ir::ValueId zero_point) {
  if (!function.is_constant(scale) || !function.is_constant(zero_point)) return std::nullopt;
  const ir::Constant& s = *function.value(scale).constant;
  const ir::Constant& z = *function.value(zero_point).constant;
  if (!s.type().shape.empty() || !z.type().shape.empty()) return std::nullopt;  // per channel
  return TensorQuantization{s.as<float>()[0], z.as<int32_t>()[0]};
}

void read_tensor(const ir::Function& function, const ir::Node& node, size_t tensor, Known* known) {
  const std::optional<size_t> scale = op::scale_of(*node.op, tensor);
  const std::optional<size_t> zero_point = op::zero_point_of(*node.op, tensor);
  if (!scale || !zero_point) return;
  const ir::ValueId value = tensor == op::kResult ? node.results[0] : node.operands[tensor];
  auto& entry = (*known)[value.index];
  if (!entry) entry = read(function, node.operands[*scale], node.operands[*zero_point]);
}

void read_node(const ir::Function& function, const ir::Node& node, bool canonical, Known* known) {
  // In canonical form the zero point of a product's data is any: the bias makes up for it.
  if (node.op == nullptr || (canonical && op::is_product(node.op))) return;
  for (const size_t tensor : op::data_operands(node)) read_tensor(function, node, tensor, known);
  read_tensor(function, node, op::kResult, known);
}

}  // namespace

void set_io_quantization(ir::Function& function, bool canonical) {
  Known known(function.num_values());
  const auto nodes = function.nodes();
  for (const ir::Node& node : nodes) read_node(function, node, canonical, &known);
  // Forwards to outputs, backwards to inputs.
  const auto pass_on = [&](const ir::Node& node, bool forwards) {
    if (!op::passes_quantization(node.op)) return;
    for (const size_t i : op::data_operands(node)) {
      for (const ir::ValueId id : node.results) {
        auto &operand = known[node.operands[i].index], &result = known[id.index];
        if (forwards && !result) result = operand;
        if (!forwards && !operand) operand = result;
      }
    }
  };
  for (const ir::Node& node : nodes) pass_on(node, true);
  for (size_t i = nodes.size(); i-- > 0;) pass_on(nodes[i], false);

  const auto found = [&](ir::ValueId id) -> const std::optional<TensorQuantization>& {
    static const std::optional<TensorQuantization> kNone;
    const ir::DType dtype = function.type(id).dtype;
    return dtype == ir::kInt8 || dtype == ir::kUint8 ? known[id.index] : kNone;
  };
  for (size_t i = 0; i < function.params().size(); ++i) {
    const auto& q = found(function.params()[i]);
    if (q && !input_quantization(function, i)) set_input_quantization(function, i, *q);
  }
  for (size_t i = 0; i < function.outputs().size(); ++i) {
    const auto& q = found(function.outputs()[i]);
    if (q && !output_quantization(function, i)) set_output_quantization(function, i, *q);
  }
}

namespace {

// The qnn.conv2d or qnn.dense whose accumulators the node rescales; null for another.
const ir::Node* find_product(const ir::Function& function, const ir::Node& requantize) {
  const ir::Node* node = function.producer(requantize.operands[0]);
  if (node != nullptr && node->op != nullptr && node->op->name == "nn.bias_add") {
    node = function.producer(node->operands[0]);
  }
  if (node == nullptr || node->op == nullptr) return nullptr;
  return node->op->name == "qnn.conv2d" || node->op->name == "qnn.dense" ? node : nullptr;
}

std::span<const float> floats(const ir::Function& function, ir::ValueId id) {
  return function.value(id).constant->as<float>();
}

std::string multiplier_text(double real) {
  if (!(real > 0) || real >= 0x1p30) return "out of range";
  const QuantizedMultiplier quantized = quantize_multiplier(real);
  return cat(quantized.multiplier, " with shift ", quantized.shift);
}

// Text prints scales with few digits. A layer has two scales for its accumulators; where they give different
// multipliers, the log states which one counts.
void report_scales(const ir::Function& function, const ir::Node& requantize, std::string_view name,
                   const LogFunction& log) {
  const ir::Node* product = find_product(function, requantize);
  if (product == nullptr) return;
  const float input = floats(function, product->operands[4])[0];
  const float output = floats(function, requantize.operands[3])[0];
  const std::span<const float> weights = floats(function, product->operands[5]);
  const std::span<const float> given = floats(function, requantize.operands[1]);
  // A requantisation along another axis than the channels has as many scales as that axis is long.
  if (weights.size() != 1 && given.size() != 1 && weights.size() != given.size()) return;
  for (size_t o = 0; o < std::max(weights.size(), given.size()); ++o) {
    const float weight = weights[weights.size() == 1 ? 0 : o], printed = given[given.size() == 1 ? 0 : o];
    const float made = input * weight;
    if (made == printed) continue;
    const double from_product =
        static_cast<double>(input) * static_cast<double>(weight) / static_cast<double>(output);
    const double from_printed = static_cast<double>(printed) / static_cast<double>(output);
    const bool is_meant = !op::means_product(static_cast<double>(printed), static_cast<double>(made));
    const std::string where = cat(name, ": qnn.requantize '", requantize.name, "' %",
                                  function.value(requantize.results[0]).producer,
                                  weights.size() + given.size() > 2 ? cat(", channel ", o) : std::string());
    if (is_meant) {
      log(QPLAN_LOG_INFO,
          cat(where, ": its scale ", text::shortest(printed), " differs from ", text::shortest(made),
              ", the product of the layer's scales, by more than 1e-5: it is meant, multiplier ",
              multiplier_text(from_printed)));
    } else {
      log(QPLAN_LOG_INFO,
          cat(where, ": the product of the layer's scales is meant, multiplier ",
              multiplier_text(from_product), "; its printed scale ", text::shortest(printed),
              " is that product rounded, which alone would give ", multiplier_text(from_printed)));
    }
    return;  // one line for a layer
  }
}

}  // namespace

bool is_text(std::span<const uint8_t> bytes) {
  constexpr size_t kLooked = 4096;
  if (bytes.empty()) return false;
  return std::ranges::all_of(bytes.first(std::min(bytes.size(), kLooked)), [](uint8_t byte) {
    return byte >= 0x20 ? byte != 0x7f : byte == '\n' || byte == '\r' || byte == '\t';
  });
}

ir::Module import_relay(std::span<const uint8_t> bytes, std::string_view name, const LogFunction& log,
                        const ImportOptions& options) {
  importer::refuse_part(options.part, "Relay text", "edit the text");
  text::ParseOptions parse_options;
  parse_options.input_types = options.input_types;
  parse_options.bindings = options.bindings;
  parse_options.names_of_others = options.names_of_others;
  parse_options.synthesize_constants = options.synthesize_constants;
  parse_options.log = log;
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  ir::Module module = text::parse(text, name, parse_options);
  try {
    for (const auto& function : module.functions()) check_quantization_attrs(*function);
  } catch (const PackError& error) {
    throw PackError(error.status(), cat(name, ": ", error.what()));
  }
  if (!log) return module;
  for (const auto& function : module.functions()) {
    for (const ir::Node& node : function->nodes()) {
      if (node.op != nullptr && node.op->name == "qnn.requantize") report_scales(*function, node, name, log);
    }
  }
  return module;
}

}  // namespace qplan
