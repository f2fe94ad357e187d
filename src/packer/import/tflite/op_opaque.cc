// Operators that are not TFLite's: those that the caller gives (qplan/custom_operator.h), and what is read of
// the file for them; and programs that Arm's compiler made for an NPU.
#include <flatbuffers/flexbuffers.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <optional>
#include <set>

#include "src/ethosu/isa/architecture.h"
#include "src/packer/error.h"
#include "src/packer/import/custom_operator.h"
#include "src/packer/import/import.h"
#include "src/packer/import/tflite/op_context.h"
#include "src/packer/ir/cat.h"
#include "src/packer/op/attributes.h"

namespace qplan::tfl {
namespace {

using op::CustomOption;

// Lists of a file may share bytes, and so become many times its size.
constexpr size_t kMaxNumbers = 1 << 16;

// The elements of a vector, typed or not, as they lie: the library's conversions to numbers also read texts,
// for which they need its code beside its headers.
template <typename Vector>
struct Elements : Vector {
  explicit Elements(const Vector& vector) : Vector(vector) {}

  // Null where the element is no number.
  std::optional<double> number(size_t i) const {
    const uint8_t* at = this->data_ + i * this->byte_width_;
    const size_t width = this->byte_width_;
    switch ((*this)[i].GetType()) {
      case flexbuffers::FBT_BOOL:
      case flexbuffers::FBT_UINT:
        return width == 1   ? read<uint8_t>(at)
               : width == 2 ? read<uint16_t>(at)
               : width == 4 ? read<uint32_t>(at)
                            : read<uint64_t>(at);
      case flexbuffers::FBT_INT:
        return width == 1   ? read<int8_t>(at)
               : width == 2 ? read<int16_t>(at)
               : width == 4 ? read<int32_t>(at)
                            : read<int64_t>(at);
      case flexbuffers::FBT_FLOAT:
        if (width == 4) return read<float>(at);
        if (width == 8) return read<double>(at);
        return std::nullopt;
      default:
        return std::nullopt;
    }
  }

 private:
  template <typename T>
  static double read(const uint8_t* at) {
    T value;
    std::memcpy(&value, at, sizeof(value));
    return static_cast<double>(value);
  }
};

template <typename Vector>
void append(const Vector& vector, CustomOption* option) {
  const Elements<Vector> elements(vector);
  for (size_t i = 0; i < elements.size() && i <= kMaxNumbers; ++i) {
    const std::optional<double> number = elements.number(i);
    if (!number)
      throw Unsupported{"option " + importer::in_quotes(option->name) +
                        ", which is a list of other things than numbers"};
    option->numbers.push_back(*number);
  }
}

CustomOption read_option(const char* name, const flexbuffers::Vector& values, size_t i) {
  CustomOption option = {.name = clean_name(name)};
  const flexbuffers::Reference value = values[i];
  if (const auto number = Elements<flexbuffers::Vector>(values).number(i)) {
    option.numbers = {*number};
  } else if (value.IsString()) {
    option.text = clean_name(value.AsString().str());
  } else if (value.IsFixedTypedVector()) {
    append(value.AsFixedTypedVector(), &option);
  } else if (value.IsTypedVector()) {
    append(value.AsTypedVector(), &option);
  } else if (value.IsVector() && !value.IsMap()) {
    append(value.AsVector(), &option);
  } else {
    throw Unsupported{"option " + importer::in_quotes(option.name) +
                      ", which is neither a number nor a text nor a list of numbers"};
  }
  for (const double number : option.numbers) {
    if (!std::isfinite(number))
      throw Unsupported{"option " + importer::in_quotes(option.name) + ", which is not finite"};
  }
  return option;
}

// A map of flexbuffers, as converters write it; other bytes become numbers of the option "custom_options".
std::vector<CustomOption> read_options(std::span<const uint8_t> of_file) {
  std::vector<CustomOption> options;
  if (of_file.empty()) return options;
  // Flexbuffers are read as they lie, and a file need not align them.
  std::vector<uint64_t> aligned((of_file.size() + 7) / 8);
  std::memcpy(aligned.data(), of_file.data(), of_file.size());
  const std::span<const uint8_t> bytes(reinterpret_cast<const uint8_t*>(aligned.data()), of_file.size());
  std::vector<uint8_t> reuse;
  const bool is_map = bytes.size() >= 3 && flexbuffers::VerifyBuffer(bytes.data(), bytes.size(), &reuse) &&
                      flexbuffers::GetRoot(bytes.data(), bytes.size()).IsMap();
  if (!is_map) {
    if (bytes.size() > kMaxNumbers) throw Unsupported{cat(bytes.size(), " bytes of options")};
    options.push_back({.name = "custom_options", .numbers = {bytes.begin(), bytes.end()}});
    return options;
  }
  const flexbuffers::Map map = flexbuffers::GetRoot(bytes.data(), bytes.size()).AsMap();
  if (map.size() > op::kMaxCustomOptions) throw Unsupported{cat(map.size(), " options")};
  size_t count = 0;
  for (size_t i = 0; i < map.size(); ++i) {
    options.push_back(read_option(map.Keys()[i].AsKey(), map.Values(), i));
    count += options.back().numbers.size();
    if (count > kMaxNumbers) throw Unsupported{cat("more than ", kMaxNumbers, " numbers as options")};
  }
  return options;
}

void add_quantization(const TensorInfo& tensor, op::CustomAttributes* custom) {
  const bool is_quantized =
      tensor.num_scales() == 1 && tensor.dtype && !tensor.dtype->is_float() && tensor.dtype->bits <= 32;
  const QuantParams params = is_quantized ? checked_quantization(tensor) : QuantParams{0, 0};
  custom->scales.push_back(params.scale);
  custom->zero_points.push_back(params.zero_point);
}

}  // namespace

void import_custom(OpContext& op, const qplan_custom_operator& custom_operator) {
  op::CustomAttributes custom;
  custom.name = custom_operator.name;
  custom.options = read_options(op.custom_options());
  if (op.num_inputs() + op.num_outputs() > QPLAN_CUSTOM_MAX_OPERANDS)
    throw Unsupported{cat(op.num_inputs() + op.num_outputs(), " inputs and outputs, more than ",
                          uint32_t{QPLAN_CUSTOM_MAX_OPERANDS})};
  if (op.num_outputs() == 0) throw Unsupported{"no outputs"};
  std::vector<ir::ValueId> operands;
  for (size_t i = 0; i < op.num_inputs(); ++i) {
    if (op.optional_input(i) == nullptr) continue;  // left out by the model
    operands.push_back(op.value(op.input(i)));
    add_quantization(op.input(i), &custom);
  }
  if (operands.empty()) throw Unsupported{"no inputs"};
  for (size_t i = 0; i < op.num_outputs(); ++i) {
    const TensorInfo& output = op.output(i);
    if (!output.dtype) throw Unsupported{type_name(output.file_type) + " output"};
    if (custom_operator.infer == nullptr && (!output.has_shape || output.is_empty))
      throw Unsupported{"outputs without shapes, which the operator does not infer"};
    custom.outputs.push_back({*output.dtype, output.shape});
    add_quantization(output, &custom);
  }
  importer::ask_custom(custom_operator, op.graph().function(), operands, &custom);
  const std::string key = "custom " + op.name();
  if (custom.state_bytes > 0) {
    TensorInfo state;
    state.name = op.name() + "_state";
    state.dtype = ir::kUint8;
    state.shape = {static_cast<int64_t>(custom.state_bytes)};
    state.has_shape = true;
    op.graph().will_be_assigned(key);
    operands.push_back(op.graph().read_variable(key, state));
  }
  const std::vector<ir::ValueId> results = op.emit_many("custom", operands, op::attrs_of(custom));
  for (size_t i = 0; i < op.num_outputs(); ++i) op.graph().define(op.output(i), results[i]);
  if (custom.state_bytes > 0) op.graph().assign_variable(key, results.back());
}

// `ethos-u`: a custom operator that holds a command stream which Arm's compiler (Vela) made.

namespace {

// Operands before the network's own.
enum Operand : size_t { kPayload = 0, kConstants = 1, kScratch = 2, kFastScratch = 3, kFirstInput = 4 };

constexpr char kAllocation[] = "OfflineMemoryAllocation";
constexpr uint8_t kOptionsEthosu = 1;  // what the operator's options say that it is

// Where a tensor is in the arena, which the file's metadata says: words, of which the first three are a
// version, the number of subgraphs and the number of tensors.
class Allocation {
 public:
  explicit Allocation(const ModelFile& file) : words_(file.metadata(kAllocation)) {
    if (words_.empty())
      throw Unsupported{cat("no metadata '", kAllocation,
                            "', which says where its inputs and outputs are in the arena; compile the model "
                            "again with Vela, which writes it")};
    constexpr size_t kHeaderWords = 3;
    if (words_.size() % 4 != 0 || words_.size() < 4 * kHeaderWords)
      invalid(cat("metadata '", kAllocation, "' has ", words_.size(),
                  " bytes, expected 4 bytes for each of three numbers and each tensor"));
    constexpr int32_t kMaxSubgraphs = 1;  // 0: writers that mean the number of the subgraph
    if (word(0) == 0 && (word(1) < 0 || word(1) > kMaxSubgraphs))
      throw Unsupported{
          cat("metadata '", kAllocation, "' for ", word(1), " subgraphs, expected ", kMaxSubgraphs)};
    if (word(0) != 0) throw Unsupported{cat("version ", word(0), " of metadata '", kAllocation, "'")};
    const size_t count = words_.size() / 4 - kHeaderWords;
    if (word(2) < 0 || static_cast<size_t>(word(2)) > count)
      invalid(cat("metadata '", kAllocation, "' has the places of ", count, " tensors, expected ", word(2)));
    num_tensors_ = static_cast<size_t>(word(2));
    words_ = words_.subspan(4 * kHeaderWords);
  }

  uint64_t offset_of(const TensorInfo& tensor) const {
    const auto index = static_cast<size_t>(tensor.index);
    const int32_t offset = index < num_tensors_ ? word(index) : -1;
    if (offset < 0)
      invalid(cat("metadata '", kAllocation, "' does not say where tensor ", tensor.index, " ",
                  importer::in_quotes(tensor.name), " is in the arena"));
    return static_cast<uint64_t>(offset);
  }

 private:
  int32_t word(size_t i) const { return static_cast<int32_t>(ethosu::load_word(words_.data() + 4 * i)); }

  std::span<const uint8_t> words_;
  size_t num_tensors_ = 0;
};

uint64_t bytes_of(const TensorInfo& tensor) {
  if (!tensor.dtype)
    throw Unsupported{
        cat("tensor ", importer::in_quotes(tensor.name), " of type ", type_name(tensor.file_type))};
  if (tensor.is_empty) return 0;
  return static_cast<uint64_t>(ir::TensorType{*tensor.dtype, tensor.shape}.size_bytes());
}

std::string hex(uint32_t word) {
  char text[2 + 8 + 1];
  std::snprintf(text, sizeof(text), "0x%08x", word);
  return text;
}

// "1.0.6": what the word that names an architecture has in its upper half.
std::string version_of(uint32_t architecture) {
  return cat(architecture >> 28, ".", architecture >> 20 & 0xff, ".", architecture >> 16 & 0xf);
}

// The configuration that a command stream was made for.
std::string device_of(const TensorInfo& tensor) {
  if (!tensor.is_constant()) invalid("its command stream (input 0) is not a constant");
  ethosu::Payload payload;
  const ethosu::Problem problem = ethosu::read_payload(tensor.data.data(), tensor.data.size(), &payload);
  if (payload.has_config && payload.stream != nullptr &&
      !ethosu::is_known_architecture(payload.architecture)) {
    throw Unsupported{cat("a command stream for architecture ", version_of(payload.architecture), " (",
                          hex(payload.architecture), "), expected ", version_of(ethosu::kArchitecture), " (",
                          hex(ethosu::kArchitecture), ") of Ethos-U55 and U65 or an earlier one")};
  }
  if (problem) {
    std::string text = cat(problem.text, ", found ", problem.found, ", expected ", problem.limit);
    if (problem.limit == ethosu::kPayloadMagic)
      text = cat("it begins with ", hex(static_cast<uint32_t>(problem.found)), ", expected 'COP1' (",
                 hex(ethosu::kPayloadMagic), ")");
    else if (problem.found == problem.limit)
      text = problem.text;
    invalid(cat("its command stream (input 0, ", tensor.data.size(), " bytes) is damaged: ", text,
                "; compile the model again with Vela"));
  }
  const ethosu::Config* const config = ethosu::find_config_word(payload.config_word);
  if (config == nullptr)
    throw Unsupported{cat("a command stream for a device with configuration word ", hex(payload.config_word),
                          ", which is no Ethos-U55 or U65")};
  return config->name;
}

ir::ValueId bytes_as_constant(OpContext& op, const TensorInfo& tensor) {
  op.charge(tensor.data.size());
  return op.constant(std::make_shared<const ir::Constant>(
                         ir::TensorType{ir::kUint8, {static_cast<int64_t>(tensor.data.size())}},
                         std::vector<uint8_t>(tensor.data.begin(), tensor.data.end())),
                     tensor.name);
}

}  // namespace

void import_ethosu(OpContext& op) {
  const std::span<const uint8_t> options = op.custom_options();
  if (!options.empty() && options[0] != kOptionsEthosu)
    throw Unsupported{cat("options of kind ", int{options[0]}, ", expected ", int{kOptionsEthosu})};
  if (op.num_inputs() <= kFirstInput)
    invalid(cat("there are ", op.num_inputs(),
                " inputs, expected a command stream, constants, scratch, fast scratch, and the network's"));
  if (op.num_outputs() == 0) invalid("there are no outputs");

  op::ProgramAttributes program;
  program.format = "ethos-u";
  program.device = device_of(op.input(kPayload));
  program.has_constants = op.input(kConstants).is_constant();
  program.memory_bytes = bytes_of(op.input(kScratch));
  program.fast_memory_bytes = bytes_of(op.input(kFastScratch));
  const Allocation allocation(op.graph().file());
  if (const uint64_t begin = allocation.offset_of(op.input(kScratch)); begin != 0)
    throw Unsupported{cat("scratch memory (input ", int{kScratch}, ") from byte ", begin,
                          " of the arena on, expected 0; compile the model again with Vela")};
  const auto place = [&](const TensorInfo& tensor) {
    const uint64_t offset = allocation.offset_of(tensor);
    program.memory_bytes = std::max(program.memory_bytes, offset + bytes_of(tensor));
    return offset;
  };
  std::vector<ir::ValueId> operands = {bytes_as_constant(op, op.input(kPayload))};
  if (program.has_constants) operands.push_back(bytes_as_constant(op, op.input(kConstants)));
  std::set<int32_t> known;
  for (size_t i = kFirstInput; i < op.num_inputs(); ++i) {
    if (!known.insert(op.input(i).index).second) continue;
    operands.push_back(op.value(op.input(i)));
    program.input_offsets.push_back(place(op.input(i)));
  }
  for (size_t o = 0; o < op.num_outputs(); ++o) {
    const TensorInfo& output = op.output(o);
    program.output_offsets.push_back(place(output));
    program.outputs.push_back({*output.dtype, output.shape});
  }
  const std::vector<ir::ValueId> results =
      op.emit_many(op::kProgramOperator, std::move(operands), op::attrs_of(program));
  for (size_t o = 0; o < op.num_outputs(); ++o) op.define(op.output(o), results[o]);
}

}  // namespace qplan::tfl
