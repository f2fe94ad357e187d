// What --skip left undone.
#ifndef QPLAN_SRC_PACKER_PIPELINE_LEFT_OUT_H_
#define QPLAN_SRC_PACKER_PIPELINE_LEFT_OUT_H_

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "src/packer/ir/module.h"
#include "src/packer/passes/user_pass.h"

namespace qplan::pipeline {

class LeftOut {
 public:
  // To be asked whenever the pass has its turn: would it, or those of its rewrites that context.skip names,
  // change the module as it is now? The module is only read.
  void look(const passes::Stage& pass, const ir::Module& module, const passes::PassContext& context);
  // One line for each pass and rewrite, with the first place where it would have applied.
  const std::vector<std::string>& lines() const { return lines_; }

 private:
  void add(std::string_view kind, std::string_view name, const std::string& firing);

  std::set<std::string, std::less<>> known_;  // names that have a line
  std::vector<std::string> lines_;
};

}  // namespace qplan::pipeline

#endif  // QPLAN_SRC_PACKER_PIPELINE_LEFT_OUT_H_
