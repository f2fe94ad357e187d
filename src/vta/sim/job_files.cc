#include "src/vta/sim/job_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

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
  *error =
      std::string("cannot ") + what + " " + quoted(name) + ": " + std::generic_category().message(reason);
  return false;
}

// One component of a path: nothing that leads elsewhere.
bool is_plain(std::string_view part) {
  return !part.empty() && part != "." && part != ".." && part.find('\0') == std::string_view::npos;
}

}  // namespace

std::string quoted(std::string_view text) {
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
      *error = "cannot read " + quoted(name_) + ": it became shorter while it was read";
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
    *error = quoted(name) + " " + why;
    return false;
  };
  Descriptor folder;
  int at = directory_.get();
  std::string_view rest = name;
  for (size_t slash; (slash = rest.find('/')) != std::string_view::npos; rest.remove_prefix(slash + 1)) {
    const std::string part(rest.substr(0, slash));
    if (!is_plain(part)) return refuse("lies outside the job's directory; a job names files inside it only");
    folder = Descriptor(open_retrying(at, part.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
    if (folder.get() < 0) return cannot("open", file->name_, error);
    at = folder.get();
  }
  if (!is_plain(rest)) return refuse("lies outside the job's directory; a job names files inside it only");
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

}  // namespace qplan::sim
