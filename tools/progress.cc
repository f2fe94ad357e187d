#include "tools/progress.h"

#include <unistd.h>

#include <chrono>
#include <cstdio>

namespace qplan::tools {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kSilent{1000};
constexpr std::chrono::milliseconds kBetween{100};

}  // namespace

Progress::Progress() {
  if (::isatty(STDERR_FILENO) != 0) thread_ = std::thread([this] { show_until_ended(); });
}

Progress::~Progress() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    clear();
  }
  ended_changed_.notify_one();
  thread_.join();
}

void Progress::update(const char* stage, uint64_t done, uint64_t total) {
  if (!thread_.joinable()) return;
  const std::lock_guard lock(mutex_);
  stage_ = stage;
  done_ = done;
  total_ = total;
  if (done >= total) clear();
}

void Progress::clear() {
  stage_.clear();
  if (shown_) std::fputs("\r\x1b[K", stderr);
  shown_ = false;
}

void Progress::show_until_ended() {
  const Clock::time_point begin = Clock::now();
  std::unique_lock lock(mutex_);
  for (auto wait = kSilent; !ended_changed_.wait_for(lock, wait, [this] { return ended_; });
       wait = kBetween) {
    if (stage_.empty()) continue;
    shown_ = true;
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(Clock::now() - begin);
    std::fprintf(stderr, "\r\x1b[Kqplan: %s %llu/%llu, %lld s", stage_.c_str(),
                 static_cast<unsigned long long>(done_), static_cast<unsigned long long>(total_),
                 static_cast<long long>(seconds.count()));
    std::fflush(stderr);
  }
}

}  // namespace qplan::tools
