#include "tools/tensor.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "tools/error.h"
#include "tools/files.h"

namespace qplan::tools {
namespace {

template <typename T>
T load(const void* bytes, uint64_t index) {
  T value;
  std::memcpy(&value, static_cast<const char*>(bytes) + index * sizeof(T), sizeof(T));
  return value;
}

// Calls f with the element in its own C type; false where there is none.
template <typename F>
bool with_element(DLDataType dtype, const void* bytes, uint64_t index, F&& f) {
  if (is_type(dtype, kDLInt, 8)) return f(load<int8_t>(bytes, index)), true;
  if (is_type(dtype, kDLUInt, 8)) return f(load<uint8_t>(bytes, index)), true;
  if (is_type(dtype, kDLInt, 16)) return f(load<int16_t>(bytes, index)), true;
  if (is_type(dtype, kDLUInt, 16)) return f(load<uint16_t>(bytes, index)), true;
  if (is_type(dtype, kDLInt, 32)) return f(load<int32_t>(bytes, index)), true;
  if (is_type(dtype, kDLUInt, 32)) return f(load<uint32_t>(bytes, index)), true;
  if (is_type(dtype, kDLInt, 64)) return f(load<int64_t>(bytes, index)), true;
  if (is_type(dtype, kDLUInt, 64)) return f(load<uint64_t>(bytes, index)), true;
  if (is_type(dtype, kDLFloat, 32)) return f(load<float>(bytes, index)), true;
  if (is_type(dtype, kDLFloat, 64)) return f(load<double>(bytes, index)), true;
  return false;
}

std::string text_of(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.17g", value);
  return text;
}
std::string text_of(float value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.9g", static_cast<double>(value));
  return text;
}
template <typename T>
std::string text_of(T value) {
  return std::to_string(value);
}

// Which of the tensor's scales belongs to the element.
uint32_t scale_index(const qplan_tensor_info& info, uint64_t index) {
  if (info.num_scales <= 1) return 0;
  uint64_t inner = 1;
  for (int32_t axis = info.quant_axis + 1; axis < info.ndim; ++axis)
    inner *= static_cast<uint64_t>(info.shape[axis]);
  return static_cast<uint32_t>(index / inner % info.num_scales);
}

}  // namespace

std::string dtype_name(DLDataType dtype) {
  std::string name;
  switch (dtype.code) {
    case kDLInt:
      name = "int";
      break;
    case kDLUInt:
      name = "uint";
      break;
    case kDLFloat:
      name = "float";
      break;
    case kDLBfloat:
      name = "bfloat";
      break;
    default:
      name = "type" + std::to_string(dtype.code) + "_";
      break;
  }
  name += std::to_string(dtype.bits);
  return dtype.lanes > 1 ? name + "x" + std::to_string(dtype.lanes) : name;
}

std::string shape_text(const int64_t* shape, int32_t ndim) {
  std::string text = "[";
  for (int32_t i = 0; i < ndim; ++i) {
    if (i > 0) text += ',';
    text += std::to_string(shape[i]);
  }
  return text += ']';
}

std::string describe(int direction, uint32_t index, const qplan_tensor_info& info) {
  std::string text = (direction == QPLAN_INPUT ? "input " : "output ") + std::to_string(index);
  if (info.name != nullptr && info.name[0] != '\0') text += " '" + std::string(info.name) + "'";
  return text + " " + dtype_name(info.dtype) + shape_text(info.shape, info.ndim);
}

bool is_type(DLDataType dtype, uint8_t code, uint8_t bits) {
  return dtype.code == code && dtype.bits == bits && dtype.lanes == 1;
}

uint64_t element_count(const qplan_tensor_info& info) {
  uint64_t count = 1;
  for (int32_t i = 0; i < info.ndim; ++i) count *= static_cast<uint64_t>(info.shape[i]);
  return count;
}

std::vector<qplan_tensor_info> tensor_infos(const qplan_plan& plan, int direction) {
  std::vector<qplan_tensor_info> infos(qplan_plan_io_count(&plan, nullptr, direction));
  for (uint32_t i = 0; i < infos.size(); ++i) {
    infos[i].struct_size = sizeof infos[i];
    check(qplan_plan_io_info(&plan, nullptr, direction, i, &infos[i]), make_error(), "plan");
  }
  return infos;
}

std::optional<double> element(const qplan_tensor_info& info, const void* bytes, uint64_t index) {
  std::optional<double> result;
  with_element(info.dtype, bytes, index, [&](auto value) { result = static_cast<double>(value); });
  return result;
}

std::optional<double> real_value(const qplan_tensor_info& info, const void* bytes, uint64_t index) {
  std::optional<double> value = element(info, bytes, index);
  if (value && info.num_scales > 0) {
    const uint32_t i = scale_index(info, index);
    value = static_cast<double>(info.scales[i]) * (*value - info.zero_points[i]);
  }
  return value;
}

std::string element_text(const qplan_tensor_info& info, const void* bytes, uint64_t index) {
  std::string text = "?";
  with_element(info.dtype, bytes, index, [&](auto value) { text = text_of(value); });
  return text;
}

DLTensor packed_tensor(const qplan_tensor_info& info, void* bytes) {
  DLTensor tensor{};
  tensor.data = bytes;
  tensor.device = DLDevice{kDLCPU, 0};
  tensor.ndim = info.ndim;
  tensor.dtype = info.dtype;
  tensor.shape = const_cast<int64_t*>(info.shape);  // DLPack has no const; the library only reads it
  return tensor;
}

std::vector<Score> top_scores(const qplan_tensor_info& info, const void* bytes, uint32_t count) {
  std::vector<Score> scores;
  const uint64_t values = element_count(info);
  for (uint64_t i = 0; i < values; ++i) {
    if (const auto value = real_value(info, bytes, i)) scores.push_back({i, *value});
  }
  const size_t kept = std::min<size_t>(count, scores.size());
  std::partial_sort(scores.begin(), scores.begin() + static_cast<std::ptrdiff_t>(kept), scores.end(),
                    [](const Score& a, const Score& b) {
                      // NaN counts as the smallest, so that the order stays an order.
                      const bool a_number = a.score == a.score;
                      const bool b_number = b.score == b.score;
                      if (a_number != b_number) return a_number;
                      if (a_number && a.score != b.score) return a.score > b.score;
                      return a.index < b.index;
                    });
  scores.resize(kept);
  return scores;
}

Labels::Labels(const std::string& path) : path_(path) {
  const std::vector<uint8_t> bytes = read_file(path, "labels");
  std::string line;
  for (const uint8_t byte : bytes) {
    if (byte == '\n') {
      names_.push_back(line);
      line.clear();
    } else if (byte != '\r') {
      line += static_cast<char>(byte);
    }
  }
  if (!line.empty()) names_.push_back(line);
  while (!names_.empty() && names_.back().empty()) names_.pop_back();
  if (names_.empty()) throw Failure("labels '" + path + "': holds no names, expected one per line");
}

}  // namespace qplan::tools
