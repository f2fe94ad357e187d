// Attributes of a node or function: a small map from name to value, in insertion order.
#ifndef QPLAN_SRC_PACKER_IR_ATTRS_H_
#define QPLAN_SRC_PACKER_IR_ATTRS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace qplan::ir {

using Ints = std::vector<int64_t>;
using AttrValue = std::variant<bool, int64_t, double, std::string, Ints, std::vector<Ints>>;

class Attrs {
 public:
  Attrs() = default;
  Attrs(std::initializer_list<std::pair<std::string, AttrValue>> entries) : entries_(entries) {}

  const AttrValue* find(std::string_view name) const;
  bool has(std::string_view name) const { return find(name) != nullptr; }
  void set(std::string_view name, AttrValue value);
  void erase(std::string_view name);
  // The value, or the fallback where it is absent; PackError (QPLAN_INTERNAL) where it has another kind.
  int64_t get_int(std::string_view name, int64_t fallback) const;
  double get_double(std::string_view name, double fallback) const;
  bool get_bool(std::string_view name, bool fallback) const;
  std::string get_string(std::string_view name, std::string_view fallback) const;
  Ints get_ints(std::string_view name, const Ints& fallback) const;
  std::vector<Ints> get_int_lists(std::string_view name, const std::vector<Ints>& fallback) const;

  size_t size() const { return entries_.size(); }
  bool empty() const { return entries_.empty(); }
  auto begin() const { return entries_.begin(); }
  auto end() const { return entries_.end(); }
  bool operator==(const Attrs& other) const;  // regardless of order

 private:
  std::vector<std::pair<std::string, AttrValue>> entries_;
};

}  // namespace qplan::ir

#endif  // QPLAN_SRC_PACKER_IR_ATTRS_H_
