#include "src/packer/import/pytorch/archive.h"

#include <algorithm>
#include <charconv>

#include "src/packer/error.h"
#include "src/packer/import/messages.h"
#include "src/packer/import/pytorch/limits.h"
#include "src/packer/import/zip_archive.h"
#include "src/packer/ir/cat.h"

namespace qplan::pt {
namespace {

using importer::in_quotes;
using importer::invalid;

[[noreturn]] void refuse_other_kind(const importer::ZipArchive& zip, const std::string& prefix) {
  if (zip.has(prefix + "data.pkl")) {
    throw PackError(
        QPLAN_MODEL_UNSUPPORTED,
        "the file holds pickled Python objects (torch.save), not TorchScript; save the model with m = "
        "torch.jit.freeze(torch.jit.script(m.eval())), m.save('model.pt'), or export it: "
        "torch.export.save(torch.export.export(m.eval(), inputs), 'model.pt2')");
  }
  invalid("the zip has no constants.pkl: it is no TorchScript archive");
}

Ref read_pickle_entry(importer::ZipArchive& zip, const std::string& entry, const std::string& storage_prefix,
                      ValueTable& values) {
  const std::span<const uint8_t> bytes = zip.read(entry);
  try {
    return read_pickle(bytes, storage_prefix, values);
  } catch (const PackError& error) {
    throw PackError(error.status(), in_quotes(entry) + ", " + error.what());
  }
}

}  // namespace

std::string prefix_of(const importer::ZipArchive& zip) {
  const size_t slash = zip.first_name().find('/');
  return slash == std::string::npos ? "" : zip.first_name().substr(0, slash + 1);
}

Archive::Archive(importer::ZipArchive zip)
    : zip_(std::move(zip)), prefix_(prefix_of(zip_)), tensors_(zip_, values_) {
  if (!zip_.has(prefix_ + "constants.pkl") || !zip_.has(prefix_ + "data.pkl"))
    refuse_other_kind(zip_, prefix_);
  module_ = read_pickle_entry(zip_, prefix_ + "data.pkl", prefix_ + "data/", values_);
  const Object* object = values_.get<Object>(module_);
  if (object == nullptr)
    invalid("data.pkl holds " + std::string(kind_name(values_.at(module_))) + ", expected a module");
  const Dict* members = values_.get<Dict>(object->state);
  frozen_ =
      members != nullptr && std::ranges::all_of(members->entries, [&](const auto& entry) {
        return values_.get<Object>(entry.second) == nullptr && values_.get<Tensor>(entry.second) == nullptr;
      });
  const Ref constants = read_pickle_entry(zip_, prefix_ + "constants.pkl", prefix_ + "constants/", values_);
  const Tuple* tuple = values_.get<Tuple>(constants);
  if (tuple == nullptr) invalid("constants.pkl holds " + std::string(kind_name(values_.at(constants))));
  constants_ = tuple->items;
}

Ref Archive::constant(std::string_view name) const {
  size_t index = 0;
  const auto result = name.starts_with('c')
                          ? std::from_chars(name.data() + 1, name.data() + name.size(), index)
                          : std::from_chars_result{name.data(), std::errc::invalid_argument};
  if (result.ec != std::errc() || result.ptr != name.data() + name.size() || index >= constants_.size()) {
    invalid("the code uses CONSTANTS." + std::string(name) + ", but there are " +
            std::to_string(constants_.size()) + " constants");
  }
  return constants_[index];
}

// "__torch__.a.b.Name" is in code/__torch__/a/b.py.
ScriptFile* Archive::find_file(std::string_view qualified_name) {
  const size_t dot = qualified_name.rfind('.');
  if (dot == std::string_view::npos) return nullptr;
  std::string path = prefix_ + "code/" + std::string(qualified_name.substr(0, dot));
  std::replace(path.begin() + static_cast<std::ptrdiff_t>(prefix_.size()), path.end(), '.', '/');
  path += ".py";
  if (const auto it = files_.find(path); it != files_.end()) return it->second.get();
  if (!zip_.has(path)) return nullptr;
  const std::span<const uint8_t> text = zip_.read(path);
  try {
    auto file = std::make_unique<ScriptFile>(
        std::string_view(reinterpret_cast<const char*>(text.data()), text.size()), kMaxTokens - num_tokens_);
    num_tokens_ += file->num_tokens();
    return files_.emplace(path, std::move(file)).first->second.get();
  } catch (const PackError& error) {
    throw PackError(error.status(), in_quotes(path) + ", " + error.what());
  }
}

const FunctionBody* Archive::find_function(std::string_view qualified_name) {
  ScriptFile* file = find_file(qualified_name);
  return file == nullptr ? nullptr : file->find("", qualified_name.substr(qualified_name.rfind('.') + 1));
}

const FunctionBody* Archive::find_method(std::string_view class_name, std::string_view method) {
  ScriptFile* file = find_file(class_name);
  return file == nullptr ? nullptr : file->find(class_name.substr(class_name.rfind('.') + 1), method);
}

}  // namespace qplan::pt
