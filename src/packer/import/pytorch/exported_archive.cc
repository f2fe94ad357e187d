#include <algorithm>
#include <limits>

#include "src/packer/error.h"
#include "src/packer/import/import.h"
#include "src/packer/import/pytorch/archive.h"
#include "src/packer/import/pytorch/exported_program.h"
#include "src/packer/ir/cat.h"

namespace qplan::pt {
namespace {

using importer::in_quotes;
using importer::invalid;
using importer::Unsupported;

// PyTorch 2.6 writes infinities and NaN as Python does, which is no JSON; later versions write strings.
std::string with_quoted_numbers(std::string_view text) {
  std::string quoted;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (in_string && text[i] == '\\' && i + 1 < text.size()) {
      quoted += text[i++];  // what is escaped ends nothing
    } else if (text[i] == '"') {
      in_string = !in_string;
    }
    std::string_view found;
    for (const std::string_view word : {"-Infinity", "Infinity", "NaN"}) {
      if (!in_string && found.empty() && text.substr(i).starts_with(word)) found = word;
    }
    quoted += found.empty() ? std::string(1, text[i]) : cat('"', found, '"');
    i += found.empty() ? 0 : found.size() - 1;
  }
  return quoted;
}

[[noreturn]] void wrong_kind(const char* name, const char* expected) {
  invalid("member " + in_quotes(name) + " of the program is not " + expected);
}

}  // namespace

ir::Json parse_entry(std::span<const uint8_t> bytes, const std::string& entry) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (text.size() > kMaxJsonBytes)
    invalid(cat(in_quotes(entry), " has ", text.size(), " bytes, at most ", kMaxJsonBytes, " are read"));
  // Each value but the first comes after one of these; some are in strings.
  const auto values = std::ranges::count_if(text, [](char c) { return c == ',' || c == '[' || c == '{'; });
  if (static_cast<size_t>(values) > kMaxJsonValues)
    invalid(cat(in_quotes(entry), " has ", values, " commas and brackets, at most ", kMaxJsonValues,
                " are read: it is no network"));
  std::string reason;
  const bool is_python =
      text.find("Infinity") != std::string_view::npos || text.find("NaN") != std::string_view::npos;
  ir::Json json =
      ir::parse_sorted_json(is_python ? with_quoted_numbers(text) : text, kMaxJsonMembers, &reason);
  if (json.is_discarded()) invalid(in_quotes(entry) + " " + reason);
  return json;
}

const ir::Json& member(const ir::Json& object, const char* name) {
  if (!object.is_object()) invalid("the program has something else than an object with " + in_quotes(name));
  const auto it = object.find(name);
  if (it == object.end()) invalid("the program lacks member " + in_quotes(name));
  return *it;
}

const ir::Json& object_member(const ir::Json& object, const char* name) {
  const ir::Json& value = member(object, name);
  if (!value.is_object()) wrong_kind(name, "an object");
  return value;
}

const ir::Json& list_member(const ir::Json& object, const char* name) {
  const ir::Json& value = member(object, name);
  if (!value.is_array()) wrong_kind(name, "a list");
  return value;
}

std::string text_member(const ir::Json& object, const char* name) {
  const ir::Json& value = member(object, name);
  if (!value.is_string()) wrong_kind(name, "a string");
  return as_text(value);
}

int64_t integer_member(const ir::Json& object, const char* name) {
  const ir::Json& value = member(object, name);
  if (!value.is_number_integer()) wrong_kind(name, "an integer");
  return as_integer(value);
}

bool boolean_member(const ir::Json& object, const char* name) {
  const ir::Json& value = member(object, name);
  if (!value.is_boolean()) wrong_kind(name, "a boolean");
  return value.get<bool>();
}

UnionMember union_member(const ir::Json& object) {
  if (!object.is_object() || object.size() != 1)
    invalid("the program has a union that is not an object of one member");
  return {object.begin().key(), object.begin().value()};
}

int64_t as_integer(const ir::Json& value) {
  if (value.is_number_unsigned()) {
    const auto number = value.get<uint64_t>();
    if (number > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
      invalid(cat(number, " does not fit an integer"));
    return static_cast<int64_t>(number);
  }
  if (!value.is_number_integer()) invalid("the program has something else than an integer");
  return value.get<int64_t>();
}

std::string as_text(const ir::Json& value) {
  if (!value.is_string()) invalid("the program has something else than a string");
  const auto& text = value.get_ref<const std::string&>();
  if (text.size() > kMaxNameBytes) invalid(cat("a name of the program has ", text.size(), " bytes"));
  return text;
}

double as_double(const ir::Json& value) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (value.is_number()) return value.get<double>();
  if (value == "Infinity") return kInfinity;
  if (value == "-Infinity") return -kInfinity;
  invalid("the program has something else than a number");
}

ScalarType exported_scalar_type(int64_t number) {
  constexpr ScalarType kNone = static_cast<ScalarType>(UINT8_MAX);
  constexpr ScalarType kTypes[] = {kNone,
                                   ScalarType::kUint8,
                                   ScalarType::kInt8,
                                   ScalarType::kInt16,
                                   ScalarType::kInt32,
                                   ScalarType::kInt64,
                                   ScalarType::kFloat16,
                                   ScalarType::kFloat32,
                                   ScalarType::kFloat64,
                                   kNone,
                                   kNone,
                                   kNone,
                                   ScalarType::kBool};
  constexpr int64_t kBfloat16 = 13;
  if (number >= 0 && number < std::ssize(kTypes) && kTypes[number] != kNone) return kTypes[number];
  if (number == kBfloat16) throw Unsupported{"bfloat16 elements"};
  throw Unsupported{cat("elements of scalar type ", number)};
}

// The program and the tensors of the archive.
namespace {

// The schema that is documented in PyTorch's sources from 2.6 on; its minor versions only add.
constexpr int64_t kSchemaVersion = 8;
constexpr char kArchiveVersion[] = "0";
constexpr char kProgram[] = "serialized_exported_program.json";
// Between the entry of a zip in the zip and the entry in that.
constexpr char kInner = '\n';

[[noreturn]] void unsupported(const std::string& text) { throw PackError(QPLAN_MODEL_UNSUPPORTED, text); }

std::string trimmed(std::span<const uint8_t> bytes) {
  constexpr size_t kMost = 32;
  std::string text(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(std::min(bytes.size(), kMost)));
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  return text;
}

// "model" of the archive's only models/model.json.
std::string only_model(const importer::ZipArchive& zip, const std::string& folder) {
  std::vector<std::string> names = zip.names_under(folder + "models/");
  std::erase_if(names, [](const std::string& name) { return name.ends_with('/'); });
  if (names.empty()) {
    if (!zip.names_under(folder + "data/aotinductor/").empty())
      unsupported(
          "the archive holds code that AOTInductor compiled, not a program; save the exported program: "
          "torch.export.save(program, 'model.pt2')");
    invalid("the archive has no models/*.json: it holds no exported program");
  }
  if (names.size() > 1) {
    std::string list;
    constexpr size_t kShown = 8;
    for (size_t i = 0; i < names.size() && i < kShown; ++i)
      list += (i == 0 ? "" : ", ") + in_quotes(names[i].substr(folder.size()));
    unsupported(cat("the archive holds ", names.size(), " programs (", list,
                    names.size() > kShown ? ", ..." : "",
                    "); save the one that is meant alone: torch.export.save(program, 'model.pt2')"));
  }
  const std::string name = names[0].substr((folder + "models/").size());
  if (!name.ends_with(".json")) invalid("the archive has no models/*.json, but " + in_quotes(names[0]));
  return name.substr(0, name.size() - 5);
}

std::vector<int64_t> extents(const ir::Json& list) {
  std::vector<int64_t> numbers;
  for (const ir::Json& item : list) {
    const UnionMember extent = union_member(item);
    if (extent.kind != "as_int") invalid("a tensor of the weights has an open extent");
    numbers.push_back(as_integer(extent.value));
  }
  return numbers;
}

size_t element_bytes(ScalarType type) {
  const size_t bits = dtype_of(type).bits;
  return bits <= 8 ? 1 : bits / 8;
}

}  // namespace

bool is_exported(const importer::ZipArchive& zip) {
  const std::string prefix = prefix_of(zip);
  return zip.has(prefix + kProgram) || zip.has(prefix + "archive_format") ||
         !zip.names_under(prefix + "models/").empty();
}

ExportedArchive::ExportedArchive(importer::ZipArchive zip)
    : zip_(std::move(zip)),
      prefix_(prefix_of(zip_)),
      tensors_([this](const std::string& key) { return storage(key); }, zip_.size_bytes(), values_) {
  expect_little_endian(zip_, prefix_);
  if (zip_.has(prefix_ + kProgram)) {
    read_program(prefix_ + kProgram);
    for (const char* name : {"serialized_state_dict", "serialized_constants"}) {
      if (!zip_.has(prefix_ + name + ".pt")) invalid(cat("the archive has no ", name, ".pt"));
    }
    weights_ = read_dict(prefix_ + "serialized_state_dict.pt");
    constants_ = read_dict(prefix_ + "serialized_constants.pt");
    return;
  }
  if (zip_.has(prefix_ + "archive_format")) {
    if (const std::string format = trimmed(zip_.read(prefix_ + "archive_format")); format != "pt2")
      unsupported("the archive has format " + in_quotes(format) + ", expected 'pt2'");
  }
  if (zip_.has(prefix_ + "archive_version")) {
    const std::string version = trimmed(zip_.read(prefix_ + "archive_version"));
    if (version != kArchiveVersion)
      unsupported("the archive has version " + in_quotes(version) + ", expected " +
                  in_quotes(kArchiveVersion));
  }
  const std::string model = only_model(zip_, prefix_);
  read_program(prefix_ + "models/" + model + ".json");
  const auto read = [&](const std::string& folder, const std::string& what) {
    if (const std::string saved = folder + model + ".pt"; zip_.has(saved)) return read_dict(saved);
    const std::string config = folder + model + "_" + what + "_config.json";
    if (zip_.has(config)) return read_config(config, folder);
    invalid("the archive has no " + in_quotes(config));
  };
  weights_ = read(prefix_ + "data/weights/", "weights");
  constants_ = read(prefix_ + "data/constants/", "constants");
}

void ExportedArchive::read_program(const std::string& entry) {
  program_ = parse_entry(zip_.read(entry), entry);
  const ir::Json& version = member(program_, "schema_version");
  // Before 2.3 it was one number.
  const int64_t major = version.is_object() ? integer_member(version, "major") : as_integer(version);
  if (major == kSchemaVersion) return;
  const auto torch = program_.find("torch_version");
  unsupported(cat("the program has version ", major, " of PyTorch's schema",
                  torch != program_.end() && torch->is_string() ? " (PyTorch " + as_text(*torch) + ")" : "",
                  ", qplan reads version ", kSchemaVersion,
                  "; export the model again with PyTorch 2.6 or later"));
}

Ref ExportedArchive::find(const Tensors& tensors, const std::string& name, const char* where) {
  const auto it = tensors.find(name);
  if (it == tensors.end()) invalid("tensor " + in_quotes(name) + " is not among " + where);
  return it->second;
}

Ref ExportedArchive::read_saved(const std::string& entry) {
  if (const auto known = saved_.find(entry); known != saved_.end()) return known->second.value;
  const std::span<const uint8_t> bytes = zip_.read(entry);
  try {
    Saved& saved = saved_.try_emplace(entry, bytes, &zip_).first->second;
    const std::string folder = prefix_of(saved.zip);
    expect_little_endian(saved.zip, folder);
    saved.value =
        read_pickle(saved.zip.read(folder + "data.pkl"), entry + kInner + folder + "data/", values_);
    return saved.value;
  } catch (const PackError& error) {
    throw PackError(error.status(), in_quotes(entry) + ": " + error.what());
  }
}

ExportedArchive::Tensors ExportedArchive::read_dict(const std::string& entry) {
  const Ref ref = read_saved(entry);
  const Dict* dict = values_.get<Dict>(ref);
  if (dict == nullptr)
    invalid(in_quotes(entry) + " holds " + kind_name(values_.at(ref)) + ", expected a dict");
  Tensors tensors;
  for (const auto& [key, value] : dict->entries) {
    const auto* name = values_.get<std::string>(key);
    if (name == nullptr) invalid(in_quotes(entry) + " has a key that is " + kind_name(values_.at(key)));
    tensors[*name] = value;
  }
  return tensors;
}

ExportedArchive::Tensors ExportedArchive::read_config(const std::string& config, const std::string& folder) {
  const ir::Json json = parse_entry(zip_.read(config), config);
  Tensors tensors;
  for (const auto& [name, payload] : object_member(json, "config").items()) {
    const std::string entry = folder + text_member(payload, "path_name");
    if (!zip_.has(entry))
      invalid("the archive has no " + in_quotes(entry) + ", which " + in_quotes(name) + " is in");
    if (boolean_member(payload, "use_pickle")) {
      // An object of a class, or a tensor of one: only a program that uses it needs it.
      if (member(payload, "tensor_meta").is_null()) continue;
      tensors[name] = read_saved(entry);
      continue;
    }
    const ir::Json& meta = object_member(payload, "tensor_meta");
    const ScalarType type = exported_scalar_type(integer_member(meta, "dtype"));
    const auto count = static_cast<int64_t>(zip_.entry_bytes(entry) / element_bytes(type));
    Tensor tensor{.storage = values_.add(Storage{type, entry, count}),
                  .offset = extents(ir::Json::array({member(meta, "storage_offset")})).front(),
                  .sizes = extents(list_member(meta, "sizes")),
                  .strides = extents(list_member(meta, "strides")),
                  .quantizer = {}};
    tensors[name] = values_.add(std::move(tensor));
  }
  return tensors;
}

std::span<const uint8_t> ExportedArchive::storage(const std::string& key) {
  const size_t inner = key.find(kInner);
  if (inner == std::string::npos) return zip_.read(key);
  const auto it = saved_.find(std::string_view(key).substr(0, inner));
  if (it == saved_.end()) invalid("a tensor names a file that was not read");
  return it->second.zip.read(std::string_view(key).substr(inner + 1));
}

void ExportedArchive::select_part(const ImportOptions& options) {
  left_out_ = pt::select_part(options, &program_);
}

}  // namespace qplan::pt
