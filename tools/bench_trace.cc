#include "tools/bench_trace.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "tools/words.h"

namespace qplan::tools {
namespace {

using Json = nlohmann::ordered_json;

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
