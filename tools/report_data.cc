// The data of a report: one object, which the page draws and `--json` prints.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <optional>
#include <tuple>
#include <utility>

#include "qplan/host.h"
#include "qplan/pack.h"
#include "tools/check.h"
#include "tools/command.h"
#include "tools/reports.h"
#include "tools/tensor.h"

namespace qplan::tools {
namespace {

using Json = nlohmann::ordered_json;

constexpr uint32_t kReportWarmUpRuns = 5;
constexpr uint64_t kMeasureNs = 10'000'000'000;  // no more runs after that
// As estimated_ns (reports.h).
constexpr double kEstimateGmacs = 66, kEstimateGbytes = 24.5;

// The smallest and the largest number that the type of a quantised tensor can store; null of others.
Json stored_range(const Json& tensor) {
  const auto dtype = tensor.at("dtype").get<std::string>();
  if (dtype == "int8") return {-128, 127};
  if (dtype == "uint8") return {0, 255};
  if (dtype == "int16") return {-32768, 32767};
  return nullptr;
}

// Their real values; null where the plan does not state the quantisation.
Json range_of(const Json& tensor) {
  const Json stored = stored_range(tensor);
  if (stored.is_null() || tensor.at("scale").is_null()) return nullptr;
  const auto low = stored[0].get<double>(), high = stored[1].get<double>();
  const auto scales = tensor.at("scale").is_array() ? tensor.at("scale") : Json::array({tensor.at("scale")});
  const auto zeros =
      tensor.at("zero_point").is_array() ? tensor.at("zero_point") : Json::array({tensor.at("zero_point")});
  double from = std::numeric_limits<double>::max(), to = -from;
  for (size_t i = 0; i < scales.size(); ++i) {
    from = std::min(from, scales[i].get<double>() * (low - zeros[i].get<double>()));
    to = std::max(to, scales[i].get<double>() * (high - zeros[i].get<double>()));
  }
  return {from, to};
}

std::string type_text(const Json& tensor) {
  std::string text = tensor.at("dtype").get<std::string>() + "[";
  for (size_t i = 0; i < tensor.at("shape").size(); ++i)
    text += (i == 0 ? "" : ",") + std::to_string(tensor.at("shape")[i].get<int64_t>());
  return text + "]";
}

Json tensors_data(const Json& plan) {
  Json tensors = Json::array();
  for (const Json& tensor : plan.at("tensors")) {
    const auto kind = plan.at("banks").at(tensor.at("bank").get<size_t>()).at("kind").get<std::string>();
    Json entry;
    entry["name"] = tensor.at("name");
    entry["type"] = type_text(tensor);
    entry["bytes"] = tensor.at("bytes");
    entry["offset"] = tensor.at("offset");
    entry["first"] = tensor.at("first_use");
    entry["last"] = tensor.at("last_use");
    entry["arena"] = kind == "arena";
    entry["constant"] = kind == "constants";
    const bool is_list = tensor.at("scale").is_array();
    entry["scales"] = is_list ? tensor.at("scale").size() : tensor.at("scale").is_null() ? 0 : 1;
    entry["scale"] = is_list ? Json() : tensor.at("scale");
    entry["zero_point"] = is_list ? Json() : tensor.at("zero_point");
    entry["range"] = kind == "constants" ? Json() : range_of(tensor);
    entry["stored"] = kind == "constants" ? Json() : stored_range(tensor);
    entry["used"] = nullptr;
    tensors.push_back(std::move(entry));
  }
  return tensors;
}

// Per tensor that a step writes, and input: the smallest and the largest number that it holds in a run on
// these inputs, and the share of its elements that are the smallest or the largest of their type.
void add_used_ranges(const PlanFile& plan, const Json& inspected, const ReportOptions& options,
                     const TensorBytes& inputs, Json* tensors) {
  const auto add = [&](size_t number, const qplan_tensor_info& info, const std::vector<uint8_t>& bytes) {
    Json& tensor = (*tensors)[number];
    if (tensor.at("stored").is_null()) return;
    const auto least = tensor.at("stored")[0].get<double>(), most = tensor.at("stored")[1].get<double>();
    double low = most, high = least;
    uint64_t at_ends = 0;
    const uint64_t count = element_count(info);
    for (uint64_t i = 0; i < count; ++i) {
      const double value = element(info, bytes.data(), i).value_or(0);
      low = std::min(low, value);
      high = std::max(high, value);
      at_ends += value == least || value == most ? 1 : 0;
    }
    tensor["used"] = {static_cast<int64_t>(low), static_cast<int64_t>(high),
                      static_cast<double>(at_ends) / static_cast<double>(count)};
  };
  const std::vector<qplan_tensor_info> infos = tensor_infos(plan.plan(), QPLAN_INPUT);
  for (size_t i = 0; i < infos.size(); ++i)
    add(inspected.at("inputs").at(i).at("tensor").get<size_t>(), infos[i], inputs[i]);
  const CheckSide side{"", &plan, options.session};
  for (const StepTensor& tensor : run_check_side(side, {"", inputs, std::nullopt}, true).tensors) {
    add(inspected.at("steps").at(tensor.step).at("outputs").at(tensor.output).get<size_t>(), tensor.info,
        tensor.bytes);
  }
}

// The inputs of the report's runs.
TensorBytes report_inputs(const PlanFile& plan, const ReportOptions& options) {
  if (options.inputs.empty()) return random_inputs(plan, 1);
  const std::vector<qplan_tensor_info> infos = tensor_infos(plan.plan(), QPLAN_INPUT);
  if (options.inputs.size() != infos.size()) {
    throw Failure("plan '" + plan.path() + "' has " + count_text(infos.size(), "input", "inputs") +
                  ", found " + std::to_string(options.inputs.size()) + " after --input");
  }
  const PlanMetadata metadata(plan);
  TensorBytes inputs;
  for (uint32_t i = 0; i < infos.size(); ++i) {
    inputs.push_back(load_input(options.inputs[i], infos[i], describe(QPLAN_INPUT, i, infos[i]),
                                metadata.normalisation(i, options.mean, options.std)));
  }
  return inputs;
}

// A session of the plan, run as often as was asked for.
class Measurement {
 public:
  Measurement(const PlanFile& plan, const ReportOptions& options, TensorBytes inputs)
      : platform_(make_platform(QPLAN_LOG_WARNING)) {
    times_.attach(platform_);
    session_.emplace(plan, options.session, &platform_);
    if (options.runs == 0) return;
    const std::vector<qplan_tensor_info> infos = tensor_infos(plan.plan(), QPLAN_INPUT);
    for (uint32_t i = 0; i < infos.size(); ++i) session_->write(i, packed_tensor(infos[i], inputs[i].data()));
    Progress progress;
    for (uint32_t i = 0; i < kReportWarmUpRuns; ++i) session_->invoke();
    times_.clear();
    const uint64_t begin = qplan_host_now_ns(nullptr);
    for (; runs_ < options.runs && qplan_host_now_ns(nullptr) - begin < kMeasureNs; ++runs_) {
      progress.update("measure", runs_, options.runs + 1);
      session_->invoke();
    }
  }
  Measurement(const Measurement&) = delete;
  Measurement& operator=(const Measurement&) = delete;

  const Session& session() const { return *session_; }
  uint32_t runs() const { return runs_; }
  uint64_t ns(uint32_t step) const { return times_.summary(step).median_ns; }

 private:
  qplan_platform platform_;
  StepTimes times_;
  std::optional<Session> session_;
  uint32_t runs_ = 0;
};

Json steps_data(const Json& plan, const Measurement& measured) {
  Json steps = Json::array();
  const uint32_t num_bound = measured.session().info().num_steps;
  for (const Json& step : plan.at("steps")) {
    const auto index = step.at("index").get<uint32_t>();
    uint64_t constants = 0;
    for (const Json& input : step.at("inputs")) {
      const Json& tensor = plan.at("tensors").at(input.get<size_t>());
      if (plan.at("banks").at(tensor.at("bank").get<size_t>()).at("kind") == "constants")
        constants += tensor.at("bytes").get<uint64_t>();
    }
    Json entry;
    for (const char* key : {"index", "op", "name", "inputs", "outputs", "macs", "params"})
      entry[key] = step.at(key);
    entry["target"] = step_target(step).empty() ? std::string("cpu") : step_target(step);
    entry["alternative"] = step.contains("alternative");
    entry["kernel"] = index < num_bound ? measured.session().step(index).kernel : "";
    entry["bytes"] = step_bytes(plan, step);
    entry["constants"] = constants;
    // What a simulator takes is not what a device takes.
    entry["estimated"] = measured.runs() == 0 || step.at("op") == "npu";
    entry["ns"] =
        entry["estimated"].get<bool>() ? static_cast<uint64_t>(estimated_ns(plan, step)) : measured.ns(index);
    entry["notes"] = Json::array();
    steps.push_back(std::move(entry));
  }
  return steps;
}

// Operators with the reasons of the placement; of a plan for the CPU the steps that could be faster.
Json placement_data(const PlanFile& plan, const ReportOptions& options, Json* steps) {
  Json rows = Json::array();
  if (device_targets(plan).empty()) {
    for (const Json& step : cpu_explain_json(plan, options.session.custom_operators).at("steps")) {
      if (step.at("notes").empty()) continue;
      (*steps)[step.at("step").get<size_t>()]["notes"] = step.at("notes");
      Json reasons = Json::array();
      for (const Json& note : step.at("notes")) reasons.push_back({{"id", ""}, {"text", note}});
      rows.push_back({{"target", "cpu"},
                      {"op", step.at("op")},
                      {"name", step.at("name")},
                      {"macs", step.at("macs")},
                      {"reasons", std::move(reasons)}});
    }
    return rows;
  }
  qplan_pack_options pack_options{};
  pack_options.struct_size = sizeof pack_options;
  std::string text;
  qplan_error error = make_error();
  // Plans that were packed without the report have none.
  if (qplan_explain(plan.path().c_str(), &pack_options, QPLAN_EXPLAIN_JSON, append_to_string, &text, &error) <
      0)
    return rows;
  const Json report = Json::parse(text);
  for (const Json& unit : report.at("units")) {
    const Json& first = report.at("nodes").at(unit.at("nodes").at(0).get<size_t>());
    Json reasons = Json::array();
    for (const Json& verdict : unit.at("verdicts")) {
      for (const Json& reason : verdict.at("reasons"))
        reasons.push_back({{"id", reason.at("id")},
                           {"text", "not on " + verdict.at("target").get<std::string>() + ": " +
                                        reason.at("text").get<std::string>()}});
    }
    rows.push_back({{"target", unit.at("target")},
                    {"op", first.at("op")},
                    {"name", first.at("name")},
                    {"macs", unit.at("macs")},
                    {"reasons", std::move(reasons)}});
  }
  return rows;
}

std::string rate_text(double rate, const char* unit) {
  char text[48];
  std::snprintf(text, sizeof text, "%.3g %s", rate, unit);
  return text;
}

Json roof_data(const Measurement& measured) {
  Json roof;
  if (measured.runs() == 0) {
    roof["gmacs"] = kEstimateGmacs;
    roof["gbytes"] = kEstimateGbytes;
    roof["text"] = "estimated for " + rate_text(kEstimateGmacs, "GMAC/s") + " and " +
                   rate_text(kEstimateGbytes, "GB/s") + ", so that every step is at the roof";
    return roof;
  }
  const qplan_session_info info = measured.session().info();
  const double peak = measure_peak_gmacs(info.isa) * info.num_threads;
  roof["gmacs"] = peak > 0 ? peak : kEstimateGmacs;
  roof["gbytes"] = measure_read_gbytes();
  roof["text"] =
      (peak > 0 ? "measured on this machine: " : "the peak is not known for this instruction set: ") +
      rate_text(roof["gmacs"].get<double>(), "GMAC/s") + " (" + info.isa_name + ", " +
      count_text(info.num_threads, "thread", "threads") + ") and " +
      rate_text(roof["gbytes"].get<double>(), "GB/s") +
      " from memory; steps whose data a cache holds may be above the slanted part";
  return roof;
}

std::string summary_text(const Json& plan) {
  std::string text = "plan " + plan.at("version").get<std::string>();
  if (!plan.at("provenance").is_null()) {
    const auto source = plan.at("provenance").at("source").get<std::string>();
    if (!source.empty()) text += " of " + source;
    text += ", packed by " + plan.at("provenance").at("producer").get<std::string>();
  }
  for (const Json& target : plan.at("targets")) {
    text += ", " + target.at("name").get<std::string>();
    const auto options = target.at("options").get<std::string>();
    if (!options.empty()) text += " (" + options + ")";
  }
  return text;
}

}  // namespace

Json report_data(const PlanFile& plan_file, const ReportOptions& options) {
  const Json plan = inspect_plan(plan_file);
  const TensorBytes inputs = report_inputs(plan_file, options);
  const Measurement measured(plan_file, options, inputs);
  const qplan_session_info info = measured.session().info();
  const MemoryOverTime live = memory_over_time(plan);
  Json data;
  data["title"] = plan_file.path().substr(plan_file.path().rfind('/') + 1);
  data["summary"] = summary_text(plan);
  data["content_digest"] = plan.at("content_digest");
  data["steps"] = steps_data(plan, measured);
  data["placement"] = placement_data(plan_file, options, &data["steps"]);
  data["tensors"] = tensors_data(plan);
  data["ranges_text"] =
      "the real values that the stored numbers stand for, where the plan states the quantisation (not where "
      "names are stripped, and not of tables that take the place of several operators)";
  if (measured.runs() > 0) {
    add_used_ranges(plan_file, plan, options, inputs, &data["tensors"]);
    data["ranges_text"] =
        data["ranges_text"].get<std::string>() + "; what the tensors held in a run on " +
        (options.inputs.empty() ? "random inputs (--input gives others)" : "the given inputs");
  }
  data["inputs"] = Json::array();
  data["outputs"] = Json::array();
  for (const Json& tensor : plan.at("inputs")) data["inputs"].push_back(tensor.at("tensor"));
  for (const Json& tensor : plan.at("outputs")) data["outputs"].push_back(tensor.at("tensor"));
  data["memory"] = {{"arena_bytes", plan.at("memory").at("arena_bytes")},
                    {"lower_bound", plan.at("memory").at("arena_lower_bound_bytes")},
                    {"live", live.bytes},
                    {"peak_step", live.peak_step},
                    {"copies_text", copies_text(plan.at("memory").at("copies"))}};
  data["constants_bytes"] = plan.at("memory").at("constants_bytes");
  data["roof"] = roof_data(measured);
  const bool has_regions = !plan.at("regions").empty();
  if (measured.runs() == 0) {
    data["time_text"] = "estimated from MACs and bytes; nothing was run";
  } else {
    data["time_text"] = "medians of " + count_text(measured.runs(), "run", "runs") + " on this machine (" +
                        info.isa_name + ", " + count_text(info.num_threads, "thread", "threads") + ")" +
                        (has_regions ? "; times of regions are estimated" : "");
  }
  uint64_t ns = 0;
  for (const Json& step : data["steps"]) ns += step.at("ns").get<uint64_t>();
  data["figures"] = Json::array();
  const auto figure = [&](const std::string& value, const std::string& label) {
    data["figures"].push_back({value, label});
  };
  std::string all_steps = time_text(ns);
  if (all_steps.ends_with(" us")) all_steps.replace(all_steps.size() - 2, 1, "\u00b5");
  figure(all_steps, measured.runs() == 0 || has_regions ? "time, estimated" : "time, all steps");
  figure(std::to_string(plan.at("steps").size()), "steps");
  figure(short_count(info.macs), "MACs");
  figure(size_text(plan.at("memory").at("arena_bytes").get<uint64_t>()), "arena");
  figure(size_text(plan.at("memory").at("constants_bytes").get<uint64_t>()), "constants");
  figure(size_text(info.memory_bytes), "session");
  figure(size_text(plan.at("file_bytes").get<uint64_t>()), "file");
  return data;
}

}  // namespace qplan::tools
