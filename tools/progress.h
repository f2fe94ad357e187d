// One line on a terminal's stderr that shows the progress of long work, and how much longer it will take.
#ifndef QPLAN_TOOLS_PROGRESS_H_
#define QPLAN_TOOLS_PROGRESS_H_

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>

namespace qplan::tools {

// Shows nothing during the first second, and never where stderr is not a terminal. A thread of its own writes
// the line, so that work which says nothing for a while shows what it said last, and for how long it has been
// going on.
class Progress {
 public:
  Progress();
  ~Progress();  // clears the line
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // The line disappears where all is done.
  void update(const char* stage, uint64_t done, uint64_t total);

 private:
  void show_until_ended();
  void clear();

  std::mutex mutex_;  // of all that follows
  std::condition_variable ended_changed_;
  bool ended_ = false;
  bool shown_ = false;
  std::string stage_;
  uint64_t done_ = 0;
  uint64_t total_ = 0;
  std::chrono::steady_clock::time_point stage_begin_{};
  std::thread thread_;  // where there is a terminal
};

}  // namespace qplan::tools

#endif  // QPLAN_TOOLS_PROGRESS_H_
