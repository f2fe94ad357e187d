// What `qplan import` prints about a model without --print.
#ifndef TOOLS_IR_SUMMARY_H_
#define TOOLS_IR_SUMMARY_H_

#include <string>

namespace qplan::tools {

// relay: the text of qplan_import_text. Lines for inputs, outputs and the operators by kind, most frequent
// first; each indented and ended by a line feed.
std::string ir_summary(const std::string& relay);

}  // namespace qplan::tools

#endif  // TOOLS_IR_SUMMARY_H_
