#include "src/packer/import/unsupported_list.h"

#include <algorithm>

#include "src/packer/ir/cat.h"

namespace qplan::importer {

std::string with_notes(const std::vector<std::string>& notes, const std::string& error) {
  std::string text;
  for (const std::string& note : notes) text += note + "\n";
  return text + error;
}

bool UnsupportedList::mentions(std::string_view part) const {
  return std::ranges::any_of(entries_,
                             [&](const auto& entry) { return entry.first.find(part) != std::string::npos; });
}

std::string UnsupportedList::text() const {
  constexpr size_t kMaxLines = 64;
  using Line = std::pair<const std::string, Entry>;
  std::vector<const Line*> lines;
  for (const Line& entry : entries_) lines.push_back(&entry);
  std::ranges::stable_sort(lines, std::greater<>(), [](const Line* line) { return line->second.count; });
  const auto place = [](const Line& line) {
    return cat(line.first, line.second.count > 1 ? " (first " : " (", line.second.first, ")");
  };
  std::string text = cat(total_, total_ == 1 ? " operator" : " operators", " that qplan does not import:");
  if (lines.size() == 1) return text + " " + place(*lines[0]);
  for (size_t i = 0; i < std::min(lines.size(), kMaxLines); ++i) {
    text += cat("\n  ", lines[i]->second.count, " x ", place(*lines[i]));
  }
  if (lines.size() > kMaxLines) text += cat("\n  and ", lines.size() - kMaxLines, " other kinds");
  return text;
}

}  // namespace qplan::importer
