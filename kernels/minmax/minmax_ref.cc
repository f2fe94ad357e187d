#include "kernels/elementwise/broadcast.h"
#include "kernels/minmax/minmax.h"

namespace qplan {
namespace minmax_ref {
namespace {

template <typename T>
void run_typed(const MinmaxArgs& args, ElementRange range) {
  const T* a = static_cast<const T*>(args.a);
  const T* b = static_cast<const T*>(args.b);
  T* output = static_cast<T*>(args.output);
  const uint32_t last = args.broadcast.rank - 1;
  const uint64_t a_step = args.broadcast.a_strides[last];
  const uint64_t b_step = args.broadcast.b_strides[last];
  for_each_broadcast_run(args.broadcast, range.begin, range.end,
                         [&](uint64_t out, uint64_t a_at, uint64_t b_at, uint64_t count) {
                           for (uint64_t i = 0; i < count; ++i) {
                             const T x = a[a_at + i * a_step], y = b[b_at + i * b_step];
                             const bool takes_x = args.is_maximum ? x > y : x < y;
                             output[out + i] = takes_x ? x : y;
                           }
                         });
}

}  // namespace

Refusal accepts(const MinmaxArgs&) { return Refusal::kNone; }
size_t scratch_bytes(const MinmaxArgs&) { return 0; }
uint32_t work_items(const MinmaxArgs& args) { return num_chunks(args.broadcast.elements); }

void run(const MinmaxArgs& args, uint32_t begin, uint32_t end, void*) {
  const ElementRange range = chunk_range(args.broadcast.elements, begin, end);
  if (args.dtype == Dtype::kU8) {
    run_typed<uint8_t>(args, range);
  } else if (args.dtype == Dtype::kS16) {
    run_typed<int16_t>(args, range);
  } else {
    run_typed<int8_t>(args, range);
  }
}

}  // namespace minmax_ref
}  // namespace qplan
