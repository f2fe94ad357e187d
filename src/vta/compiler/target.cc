#include "src/vta/compiler/target.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "src/packer/error.h"
#include "src/packer/ir/cat.h"
#include "src/packer/target/region.h"
#include "src/packer/target/target.h"
#include "src/vta/compiler/layers/layers.h"

namespace qplan::vta::compiler {
namespace {

// The first one that takes a node wins.
constexpr Row kRows[] = {
    {"qplan.qconv2d", "", conv2d_constraints, read_gemm_unit},
    {"qplan.qdepthwise", "as GEMM with diagonal weights", depthwise_constraints, read_gemm_unit},
    {"qplan.qdense", "", dense_constraints, read_gemm_unit},
    {"qplan.qadd", "", add_constraints, read_add_unit},
    {"qplan.qmax_pool2d", "", max_pool2d_constraints, read_max_pool_unit},
    {"qplan.qavg_pool2d", "", avg_pool2d_constraints, read_average_pool_unit},
    {"qplan.qmean", "", mean_constraints, read_mean_unit},
    {"qplan.qclip", "", clip_constraints, read_clip_unit},
    {"qplan.qreshape", "", reshape_constraints, read_rename_unit},
    {"qplan.qconv2d_acc32", "", conv2d_acc32_constraints, read_gemm_unit},
    {"qplan.qdense_acc32", "", dense_acc32_constraints, read_gemm_unit},
};

// The ways in which options and target files name the configuration.
struct Choice {
  Config config = kDefaultConfig;
  std::string sram = "default", mul = "on";
};

struct MemoryField {
  const char* name;
  uint32_t Config::*elements;
};
constexpr MemoryField kFields[] = {{"uop", &Config::uop_elements},
                                   {"wgt", &Config::wgt_elements},
                                   {"inp", &Config::inp_elements},
                                   {"acc", &Config::acc_elements}};
// As many as the default's fields of instructions can name.
constexpr target::MemoryKey kMemories[] = {{"uop", uint64_t{1} << kDefaultConfig.uop_index_bits},
                                           {"wgt", uint64_t{1} << kDefaultConfig.wgt_index_bits},
                                           {"inp", uint64_t{1} << kDefaultConfig.inp_index_bits},
                                           {"acc", uint64_t{1} << kDefaultConfig.acc_index_bits}};

Choice choose(const target::TargetOptions& options, const std::optional<target::MemorySizes>& memories) {
  using target::fail_target;
  Choice choice;
  Config& config = choice.config;
  for (const auto& [key, value] : options) {
    if (key == "sram") {
      if (value == "quarter") {
        config = kQuarterConfig;
      } else if (value != "default") {
        fail_target(cat("sram '", value, "' of 'vta' is not known; known: default, quarter"));
      }
      choice.sram = value;
    } else if (key == "mul") {
      if (value != "on" && value != "off")
        fail_target(cat("mul '", value, "' of 'vta' is not known; known: on, off"));
      choice.mul = value;
    } else {
      fail_target(cat("option '", key, "' of 'vta' is not known; known: clock, mul, priority, sram"));
    }
  }
  if (memories) {
    config = kDefaultConfig;
    config.name = "vta-1x16x16_i8w8a32_15_15_18_17-custom";
    for (const auto& [key, elements] : *memories) {
      const auto* const field =
          std::ranges::find_if(kFields, [&key = key](const MemoryField& f) { return key == f.name; });
      config.*field->elements = static_cast<uint32_t>(elements);
    }
    choice.sram = cat("uop:", config.uop_elements, "/wgt:", config.wgt_elements, "/inp:", config.inp_elements,
                      "/acc:", config.acc_elements);
  }
  config.has_multiply = choice.mul == "on";
  return choice;
}

target::Target make_kind(const target::TargetOptions& options,
                         const std::optional<target::MemorySizes>& memories) {
  const Choice choice = choose(options, memories);
  target::Target target = make_target(choice.config);
  target.options = cat("sram=", choice.sram, ",mul=", choice.mul);
  return target;
}

std::string page() {
  return cat(
      "## vta\n"
      "VTA, the Versatile Tensor Accelerator. Options: `sram=default|quarter` (sizes of the memories), "
      "`mul=on|off` (whether the design has the "
      "ALU's MUL), `priority=`, `clock=`. Operators that no pattern mentions are refused as "
      "`vta.op.<operator>`, "
      "patterns that do not match as "
      "`vta.pattern` with the place where they failed, regions that cost more than they save as "
      "`vta.cost`.\n\n",
      target::rows_text(pattern_table(kDefaultConfig), "sram=quarter", pattern_table(kQuarterConfig)));
}

}  // namespace

std::span<const Row> rows() { return kRows; }

std::vector<target::PatternRow> pattern_table(const Config& config) {
  std::vector<target::PatternRow> table;
  for (const Row& row : kRows) {
    const target::Composite& composite = target::composite(row.composite);
    // Estimates are the compiler's own count.
    table.push_back({std::string(composite.name), target::summary(composite, row.note), composite.make(),
                     row.constraints(config), UnitCycles(config, row.read)});
  }
  return table;
}

Config read_config(const target::TargetOptions& options, const std::optional<target::MemorySizes>& memories) {
  return choose(options, memories).config;
}

target::Target make_target(const Config& config) {
  target::Target target;
  target.name = "vta";
  target.costs.clock_khz = config.clock_khz;
  target.costs.dma_bytes_per_cycle = config.dma_bytes_per_cycle;
  target.costs.dma_latency_cycles = config.dma_latency_cycles;
  target.max_bank_bytes = static_cast<uint64_t>(kMaxBufferBytes);
  target.table = pattern_table(config);
  target.compile = [config](const ir::Module& module, const ir::Function& region) {
    return compile_region(config, module, region);
  };
  target.no_row_text = "has no exact sequence on this target";
  target.no_row_hint = target::kNothingToChange;
  return target;
}

target::TargetKind target_kind() { return {"vta", kMemories, make_kind, page}; }

namespace {

ActivationLayout layout_of(const UnitActivation& activation) {
  return with_border(activation.h, activation.w, activation.channels, activation.needed);
}

template <typename T>
T scalar(const Candidate& c, const ir::Node& node, size_t operand, const char* what) {
  const ir::ConstantRef& constant = c.function().value(node.operands[operand]).constant;
  if (constant == nullptr || constant->as<T>().size() != 1)
    refuse_node(node, cat(what, " is not one constant"));
  return constant->as<T>()[0];
}

// Whatever the layouts are.
uint64_t at_least(const Candidate& candidate, const DeviceCosts& costs) {
  const ir::Function& function = candidate.function();
  uint64_t macs = 0;
  for (const uint32_t node : candidate.nodes()) macs += target::node_macs(function, function.nodes()[node]);
  const auto bytes = static_cast<uint64_t>(function.type(candidate.root().results[0]).size_bytes());
  return std::max(macs / costs.macs_per_cycle, target::dma_cycles(costs, bytes));
}

// All that the count depends on; empty where that is more than scalars (weights, biases).
std::string key_of(const Candidate& candidate, const DeviceCosts& costs) {
  constexpr size_t kScalarBytes = 8;
  const ir::Function& function = candidate.function();
  std::string key;
  ir::append_key(&key, costs.dma_bytes_per_cycle);
  ir::append_key(&key, costs.dma_latency_cycles);
  for (const uint32_t n : candidate.nodes()) {
    const ir::Node& node = function.nodes()[n];
    ir::append_key(&key, node.op);
    ir::append_key(&key, node.operands.size());
    for (const ir::ValueId operand : node.operands) {
      const ir::Value& value = function.value(operand);
      const ir::TensorType& type = function.type(operand);
      ir::append_key(&key, type.dtype);
      ir::append_key(&key, type.shape);
      ir::append_key(&key, value.constant != nullptr);
      if (value.constant == nullptr) continue;
      const auto bytes = value.constant->bytes();
      if (bytes.size() > kScalarBytes) return "";
      key.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    }
    ir::append_key(&key, node.attrs.size());
    for (const auto& [name, value] : node.attrs) {
      ir::append_key(&key, name);
      ir::append_key(&key, value);
    }
  }
  // An addition of a tensor to itself reads one.
  const ir::Node& first = function.nodes()[candidate.nodes().front()];
  ir::append_key(&key, first.operands.size() > 1 && first.operands[0] == first.operands[1]);
  return key;
}

}  // namespace

UnitActivation activation(const Candidate& c, ir::ValueId value) {
  const ir::TensorType& type = c.function().type(value);
  UnitActivation result;
  result.value = value;
  result.is_unsigned = type.dtype == ir::kUint8;
  const size_t rank = type.shape.size();
  if (rank > 0) result.channels = type.shape[rank - 1];
  for (size_t i = 0; i + 1 < rank; ++i) {
    const bool is_row = rank == 4 && i < 2;
    (is_row ? result.h : result.w) *= type.shape[i];
  }
  return result;
}

void refuse_node(const ir::Node& node, const std::string& reason) {
  throw PackError(QPLAN_MODEL_UNSUPPORTED, cat("vta: '", node.name, "': ", reason));
}

bool is_unsigned(const Candidate& c, ir::ValueId value) {
  return c.function().type(value).dtype == ir::kUint8;
}

float scale_operand(const Candidate& c, const ir::Node& node, size_t operand, const char* what) {
  return scalar<float>(c, node, operand, what);
}

int32_t device_zero_point(const Candidate& c, const ir::Node& node, size_t operand, const char* what) {
  return scalar<int32_t>(c, node, operand, what) - (is_unsigned(c, node.operands[0]) ? 128 : 0);
}

layer::Clamp device_clamp(const Candidate& c) {
  const ir::DType dtype = c.function().type(c.root().results[0]).dtype;
  const ir::Node* clip = c.node("clip");
  const layer::Clamp clamp = clip != nullptr ? layer::clip_clamp(*clip, dtype) : layer::full_clamp(dtype);
  const int32_t flip = dtype == ir::kUint8 ? 128 : 0;
  return {clamp.min - flip, clamp.max - flip};
}

UnitPlan plan_unit(const Candidate& c, std::string name, const std::vector<ir::ValueId>& inputs) {
  UnitPlan plan;
  plan.name = std::move(name);
  for (const ir::ValueId input : inputs) plan.inputs.push_back(activation(c, input));
  plan.output = activation(c, c.root().results[0]);
  return plan;
}

uint64_t UnitCycles::operator()(const Candidate& candidate, const DeviceCosts& costs) const {
  const std::string key = key_of(candidate, costs);
  if (key.empty()) return count(candidate, costs);
  const auto known = known_->find(key);
  if (known != known_->end()) return known->second;
  return known_->emplace(key, count(candidate, costs)).first->second;
}

uint64_t UnitCycles::count(const Candidate& candidate, const DeviceCosts& costs) const {
  Config priced = config_;
  priced.dma_bytes_per_cycle = static_cast<uint32_t>(costs.dma_bytes_per_cycle);
  priced.dma_latency_cycles = static_cast<uint32_t>(costs.dma_latency_cycles);
  try {
    const UnitPlan plan = read_(candidate);
    if (!plan.compile) return 0;
    std::vector<ActivationLayout> inputs;
    for (const UnitActivation& input : plan.inputs) inputs.push_back(layout_of(input));
    return plan.compile(priced, inputs, layout_of(plan.output)).estimate.total_cycles;
  } catch (const PackError& error) {
    if (error.status() != QPLAN_MODEL_UNSUPPORTED) throw;
    return at_least(candidate, costs);
  }
}

}  // namespace qplan::vta::compiler
