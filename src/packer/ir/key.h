// Parts of keys for maps: values as bytes, equal for equal values.
#ifndef QPLAN_SRC_PACKER_IR_KEY_H_
#define QPLAN_SRC_PACKER_IR_KEY_H_

#include <cstring>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "src/packer/ir/attrs.h"

namespace qplan::ir {

template <typename T>
requires std::is_trivially_copyable_v<T>
void append_key(std::string* key, const T& value) {
  char bytes[sizeof(T)];
  std::memcpy(bytes, &value, sizeof(T));
  key->append(bytes, sizeof(T));
}

inline void append_key(std::string* key, const Ints& values) {
  append_key(key, values.size());
  for (const int64_t value : values) append_key(key, value);
}

inline void append_key(std::string* key, const std::string& text) {
  append_key(key, text.size());
  key->append(text);
}

inline void append_key(std::string* key, const AttrValue& value) {
  append_key(key, value.index());
  if (const auto* flag = std::get_if<bool>(&value)) append_key(key, *flag);
  if (const auto* integer = std::get_if<int64_t>(&value)) append_key(key, *integer);
  if (const auto* real = std::get_if<double>(&value)) append_key(key, *real);
  if (const auto* text = std::get_if<std::string>(&value)) append_key(key, *text);
  if (const auto* ints = std::get_if<Ints>(&value)) append_key(key, *ints);
  if (const auto* lists = std::get_if<std::vector<Ints>>(&value)) {
    append_key(key, lists->size());
    for (const Ints& list : *lists) append_key(key, list);
  }
}

}  // namespace qplan::ir

#endif  // QPLAN_SRC_PACKER_IR_KEY_H_
