// Average pools, and max pools with dilations, made of the pools of the IR, which have no dilations.
#include <algorithm>
#include <numeric>

#include "src/base/checked.h"
#include "src/packer/import/onnx/op_context.h"
#include "src/packer/ir/cat.h"

namespace qplan::onnx {
namespace {

constexpr const char* kOnlyPadding = "a window that lies in the padding; give it fewer pads";
constexpr int64_t kMostPhases = 64;  // 8 x 8: more than any atrous network has

// The greatest element of each window along one axis, with dilations: a window's positions in the padding
// name its first element inside instead, which changes no maximum.
Value dilated_max(const OpContext& op, const Value& data, size_t at, const WindowAxis& axis) {
  const int64_t outputs = axis.outputs();
  op.graph().charge(static_cast<uint64_t>(num_positions(outputs, axis.kernel)) * sizeof(int64_t));
  ir::Ints positions;
  for (int64_t o = 0; o < outputs; ++o) {
    const int64_t begin = o * axis.stride - axis.pad_begin;
    const int64_t skipped = begin < 0 ? (-begin + axis.dilation - 1) / axis.dilation : 0;
    const int64_t inside = begin + skipped * axis.dilation;
    if (skipped >= axis.kernel || inside >= axis.extent) throw Unsupported{kOnlyPadding};
    for (int64_t k = 0; k < axis.kernel; ++k) {
      const int64_t position = begin + k * axis.dilation;
      positions.push_back(position < 0 || position >= axis.extent ? inside : position);
    }
  }
  ir::Shape shape = op.shape(data);
  shape[at] = outputs;
  shape.insert(shape.begin() + static_cast<int64_t>(at) + 1, axis.kernel);
  const Value windows = op.reshape(taken(op, data, at, positions), shape);
  return op.emit("max", {windows}, {{"axis", ir::Ints{static_cast<int64_t>(at) + 1}}});
}

// An average cannot leave out its padding like that: its divisor is the number of elements inside. But the
// windows of every num_phases-th output read elements that are `dilation` apart, and among these they are
// windows without dilation.
struct Phase {
  int64_t begin, end;  // the elements begin, begin + dilation, ... before end
  WindowAxis window;   // over these elements
};

int64_t num_phases(const WindowAxis& axis) { return axis.dilation / std::gcd(axis.stride, axis.dilation); }

// index: of the phase's first output, below num_phases and outputs().
Phase phase_of(const WindowAxis& axis, int64_t index) {
  if (axis.dilation == 1) return {0, axis.extent, axis};
  const int64_t phases = num_phases(axis);
  Phase phase;
  WindowAxis& window = phase.window;
  window.kernel = axis.kernel;
  window.stride = axis.stride * phases / axis.dilation;
  const int64_t outputs = (axis.outputs() - index + phases - 1) / phases;
  const int64_t taps = (outputs - 1) * window.stride + window.kernel;  // of all its windows together
  const int64_t first = index * axis.stride - axis.pad_begin;
  window.pad_begin = first < 0 ? (-first + axis.dilation - 1) / axis.dilation : 0;
  phase.begin = first + window.pad_begin * axis.dilation;
  phase.end = std::min(axis.extent, first + (taps - 1) * axis.dilation + 1);
  if (window.pad_begin >= window.kernel || phase.begin >= phase.end) throw Unsupported{kOnlyPadding};
  window.extent = (phase.end - phase.begin + axis.dilation - 1) / axis.dilation;
  window.pad_end = taps - window.pad_begin - window.extent;
  if (window.pad_end >= window.kernel) throw Unsupported{kOnlyPadding};
  return phase;
}

std::vector<Phase> phases_of(const WindowAxis& axis) {
  std::vector<Phase> phases;
  const int64_t count = std::min({num_phases(axis), axis.outputs(), kMostPhases + 1});
  for (int64_t i = 0; i < count; ++i) phases.push_back(phase_of(axis, i));
  return phases;
}

Value elements_of(const OpContext& op, const Value& data, const Phase& h, int64_t h_step, const Phase& w,
                  int64_t w_step) {
  return op.emit("strided_slice", {data},
                 {{"begin", ir::Ints{h.begin, w.begin}},
                  {"end", ir::Ints{h.end, w.end}},
                  {"strides", ir::Ints{h_step, w_step}},
                  {"axes", ir::Ints{2, 3}}});
}

// Output o of the axis is output o / n of part o % n.
Value interleaved(const OpContext& op, const std::vector<Value>& parts, size_t axis) {
  if (parts.size() == 1) return parts[0];
  const Value all = op.emit("concatenate", parts, {{"axis", static_cast<int64_t>(axis)}});
  const int64_t outputs = op.shape(all)[axis];
  op.graph().charge(static_cast<uint64_t>(num_positions(outputs, 1)) * sizeof(int64_t));
  ir::Ints begins = {0}, positions;
  for (const Value& part : parts) begins.push_back(begins.back() + op.shape(part)[axis]);
  const auto count = static_cast<int64_t>(parts.size());
  for (int64_t o = 0; o < outputs; ++o)
    positions.push_back(begins[static_cast<size_t>(o % count)] + o / count);
  return taken(op, all, axis, positions);
}

Value average(const OpContext& op, const Value& data, const WindowAxis& h, const WindowAxis& w,
              bool include_padding) {
  ir::Attrs attrs = Window{.axes = {h, w}}.plane_attrs("pool_size");
  const ir::Ints padding = attrs.get_ints("padding", {});
  const bool is_padded = std::ranges::any_of(padding, [](int64_t pad) { return pad != 0; });
  if (include_padding && is_padded) attrs.set("count_include_pad", true);
  return op.emit("nn.avg_pool2d", {data}, std::move(attrs));
}

// count_include_pad counts the padding that the file names, not that which ceil_mode adds: pads the data, so
// that only the latter is left.
Value with_named_pads(const OpContext& op, const Value& data, WindowAxis* h, WindowAxis* w) {
  std::vector<ir::Ints> width = {{0, 0}, {0, 0}};
  for (WindowAxis* axis : {h, w}) {
    width.push_back({axis->pad_begin, axis->pad_end - axis->ceil_pad});
    axis->extent += width.back()[0] + width.back()[1];
    axis->pad_begin = 0;
    axis->pad_end = axis->ceil_pad;
  }
  const bool has_any = std::ranges::any_of(width, [](const ir::Ints& pads) {
    return pads != ir::Ints{0, 0};
  });
  return has_any ? op.emit("nn.pad", {data, ir::make_scalar(0.0f)}, {{"pad_width", width}}) : data;
}

}  // namespace

std::optional<Value> dilated_max_pool(const OpContext& op, const Value& data) {
  const ir::Shape& shape = op.shape(data);
  const auto dilations = op.attr_ints("dilations");
  const bool has_any = dilations && std::ranges::any_of(*dilations, [](int64_t d) { return d != 1; });
  if (shape.size() < 3 || !has_any) return std::nullopt;
  const Window window = read_window(op, {shape.begin() + 2, shape.end()}, {});
  Value result = data;
  for (size_t i = 0; i < window.axes.size(); ++i) result = dilated_max(op, result, i + 2, window.axes[i]);
  return result;
}

Value average_plane(const OpContext& op, Value data, WindowAxis h, WindowAxis w, bool include_padding) {
  if (include_padding && (h.ceil_pad != 0 || w.ceil_pad != 0)) {
    data = with_named_pads(op, data, &h, &w);
    include_padding = false;
  }
  if (h.dilation == 1 && w.dilation == 1) return average(op, data, h, w, include_padding);
  const std::vector<Phase> rows = phases_of(h), columns = phases_of(w);
  if (static_cast<int64_t>(rows.size() * columns.size()) > kMostPhases)
    throw Unsupported{cat("dilations with more than ", kMostPhases, " phases; make them smaller")};
  std::vector<Value> bands;
  for (const Phase& row : rows) {
    std::vector<Value> parts;
    for (const Phase& column : columns) {
      const Value elements = elements_of(op, data, row, h.dilation, column, w.dilation);
      parts.push_back(average(op, elements, row.window, column.window, include_padding));
    }
    bands.push_back(interleaved(op, parts, 3));
  }
  return interleaved(op, bands, 2);
}

}  // namespace qplan::onnx
