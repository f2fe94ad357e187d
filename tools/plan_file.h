// A plan file, mapped and opened.
#ifndef TOOLS_PLAN_FILE_H_
#define TOOLS_PLAN_FILE_H_

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>

#include "qplan/host.h"

namespace qplan::tools {

// Whether the file begins like a plan; false too where it cannot be read.
bool is_plan_file(const std::string& path);

class PlanFile {
 public:
  // flags: QPLAN_PLAN_*. Failure when path cannot be mapped or holds no valid plan.
  explicit PlanFile(const std::string& path, uint32_t flags = 0);
  // A plan that is no file; label in place of the path. Failure as above.
  PlanFile(const std::string& label, const std::string& bytes);
  ~PlanFile();
  PlanFile(const PlanFile&) = delete;
  PlanFile& operator=(const PlanFile&) = delete;

  [[nodiscard]] const qplan_plan& plan() const { return plan_; }
  [[nodiscard]] const void* bytes() const { return file_.bytes; }
  [[nodiscard]] size_t size() const { return file_.size; }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };
  std::string path_;
  qplan_file file_{};
  std::unique_ptr<void, Free> copy_;  // the bytes of a plan that is no file
  qplan_plan plan_{};
};

}  // namespace qplan::tools

#endif  // TOOLS_PLAN_FILE_H_
