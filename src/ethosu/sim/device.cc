#include "src/ethosu/sim/device.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "qplan/npu_op.h"
#include "src/ethosu/isa/architecture.h"
#include "src/ethosu/isa/stream.h"
#include "src/ethosu/sim/machine.h"
#include "src/vta/sim/options.h"
#include "src/vta/sim/record.h"

namespace qplan::ethosu::sim {
namespace {

using qplan::sim::copy_text;
using qplan::sim::FaultKind;
using qplan::sim::FaultRule;
using qplan::sim::Job;
using qplan::sim::Program;
using qplan::sim::ProgramRegion;
using qplan::sim::RecordedBytes;
using qplan::sim::RecordedJob;

constexpr uint32_t kBufferAlignment = 16;

bool is_kind(const BlobRegion& region, RegionKind kind) { return region.kind == static_cast<uint32_t>(kind); }

ProgramRegion slot_region(const BlobSlot& slot, uint32_t index) {
  ProgramRegion region;
  const bool is_input = slot.usage == QPLAN_NPU_USE_INPUT, is_output = slot.usage == QPLAN_NPU_USE_OUTPUT;
  region.kind = is_input    ? vta::RegionKind::kInput
                : is_output ? vta::RegionKind::kOutput
                            : vta::RegionKind::kScratch;
  region.bytes = slot.bytes;
  region.alignment = kBufferAlignment;
  region.is_initialised = is_input;
  region.name = std::string(is_input    ? "input"
                            : is_output ? "output"
                                        : "scratch") +
                " (slot " + std::to_string(index) + ")";
  return region;
}

qplan::sim::Fault fault_from(const Fault& from) {
  qplan::sim::Fault fault;
  fault.status = from.status;
  fault.instruction = from.word;
  fault.text = from.text;
  return fault;
}

// Checks of what operations wrote and the outputs are not.
void add_written(const Memory& memory, RecordedJob* record) {
  const std::vector<RecordedBytes> outputs = record->checks;
  for (uint32_t r = 0; r < record->regions.size(); ++r) {
    const auto is_written = [&](uint64_t at) {
      const Touch* const touch = memory.touch(r, at);
      if (touch == nullptr || (touch->kernel_write == 0 && touch->dma_write == 0)) return false;
      return std::ranges::none_of(outputs, [&](const RecordedBytes& output) {
        return output.region == r && at >= output.offset && at - output.offset < output.bytes.size();
      });
    };
    const uint8_t* const data = memory.region(r).data;
    for (uint64_t at = 0; at < record->regions[r].bytes;) {
      if (!is_written(at)) {
        ++at;
        continue;
      }
      const uint64_t begin = at;
      while (at < record->regions[r].bytes && is_written(at)) ++at;
      record->checks.push_back({r, begin, {data + begin, data + at}});
    }
  }
}

}  // namespace

RecordedJob recorded_job(const std::vector<BlobRegion>& regions, const std::vector<uint8_t>& payload) {
  RecordedJob record;
  record.head = "target ethosu\n";
  record.program_file = "payload.bin";
  record.program = &payload;
  for (const BlobRegion& region : regions)
    record.regions.push_back({region.bytes, is_kind(region, RegionKind::kConstants)});
  return record;
}

EthosuDevice::EthosuDevice(const qplan_device_hooks* hooks, qplan::sim::Options options, const Config& config)
    : Device(hooks, std::move(options)), config_(config) {}

EthosuDevice::~EthosuDevice() { (void)close(); }

void EthosuDevice::describe(qplan_npu_capabilities* c) const {
  qplan::sim::fill_capabilities(options(), c);
  copy_text("Arm", c->vendor, sizeof(c->vendor));
  copy_text(config_.name, c->target, sizeof(c->target));
  c->hash = config_hash(config_);
  c->blob_formats[0] = kBlobMagic;
  std::fill(std::begin(c->onchip_bytes), std::end(c->onchip_bytes), 0);
  c->onchip_bytes[0] = config_.banks * kBankBytes;
  c->channel_pack = 1;
  c->max_binds = kMaxSlots;
  c->address_bits = address_bits(config_);
  c->contracts = c->contracts_per_channel = QPLAN_NPU_TFL2;
  c->pad_value = 1;
  c->clock_khz = config_.clock_khz;
  c->memory_classes = 1u << QPLAN_NPU_MEMORY_CLASS_SRAM | 1u << QPLAN_NPU_MEMORY_CLASS_DRAM;
}

// The packer has the conditions; a driver that knows command streams alone cannot judge operators.
std::vector<qplan_npu_reason> EthosuDevice::why_unsupported(const qplan_npu_op&) const {
  qplan_npu_reason why = {};
  why.code = 1;
  copy_text("ethos-u takes command streams only; the packer's target says which operators it compiles",
            why.text, sizeof(why.text));
  return {why};
}

qplan_npu_status EthosuDevice::read(const void* bytes, uint64_t size, std::shared_ptr<Program>* program,
                                    qplan_npu_reason* why) const {
  Blob blob;
  const qplan_npu_status status = read_blob(bytes, size, config_, &blob, why);
  if (status != QPLAN_NPU_OK) return status;
  auto result = std::make_shared<EthosuProgram>();
  const uint8_t* const payload = blob.bytes + blob.header.payload_offset;
  result->payload.assign(payload, payload + blob.header.payload_bytes);
  for (uint32_t i = 0; i < blob.payload.stream_words; ++i)
    result->words.push_back(load_word(blob.payload.stream + uint64_t{i} * 4));
  result->memory_bytes = blob.header.payload_bytes;
  for (uint32_t r = 0; r < blob.header.num_regions; ++r) {
    result->blob_regions.push_back(blob_region(blob, r));
    result->memory_bytes = (result->memory_bytes + 15) / 16 * 16;
    result->offsets.push_back(result->memory_bytes);
    if (!is_kind(result->blob_regions[r], RegionKind::kBound))
      result->memory_bytes += result->blob_regions[r].bytes;
  }
  for (uint32_t s = 0; s < blob.header.num_slots; ++s) {
    result->slots.push_back(blob_slot(blob, s));
    result->is_copied.push_back(is_copied_slot(blob, s));
    result->regions.push_back(slot_region(result->slots[s], s));
    result->regions[s].memory_class = slot_memory_class(blob, s);
  }
  result->num_instructions = result->words.size();
  result->estimated_cycles = blob.header.estimated_cycles;
  result->memory_class = constants_memory_class(blob);
  *program = std::move(result);
  return QPLAN_NPU_OK;
}

void EthosuDevice::place(const void* blob, Program* base) const {
  const auto& program = static_cast<const EthosuProgram&>(*base);
  std::memcpy(base->memory.data(), program.payload.data(), program.payload.size());
  for (size_t r = 0; r < program.blob_regions.size(); ++r) {
    const BlobRegion& region = program.blob_regions[r];
    if (!is_kind(region, RegionKind::kConstants)) continue;
    std::memcpy(base->memory.data() + program.offsets[r],
                static_cast<const uint8_t*>(blob) + region.data_offset, region.bytes);
  }
}

qplan::sim::Fault EthosuDevice::play(Job& job, const FaultRule* rule) {
  try {
    return execute(job, rule);
  } catch (const std::bad_alloc&) {
    return {QPLAN_NPU_E_MEMORY, QPLAN_NPU_NO_INSTRUCTION, 0, "no memory for what a kernel reads"};
  }
}

qplan::sim::Fault EthosuDevice::execute(Job& job, const FaultRule* rule) {
  const auto& program = static_cast<const EthosuProgram&>(*job.program);
  const auto& segments = job.dram.segments();  // one for each slot
  Memory memory(config_);
  RecordedJob record = recorded_job(program.blob_regions, program.payload);
  for (uint32_t r = 0; r < program.blob_regions.size(); ++r) {
    const BlobRegion& region = program.blob_regions[r];
    const bool is_constant = is_kind(region, RegionKind::kConstants);
    if (is_kind(region, RegionKind::kBound)) continue;
    uint8_t* const data = program.memory.data() + program.offsets[r];
    if (!is_constant) std::memset(data, kStale, region.bytes);
    memory.set_region(r, data, region.bytes, !is_constant, is_constant);
    if (is_constant) record.loads.push_back({r, 0, {data, data + region.bytes}});
  }
  for (size_t s = 0; s < segments.size(); ++s) {
    const BlobSlot& slot = program.slots[s];
    const bool is_input = slot.usage == QPLAN_NPU_USE_INPUT;
    if (!program.is_copied[s]) {
      if (!is_input) std::memset(segments[s].memory, kStale, slot.bytes);
      record.regions[slot.region].is_constant = is_input;
      memory.set_region(slot.region, segments[s].memory, slot.bytes, !is_input, is_input);
    } else if (is_input) {
      memory.define(slot.region, slot.offset, segments[s].memory, slot.bytes);
    }
    if (is_input)
      record.loads.push_back(
          {slot.region, slot.offset, {segments[s].memory, segments[s].memory + slot.bytes}});
  }
  Machine machine(config_, &memory);
  machine.stop = &job.stop;
  if (rule != nullptr) {
    machine.before = [&](uint32_t word, Fault* fault) {
      // A command may have two words: the first one from there on.
      if (rule->instruction != qplan::sim::kAnyInstruction && word < rule->instruction) return;
      const qplan::sim::Fault injected = qplan::sim::injected_fault(*rule, word);
      fault->status = injected.status;
      fault->text = injected.text;
    };
  }
  const Outcome outcome = machine.run(program.words);
  if (outcome.fault.is_set()) return fault_from(outcome.fault);

  // Outputs that are parts of a region go to their buffers.
  for (size_t s = 0; s < segments.size(); ++s) {
    const BlobSlot& slot = program.slots[s];
    if (slot.usage != QPLAN_NPU_USE_OUTPUT) continue;
    for (uint64_t b = slot.offset; b < slot.offset + slot.bytes; ++b) {
      const Touch* const touch = memory.touch(slot.region, b);
      if (touch != nullptr && touch->is_defined) continue;
      return {QPLAN_NPU_E_HAZARD, QPLAN_NPU_NO_INSTRUCTION, 0,
              "byte " + std::to_string(b) + " of region " + std::to_string(slot.region) +
                  " is part of an output, and nobody wrote it"};
    }
    const uint8_t* const made = memory.region(slot.region).data + slot.offset;
    record.checks.push_back({slot.region, slot.offset, {made, made + slot.bytes}});
    if (program.is_copied[s]) std::memcpy(segments[s].memory, made, slot.bytes);
  }
  if (options().records_all) add_written(memory, &record);
  std::string error;
  if (!options().record.empty() && !write_record(options().record, job.number, record, &error))
    log(QPLAN_LOG_ERROR, "record: " + error);
  if (rule != nullptr && rule->kind == FaultKind::kSilentBitFlip) {
    for (const auto& segment : segments) {
      if (!segment.is_output || segment.bytes == 0) continue;
      segment.memory[0] ^= 0x40;
      break;
    }
  }
  job.report.cycles = outcome.cycles;
  job.report.busy_cycles = outcome.busy_cycles;
  job.report.bytes_read = outcome.bytes_read;
  job.report.bytes_written = outcome.bytes_written;
  job.report.macs = outcome.macs;
  return {};
}

qplan_npu_status list_blob(const Config& config, const void* bytes, uint64_t size,
                           const std::function<void(const std::string&)>& line, qplan_npu_reason* why) {
  Blob blob;
  const qplan_npu_status status = read_blob(bytes, size, config, &blob, why);
  if (status != QPLAN_NPU_OK) return status;
  line(std::string("target ") + config.name);
  for (uint32_t r = 0; r < blob.header.num_regions; ++r) {
    const BlobRegion region = blob_region(blob, r);
    line("region " + std::to_string(r) + ": " + region_kind_name(static_cast<RegionKind>(region.kind)) +
         ", " + std::to_string(region.bytes) + " bytes, memory " +
         qplan_npu_memory_class_name(region.memory_class));
  }
  for (uint32_t s = 0; s < blob.header.num_slots; ++s) {
    const BlobSlot slot = blob_slot(blob, s);
    line("slot " + slot_region(slot, s).name + ": region " + std::to_string(slot.region) + " from " +
         std::to_string(slot.offset) + ", " + std::to_string(slot.bytes) + " bytes");
  }
  std::vector<uint32_t> words;
  for (uint32_t i = 0; i < blob.payload.stream_words; ++i)
    words.push_back(load_word(blob.payload.stream + uint64_t{i} * 4));
  std::string node;
  for (uint32_t at = 0; at < words.size();) {
    const uint32_t word = at;
    Command command;
    if (decode(words.data(), static_cast<uint32_t>(words.size()), &at, &command)) return QPLAN_NPU_E_BLOB;
    if (node != blob_node(blob, word)) {
      node = blob_node(blob, word);
      line(node + ":");
    }
    char text[kDisassemblyBytes];
    disassemble(command, text);
    const std::string number = std::to_string(word);
    line((number.size() < 6 ? std::string(6 - number.size(), ' ') : "") + number + "  " + text);
  }
  line(std::to_string(blob.header.estimated_cycles) + " cycles");
  return QPLAN_NPU_OK;
}

// ---- recorded jobs

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
