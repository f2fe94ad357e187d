#ifndef QPLAN_TOOLS_VERSION_VERSION_H_
#define QPLAN_TOOLS_VERSION_VERSION_H_

#include <string>

namespace qplan::tools {

// What 'qplan --version' prints, without the newline at the end.
std::string version_text();

}  // namespace qplan::tools

#endif  // QPLAN_TOOLS_VERSION_VERSION_H_
