#include "src/vta/sim/job_reader.h"

#include <algorithm>

namespace qplan::sim {
namespace {

constexpr char kJobText[] = "job.txt";
constexpr uint64_t kMaxJobTextBytes = uint64_t{4} << 20;  // 4096 regions take half a megabyte

// Calls visit(words) for each line of the text that is neither empty nor a comment, until it returns false.
template <typename Visit>
bool visit_lines(const std::vector<uint8_t>& text, size_t* line, Visit visit) {
  std::string_view rest(reinterpret_cast<const char*>(text.data()), text.size());
  for (*line = 1; !rest.empty(); ++*line) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    const std::vector<std::string_view> words = split(rest.substr(0, end), ' ');
    if (!words.empty() && words[0][0] != '#' && !visit(words)) return false;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return true;
}

}  // namespace

std::string job_target(const std::string& directory) {
  JobFiles files;
  JobFile file;
  std::string error, target;
  if (!files.open(directory, &error) || !files.find(kJobText, &file, &error)) return "";
  if (file.bytes() > kMaxJobTextBytes) return "";
  std::vector<uint8_t> text(file.bytes());
  if (!file.read(text.data(), &error)) return "";
  size_t line = 0;
  (void)visit_lines(text, &line, [&](const std::vector<std::string_view>& words) {
    const bool is_target = words[0] == "target" && words.size() == 2;
    if (is_target) target = words[1];
    return !is_target;
  });
  return target;
}

bool JobReader::fail(qplan_npu_status status, const std::string& text) {
  fault_.status = status;
  fault_.text = "replay: " + text;
  // Names and words of the record go to terminals.
  for (char& c : fault_.text) {
    if (c < 0x20 || c > 0x7e) c = '?';
  }
  return false;
}

bool JobReader::malformed_line(const std::string& text) {
  return malformed("job.txt line " + std::to_string(line_) + ": " + text);
}

bool JobReader::read_lines() {
  std::string error;
  if (!files_.open(directory_, &error)) return malformed(error);
  std::vector<uint8_t> text;
  if (!read_file(kJobText, kMaxJobTextBytes, &text)) return false;
  return visit_lines(text, &line_,
                     [this](const std::vector<std::string_view>& words) { return directive(words); });
}

bool JobReader::once(std::string_view word, bool* has) {
  if (!*has) return *has = true;
  return malformed_line("a second " + in_quotes(word) + ", expected one");
}

bool JobReader::is_target(const char* expected, std::string_view found, bool* has) {
  if (found == expected) return once("target", has);
  const std::string expects = std::string(expected) == "slots" ? "'slots'" : "'vta' or 'ethosu'";
  return fail(QPLAN_NPU_E_UNSUPPORTED, "target " + in_quotes(found) + ", expected " + expects);
}

bool JobReader::find_file(const std::string& name, JobFile* file) {
  std::string error;
  return files_.find(name, file, &error) || malformed(error);
}

bool JobReader::read_found(const JobFile& file, uint8_t* to) {
  std::string error;
  return file.read(to, &error) || malformed(error);
}

bool JobReader::read_file(const std::string& name, uint64_t most, std::vector<uint8_t>* bytes) {
  JobFile file;
  if (!find_file(name, &file)) return false;
  if (file.bytes() > most) {
    return malformed(in_quotes(name) + " has " + std::to_string(file.bytes()) + " bytes, expected at most " +
                     std::to_string(most));
  }
  bytes->resize(file.bytes());
  return read_found(file, bytes->data());
}

bool JobReader::read_expected(const std::string& name, uint64_t bytes, std::vector<uint8_t>* expected) {
  JobFile file;
  if (!find_file(name, &file)) return false;
  if (file.bytes() != bytes) {
    return malformed(in_quotes(name) + " has " + std::to_string(file.bytes()) + " bytes, expected " +
                     std::to_string(bytes));
  }
  expected->resize(bytes);
  return read_found(file, expected->data());
}

bool JobReader::count_loaded(uint64_t bytes) {
  loaded_ += bytes;  // each is at most a memory's size more than the limit
  return loaded_ <= kMaxLoadedBytes ||
         malformed("the loads bring more than " + std::to_string(kMaxLoadedBytes) + " bytes");
}

bool JobReader::compare(const std::string& name, const std::vector<uint8_t>& expected, const uint8_t* actual,
                        uint64_t address) {
  for (size_t b = 0; b < expected.size(); ++b) {
    if (actual[b] == expected[b]) continue;
    fault_.address = address + b;
    return fail(QPLAN_NPU_E_BUS, "byte " + std::to_string(b) + " of " + in_quotes(name) + " is " +
                                     std::to_string(actual[b]) + ", expected " + std::to_string(expected[b]));
  }
  return true;
}

}  // namespace qplan::sim
