// Convolutions cut into rows, for chains.
#include "src/runtime/bind/conv2d.h"

namespace qplan {
namespace {

const Conv2dArgs& args_of(const void* args) { return *static_cast<const Conv2dArgs*>(args); }

uint64_t window_rows(uint64_t kernel_h, uint64_t dilation_h) { return (kernel_h - 1) * dilation_h + 1; }

// Where no row of the output has its window outside of the input.
bool accepts(const StepView& step, uint32_t input) {
  if (input != 0) return false;
  const format::Conv2dParams& p = *step.step->params_as_Conv2dParams();
  const Shape from = shape_of(step.input(0)), to = shape_of(step.output(0));
  return p.pad_top() < window_rows(p.kernel_h(), p.dilation_h()) &&
         uint64_t{to[1] - 1} * p.stride_h() < uint64_t{from[1]} + p.pad_top();
}

Rows reads(const void* storage, Rows output) {
  const Conv2dArgs& a = args_of(storage);
  const int64_t begin = int64_t{output.begin} * a.stride_h - a.pad_top;
  const int64_t end = int64_t{output.end - 1} * a.stride_h - a.pad_top +
                      static_cast<int64_t>(window_rows(a.kernel_h, a.dilation_h));
  return {begin > 0 ? static_cast<uint32_t>(begin) : 0,
          end < a.input_h ? static_cast<uint32_t>(end) : a.input_h};
}

uint64_t span(const void* storage, uint32_t rows) {
  const Conv2dArgs& a = args_of(storage);
  return uint64_t{rows - 1} * a.stride_h + window_rows(a.kernel_h, a.dilation_h);
}

void cut(const StepView&, uint32_t, uint32_t image, Rows output, const void* rows, void* to, void* storage) {
  Conv2dArgs& a = *static_cast<Conv2dArgs*>(storage);
  const Rows input = reads(storage, output);
  // Not negative: where the rows do not begin with the image, the first window does not reach beyond them.
  a.pad_top = static_cast<uint32_t>(int64_t{input.begin} + a.pad_top - int64_t{output.begin} * a.stride_h);
  if (a.residual != nullptr) {  // which has no address while scratch is asked for
    const uint64_t row = uint64_t{image} * a.output_h + output.begin;
    a.residual = static_cast<const uint8_t*>(a.residual) + row * a.output_w * a.output_c;
  }
  a.batch = 1;
  a.input = rows;
  a.input_h = input.end - input.begin;
  a.output = to;
  a.output_h = output.end - output.begin;
}

}  // namespace

constexpr RowCut kConv2dRowCut = {accepts, reads, span, cut};

}  // namespace qplan
