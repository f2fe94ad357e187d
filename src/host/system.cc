// The system: its processors, forks and files.
#include "src/host/system.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <fstream>
#include <new>
#include <string>
#include <thread>

#include "qplan/host.h"

namespace qplan::host {

// ---- processors

#if defined(__linux__)
static_assert(kMaxProcessors == CPU_SETSIZE);
#endif

std::vector<uint32_t> allowed_processors() {
  std::vector<uint32_t> processors;
#if defined(__linux__)
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof(allowed), &allowed) == 0) {
    for (uint32_t i = 0; i < kMaxProcessors; ++i) {
      if (CPU_ISSET(i, &allowed)) processors.push_back(i);
    }
  }
#endif
  if (!processors.empty()) return processors;
  const uint32_t count = std::max(1u, std::thread::hardware_concurrency());
  for (uint32_t i = 0; i < count; ++i) processors.push_back(i);
  return processors;
}

bool differ_in_speed(const std::vector<uint32_t>& processors, const std::string& folder) {
  uint64_t least = UINT64_MAX, most = 0;
  for (const uint32_t processor : processors) {
    std::ifstream file(folder + "/cpu" + std::to_string(processor) + "/cpu_capacity");
    uint64_t capacity = 0;
    if (!(file >> capacity)) return false;
    least = std::min(least, capacity);
    most = std::max(most, capacity);
  }
  return least < most;
}

bool pin_thread([[maybe_unused]] pthread_t thread, [[maybe_unused]] uint32_t processor) {
#if defined(__linux__)
  if (processor >= kMaxProcessors) return false;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(processor, &one);
  return pthread_setaffinity_np(thread, sizeof(one), &one) == 0;
#else
  return false;
#endif
}

// ---- forks

namespace {

std::atomic<uint32_t> forks{0};

}  // namespace

bool watch_forks() {
  static const bool watches =
      pthread_atfork(nullptr, nullptr, [] { forks.fetch_add(1, std::memory_order_relaxed); }) == 0;
  return watches;
}

uint32_t forks_so_far() { return forks.load(std::memory_order_relaxed); }

}  // namespace qplan::host

// ---- files: mapped for reading, written as a whole or not at all

namespace {

using qplan::host::file_error;
using qplan::host::report;

// An empty file is mapped to this, because mmap refuses a size of 0.
alignas(64) const unsigned char kNoBytes[64] = {};

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }
  // False with errno set: a full disk may be noticed only now.
  bool close() {
    const int fd = fd_;
    fd_ = -1;
    return ::close(fd) == 0;
  }

 private:
  int fd_;
};

int open_retrying(const char* path, int flags, mode_t mode = 0) {
  for (;;) {
    const int fd = ::open(path, flags | O_CLOEXEC, mode);
    if (fd >= 0 || errno != EINTR) return fd;
  }
}

bool write_all(int fd, const void* bytes, size_t size) {
  const auto* at = static_cast<const char*>(bytes);
  while (size > 0) {
    const ssize_t written = ::write(fd, at, size);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      if (written == 0) errno = ENOSPC;
      return false;
    }
    at += written;
    size -= static_cast<size_t>(written);
  }
  return true;
}

// A signal may end it before anything is written, on network file systems for one.
bool sync_retrying(int fd) {
  while (::fsync(fd) != 0) {
    if (errno != EINTR) return false;
  }
  return true;
}

std::string directory_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

// The file a path leads to, which need not be there yet, so that a symbolic link stays one.
std::string resolved(std::string path) {
  constexpr int kMaxLinks = 40;  // as in Linux
  for (int i = 0; i < kMaxLinks; ++i) {
    char target[PATH_MAX];
    const ssize_t size = ::readlink(path.c_str(), target, sizeof(target));
    if (size <= 0 || size == sizeof(target)) break;  // no link, as a rule
    const std::string to(target, static_cast<size_t>(size));
    path = to[0] == '/' ? to : directory_of(path) + "/" + to;
  }
  return path;
}

// Names that a signal handler may read while they are written: a slot is free, being filled, or in use.
enum SlotState : int { kFree, kBeingFilled, kInUse };
static_assert(std::atomic<int>::is_always_lock_free);
struct TemporarySlot {
  std::atomic<int> state{kFree};
  char path[PATH_MAX] = {};
};
TemporarySlot temporary_slots[8];  // one for each call under way; calls beyond them are not registered

// A temporary file from before its creation until it was renamed or removed.
class TemporaryName {
 public:
  TemporaryName() = default;
  TemporaryName(const TemporaryName&) = delete;
  TemporaryName& operator=(const TemporaryName&) = delete;
  ~TemporaryName() { forget(); }

  // A name that no other process has: the time too, as numbers of processes come again and may be the same in
  // two containers.
  void choose(const std::string& directory) {
    static std::atomic<unsigned> counter{0};
    forget();
    timespec now{};
    ::clock_gettime(CLOCK_REALTIME, &now);
    path_ = directory + "/.qplan-" + std::to_string(::getpid()) + "-" + std::to_string(++counter) + "-" +
            std::to_string(now.tv_nsec) + ".tmp";
    for (TemporarySlot& slot : temporary_slots) {
      int expected = kFree;
      if (path_.size() >= sizeof slot.path || !slot.state.compare_exchange_strong(expected, kBeingFilled))
        continue;
      std::memcpy(slot.path, path_.c_str(), path_.size() + 1);
      slot.state = kInUse;
      slot_ = &slot;
      return;
    }
  }
  void forget() {
    if (slot_ != nullptr) slot_->state = kFree;
    slot_ = nullptr;
  }
  const char* path() const { return path_.c_str(); }

 private:
  std::string path_;
  TemporarySlot* slot_ = nullptr;
};

// A new file in the directory, with the permissions that the user's umask leaves.
int create_temporary(const std::string& directory, TemporaryName* name) {
  for (int attempt = 0; attempt < 1000; ++attempt) {
    name->choose(directory);
    const int fd = open_retrying(name->path(), O_WRONLY | O_CREAT | O_EXCL, 0666);
    if (fd >= 0 || errno != EEXIST) return fd;
  }
  return -1;
}

// Devices and pipes are written to, never replaced.
qplan_status write_in_place(const std::string& path, const void* bytes, size_t size, qplan_error* error) {
  Descriptor file(open_retrying(path.c_str(), O_WRONLY));
  if (file.get() < 0) return file_error(error, path, "cannot open for writing", errno);
  if (!write_all(file.get(), bytes, size) || !file.close())
    return file_error(error, path, "cannot write", errno);
  return QPLAN_OK;
}

qplan_status write_and_rename(const std::string& path, const struct stat* old, const void* bytes, size_t size,
                              qplan_error* error) {
  const std::string directory = directory_of(path);
  TemporaryName temporary;
  Descriptor file(create_temporary(directory, &temporary));
  if (file.get() < 0) {
    return file_error(error, path, "cannot create a file in " + qplan::host::quoted_path(directory), errno);
  }
  if (old != nullptr) (void)::fchmod(file.get(), old->st_mode & 07777);
  // In this order: the new name must never lead to bytes that a power cut can still take back. A signal
  // during close takes nothing back that has been synchronised.
  if (!write_all(file.get(), bytes, size) || !sync_retrying(file.get()) ||
      (!file.close() && errno != EINTR) || ::rename(temporary.path(), path.c_str()) != 0) {
    const int reason = errno;
    ::unlink(temporary.path());
    return file_error(error, path, "cannot write " + std::to_string(size) + " bytes", reason);
  }
  const Descriptor parent(open_retrying(directory.c_str(), O_RDONLY | O_DIRECTORY));
  if (parent.get() >= 0) (void)sync_retrying(parent.get());
  return QPLAN_OK;
}

}  // namespace

qplan_status qplan_file_map(const char* path, qplan_file* file, qplan_error* error) {
  if (file != nullptr) *file = {};
  if (path == nullptr || file == nullptr) {
    return report(error, QPLAN_INVALID_ARGUMENT,
                  path == nullptr ? "file: path is NULL" : "file: file is NULL");
  }
  try {
    // Not to hang on a pipe without a writer.
    const Descriptor descriptor(open_retrying(path, O_RDONLY | O_NONBLOCK));
    struct stat status;
    if (descriptor.get() < 0) return file_error(error, path, "cannot open", errno);
    if (::fstat(descriptor.get(), &status) != 0) return file_error(error, path, "cannot open", errno);
    if (S_ISDIR(status.st_mode)) return file_error(error, path, "is a directory, expected a file");
    if (!S_ISREG(status.st_mode)) return file_error(error, path, "is not a regular file");
    if (status.st_size == 0) {
      file->bytes = kNoBytes;
      return QPLAN_OK;
    }
    if (static_cast<uint64_t>(status.st_size) > SIZE_MAX) return file_error(error, path, "is too large");
    const auto size = static_cast<size_t>(status.st_size);
    void* bytes = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor.get(), 0);
    if (bytes == MAP_FAILED)
      return file_error(error, path, "cannot map " + std::to_string(size) + " bytes", errno);
    file->bytes = bytes;
    file->size = size;
    file->opaque = bytes;
    return QPLAN_OK;
  } catch (const std::bad_alloc&) {
    return report(error, QPLAN_OUT_OF_MEMORY, "");
  }
}

void qplan_file_unmap(qplan_file* file) {
  if (file == nullptr) return;
  if (file->opaque != nullptr) ::munmap(file->opaque, file->size);
  *file = {};
}

qplan_status qplan_file_write(const char* path, const void* bytes, size_t size, qplan_error* error) {
  if (path == nullptr || (bytes == nullptr && size > 0)) {
    return report(error, QPLAN_INVALID_ARGUMENT,
                  path == nullptr ? "file: path is NULL" : "file: bytes is NULL");
  }
  try {
    struct stat status;
    if (::stat(path, &status) != 0) {
      if (errno != ENOENT) return file_error(error, path, "cannot open for writing", errno);
      return write_and_rename(resolved(path), nullptr, bytes, size, error);
    }
    if (S_ISDIR(status.st_mode)) return file_error(error, path, "is a directory, expected a file");
    if (!S_ISREG(status.st_mode)) return write_in_place(path, bytes, size, error);
    return write_and_rename(resolved(path), &status, bytes, size, error);
  } catch (const std::bad_alloc&) {
    return report(error, QPLAN_OUT_OF_MEMORY, "");
  }
}

void qplan_file_remove_temporaries(void) {
  for (const TemporarySlot& slot : temporary_slots) {
    if (slot.state == kInUse) ::unlink(slot.path);
  }
}
