// Where the packer's messages go. Texts are one line; level is QPLAN_LOG_*.
#ifndef QPLAN_SRC_PACKER_LOG_H_
#define QPLAN_SRC_PACKER_LOG_H_

#include <cstdint>
#include <functional>
#include <string>

#include "qplan/qplan.h"

namespace qplan {

// Empty: nobody listens.
using LogFunction = std::function<void(uint32_t level, const std::string& text)>;

}  // namespace qplan

#endif  // QPLAN_SRC_PACKER_LOG_H_
