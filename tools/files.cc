#include "tools/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
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

void check_output_directory(const std::string& directory) {
  std::error_code error;
  const fs::file_status status = fs::status(directory, error);
  if (fs::is_directory(status)) {
    if (::access(directory.c_str(), W_OK) != 0) fail("output directory", directory, std::strerror(errno));
    return;
  }
  if (fs::exists(status)) fail("output directory", directory, "exists and is not a directory");
  if (error && error != std::errc::no_such_file_or_directory) {
    fail("output directory", directory, error.message());
  }
}

void write_files(const std::string& directory, const std::vector<NamedBytes>& files) {
  check_output_directory(directory);
  std::error_code error;
  const bool created = fs::create_directories(directory, error);
  if (error) fail("output directory", directory, error.message());
  for (const NamedBytes& file : files) {
    const std::string path = (fs::path(directory) / file.name).string();
    if (fs::is_directory(path, error)) fail("output", path, "is a directory, expected a file");
  }
  std::vector<std::string> made;
  for (const NamedBytes& file : files) {
    const std::string path = (fs::path(directory) / file.name).string();
    const bool is_new = !fs::exists(path, error);
    qplan_error problem = make_error();
    const qplan_status status = qplan_file_write(path.c_str(), file.bytes, file.size, &problem);
    if (status < 0) {
      for (const std::string& name : made) fs::remove(name, error);
      if (created) fs::remove(directory, error);
      check(status, problem, "");
    }
    if (is_new) made.push_back(path);
  }
}

namespace {

namespace fs = std::filesystem;

bool is_regular(const std::string& path, struct stat* status) {
  return ::stat(path.c_str(), status) == 0 && S_ISREG(status->st_mode);
}

bool same_file(const std::string& a, const std::string& b) {
  struct stat status_a, status_b;
  if (is_regular(a, &status_a) && is_regular(b, &status_b)) {
    return status_a.st_dev == status_b.st_dev && status_a.st_ino == status_b.st_ino;
  }
  // Two outputs that are not there yet.
  std::error_code code;
  if (fs::exists(a, code) || fs::exists(b, code)) return false;
  const fs::path path_a = fs::weakly_canonical(a, code), path_b = fs::weakly_canonical(b, code);
  return !path_a.empty() && path_a == path_b;
}

std::string text(const NamedFile& file) { return file.role + " '" + file.path + "'"; }

}  // namespace

void check_outputs(const std::vector<NamedFile>& outputs, const std::vector<NamedFile>& inputs) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].path.empty()) continue;
    for (const NamedFile& input : inputs) {
      if (input.path.empty() || !same_file(outputs[i].path, input.path)) continue;
      throw Failure(text(outputs[i]) + ": is the same file as " + text(input) +
                    ", which it would replace; give another name");
    }
    for (size_t k = 0; k < i; ++k) {
      if (outputs[k].path.empty() || !same_file(outputs[i].path, outputs[k].path)) continue;
      throw Failure(text(outputs[i]) + ": is the same file as " + text(outputs[k]) + "; give another name");
    }
  }
}

namespace {

// The one mistake everybody makes once.
[[nodiscard]] bool is_tflite(const void* bytes, size_t size) {
  return size >= 8 && std::memcmp(static_cast<const char*>(bytes) + 4, "TFL3", 4) == 0;
}

}  // namespace

bool is_plan_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  char magic[4] = {};
  file.read(magic, sizeof magic);
  return std::memcmp(magic, "QPLN", sizeof magic) == 0;
}

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
