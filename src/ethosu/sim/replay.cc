#include "src/ethosu/sim/replay.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "qplan/npu_sim.h"
#include "src/ethosu/isa/check_stream.h"
#include "src/ethosu/isa/payload.h"
#include "src/ethosu/sim/machine.h"
#include "src/vta/sim/job_reader.h"

namespace qplan::ethosu::sim {
namespace {

using qplan::sim::in_quotes;
using qplan::sim::parse_number;

constexpr uint64_t kMaxPayloadBytes = kMaxStreamBytes + uint64_t{4096};
// The simulator remembers of each writable byte who touched it.
constexpr uint64_t kMemoryPerWritable = 16;

struct Place {
  uint32_t region = 0;
  uint64_t offset = 0;
  std::string file;
};
struct Check : Place {
  std::vector<uint8_t> expected;
};
struct Region {
  bool is_known = false, is_read_only = false;
  uint64_t size = 0;
  std::vector<uint8_t> bytes;
};

class Replay : qplan::sim::JobReader {
 public:
  Replay(std::string directory, const qplan::sim::Options& options)
      : JobReader(std::move(directory), options) {}

  qplan::sim::Fault run(qplan_npu_report* report) {
    std::vector<uint32_t> stream;
    if (!read_job() || !read_payload(&stream) || !read_checks()) return fault_;
    Memory memory(*config_);
    for (uint32_t r = 0; r < kMaxRegions; ++r) {
      Region& region = regions_[r];
      region.bytes.assign(region.size, kStale);
      if (region.is_known)
        memory.set_region(r, region.bytes.data(), region.size, !region.is_read_only, region.is_read_only);
    }
    if (!read_loads(&memory)) return fault_;
    const Outcome outcome = Machine(*config_, &memory).run(stream);
    report->cycles = outcome.cycles;
    report->busy_cycles = outcome.busy_cycles;
    report->bytes_read = outcome.bytes_read;
    report->bytes_written = outcome.bytes_written;
    report->macs = outcome.macs;
    if (outcome.fault.is_set()) {
      (void)fail(outcome.fault.status, outcome.fault.text);
      fault_.instruction = outcome.fault.word;
      return fault_;
    }
    for (const Check& check : checks_) {
      if (!compare(check.file, check.expected, regions_[check.region].bytes.data() + check.offset,
                   uint64_t{check.region} << QPLAN_NPU_SIM_REGION_BIT | check.offset))
        break;
    }
    return fault_;
  }

 private:
  // ---- job.txt

  bool directive(const std::vector<std::string_view>& words) override {
    const std::string_view word = words[0];
    if (word == "target" && words.size() == 2) return is_target("ethosu", words[1], &has_target_);
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
      payload_ = words[1];
      return once(word, &has_run_);
    }
    if (word == "check" && words.size() == 5) {
      checks_.emplace_back();
      Check& check = checks_.back();
      check.file = words[4];
      uint64_t bytes = 0;
      if (!read_place(words, &check)) return false;
      if (!parse_number(words[3], &bytes))
        return malformed_line(in_quotes(words[3]) + " is not a number of bytes");
      if (!is_inside(check, bytes)) return false;
      compared_ += bytes;  // at most 2^40 each, fewer than 2^20 of them
      check_bytes_.push_back(bytes);
      return true;
    }
    return unknown_line(word);
  }

  bool read_region(const std::vector<std::string_view>& words) {
    uint64_t index = 0, bytes = 0;
    if (!parse_number(words[1], &index) || index >= kMaxRegions)
      return malformed_line("region " + in_quotes(words[1]) + ", expected 0 to " +
                            std::to_string(kMaxRegions - 1));
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
  bool read_known(std::string_view word, uint32_t* index) {
    uint64_t number = 0;
    if (!parse_number(word, &number) || number >= kMaxRegions || !regions_[number].is_known)
      return malformed_line("region " + in_quotes(word) + " is not known; regions come first");
    *index = static_cast<uint32_t>(number);
    return true;
  }

  bool read_place(const std::vector<std::string_view>& words, Place* place) {
    if (!read_known(words[1], &place->region)) return false;
    return parse_number(words[2], &place->offset) ||
           malformed_line(in_quotes(words[2]) + " is not an offset into a region");
  }

  bool is_inside(const Place& place, uint64_t bytes) {
    const uint64_t size = regions_[place.region].size;
    return (place.offset <= size && bytes <= size - place.offset) ||
           malformed(std::to_string(bytes) + " bytes at " + std::to_string(place.offset) +
                     " are outside region " + std::to_string(place.region) + ", which has " +
                     std::to_string(size));
  }

  bool read_job() {
    if (!read_lines()) return false;
    if (!has_run_) return malformed("job.txt has no run");
    if (checks_.empty()) return malformed("job.txt has no check");
    uint64_t writable = 0;
    for (const Region& region : regions_) writable += region.is_read_only ? 0 : region.size;
    if (writable > options_.memory_bytes / kMemoryPerWritable)
      return malformed("the job may write " + std::to_string(writable) +
                       " bytes, the simulator keeps track of " +
                       std::to_string(options_.memory_bytes / kMemoryPerWritable) +
                       "; readonly regions count less, option memory=BYTES allows more");
    return compared_ <= total_ || malformed("the checks compare " + std::to_string(compared_) +
                                            " bytes, the regions have " + std::to_string(total_));
  }

  // ---- files

  bool read_payload(std::vector<uint32_t>* stream) {
    std::vector<uint8_t> bytes;
    if (!read_file(payload_, kMaxPayloadBytes, &bytes)) return false;
    Payload payload;
    if (const Problem p = ethosu::read_payload(bytes.data(), bytes.size(), &payload)) return illegal(p);
    config_ = find_config_word(payload.config_word);
    if (config_ == nullptr)
      return fail(QPLAN_NPU_E_UNSUPPORTED,
                  "the payload is for an unknown configuration, word " + std::to_string(payload.config_word));
    RegionLimits limits;
    for (uint32_t r = 0; r < kMaxRegions; ++r) {
      limits.bytes[r] = regions_[r].size;
      limits.is_writable[r] = regions_[r].is_known && !regions_[r].is_read_only;
      if (limits.bytes[r] >> address_bits(*config_) != 0)
        return malformed("region " + std::to_string(r) + " has more bytes than the device has addresses");
    }
    uint32_t word = 0;
    StreamWork work;
    if (const Problem p = check_stream(*config_, payload, limits, &word, &work)) {
      (void)illegal(p);
      fault_.instruction = word;
      return false;
    }
    // A blob declares how long it takes, a record does not: what it may do is the replayer's option.
    if (work.total_cycles > options_.work || work.elements > options_.work - work.total_cycles)
      return fail(QPLAN_NPU_E_ILLEGAL, "the job takes more than " + std::to_string(options_.work) +
                                           " cycles and elements read; option work=N allows more");
    for (uint32_t i = 0; i < payload.stream_words; ++i)
      stream->push_back(load_word(payload.stream + uint64_t{i} * 4));
    return true;
  }

  bool illegal(const Problem& p) {
    return fail(QPLAN_NPU_E_ILLEGAL, std::string(p.text) + ": found " + std::to_string(p.found) + ", limit " +
                                         std::to_string(p.limit));
  }

  bool read_checks() {
    for (size_t i = 0; i < checks_.size(); ++i) {
      if (!read_expected(checks_[i].file, check_bytes_[i], &checks_[i].expected)) return false;
    }
    return true;
  }

  // Bytes that nobody brings have no value that other simulators would agree on.
  bool covers_read_only(const std::vector<std::pair<Place, uint64_t>>& loaded) {
    for (uint32_t r = 0; r < kMaxRegions; ++r) {
      if (!regions_[r].is_read_only) continue;
      std::vector<std::pair<uint64_t, uint64_t>> ranges;  // begin, end
      for (const auto& [place, bytes] : loaded) {
        if (place.region == r) ranges.emplace_back(place.offset, place.offset + bytes);
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

  bool read_loads(Memory* memory) {
    std::vector<std::pair<Place, uint64_t>> loaded;
    for (const Place& load : loads_) {
      qplan::sim::JobFile file;
      if (!find_file(load.file, &file) || !is_inside(load, file.bytes()) || !count_loaded(file.bytes()))
        return false;
      std::vector<uint8_t> bytes(file.bytes());
      if (!read_found(file, bytes.data())) return false;
      memory->define(load.region, load.offset, bytes.data(), bytes.size());
      loaded.emplace_back(load, bytes.size());
    }
    return covers_read_only(loaded);
  }

  const Config* config_ = nullptr;
  std::array<Region, kMaxRegions> regions_;
  std::vector<Place> loads_;
  std::vector<Check> checks_;
  std::vector<uint64_t> check_bytes_;
  std::string payload_;
  bool has_target_ = false, has_run_ = false;
  uint64_t total_ = 0;     // bytes of all regions
  uint64_t compared_ = 0;  // of all checks
};

}  // namespace

qplan::sim::Fault replay_ethosu(const std::string& directory, const qplan::sim::Options& options,
                                qplan_npu_report* report) {
  return Replay(directory, options).run(report);
}

}  // namespace qplan::ethosu::sim
