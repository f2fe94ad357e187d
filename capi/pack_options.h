// qplan_pack_options as the packer's own options.
#ifndef QPLAN_CAPI_PACK_OPTIONS_H_
#define QPLAN_CAPI_PACK_OPTIONS_H_

#include "qplan/pack.h"
#include "src/packer/pipeline/pipeline.h"

namespace qplan {

// The caller's options with what its struct_size leaves out set to zero.
qplan_pack_options whole_options(const qplan_pack_options* options);

// PackError (QPLAN_INVALID_ARGUMENT) where a pointer is missing or a type is impossible. Data of bindings is
// copied.
PackOptions read_options(const qplan_pack_options& options);

}  // namespace qplan

#endif  // QPLAN_CAPI_PACK_OPTIONS_H_
