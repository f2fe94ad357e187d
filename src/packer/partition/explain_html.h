// The placement as one HTML page: the graph drawn, the figures in tables, the reasons beside them.
#ifndef QPLAN_SRC_PACKER_PARTITION_EXPLAIN_HTML_H_
#define QPLAN_SRC_PACKER_PARTITION_EXPLAIN_HTML_H_

#include <string>
#include <string_view>

namespace qplan::partition {

// json: what Explain::json() made, now or when a plan was packed. title: of the page, any text. The page is
// self-contained: data, style and script are in it, and the browser loads nothing else. PackError
// (QPLAN_MODEL_INVALID) where json is not JSON.
std::string explain_html(std::string_view json, std::string_view title);

}  // namespace qplan::partition

#endif  // QPLAN_SRC_PACKER_PARTITION_EXPLAIN_HTML_H_
