// Random operator lists: an operator, sometimes followed by a second one on its result in scratch memory.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "qplan/npu_oplist.h"
#include "src/packer/target/external/external.h"
#include "tests/conformance/check.h"
#include "tests/conformance/draw.h"
#include "tests/conformance/workload.h"

namespace qplan::conformance {
namespace {

using target::external::empty_op;

constexpr uint32_t kContracts[] = {QPLAN_NPU_TFL2, QPLAN_NPU_TFL1, QPLAN_NPU_F32E, QPLAN_NPU_ACC32};
constexpr int64_t kEndlessKernels[] = {15, 7, 3};
constexpr uint32_t kNumKinds = QPLAN_NPU_OP_LAST;
constexpr uint32_t kTriesOfKind = 24;  // before the next kind, where kinds are not drawn

uint32_t tries_of(Size size) {
  if (size == Size::kEndless) return 8;  // of megabytes
  return size == Size::kRandom ? 240 : kNumKinds * kTriesOfKind;
}

// Draws an operator that the capabilities allow.
class Generator : private Draw {
 public:
  using Draw::Draw;

  // The list alone. "" or why there is none.
  std::string draw() {
    workload_.format = QPLAN_NPU_BLOB_OPLIST;
    dtype_ = between(0, is_plain_ ? 3 : 1) == 0 ? kU8 : kS8;
    const uint32_t kind = draw_kind();
    if (!draw_contract(kind))
      return std::string(qplan_npu_op_kind_name(kind)) +
             ": the capabilities name no contract that this program has for it";
    // The zero point of a softmax is the least value.
    if (kind == QPLAN_NPU_OP_SOFTMAX && says_something() && capabilities_.output_zero_point == 0)
      dtype_ = kU8;
    const bool has_second = size_ == Size::kRandom && between(0, 3) == 0 && contract_ != QPLAN_NPU_ACC32;
    add_operator(kind, has_second);
    if (has_second) {
      qplan_oplist_op clip = empty_op(QPLAN_NPU_OP_CLIP, contract_);
      clip.inputs[0] = result_;
      clip.output = output(shape_, false);
      set_range(&clip);
      writer_.add_op(clip, "second");
      workload_.text += " -> clip";
    }
    if (workload_.slots.size() > capabilities_.max_binds)
      return workload_.text + ": it has more buffers than max_binds";
    for (const Slot& slot : workload_.slots) {
      if (slot.bytes > capabilities_.max_buffer_bytes)
        return workload_.text + ": a tensor is larger than max_buffer_bytes";
    }
    workload_.blob = writer_.finish(capabilities_.hash);
    workload_.seal = target::external::seal_oplist;
    workload_.header_bytes = sizeof(qplan_oplist_header);
    workload_.version_offset = offsetof(qplan_oplist_header, version) + 2;  // the major
    workload_.hash_offset = offsetof(qplan_oplist_header, capabilities_hash);
    workload_.unpack = [](const std::vector<uint8_t>& bytes) { return bytes; };
    return "";
  }
  // After draw: scratch of so many bytes takes the place of what the second operator reads, as in plans.
  void set_scratch(uint64_t bytes) {
    auto scratch = std::ranges::find(workload_.slots, QPLAN_NPU_USE_SCRATCH, &Slot::usage);
    if (scratch == workload_.slots.end()) {
      if (bytes == 0) return;
      const uint32_t slot = writer_.add_slot(QPLAN_NPU_USE_SCRATCH, 0);
      scratch = workload_.slots.insert(workload_.slots.end(), {slot, QPLAN_NPU_USE_SCRATCH, 0, {}});
    }
    scratch->bytes = bytes;
    writer_.grow_slot(scratch->slot, bytes);
    workload_.blob = writer_.finish(capabilities_.hash);
    if (bytes != 0) return;
    const auto position = static_cast<size_t>(scratch - workload_.slots.begin());
    workload_.slots.erase(scratch);
    if (workload_.output > position) --workload_.output;
  }
  // After draw: with the tensors at the border as the target arranges them.
  void arrange(const Source& source) {
    ask_arrangements(source, &workload_);
    for (const Slot& slot : workload_.slots) writer_.grow_slot(slot.slot, slot.bytes);
    workload_.blob = writer_.finish(capabilities_.hash);
  }
  // After draw: with what is expected of the output.
  Workload finish() {
    for (Slot& slot : workload_.slots) {
      if (slot.usage == QPLAN_NPU_USE_INPUT)
        slot.content = random_bytes(static_cast<size_t>(slot.dtype.bits / 8u * elements(slot.shape)));
    }
    if (size_ != Size::kEndless) compute();
    for (Slot& slot : workload_.slots) {
      if (slot.arrange != nullptr && slot.usage == QPLAN_NPU_USE_INPUT)
        slot.content = slot.arrange(slot.content);
    }
    return std::move(workload_);
  }
  const Workload& workload() const { return workload_; }

 private:
  // Random sizes draw any kind. The others want a layer with weights, and take what there is.
  uint32_t draw_kind() {
    if (size_ == Size::kRandom) return static_cast<uint32_t>(between(1, kNumKinds));
    if (size_ == Size::kEndless) return attempt_ < 6 ? QPLAN_NPU_OP_CONV2D : QPLAN_NPU_OP_DENSE;
    return 1 + attempt_ / kTriesOfKind % kNumKinds;
  }
  bool draw_contract(uint32_t kind) {
    std::vector<uint32_t> contracts;
    for (const uint32_t contract : kContracts) {
      const bool is_for_layers = contract == QPLAN_NPU_TFL1 || contract == QPLAN_NPU_ACC32;
      if (has_contract(contract) && (qplan_npu_op_is_layer(kind) || !is_for_layers))
        contracts.push_back(contract);
    }
    // The others compute the same under all contracts.
    if (contracts.empty() && !qplan_npu_op_has_contract(kind)) contracts = {QPLAN_NPU_TFL2};
    if (contracts.empty()) return false;
    const size_t choice = size_ == Size::kRandom ? random_() : attempt_ / 2;
    contract_ = contracts[choice % contracts.size()];
    return true;
  }

  void set_weights(qplan_oplist_op* op, const std::vector<int64_t>& shape) {
    const bool is_signed = is_plain_ || between(0, 2) != 0;
    const std::vector<uint8_t> weights = random_bytes(static_cast<size_t>(elements(shape)));
    op->weights = constants(is_signed ? kS8 : kU8, weights, shape);
    op->weights_zero_point =
        is_signed ? (is_plain_ || between(0, 1) == 0 ? 0 : static_cast<int32_t>(between(-128, 127)))
                  : static_cast<int32_t>(between(0, 255));
    if (between(0, 3) != 0) {
      std::vector<int32_t> bias;
      for (int64_t o = 0; o < shape[0]; ++o) bias.push_back(static_cast<int32_t>(between(-30000, 30000)));
      op->bias = constants(kS32, bias);
    }
    double spread = 5000;
    for (int64_t k = elements(shape) / shape[0]; k > 1; k /= 4) spread *= 2;
    set_scales(op, shape[0], spread);
  }

  void set_window(qplan_oplist_op* op, int64_t* h, int64_t* w, int64_t kernel_h, int64_t kernel_w,
                  bool is_pool) {
    if (is_plain_) {
      *h = std::max<int64_t>(1, *h - kernel_h + 1);
      *w = std::max<int64_t>(1, *w - kernel_w + 1);
      return;
    }
    for (uint32_t& stride : op->strides) stride = static_cast<uint32_t>(between(1, 3));
    if (!is_pool && between(0, 3) == 0) {
      for (uint32_t& dilation : op->dilations) dilation = static_cast<uint32_t>(between(1, 3));
    }
    const int64_t reach_h = (kernel_h - 1) * op->dilations[0], reach_w = (kernel_w - 1) * op->dilations[1];
    op->pads[0] = static_cast<uint32_t>(between(0, is_pool ? std::min(kernel_h - 1, *h - 1) : reach_h));
    op->pads[1] = static_cast<uint32_t>(between(0, is_pool ? std::min(kernel_w - 1, *w - 1) : reach_w));
    op->pads[2] = op->pads[0];
    op->pads[3] = op->pads[1];
    const auto extent = [&](int64_t in, int64_t reach, uint32_t pad, uint32_t stride) {
      return std::max<int64_t>(1, (in + 2 * int64_t{pad} - reach - 1) / int64_t{stride} + 1);
    };
    *h = extent(*h, reach_h, op->pads[0], op->strides[0]);
    *w = extent(*w, reach_w, op->pads[1], op->strides[1]);
  }

  void add_operator(uint32_t kind, bool has_second) {
    qplan_oplist_op op = empty_op(kind, contract_);
    op.input_zero_points[0] = zero_point(capabilities_.input_zero_point);
    set_range(&op);
    if (kind == QPLAN_NPU_OP_DENSE) {
      add_dense(&op, has_second);
    } else {
      add_image(kind, &op, has_second);
    }
    writer_.add_op(op, "first");
    workload_.text = qplan_npu_op_kind_name(kind);
    for (const int64_t extent : shape_) workload_.text += ' ' + std::to_string(extent);
    workload_.text += std::string(", ") + qplan_npu_contract_name(contract_);
  }

  // Endless: 68 G multiply-accumulates. Some devices have one row only.
  void add_dense(qplan_oplist_op* op, bool has_second) {
    int64_t rows = between(1, 3), outputs = round_up(between(1, 20)), depth = round_up(between(1, 60));
    const bool has_rows = attempt_ % 4 < 2;
    if (size_ == Size::kEndless) rows = 4096, outputs = round_up(4096), depth = round_up(4096);
    if (size_ == Size::kLong) rows = has_rows ? 64 : 1, outputs = round_up(has_rows ? 512 : 2048);
    if (size_ == Size::kLong) depth = round_up(has_rows ? 1024 : 2048);
    if (is_plain_ && size_ != Size::kEndless && size_ != Size::kLong) rows = 1;
    op->inputs[0] = input({rows, depth});
    set_weights(op, {outputs, depth});
    op->output = output({rows, outputs}, has_second);
  }

  void add_conv(qplan_oplist_op* op, int64_t* h, int64_t* w, int64_t* channels) {
    const bool is_small = size_ == Size::kSmall, is_endless = size_ == Size::kEndless;
    const bool is_long = size_ == Size::kLong || is_endless;
    const bool is_depthwise = !is_long && between(0, 2) == 0;
    // 15x15: 60 G multiply-accumulates. Devices with small windows get a smaller one.
    const int64_t kernel = is_endless ? kEndlessKernels[attempt_ / 2 % 3] : is_long ? 3 : between(1, 3);
    const int64_t outputs = is_depthwise ? *channels * (is_plain_ ? 1 : between(1, 2))
                            : is_endless ? round_up(64)
                            : is_long    ? round_up(32)
                                         : round_up(between(1, is_small ? 4 : 20));
    op->groups = is_depthwise ? static_cast<uint32_t>(*channels) : 1;
    op->inputs[0] = input({1, *h, *w, *channels});
    set_weights(op, {outputs, kernel, kernel, is_depthwise ? 1 : *channels});
    if (!is_long) {
      set_window(op, h, w, kernel, kernel, false);
    } else {  // the border of a convolution that keeps height and width
      *h -= kernel - 1;
      *w -= kernel - 1;
    }
    const bool pads = std::ranges::any_of(op->pads, [](uint32_t pad) { return pad != 0; });
    if (between(0, 3) == 0 || (pads && !allows(capabilities_.pad_value))) {
      op->flags |= QPLAN_NPU_OP_PAD_VALUE;
      op->pad_value = zero_point(capabilities_.pad_value);
    }
    *channels = outputs;
  }

  // The output has the extents that the strides make: each pixel of the input adds a window to it.
  void add_transposed_conv(qplan_oplist_op* op, int64_t* h, int64_t* w, int64_t* channels) {
    const bool is_long = size_ == Size::kLong;
    const int64_t kernel = is_long ? 3 : between(1, 3);
    const int64_t outputs = round_up(is_long ? 32 : between(1, size_ == Size::kSmall ? 4 : 12));
    op->inputs[0] = input({1, *h, *w, *channels});
    set_weights(op, {outputs, kernel, kernel, *channels});
    int64_t* const extents[] = {h, w};
    for (size_t i = 0; i < 2; ++i) {
      op->strides[i] = is_plain_ ? 2 : static_cast<uint32_t>(between(1, 3));
      op->pads[i] = is_plain_ ? 0 : static_cast<uint32_t>(between(0, kernel - 1));
      const int64_t whole = (*extents[i] - 1) * op->strides[i] + kernel - op->pads[i];
      // Some have outputs that nothing reaches, or leave some out.
      *extents[i] = is_plain_ ? whole : std::max<int64_t>(1, whole + between(-1, 1));
    }
    *channels = outputs;
  }

  void add_image(uint32_t kind, qplan_oplist_op* op, bool has_second) {
    const bool is_small = size_ == Size::kSmall, is_endless = size_ == Size::kEndless;
    const bool is_long = size_ == Size::kLong || is_endless;
    const bool is_transposed = kind == QPLAN_NPU_OP_CONV2D_TRANSPOSE;
    const bool is_conv = kind == QPLAN_NPU_OP_CONV2D || is_transposed;
    const int64_t long_extent = is_endless || (is_long && !is_conv) ? 256 : 64;
    int64_t h = is_long ? long_extent : between(1, is_small ? 4 : 9);
    int64_t w = is_long ? long_extent : between(1, is_small ? 4 : 9);
    int64_t channels = round_up(is_endless || (is_long && !is_conv) ? 64
                                : is_long                           ? 16
                                                                    : between(1, is_small ? 4 : 20));
    const std::vector<int64_t> shape = {1, h, w, channels};
    if (is_transposed) {
      add_transposed_conv(op, &h, &w, &channels);
    } else if (is_conv) {
      add_conv(op, &h, &w, &channels);
    } else {
      op->inputs[0] = input(shape);
    }
    std::vector<int64_t> result = {1, h, w, channels};
    if (kind == QPLAN_NPU_OP_ADD) {
      op->inputs[1] = input(shape);
      op->input_zero_points[1] = zero_point(capabilities_.input_zero_point);
      set_add_scales(op);
    } else if (kind > QPLAN_NPU_OP_CLIP && !is_conv) {
      add_later_kind(kind, op, shape, &result);
    } else if (kind == QPLAN_NPU_OP_MAX_POOL2D || kind == QPLAN_NPU_OP_AVG_POOL2D) {
      op->window[0] = static_cast<uint32_t>(between(1, is_long ? 3 : h));
      op->window[1] = static_cast<uint32_t>(between(1, is_long ? 3 : w));
      set_window(op, &h, &w, op->window[0], op->window[1], true);
      if (kind == QPLAN_NPU_OP_AVG_POOL2D && contract_ == QPLAN_NPU_F32E) {
        if (between(0, 1) == 0) op->flags |= QPLAN_NPU_OP_COUNT_INCLUDE_PAD;
        op->num_scales = 2;
        op->scales = constants(kF32, std::vector<float>{real(0.01, 0.1), real(0.01, 0.1)});
      } else if (kind == QPLAN_NPU_OP_AVG_POOL2D) {
        op->output_zero_point = op->input_zero_points[0] =
            zero_point(capabilities_.input_zero_point & capabilities_.output_zero_point);
      }
    }
    if (kind <= QPLAN_NPU_OP_CLIP || is_conv) result = {1, h, w, channels};
    op->output = output(result, has_second);
  }

  // Kinds since driver ABI 1.2.
  void add_later_kind(uint32_t kind, qplan_oplist_op* op, const std::vector<int64_t>& shape,
                      std::vector<int64_t>* result) {
    if (!qplan_npu_op_has_contract(kind)) {  // neither scales nor zero points, and the whole range
      op->input_zero_points[0] = op->output_zero_point = 0;
      op->clamp_min = static_cast<int32_t>(low());
      op->clamp_max = static_cast<int32_t>(low() + 255);
    }
    if (kind == QPLAN_NPU_OP_CONCAT_N) {
      add_more_inputs(op, shape, result);
    } else if (qplan_npu_op_broadcasts(kind)) {
      add_broadcast(kind, op, shape);
    } else if (qplan_npu_op_has_two_inputs(kind)) {
      std::vector<int64_t> second = shape;
      if (kind == QPLAN_NPU_OP_CONCAT) {
        second[3] = round_up(between(1, 20));
        (*result)[3] += second[3];
      }
      op->inputs[1] = input(second);
    }
    if (kind == QPLAN_NPU_OP_MUL) {
      op->input_zero_points[1] = zero_point(capabilities_.input_zero_point);
      set_product_scales(op);
    } else if (kind == QPLAN_NPU_OP_MEAN) {
      *result = {1, shape[3]};
      set_one_scale(op, 40.0 * std::sqrt(static_cast<double>(shape[1] * shape[2])));
    } else if (kind == QPLAN_NPU_OP_LOOKUP) {
      op->weights = constants(dtype_, random_bytes(256), {256});
    } else if (kind == QPLAN_NPU_OP_PAD) {
      for (uint32_t& pad : op->pads) pad = static_cast<uint32_t>(between(0, 3));
      (*result)[1] += op->pads[0] + op->pads[2];
      (*result)[2] += op->pads[1] + op->pads[3];
      op->flags |= QPLAN_NPU_OP_PAD_VALUE;
      op->pad_value = zero_point(capabilities_.pad_value);
    } else if (kind == QPLAN_NPU_OP_RESHAPE) {
      *result = {shape[1] * shape[2], shape[3]};
    } else if (kind == QPLAN_NPU_OP_SOFTMAX) {
      set_softmax_scales(op);
    } else if (qplan_npu_op_is_resize(kind)) {
      resize(kind, op, result);
    }
  }

  void resize(uint32_t kind, qplan_oplist_op* op, std::vector<int64_t>* result) {
    constexpr uint32_t kWays[] = {0, QPLAN_NPU_OP_HALF_PIXEL_CENTERS, QPLAN_NPU_OP_ALIGN_CORNERS};
    op->flags |= kWays[between(0, 2)];
    const bool is_float = dtype_.code == kDLUInt && (is_plain_ || between(0, 1) == 0);
    if (kind == QPLAN_NPU_OP_RESIZE_BILINEAR && is_float) op->flags |= QPLAN_NPU_OP_RESIZE_FLOAT;
    if (size_ == Size::kLong) return;
    for (size_t i = 1; i < 3; ++i) (*result)[i] = is_plain_ ? 2 * (*result)[i] : between(1, 20);
  }

  // The axis is any; the channels stay multiples of what the device wants.
  void add_more_inputs(qplan_oplist_op* op, const std::vector<int64_t>& shape, std::vector<int64_t>* result) {
    const auto axis = static_cast<size_t>(between(0, 3));
    op->axis = static_cast<uint32_t>(axis);
    op->num_inputs = static_cast<uint32_t>(size_ == Size::kRandom ? between(2, QPLAN_NPU_MAX_INPUTS) : 3);
    for (uint32_t i = 1; i < op->num_inputs; ++i) {
      std::vector<int64_t> more = shape;
      more[axis] = axis == 3 ? round_up(between(1, 5)) : between(1, 3);
      (*result)[axis] += more[axis];
      (i < 2 ? op->inputs[i] : op->more_inputs[i - 2]) = input(more);
    }
  }

  // The other operand repeats along some axes; half of the time it is a constant.
  void add_broadcast(uint32_t kind, qplan_oplist_op* op, const std::vector<int64_t>& shape) {
    std::vector<std::vector<int64_t>> shapes = {
        {1, 1, 1, shape[3]}, {shape[3]}, {1, shape[1], 1, shape[3]}, shape};
    if (pack_ == 1) shapes.insert(shapes.end(), {{1, shape[1], shape[2], 1}, {1}, {shape[2], 1}});
    const std::vector<int64_t>& other =
        shapes[static_cast<size_t>(between(0, is_plain_ ? 1 : shapes.size() - 1))];
    op->inputs[1] = between(0, 1) == 0
                        ? input(other)
                        : constants(dtype_, random_bytes(static_cast<size_t>(elements(other))), other);
    if (!is_plain_ && between(0, 2) == 0) std::swap(op->inputs[0], op->inputs[1]);
    op->input_zero_points[1] = zero_point(capabilities_.input_zero_point);
    kind == QPLAN_NPU_OP_ADD_BROADCAST ? set_add_scales(op) : set_product_scales(op);
  }

  // The list, operator by operator, on memory of our own.
  void compute() {
    qplan_oplist list = {};
    (void)qplan_oplist_open(workload_.blob.data(), workload_.blob.size(), &list, nullptr);
    std::vector<std::vector<uint64_t>> memories;  // aligned for int32 and float
    std::vector<void*> slots;
    for (uint32_t i = 0; i < list.header.num_slots; ++i) {
      const qplan_oplist_slot slot = qplan_oplist_slot_at(&list, i);
      memories.emplace_back(slot.bytes / 8 + 1);
      slots.push_back(memories.back().data());
      if (slot.usage == QPLAN_NPU_USE_WEIGHTS)
        std::copy_n(workload_.blob.data() + slot.data_offset, slot.bytes,
                    static_cast<uint8_t*>(slots.back()));
    }
    for (const Slot& slot : workload_.slots) {
      std::copy(slot.content.begin(), slot.content.end(), static_cast<uint8_t*>(slots[slot.slot]));
    }
    for (uint32_t i = 0; i < list.header.num_ops; ++i) {
      qplan_oplist_call call;
      qplan_oplist_bind(&list, i, slots.data(), &call);
      if (const char* error = qplan_npu_op_check(&call.op)) {
        // TFL1 has no rule for additions and averages, which `supported` says; all else is our own mistake.
        throw std::logic_error(workload_.text + ": " + error);
      }
      compute_reference(call.op);
    }
    const Slot& output = workload_.slots[workload_.output];
    const auto* bytes = static_cast<const uint8_t*>(slots[output.slot]);
    workload_.expected.assign(bytes, bytes + output.dtype.bits / 8u * elements(output.shape));
  }
};

// Calls see(operator, its number) with each operator of a list, whose constants have data.
template <typename See>
void for_each_operator(const std::vector<uint8_t>& blob, See see) {
  qplan_oplist list = {};
  (void)qplan_oplist_open(blob.data(), blob.size(), &list, nullptr);
  std::vector<void*> slots(list.header.num_slots, nullptr);
  std::vector<uint64_t> constants(list.header.total_bytes / 8 + 1);
  const qplan_oplist_slot carried = qplan_oplist_slot_at(&list, 0);
  slots[0] = constants.data();
  std::copy_n(blob.data() + carried.data_offset, carried.bytes, static_cast<uint8_t*>(slots[0]));
  for (uint32_t i = 0; i < list.header.num_ops; ++i) {
    qplan_oplist_call call;
    qplan_oplist_bind(&list, i, slots.data(), &call);
    see(call.op);
  }
}

// "" or why the device does not take the workload.
std::string refusal(const Workload& workload, const Ask& ask) {
  std::string why;
  for_each_operator(workload.blob, [&](const qplan_npu_op& op) {
    if (why.empty()) why = ask(op);
  });
  return why;
}

}  // namespace

Workload make_oplist_workload(const Source& source, Size size, uint32_t seed) {
  constexpr uint32_t kMostTries = 240;
  const uint32_t tries = tries_of(size);
  std::string last;
  for (uint32_t attempt = 0; attempt < tries; ++attempt) {
    Generator generator(source.capabilities, size, seed * kMostTries + attempt, attempt);
    last = generator.draw();
    if (!last.empty()) continue;
    last = refusal(generator.workload(), source.ask);
    Workload native;
    if (last.empty() && has_compiler(source)) generator.arrange(source);
    if (last.empty() && has_compiler(source) && target::external::asks_scratch(*source.target)) {
      uint64_t bytes = 0;
      last = scratch_of(source, generator.workload(), &bytes);
      if (last.empty()) generator.set_scratch(bytes);
    }
    if (last.empty() && has_compiler(source)) last = compile_native(source, generator.workload(), &native);
    if (!last.empty()) {
      last = generator.workload().text + ": " + last;
      continue;
    }
    Workload workload = generator.finish();
    if (has_compiler(source)) become_native(std::move(native), &workload);
    return workload;
  }
  throw Skipped("the device takes none of " + std::to_string(tries) +
                " random operators; the last one: " + last);
}

void see_random_operators(uint32_t count, uint32_t seed, const See& see) {
  qplan_npu_capabilities all = {};  // which say nothing, so that anything is drawn
  all.max_buffer_bytes = UINT64_MAX;
  all.max_binds = UINT32_MAX;
  for (uint32_t i = 0; i < count; ++i) {
    Generator generator(all, Size::kRandom, seed + i, i);
    if (!generator.draw().empty()) continue;
    for_each_operator(generator.workload().blob,
                      [&](const qplan_npu_op& op) { see(op, generator.workload().text); });
  }
}

}  // namespace qplan::conformance
