// Texts made from what a file says, fit for one line of an error message and for JSON.
#ifndef QPLAN_SRC_PACKER_IMPORT_TEXT_H_
#define QPLAN_SRC_PACKER_IMPORT_TEXT_H_

#include <string>
#include <string_view>

#include "src/packer/ir/types.h"

namespace qplan::importer {

// A name as it enters the IR: control characters, and bytes that are not UTF-8, become '?'; at most 1,024
// bytes, since a file may say the same long name many times.
std::string clean_name(std::string_view name);
// 'name' in single quotes, cut to what a message can carry.
std::string quoted(std::string_view name);
// Quotes like quoted(), but without a limit on the length, because the user must find the file by this text.
std::string quoted_path(std::string_view path);
std::string to_text(const ir::Shape& shape);  // "[1, 3, 3, 8]"
std::string to_text(float value);             // shortest that reads back the same

// PackError with status QPLAN_MODEL_INVALID; the importer puts the place before the text.
[[noreturn]] void invalid(const std::string& text);

// A use of an operator that is not imported; reason continues "<operator> with ": "float32 input". Not an
// error yet: the importer collects all of them.
struct Unsupported {
  std::string reason;
};

}  // namespace qplan::importer

#endif  // QPLAN_SRC_PACKER_IMPORT_TEXT_H_
