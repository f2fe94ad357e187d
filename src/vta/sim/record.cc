#include "src/vta/sim/record.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "qplan/host.h"
#include "src/vta/sim/memory.h"
#include "src/vta/sim/text.h"

namespace qplan::sim {
namespace {

constexpr uint8_t kUnmet = 0xa5;

bool write_file(const std::filesystem::path& path, const void* bytes, size_t size, std::string* error) {
  qplan_error why = {};
  why.struct_size = sizeof(why);
  if (qplan_file_write(path.string().c_str(), bytes, size, &why) == QPLAN_OK) return true;
  *error = why.text;
  return false;
}

// What a writable segment must hold before the run; empty: anything.
std::vector<uint8_t> needed_before(const Segment& segment, const std::vector<uint8_t>& before) {
  std::vector<uint8_t> bytes = before;
  bool is_needed = false;
  for (uint64_t b = 0; b < segment.bytes; ++b) {
    const Touches& touches = segment.touches[b / kGranule];
    const bool keeps = touches.stored == 0 || touches.was_read_first != 0;
    if (!keeps) bytes[b] = kUnmet;
    is_needed |= touches.was_read_first != 0 || (keeps && segment.is_output);
  }
  return is_needed ? bytes : std::vector<uint8_t>();
}

}  // namespace

Recording::Recording(const Dram& dram) {
  for (const Segment& segment : dram.segments()) {
    before_.emplace_back();
    if (segment.is_writable) before_.back().assign(segment.memory, segment.memory + segment.bytes);
  }
}

bool Recording::write(const std::string& directory, uint64_t job, const vta::Config& config,
                      const std::vector<vta::Instruction>& stream, const Dram& dram,
                      std::string* error) const {
  std::string number = std::to_string(job);
  if (number.size() < 4) number.insert(0, 4 - number.size(), '0');
  const std::filesystem::path path = std::filesystem::path(directory) / ("job-" + number);
  std::error_code code;
  const bool is_new = std::filesystem::create_directories(path, code);
  if (code) {
    *error = "cannot make '" + path.string() + "': " + code.message();
    return false;
  }
  if (write_files(path, config, stream, dram, error)) return true;
  if (is_new)
    std::filesystem::remove_all(path, code);  // a part of a job is of no use, and the disk may be full
  return false;
}

bool Recording::write_files(const std::filesystem::path& path, const vta::Config& config,
                            const std::vector<vta::Instruction>& stream, const Dram& dram,
                            std::string* error) const {
  uint64_t end = kArenaBase;
  for (const Segment& segment : dram.segments()) end = std::max(end, segment.address + segment.bytes);
  const uint64_t size = (end - kArenaBase + kPageBytes - 1) / kPageBytes * kPageBytes;
  std::string text = "target vta\nbase " + hexadecimal(kArenaBase) + "\nsize " + hexadecimal(size) + "\n";
  std::string checks;
  for (size_t i = 0; i < dram.segments().size(); ++i) {
    const Segment& segment = dram.segments()[i];
    const std::string name = std::to_string(i) + ".bin";
    if (!segment.is_writable) {
      text += "load " + hexadecimal(segment.address) + " load-" + name + "\n";
      if (!write_file(path / ("load-" + name), segment.memory, segment.bytes, error)) return false;
      continue;
    }
    const std::vector<uint8_t> before = needed_before(segment, before_[i]);
    if (!before.empty()) {
      text += "load " + hexadecimal(segment.address) + " load-" + name + "\n";
      if (!write_file(path / ("load-" + name), before.data(), before.size(), error)) return false;
    }
    if (!segment.is_output) continue;
    checks +=
        "check " + hexadecimal(segment.address) + " " + hexadecimal(segment.bytes) + " check-" + name + "\n";
    if (!write_file(path / ("check-" + name), segment.memory, segment.bytes, error)) return false;
  }
  std::vector<uint8_t> instructions(stream.size() * vta::kInstructionBytes);
  for (size_t i = 0; i < stream.size(); ++i) {
    (void)encode(config, stream[i], instructions.data() + i * vta::kInstructionBytes);
  }
  text += "run instructions.bin\n" + checks;
  return write_file(path / "instructions.bin", instructions.data(), instructions.size(), error) &&
         write_file(path / "job.txt", text.data(), text.size(), error);
}

}  // namespace qplan::sim
