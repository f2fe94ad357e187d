// What a model uses and qplan does not import, collected while the whole model is looked through: one error
// tells all.
#ifndef QPLAN_SRC_PACKER_IMPORT_UNSUPPORTED_LIST_H_
#define QPLAN_SRC_PACKER_IMPORT_UNSUPPORTED_LIST_H_

#include <map>
#include <string>

namespace qplan::importer {

class UnsupportedList {
 public:
  // what: "CONV_2D with float32 input"; node: of the operator, as messages show it.
  void add(const std::string& what, const std::string& node) {
    Entry& entry = entries_[what];
    if (entry.count++ == 0) entry.first = node;
  }
  bool empty() const { return entries_.empty(); }
  // "CUMSUM (1; 'x')"; of several kinds how many there are, and then each on a line of its own, sorted:
  // "2 kinds, 6 operators:\n  CONV_2D with float32 input (5; first 'conv1')\n  CUMSUM (1; 'x')".
  std::string text() const {
    constexpr size_t kMaxEntries = 64;
    std::string list;
    size_t shown = 0, operators = 0;
    for (const auto& [what, entry] : entries_) {
      operators += entry.count;
      if (shown++ >= kMaxEntries) continue;
      list += (entries_.size() > 1 ? "\n  " : "") + what + " (" + std::to_string(entry.count) + "; " +
              (entry.count > 1 ? "first " : "") + entry.first + ")";
    }
    if (entries_.size() <= 1) return list;
    if (shown > kMaxEntries) list += "\n  and " + std::to_string(shown - kMaxEntries) + " more kinds";
    return std::to_string(entries_.size()) + " kinds, " + std::to_string(operators) + " operators:" + list;
  }

 private:
  struct Entry {
    size_t count = 0;
    std::string first;
  };
  std::map<std::string, Entry> entries_;
};

}  // namespace qplan::importer

#endif  // QPLAN_SRC_PACKER_IMPORT_UNSUPPORTED_LIST_H_
