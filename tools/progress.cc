#include "tools/progress.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

namespace qplan::tools {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kSilent{1000};
constexpr std::chrono::milliseconds kBetween{100};
constexpr uint64_t kBarWidth = 20;

// "[#####...............]"
std::string bar_text(uint64_t done, uint64_t total) {
  const uint64_t filled = total == 0 ? 0 : std::min(done, total) * kBarWidth / total;
  return "[" + std::string(filled, '#') + std::string(kBarWidth - filled, '.') + "]";
}

// ", about 12 s left", from how long the done part of a stage took; "" of one that has just begun.
std::string remaining_text(double seconds, uint64_t done, uint64_t total) {
  if (done == 0 || seconds < 1 || done >= total) return "";
  const double left = seconds * static_cast<double>(total - done) / static_cast<double>(done);
  return ", about " + std::to_string(static_cast<uint64_t>(left) + 1) + " s left";
}

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
  if (stage_ != stage) stage_begin_ = Clock::now();
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
    const Clock::time_point now = Clock::now();
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now - begin);
    const std::chrono::duration<double> of_stage = now - stage_begin_;
    std::fprintf(stderr, "\r\x1b[Kqplan: %s %s %llu/%llu, %lld s%s", stage_.c_str(),
                 bar_text(done_, total_).c_str(), static_cast<unsigned long long>(done_),
                 static_cast<unsigned long long>(total_), static_cast<long long>(seconds.count()),
                 remaining_text(of_stage.count(), done_, total_).c_str());
    std::fflush(stderr);
  }
}

}  // namespace qplan::tools
