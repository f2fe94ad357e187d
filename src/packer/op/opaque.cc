#include <algorithm>
#include <cmath>

#include "format/container.h"
#include "qplan/custom_operator.h"
#include "src/packer/ir/json.h"
#include "src/packer/op/attributes.h"
#include "src/packer/op/infer.h"

namespace qplan::op {
namespace {

using ir::Json;

Json parsed(const ir::Node& node, std::string_view name) {
  const std::string& text = attr_string(node, name);
  std::string reason;
  Json json = ir::parse_json(text, &reason);
  if (json.is_discarded()) invalid(cat("attribute '", name, "' ", reason));
  return json;
}

// {"max_detections": [10], "labels": "a"}
std::vector<CustomOption> read_options(const ir::Node& node) {
  const Json json = parsed(node, "options");
  if (!json.is_object() || json.size() > kMaxCustomOptions)
    invalid(cat("attribute 'options' is not a JSON object of at most ", kMaxCustomOptions, " options"));
  std::vector<CustomOption> options;
  for (const auto& [name, value] : json.items()) {
    CustomOption option = {.name = name};
    if (value.is_string()) {
      option.text = value.get<std::string>();
    } else {
      if (!value.is_array()) invalid(cat("option '", name, "' is neither a text nor a list of numbers"));
      for (const Json& number : value) {
        if (!number.is_number() || !std::isfinite(number.get<double>()))
          invalid(cat("option '", name, "' has an entry that is no finite number"));
        option.numbers.push_back(number.get<double>());
      }
    }
    options.push_back(std::move(option));
  }
  return options;
}

std::vector<float> read_scales(const ir::Node& node) {
  const Json json = parsed(node, "scales");
  std::vector<float> scales;
  if (!json.is_array()) invalid("attribute 'scales' is not a JSON list");
  for (const Json& number : json) {
    const double scale = number.is_number() ? number.get<double>() : -1;
    if (!(scale >= 0 && scale <= 0x1p100)) invalid("attribute 'scales' has an entry that is no scale");
    scales.push_back(static_cast<float>(scale));
  }
  return scales;
}

uint64_t bytes_attr(const ir::Node& node, std::string_view name) {
  const int64_t bytes = attr_int(node, name);
  if (bytes < 0 || bytes > INT32_MAX)
    invalid(cat("attribute '", name, "' is ", bytes, ", expected 0 to 2^31 - 1"));
  return static_cast<uint64_t>(bytes);
}

std::vector<ir::TensorType> infer(const InferInput& input) {
  const CustomAttributes custom = custom_of(input.node);
  const size_t states = custom.state_bytes > 0 ? 1 : 0, num_operands = input.node.operands.size();
  if (num_operands < states) invalid("there is no operand for its state");
  const size_t count = num_operands - states + custom.outputs.size();
  if (custom.name.empty()) invalid("attribute 'operator' is empty");
  if (custom.outputs.empty()) invalid("it has no results");
  if (count > QPLAN_CUSTOM_MAX_OPERANDS)
    invalid(cat(count, " operands and results, expected at most ", uint32_t{QPLAN_CUSTOM_MAX_OPERANDS}));
  if (custom.scales.size() != count || custom.zero_points.size() != count)
    invalid(cat(custom.scales.size(), " scales and ", custom.zero_points.size(), " zero points for ", count,
                " operands and results"));
  for (size_t i = 0; i < num_operands; ++i) {
    check_dtype(input, i, kDeclaredDTypes);
    if (input.type(i).shape.size() > format::kMaxRank)
      unsupported(cat("operand ", i, " has more than 6 axes"));
  }
  std::vector<ir::TensorType> results = custom.outputs;
  for (const ir::TensorType& type : results) {
    if (type.shape.size() > format::kMaxRank) unsupported("a result has more than 6 axes");
  }
  if (states == 0) return results;
  const ir::TensorType state = {ir::kUint8, {static_cast<int64_t>(custom.state_bytes)}};
  if (input.type(num_operands - 1) != state)
    invalid(cat("the state is ", input.type(num_operands - 1), ", expected ", state));
  results.push_back(state);
  return results;
}

}  // namespace

// "int8,float32" and [[1, 4], [1]].
std::vector<ir::TensorType> declared_results(const ir::Node& node) {
  const std::vector<ir::Ints>& shapes = attr_int_lists(node, "shapes");
  const std::string& names = attr_string(node, "dtypes");
  std::vector<ir::TensorType> types;
  size_t begin = 0;
  for (const ir::Ints& shape : shapes) {
    const size_t end = std::min(names.find(',', begin), names.size());
    const auto dtype =
        begin > names.size() ? std::nullopt : ir::dtype_from_string(names.substr(begin, end - begin));
    if (!dtype || std::find(kDeclaredDTypes.begin(), kDeclaredDTypes.end(), *dtype) == kDeclaredDTypes.end())
      invalid(cat("attribute 'dtypes' does not name a dtype of result ", types.size(),
                  ": int8, uint8, int16, int32, int64 or float32"));
    types.push_back({*dtype, shape});
    const std::string error = ir::type_error(types.back());
    if (!error.empty()) invalid(error);
    begin = end + 1;
  }
  if (begin <= names.size()) invalid("attribute 'dtypes' has more entries than 'shapes'");
  return types;
}

ir::Attrs attrs_of(const CustomAttributes& custom) {
  Json options = Json::object(), scales = Json::array();
  for (const CustomOption& option : custom.options) {
    if (option.text) {
      options[option.name] = *option.text;
    } else {
      options[option.name] = option.numbers;
    }
  }
  for (const float scale : custom.scales) scales.push_back(static_cast<double>(scale));
  std::vector<ir::Ints> shapes;
  std::string dtypes;
  for (const ir::TensorType& type : custom.outputs) {
    shapes.push_back(type.shape);
    dtypes += (dtypes.empty() ? "" : ",") + ir::to_string(type.dtype);
  }
  return {{"operator", custom.name},
          {"options", ir::json_text(options)},
          {"shapes", shapes},
          {"dtypes", dtypes},
          {"scales", ir::json_text(scales)},
          {"zero_points", ir::Ints(custom.zero_points.begin(), custom.zero_points.end())},
          {"scratch_bytes", static_cast<int64_t>(custom.scratch_bytes)},
          {"state_bytes", static_cast<int64_t>(custom.state_bytes)}};
}

CustomAttributes custom_of(const ir::Node& node) {
  CustomAttributes custom;
  custom.name = attr_string(node, "operator");
  custom.options = read_options(node);
  custom.outputs = declared_results(node);
  custom.scales = read_scales(node);
  for (const int64_t zero_point : attr_ints(node, "zero_points")) {
    if (zero_point < INT32_MIN || zero_point > INT32_MAX) invalid("a zero point does not fit 32 bits");
    custom.zero_points.push_back(static_cast<int32_t>(zero_point));
  }
  custom.scratch_bytes = bytes_attr(node, "scratch_bytes");
  custom.state_bytes = bytes_attr(node, "state_bytes");
  return custom;
}

OpDef list::custom() {
  return {.name = "custom",
          .operands = {{"data"}},
          .variadic = true,
          .attrs = {{"operator", AttrKind::kString},
                    {"options", AttrKind::kString, "{}"},
                    {"shapes", AttrKind::kIntLists},
                    {"dtypes", AttrKind::kString},
                    {"scales", AttrKind::kString},
                    {"zero_points", AttrKind::kInts},
                    {"scratch_bytes", AttrKind::kInt, 0},
                    {"state_bytes", AttrKind::kInt, 0}},
          .infer = infer,
          .num_results = [](const ir::Node& node) {
            const auto* shapes = node.attrs.find("shapes");
            const auto* lists = shapes == nullptr ? nullptr : std::get_if<std::vector<ir::Ints>>(shapes);
            const auto* states = node.attrs.find("state_bytes");
            const auto* bytes = states == nullptr ? nullptr : std::get_if<int64_t>(states);
            return (lists == nullptr ? 1 : lists->size()) + (bytes != nullptr && *bytes > 0 ? 1 : 0);
          }};
}

namespace {

constexpr int64_t kMaxMemory = int64_t{1} << 40;

uint64_t memory_attr(const ir::Node& node, std::string_view name) {
  const int64_t bytes = attr_int(node, name);
  if (bytes < 0 || bytes > kMaxMemory)
    invalid(cat("attribute '", name, "' is ", bytes, ", expected 0 to 2^40"));
  return static_cast<uint64_t>(bytes);
}

// Messages quote it.
void check_word(std::string_view name, const std::string& word) {
  const auto is_known = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'; };
  if (word.empty() || !std::ranges::all_of(word, is_known))
    invalid(cat("attribute '", name, "' has ", word.size(),
                " characters, expected one or more of a to z, 0 to 9 and '-'"));
}

std::vector<uint64_t> offsets_attr(const ir::Node& node, std::string_view name) {
  std::vector<uint64_t> offsets;
  for (const int64_t offset : attr_ints(node, name)) {
    if (offset < 0) invalid(cat("attribute '", name, "' has the negative offset ", offset));
    offsets.push_back(static_cast<uint64_t>(offset));
  }
  return offsets;
}

void check_place(const ir::TensorType& type, uint64_t offset, uint64_t memory_bytes, const char* what,
                 size_t index) {
  const auto bytes = static_cast<uint64_t>(type.size_bytes());
  if (offset <= memory_bytes && bytes <= memory_bytes - offset) return;
  invalid(cat(what, " ", index, " has ", bytes, " bytes from ", offset, " on, the program's memory has ",
              memory_bytes));
}

// Where inputs share bytes, the one that is copied last decides; of outputs one is made of the other's bytes.
class Places {
 public:
  explicit Places(const char* what) : what_(what) {}
  void add(const ir::TensorType& type, uint64_t offset) {
    const auto bytes = static_cast<uint64_t>(type.size_bytes());
    places_.push_back({offset, offset + bytes, places_.size()});
  }
  void check_apart() {
    std::ranges::sort(places_, {}, &Place::begin);
    for (size_t i = 1; i < places_.size(); ++i) {
      const Place &a = places_[i - 1], &b = places_[i];
      if (b.begin >= a.end) continue;
      invalid(cat(what_, "s ", std::min(a.index, b.index), " and ", std::max(a.index, b.index),
                  " share byte ", b.begin, " of the program's memory, expected a place for each"));
    }
  }

 private:
  struct Place {
    uint64_t begin, end;
    size_t index;
  };
  const char* const what_;
  std::vector<Place> places_;
};

std::vector<ir::TensorType> infer_program(const InferInput& input) {
  const ProgramAttributes program = program_of(input.node);
  const size_t first = first_input(program), num_operands = input.node.operands.size();
  if (program.outputs.empty()) invalid("it has no results");
  if (num_operands < first || num_operands - first != program.input_offsets.size())
    invalid(cat("it has ", num_operands, " operands, expected ", first + program.input_offsets.size()));
  if (program.outputs.size() != program.output_offsets.size())
    invalid(cat("attribute 'output_offsets' has ", program.output_offsets.size(), " entries for ",
                program.outputs.size(), " results"));
  Places inputs("input"), outputs("result");
  for (size_t i = 0; i < first; ++i) {
    check_dtype(input, i, {ir::kUint8});
    check_rank(input, i, 1);
    (void)constant_operand(input, i);
  }
  for (size_t i = first; i < num_operands; ++i) {
    check_dtype(input, i, kDeclaredDTypes);
    if (input.type(i).shape.size() > format::kMaxRank)
      unsupported(cat("operand ", i, " has more than 6 axes"));
    check_place(input.type(i), program.input_offsets[i - first], program.memory_bytes, "input", i - first);
    inputs.add(input.type(i), program.input_offsets[i - first]);
  }
  for (size_t i = 0; i < program.outputs.size(); ++i) {
    if (program.outputs[i].shape.size() > format::kMaxRank) unsupported("a result has more than 6 axes");
    check_place(program.outputs[i], program.output_offsets[i], program.memory_bytes, "result", i);
    outputs.add(program.outputs[i], program.output_offsets[i]);
  }
  inputs.check_apart();
  outputs.check_apart();
  return program.outputs;
}

ir::Ints ints_of(const std::vector<uint64_t>& values) { return {values.begin(), values.end()}; }

}  // namespace

ir::Attrs attrs_of(const ProgramAttributes& program) {
  std::vector<ir::Ints> shapes;
  std::string dtypes;
  for (const ir::TensorType& type : program.outputs) {
    shapes.push_back(type.shape);
    dtypes += (dtypes.empty() ? "" : ",") + ir::to_string(type.dtype);
  }
  return {{"format", program.format},
          {"device", program.device},
          {"shapes", shapes},
          {"dtypes", dtypes},
          {"has_constants", program.has_constants},
          {"memory_bytes", static_cast<int64_t>(program.memory_bytes)},
          {"fast_memory_bytes", static_cast<int64_t>(program.fast_memory_bytes)},
          {"input_offsets", ints_of(program.input_offsets)},
          {"output_offsets", ints_of(program.output_offsets)}};
}

ProgramAttributes program_of(const ir::Node& node) {
  ProgramAttributes program;
  program.format = attr_string(node, "format");
  program.device = attr_string(node, "device");
  check_word("format", program.format);
  check_word("device", program.device);
  program.outputs = declared_results(node);
  program.has_constants = attr_bool(node, "has_constants");
  program.memory_bytes = memory_attr(node, "memory_bytes");
  program.fast_memory_bytes = memory_attr(node, "fast_memory_bytes");
  program.input_offsets = offsets_attr(node, "input_offsets");
  program.output_offsets = offsets_attr(node, "output_offsets");
  return program;
}

OpDef list::npu_program() {
  return {.name = std::string(kProgramOperator),
          .operands = {{"program"}},
          .variadic = true,
          .attrs = {{"format", AttrKind::kString},
                    {"device", AttrKind::kString},
                    {"shapes", AttrKind::kIntLists},
                    {"dtypes", AttrKind::kString},
                    {"has_constants", AttrKind::kBool, false},
                    {"memory_bytes", AttrKind::kInt},
                    {"fast_memory_bytes", AttrKind::kInt, 0},
                    {"input_offsets", AttrKind::kInts},
                    {"output_offsets", AttrKind::kInts}},
          .infer = infer_program,
          .num_results = [](const ir::Node& node) {
            const auto* shapes = node.attrs.find("shapes");
            const auto* lists = shapes == nullptr ? nullptr : std::get_if<std::vector<ir::Ints>>(shapes);
            return lists == nullptr ? size_t{1} : lists->size();
          }};
}

}  // namespace qplan::op
