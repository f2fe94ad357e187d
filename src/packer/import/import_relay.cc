#include <algorithm>
#include <string>

#include "kernels/numeric/requantize.h"
#include "src/packer/error.h"
#include "src/packer/import/import.h"
#include "src/packer/ir/cat.h"
#include "src/packer/op/op_def.h"
#include "src/packer/text/syntax.h"
#include "src/packer/text/text.h"

namespace qplan {
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
  text::ParseOptions parse_options;
  parse_options.input_types = options.input_types;
  parse_options.bindings = options.bindings;
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
