#include <algorithm>
#include <filesystem>
#include <utility>

#include "qplan/npu_sim.h"
#include "src/vta/sim/record.h"

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

namespace {

constexpr uint8_t kStaleByte = 0xa5;

}  // namespace

bool RegionJob::directive(const std::vector<std::string_view>& words) {
  const std::string_view word = words[0];
  if (word == "target" && words.size() == 2) return is_target(target_, words[1], &has_target_);
  if (word == "region" && words.size() == 3) return read_region(words);
  if (word == "readonly" && words.size() == 2) {
    uint32_t index = 0;
    if (!read_known(words[1], &index)) return false;
    return once("readonly " + std::to_string(index), &regions_[index].is_read_only);
  }
  if (word == "load" && words.size() == 4) {
    loads_.emplace_back();
    loads_.back().file = words[3];
    return read_place(words, &loads_.back());
  }
  if (word == "run" && words.size() == 2) {
    run_ = words[1];
    return once(word, &has_run_);
  }
  if (word == "check" && words.size() == 5) {
    checks_.emplace_back();
    Place& check = checks_.back();
    check.file = words[4];
    if (!read_place(words, &check)) return false;
    if (!parse_number(words[3], &check.size))
      return malformed_line(in_quotes(words[3]) + " is not a number of bytes");
    if (!is_inside(check)) return false;
    compared_ += check.size;  // at most 2^40 each, fewer than 2^20 of them
    return true;
  }
  return other_directive(words);
}

bool RegionJob::read_region(const std::vector<std::string_view>& words) {
  uint64_t index = 0, bytes = 0;
  if (!parse_number(words[1], &index) || index >= regions_.size())
    return malformed_line("region " + in_quotes(words[1]) + ", expected 0 to " +
                          std::to_string(regions_.size() - 1));
  if (!once("region " + std::to_string(index), &regions_[index].is_known)) return false;
  if (!parse_number(words[2], &bytes))
    return malformed_line(in_quotes(words[2]) + " is not a number of bytes");
  if (bytes > options_.memory_bytes - total_)
    return malformed_line("the regions have more than " + std::to_string(options_.memory_bytes) +
                          " bytes, the device's memory; option memory=BYTES makes it larger");
  total_ += bytes;
  regions_[index].size = bytes;
  return true;
}

// The number of a region that an earlier line has declared.
bool RegionJob::read_known(std::string_view word, uint32_t* index) {
  uint64_t number = 0;
  if (!parse_number(word, &number) || number >= regions_.size() || !regions_[number].is_known)
    return malformed_line("region " + in_quotes(word) + " is not known; regions come first");
  *index = static_cast<uint32_t>(number);
  return true;
}

bool RegionJob::read_place(const std::vector<std::string_view>& words, Place* place) {
  if (!read_known(words[1], &place->region)) return false;
  return parse_number(words[2], &place->offset) ||
         malformed_line(in_quotes(words[2]) + " is not an offset into a region");
}

bool RegionJob::is_inside(const Place& place) {
  const uint64_t size = regions_[place.region].size;
  return (place.offset <= size && place.size <= size - place.offset) ||
         malformed(std::to_string(place.size) + " bytes at " + std::to_string(place.offset) +
                   " are outside region " + std::to_string(place.region) + ", which has " +
                   std::to_string(size));
}

bool RegionJob::read_job() {
  if (!read_lines()) return false;
  if (!has_run_) return malformed("job.txt has no run");
  if (checks_.empty()) return malformed("job.txt has no check");
  return compared_ <= total_ || malformed("the checks compare " + std::to_string(compared_) +
                                          " bytes, the regions have " + std::to_string(total_));
}

bool RegionJob::read_checks() {
  return std::ranges::all_of(
      checks_, [this](Place& check) { return read_expected(check.file, check.size, &check.expected); });
}

// Bytes that nobody brings have no value that other simulators would agree on.
bool RegionJob::covers_read_only() {
  for (uint32_t r = 0; r < regions_.size(); ++r) {
    if (!regions_[r].is_read_only) continue;
    std::vector<std::pair<uint64_t, uint64_t>> ranges;  // begin, end
    for (const Place& load : loads_) {
      if (load.region == r) ranges.emplace_back(load.offset, load.offset + load.size);
    }
    std::ranges::sort(ranges);
    uint64_t covered = 0;
    for (const auto& [begin, end] : ranges) {
      if (begin > covered) break;
      covered = std::max(covered, end);
    }
    if (covered < regions_[r].size)
      return malformed("byte " + std::to_string(covered) + " of region " + std::to_string(r) +
                       " is readonly, and no load brings it");
  }
  return true;
}

bool RegionJob::read_loads() {
  for (Region& region : regions_) region.bytes.assign(region.size, kStaleByte);
  for (Place& load : loads_) {
    JobFile file;
    if (!find_file(load.file, &file)) return false;
    load.size = file.bytes();
    if (!is_inside(load) || !count_loaded(load.size)) return false;
    if (!read_found(file, regions_[load.region].bytes.data() + load.offset)) return false;
  }
  return covers_read_only();
}

bool RegionJob::compare_checks() {
  return std::ranges::all_of(checks_, [this](const Place& check) {
    return compare(check.file, check.expected, regions_[check.region].bytes.data() + check.offset,
                   uint64_t{check.region} << QPLAN_NPU_SIM_REGION_BIT | check.offset);
  });
}

// ---- recording

namespace {

bool write_region_files(const std::filesystem::path& path, const RecordedJob& record, std::string* error) {
  std::string text = record.head;
  for (size_t r = 0; r < record.regions.size(); ++r) {
    if (record.regions[r].is_listed)
      text += "region " + std::to_string(r) + " " + std::to_string(record.regions[r].bytes) + "\n";
  }
  for (size_t r = 0; r < record.regions.size(); ++r) {
    if (record.regions[r].is_listed && record.regions[r].is_constant)
      text += "readonly " + std::to_string(r) + "\n";
  }
  const auto place = [](const RecordedBytes& part) {
    return std::to_string(part.region) + " " + std::to_string(part.offset);
  };
  for (size_t i = 0; i < record.loads.size(); ++i) {
    const RecordedBytes& load = record.loads[i];
    const std::string name = "load-" + std::to_string(i) + ".bin";
    text += "load " + place(load) + " " + name + "\n";
    if (!write_file(path / name, load.bytes.data(), load.bytes.size(), error)) return false;
  }
  text += "run " + record.program_file + "\n";
  if (!write_file(path / record.program_file, record.program->data(), record.program->size(), error))
    return false;
  for (size_t i = 0; i < record.checks.size(); ++i) {
    const RecordedBytes& check = record.checks[i];
    const std::string name = "check-" + std::to_string(i) + ".bin";
    text += "check " + place(check) + " " + std::to_string(check.bytes.size()) + " " + name + "\n";
    if (!write_file(path / name, check.bytes.data(), check.bytes.size(), error)) return false;
  }
  return write_file(path / "job.txt", text.data(), text.size(), error);
}

}  // namespace

bool write_record(const std::string& directory, uint64_t job, const RecordedJob& record, std::string* error) {
  return write_job(
      directory, job,
      [&](const std::filesystem::path& path) { return write_region_files(path, record, error); }, error);
}

}  // namespace qplan::sim
