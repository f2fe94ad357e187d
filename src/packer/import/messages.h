// What importers say of a file: texts fit for one line of an error message and for JSON, and the list of
// uses
// that are not imported.
#ifndef QPLAN_SRC_PACKER_IMPORT_MESSAGES_H_
#define QPLAN_SRC_PACKER_IMPORT_MESSAGES_H_

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "src/packer/ir/types.h"

namespace qplan::importer {

// Texts made from what a file says, fit for one line of an error message and for JSON.

// A name as it enters the IR: control characters, and bytes that are not UTF-8, become '?'; at most 1,024
// bytes, since a file may say the same long name many times.
std::string clean_name(std::string_view name);
// 'name' in single quotes, cut to what a message can carry.
std::string in_quotes(std::string_view name);
// Quotes like in_quotes(), but without a limit on the length, because the user must find the file by this
// text.
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

// Uses that qplan does not import, collected while the whole model is read, so that one error lists all of
// them.
class UnsupportedList {
 public:
  // what: "CONV_2D with float32 input"; node: of the operator, as messages show it.
  void add(const std::string& what, const std::string& node) {
    Entry& entry = entries_[what];
    if (entry.count++ == 0) entry.first = node;
    ++total_;
  }
  bool empty() const { return entries_.empty(); }
  // Whether a part of what was added is this.
  bool mentions(std::string_view part) const;
  // "2 operators that qplan does not import: SVDF (first 'a')", or, where there are several kinds, their sum
  // and one line a kind, the most frequent first:
  //   3 operators that qplan does not import:
  //     2 x SVDF (first 'a')
  //     1 x CUMSUM ('x')
  std::string text() const;

 private:
  struct Entry {
    size_t count = 0;
    std::string first;
  };
  std::map<std::string, Entry> entries_;
  size_t total_ = 0;
};

// The notes, then the error, one line each. A note says what the model was made for or how it was quantised:
// it explains the error better than the error does.
// The error ends with what to do where no note says it.
std::string with_notes(const std::vector<std::string>& notes, const std::string& error);

}  // namespace qplan::importer

#endif  // QPLAN_SRC_PACKER_IMPORT_MESSAGES_H_
