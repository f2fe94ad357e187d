// qplan explain: which operator would run where, and why; on the CPU, which kernel computes it; and what less
// memory costs.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "qplan/host.h"
#include "qplan/pack.h"
#include "src/base/listing.h"
#include "tools/command.h"
#include "tools/files.h"
#include "tools/given_options.h"
#include "tools/model_options.h"
#include "tools/reports.h"
#include "tools/session.h"

namespace qplan::tools {
namespace {

using Json = nlohmann::ordered_json;

// ---- the CPU's steps: which kernel computes which operator, and why one is slower than it could be

// Families that move bytes and compute nothing: one kernel serves every processor.
bool only_moves(const std::string& op) {
  constexpr std::string_view kFamilies[] = {"copy", "concat", "split", "pad", "transpose", "strided_slice"};
  return std::find(std::begin(kFamilies), std::end(kFamilies), op) != std::end(kFamilies);
}

std::string kilobytes(uint64_t bytes) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f kB", static_cast<double>(bytes) / 1e3);
  return text;
}

// Why the plan suits no vector kernel of this machine: "packed for 'arch=cortex-m'"; "" where it was made for
// them.
std::string made_for_others(const PlanFile& plan) {
  qplan_plan_info info{};
  info.struct_size = sizeof info;
  if (qplan_plan_get_info(&plan.plan(), &info) < 0) return "";
  const std::string options = one_line(info.target_options);
  const bool is_for_reference = options.find("isa=reference") != std::string::npos;
  return info.is_for_other_arch != 0 || is_for_reference ? "packed for '" + options + "'" : "";
}

// What `inspect --json` states of this machine, for a step or a layer of a cascade; null where it does not.
const Json* of_this_machine(const Json& of_step) {
  if (!of_step.contains("variants")) return nullptr;
  for (const Json& variant : of_step.at("variants")) {  // the best instruction set first
    uint32_t isa = QPLAN_ISA_AUTO;
    const bool known = qplan_isa_from_name(variant.at("isa").get<std::string>().c_str(), &isa) >= 0;
    if (known && qplan_isa_available(isa) != 0) return &variant;
  }
  return nullptr;
}

// Why this machine does not use better variants. before: what the lines begin with.
void add_refusals(const Json& of_step, const std::string& before, std::vector<std::string>* lines) {
  const Json* variant = of_this_machine(of_step);
  if (variant == nullptr || !variant->contains("refused")) return;
  for (const Json& refused : variant->at("refused")) {
    lines->push_back(before + refused.at("kernel").get<std::string>() +
                     " is not used: " + refused.at("reason").get<std::string>());
  }
}

std::vector<std::string> refusals(const Json& of_step) {
  std::vector<std::string> lines;
  add_refusals(of_step, "", &lines);
  if (!of_step.contains("layers")) return lines;
  for (size_t i = 0; i < of_step.at("layers").size(); ++i)
    add_refusals(of_step.at("layers")[i], "layer " + std::to_string(i) + ": ", &lines);
  return lines;
}

// of_step: as `inspect --json` prints it. others: made_for_others().
std::vector<std::string> notes_of(const qplan_event& event, const Json& of_step, const std::string& others) {
  const std::string op = event.op, kernel = event.kernel;
  std::vector<std::string> notes;
  if (only_moves(op)) {
    std::string note = "computes nothing, copies " + kilobytes(event.bytes);
    if (op == "transpose")
      note += " into another layout; at an input or output --io-layout nhwc leaves it to the caller";
    notes.push_back(note);
  } else if (op == "quantize" || op == "dequantize") {
    notes.push_back(
        "converts between float32 and integers; at an input or output --io int8 leaves it to the caller");
  } else if (op == "chain") {
    notes.push_back(
        "several layers, a few rows at a time, which saves memory; --fuse off makes a step of each");
  }
  if (only_moves(op) || kernel.empty()) return notes;
  const bool is_reference = kernel.ends_with("_ref");
  if (!others.empty()) {
    if (is_reference) notes.push_back("the reference kernel runs here: " + others);
    return notes;
  }
  const Json* variant = of_this_machine(of_step);
  const std::vector<std::string> reasons = refusals(of_step);
  if (is_reference && variant != nullptr && variant->at("isa") != "reference") {
    const bool has_scratch = variant->at("kernel") == kernel;
    notes.push_back(has_scratch
                        ? "slow: the reference kernel runs"
                        : "slow: the reference kernel runs, as a vector kernel has too little scratch");
  }
  notes.insert(notes.end(), reasons.begin(), reasons.end());
  return notes;
}

}  // namespace

Json cpu_explain_json(const PlanFile& plan, const std::string& custom_operators) {
  SessionOptions options;
  options.custom_operators = custom_operators;
  const Session session(plan, options);
  const qplan_session_info info = session.info();
  const Json of_plan = plan_steps(plan);
  const std::string others = made_for_others(plan);
  Json report;
  report["isa"] = info.isa_name;
  report["macs"] = info.macs;
  report["steps"] = Json::array();
  for (uint32_t i = 0; i < info.num_steps; ++i) {
    const qplan_event event = session.step(i);
    Json step;
    step["step"] = i;
    step["op"] = event.op;
    step["kernel"] = event.kernel;
    step["name"] = event.name;
    step["macs"] = event.macs;
    step["bytes"] = event.bytes;
    const Json& of_step = of_plan.at(event.step);
    step["schedule"] = of_step.contains("schedule") ? of_step.at("schedule") : Json::object();
    for (const char* member : {"variants", "layers"}) {
      if (of_step.contains(member)) step[member] = of_step.at(member);
    }
    step["notes"] = notes_of(event, of_step, others);
    report["steps"].push_back(step);
  }
  return report;
}

namespace {

// A table, with a line below a step for each note.
std::string cpu_explain_text(const Json& report) {
  const Json& steps = report.at("steps");
  std::string text = "cpu: " + count_text(steps.size(), "step", "steps") + ", " +
                     short_count(report.at("macs").get<uint64_t>()) +
                     " MACs; the kernels are those of this machine (" + report.at("isa").get<std::string>() +
                     ")\n";
  text += " step       MMAC         kB  kernel                        operator\n";
  for (const Json& step : steps) {
    char line[128];
    std::snprintf(line, sizeof line, "%5u %10.3f %10.1f  ", step.at("step").get<uint32_t>(),
                  static_cast<double>(step.at("macs").get<uint64_t>()) / 1e6,
                  static_cast<double>(step.at("bytes").get<uint64_t>()) / 1e3);
    std::string kernel = step.at("kernel").get<std::string>();
    if (kernel.size() < 28) kernel.resize(28, ' ');
    text += line + kernel + "  " + one_line(short_name(step.at("name").get<std::string>()));
    const std::string schedule = schedule_text(step.at("schedule"));
    text += (schedule.empty() ? "" : "  {" + schedule + "}") + "\n";
    for (const Json& note : step.at("notes")) text += "        " + note.get<std::string>() + "\n";
  }
  return text + "'qplan bench PLAN --per-step' measures how long each step takes\n";
}

// ---- --memory: the plans that --fuse and --max-ram choose from, and what less memory costs

constexpr struct {
  const char* name;
  uint32_t fuse;
} kChoices[] = {{"off", QPLAN_FUSE_OFF},
                {"auto", QPLAN_FUSE_AUTO},
                {"memory", QPLAN_FUSE_MEMORY},
                {"all", QPLAN_FUSE_ALL}};

// The memory of a session with one worker; with the widest pointers where the target is not known.
uint64_t session_bytes(const Json& memory) {
  const bool is_small = memory.at("target_pointer_bits") == 32;
  return memory.at("session_bytes").at(is_small ? "32_bit" : "64_bit").at("1").get<uint64_t>();
}

Json choice_of(const char* name, const Json& plan) {
  uint64_t cascades = 0, repeated = 0;
  for (const Json& step : plan.at("steps")) {
    if (!step.contains("repeated_work")) continue;
    ++cascades;
    repeated += step.at("repeated_work").get<uint64_t>();
  }
  Json choice;
  choice["fuse"] = name;
  choice["session_bytes"] = session_bytes(plan.at("memory"));
  choice["cascades"] = cascades;
  choice["macs"] = plan.at("functions").at(0).at("macs");
  choice["work"] = plan.at("functions").at(0).at("work");
  choice["repeated_work"] = repeated;
  choice["copies"] = plan.at("memory").at("copies");
  return choice;
}

std::string right(const std::string& text, size_t width) {
  return text.size() < width ? std::string(width - text.size(), ' ') + text : text;
}

uint64_t bytes_of(const Json& choice) { return choice.at("session_bytes").get<uint64_t>(); }

// "+1.20 %" more work than without cascades; "?" where a kernel is not of this build.
std::string more_work_text(const Json& choice, const Json& without) {
  if (choice.at("work").is_null() || without.at("work").is_null()) return "?";
  const auto base = without.at("work").get<double>();
  if (base == 0) return "?";
  char text[32];
  std::snprintf(text, sizeof text, "%+.2f %%", 100 * (choice.at("work").get<double>() / base - 1));
  return text;
}

// What each --max-ram gives: a plan that fits, the default's first. is_small: on processors of 32 bits a
// limit above the least memory gives faster cascades.
std::string max_ram_text(const Json& choices, bool is_small) {
  const uint64_t of_auto = bytes_of(choices.at(1)), of_memory = bytes_of(choices.at(2));
  const uint64_t of_all = bytes_of(choices.at(3));
  std::string text = "--max-ram from " + grouped(of_auto) + " on takes the plan of --fuse auto";
  if (of_memory < of_auto) {
    text += ", from " + grouped(of_memory) + " on that of --fuse memory";
    if (is_small) text += ", with faster cascades where the limit leaves room";
  }
  const uint64_t least = std::min(of_auto, of_memory);
  if (of_all < least) text += ", from " + grouped(of_all) + " on that of --fuse all";
  return text + "; no plan takes less than " + grouped(std::min(of_all, least)) + "\n";
}

// The plan of each --fuse, with the memory of a session of one thread, and what it computes.
// {"target_pointer_bits": 32, "choices": [{"fuse": "off", "session_bytes", "cascades", "macs", "work",
// "repeated_work", "copies"}, ...]}; copies as in `inspect --json`
Json memory_explain_json(const ModelOptions& model, const PlacementOptions& placement) {
  Json report;
  report["target_pointer_bits"] = nullptr;
  report["choices"] = Json::array();
  for (const auto& [name, fuse] : kChoices) {
    const PlanFile plan(model.model, pack_model(model, placement, fuse));
    const Json inspected = Json::parse(inspect_text(plan.bytes(), plan.size(), "'" + model.model + "'"));
    report["target_pointer_bits"] = inspected.at("memory").at("target_pointer_bits");
    report["choices"].push_back(choice_of(name, inspected));
  }
  return report;
}

std::string memory_explain_text(const Json& report) {
  constexpr uint64_t kBarWidth = 24;
  const Json& choices = report.at("choices");
  uint64_t most = 1;
  for (const Json& choice : choices) most = std::max(most, bytes_of(choice));
  std::string text =
      " --fuse    session, bytes                            cascades            MACs   more work      "
      "repeated\n";
  for (const Json& choice : choices) {
    std::string name = " " + choice.at("fuse").get<std::string>();
    name.resize(10, ' ');
    std::string bar(static_cast<size_t>(std::max<uint64_t>(kBarWidth * bytes_of(choice) / most, 1)), '#');
    bar.resize(kBarWidth, ' ');
    text += name + right(grouped(bytes_of(choice)), 14) + "  " + bar +
            right(grouped(choice.at("cascades").get<uint64_t>()), 12) +
            right(grouped(choice.at("macs").get<uint64_t>()), 16) +
            right(more_work_text(choice, choices.at(0)), 12) +
            right(grouped(choice.at("repeated_work").get<uint64_t>()), 14) + "\n";
  }
  text += max_ram_text(choices, report.at("target_pointer_bits") == 32);
  for (const Json& choice : choices) {
    if (choice.at("copies").empty()) continue;
    text +=
        "\nwith --fuse " + choice.at("fuse").get<std::string>() + ":\n" + copies_text(choice.at("copies"));
  }
  return text;
}

// ---- the command

struct ExplainOptions {
  ModelOptions model;
  PlacementOptions placement;
  bool json = false;
  bool memory = false;
  std::string html;
};

// Whether the target list has a device: a word that is neither "cpu" nor an option of one, "vta" in
// "vta,sram=quarter, cpu".
bool names_device(const ExplainOptions& options) {
  if (!options.placement.target_file.empty()) return true;
  const std::string& list = options.model.target;
  for (size_t begin = 0; begin < list.size();) {
    const size_t end = std::min(list.find(',', begin), list.size());
    const size_t first = std::min(list.find_first_not_of(' ', begin), end);
    const std::string word = list.substr(first, end - first);
    if (!word.empty() && word.find('=') == std::string::npos && word.substr(0, word.find(' ')) != "cpu")
      return true;
    begin = end + 1;
  }
  return false;
}

// The packer's report of the placement.
std::string placement_text(const ExplainOptions& options, int format) {
  PackArguments arguments(options.model);
  arguments.place(options.placement);
  std::string text;
  qplan_error error = make_error();
  arguments.check(qplan_explain(options.model.model.c_str(), &arguments.pack_options(), format,
                                append_to_string, &text, &error),
                  error);
  return text;
}

// The steps that run on the CPU, of a plan or of the plan that a model would become.
std::string cpu_text(const ExplainOptions& options, bool is_plan) {
  if (!options.html.empty()) {
    throw Failure("--html: draws what runs on which device, '" + options.model.model +
                  "' is a plan for the CPU alone; leave --html out, or draw a model");
  }
  const std::string path = options.model.model;
  std::string bytes;
  try {
    if (!is_plan) bytes = pack_model(options.model, options.placement, QPLAN_FUSE_AUTO);
  } catch (const UnsupportedModel&) {
    // No plan, so no steps: the placement has all reasons, or fails as packing did.
    return placement_text(options, options.json ? QPLAN_EXPLAIN_JSON : QPLAN_EXPLAIN_TEXT);
  }
  const auto report = is_plan ? cpu_explain_json(PlanFile(path), options.model.custom_operators)
                              : cpu_explain_json(PlanFile(path, bytes), options.model.custom_operators);
  if (!options.json) return cpu_explain_text(report);
  // For a model the JSON includes the report of the placement, as with devices.
  auto json = is_plan ? nlohmann::ordered_json::object()
                      : nlohmann::ordered_json::parse(placement_text(options, QPLAN_EXPLAIN_JSON));
  json["isa"] = report.at("isa");
  json["steps"] = report.at("steps");
  return json_page(json);
}

bool is_for_cpu_alone(const PlanFile& plan) {
  return !has_devices(
      nlohmann::ordered_json::parse(inspect_text(plan.bytes(), plan.size(), "'" + plan.path() + "'")));
}

void run(const CLI::App& command, const ExplainOptions& options) {
  if (options.json && !options.html.empty())
    throw UsageError("--json and --html: found both, expected one of them");
  check_outputs({{"--html", options.html}}, input_files(options.model, options.placement));
  const bool is_plan = is_plan_file(options.model.model);
  if (is_plan) refuse_options_of_models(command);
  if (options.memory) {
    if (is_plan) {
      throw UsageError(
          "--memory compares the plans that a model can become; expected a model, found the plan '" +
          options.model.model + "'");
    }
    const auto report = memory_explain_json(options.model, options.placement);
    print(options.json ? json_page(report) : memory_explain_text(report));
    return;
  }
  const bool is_cpu = is_plan ? is_for_cpu_alone(PlanFile(options.model.model))
                              : !names_device(options) && options.html.empty();
  const int format = options.json           ? QPLAN_EXPLAIN_JSON
                     : options.html.empty() ? QPLAN_EXPLAIN_TEXT
                                            : QPLAN_EXPLAIN_HTML;
  const std::string text = is_cpu ? cpu_text(options, is_plan) : placement_text(options, format);
  if (options.html.empty()) {
    print(text);
    return;
  }
  qplan_error error = make_error();
  check(qplan_file_write(options.html.c_str(), text.data(), text.size(), &error), error, "");
}

}  // namespace

void add_explain_command(CLI::App& app) {
  auto options = std::make_shared<ExplainOptions>();
  CLI::App* command =
      app.add_subcommand("explain", "Show where each operator of a model runs, as which kernel, and why");
  add_model_options(*command, options->model, "MODEL", "Plan, or model file");
  add_placement_options(*command, options->placement);
  command->add_flag("--json", options->json, "As JSON")->excludes(command->get_option("--dump-after"));
  CLI::Option* memory = command->add_flag(
      "--memory", options->memory,
      "What less memory costs: the memory and the work of the plan of each --fuse, and which one each "
      "--max-ram gives");
  command
      ->add_option(
          "--html", options->html,
          "Write one HTML page there, which needs nothing else: the graph drawn, and the reasons of each "
          "operator")
      ->type_name("FILE")
      ->excludes(memory);
  command->footer(
      "For the CPU (without --target): the steps of the plan that `qplan pack` would make, the kernels "
      "that this machine runs\n"
      "them with, and why one is slow. With a device in --target: what runs there and what does not, "
      "with all reasons.\n"
      "MODEL may be a plan: then explain shows what was decided.\n"
      "Examples:\n"
      "  qplan explain model.tflite\n"
      "  qplan explain model.tflite --target \"vta, cpu\"\n"
      "  qplan explain model.tflite --target \"vta,sram=quarter, cpu\"\n"
      "  qplan explain model.tflite --target cpu,arch=cortex-m4 --memory\n"
      "  qplan explain model.qplan\n"
      "  qplan explain model.tflite --target \"vta, cpu\" --html placement.html\n"
      "  qplan explain model.onnx --target \"vta, cpu\" --contract tfl2 --json > placement.json");
  command->callback([command, options]() { run(*command, *options); });
}

}  // namespace qplan::tools
