// cat("axis ", 3, " of ", type): one string of texts, whole numbers, dtypes and types, the same in every
// locale.
// locale.
#ifndef QPLAN_SRC_PACKER_IR_CAT_H_
#define QPLAN_SRC_PACKER_IR_CAT_H_

#include <concepts>
#include <string>
#include <string_view>

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
}  // namespace detail

template <typename... Parts>
std::string cat(const Parts&... parts) {
  std::string text;
  (detail::append(&text, parts), ...);
  return text;
}

}  // namespace qplan

#endif  // QPLAN_SRC_PACKER_IR_CAT_H_
