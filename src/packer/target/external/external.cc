#include "src/packer/target/external/external.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <optional>
#include <utility>

#include "qplan/host.h"
#include "src/base/checked.h"
#include "src/packer/error.h"
#include "src/packer/ir/cat.h"
#include "src/packer/op/op_def.h"
#include "src/packer/target/region.h"
#include "src/packer/target/target.h"

namespace qplan::target::external {
namespace {

[[noreturn]] void fail(const std::string& text) {
  throw PackError(QPLAN_INVALID_ARGUMENT, "target library: " + text);
}

bool is_name(const char* name) {
  if (name == nullptr || name[0] < 'a' || name[0] > 'z') return false;
  return std::ranges::all_of(std::string_view(name), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  });
}

std::string library_text(const qplan_npu_reason& why) {
  return std::string(why.text, strnlen(why.text, sizeof(why.text)));
}

void set(uint64_t value, uint64_t* to) {
  if (value != 0) *to = value;
}

}  // namespace

Library load_library(const std::string& path, std::span<const TargetKind> own) {
  // A name without a slash would be searched for elsewhere.
  const std::string file = path.find('/') == std::string::npos ? "./" + path : path;
  void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* error = dlerror();
    throw PackError(QPLAN_FILE_ERROR, cat("target library: ", error == nullptr ? path : error));
  }
  void* symbol = dlsym(library, QPLAN_NPU_TARGET_ENTRY_NAME);
  if (symbol == nullptr)
    fail(cat("'", path,
             "' does not export " QPLAN_NPU_TARGET_ENTRY_NAME "; expected a library made for "
             "qplan/npu_target.h"));
  const qplan_npu_target* target = reinterpret_cast<qplan_npu_target_entry_fn>(symbol)(QPLAN_NPU_TARGET_ABI);
  constexpr size_t kLeast = offsetof(qplan_npu_target, compile) + sizeof(void*);
  if (target == nullptr || target->struct_size < kLeast || target->abi >> 16 != QPLAN_NPU_TARGET_ABI >> 16)
    fail(cat("'", path, "' was made for another version of qplan/npu_target.h, expected ",
             QPLAN_NPU_TARGET_ABI >> 16, ".x; build it again"));
  if (!is_name(target->name)) fail(cat("'", path, "': its target's name is not of the form [a-z][a-z0-9_]*"));
  if (find_kind(own, target->name) != nullptr)
    fail(cat("'", path, "': its target is called '", target->name,
             "', which is a target of the packer's own; give it another name"));
  if (target->supported == nullptr || target->capabilities == nullptr)
    fail(cat("'", path, "': target '", target->name, "' lacks supported or capabilities"));
  Library result = {target};
  void* kept = nullptr;  // as the library itself
  (void)qplan_host_driver_load(path.c_str(), &result.driver, &kept, nullptr);
  return result;
}

bool asks_scratch(const qplan_npu_target& library) {
  constexpr size_t kWithScratch = offsetof(qplan_npu_target, scratch) + sizeof(library.scratch);
  return library.compile != nullptr && library.struct_size >= kWithScratch && library.scratch != nullptr;
}

bool asks_memory_classes(const qplan_npu_target& library) {
  constexpr size_t kWithClasses = offsetof(qplan_npu_target, memory_classes) + sizeof(library.memory_classes);
  return library.struct_size >= kWithClasses && library.memory_classes != nullptr;
}

Target make_target(const Library& from, const TargetOptions& options) {
  const qplan_npu_target& library = *from.target;
  Target target;
  target.name = library.name;
  for (const auto& [key, value] : options)
    target.options += cat(target.options.empty() ? "" : ",", key, "=", value);
  uint64_t config = 0;
  if (library.configure != nullptr) {
    qplan_npu_reason why = {};
    if (library.configure(target.options.c_str(), &config, &why) != QPLAN_NPU_OK)
      throw PackError(QPLAN_INVALID_ARGUMENT, cat("target: '", target.name, "': ", library_text(why)));
  } else if (!options.empty()) {
    throw PackError(QPLAN_INVALID_ARGUMENT, cat("target: option '", options[0].first, "' of '", target.name,
                                                "' is not known; known: clock, priority"));
  }
  if (library.priority > 0) target.priority = library.priority;
  if (library.costs != nullptr) {
    qplan_npu_target_costs costs = {};
    costs.struct_size = sizeof(costs);
    if (library.costs(config, &costs) != QPLAN_NPU_OK)
      fail(cat("target '", target.name, "' states no costs"));
    set(uint64_t{costs.clock_mhz} * 1000, &target.costs.clock_khz);
    set(costs.macs_per_cycle, &target.costs.macs_per_cycle);
    set(costs.dma_bytes_per_cycle, &target.costs.dma_bytes_per_cycle);
    set(costs.dma_latency_cycles, &target.costs.dma_latency_cycles);
    set(costs.fj_per_mac, &target.costs.fj_per_mac);
    set(costs.fj_per_byte, &target.costs.fj_per_byte);
  }
  qplan_npu_capabilities capabilities = {};
  capabilities.struct_size = sizeof(capabilities);
  if (library.capabilities(config, &capabilities) != QPLAN_NPU_OK)
    fail(cat("target '", target.name, "' states no capabilities"));
  target.max_bank_bytes = capabilities.max_buffer_bytes;
  target.max_binds = capabilities.max_binds;
  target.channel_multiple = std::max<uint32_t>(capabilities.channel_pack, 1);
  target.table = make_rows(library, config, capabilities);
  target.compile = [&library, config, rows = target.table](const ir::Module& module,
                                                           const ir::Function& region) {
    return compile_region(library, config, rows, module, region);
  };
  target.load = [from, options = target.options, capabilities](std::span<const RegionProgram> programs) {
    return ask_driver(from, options, capabilities, programs);
  };
  target.no_row_hint = "nothing to change in the model";
  return target;
}

// The rows of a library's target.
namespace {

using pattern::any;
using pattern::constant;
using pattern::op;
using pattern::Pattern;

[[noreturn]] void fail(const qplan_npu_target& library, const std::string& text) {
  throw PackError(QPLAN_INVALID_ARGUMENT, cat("target library: target '", library.name, "': ", text));
}

// ---- patterns

// A chain of operators from the library; each adds itself to what came before.
class Chain {
 public:
  Chain(const qplan_npu_target& library, const qplan_npu_pattern& pattern)
      : library_(library), pattern_(pattern) {}

  Pattern build() {
    if (pattern_.name == nullptr || pattern_.steps == nullptr || pattern_.num_steps == 0)
      fail(library_, "a pattern without name or steps");
    if (op::find_op(pattern_.name) != nullptr) refuse("its name is that of an operator");
    for (uint32_t i = 0; i < pattern_.num_steps; ++i) {
      const qplan_npu_pattern_step& step = pattern_.steps[i];
      add(step.op == nullptr ? "" : step.op, step.optional != 0);
    }
    if (!chain_) refuse("no operator in it is required");
    return *chain_;
  }

 private:
  [[noreturn]] void refuse(const std::string& text) const {
    fail(library_, cat("pattern '", pattern_.name, "': ", text));
  }

  void add(const std::string& name, bool is_optional) {
    if (name == "nn.pad") {
      if (chain_) refuse("nn.pad is only supported before qnn.conv2d");
      pad_ = is_optional ? Pad::kOptional : Pad::kRequired;
      return;
    }
    // operator list: npu_target.h says what a chain begins with
    const bool begins = name == "qnn.conv2d" || name == "qnn.conv2d_transpose" || name == "qnn.dense" ||
                        name == "qnn.add" || name == "qnn.mul" || name == "qnn.mean" ||
                        name == "nn.max_pool2d" || name == "qnn.avg_pool2d" || (name == "clip" && !chain_);
    if (pad_ != Pad::kNone && !chain_ && name != "qnn.conv2d")
      refuse("nn.pad is only supported before qnn.conv2d");
    if (begins) {
      if (chain_ || is_optional) refuse(cat("'", name, "' begins a chain, and is required"));
      chain_ = first(name);
      has_layer_ = name == "qnn.conv2d" || name == "qnn.conv2d_transpose" || name == "qnn.dense";
      return;
    }
    if (!chain_) refuse(cat("a chain does not begin with '", name, "'"));
    if (is_optional && name == "qnn.requantize") refuse("qnn.requantize is required");
    const Pattern next = behind(name);
    chain_ = is_optional ? next | *chain_ : next;
  }

  Pattern first(const std::string& name) const {
    if (name == "qnn.dense") return dense();
    if (name == "qnn.conv2d_transpose") return transposed_convolution();
    if (name == "qnn.add") return op(name, {any().as("lhs"), any().as("rhs")}).as("sum");
    if (name == "qnn.mul") return op(name, {any().as("lhs"), any().as("rhs")}).as("plain");
    if (name == "qnn.mean") return op(name, {any().as("data")}).as("mean");
    if (name == "clip") return op(name, {any().as("data")}).as("clip");
    if (name != "qnn.conv2d") return op(name, {any().as("data")}).as("pool");
    if (pad_ == Pad::kOptional) return convolution(Convolution::kAny);
    const Pattern data = pad_ == Pad::kNone
                             ? any().as("data")
                             : op("nn.pad", {any().as("data"), constant()}).one_use().as("pad");
    return op(name, {data, constant().as("weight")}).as("product");
  }

  Pattern behind(const std::string& name) {
    const Pattern inner = chain_->one_use();
    if (name == "clip") return op(name, {inner}).as("clip");
    if (!has_layer_)
      refuse(cat("'", name, "' is only supported after qnn.conv2d, qnn.conv2d_transpose or qnn.dense"));
    if (name == "nn.bias_add") return op(name, {inner, constant().as("bias")}).as("bias_add");
    if (name == "qnn.requantize") return op(name, {inner}).as("requantize");
    refuse(cat("operator '", name, "' cannot be in a chain; npu_target.h lists those that can"));
  }

  enum class Pad { kNone, kOptional, kRequired };
  const qplan_npu_target& library_;
  const qplan_npu_pattern& pattern_;
  std::optional<Pattern> chain_;
  Pad pad_ = Pad::kNone;
  bool has_layer_ = false;
};

// ---- costs

uint64_t bytes_of(const DLTensor* tensor) {
  return tensor == nullptr ? 0
                           : static_cast<uint64_t>(qplan_npu_op_elements(tensor)) * (tensor->dtype.bits / 8u);
}

uint64_t cycles_of(const qplan_npu_target& library, uint64_t config, const Candidate& c,
                   const DeviceCosts& costs) {
  ReadOp read;
  if (!read_op(c, flips_uint8(library, config), &read).empty()) return 0;
  const qplan_npu_op& op = read.op;
  if (library.cycles != nullptr) return library.cycles(config, &op);
  uint64_t dma = 0;
  for (const DLTensor* tensor : {op.weights, op.bias, op.output})
    dma += tensor == nullptr ? 0 : dma_cycles(costs, bytes_of(tensor));
  for (uint32_t i = 0; i < qplan_npu_op_num_inputs(&op); ++i)
    dma += dma_cycles(costs, bytes_of(qplan_npu_op_input(&op, i)));
  uint64_t macs = 0;
  if (const ir::Node* product = c.node("product")) macs = node_macs(c.function(), *product);
  return std::max(dma, macs / costs.macs_per_cycle + 1);
}

}  // namespace

std::vector<PatternRow> make_rows(const qplan_npu_target& library, uint64_t config,
                                  const qplan_npu_capabilities& capabilities) {
  std::vector<PatternRow> rows;
  const auto add = [&](std::string_view name, std::string summary, Pattern pattern) {
    rows.push_back({std::string(name), std::move(summary), std::move(pattern), make_constraints(library),
                    [&library, config](const Candidate& c, const DeviceCosts& costs) {
                      return cycles_of(library, config, c, costs);
                    },
                    [&library, config, capabilities](const Candidate& c) {
                      return judge(library, config, capabilities, c);
                    }});
  };
  for (uint32_t i = 0; i < library.num_patterns; ++i) {
    const qplan_npu_pattern& pattern = library.patterns[i];
    Pattern chain = Chain(library, pattern).build();
    add(pattern.name, pattern.summary == nullptr ? "" : pattern.summary, std::move(chain));
  }
  for (uint32_t i = 0; i < library.num_composites; ++i) {
    const std::string_view name = library.composites[i] == nullptr ? "" : library.composites[i];
    const auto known = std::ranges::find(composites(), name, &Composite::name);
    if (known == composites().end() || !known->is_in_operator_lists)
      fail(library, cat("composite '", name, "' is not known to this packer"));
    add(known->name, summary(*known), known->make());
  }
  // Layers that the library cannot requantise: it is asked again, for their accumulators alone.
  for (uint32_t i = 0; (capabilities.contracts & QPLAN_NPU_ACC32) != 0 && i < library.num_composites; ++i) {
    const std::string name = cat(library.composites[i], "_acc32");
    const auto form = std::ranges::find(composites(), name, &Composite::name);
    if (form == composites().end() || std::ranges::find(rows, name, &PatternRow::name) != rows.end())
      continue;
    add(form->name, summary(*form), form->make());
  }
  for (size_t i = 0; i < rows.size(); ++i) {
    for (size_t k = 0; k < i; ++k) {
      if (rows[i].name == rows[k].name) fail(library, cat("'", rows[i].name, "' is there twice"));
    }
  }
  return rows;
}

}  // namespace qplan::target::external
