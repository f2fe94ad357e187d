#include <algorithm>
#include <iterator>
#include <vector>

#include "qplan/npu_oplist.h"
#include "tools/error.h"
#include "tools/npu.h"
#include "tools/tensor.h"
#include "tools/words.h"

namespace qplan::tools {
namespace {

class Listing {
 public:
  explicit Listing(const qplan_oplist& list) : list_(list) {}

  std::string text() {
    for (uint32_t i = 0; i < list_.header.num_slots; ++i) add_slot(i);
    for (uint32_t i = 0; i < list_.header.num_ops; ++i) add_operator(i);
    return std::move(text_);
  }

 private:
  void add_slot(uint32_t index) {
    const qplan_oplist_slot slot = qplan_oplist_slot_at(&list_, index);
    const char* use = slot.usage == QPLAN_NPU_USE_INPUT     ? "input"
                      : slot.usage == QPLAN_NPU_USE_OUTPUT  ? "output"
                      : slot.usage == QPLAN_NPU_USE_WEIGHTS ? "constants"
                                                            : "scratch";
    text_ +=
        "slot " + std::to_string(index) + ": " + use + ", " + count_text(slot.bytes, "byte", "bytes") + "\n";
  }

  // "slot 3+64 int8[1,8,8,16]"
  std::string tensor(uint32_t index) const {
    const qplan_oplist_tensor t = qplan_oplist_tensor_at(&list_, index);
    const DLDataType dtype = {t.dtype_code, t.dtype_bits, t.dtype_lanes};
    return "slot " + std::to_string(t.slot) + "+" + std::to_string(t.offset) + " " + dtype_name(dtype) +
           shape_text(t.shape, static_cast<int32_t>(t.rank));
  }
  std::string tensor(const char* name, uint32_t index) const {
    if (index == QPLAN_OPLIST_NONE) return "";
    return std::string(", ") + name + (name[0] == '\0' ? "" : " ") + tensor(index);
  }
  static std::string zero_point(int32_t value) { return value == 0 ? "" : " zp " + std::to_string(value); }

  // ", strides 2,2"; "" where all values are the given one.
  template <size_t N>
  static std::string numbers(const char* name, const uint32_t (&values)[N], uint32_t usual) {
    if (std::all_of(std::begin(values), std::end(values), [&](uint32_t value) { return value == usual; }))
      return "";
    std::string text;
    for (const uint32_t value : values) text += (text.empty() ? "" : ",") + std::to_string(value);
    return std::string(", ") + name + " " + text;
  }

  void add_operator(uint32_t index) {
    const qplan_oplist_op op = qplan_oplist_op_at(&list_, index);
    text_ += std::to_string(index) + " " + qplan_npu_op_kind_name(op.op);
    if (op.name != QPLAN_OPLIST_NONE) {
      const uint64_t names = qplan_oplist_ops_end(&list_.header);
      text_ += " '" + one_line(reinterpret_cast<const char*>(list_.blob) + names + op.name) + "'";
    }
    text_ += std::string(" (") + qplan_npu_contract_name(op.contract) + "): ";
    text_ += tensor(op.inputs[0]) + zero_point(op.input_zero_points[0]);
    if (op.inputs[1] != QPLAN_OPLIST_NONE)
      text_ += ", " + tensor(op.inputs[1]) + zero_point(op.input_zero_points[1]);
    if (op.op == QPLAN_NPU_OP_CONCAT_N) {
      for (uint32_t i = 2; i < op.num_inputs && i < QPLAN_NPU_MAX_INPUTS; ++i)
        text_ += tensor("", op.more_inputs[i - 2]);
      text_ += ", axis " + std::to_string(op.axis);
    }
    text_ += " -> " + tensor(op.output) + zero_point(op.output_zero_point);
    text_ += tensor("weights", op.weights);
    if (op.weights != QPLAN_OPLIST_NONE) text_ += zero_point(op.weights_zero_point);
    text_ += tensor("bias", op.bias);
    if (op.num_scales != 0) text_ += ", " + count_text(op.num_scales, "scale", "scales");
    text_ += numbers("window", op.window, 0) + numbers("strides", op.strides, 1) +
             numbers("dilations", op.dilations, 1) + numbers("pads", op.pads, 0);
    if ((op.flags & QPLAN_NPU_OP_PAD_VALUE) != 0) text_ += ", pad value " + std::to_string(op.pad_value);
    if ((op.flags & QPLAN_NPU_OP_COUNT_INCLUDE_PAD) != 0) text_ += ", counts padding";
    if ((op.flags & QPLAN_NPU_OP_ALIGN_CORNERS) != 0) text_ += ", aligned corners";
    if ((op.flags & QPLAN_NPU_OP_HALF_PIXEL_CENTERS) != 0) text_ += ", half-pixel centres";
    if ((op.flags & QPLAN_NPU_OP_RESIZE_FLOAT) != 0) text_ += ", in floats";
    constexpr uint32_t kFlags = QPLAN_NPU_OP_PAD_VALUE | QPLAN_NPU_OP_COUNT_INCLUDE_PAD |
                                QPLAN_NPU_OP_ALIGN_CORNERS | QPLAN_NPU_OP_HALF_PIXEL_CENTERS |
                                QPLAN_NPU_OP_RESIZE_FLOAT;
    if ((op.flags & ~kFlags) != 0) text_ += ", unknown flags " + std::to_string(op.flags & ~kFlags);
    if (op.left_shift != 0) text_ += ", left shift " + std::to_string(op.left_shift);
    if (op.groups != 1) text_ += ", groups " + std::to_string(op.groups);
    if (op.contract != QPLAN_NPU_ACC32)
      text_ += ", clamp " + std::to_string(op.clamp_min) + ".." + std::to_string(op.clamp_max);
    text_ += "\n";
  }

  const qplan_oplist& list_;
  std::string text_;
};

}  // namespace

bool list_operators(const void* blob, uint64_t bytes, std::string* text) {
  qplan_oplist list = {};
  qplan_npu_reason why = {};
  if (qplan_oplist_open(blob, bytes, &list, &why) != QPLAN_NPU_OK) {
    *text = why.text;
    if (why.place != UINT32_MAX) *text += ", at " + std::to_string(why.place);
    if (why.actual != why.limit)
      *text += ", found " + std::to_string(why.actual) + ", expected " + std::to_string(why.limit);
    return false;
  }
  *text = Listing(list).text();
  return true;
}

}  // namespace qplan::tools
