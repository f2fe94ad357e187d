#include "src/vta/compiler/target.h"

#include <algorithm>
#include <string>

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

}  // namespace qplan::vta::compiler
