#ifndef QPLAN_SRC_HOST_TRACE_EVENTS_H_
#define QPLAN_SRC_HOST_TRACE_EVENTS_H_

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace qplan::host {

// What one process did, in the Trace Event Format (Perfetto, chrome://tracing), an event a line. Its threads
// are rows of the picture. Names may hold any bytes: those that are not UTF-8 become U+FFFD.
class TraceEvents {
 public:
  // Something that began and ended; times in nanoseconds from the beginning of the trace.
  struct CompleteEvent {
    std::string name;
    std::string category;
    uint32_t thread;
    uint64_t begin_ns;
    uint64_t end_ns;
    std::vector<std::pair<const char*, std::variant<uint64_t, std::string>>> arguments;
  };

  // Traces of several processes can be joined where their numbers differ.
  TraceEvents(uint32_t process, const char* name);

  void name_thread(uint32_t thread, const std::string& name);
  void add(const CompleteEvent& event);
  std::string to_json() const;

 private:
  void add_name(const char* what, uint32_t thread, const std::string& name);

  uint32_t process_;
  std::string lines_;
};

}  // namespace qplan::host

#endif  // QPLAN_SRC_HOST_TRACE_EVENTS_H_
