// cat("axis ", 3, " of ", type): one string of texts, numbers, dtypes and types, the same in every locale.
#ifndef QPLAN_SRC_PACKER_IR_CAT_H_
#define QPLAN_SRC_PACKER_IR_CAT_H_

#include <charconv>
#include <concepts>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "src/packer/ir/types.h"

namespace qplan {

namespace detail {
inline void append(std::string* text, std::string_view part) { text->append(part); }
inline void append(std::string* text, char part) { text->push_back(part); }
inline void append(std::string* text, const ir::TensorType& type) { text->append(ir::to_string(type)); }
inline void append(std::string* text, ir::DType dtype) { text->append(ir::to_string(dtype)); }
template <std::integral T>
void append(std::string* text, T number) {
  text->append(std::to_string(number));
}
// The shortest text that reads back the same number. Without it a float would be taken as a char.
template <std::floating_point T>
void append(std::string* text, T number) {
  char digits[64];
  text->append(digits, std::to_chars(digits, digits + sizeof digits, number).ptr);
}
}  // namespace detail

template <typename... Parts>
std::string cat(const Parts&... parts) {
  std::string text;
  (detail::append(&text, parts), ...);
  return text;
}

}  // namespace qplan

namespace qplan::ir {

// Parts of keys for maps: values as bytes, equal for equal values.
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

#endif  // QPLAN_SRC_PACKER_IR_CAT_H_
