#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <random>
#include <string_view>
#include <utility>

#include "qplan/host.h"
#include "src/base/listing.h"
#include "tools/command.h"
#include "tools/reports.h"
#include "tools/tensor.h"

namespace qplan::tools {
namespace {

using Json = nlohmann::ordered_json;

constexpr uint32_t kInputSeed = 1;

struct StepRow {
  qplan_event event;
  TimeSummary time;
  double share = 0;  // of all steps' time
  double rate = 0;   // GMAC/s
  double peak = 0;   // share of it; 0: unknown, or not the CPU's work
};

struct StepRows {
  std::vector<StepRow> rows;
  uint64_t median_ns = 0;  // these three: of all
  uint64_t macs = 0;
  uint64_t bytes = 0;
};

StepRows step_rows(const Session& session, const StepTimes& times, double peak_gmacs) {
  StepRows table;
  for (uint32_t i = 0; i < session.info().num_steps; ++i) {
    StepRow row{};
    row.event = session.step(i);
    row.time = times.summary(row.event.step);
    row.rate = gmacs(row.event.macs, row.time.median_ns);
    const bool on_cpu = std::string_view(row.event.op) != "npu";
    if (on_cpu && peak_gmacs > 0) row.peak = row.rate / peak_gmacs;
    table.median_ns += row.time.median_ns;
    if (row.time.median_ns > 0) {  // fallback steps of a region that runs on its device do not run
      table.macs += row.event.macs;
      table.bytes += row.event.bytes;
    }
    table.rows.push_back(row);
  }
  for (StepRow& row : table.rows) {
    if (table.median_ns > 0)
      row.share = static_cast<double>(row.time.median_ns) / static_cast<double>(table.median_ns);
  }
  return table;
}

std::string percent(double share) {
  char text[16];
  std::snprintf(text, sizeof text, "%.1f", 100 * share);
  return share > 0 ? text : "-";
}

std::string line_of(const char* step, uint64_t ns, double share, uint64_t macs, uint64_t bytes, double peak,
                    const char* kernel, const char* name) {
  char line[512];
  std::snprintf(line, sizeof line, "%5s %12.2f %6s %9.3f %9.1f %8.2f %7s  %-28s %s", step,
                static_cast<double>(ns) / 1e3, percent(share).c_str(), static_cast<double>(macs) / 1e6,
                static_cast<double>(bytes) / 1e3, gmacs(macs, ns), percent(peak).c_str(), kernel, name);
  std::string text = line;
  text.erase(text.find_last_not_of(' ') + 1);
  return text + "\n";
}

}  // namespace

TimeSummary summarise(std::vector<uint64_t> times) {
  if (times.empty()) return {};
  std::sort(times.begin(), times.end());
  const size_t n = times.size();
  return {(times[(n - 1) / 2] + times[n / 2]) / 2, times[(n * 9 + 9) / 10 - 1], times.front(),
          times[(n * 99 + 99) / 100 - 1]};
}

std::vector<std::vector<uint8_t>> random_inputs(const PlanFile& plan, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<std::vector<uint8_t>> inputs;
  for (const qplan_tensor_info& info : tensor_infos(plan.plan(), QPLAN_INPUT)) {
    std::vector<uint8_t> bytes(info.size_bytes);
    if (is_type(info.dtype, kDLFloat, 32)) {
      auto* values = reinterpret_cast<float*>(bytes.data());
      for (size_t k = 0; k < bytes.size() / sizeof(float); ++k) {
        values[k] = static_cast<float>(static_cast<int32_t>(random())) * 0x1p-31f;
      }
    } else {
      const uint8_t mask = is_type(info.dtype, kBoolCode, 8) ? 1 : 0xff;
      for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random() & mask);
    }
    inputs.push_back(std::move(bytes));
  }
  return inputs;
}

void write_random_inputs(const PlanFile& plan, Session& session) {
  const std::vector<qplan_tensor_info> infos = tensor_infos(plan.plan(), QPLAN_INPUT);
  std::vector<std::vector<uint8_t>> inputs = random_inputs(plan, kInputSeed);
  for (uint32_t i = 0; i < infos.size(); ++i) session.write(i, packed_tensor(infos[i], inputs[i].data()));
}

void StepTimes::attach(qplan_platform& platform) {
  platform.user = this;
  platform.step_begin = [](void* user, const qplan_event*) {
    static_cast<StepTimes*>(user)->begin_ns_ = qplan_host_now_ns(nullptr);
  };
  platform.step_end = [](void* user, const qplan_event* event, qplan_status) {
    const uint64_t now = qplan_host_now_ns(nullptr);
    auto* self = static_cast<StepTimes*>(user);
    if (event->step >= self->times_.size()) self->times_.resize(event->step + 1);
    self->times_[event->step].push_back(now - self->begin_ns_);
  };
}

TimeSummary StepTimes::summary(uint32_t step) const {
  return step < times_.size() ? summarise(times_[step]) : TimeSummary();
}

Json plan_steps(const PlanFile& plan) {
  return Json::parse(inspect_text(plan.bytes(), plan.size(), "'" + plan.path() + "'")).at("steps");
}

Json plan_schedules(const PlanFile& plan) {
  Json schedules = Json::array();
  for (const Json& step : plan_steps(plan)) {
    schedules.push_back(step.contains("schedule") ? step.at("schedule") : Json::object());
  }
  return schedules;
}

std::string schedule_text(const Json& schedule) {
  std::string text;
  for (const auto& [name, value] : schedule.items()) {
    text += (text.empty() ? "" : ", ") + name + "=";
    text += value.is_string() ? value.get<std::string>() : json_text(value);
  }
  return text;
}

std::string steps_text(const StepReport& report) {
  const double peak_gmacs = report.peak_gmacs;
  const StepRows table = step_rows(report.session, report.times, peak_gmacs);
  char line[256];
  std::snprintf(line, sizeof line, "%5s %12s %6s %9s %9s %8s %7s  %-28s %s\n", "step", "median us", "%",
                "MMAC", "kB", "GMAC/s", "% peak", "kernel", "name");
  std::string text = line;
  for (uint32_t i = 0; i < table.rows.size(); ++i) {
    const StepRow& row = table.rows[i];
    text += line_of(std::to_string(i).c_str(), row.time.median_ns, row.share, row.event.macs, row.event.bytes,
                    row.peak, row.event.kernel, short_name(row.event.name).c_str());
    const std::string schedule = schedule_text(report.schedules.at(row.event.step));
    if (!schedule.empty()) text.insert(text.size() - 1, "  {" + schedule + "}");
  }
  const double peak = peak_gmacs > 0 ? gmacs(table.macs, table.median_ns) / peak_gmacs : 0;
  text += line_of("sum", table.median_ns, 1, table.macs, table.bytes, peak, "", "");
  if (peak_gmacs > 0) {
    std::snprintf(line, sizeof line, "peak %.1f GMAC/s, measured before the runs\n", peak_gmacs);
    text += line;
  }
  return text;
}

Json steps_json(const StepReport& report) {
  Json list = Json::array();
  uint32_t i = 0;
  for (const StepRow& row : step_rows(report.session, report.times, report.peak_gmacs).rows) {
    Json entry;
    entry["step"] = i++;
    entry["op"] = row.event.op;
    entry["kernel"] = row.event.kernel;
    entry["name"] = row.event.name;
    entry["macs"] = row.event.macs;
    entry["bytes"] = row.event.bytes;
    entry["median_ns"] = row.time.median_ns;
    entry["p90_ns"] = row.time.p90_ns;
    entry["p99_ns"] = row.time.p99_ns;
    entry["min_ns"] = row.time.min_ns;
    entry["gmac_per_s"] = row.rate;
    entry["share"] = row.share;
    entry["share_of_peak"] = row.peak > 0 ? Json(row.peak) : Json();
    entry["schedule"] = report.schedules.at(row.event.step);
    list.push_back(entry);
  }
  return list;
}

std::string steps_csv(const StepReport& report) {
  std::string text = "step,op,kernel,name,median_ns,p90_ns,p99_ns,min_ns,macs,bytes\n";
  for (const StepRow& row : step_rows(report.session, report.times, report.peak_gmacs).rows) {
    text += std::to_string(row.event.step);
    for (const char* field : {row.event.op, row.event.kernel, row.event.name}) text += "," + csv_text(field);
    for (const uint64_t number : {row.time.median_ns, row.time.p90_ns, row.time.p99_ns, row.time.min_ns,
                                  row.event.macs, row.event.bytes}) {
      text += "," + std::to_string(number);
    }
    text += "\n";
  }
  return text;
}

// ---- the trace

namespace {

constexpr uint32_t kRunLane = 1, kStepLane = 2, kFirstWorkerLane = 3;

Json lane_name(uint32_t lane, const std::string& name) {
  return {{"name", "thread_name"}, {"ph", "M"}, {"pid", 1}, {"tid", lane}, {"args", {{"name", name}}}};
}

}  // namespace

struct BenchTrace::Task {
  BenchTrace* trace;
  void (*run)(void* context, uint32_t index, uint32_t worker);
  void* context;
};

void BenchTrace::attach(qplan_platform& platform, SessionOptions& options) {
  before_ = platform;
  platform.user = this;
  platform.step_begin = on_begin;
  platform.step_end = on_end;
  platform.log = [](void* user, uint32_t level, const char* text) {
    const qplan_platform& before = static_cast<BenchTrace*>(user)->before_;
    if (before.log != nullptr) before.log(before.user, level, text);
  };
  options.wrap_pool = [this](const qplan_thread_pool* pool) { return wrap(pool); };
  workers_.resize(1);
}

const qplan_thread_pool* BenchTrace::wrap(const qplan_thread_pool* pool) {
  if (pool == nullptr) return nullptr;
  pool_ = pool;
  own_pool_ = *pool;
  own_pool_.struct_size = sizeof own_pool_;
  own_pool_.user = this;
  own_pool_.parallel_for = parallel_for;
  workers_.resize(pool->num_threads);
  return &own_pool_;
}

void BenchTrace::clear() {
  runs_.clear();
  step_spans_.clear();
  for (std::vector<Span>& worker : workers_) worker.clear();
}

void BenchTrace::on_begin(void* user, const qplan_event* event) {
  auto& self = *static_cast<BenchTrace*>(user);
  if (self.before_.step_begin != nullptr) self.before_.step_begin(self.before_.user, event);
  if (event->step >= self.steps_.size()) self.steps_.resize(event->step + 1);
  Step& step = self.steps_[event->step];
  if (step.op.empty()) step = {event->name, event->op, event->kernel, event->macs};
  self.step_ = event->step;
  self.uses_workers_ = false;
  self.step_begin_ns_ = qplan_host_now_ns(nullptr);
}

void BenchTrace::on_end(void* user, const qplan_event* event, qplan_status status) {
  auto& self = *static_cast<BenchTrace*>(user);
  self.step_spans_.push_back({"", event->step, self.step_begin_ns_, qplan_host_now_ns(nullptr)});
  // The calling thread, which is worker 0, runs a step that is too small to be divided.
  if (!self.uses_workers_) self.workers_[0].push_back(self.step_spans_.back());
  if (self.before_.step_end != nullptr) self.before_.step_end(self.before_.user, event, status);
}

void BenchTrace::parallel_for(void* user, uint32_t count,
                              void (*task)(void* context, uint32_t index, uint32_t worker), void* context) {
  auto& self = *static_cast<BenchTrace*>(user);
  self.uses_workers_ = true;
  Task wrapped = {&self, task, context};
  self.pool_->parallel_for(self.pool_->user, count, run_task, &wrapped);
}

void BenchTrace::run_task(void* context, uint32_t index, uint32_t worker) {
  const Task& task = *static_cast<Task*>(context);
  const uint64_t begin = qplan_host_now_ns(nullptr);
  task.run(task.context, index, worker);
  if (worker < task.trace->workers_.size())
    task.trace->workers_[worker].push_back({"", task.trace->step_, begin, qplan_host_now_ns(nullptr)});
}

std::string BenchTrace::text() const {
  const uint64_t origin = runs_.empty() ? 0 : runs_.front().begin_ns;
  Json events = Json::array();
  events.push_back(lane_name(kRunLane, "runs"));
  events.push_back(lane_name(kStepLane, "steps"));
  for (uint32_t w = 0; w < workers_.size(); ++w)
    events.push_back(lane_name(kFirstWorkerLane + w, "worker " + std::to_string(w)));
  const auto add = [&](const Span& span, uint32_t lane, const std::string& name) -> Json& {
    events.push_back({{"name", name},
                      {"ph", "X"},
                      {"pid", 1},
                      {"tid", lane},
                      {"ts", static_cast<double>(span.begin_ns - origin) / 1e3},
                      {"dur", static_cast<double>(span.end_ns - span.begin_ns) / 1e3}});
    return events.back();
  };
  for (size_t r = 0; r < runs_.size(); ++r) add(runs_[r], kRunLane, "run " + std::to_string(r));
  const auto name_of = [&](const Span& span) {
    const Step& step = steps_[span.step];
    return step.name.empty() ? step.op : step.name;
  };
  for (const Span& span : step_spans_) {
    const Step& step = steps_[span.step];
    add(span, kStepLane, name_of(span))["args"] = {
        {"step", span.step}, {"op", step.op}, {"kernel", step.kernel}, {"macs", step.macs}};
  }
  for (uint32_t w = 0; w < workers_.size(); ++w) {
    for (const Span& span : workers_[w])
      add(span, kFirstWorkerLane + w, name_of(span))["args"] = {{"step", span.step}};
  }
  const Json trace = {{"traceEvents", std::move(events)}, {"displayTimeUnit", "ns"}};
  return json_text(trace) + "\n";
}

}  // namespace qplan::tools
