#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>

#include "src/ethosu/compiler/target.h"
#include "src/ethosu/isa/stream.h"
#include "src/packer/error.h"
#include "src/packer/ir/cat.h"
#include "src/packer/op/attributes.h"

namespace qplan::ethosu::compiler {
namespace {

using target::Candidate;
using target::CompiledRegion;

// The base pointers of Arm's compiler.
enum BasePointer : uint32_t { kConstants = 0, kMemory = 1, kFastMemory = 2 };
constexpr std::string_view kFormat = "ethos-u";
constexpr std::string_view kAdvice = "; compile the model again with Vela";

// A sentence about the Problem; numbers only where they differ.
std::string text_of(const char* text, int64_t found, int64_t limit) {
  return found == limit ? std::string(text) : cat(text, ", found ", found, ", expected ", limit);
}

// A set of bytes of one memory, as disjoint ranges.
class ByteSet {
 public:
  void add(uint64_t begin, uint64_t end) {
    if (begin >= end) return;
    auto at = ends_.upper_bound(begin);
    if (at != ends_.begin() && std::prev(at)->second >= begin) --at;
    while (at != ends_.end() && at->first <= end) {
      begin = std::min(begin, at->first);
      end = std::max(end, at->second);
      at = ends_.erase(at);
    }
    ends_.emplace(begin, end);
  }

  // The first byte from `begin` on that is not in the set.
  uint64_t first_missing(uint64_t begin) const {
    const auto after = ends_.upper_bound(begin);
    return after == ends_.begin() ? begin : std::max(begin, std::prev(after)->second);
  }

 private:
  std::map<uint64_t, uint64_t> ends_;  // by begin; no two touch
};

// A node's program: its parts, and what it takes.
class Program {
 public:
  Program(const Config& config, const ir::Function& function, const ir::Node& node)
      : config_(config), function_(function), node_(node), attributes_(op::program_of(node)) {
    if (const Problem p = read_payload(bytes().data(), bytes().size(), &payload_))
      fail(cat(text_of(p.text, p.found, p.limit), kAdvice));
    // Most programs leave the fast memory alone, which then needs no bytes.
    uint32_t word = 0;
    if (!check(0, &word)) return;
    if (const Problem p = check(attributes_.fast_memory_bytes, &word)) {
      fail(cat("word ", word, " of its command stream: ", text_of(p.text, p.found, p.limit), kAdvice));
    }
    uses_fast_memory_ = true;
    // Only a U65 that spills has two memories; elsewhere Arm's driver gives one address for both.
    if (config_.is_u65 && attributes_.fast_memory_bytes != attributes_.memory_bytes) return;
    throw PackError(
        QPLAN_MODEL_UNSUPPORTED,
        cat(config_.name, ": program '", node_.name,
            "': its command stream uses the fast scratch memory (region 2), which is one with the "
            "other scratch memory (region 1) unless a U65 has a fast scratch tensor of its own",
            kAdvice));
  }

  const op::ProgramAttributes& attributes() const { return attributes_; }
  std::span<const uint8_t> bytes() const { return constant(0); }
  std::span<const uint8_t> constants() const {
    return attributes_.has_constants ? constant(1) : std::span<const uint8_t>();
  }
  // The first byte at or after `begin` that neither belongs to an input nor is written by an operation.
  uint64_t first_undefined(uint64_t begin) const { return defined_.first_missing(begin); }
  bool uses_fast_memory() const { return uses_fast_memory_; }
  const StreamWork& work() const { return work_; }
  // A U65 that spills has its arena in the memory of the constants, and fast memory beside it.
  Memories memories() const {
    Memories memories = default_memories(config_);
    if (uses_fast_memory_) memories.of[kMemory] = memories.of[kConstants];
    return memories;
  }
  uint64_t cycles() const { return stream_cycles(config_, memories(), payload_).cycles; }
  [[noreturn]] void fail(const std::string& text) const {
    throw PackError(QPLAN_MODEL_INVALID, cat(config_.name, ": program '", node_.name, "': ", text));
  }

 private:
  std::span<const uint8_t> constant(size_t operand) const {
    return function_.value(node_.operands[operand]).constant->bytes();
  }

  Problem check(uint64_t fast_memory_bytes, uint32_t* word) {
    RegionLimits limits;
    limits.bytes[kConstants] = constants().size();
    limits.bytes[kMemory] = attributes_.memory_bytes, limits.is_writable[kMemory] = true;
    limits.bytes[kFastMemory] = fast_memory_bytes, limits.is_writable[kFastMemory] = true;
    defined_ = {};
    const size_t first = op::first_input(attributes_);
    for (size_t i = first; i < node_.operands.size(); ++i) {
      const uint64_t begin = attributes_.input_offsets[i - first];
      defined_.add(begin, begin + static_cast<uint64_t>(function_.type(node_.operands[i]).size_bytes()));
    }
    const WriteObserver writes = {[](void* defined, const ByteRange& range) {
                                    if (range.region != kMemory) return;
                                    static_cast<ByteSet*>(defined)->add(range.begin,
                                                                        range.begin + range.bytes);
                                  },
                                  &defined_};
    return check_stream(config_, payload_, limits, word, &work_, &writes);
  }

  const Config& config_;
  const ir::Function& function_;
  const ir::Node& node_;
  const op::ProgramAttributes attributes_;
  Payload payload_;
  bool uses_fast_memory_ = false;
  ByteSet defined_;  // of the memory, after a run
  StreamWork work_;
};

// The blob's regions and slots, and the plan's.
class Writer {
 public:
  Writer(const Config& config, const ir::Function& region)
      : config_(config), region_(region), node_(region.nodes()[0]), program_(config, region, node_) {}

  CompiledRegion run() {
    add_region(RegionKind::kConstants, program_.constants().size());
    add_region(RegionKind::kBound, program_.attributes().memory_bytes);
    if (program_.uses_fast_memory()) add_region(RegionKind::kBound, program_.attributes().fast_memory_bytes);
    for (uint32_t r = kMemory; r < parts_.regions.size(); ++r) add_scratch(r);
    add_inputs();
    add_outputs();
    parts_.payload.assign(program_.bytes().begin(), program_.bytes().end());
    parts_.constants.assign(program_.constants().begin(), program_.constants().end());
    parts_.labels = {{0, cat(node_.name, ", a program of Arm's compiler")}};
    parts_.cycles = program_.work().total_cycles;

    result_.format = kBlobMagic;
    result_.has_fallback = false;
    result_.macs = program_.work().macs;
    result_.cycles = std::max<uint64_t>(1, program_.cycles());
    result_.program_bytes = parts_.payload.size() + parts_.constants.size();
    result_.units = {{node_.name, result_.cycles, 0}};
    state_memories(program_.memories(), &parts_, &result_.slots);
    result_.memory_class = static_cast<format::MemoryClass>(parts_.regions[kConstants].memory_class);
    result_.blob = write_blob(config_, parts_);
    check();
    return std::move(result_);
  }

 private:
  void add_region(RegionKind kind, uint64_t bytes) {
    parts_.regions.push_back({static_cast<uint32_t>(kind), 0, bytes, 0});
  }

  target::RegionSlot& add_slot(uint32_t usage, uint32_t region, uint64_t offset, uint64_t bytes) {
    target::RegionSlot& slot = result_.slots.emplace_back();
    slot.slot = static_cast<uint32_t>(parts_.slots.size());
    slot.arrangement.size = bytes;
    parts_.slots.push_back({usage, region, offset, bytes});
    return slot;
  }

  // Before inputs and outputs, which are parts of it.
  void add_scratch(uint32_t region) {
    add_slot(QPLAN_NPU_USE_SCRATCH, region, 0, parts_.regions[region].bytes).use = format::NpuUse_SCRATCH;
  }

  void add_tensor(uint32_t usage, format::NpuUse use, uint32_t index, const ir::TensorType& type,
                  uint64_t offset) {
    target::RegionSlot& slot = add_slot(usage, kMemory, offset, static_cast<uint64_t>(type.size_bytes()));
    slot.use = use;
    slot.index = index;
    slot.arrangement = target::packed_arrangement(type);
  }

  void add_inputs() {
    const size_t first = op::first_input(program_.attributes());
    std::vector<bool> is_bound(region_.params().size(), false);
    for (size_t i = first; i < node_.operands.size(); ++i) {
      const auto param = std::ranges::find(region_.params(), node_.operands[i]);
      const auto index = static_cast<size_t>(param - region_.params().begin());
      if (param == region_.params().end() || is_bound[index]) {
        throw PackError(QPLAN_MODEL_UNSUPPORTED,
                        cat(config_.name, ": program '", node_.name, "': input ", i - first,
                            param == region_.params().end() ? " is a constant" : " is another input too",
                            ", expected an activation of its own; pack the file that Vela was given"));
      }
      is_bound[index] = true;
      add_tensor(QPLAN_NPU_USE_INPUT, format::NpuUse_INPUT, static_cast<uint32_t>(index),
                 region_.type(node_.operands[i]), program_.attributes().input_offsets[i - first]);
    }
  }

  // The region's outputs are those results that something reads.
  void add_outputs() {
    for (size_t o = 0; o < region_.outputs().size(); ++o) {
      const auto result = std::ranges::find(node_.results, region_.outputs()[o]) - node_.results.begin();
      const ir::TensorType& type = region_.type(region_.outputs()[o]);
      const uint64_t offset = program_.attributes().output_offsets[static_cast<size_t>(result)];
      const auto bytes = static_cast<uint64_t>(type.size_bytes());
      if (const uint64_t missing = program_.first_undefined(offset); missing < offset + bytes) {
        program_.fail(cat("output ", result, " has ", bytes, " bytes from ", offset,
                          " of its memory on, and no operation writes byte ", missing, kAdvice));
      }
      add_tensor(QPLAN_NPU_USE_OUTPUT, format::NpuUse_OUTPUT, static_cast<uint32_t>(o), type, offset);
    }
  }

  // The loader's own checks. The parts are the file's, and so are their faults.
  void check() const {
    Blob blob;
    qplan_npu_reason why = {};
    if (read_blob(result_.blob.data(), result_.blob.size(), config_, &blob, &why) == QPLAN_NPU_OK) return;
    program_.fail(cat(text_of(why.text, why.actual, why.limit), kAdvice));
  }

  const Config& config_;
  const ir::Function& region_;
  const ir::Node& node_;
  const Program program_;
  BlobParts parts_;
  CompiledRegion result_;
};

}  // namespace

target::PatternRow program_row(const Config& config) {
  const std::string name(op::kProgramOperator);
  const target::Constraint same_config = {
      "ethosu.program.config", "it was compiled for the same configuration",
      "name that configuration in --target, or compile the network again", [&config](const Candidate& c) {
        const op::ProgramAttributes program = op::program_of(c.root());
        if (program.format == kFormat && program.device == config.name) return std::string();
        if (program.format != kFormat)
          return cat("it is a program of format '", program.format, "', this device runs '", kFormat, "'");
        return cat("it is a program for '", program.device, "', this device is '", config.name, "'");
      }};
  return {.name = name,
          .summary = "Program of Arm's compiler (custom operator `ethos-u` of a .tflite file), as it is",
          .pattern = pattern::op(name),
          .constraints = {same_config},
          .cycles =
              [&config](const Candidate& c, const target::DeviceCosts&) {
                return Program(config, c.function(), c.root()).cycles();
              },
          .is_program = true};
}

CompiledRegion compile_program(const Config& config, const ir::Function& region) {
  return Writer(config, region).run();
}

}  // namespace qplan::ethosu::compiler
