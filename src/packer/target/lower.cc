#include "src/packer/target/lower.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "src/packer/error.h"
#include "src/packer/target/cpu/lowering.h"
#include "src/packer/target/cpu/table.h"

namespace qplan::target {
namespace {

constexpr size_t kMaxListed = 20;

class FunctionLowering {
 public:
  FunctionLowering(const ir::Function& function, const TargetProfile& profile)
      : function_(function), lowering_(function, profile), done_(function.nodes().size(), false) {}

  Program run() {
    for (uint32_t n = 0; n < function_.nodes().size(); ++n) {
      if (!done_[n]) lower_node(n);
    }
    if (num_refused_ != 0) fail();
    return lowering_.finish();
  }

 private:
  // The first row of the table whose pattern begins with this node takes it and the nodes that follow it in
  // the pattern.
  void lower_node(uint32_t n) {
    const ir::Node& node = function_.nodes()[n];
    try {
      for (const cpu::TableRow& row : cpu::lowering_table()) {
        const cpu::Chain chain = row.match(lowering_, n);
        if (chain.empty()) continue;
        for (const uint32_t covered : chain) done_[covered] = true;
        row.lower(lowering_, chain);
        return;
      }
      throw PackError(QPLAN_MODEL_UNSUPPORTED, "no kernel computes it");
    } catch (const PackError& error) {
      if (error.status() != QPLAN_MODEL_UNSUPPORTED) throw;
      refuse(node, error.what());
    }
  }

  void refuse(const ir::Node& node, const std::string& reason) {
    ++num_refused_;
    const std::string op = node.op == nullptr ? node.callee : node.op->name;
    const auto [known, inserted] = refusal_of_.try_emplace(op + ": " + reason, refusals_.size());
    if (inserted) refusals_.push_back({op + " '" + node.name + "'", reason, 0});
    ++refusals_[known->second].count;
  }

  [[noreturn]] void fail() const {
    std::string text = "target 'cpu' cannot run " + std::to_string(num_refused_) + " of " +
                       std::to_string(function_.nodes().size()) + " operators: ";
    for (size_t i = 0; i < std::min(refusals_.size(), kMaxListed); ++i) {
      const Refusal& refusal = refusals_[i];
      text += (i == 0 ? "" : "; ") + refusal.first;
      if (refusal.count > 1) text += " and " + std::to_string(refusal.count - 1) + " more";
      text += ": " + refusal.reason;
    }
    if (refusals_.size() > kMaxListed) {
      text += "; and for " + std::to_string(refusals_.size() - kMaxListed) + " other reasons";
    }
    throw PackError(QPLAN_MODEL_UNSUPPORTED, text);
  }

  // Operators of one kind that are refused for one reason.
  struct Refusal {
    std::string first;  // operator and name
    std::string reason;
    size_t count;
  };

  const ir::Function& function_;
  cpu::Lowering lowering_;
  std::vector<bool> done_;
  size_t num_refused_ = 0;
  std::vector<Refusal> refusals_;             // in the order of the nodes
  std::map<std::string, size_t> refusal_of_;  // by operator and reason
};

}  // namespace

Program lower_function(const ir::Function& function, const TargetProfile& profile) {
  return FunctionLowering(function, profile).run();
}

}  // namespace qplan::target
