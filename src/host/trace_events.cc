#include "src/host/trace_events.h"

#include <nlohmann/json.hpp>

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
