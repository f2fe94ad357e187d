// From a draft to a function of the IR, and data for constants that a text names without giving them.
#include <algorithm>
#include <cstring>
#include <string>

#include "src/base/checked.h"
#include "src/base/random.h"
#include "src/packer/error.h"
#include "src/packer/ir/cat.h"
#include "src/packer/op/op_def.h"
#include "src/packer/text/parser.h"
#include "src/packer/text/syntax.h"

namespace qplan::text {
namespace {

// Steps that a quantised weight or bias reaches in either direction.
constexpr double kWeightSteps = 100;
constexpr double kBiasSteps = 1000;

// Numbers from a seed and the name of what they are for.
class Generator {
 public:
  Generator(uint64_t seed, std::string_view name) : random_(seed) {
    for (const char c : name) random_ = SplitMix64(random_.next() ^ static_cast<unsigned char>(c));
  }
  int64_t integer(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random_.below(static_cast<uint64_t>(high - low + 1)));
  }
  // A multiple of 2^-20 in [-1, 1].
  double unit() { return static_cast<double>(integer(-(1 << 20), 1 << 20)) / (1 << 20); }

 private:
  SplitMix64 random_;
};

// qnn.quantize of a weight: what it makes of the elements sets their range.
double quantized_amplitude(const Draft& draft, const ir::Node& node, double fallback) {
  if (node.op->name != "qnn.quantize" || node.operands.size() < 2) return fallback;
  const ir::ConstantRef& scale = draft[node.operands[1]].constant;
  if (scale == nullptr || scale->type().dtype != ir::kFloat32) return fallback;
  const ir::AttrValue* dtype = node.attrs.find("out_dtype");
  const auto* name = dtype != nullptr ? std::get_if<std::string>(dtype) : nullptr;
  const double steps = name != nullptr && *name == "int32" ? kBiasSteps : kWeightSteps;
  return static_cast<double>(std::ranges::min(scale->as<float>())) * steps;
}

// The result is the operand in another shape, order, dtype or quantisation.
bool is_passed_on(const op::OpDef& op) {
  return op.converts || op.movement == op::Movement::kReshape || op.movement == op::Movement::kPermute;
}

// The use of operand i of the node; result: the recipe of the node's result.
Recipe recipe_of_use(const Draft& draft, const ir::Node& node, size_t i, const Recipe& result) {
  if (node.op == nullptr || node.op->variadic || i >= node.op->operands.size()) return {};
  const op::OperandDef& operand = node.op->operands[i];
  if (operand.positive) return {.kind = Recipe::Kind::kVariance};
  switch (operand.role) {
    case op::OperandRole::kScale:
      return {.kind = Recipe::Kind::kScale};
    case op::OperandRole::kZeroPoint:
      return {.kind = Recipe::Kind::kZeroPoint};
    case op::OperandRole::kWeight:
    case op::OperandRole::kPerChannel:
      return {.kind = Recipe::Kind::kWeight};
    case op::OperandRole::kData:
      if (!is_passed_on(*node.op)) return {};
      return {.kind = result.kind, .amplitude = quantized_amplitude(draft, node, result.amplitude)};
    case op::OperandRole::kDataValue:
    case op::OperandRole::kTable:
    case op::OperandRole::kIndices:
      break;
  }
  return {};
}

template <typename T, typename Make>
ir::ConstantRef fill(const ir::TensorType& type, const Make& make) {
  std::vector<uint8_t> bytes(static_cast<size_t>(type.size_bytes()));
  for (size_t at = 0; at + sizeof(T) <= bytes.size(); at += sizeof(T)) {
    const T value = make();
    std::memcpy(&bytes[at], &value, sizeof value);
  }
  return std::make_shared<const ir::Constant>(type, std::move(bytes));
}

double real_element(Generator* generator, const Recipe& recipe) {
  switch (recipe.kind) {
    case Recipe::Kind::kScale:
      return 0.01 * (1.0 + 0.5 * generator->unit());
    case Recipe::Kind::kVariance:
      return 1.0 + 0.5 * generator->unit();
    case Recipe::Kind::kZeroPoint:
      return 0;
    case Recipe::Kind::kWeight:
    case Recipe::Kind::kData:
      break;
  }
  return recipe.amplitude * generator->unit();
}

}  // namespace

std::vector<Recipe> find_recipes(const Draft& draft) {
  std::vector<Recipe> recipes(draft.values.size());
  std::vector<bool> is_used(draft.values.size()), is_data(draft.values.size());
  // Users come after the nodes that they use, so going backwards a result's recipe is known before its
  // operands' recipes.
  for (size_t n = draft.nodes.size(); n-- > 0;) {
    const ir::Node& node = draft.nodes[n].node;
    const Recipe result = node.results.size() == 1 ? recipes[node.results[0].index] : Recipe();
    for (size_t i = 0; i < node.operands.size(); ++i) {
      const uint32_t operand = node.operands[i].index;
      const Recipe recipe = recipe_of_use(draft, node, i, result);
      if (recipe.kind == Recipe::Kind::kData) is_data[operand] = true;
      if (is_data[operand]) {
        recipes[operand] = Recipe();
      } else if (!is_used[operand]) {
        recipes[operand] = recipe;
      }
      is_used[operand] = true;
    }
  }
  return recipes;
}

ir::ConstantRef synthesize(const ir::TensorType& type, const Recipe& recipe, uint64_t seed,
                           std::string_view name) {
  Generator generator(seed, name);
  const bool zero = recipe.kind == Recipe::Kind::kZeroPoint;
  const auto integer = [&](int64_t low, int64_t high) { return zero ? 0 : generator.integer(low, high); };
  if (type.dtype == ir::kFloat32) {
    return fill<float>(type, [&] { return static_cast<float>(real_element(&generator, recipe)); });
  }
  if (type.dtype == ir::kFloat64) return fill<double>(type, [&] { return real_element(&generator, recipe); });
  if (type.dtype == ir::kInt32)
    return fill<int32_t>(type, [&] { return static_cast<int32_t>(integer(-1000, 1000)); });
  if (type.dtype == ir::kInt64) return fill<int64_t>(type, [&] { return integer(-1000, 1000); });
  if (type.dtype == ir::kBool)
    return fill<uint8_t>(type, [&] { return static_cast<uint8_t>(integer(0, 1)); });
  if (type.dtype == ir::kInt8)
    return fill<int8_t>(type, [&] { return static_cast<int8_t>(integer(-127, 127)); });
  return fill<uint8_t>(type, [&] { return static_cast<uint8_t>(integer(0, 255)); });  // bits of any dtype
}

namespace {

constexpr int64_t kMaxSynthesisedBytes = int64_t{512} << 20;

using Kind = DraftValue::Kind;

// "Tensor[(1, 3), int8]", or what is known of it.
std::string known_type(const DraftValue& value) {
  if (value.known()) return ir::to_string(value.type());
  if (value.dtype) return ir::to_string(*value.dtype) + " of unknown shape";
  return "unknown";
}

// The type that a comment states for a value; nothing if it states something else.
std::optional<ir::TensorType> comment_type(const DraftValue& value) {
  constexpr std::string_view kPrefix = "ty=";
  try {
    TokenStream tokens(value.comment.substr(kPrefix.size()), "comment");
    const ResultType result = parse_result_type(&tokens);
    const size_t index = result.types.size() == 1 ? 0 : value.result_index;
    if (index < result.types.size()) return result.types[index];
  } catch (const PackError&) {  // a comment may say anything
  }
  return std::nullopt;
}

void apply_options(DraftValue* value, Resolution* resolution) {
  const ParseOptions& options = resolution->options;
  resolution->inputs.push_back(value->name);
  const auto check = [&](const ir::TensorType& given, const char* by) {
    if (!value->known() || value->type() == given) return;
    resolution->fail_at(QPLAN_MODEL_INVALID, value->place,
                        cat("'%", value->name, "' is ", value->type(), ", but ", by, given));
  };
  if (const auto it = options.input_types.find(value->name); it != options.input_types.end()) {
    check(it->second, "its input type is ");
    value->set_type(it->second);
  }
  if (const auto it = options.bindings.find(value->name); it != options.bindings.end()) {
    check(it->second->type(), "what is bound to it is ");
    value->set_type(it->second->type());
    value->constant = it->second;
  }
}

bool is_open(const DraftValue& value) {
  return (value.kind == Kind::kParam && !value.known()) || value.kind == Kind::kPlaceholder;
}

void fill(DraftValue* value, const Recipe& recipe, Resolution* resolution) {
  const ir::TensorType type = value->type();
  if (!checked_add(resolution->synthesised_bytes, type.size_bytes(), &resolution->synthesised_bytes) ||
      resolution->synthesised_bytes > kMaxSynthesisedBytes) {
    resolution->fail_at(QPLAN_MODEL_INVALID, value->place,
                        cat("synthesised constants take more than ", kMaxSynthesisedBytes, " bytes"));
  }
  value->constant = synthesize(type, recipe, *resolution->options.synthesize_constants, value->name);
  resolution->synthesised.push_back(value->name);
}

void note_unbound(const Draft& draft, const std::vector<Recipe>& recipes, Resolution* resolution) {
  for (size_t i = 0; i < draft.values.size(); ++i) {
    const DraftValue& value = draft.values[i];
    if (value.kind != Kind::kParam || value.constant != nullptr || recipes[i].kind == Recipe::Kind::kData)
      continue;
    resolution->unbound.push_back(value.name);
  }
}

void refuse_open(const DraftValue& value, bool is_main, Resolution* resolution) {
  if (value.kind == Kind::kParam && !value.known()) {
    const std::string what = cat("the type of '%", value.name, "' is ", known_type(value),
                                 ": neither the text nor its uses state it; ");
    const std::string help =
        is_main ? cat("give it with --input-shape ", value.name,
                      "=EXTENTS:DTYPE, 1x3x224x224:float32, or data with --bind ", value.name, "=FILE")
                : cat("write it after the name, %", value.name, ": Tensor[(1, 3), float32]");
    resolution->fail_at(QPLAN_MODEL_INVALID, value.place, what + help);
  }
  if (value.kind != Kind::kPlaceholder || value.constant != nullptr) return;
  if (!value.known()) {
    resolution->fail_at(QPLAN_MODEL_INVALID, value.place,
                        cat("the type of ", value.name, " is ", known_type(value),
                            ": there is no section #[metadata] with its data, and neither a comment /* "
                            "ty=... */ after it nor its use states the type"));
  }
  resolution->fail_at(QPLAN_MODEL_INVALID, value.place,
                      cat("there is no section #[metadata] with the data of ", value.name, ", ", value.type(),
                          "; --synthesize-constants=SEED makes data up"));
}

}  // namespace

void resolve(Draft* draft, bool is_main, Resolution* resolution) {
  if (is_main) {
    for (DraftValue& value : draft->values) {
      if (value.kind == Kind::kParam) apply_options(&value, resolution);
    }
  }
  const bool synthesise = resolution->options.synthesize_constants.has_value();
  const std::vector<Recipe> recipes = find_recipes(*draft);
  if (!synthesise && is_main) note_unbound(*draft, recipes, resolution);
  if (!(synthesise && is_main) && std::ranges::none_of(draft->values, is_open)) return;
  for (DraftValue& value : draft->values) {
    if (value.comment.empty() || value.known()) continue;
    if (const auto type = comment_type(value)) value.set_type(*type);
  }
  const auto failure = deduce_types(draft, [&](ir::ValueId id) {
    DraftValue& value = (*draft)[id];
    const bool wanted =
        value.kind == Kind::kPlaceholder || (is_main && recipes[id.index].kind != Recipe::Kind::kData);
    if (synthesise && wanted) fill(&value, recipes[id.index], resolution);
  });
  const auto unknown = [](const DraftValue& value) { return is_open(value) && !value.known(); };
  if (failure && std::ranges::any_of(draft->values, unknown)) {
    resolution->fail_at(failure->status, failure->place, failure->text);
  }
  for (const DraftValue& value : draft->values) refuse_open(value, is_main, resolution);
}

std::vector<ir::ValueId> build_function(const Draft& draft, ir::Function* function, const FailAt& fail_at) {
  std::vector<ir::ValueId> built(draft.values.size());
  for (size_t i = 0; i < draft.values.size(); ++i) {
    const DraftValue& value = draft.values[i];
    if (value.constant != nullptr) {
      const bool named = value.kind == Kind::kParam;
      built[i] = function->add_constant(value.constant, named ? value.name : "");
    } else if (value.kind == Kind::kParam) {
      built[i] = function->add_param(value.name, value.type());
    }
  }
  for (const DraftNode& draft_node : draft.nodes) {
    ir::Node node = draft_node.node;
    for (ir::ValueId& operand : node.operands) operand = built[operand.index];
    node.results.clear();
    try {
      complete_relay_call(function, &node);
      ir::Node* added = nullptr;
      if (node.op != nullptr) {
        added = &function->add_node(*node.op, std::move(node.operands), std::move(node.attrs),
                                    std::move(node.name));
      } else {
        added = &function->add_call(std::move(node.callee), std::move(node.operands), draft_node.call_types,
                                    std::move(node.name));
        added->attrs = std::move(node.attrs);
      }
      for (size_t i = 0; i < draft_node.node.results.size(); ++i) {
        built[draft_node.node.results[i].index] = added->results.at(i);
      }
    } catch (const PackError& error) {
      fail_at(error.status(), draft_node.place, error.what());
    }
  }
  return built;
}

}  // namespace qplan::text
