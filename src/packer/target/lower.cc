#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "src/packer/error.h"
#include "src/packer/ir/cat.h"
#include "src/packer/target/cpu/lowering.h"
#include "src/packer/target/program.h"

namespace qplan::target {
namespace {

constexpr size_t kMaxListed = 20;

// What no kernel computes, over a function and the bodies of its regions.
class Refusals {
 public:
  // The message has a node's first reason.
  void add(const ir::Node& node, std::vector<Reason> reasons) {
    const std::string reason = cat(reasons.front().text, " [", reasons.front().id, "]");
    all_.emplace_back(&node, std::move(reasons));
    ++num_refused_;
    const std::string op = node.op == nullptr ? node.callee : node.op->name;
    const auto [known, inserted] = refusal_of_.try_emplace(op + ": " + reason, refusals_.size());
    if (inserted) refusals_.push_back({op, node.name, reason, 0});
    ++refusals_[known->second].count;
  }
  void count_nodes(size_t count) { num_nodes_ += count; }
  bool empty() const { return num_refused_ == 0; }
  const std::vector<std::pair<const ir::Node*, std::vector<Reason>>>& all() const { return all_; }

  [[noreturn]] void fail() const {
    std::string text = "target 'cpu' cannot run " + std::to_string(num_refused_) + " of " +
                       std::to_string(num_nodes_) + (num_nodes_ == 1 ? " operator:" : " operators:");
    for (size_t i = 0; i < std::min(refusals_.size(), kMaxListed); ++i) {
      const Refusal& refusal = refusals_[i];
      // One reason needs no list.
      text += refusals_.size() == 1 ? " " : "\n  ";
      if (refusals_.size() > 1) text += std::to_string(refusal.count) + " x ";
      text += refusal.op + name_of_first(refusal) + ": " + refusal.reason;
    }
    if (refusals_.size() > kMaxListed) {
      text += "\n  and for " + std::to_string(refusals_.size() - kMaxListed) + " other reasons";
    }
    throw PackError(QPLAN_MODEL_UNSUPPORTED, text);
  }

 private:
  // Operators of one kind that are refused for one reason.
  struct Refusal {
    std::string op;
    std::string first;  // its name
    std::string reason;
    size_t count;
  };

  // " 'conv1'", " (first 'conv1')"; nothing for operators that the source left unnamed.
  static std::string name_of_first(const Refusal& refusal) {
    if (refusal.first.empty()) return "";
    return refusal.count > 1 ? " (first '" + refusal.first + "')" : " '" + refusal.first + "'";
  }

  size_t num_refused_ = 0, num_nodes_ = 0;
  std::vector<std::pair<const ir::Node*, std::vector<Reason>>> all_;
  std::vector<Refusal> refusals_;             // in the order of the nodes
  std::map<std::string, size_t> refusal_of_;  // by operator and reason
};

class FunctionLowering {
 public:
  FunctionLowering(const ir::Function& function, const TargetProfile& profile, const RegionCodes& regions,
                   Refusals* refusals)
      : function_(function),
        profile_(profile),
        regions_(regions),
        lowering_(function, profile),
        done_(function.nodes().size(), false),
        refusals_(*refusals) {
    lowering_.set_bodies([this](const std::string& callee) -> const ir::Function* {
      const auto code = regions_.by_function.find(callee);
      return code == regions_.by_function.end() ? nullptr : code->second.body;
    });
  }

  // What is refused is with the others in refusals: the program is then not to be used.
  Program run(const LowerProgress& progress) {
    for (uint32_t n = 0; n < function_.nodes().size(); ++n) {
      if (progress) progress(n, static_cast<uint32_t>(function_.nodes().size()));
      const ir::Node& node = function_.nodes()[n];
      const auto region =
          node.op == nullptr ? regions_.by_function.find(node.callee) : regions_.by_function.end();
      if (region != regions_.by_function.end()) {
        lower_region(node, region->second);
        continue;
      }
      refusals_.count_nodes(1);
      if (!done_[n]) lower_node(n);
    }
    if (!refusals_.empty()) return {};
    return lowering_.finish();
  }

 private:
  void lower_region(const ir::Node& call, const RegionCode& code) {
    auto region = std::make_shared<NpuRegion>();
    ProgramStep step;
    step.name = call.callee;
    for (const ir::ValueId operand : call.operands) step.inputs.push_back(lowering_.tensor(operand));
    for (const ir::ValueId result : call.results) step.outputs.push_back(lowering_.define(result));
    step.macs = code.compiled->macs;
    for (const ir::Node& node : code.body->nodes()) step.macs += node_macs(*code.body, node);
    region->target = code.device;
    region->format = code.compiled->format;
    region->slots = code.compiled->slots;
    region->num_operators = static_cast<uint32_t>(code.body->nodes().size());
    region->estimated_cycles = code.compiled->cycles;
    region->program_bytes = code.compiled->program_bytes;
    region->memory_class = code.compiled->memory_class;
    region->blob = lowering_.add_constant({ir::kUint8, {static_cast<int64_t>(code.compiled->blob.size())}},
                                          std::make_shared<const std::vector<uint8_t>>(code.compiled->blob),
                                          call.callee + ".program");

    const std::vector<TensorId> inputs = step.inputs, outputs = step.outputs;
    if (!code.compiled->has_fallback) {
      step.npu = std::move(region);
      lowering_.add_step(std::move(step));
      return;
    }
    const Program fallback = FunctionLowering(*code.body, profile_, {}, &refusals_).run({});
    if (regions_.fallback) region->num_alternative_steps = static_cast<uint32_t>(fallback.steps.size());
    step.npu = std::move(region);
    lowering_.add_step(std::move(step));
    if (!refusals_.empty()) return;
    for (size_t i = 0; i < outputs.size(); ++i)
      lowering_.describe(outputs[i], fallback.tensors[fallback.outputs[i]]);
    if (regions_.fallback) splice(fallback, inputs, outputs);
  }

  // The program's steps, on the region's tensors.
  void splice(const Program& fallback, const std::vector<TensorId>& inputs,
              const std::vector<TensorId>& outputs) {
    constexpr TensorId kUnknown = UINT32_MAX;
    std::vector<TensorId> map(fallback.tensors.size(), kUnknown);
    for (size_t i = 0; i < inputs.size(); ++i) map[fallback.inputs[i]] = inputs[i];
    for (size_t i = 0; i < outputs.size(); ++i) map[fallback.outputs[i]] = outputs[i];
    for (size_t t = 0; t < fallback.tensors.size(); ++t) {
      const ProgramTensor& tensor = fallback.tensors[t];
      if (map[t] != kUnknown) continue;
      map[t] = tensor.is_constant() ? lowering_.add_constant(tensor.type, tensor.constant, tensor.name)
                                    : lowering_.add_activation(tensor.type, tensor.name);
      lowering_.describe(map[t], tensor);
    }
    for (ProgramStep step : fallback.steps) {
      for (TensorId& input : step.inputs) input = map[input];
      for (TensorId& output : step.outputs) output = map[output];
      lowering_.add_step(std::move(step));
    }
  }

  // The first row of the table whose pattern begins with this node takes it and the nodes that follow it in
  // the pattern.
  void lower_node(uint32_t n) {
    const ir::Node& node = function_.nodes()[n];
    for (const cpu::TableRow& row : cpu::lowering_table()) {
      const cpu::NodeSequence sequence = row.match(lowering_, n);
      if (sequence.empty()) continue;
      for (const uint32_t covered : sequence) done_[covered] = true;
      std::vector<Reason> reasons = row.check({lowering_, sequence});
      if (!reasons.empty()) return refusals_.add(node, std::move(reasons));
      try {
        row.lower(lowering_, sequence);
      } catch (const PackError& error) {
        if (error.status() != QPLAN_MODEL_UNSUPPORTED) throw;
        refusals_.add(node, {{"cpu.plan", error.what(), ""}});
      }
      return;
    }
    const std::string op = node.op == nullptr ? "call" : std::string(plain_operator_name(node.op->name));
    refusals_.add(node, {{"cpu.op." + op, "no kernel computes it" + operand_types(node), ""}});
  }

  // " on int64 and float32": where an operator has kernels, it is the dtype that none has.
  std::string operand_types(const ir::Node& node) const {
    std::vector<std::string> dtypes;
    for (const ir::ValueId operand : node.operands) {
      std::string dtype = ir::to_string(function_.type(operand).dtype);
      if (std::ranges::find(dtypes, dtype) == dtypes.end()) dtypes.push_back(std::move(dtype));
    }
    std::string text;
    for (const std::string& dtype : dtypes) text += (text.empty() ? " on " : " and ") + dtype;
    return text;
  }

  const ir::Function& function_;
  const TargetProfile& profile_;
  const RegionCodes& regions_;
  cpu::Lowering lowering_;
  std::vector<bool> done_;
  Refusals& refusals_;
};

}  // namespace

Program lower_function(const ir::Function& function, const TargetProfile& profile, const RegionCodes& regions,
                       const LowerProgress& progress) {
  Refusals refusals;
  const std::unique_ptr<ir::Function> separated = cpu::separate_repeated_pixels(function, profile);
  Program program =
      FunctionLowering(separated ? *separated : function, profile, regions, &refusals).run(progress);
  if (!refusals.empty()) refusals.fail();
  program.devices = regions.devices;
  program.is_small = profile.pointer_size == 4;
  program.asks_substitutes = profile.asked_isas != profile.isas;
  return program;
}

std::vector<CpuRefusal> cpu_refusals(const ir::Function& function, const TargetProfile& profile) {
  Refusals refusals;
  (void)FunctionLowering(function, profile, {}, &refusals).run({});
  std::vector<CpuRefusal> result;
  for (const auto& [node, reasons] : refusals.all()) {
    result.push_back({static_cast<uint32_t>(node - function.nodes().data()), reasons});
  }
  return result;
}

}  // namespace qplan::target
