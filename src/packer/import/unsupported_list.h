// Uses that qplan does not import, collected while the whole model is read, so that one error lists all of
// them.
#ifndef QPLAN_SRC_PACKER_IMPORT_UNSUPPORTED_LIST_H_
#define QPLAN_SRC_PACKER_IMPORT_UNSUPPORTED_LIST_H_

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace qplan::importer {

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
std::string with_notes(const std::vector<std::string>& notes, const std::string& error);

}  // namespace qplan::importer

#endif  // QPLAN_SRC_PACKER_IMPORT_UNSUPPORTED_LIST_H_
