// One line on a terminal's stderr that tells how far a long piece of work is.
#ifndef TOOLS_PROGRESS_H_
#define TOOLS_PROGRESS_H_

#include <cstdint>
#include <string>

namespace qplan::tools {

// Shows nothing during the first second, and never where stderr is not a terminal.
class Progress {
 public:
  Progress();
  ~Progress();  // clears the line
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void update(const std::string& stage, uint64_t done, uint64_t total);

 private:
  bool terminal_;
  bool shown_ = false;
  uint64_t start_ns_;
  uint64_t last_ns_ = 0;
};

}  // namespace qplan::tools

#endif  // TOOLS_PROGRESS_H_
