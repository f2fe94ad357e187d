// The packer's one exception type. what(): what, where, found, expected, what to do; one line, or one for
// each fault.
#ifndef QPLAN_SRC_PACKER_ERROR_H_
#define QPLAN_SRC_PACKER_ERROR_H_

#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>

#include "qplan/qplan.h"

namespace qplan {

class PackError : public std::runtime_error {
 public:
  PackError(qplan_status status, const std::string& text) : std::runtime_error(text), status_(status) {}
  qplan_status status() const { return status_; }

 private:
  qplan_status status_;
};

// Where the packer's messages go. Texts are one line; level is QPLAN_LOG_*.

// Empty: nobody listens.
using LogFunction = std::function<void(uint32_t level, const std::string& text)>;

}  // namespace qplan

#endif  // QPLAN_SRC_PACKER_ERROR_H_
