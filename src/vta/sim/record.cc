#include "src/vta/sim/record.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include "qplan/host.h"
#include "src/vta/sim/machine.h"
#include "src/vta/sim/options.h"

namespace qplan::sim {
namespace {

constexpr size_t kMaxQuoted = 60;  // a report's text has 160 characters in all

int open_retrying(int directory, const char* name, int flags) {
  for (;;) {
    const int fd = ::openat(directory, name, flags | O_CLOEXEC);
    if (fd >= 0 || errno != EINTR) return fd;
  }
}

bool cannot(const char* what, const std::string& name, std::string* error) {
  const int reason = errno;
  *error = std::string("cannot ") + what + " " + sim::in_quotes(name) + ": " +
           std::generic_category().message(reason);
  return false;
}

// One component of a path: nothing that leads elsewhere.
bool is_plain(std::string_view part) {
  return !part.empty() && part != "." && part != ".." && part.find('\0') == std::string_view::npos;
}

}  // namespace

std::filesystem::path job_path(const std::string& directory, uint64_t job) {
  std::string number = std::to_string(job);
  if (number.size() < 4) number.insert(0, 4 - number.size(), '0');
  return std::filesystem::path(directory) / ("job-" + number);
}

bool write_job(const std::string& directory, uint64_t job,
               const std::function<bool(const std::filesystem::path& path)>& write, std::string* error) {
  const std::filesystem::path path = job_path(directory, job);
  std::error_code code;
  const bool is_new = std::filesystem::create_directories(path, code);
  if (code) {
    *error = "cannot make '" + path.string() + "': " + code.message();
    return false;
  }
  if (write(path)) return true;
  if (is_new) std::filesystem::remove_all(path, code);
  return false;
}

bool write_file(const std::filesystem::path& path, const void* bytes, size_t size, std::string* error) {
  qplan_error why = {};
  why.struct_size = sizeof(why);
  if (qplan_file_write(path.string().c_str(), bytes, size, &why) == QPLAN_OK) return true;
  *error = why.text;
  return false;
}

std::string in_quotes(std::string_view text) {
  const bool is_cut = text.size() > kMaxQuoted;
  std::string result = "'" + std::string(text.substr(0, is_cut ? kMaxQuoted - 3 : text.size()));
  for (char& c : result) {
    if (static_cast<unsigned char>(c) < ' ' || c == '\x7f') c = '?';
  }
  return result + (is_cut ? "...'" : "'");
}

Descriptor::~Descriptor() {
  if (fd_ >= 0) ::close(fd_);
}

bool JobFile::read(uint8_t* to, std::string* error) const {
  for (uint64_t at = 0; at < bytes_;) {
    constexpr uint64_t kMost = uint64_t{1} << 30;  // what one call can count on every system
    const ssize_t count = ::pread(file_.get(), to + at, std::min(bytes_ - at, kMost), static_cast<off_t>(at));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return cannot("read", name_, error);
    if (count == 0) {
      *error = "cannot read " + sim::in_quotes(name_) + ": it became shorter while it was read";
      return false;
    }
    at += static_cast<uint64_t>(count);
  }
  return true;
}

bool JobFiles::open(const std::string& directory, std::string* error) {
  directory_ = Descriptor(open_retrying(AT_FDCWD, directory.c_str(), O_RDONLY | O_DIRECTORY));
  return directory_.get() >= 0 || cannot("open directory", directory, error);
}

bool JobFiles::find(std::string_view name, JobFile* file, std::string* error) const {
  *file = JobFile();
  file->name_ = name;
  const auto refuse = [&](const char* why) {
    *error = sim::in_quotes(name) + " " + why;
    return false;
  };
  Descriptor folder;
  int at = directory_.get();
  std::string_view rest = name;
  for (size_t slash; (slash = rest.find('/')) != std::string_view::npos; rest.remove_prefix(slash + 1)) {
    const std::string part(rest.substr(0, slash));
    if (!is_plain(part)) return refuse("is outside the job's directory; a job may only name files inside it");
    folder = Descriptor(open_retrying(at, part.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
    if (folder.get() < 0) return cannot("open", file->name_, error);
    at = folder.get();
  }
  if (!is_plain(rest)) return refuse("is outside the job's directory; a job may only name files inside it");
  const std::string last(rest);
  // Looked at before it is opened: opening a device can have effects of its own.
  struct stat status = {};
  if (::fstatat(at, last.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0)
    return cannot("read", file->name_, error);
  if (!S_ISREG(status.st_mode))
    return refuse("is not a regular file; a job names no links, pipes or devices");
  // And after it, since it may have become something else; a pipe without a writer must not be waited for.
  file->file_ = Descriptor(open_retrying(at, last.c_str(), O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY));
  if (file->file_.get() < 0 || ::fstat(file->file_.get(), &status) != 0) {
    return cannot("read", file->name_, error);
  }
  if (!S_ISREG(status.st_mode))
    return refuse("is not a regular file; a job names no links, pipes or devices");
  file->bytes_ = static_cast<uint64_t>(status.st_size);
  return true;
}

namespace {

constexpr uint8_t kUnmet = 0xa5;

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

struct Range {
  uint64_t begin, end;
};

// The bytes of a segment that the job stored.
std::vector<Range> stored_ranges(const Segment& segment) {
  std::vector<Range> ranges;
  for (uint64_t b = 0; b < segment.bytes; b += kGranule) {
    if (segment.touches[b / kGranule].stored == 0) continue;
    const uint64_t end = std::min(b + kGranule, segment.bytes);
    if (!ranges.empty() && ranges.back().end == b) {
      ranges.back().end = end;
    } else {
      ranges.push_back({b, end});
    }
  }
  return ranges;
}

}  // namespace

Recording::Recording(const Dram& dram) {
  for (const Segment& segment : dram.segments()) {
    before_.emplace_back();
    if (segment.is_writable) before_.back().assign(segment.memory, segment.memory + segment.bytes);
  }
}

bool Recording::write(const std::string& directory, bool is_all, uint64_t job, const vta::Config& config,
                      const std::vector<vta::Instruction>& stream, const Dram& dram,
                      std::string* error) const {
  return write_job(
      directory, job,
      [&](const std::filesystem::path& path) {
        return write_files(path, is_all, config, stream, dram, error);
      },
      error);
}

bool Recording::write_files(const std::filesystem::path& path, bool is_all, const vta::Config& config,
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
    if (!segment.is_output && !is_all) continue;
    const auto ranges = segment.is_output ? std::vector<Range>{{0, segment.bytes}} : stored_ranges(segment);
    for (size_t r = 0; r < ranges.size(); ++r) {
      const std::string file =
          "check-" + (segment.is_output ? name : std::to_string(i) + "-" + std::to_string(r) + ".bin");
      const uint64_t bytes = ranges[r].end - ranges[r].begin;
      checks += "check " + hexadecimal(segment.address + ranges[r].begin) + " " + hexadecimal(bytes) + " " +
                file + "\n";
      if (!write_file(path / file, segment.memory + ranges[r].begin, bytes, error)) return false;
    }
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
