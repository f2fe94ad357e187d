#include "src/packer/pipeline/observer.h"

#include <utility>

#include "src/packer/error.h"
#include "src/packer/passes/pass.h"
#include "src/packer/text/text.h"

namespace qplan::pipeline {

namespace {

void check_dump_after(const std::string& stage) {
  if (stage.empty() || stage == "all" || stage == "import" || passes::find_pass(stage) != nullptr) return;
  std::string known = "all, import";
  for (const passes::Pass& pass : passes::all_passes()) known += std::string(", ") + pass.name;
  throw PackError(QPLAN_INVALID_ARGUMENT, "dump after: no pass '" + stage + "'; known: " + known);
}

void check_skip(const std::vector<std::string>& skip) {
  for (const std::string& name : skip) {
    if (passes::find_pass(name) != nullptr || passes::find_rewrite(name) != nullptr) continue;
    std::string known;
    for (const passes::Pass& pass : passes::all_passes())
      known += (known.empty() ? "" : ", ") + std::string(pass.name);
    for (const std::string& rewrite : passes::rewrite_names()) known += ", " + rewrite;
    throw PackError(QPLAN_INVALID_ARGUMENT, "skip: no pass or rewrite '" + name + "'; known: " + known);
  }
}

}  // namespace

Observer::Observer(const PackOptions& options) : options_(options) {
  check_dump_after(options.dump_after);
  check_skip(options.skip);
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
  if (options_.progress) options_.progress(name, done, total);
}

Timer::Timer(const Observer& observer, std::string what)
    : observer_(observer), what_(std::move(what)), begin_(std::chrono::steady_clock::now()) {}

Timer::~Timer() {
  const auto passed = std::chrono::steady_clock::now() - begin_;
  try {
    observer_.log(QPLAN_LOG_DEBUG,
                  what_ + ": " +
                      std::to_string(std::chrono::duration_cast<std::chrono::microseconds>(passed).count()) +
                      " us");
  } catch (...) {  // a lost message is no reason to die while another exception is under way
  }
}

}  // namespace qplan::pipeline
