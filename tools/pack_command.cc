// qplan pack: a model file in, a plan file out.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "qplan/host.h"
#include "qplan/pack.h"
#include "tools/command.h"
#include "tools/files.h"
#include "tools/given_options.h"
#include "tools/model_options.h"
#include "tools/number_option.h"
#include "tools/reports.h"

namespace qplan::tools {
namespace {

struct PackOptions {
  ModelOptions model;
  PlacementOptions placement;
  std::string plan;
  bool coverage = false;
  bool json = false;
  bool strip_names = false;
  std::string tuning;
  uint32_t tuning_threads = 1;
  std::string fuse = "auto";
  uint64_t max_ram = 0;
  bool observable = false;
  uint32_t self_checks = 0;
};

// summary: the packer's line about the placement.
std::string pack(const PackOptions& options, std::string* summary) {
  PackArguments arguments(options.model);
  arguments.place(options.placement);
  arguments.pack_options().strip_names = options.strip_names ? 1 : 0;
  if (!options.tuning.empty()) arguments.pack_options().tuning_file = options.tuning.c_str();
  arguments.pack_options().tuning_threads = options.tuning_threads;
  arguments.pack_options().fuse = parse_fuse(options.observable ? "off" : options.fuse);
  arguments.pack_options().max_ram = options.max_ram;
  arguments.pack_options().self_checks = options.self_checks;
  std::string plan;
  qplan_error error = make_error();
  arguments.check(qplan_pack_file(options.model.model.c_str(), &arguments.pack_options(), append_to_string,
                                  &plan, &error),
                  error);
  *summary = arguments.summary();
  return plan;
}

void check_output(const PackOptions& options) {
  std::vector<NamedFile> inputs = input_files(options.model, options.placement);
  inputs.push_back({"--tuning", options.tuning});
  check_outputs({{"--output", options.plan}}, inputs);
}

// "12.9 M (95.4 %)"
std::string share_text(const nlohmann::ordered_json& share, const std::string& what) {
  const auto total = share.at("total").get<uint64_t>(), run = share.at("run").get<uint64_t>();
  char percent[32];
  std::snprintf(percent, sizeof percent, "%.1f",
                total == 0 ? 100.0 : 100.0 * static_cast<double>(run) / static_cast<double>(total));
  return short_count(run) + " of " + short_count(total) + " " + what + " (" + percent + " %)";
}

// Prints what would run; Failure unless all of it does.
void cover(const PackOptions& options) {
  PackArguments arguments(options.model);
  arguments.place(options.placement);
  std::string text;
  qplan_error error = make_error();
  arguments.check(qplan_explain(options.model.model.c_str(), &arguments.pack_options(),
                                QPLAN_EXPLAIN_COVERAGE, append_to_string, &text, &error),
                  error);
  const auto report = nlohmann::ordered_json::parse(text);
  std::vector<std::string> details;
  uint64_t count = 0;
  for (const auto& missing : report.at("missing")) {
    count += missing.at("count").get<uint64_t>();
    const auto macs = missing.at("macs").get<uint64_t>();
    details.push_back(std::to_string(missing.at("count").get<uint64_t>()) + " x " +
                      missing.at("operator").get<std::string>() + ": " +
                      missing.at("reason").get<std::string>() + " (first '" +
                      missing.at("first").get<std::string>() + "'" +
                      (macs == 0 ? "" : ", " + short_count(macs) + " MACs") + ")");
  }
  if (options.json) {
    print(text);
  } else {
    print(share_text(report.at("operators"), "operators") + " and " + share_text(report.at("macs"), "MACs") +
          " would run\n");
  }
  if (!report.at("all_run").get<bool>())
    throw Failure(count_text(count, "operator does not run:", "operators do not run:"), std::move(details));
}

void run(const CLI::App& command, const PackOptions& options) {
  if (options.coverage) {
    refuse_without_effect(command,
                          {"--output", "--strip-names", "--tuning", "--tuning-threads", "--fuse", "--max-ram",
                           "--observable", "--self-check"},
                          "beside --coverage, which makes no plan");
    return cover(options);
  }
  if (options.plan.empty()) throw CLI::RequiredError("--output");
  check_output(options);
  const uint64_t begin = qplan_host_now_ns(nullptr);
  std::string summary;
  const std::string plan = pack(options, &summary);
  qplan_error error = make_error();
  check(qplan_file_write(options.plan.c_str(), plan.data(), plan.size(), &error), error, "");
  const uint64_t end = qplan_host_now_ns(nullptr);
  // Plans want a 64-byte boundary, which a string does not promise.
  const std::unique_ptr<void, void (*)(void*)> aligned(std::aligned_alloc(64, (plan.size() + 63) / 64 * 64),
                                                       std::free);
  if (aligned == nullptr) throw std::bad_alloc();
  std::memcpy(aligned.get(), plan.data(), plan.size());
  const auto report = nlohmann::ordered_json::parse(inspect_text(aligned.get(), plan.size(), options.plan));
  std::string text =
      "packed '" + one_line(options.plan) + "' in " + time_text(end - begin) + "\n" + pack_summary(report);
  // For the CPU alone there is no placement to report.
  if (!summary.empty() && has_devices(report)) text += "  " + one_line(summary) + "\n";
  // Standard output belongs to the IR when that was asked for.
  if (options.model.dump_after.empty()) {
    print(text);
  } else {
    std::fputs(text.c_str(), stderr);
  }
}

}  // namespace

void add_pack_command(CLI::App& app) {
  auto options = std::make_shared<PackOptions>();
  CLI::App* command = app.add_subcommand("pack", "Make a plan of a model");
  add_model_options(*command, options->model);
  add_placement_options(*command, options->placement);
  command
      ->add_option("-o,--output", options->plan,
                   "Plan file to write; it is replaced as a whole or not at all")
      ->type_name("PLAN");
  CLI::Option* coverage = command->add_flag(
      "--coverage", options->coverage,
      "Write nothing: print which share of the operators and of the multiply-accumulates (MACs) would run on "
      "the CPU, and what would not. Exit status 0 where all would run");
  command->add_flag("--json", options->json, "With --coverage: as JSON")
      ->needs(coverage)
      ->excludes(command->get_option("--dump-after"));
  command->add_flag("--strip-names", options->strip_names, "Leave names and provenance out of the plan");
  CLI::Option* tuning =
      command
          ->add_option("--tuning", options->tuning,
                       "Measurements of `qplan tune`: each step uses the schedule that was fastest")
          ->type_name("LOG");
  command
      ->add_option("--tuning-threads", options->tuning_threads,
                   "Use the measurements made with so many threads (default 1)")
      ->type_name("N")
      ->transform(whole_number(1, UINT32_MAX))
      ->needs(tuning);
  CLI::Option* fuse = add_fuse_option(*command, options->fuse);
  CLI::Option* max_ram =
      command
          ->add_option(
              "--max-ram", options->max_ram,
              "Bytes that a session with one thread may take, as 24K or 1M too: where it takes more, the "
              "plan of --fuse memory stands in, with cascades as fast as the limit permits; where that "
              "takes more, nothing is written and the step that takes most is named")
          ->type_name("BYTES")
          ->transform(CLI::AsSizeValue(false).description(""))
          ->transform(leading_digits())
          ->check(CLI::Range(uint64_t{1}, uint64_t{1} << 48).description(""));
  command
      ->add_flag("--observable", options->observable,
                 "Make each layer a step of its own, as --fuse off does, so that `qplan run --dump-tensors` "
                 "shows every tensor of the lowered network (docs/cli.md says what even it does not show)")
      ->excludes(fuse)
      ->excludes(max_ram);
  command
      ->add_option(
          "--self-check", options->self_checks,
          "Runs whose checksums the plan holds, at most 64: `qplan check PLAN --self`, "
          "qplan_session_self_check and Python's session.self_check() compare them and name the step "
          "that is wrong")
      ->type_name("N")
      ->transform(whole_number())
      ->check(CLI::Range(uint32_t{1}, uint32_t{64}).description(""));
  command->footer(
      "The same model and options give the same bytes, on every machine.\n"
      "Examples:\n"
      "  qplan pack model.tflite -o model.qplan\n"
      "  qplan pack model.onnx -o model.qplan --contract f32e --io int8 --io-layout nhwc\n"
      "  qplan pack model.pt -o model.qplan --input-shape x=1x3x224x224\n"
      "  qplan pack layer.relay -o layer.qplan --input-shape input=1x3x224x224 --synthesize-constants 1\n"
      "  qplan pack model.tflite -o small.qplan --target cpu,isa=reference --strip-names\n"
      "  qplan pack model.tflite -o model.qplan --tuning tuning.jsonl\n"
      "  qplan pack model.tflite -o model.qplan --fuse off\n"
      "  qplan pack model.tflite -o model.qplan --target cpu,arch=cortex-m4 --max-ram 24K\n"
      "  qplan pack model.tflite -o observable.qplan --observable\n"
      "  qplan pack model.tflite -o model.qplan --self-check 2\n"
      "  qplan pack model.tflite -o model.qplan --target \"vta, cpu\"\n"
      "  qplan pack model.tflite -o model.qplan --target \"vta, cpu\" --pin block3/conv=cpu --fallback none\n"
      "  qplan pack model.tflite -o model.qplan --dump-after all > passes.txt\n"
      "  qplan pack model.tflite --coverage && echo all of it runs");
  command->callback([command, options]() { run(*command, *options); });
}

}  // namespace qplan::tools
