#include "src/packer/target/external/external.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "qplan/host.h"
#include "src/packer/error.h"
#include "src/packer/ir/cat.h"
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

}  // namespace qplan::target::external
