#include "src/vta/sim/region_job.h"

#include <algorithm>
#include <utility>

#include "qplan/npu_sim.h"

namespace qplan::sim {
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

}  // namespace qplan::sim
