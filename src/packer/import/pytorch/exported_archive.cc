#include "src/packer/import/pytorch/exported_archive.h"

#include "src/packer/error.h"
#include "src/packer/import/messages.h"
#include "src/packer/import/pytorch/exported_json.h"
#include "src/packer/ir/cat.h"

namespace qplan::pt {
namespace {

using importer::in_quotes;
using importer::invalid;
using importer::Unsupported;

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

}  // namespace qplan::pt
