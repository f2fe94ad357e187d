#include "tools/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <map>
#include <new>
#include <string_view>
#include <system_error>

#include "qplan/host.h"
#include "src/base/text.h"
#include "tools/command.h"

namespace qplan::tools {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(std::string_view what, const std::string& path, const std::string& reason) {
  throw Failure(std::string(what) + " '" + path + "': " + reason);
}

// Closes on every way out.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  [[nodiscard]] int get() const { return fd_; }

 private:
  int fd_;
};

}  // namespace

std::vector<uint8_t> read_file(const std::string& path, std::string_view what, const ReadLimit& limit) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) fail(what, path, std::strerror(errno));
  struct stat status;
  if (::fstat(file.get(), &status) != 0) fail(what, path, std::strerror(errno));
  if (S_ISDIR(status.st_mode)) fail(what, path, "is a directory, expected a file");
  constexpr size_t kPiece = 1 << 16;
  std::vector<uint8_t> bytes;
  uint64_t max_bytes = limit.bytes;
  std::string expected = limit.expected;
  if (S_ISREG(status.st_mode)) {
    const auto file_bytes = static_cast<uint64_t>(status.st_size);
    if (file_bytes > max_bytes) fail(what, path, "has " + std::to_string(file_bytes) + " bytes, " + expected);
    bytes.reserve(static_cast<size_t>(file_bytes) + kPiece);
  } else if (max_bytes == UINT64_MAX) {
    max_bytes = kMaxStreamBytes;
    expected = "expected at most that of a file that is not regular";
  }
  size_t size = 0;
  for (;;) {
    bytes.resize(size + kPiece);
    const ssize_t got = ::read(file.get(), bytes.data() + size, kPiece);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail(what, path, std::strerror(errno));
    size += static_cast<size_t>(got);
    if (size > max_bytes) {
      fail(what, path, "has more than " + std::to_string(max_bytes) + " bytes, " + expected);
    }
    if (got == 0) break;
  }
  bytes.resize(size);
  return bytes;
}

void print(std::string_view text) {
  const std::string safe = printable(std::string(text), /*keep_line_feeds=*/true);
  std::fwrite(safe.data(), 1, safe.size(), stdout);
}

void finish_stdout() {
  errno = 0;
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    const std::string reason = errno != 0 ? std::strerror(errno) : "write error";
    throw Failure("standard output: " + reason);
  }
}

namespace {

// The file that a path leads to, which need not be there: absolute and without links, so that it is the same
// for all of its names.
fs::path resolved_path(fs::path path) {
  constexpr int kMaxLinks = 40;  // as in Linux
  std::error_code code;
  for (int i = 0; i < kMaxLinks; ++i) {
    const fs::path target = fs::read_symlink(path, code);
    if (code) break;  // no link, as a rule
    path = path.parent_path() / target;
  }
  return fs::weakly_canonical(fs::absolute(path, code), code);
}

// What all names of a file have in common, whether it is there or not; "" of what is no regular file.
std::string identity(const std::string& path) {
  struct stat status;
  if (::stat(path.c_str(), &status) != 0) return resolved_path(path).string();
  if (!S_ISREG(status.st_mode)) return "";
  return std::to_string(status.st_dev) + ":" + std::to_string(status.st_ino);
}

// Failure where it is known that the output cannot be written.
void check_writable(const NamedFile& output) {
  const std::string& path = output.path;
  struct stat status;
  const bool exists = ::stat(path.c_str(), &status) == 0;
  if (!exists && errno != ENOENT) fail(output.role, path, std::strerror(errno));
  if (exists && S_ISDIR(status.st_mode)) fail(output.role, path, "is a directory, expected a file");
  // Devices and pipes are written to; other files are new ones in their folder.
  if (exists && (!S_ISREG(status.st_mode) || output.written == NamedFile::Written::kAtItsEnd)) {
    if (::access(path.c_str(), W_OK) != 0) fail(output.role, path, std::strerror(errno));
    return;
  }
  const std::string folder = resolved_path(path).parent_path().string();
  if (::access(folder.c_str(), W_OK | X_OK) == 0) return;
  fail(output.role, path, "cannot create a file in '" + folder + "': " + std::strerror(errno));
}

std::string text(const NamedFile& file) { return file.role + " '" + file.path + "'"; }

}  // namespace

void check_outputs(const std::vector<NamedFile>& outputs, const std::vector<NamedFile>& inputs) {
  std::map<std::string, const NamedFile*> read, written;
  for (const NamedFile& input : inputs) {
    if (!input.path.empty()) read.emplace(identity(input.path), &input);
  }
  for (const NamedFile& output : outputs) {
    const std::string file = output.path.empty() ? "" : identity(output.path);
    if (file.empty()) continue;
    if (const auto at = read.find(file); at != read.end()) {
      throw Failure(text(output) + ": is the same file as " + text(*at->second) +
                    ", which it would replace; give another name");
    }
    const auto [at, is_new] = written.emplace(file, &output);
    if (!is_new)
      throw Failure(text(output) + ": is the same file as " + text(*at->second) + "; give another name");
  }
  for (const NamedFile& output : outputs) {
    if (!output.path.empty() && output.written != NamedFile::Written::kInItsFolder) check_writable(output);
  }
}

void check_output_directory(const std::string& directory, std::string_view what) {
  struct stat status;
  fs::path nearest = directory;  // of those that are there
  if (::stat(nearest.c_str(), &status) != 0) {
    if (errno != ENOENT) fail(what, directory, std::strerror(errno));
    nearest = resolved_path(directory);
    while (::stat(nearest.c_str(), &status) != 0 && nearest.has_relative_path())
      nearest = nearest.parent_path();
  }
  if (!S_ISDIR(status.st_mode)) fail(what, nearest.string(), "exists and is not a directory");
  if (::access(nearest.c_str(), W_OK | X_OK) != 0) fail(what, nearest.string(), std::strerror(errno));
}

OutputFiles::~OutputFiles() {
  std::error_code code;
  for (auto path = made_.rbegin(); path != made_.rend(); ++path) fs::remove(*path, code);
}

void OutputFiles::expect(const std::string& path) {
  std::error_code code;
  if (!path.empty() && !fs::exists(path, code)) made_.push_back(resolved_path(path));
}

void OutputFiles::write(const std::string& path, std::string_view bytes) {
  expect(path);
  qplan_error error = make_error();
  check(qplan_file_write(path.c_str(), bytes.data(), bytes.size(), &error), error, "");
}

void OutputFiles::make_directory(const std::string& directory, std::string_view what) {
  check_output_directory(directory, what);
  std::error_code code;
  std::vector<fs::path> missing;
  for (fs::path at = resolved_path(directory); !fs::exists(at, code) && at.has_relative_path();
       at = at.parent_path())
    missing.push_back(at);
  made_.insert(made_.end(), missing.rbegin(), missing.rend());
  fs::create_directories(directory, code);
  if (code) fail(what, directory, code.message());
}

void OutputFiles::write(const std::string& directory, const std::vector<NamedBytes>& files) {
  make_directory(directory);
  std::error_code code;
  const auto path_of = [&](const NamedBytes& file) { return (fs::path(directory) / file.name).string(); };
  for (const NamedBytes& file : files) {
    if (fs::is_directory(path_of(file), code))
      fail("output", path_of(file), "is a directory, expected a file");
  }
  for (const NamedBytes& file : files)
    write(path_of(file), std::string_view(static_cast<const char*>(file.bytes), file.size));
}

void write_files(const std::string& directory, const std::vector<NamedBytes>& files) {
  OutputFiles outputs;
  outputs.write(directory, files);
  outputs.keep();
}

namespace {

// The one mistake everybody makes once.
[[nodiscard]] bool is_tflite(const void* bytes, size_t size) {
  return size >= 8 && std::memcmp(static_cast<const char*>(bytes) + 4, "TFL3", 4) == 0;
}

}  // namespace

namespace {

// Whether the four characters are at this byte of a regular file. Not to hang on a pipe without a writer, nor
// to take what another reader of a pipe would miss.
bool has_identifier(const std::string& path, off_t at, std::string_view identifier) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  struct stat status;
  char found[4] = {};
  return file.get() >= 0 && ::fstat(file.get(), &status) == 0 && S_ISREG(status.st_mode) &&
         ::pread(file.get(), found, sizeof found, at) == static_cast<ssize_t>(sizeof found) &&
         std::string_view(found, sizeof found) == identifier;
}

}  // namespace

bool is_plan_file(const std::string& path) { return has_identifier(path, 0, "QPLN"); }

bool is_tflite_file(const std::string& path) { return has_identifier(path, 4, "TFL3"); }

PlanFile::PlanFile(const std::string& path, uint32_t flags) : path_(path) {
  qplan_error error = make_error();
  check(qplan_file_map(path.c_str(), &file_, &error), error, "");
  const qplan_status status = qplan_plan_open(&plan_, file_.bytes, file_.size, flags, &error);
  if (status >= 0) return;
  const bool model = is_tflite(file_.bytes, file_.size);
  const std::string_view begin(static_cast<const char*>(file_.bytes), std::min<size_t>(file_.size, 4));
  const bool is_other = !begin.empty() && begin != "QPLN";
  qplan_file_unmap(&file_);
  if (model) {
    throw Failure("plan '" + path + "': is a TFLite model; make a plan of it first: qplan pack '" + path +
                  "' -o model.qplan");
  }
  if (is_other) {
    throw Failure("'" + path + "': " + error.text + "; of a model, make a plan first: qplan pack '" + path +
                  "' -o model.qplan");
  }
  check(status, error, "'" + path + "'");
}

PlanFile::PlanFile(const std::string& label, const std::string& bytes) : path_(label) {
  constexpr size_t kAlignment = 64;  // that plans want, and strings do not promise
  copy_.reset(std::aligned_alloc(kAlignment, (bytes.size() / kAlignment + 1) * kAlignment));
  if (copy_ == nullptr) throw std::bad_alloc();
  std::memcpy(copy_.get(), bytes.data(), bytes.size());
  file_.bytes = copy_.get();
  file_.size = bytes.size();
  qplan_error error = make_error();
  check(qplan_plan_open(&plan_, file_.bytes, file_.size, 0, &error), error, "'" + label + "'");
}

PlanFile::~PlanFile() {
  if (copy_ == nullptr) qplan_file_unmap(&file_);
}

}  // namespace qplan::tools
