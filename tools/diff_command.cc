// qplan diff: what is different about two plans.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/base/listing.h"
#include "tools/command.h"
#include "tools/files.h"
#include "tools/model_options.h"
#include "tools/reports.h"

namespace qplan::tools {
namespace {

using Json = nlohmann::ordered_json;

struct DiffOptions {
  std::string a, b;
  bool json = false;
  bool all = false;
};

struct Figure {
  std::string name;
  double a = 0, b = 0;
  enum Kind { kCount, kBytes, kNanoseconds } kind = kCount;
};

// Steps and tensors by a name that a plan has once.
std::map<std::string, const Json*> by_name(const Json& list) {
  std::map<std::string, const Json*> result;
  for (const Json& entry : list) {
    const auto name = entry.at("name").get<std::string>();
    if (name.empty()) continue;
    const auto [at, is_new] = result.emplace(name, &entry);
    if (!is_new) at->second = nullptr;
  }
  std::erase_if(result, [](const auto& entry) { return entry.second == nullptr; });
  return result;
}

std::map<std::string, uint64_t> count_kinds(const Json& plan) {
  std::map<std::string, uint64_t> counts;
  for (const Json& step : plan.at("steps")) {
    if (!step.contains("alternative")) ++counts[step.at("op").get<std::string>()];
  }
  return counts;
}

class Difference {
 public:
  Difference(const PlanFile& a, const PlanFile& b) : a_(inspect_plan(a)), b_(inspect_plan(b)) {
    compare_operators();
    compare_steps();
    compare_quantisation();
    compare_constants(a, b);
    compare_memory();
    compare_time();
  }

  [[nodiscard]] bool same_content() const { return a_.at("content_digest") == b_.at("content_digest"); }

  [[nodiscard]] Json json() const {
    Json report;
    report["same_content"] = same_content();
    report["digest"] = {a_.at("content_digest"), b_.at("content_digest")};
    report["targets"] = {a_.at("targets"), b_.at("targets")};
    for (const auto& [section, figures] : sections_) {
      report[section] = Json::object();
      for (const Figure& figure : figures) report[section][figure.name] = {figure.a, figure.b};
    }
    report["steps"] = steps_;
    report["only_in_a"] = only_in_a_;
    report["only_in_b"] = only_in_b_;
    report["quantisation"] = quantisation_;
    report["same_constants"] = same_constants_;
    report["constants"] = constants_;
    return report;
  }

  [[nodiscard]] std::string text(const std::string& a_name, const std::string& b_name, bool all) const {
    if (same_content()) return "the plans have the same content (" + text_of(a_.at("content_digest")) + ")\n";
    const std::string names = "a: " + a_name + "\nb: " + b_name + "\n";
    std::string text;
    if (a_.at("targets") != b_.at("targets"))
      text += "targets:\n  a  " + targets(a_) + "\n  b  " + targets(b_) + "\n";
    for (const auto& [section, figures] : sections_) text += section_text(section, figures, all);
    text += list_text("steps that are other ones", steps_, all);
    text += list_text("steps only in a", only_in_a_, all);
    text += list_text("steps only in b", only_in_b_, all);
    text += list_text("quantisation and types of tensors", quantisation_, all);
    text += list_text("constants with other values", constants_, all);
    if (constants_.empty() && !same_constants_)
      text += "constants: their bytes are other ones, of no two of the same name and size\n";
    if (text.empty())
      text = "the content is another one, but nothing that is compared here; see qplan inspect --json\n";
    return names + text;
  }

 private:
  static std::string text_of(const Json& value) {
    return value.is_string() ? value.get<std::string>() : json_text(value);
  }

  static std::string targets(const Json& plan) {
    std::string text;
    for (const Json& target : plan.at("targets")) {
      text += (text.empty() ? "" : "; ") + text_of(target.at("name")) + " " + text_of(target.at("options"));
    }
    return text;
  }

  void compare_operators() {
    std::vector<Figure> figures = {
        {"steps", static_cast<double>(num_steps(a_)), static_cast<double>(num_steps(b_))}};
    std::map<std::string, std::pair<uint64_t, uint64_t>> counts;
    for (const auto& [op, count] : count_kinds(a_)) counts[op].first = count;
    for (const auto& [op, count] : count_kinds(b_)) counts[op].second = count;
    for (const auto& [op, pair] : counts)
      figures.push_back({op, static_cast<double>(pair.first), static_cast<double>(pair.second)});
    sections_.emplace_back("operators", std::move(figures));

    std::map<std::string, std::pair<double, double>> placed;
    for (const Json& region : a_.at("regions"))
      placed["operators on " + text_of(region.at("target"))].first += region.at("operators").get<double>();
    for (const Json& region : b_.at("regions"))
      placed["operators on " + text_of(region.at("target"))].second += region.at("operators").get<double>();
    placed["regions"] = {static_cast<double>(a_.at("regions").size()),
                         static_cast<double>(b_.at("regions").size())};
    for (const auto* plan : {&a_, &b_}) {
      for (const Json& step : plan->at("steps")) {
        if (step_target(step).empty()) continue;
        auto& pair = placed["MACs on " + step_target(step)];
        (plan == &a_ ? pair.first : pair.second) += step.at("macs").get<double>();
      }
    }
    std::vector<Figure> placement;
    for (const auto& [name, pair] : placed) placement.push_back({name, pair.first, pair.second});
    sections_.emplace_back("placement", std::move(placement));
  }

  static size_t num_steps(const Json& plan) {
    return static_cast<size_t>(std::ranges::count_if(
        plan.at("steps"), [](const Json& step) { return !step.contains("alternative"); }));
  }

  void compare_steps() {
    const auto in_a = by_name(a_.at("steps")), in_b = by_name(b_.at("steps"));
    for (const auto& [name, step] : in_a) {
      const auto at = in_b.find(name);
      if (at == in_b.end()) {
        only_in_a_.push_back({{"name", name}, {"op", step->at("op")}});
        continue;
      }
      const Json changes = step_changes(*step, *at->second);
      if (!changes.empty()) steps_.push_back({{"name", name}, {"changes", changes}});
    }
    for (const auto& [name, step] : in_b) {
      if (!in_a.contains(name)) only_in_b_.push_back({{"name", name}, {"op", step->at("op")}});
    }
  }

  // What runs a step: its device, the CPU, or the CPU in place of a device.
  static std::string placement(const Json& step) {
    const std::string target = step_target(step);
    return target.empty() ? "fallback" : target;
  }

  // {"op": ["add", "conv2d"], "params.clamp_max": ["6", "255"], ...}
  static Json step_changes(const Json& a, const Json& b) {
    Json changes = Json::object();
    const auto compare = [&](const std::string& key, const Json& x, const Json& y) {
      if (x != y) changes[key] = Json::array({x, y});
    };
    compare("op", a.at("op"), b.at("op"));
    compare("placement", placement(a), placement(b));
    compare("macs", a.at("macs"), b.at("macs"));
    compare("output_shapes", a.at("output_shapes"), b.at("output_shapes"));
    compare("schedule", a.value("schedule", Json::object()), b.value("schedule", Json::object()));
    if (a.at("op") == b.at("op")) {
      const Json &of_a = a.at("params"), &of_b = b.at("params");
      for (const auto& [key, value] : of_a.items()) compare(key, value, of_b.value(key, Json()));
      for (const auto& [key, value] : of_b.items()) {
        if (!of_a.contains(key)) compare(key, Json(), value);
      }
    }
    return changes;
  }

  void compare_quantisation() {
    const auto in_a = by_name(a_.at("tensors")), in_b = by_name(b_.at("tensors"));
    for (const auto& [name, tensor] : in_a) {
      const auto at = in_b.find(name);
      if (at == in_b.end()) continue;
      Json changes = Json::object();
      for (const char* key : {"dtype", "shape", "scale", "zero_point"}) {
        if (tensor->at(key) != at->second->at(key))
          changes[key] = Json::array({tensor->at(key), at->second->at(key)});
      }
      if (!changes.empty()) quantisation_.push_back({{"name", name}, {"changes", changes}});
    }
  }

  // Where the file has the bytes of each bank of constants; others are empty.
  static std::vector<std::string_view> constant_banks(const PlanFile& file, const Json& plan) {
    const std::string_view bytes(static_cast<const char*>(file.bytes()), file.size());
    std::vector<std::string_view> banks;
    for (const Json& bank : plan.at("banks")) {
      banks.emplace_back();
      if (bank.at("kind") == "constants")
        banks.back() = bytes.substr(bank.at("file_offset").get<size_t>(), bank.at("bytes").get<size_t>());
    }
    return banks;
  }

  void compare_constants(const PlanFile& a, const PlanFile& b) {
    const auto banks_a = constant_banks(a, a_), banks_b = constant_banks(b, b_);
    same_constants_ = banks_a == banks_b;
    if (same_constants_) return;
    const auto bytes_of = [](const std::vector<std::string_view>& banks, const Json& tensor) {
      const std::string_view bank = banks.at(tensor.at("bank").get<size_t>());
      return bank.empty() ? bank
                          : bank.substr(tensor.at("offset").get<size_t>(), tensor.at("bytes").get<size_t>());
    };
    const auto in_a = by_name(a_.at("tensors")), in_b = by_name(b_.at("tensors"));
    for (const auto& [name, tensor] : in_a) {
      const auto at = in_b.find(name);
      if (at == in_b.end()) continue;
      const std::string_view x = bytes_of(banks_a, *tensor), y = bytes_of(banks_b, *at->second);
      if (x.size() != y.size() || x == y) continue;  // another size is another type or shape, which is listed
      size_t different = 0;
      for (size_t i = 0; i < x.size(); ++i) different += x[i] != y[i] ? 1 : 0;
      constants_.push_back({{"name", name}, {"bytes", x.size()}, {"different_bytes", different}});
    }
  }

  void compare_memory() {
    std::vector<Figure> figures;
    const auto add = [&](const std::string& name, const auto& get) {
      figures.push_back({name, get(a_), get(b_), Figure::kBytes});
    };
    const auto memory = [](const char* key) {
      return [key](const Json& plan) { return plan.at("memory").at(key).template get<double>(); };
    };
    add("file", [](const Json& plan) { return plan.at("file_bytes").get<double>(); });
    add("constants", memory("constants_bytes"));
    add("arena", memory("arena_bytes"));
    add("scratch a worker", memory("scratch_per_worker_bytes"));
    add("device", memory("device_bytes"));
    add("session, 64 bit, 1 worker", [](const Json& plan) {
      return plan.at("memory").at("session_bytes").at("64_bit").at("1").get<double>();
    });
    sections_.emplace_back("memory", std::move(figures));
  }

  void compare_time() {
    sections_.emplace_back("estimated time", std::vector<Figure>{{"all steps", estimated_ns(a_),
                                                                  estimated_ns(b_), Figure::kNanoseconds}});
  }

  static std::string number(double value, Figure::Kind kind) {
    if (kind == Figure::kNanoseconds) return time_text(static_cast<uint64_t>(value));
    return grouped(static_cast<uint64_t>(value)) + (kind == Figure::kBytes ? " B" : "");
  }

  static std::string section_text(const std::string& section, const std::vector<Figure>& figures, bool all) {
    std::string text;
    for (const Figure& figure : figures) {
      if (figure.a == figure.b && !all) continue;
      char line[256], change[64] = "";
      if (figure.a > 0 && figure.a != figure.b)
        std::snprintf(change, sizeof change, "%+.1f %%", 100 * (figure.b / figure.a - 1));
      std::snprintf(line, sizeof line, "  %-28s %18s %18s  %s\n", figure.name.c_str(),
                    number(figure.a, figure.kind).c_str(), number(figure.b, figure.kind).c_str(), change);
      text += line;
    }
    return text.empty() ? "" : section + ":\n" + text;
  }

  static std::string list_text(const std::string& title, const Json& list, bool all) {
    constexpr size_t kShown = 20;
    if (list.empty()) return "";
    std::string text = title + ": " + std::to_string(list.size()) + "\n";
    for (size_t i = 0; i < list.size() && (all || i < kShown); ++i) {
      text += "  " + short_name(list[i].at("name").get<std::string>());
      if (list[i].contains("op")) text += " (" + text_of(list[i].at("op")) + ")";
      if (list[i].contains("different_bytes"))
        text += ": " + grouped(list[i].at("different_bytes").get<uint64_t>()) + " of " +
                grouped(list[i].at("bytes").get<uint64_t>()) + " bytes";
      if (list[i].contains("changes")) {
        bool is_first = true;
        for (const auto& [key, pair] : list[i].at("changes").items()) {
          text += (is_first ? ": " : "; ") + key + " " + shortened(pair[0]) + " -> " + shortened(pair[1]);
          is_first = false;
        }
      }
      text += "\n";
    }
    if (!all && list.size() > kShown)
      text += "  and " + std::to_string(list.size() - kShown) + " more; --all lists them\n";
    return text;
  }

  static std::string shortened(const Json& value) {
    constexpr size_t kShown = 60;
    const std::string text = value.is_null() ? "none" : text_of(value);
    return text.size() <= kShown ? text : text.substr(0, kShown) + "...";
  }

  const Json a_, b_;
  std::vector<std::pair<std::string, std::vector<Figure>>> sections_;
  Json steps_ = Json::array(), only_in_a_ = Json::array(), only_in_b_ = Json::array(),
       quantisation_ = Json::array(), constants_ = Json::array();
  bool same_constants_ = true;
};

void run(const DiffOptions& options) {
  const PlanFile a(options.a), b(options.b);
  const Difference difference(a, b);
  if (options.json) {
    Json report = {{"a", options.a}, {"b", options.b}};
    report.update(difference.json());
    print(json_page(report));
  } else {
    print(difference.text(options.a, options.b, options.all));
  }
  if (!difference.same_content()) throw ExitStatus{kExitDifferent};
}

}  // namespace

void add_diff_command(CLI::App& app) {
  auto options = std::make_shared<DiffOptions>();
  CLI::App* command = app.add_subcommand("diff", "Print what is different about two plans");
  command->add_option("A", options->a, "Plan file")->required()->type_name("");
  command->add_option("B", options->b, "Plan file")->required()->type_name("");
  command->add_flag("--all", options->all, "Print equal figures, and long lists as a whole");
  command->add_flag("--json", options->json, "Print the differences as JSON");
  command->footer(
      "Compares operators, placement, steps and tensors of one name, quantisation, constants, memory, and\n"
      "the time that is estimated from MACs and bytes. Names and provenance do not count as content.\n"
      "`qplan check A --against B` compares what the plans compute.\n"
      "Exit status: 0 the same content, 3 another one, 1 a plan could not be read, 2 wrong usage.\n"
      "Examples:\n"
      "  qplan diff old.qplan new.qplan\n"
      "  qplan diff old.qplan new.qplan --json | jq .memory.arena");
  command->callback([options]() { run(*options); });
}

}  // namespace qplan::tools
