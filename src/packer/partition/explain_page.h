// The parts of the page that are the same for every model.
#ifndef QPLAN_SRC_PACKER_PARTITION_EXPLAIN_PAGE_H_
#define QPLAN_SRC_PACKER_PARTITION_EXPLAIN_PAGE_H_

namespace qplan::partition {

extern const char kPageStyle[];   // explain_style.cc: CSS
extern const char kPageBody[];    // explain_style.cc: the elements that the scripts fill
extern const char kPageLayout[];  // explain_layout.cc: JavaScript, where each unit of the graph goes
extern const char kPageScript[];  // explain_script.cc: JavaScript, everything else

}  // namespace qplan::partition

#endif  // QPLAN_SRC_PACKER_PARTITION_EXPLAIN_PAGE_H_
