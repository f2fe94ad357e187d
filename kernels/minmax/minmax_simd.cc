// maximum and minimum by whole vectors of bytes. int8 is compared as uint8 with the sign bias, which
// keeps the order.
#include "kernels/elementwise/binary_simd.h"
#include "kernels/minmax/minmax.h"
#include "kernels/simd/simd.h"

namespace qplan {
namespace {

inline void minmax_bytes(const MinmaxArgs& args, uint32_t begin, uint32_t end) {
  const VecI32 sign_bias = set_bytes(args.dtype == Dtype::kS8 ? 0x80 : 0);
  for_each_vector_pair(args, begin, end, [&](const VectorPair& pair) {
    const VecI32 a = bit_xor(load_repeated(pair.a, pair.a_step, pair.count), sign_bias);
    const VecI32 b = bit_xor(load_repeated(pair.b, pair.b_step, pair.count), sign_bias);
    const VecI32 chosen = args.is_maximum ? max_bytes(a, b) : min_bytes(a, b);
    store_vector(pair.output, bit_xor(chosen, sign_bias), pair.count);
  });
}

}  // namespace

QPLAN_SIMD_NAMESPACE(minmax) {

#if !defined(QPLAN_ONLY_RUN)
Refusal accepts(const MinmaxArgs& args) {
  return args.dtype == Dtype::kS16 ? Refusal::kDtype : Refusal::kNone;
}

size_t scratch_bytes(const MinmaxArgs&) { return 0; }

uint32_t work_items(const MinmaxArgs& args) { return num_chunks(args.broadcast.elements); }
#endif

#if !defined(QPLAN_ONLY_QUERIES)
void run(const MinmaxArgs& args, uint32_t begin, uint32_t end, void*) { minmax_bytes(args, begin, end); }
#endif

}  // QPLAN_SIMD_NAMESPACE(minmax)

}  // namespace qplan
