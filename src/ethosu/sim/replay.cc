#include <string>
#include <utility>
#include <vector>

#include "src/ethosu/isa/check_stream.h"
#include "src/ethosu/isa/commands.h"
#include "src/ethosu/sim/device.h"
#include "src/ethosu/sim/machine.h"
#include "src/vta/sim/record.h"

namespace qplan::ethosu::sim {
namespace {

constexpr uint64_t kMaxPayloadBytes = kMaxStreamBytes + uint64_t{4096};
// The simulator remembers of each writable byte who touched it.
constexpr uint64_t kMemoryPerWritable = 16;

class Replay : qplan::sim::RegionJob {
 public:
  Replay(std::string directory, const qplan::sim::Options& options)
      : RegionJob(std::move(directory), options, "ethosu", kMaxRegions) {}

  qplan::sim::Fault run(qplan_npu_report* report) {
    std::vector<uint32_t> stream;
    if (!read_job() || !limits_writable() || !read_payload(&stream) || !read_checks() || !read_loads())
      return fault_;
    Memory memory(*config_);
    for (uint32_t r = 0; r < kMaxRegions; ++r) {
      Region& region = regions_[r];
      if (region.is_known)
        memory.set_region(r, region.bytes.data(), region.size, !region.is_read_only, region.is_read_only);
    }
    for (const Place& load : loads_) memory.mark_defined(load.region, load.offset, load.size);
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
    (void)compare_checks();
    return fault_;
  }

 private:
  bool limits_writable() {
    uint64_t writable = 0;
    for (const Region& region : regions_) writable += region.is_read_only ? 0 : region.size;
    return writable <= options_.memory_bytes / kMemoryPerWritable ||
           malformed("the job may write " + std::to_string(writable) +
                     " bytes, the simulator keeps track of " +
                     std::to_string(options_.memory_bytes / kMemoryPerWritable) +
                     "; readonly regions count less, option memory=BYTES allows more");
  }

  bool read_payload(std::vector<uint32_t>* stream) {
    std::vector<uint8_t> bytes;
    if (!read_file(run_, kMaxPayloadBytes, &bytes)) return false;
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

  const Config* config_ = nullptr;
};

}  // namespace

qplan::sim::Fault replay_ethosu(const std::string& directory, const qplan::sim::Options& options,
                                qplan_npu_report* report) {
  return Replay(directory, options).run(report);
}

}  // namespace qplan::ethosu::sim
