#ifndef QPLAN_TOOLS_COMMAND_LINE_H_
#define QPLAN_TOOLS_COMMAND_LINE_H_

#include <string>

namespace qplan::tools {

// Runs the command that the words of argv name and returns the exit status of the process. Errors are printed
// to stderr. version_text: what --version prints.
int run_command_line(int argc, char** argv, std::string (*version_text)());

}  // namespace qplan::tools

#endif
