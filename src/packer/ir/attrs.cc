#include "src/packer/ir/attrs.h"

#include <algorithm>

#include "src/packer/error.h"

namespace qplan::ir {
namespace {

template <typename T>
T get(const AttrValue* value, std::string_view name, const T& fallback) {
  if (value == nullptr) return fallback;
  if (const T* typed = std::get_if<T>(value)) return *typed;
  throw PackError(QPLAN_INTERNAL, "attribute '" + std::string(name) + "' has an unexpected kind");
}

}  // namespace

const AttrValue* Attrs::find(std::string_view name) const {
  for (const auto& [known, value] : entries_) {
    if (known == name) return &value;
  }
  return nullptr;
}

void Attrs::set(std::string_view name, AttrValue value) {
  for (auto& [known, old] : entries_) {
    if (known == name) {
      old = std::move(value);
      return;
    }
  }
  entries_.emplace_back(std::string(name), std::move(value));
}

void Attrs::erase(std::string_view name) {
  std::erase_if(entries_, [&](const auto& entry) { return entry.first == name; });
}

int64_t Attrs::get_int(std::string_view name, int64_t fallback) const { return get(find(name), name, fallback); }

double Attrs::get_double(std::string_view name, double fallback) const {
  const AttrValue* value = find(name);
  if (value != nullptr && std::holds_alternative<int64_t>(*value)) {
    return static_cast<double>(std::get<int64_t>(*value));
  }
  return get(value, name, fallback);
}

bool Attrs::get_bool(std::string_view name, bool fallback) const { return get(find(name), name, fallback); }

std::string Attrs::get_string(std::string_view name, std::string_view fallback) const {
  return get(find(name), name, std::string(fallback));
}

Ints Attrs::get_ints(std::string_view name, const Ints& fallback) const { return get(find(name), name, fallback); }

std::vector<Ints> Attrs::get_int_lists(std::string_view name, const std::vector<Ints>& fallback) const {
  return get(find(name), name, fallback);
}

bool Attrs::operator==(const Attrs& other) const {
  if (size() != other.size()) return false;
  return std::all_of(begin(), end(), [&](const auto& entry) {
    const AttrValue* value = other.find(entry.first);
    return value != nullptr && *value == entry.second;
  });
}

}  // namespace qplan::ir
