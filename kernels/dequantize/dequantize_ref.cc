#include "kernels/dequantize/dequantize.h"
#include "kernels/elementwise/broadcast.h"

namespace qplan {
namespace dequantize_ref {
namespace {

template <typename T>
void run_typed(const DequantizeArgs& args, ElementRange range) {
  const T* input = static_cast<const T*>(args.input);
  for (uint64_t i = range.begin; i < range.end; ++i) {
    args.output[i] = args.scale * static_cast<float>(input[i] - args.zero_point);
  }
}

}  // namespace

Refusal accepts(const DequantizeArgs&) { return Refusal::kNone; }
size_t scratch_bytes(const DequantizeArgs&) { return 0; }
uint32_t work_items(const DequantizeArgs& args) { return num_chunks(args.elements); }

void run(const DequantizeArgs& args, uint32_t begin, uint32_t end, void*) {
  const ElementRange range = chunk_range(args.elements, begin, end);
  if (args.dtype == Dtype::kU8) {
    run_typed<uint8_t>(args, range);
  } else if (args.dtype == Dtype::kS16) {
    run_typed<int16_t>(args, range);
  } else {
    run_typed<int8_t>(args, range);
  }
}

}  // namespace dequantize_ref
}  // namespace qplan
