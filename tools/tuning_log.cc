#include "tools/tuning_log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <utility>

#include "tools/error.h"

namespace qplan::tools {
namespace {

// Logs are joined and edited by hand: a line must not continue somebody's last one.
bool lacks_last_newline(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file || file.tellg() <= 0) return false;
  file.seekg(-1, std::ios::end);
  return file.get() != '\n';
}

bool write_all(int fd, const std::string& text) {
  for (size_t at = 0; at < text.size();) {
    const ssize_t written = ::write(fd, text.data() + at, text.size() - at);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      if (written == 0) errno = ENOSPC;
      return false;
    }
    at += static_cast<size_t>(written);
  }
  return true;
}

}  // namespace

TuningLog::TuningLog(std::string path) : path_(std::move(path)) {
  fd_ = ::open(path_.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  if (fd_ >= 0) return;
  if (errno != ENOENT) fail(errno);
  const std::filesystem::path folder = std::filesystem::path(path_).parent_path();
  if (::access(folder.empty() ? "." : folder.c_str(), W_OK | X_OK) != 0) fail(errno);
}

TuningLog::~TuningLog() {
  if (fd_ >= 0) ::close(fd_);
}

void TuningLog::fail(int reason) const {
  throw Failure("log '" + path_ + "': cannot be written: " + std::strerror(reason));
}

std::vector<nlohmann::json> TuningLog::lines() const {
  std::vector<nlohmann::json> lines;
  struct stat status;
  if (::stat(path_.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return lines;
  std::ifstream file(path_, std::ios::binary);
  for (std::string text; std::getline(file, text);) {
    nlohmann::json line = nlohmann::json::parse(text, nullptr, false);
    if (line.is_object()) lines.push_back(std::move(line));
  }
  return lines;
}

void TuningLog::append(const std::string& lines) {
  if (lines.empty()) return;
  bool is_new = false;
  if (fd_ < 0) {
    fd_ = ::open(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    if (fd_ < 0) fail(errno);
    is_new = true;
  }
  struct stat before;
  if (::fstat(fd_, &before) != 0) fail(errno);
  const bool is_regular = S_ISREG(before.st_mode);
  const std::string text = (is_regular && lacks_last_newline(path_) ? "\n" : "") + lines;
  if (write_all(fd_, text)) return;
  const int reason = errno;
  if (is_regular && ::ftruncate(fd_, before.st_size) == 0 && is_new && before.st_size == 0) {
    ::unlink(path_.c_str());
  }
  fail(reason);
}

}  // namespace qplan::tools
