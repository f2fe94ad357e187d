// sub with MVE, four elements at a time.
#include "kernels/add/add.h"
#include "kernels/simd/add_elements_mve.h"

namespace qplan::sub_mve {

#if !defined(QPLAN_ONLY_RUN)
Refusal accepts(const AddArgs& args) { return add_elements_accepts(args); }

size_t scratch_bytes(const AddArgs&) { return 0; }

uint32_t work_items(const AddArgs& args) { return num_chunks(args.broadcast.elements); }
#endif

#if !defined(QPLAN_ONLY_QUERIES)
void run(const AddArgs& args, uint32_t begin, uint32_t end, void*) { add_elements(args, true, begin, end); }
#endif

}  // namespace qplan::sub_mve
