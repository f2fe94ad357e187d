// qplan pack: a model file in, a plan file out.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <nlohmann/json.hpp>
#include <string>

#include "qplan/host.h"
#include "qplan/pack.h"
#include "tools/command.h"
#include "tools/error.h"
#include "tools/files.h"
#include "tools/plan_report.h"
#include "tools/progress.h"
#include "tools/text_sink.h"

namespace qplan::tools {
namespace {

struct PackOptions {
  std::string model;
  std::string plan;
  std::string target = "cpu";
  std::string dump_after;
  bool strip_names = false;
  bool verbose = false;
};

// What the packer's callbacks write to.
struct Receivers {
  Progress progress;
  std::string error_text;
};

void on_log(void*, uint32_t level, const char* text) { qplan_host_log(nullptr, level, text); }
void on_error_text(void* user, const char* bytes, size_t size) {
  static_cast<Receivers*>(user)->error_text.append(bytes, size);
}
void on_progress(void* user, const char* stage, uint32_t done, uint32_t total) {
  static_cast<Receivers*>(user)->progress.update(stage, done, total);
}

std::string pack(const PackOptions& options) {
  Receivers receivers;
  qplan_pack_options pack_options{};
  pack_options.struct_size = sizeof pack_options;
  pack_options.strip_names = options.strip_names ? 1 : 0;
  pack_options.target = options.target.c_str();
  pack_options.dump_after = options.dump_after.empty() ? nullptr : options.dump_after.c_str();
  pack_options.log_level = options.verbose ? QPLAN_LOG_INFO : QPLAN_LOG_WARNING;
  pack_options.user = &receivers;
  pack_options.log = on_log;
  pack_options.dump = write_to_stdout;
  pack_options.error_text = on_error_text;
  pack_options.progress = on_progress;
  std::string plan;
  qplan_error error = make_error();
  const qplan_status status =
      qplan_pack_file(options.model.c_str(), &pack_options, append_to_string, &plan, &error);
  if (status < 0 && !receivers.error_text.empty()) throw Failure(receivers.error_text);
  check(status, error, "");
  return plan;
}

void run(const PackOptions& options) {
  const uint64_t begin = qplan_host_now_ns(nullptr);
  const std::string plan = pack(options);
  qplan_error error = make_error();
  check(qplan_file_write(options.plan.c_str(), plan.data(), plan.size(), &error), error, "");
  const double seconds = static_cast<double>(qplan_host_now_ns(nullptr) - begin) * 1e-9;
  // Plans want a 64-byte boundary, which a string does not promise.
  const std::unique_ptr<void, void (*)(void*)> aligned(std::aligned_alloc(64, (plan.size() + 63) / 64 * 64),
                                                       std::free);
  if (aligned == nullptr) throw std::bad_alloc();
  std::memcpy(aligned.get(), plan.data(), plan.size());
  const auto report = nlohmann::ordered_json::parse(inspect_text(aligned.get(), plan.size(), options.plan));
  char time[32];
  std::snprintf(time, sizeof time, ", %.2f s\n", seconds);
  const std::string line = "packed '" + one_line(options.plan) + "': " + pack_summary(report) + time;
  // Standard output belongs to the IR when that was asked for.
  if (options.dump_after.empty()) {
    print(line);
  } else {
    std::fputs(line.c_str(), stderr);
  }
}

}  // namespace

void add_pack_command(CLI::App& app) {
  auto options = std::make_shared<PackOptions>();
  CLI::App* command = app.add_subcommand("pack", "Make a plan of a model");
  command->add_option("MODEL", options->model, "Model file (.tflite)")->required()->type_name("");
  command
      ->add_option("-o,--output", options->plan,
                   "Plan file to write; it is replaced as a whole or not at all")
      ->required()
      ->type_name("PLAN");
  command
      ->add_option("--target", options->target,
                   "What the plan is for: cpu (default), cpu,isa=reference, cpu,arch=cortex-m, ...")
      ->type_name("TARGET");
  command
      ->add_option("--dump-after", options->dump_after,
                   "Print the IR after every pass (all) or after one, by its name")
      ->type_name("PASS");
  command->add_flag("--strip-names", options->strip_names, "Leave names and provenance out of the plan");
  command->add_flag("-v,--verbose", options->verbose, "Log what the packer does");
  command->footer(
      "The same model and options give the same bytes, on every machine.\n"
      "Examples:\n"
      "  qplan pack model.tflite -o model.qplan\n"
      "  qplan pack model.tflite -o small.qplan --target cpu,isa=reference --strip-names\n"
      "  qplan pack model.tflite -o model.qplan --dump-after all > passes.txt");
  command->callback([options]() { run(*options); });
}

}  // namespace qplan::tools
