#include <algorithm>
#include <utility>

#include "src/packer/error.h"
#include "src/packer/ir/cat.h"
#include "src/packer/pattern/rewrite.h"
#include "src/packer/pipeline/stages.h"
#include "src/packer/text/text.h"

namespace qplan::pipeline {

namespace {

bool has_pass(const std::vector<passes::Stage>& known, std::string_view name) {
  return std::ranges::find(known, name, &passes::Stage::name) != known.end();
}

bool has_rewrite(const std::vector<passes::Stage>& known, std::string_view name) {
  return std::ranges::any_of(known, [&](const passes::Stage& pass) {
    return std::ranges::find(pass.rewrites(), name, &pattern::Rewrite::name) != pass.rewrites().end();
  });
}

void check_dump_after(const std::string& stage, const std::vector<passes::Stage>& known) {
  if (stage.empty() || stage == "all" || stage == "import" || has_pass(known, stage)) return;
  std::string names = "all, import";
  for (const passes::Stage& pass : known) names += cat(", ", pass.name());
  throw PackError(QPLAN_INVALID_ARGUMENT, "dump after: no pass '" + stage + "'; known: " + names);
}

void check_skip(const std::vector<std::string>& skip, const std::vector<passes::Stage>& known) {
  for (const std::string& name : skip) {
    if (has_pass(known, name) || has_rewrite(known, name)) continue;
    std::string names;
    for (const passes::Stage& pass : known) names += cat(names.empty() ? "" : ", ", pass.name());
    for (const passes::Stage& pass : known) {
      for (const pattern::Rewrite& rewrite : pass.rewrites()) names += ", " + rewrite.name;
    }
    throw PackError(QPLAN_INVALID_ARGUMENT, "skip: no pass or rewrite '" + name + "'; known: " + names);
  }
}

}  // namespace

Observer::Observer(const PackOptions& options)
    : options_(options), passes_(passes::all_stages(options.user_passes)) {
  check_dump_after(options.dump_after, passes_);
  check_skip(options.skip, passes_);
  if (!options.why_not.empty()) check_rewrite(options.why_not, passes_);
}

void Observer::log(uint32_t level, const std::string& text) const {
  if (options_.log) options_.log(level, text);
}

void Observer::dump(std::string_view stage, const ir::Module& module) const {
  if (!options_.dump || (options_.dump_after != "all" && options_.dump_after != stage)) return;
  text::PrintOptions print_options;
  print_options.metadata = false;
  options_.dump("// after " + std::string(stage) + "\n" + text::print(module, print_options) + "\n");
}

void Observer::stage(const char* name, uint32_t done, uint32_t total) const {
  log(QPLAN_LOG_DEBUG, std::string("pack: ") + name);
  progress(name, done, total);
}

void Observer::progress(const char* what, uint32_t done, uint32_t total) const {
  if (options_.progress) options_.progress(what, done, total);
  if (options_.cancelled && options_.cancelled()) {
    throw PackError(QPLAN_CANCELLED, "packing was cancelled by the caller; nothing was written");
  }
}

}  // namespace qplan::pipeline
