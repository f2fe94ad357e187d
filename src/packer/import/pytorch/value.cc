#include "src/packer/import/pytorch/value.h"

#include "src/packer/import/messages.h"
#include "src/packer/import/pytorch/zip_archive.h"
#include "src/packer/ir/cat.h"

namespace qplan::pt {

const char* kind_name(const Value& value) {
  static constexpr const char* kNames[] = {"None",
                                           "a boolean",
                                           "an integer",
                                           "a number",
                                           "a string",
                                           "a name",
                                           "a tuple",
                                           "a list",
                                           "a dict",
                                           "an object",
                                           "a storage",
                                           "a tensor",
                                           "a computed tensor",
                                           "an unknown value"};
  static_assert(std::size(kNames) == std::variant_size_v<Value>);
  return kNames[value.index()];
}

namespace {

size_t text_bytes(const Value& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return text->size();
  if (const auto* name = std::get_if<Name>(&value)) return name->text.size();
  if (const auto* object = std::get_if<Object>(&value)) return object->class_name.size();
  if (const auto* storage = std::get_if<Storage>(&value)) return storage->key.size();
  return 0;
}

}  // namespace

Ref ValueTable::add(Value value) {
  if (values_.size() >= kMaxValues) {
    importer::invalid(cat("the archive makes more than ", kMaxValues, " values: it is no network"));
  }
  text_bytes_ += text_bytes(value);
  if (text_bytes_ > kMaxTextBytes) {
    importer::invalid(cat("the archive's names and strings take more than ", kMaxTextBytes >> 20, " MiB"));
  }
  values_.push_back(std::move(value));
  return {static_cast<uint32_t>(values_.size() - 1)};
}

const std::vector<Ref>* items_of(const ValueTable& values, Ref ref) {
  if (const auto* tuple = values.get<Tuple>(ref)) return &tuple->items;
  if (const auto* list = values.get<List>(ref)) return &list->items;
  return nullptr;
}

}  // namespace qplan::pt
