// One rule of the driver ABI as a check: a name, the rule, and a function that returns when it holds.
#ifndef QPLAN_TESTS_CONFORMANCE_CHECK_H_
#define QPLAN_TESTS_CONFORMANCE_CHECK_H_

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "qplan/npu_target.h"
#include "src/packer/target/external/external.h"

namespace qplan::conformance {

struct Failed : std::runtime_error {
  using std::runtime_error::runtime_error;
};
struct Skipped : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// The driver under test.
struct Subject {
  qplan_npu_driver_entry_fn entry = nullptr;
  const qplan_npu_driver* driver = nullptr;  // of entry(QPLAN_NPU_ABI); null: it has none
  std::string options;                       // for open
  const qplan_npu_target* target = nullptr;  // of the same library; null: it exports none
  std::string target_options;                // for configure
  uint32_t num_layers = 40;                  // of random ones
};

struct Check {
  const char* name;  // "memory.release_busy"
  const char* rule;
  void (*run)(const Subject& subject);
};
std::vector<Check> entry_checks();
std::vector<Check> device_checks();
std::vector<Check> memory_checks();
std::vector<Check> blob_checks();
std::vector<Check> job_checks();
std::vector<Check> queue_checks();

inline void require(bool holds, const std::string& text) {
  if (!holds) throw Failed(text);
}
using target::external::status_text;
inline void require_status(qplan_npu_status actual, qplan_npu_status expected, const std::string& what) {
  if (actual != expected)
    throw Failed(what + " returned " + status_text(actual) + ", expected " + status_text(expected));
}
inline void require_ok(qplan_npu_status actual, const std::string& what) {
  require_status(actual, QPLAN_NPU_OK, what);
}
// Any error.
inline void require_error(qplan_npu_status actual, const std::string& what) {
  if (actual >= 0) throw Failed(what + " returned " + status_text(actual) + ", expected an error");
}

// A struct with its size set.
template <typename T>
T sized() {
  T value = {};
  value.struct_size = sizeof(T);
  return value;
}

}  // namespace qplan::conformance

#endif  // QPLAN_TESTS_CONFORMANCE_CHECK_H_
