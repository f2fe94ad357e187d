// Steps as complete events of the Trace Event Format (Perfetto, chrome://tracing).
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <mutex>
#include <new>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "qplan/host.h"
#include "src/host/system.h"
#include "src/host/trace_events.h"

// ---- the format

namespace qplan::host {
namespace {

using Json = nlohmann::ordered_json;

double microseconds(uint64_t ns) { return static_cast<double>(ns) / 1000; }

std::string line_of(const Json& event) { return event.dump(-1, ' ', false, Json::error_handler_t::replace); }

}  // namespace

TraceEvents::TraceEvents(uint32_t process, const char* name) : process_(process) {
  add_name("process_name", 0, name);
}

void TraceEvents::name_thread(uint32_t thread, const std::string& name) {
  lines_ += ",\n";
  add_name("thread_name", thread, name);
}

void TraceEvents::add(const CompleteEvent& event) {
  Json json = {{"name", event.name},
               {"cat", event.category},
               {"ph", "X"},
               {"pid", process_},
               {"tid", event.thread},
               {"ts", microseconds(event.begin_ns)},
               {"dur", microseconds(event.end_ns - event.begin_ns)}};
  Json& arguments = json["args"];
  for (const auto& [name, value] : event.arguments) {
    std::visit([&, key = name](const auto& known) { arguments[key] = known; }, value);
  }
  lines_ += ",\n" + line_of(json);
}

std::string TraceEvents::to_json() const {
  return "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n" + lines_ + "\n]}\n";
}

void TraceEvents::add_name(const char* what, uint32_t thread, const std::string& name) {
  lines_ +=
      line_of({{"name", what}, {"ph", "M"}, {"pid", process_}, {"tid", thread}, {"args", {{"name", name}}}});
}

}  // namespace qplan::host

// ---- qplan_trace: the steps of sessions

namespace {

struct Record {
  std::string name;
  std::string op;
  std::string kernel;
  uint32_t step;
  uint32_t thread;  // index into threads
  uint64_t begin_ns;
  uint64_t end_ns;
  uint64_t macs;
  uint64_t bytes;
  qplan_status status;
};

// Who was in the platform before; its functions are called as before.
struct Attachment {
  qplan_trace* trace;
  qplan_platform before;
};

// A step that has not ended. A device's step may end on another thread than it began on, and between the two
// steps of other sessions begin and end, which may have the same platform.
struct Begun {
  const Attachment* attachment;
  uint32_t step;
  uint32_t thread;
  uint64_t ns;
};

}  // namespace

struct qplan_trace {
  uint64_t origin_ns = qplan_host_now_ns(nullptr);
  std::deque<Attachment> attachments;  // addresses stay
  std::mutex mutex;                    // guards all below: sessions of several threads may share a trace
  std::vector<std::thread::id> threads;
  std::vector<Begun> begun;  // those of sessions that were taken down meanwhile stay
  std::vector<Record> records;
  bool is_complete = true;  // false when memory ran out
};

namespace {

uint32_t current_thread(qplan_trace* trace) {
  const std::thread::id id = std::this_thread::get_id();
  for (size_t i = 0; i < trace->threads.size(); ++i) {
    if (trace->threads[i] == id) return static_cast<uint32_t>(i);
  }
  trace->threads.push_back(id);
  return static_cast<uint32_t>(trace->threads.size() - 1);
}

// When the step that ends has begun: the last of its number, on this thread if there is one. False where it
// was not noted.
bool take_begin(qplan_trace* trace, const Attachment* attachment, uint32_t step, uint32_t thread,
                uint64_t* ns) {
  std::vector<Begun>& begun = trace->begun;
  auto found = begun.end();
  for (auto at = begun.end(); at != begun.begin();) {
    --at;
    if (at->attachment != attachment || at->step != step) continue;
    if (found == begun.end() || at->thread == thread) found = at;
    if (at->thread == thread) break;
  }
  if (found == begun.end()) return false;
  *ns = found->ns;
  begun.erase(found);
  return true;
}

void step_begin(void* user, const qplan_event* event) {
  auto* attachment = static_cast<Attachment*>(user);
  if (attachment->before.step_begin != nullptr) attachment->before.step_begin(attachment->before.user, event);
  qplan_trace* trace = attachment->trace;
  try {
    const std::lock_guard<std::mutex> lock(trace->mutex);
    trace->begun.push_back({attachment, event->step, current_thread(trace), 0});
    trace->begun.back().ns = qplan_host_now_ns(nullptr);  // last, so that our own work is not the step's
  } catch (const std::bad_alloc&) {
    trace->is_complete = false;
  }
}

void step_end(void* user, const qplan_event* event, qplan_status status) {
  const uint64_t end_ns = qplan_host_now_ns(nullptr);
  auto* attachment = static_cast<Attachment*>(user);
  qplan_trace* trace = attachment->trace;
  try {
    const std::lock_guard<std::mutex> lock(trace->mutex);
    const uint32_t thread = current_thread(trace);
    uint64_t begin_ns = 0;
    if (take_begin(trace, attachment, event->step, thread, &begin_ns)) {
      trace->records.push_back({event->name, event->op, event->kernel, event->step, thread, begin_ns, end_ns,
                                event->macs, event->bytes, status});
    }
  } catch (const std::bad_alloc&) {
    trace->is_complete = false;
  }
  if (attachment->before.step_end != nullptr)
    attachment->before.step_end(attachment->before.user, event, status);
}

void forward_log(void* user, uint32_t level, const char* text) {
  const auto* attachment = static_cast<const Attachment*>(user);
  attachment->before.log(attachment->before.user, level, text);
}

uint64_t forward_now(void* user) {
  const auto* attachment = static_cast<const Attachment*>(user);
  return attachment->before.now_ns(attachment->before.user);
}

void forward_yield(void* user) {
  const auto* attachment = static_cast<const Attachment*>(user);
  attachment->before.yield(attachment->before.user);
}

qplan::host::TraceEvents::CompleteEvent event_of(const Record& record, uint64_t origin_ns) {
  qplan::host::TraceEvents::CompleteEvent event = {record.name.empty() ? record.op : record.name,
                                                   record.op,
                                                   record.thread + 1,
                                                   record.begin_ns - origin_ns,
                                                   record.end_ns - origin_ns,
                                                   {{"step", record.step},
                                                    {"op", record.op},
                                                    {"kernel", record.kernel},
                                                    {"macs", record.macs},
                                                    {"bytes", record.bytes}}};
  if (record.status < 0) event.arguments.emplace_back("status", qplan_status_name(record.status));
  return event;
}

std::string to_json(qplan_trace* trace) {
  const std::lock_guard<std::mutex> lock(trace->mutex);
  qplan::host::TraceEvents events(1, "qplan");
  for (uint32_t i = 0; i < trace->threads.size(); ++i) {
    events.name_thread(i + 1, i == 0 ? "invoke" : "invoke " + std::to_string(i + 1));
  }
  for (const Record& record : trace->records) events.add(event_of(record, trace->origin_ns));
  return events.to_json();
}

}  // namespace

qplan_trace* qplan_trace_create(void) {
  try {
    return new qplan_trace();
  } catch (...) {
    return nullptr;
  }
}

qplan_status qplan_trace_attach(qplan_trace* trace, qplan_platform* platform) {
  // The struct must reach as far as what is set here.
  if (trace == nullptr || platform == nullptr ||
      platform->struct_size < offsetof(qplan_platform, now_ns) + sizeof(platform->now_ns)) {
    return QPLAN_INVALID_ARGUMENT;
  }
  try {
    trace->attachments.push_back({trace, {}});
  } catch (...) {
    return QPLAN_OUT_OF_MEMORY;
  }
  Attachment& attachment = trace->attachments.back();
  memcpy(&attachment.before, platform, std::min<size_t>(platform->struct_size, sizeof(*platform)));
  platform->user = &attachment;
  platform->step_begin = step_begin;
  platform->step_end = step_end;
  platform->now_ns = attachment.before.now_ns != nullptr ? forward_now : qplan_host_now_ns;
  if (platform->log != nullptr) platform->log = forward_log;
  // A copy from a struct that does not reach yield has none.
  if (attachment.before.yield != nullptr) platform->yield = forward_yield;
  return QPLAN_OK;
}

qplan_status qplan_trace_write(qplan_trace* trace, const char* path, qplan_error* error) {
  using qplan::host::report;
  if (trace == nullptr) return report(error, QPLAN_INVALID_ARGUMENT, "trace: trace is NULL");
  try {
    if (!trace->is_complete)
      return report(error, QPLAN_OUT_OF_MEMORY, "trace: memory ran out, events are missing");
    const std::string json = to_json(trace);
    return qplan_file_write(path, json.data(), json.size(), error);
  } catch (const std::bad_alloc&) {
    return report(error, QPLAN_OUT_OF_MEMORY, "");
  }
}

void qplan_trace_destroy(qplan_trace* trace) { delete trace; }
