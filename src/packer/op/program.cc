#include "src/packer/op/program.h"

#include <algorithm>

#include "format/container.h"
#include "src/packer/op/custom.h"
#include "src/packer/op/infer.h"

namespace qplan::op {
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
