// Operator lists (qplan/npu_oplist.h) for people.
#ifndef QPLAN_TOOLS_OPLIST_LISTING_H_
#define QPLAN_TOOLS_OPLIST_LISTING_H_

#include <cstdint>
#include <string>

namespace qplan::tools {

// Lists the slots, then one line for each operator. Returns false, with the reason in *text, if the blob is
// no operator list.
bool list_operators(const void* blob, uint64_t bytes, std::string* text);

}  // namespace qplan::tools

#endif  // QPLAN_TOOLS_OPLIST_LISTING_H_
