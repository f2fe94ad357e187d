// What a caller sees of a pack while it runs: dumps, log, progress. Never part of the result.
#ifndef QPLAN_SRC_PACKER_PIPELINE_OBSERVER_H_
#define QPLAN_SRC_PACKER_PIPELINE_OBSERVER_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "src/packer/ir/module.h"
#include "src/packer/passes/user_pass.h"
#include "src/packer/pipeline/pipeline.h"

namespace qplan::pipeline {

class Observer {
 public:
  // PackError (QPLAN_INVALID_ARGUMENT) when dump_after names no stage, skip no pass or rewrite, or a pass of
  // the caller has no place. options must outlive the observer.
  explicit Observer(const PackOptions& options);

  const PackOptions& options() const { return options_; }
  // All passes, in order.
  const std::vector<passes::Stage>& passes() const { return passes_; }
  const LogFunction& log_function() const { return options_.log; }
  void log(uint32_t level, const std::string& text) const;
  // The module's text, where the caller asked for this stage.
  void dump(std::string_view stage, const ir::Module& module) const;
  // A stage begins; progress goes on in it.
  void stage(const char* name, uint32_t done, uint32_t total) const;
  // PackError (QPLAN_CANCELLED) where the caller wants no more.
  void progress(const char* what, uint32_t done, uint32_t total) const;

 private:
  const PackOptions& options_;
  const std::vector<passes::Stage> passes_;
};

}  // namespace qplan::pipeline

#endif  // QPLAN_SRC_PACKER_PIPELINE_OBSERVER_H_
