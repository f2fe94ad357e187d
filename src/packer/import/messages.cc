#include "src/packer/import/messages.h"

#include <algorithm>
#include <charconv>

#include "src/packer/error.h"
#include "src/packer/import/import.h"
#include "src/packer/ir/cat.h"

namespace qplan::importer {
namespace {

constexpr char kListed[] = " that qplan does not import:";
constexpr char kWhatToDo[] =
    "to do: replace these operators in the model, or pack the part of it before them and run the rest in the "
    "application; `qplan pack MODEL --coverage` prints the share of the model that runs";
constexpr size_t kMaxNameBytes = 1024;
constexpr size_t kMaxQuotedBytes = 120;

// Length of the well-formed UTF-8 sequence (RFC 3629) at the beginning of text, 0 when there is none.
size_t utf8_length(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  const size_t length = first < 0x80   ? 1
                        : first < 0xc2 ? 0
                        : first < 0xe0 ? 2
                        : first < 0xf0 ? 3
                        : first < 0xf5 ? 4
                                       : 0;
  if (length == 0 || length > text.size()) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  if (length >= 3) {
    const bool overlong = (first == 0xe0 && byte(1) < 0xa0) || (first == 0xf0 && byte(1) < 0x90);
    const bool surrogate = first == 0xed && byte(1) >= 0xa0;
    const bool too_large = first == 0xf4 && byte(1) >= 0x90;
    if (overlong || surrogate || too_large) return 0;
  }
  return length;
}

}  // namespace

std::string clean_name(std::string_view name) {
  std::string clean;
  size_t i = 0;
  while (i < name.size()) {
    const size_t length = utf8_length(name.substr(i, 4));
    if (clean.size() + (length == 0 ? 1 : length) > kMaxNameBytes) break;
    const bool control = length == 1 && (name[i] < 0x20 || name[i] == 0x7f);
    if (length == 0 || control) {
      clean += '?';
      ++i;
    } else {
      clean.append(name, i, length);
      i += length;
    }
  }
  return clean;
}

std::string in_quotes(std::string_view name) {
  std::string text = clean_name(name.substr(0, kMaxQuotedBytes));
  if (name.size() > kMaxQuotedBytes) text += "...";
  return "'" + text + "'";
}

std::string quoted_path(std::string_view path) {
  // Longer than any path that a system takes.
  constexpr size_t kMaxPathBytes = 4096;
  std::string clean;
  for (size_t begin = 0; begin < std::min(path.size(), kMaxPathBytes);) {
    // In pieces that clean_name keeps whole.
    const std::string piece = clean_name(path.substr(begin));
    clean += piece;
    begin += piece.size();
  }
  return "'" + clean + "'";
}

std::string to_text(const ir::Shape& shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
  return text + "]";
}

std::string to_text(float value) {
  char buffer[64];
  return std::string(buffer, std::to_chars(buffer, buffer + sizeof(buffer), value).ptr);
}

void invalid(const std::string& text) { throw PackError(QPLAN_MODEL_INVALID, text); }

std::string with_notes(const std::vector<std::string>& notes, const std::string& error) {
  std::string text;
  for (const std::string& note : notes) text += note + "\n";
  text += error;
  // The notes say what to do themselves.
  const bool is_list = error.find(kListed) != std::string::npos;
  return notes.empty() && is_list ? text + "\n" + kWhatToDo : text;
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
  std::string text = cat(total_, total_ == 1 ? " operator" : " operators", kListed);
  if (lines.size() == 1) return text + " " + place(*lines[0]);
  for (size_t i = 0; i < std::min(lines.size(), kMaxLines); ++i) {
    text += cat("\n  ", lines[i]->second.count, " x ", place(*lines[i]));
  }
  if (lines.size() > kMaxLines) text += cat("\n  and ", lines.size() - kMaxLines, " other kinds");
  return text;
}

}  // namespace qplan::importer

namespace qplan {

void keep_all_results(ir::Function& main) {
  constexpr size_t kMaxResults = 250;  // fewer than a plan has outputs
  const std::vector<uint32_t> uses = ir::count_uses(main);
  std::vector<ir::ValueId> outputs(main.outputs().begin(), main.outputs().end());
  for (const ir::Node& node : main.nodes()) {
    for (const ir::ValueId result : node.results) {
      if (uses[result.index] == 0 && outputs.size() < kMaxResults) outputs.push_back(result);
    }
  }
  main.set_outputs(std::move(outputs));
}

}  // namespace qplan
