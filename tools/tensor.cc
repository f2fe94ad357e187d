#include "tools/tensor.h"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstring>
#include <utility>

#include "tools/command.h"
#include "tools/files.h"
#include "tools/reports.h"

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
  if (is_type(dtype, kBoolCode, 8)) return f(load<uint8_t>(bytes, index)), true;
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
  if (is_type(dtype, kBoolCode, 8)) return "bool";
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

std::string read_text(const std::string& path, std::string_view what) {
  const std::vector<uint8_t> bytes = read_file(path, what);
  std::string text(bytes.begin(), bytes.end());
  if (text.starts_with("\xef\xbb\xbf")) text.erase(0, 3);
  return text;
}

std::vector<std::string> read_lines(const std::string& path, std::string_view what) {
  std::vector<std::string> lines(1);
  for (const char c : read_text(path, what)) {
    if (c == '\n') {
      lines.emplace_back();
    } else if (c != '\r') {
      lines.back() += c;
    }
  }
  while (!lines.empty() && lines.back().empty()) lines.pop_back();
  return lines;
}

Labels::Labels(const std::string& path) : path_(path), names_(read_lines(path, "labels")) {
  if (names_.empty()) throw Failure("labels '" + path + "': holds no names, expected one per line");
}

// ---- what each step of a session writes

namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMaxStem = 80;

bool is_plain(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '.'; }

// "<i4"; "" for what NumPy has no name for.
std::string numpy_dtype(DLDataType dtype) {
  if (dtype.lanes != 1 || dtype.bits % 8 != 0 || dtype.bits == 0) return "";
  const char kind = dtype.code == kDLInt      ? 'i'
                    : dtype.code == kDLUInt   ? 'u'
                    : dtype.code == kDLFloat  ? 'f'
                    : dtype.code == kBoolCode ? 'b'
                                              : '\0';
  if (kind == '\0') return "";
  return std::string(dtype.bits == 8 ? "|" : "<") + kind + std::to_string(dtype.bits / 8);
}

}  // namespace

void StepTensors::attach(qplan_platform& platform) {
  before_ = platform;
  platform.user = this;
  platform.step_end = on_end;
  if (before_.step_begin != nullptr) {
    platform.step_begin = [](void* user, const qplan_event* event) {
      const qplan_platform& before = static_cast<StepTensors*>(user)->before_;
      before.step_begin(before.user, event);
    };
  }
  if (before_.log != nullptr) {
    platform.log = [](void* user, uint32_t level, const char* text) {
      const qplan_platform& before = static_cast<StepTensors*>(user)->before_;
      before.log(before.user, level, text);
    };
  }
  if (before_.now_ns != nullptr) {
    platform.now_ns = [](void* user) {
      const qplan_platform& before = static_cast<StepTensors*>(user)->before_;
      return before.now_ns(before.user);
    };
  }
}

// No exception may leave a hook.
void StepTensors::on_end(void* user, const qplan_event* event, qplan_status status) {
  auto& self = *static_cast<StepTensors*>(user);
  if (self.before_.step_end != nullptr) self.before_.step_end(self.before_.user, event, status);
  if (status < 0 || self.session_ == nullptr) return;
  try {
    for (uint32_t i = 0;; ++i) {
      StepTensor tensor;
      tensor.info.struct_size = sizeof tensor.info;
      DLTensor view;
      const qplan_status found = qplan_session_step_output(self.session_, i, &tensor.info, &view);
      if (found == QPLAN_NOT_FOUND) return;
      if (found < 0) {
        self.status_ = found;
        return;
      }
      tensor.step = event->step;
      tensor.output = i;
      tensor.op = event->op;
      tensor.kernel = event->kernel;
      tensor.step_name = event->name;
      tensor.name = tensor.info.name;
      const auto* bytes = static_cast<const uint8_t*>(view.data) + view.byte_offset;
      tensor.bytes.assign(bytes, bytes + tensor.info.size_bytes);
      self.tensors_.push_back(std::move(tensor));
    }
  } catch (const std::bad_alloc&) {
    self.status_ = QPLAN_OUT_OF_MEMORY;
  }
}

const std::vector<StepTensor>& StepTensors::tensors() const {
  if (status_ < 0)
    throw Failure(std::string("the outputs of steps cannot be read: ") + qplan_status_name(status_));
  return tensors_;
}

std::string file_stem(std::string_view name) {
  name = name.substr(0, name.find(';'));
  std::string stem;
  for (const char c : name.substr(0, kMaxStem)) stem += is_plain(c) ? c : '_';
  if (!stem.empty() && stem[0] == '.') stem[0] = '_';
  return stem;
}

std::string npy_file(const qplan_tensor_info& info, const void* bytes) {
  std::string dtype = numpy_dtype(info.dtype), shape;
  for (int32_t i = 0; i < info.ndim && !dtype.empty(); ++i) shape += std::to_string(info.shape[i]) + ", ";
  if (dtype.empty()) {
    dtype = "|u1";
    shape = std::to_string(info.size_bytes) + ", ";
  }
  std::string header = "{'descr': '" + dtype + "', 'fortran_order': False, 'shape': (" + shape + "), }";
  constexpr size_t kBefore = 10, kAlignment = 64;
  header.resize((kBefore + header.size() + 1 + kAlignment - 1) / kAlignment * kAlignment - kBefore - 1, ' ');
  header += '\n';
  std::string file("\x93NUMPY\x01\x00", 8);
  file += static_cast<char>(header.size() & 0xff);
  file += static_cast<char>(header.size() >> 8);
  file += header;
  file.append(static_cast<const char*>(bytes), info.size_bytes);
  return file;
}

void TensorFiles::add(const std::vector<StepTensor>& tensors, const std::string& prefix) {
  for (const StepTensor& tensor : tensors) {
    std::string stem = file_stem(tensor.name);
    if (stem.empty()) stem = "step" + std::to_string(tensor.step) + "_output" + std::to_string(tensor.output);
    std::string name = prefix + stem + ".npy";
    for (int i = 2; std::ranges::find(names, name) != names.end(); ++i)
      name = prefix + stem + "~" + std::to_string(i) + ".npy";
    names.push_back(name);
    contents.push_back(npy_file(tensor.info, tensor.bytes.data()));
    Json entry;
    entry["file"] = name;
    entry["name"] = tensor.name;
    entry["step"] = tensor.step;
    entry["step_name"] = tensor.step_name;
    entry["op"] = tensor.op;
    entry["kernel"] = tensor.kernel;
    entry["output"] = tensor.output;
    entry["dtype"] = dtype_name(tensor.info.dtype);
    entry["shape"] = std::vector<int64_t>(tensor.info.shape, tensor.info.shape + tensor.info.ndim);
    const uint32_t scales = tensor.info.num_scales;
    entry["scale"] = std::vector<float>(tensor.info.scales, tensor.info.scales + scales);
    entry["zero_point"] = std::vector<int32_t>(tensor.info.zero_points, tensor.info.zero_points + scales);
    index.push_back(std::move(entry));
  }
}

void TensorFiles::finish(const PlanFile& plan) {
  Json list;
  list["plan"] = plan.path();
  list["tensors"] = index;
  list["hidden"] = hidden_tensors(Json::parse(inspect_text(plan.bytes(), plan.size(), plan.path())));
  names.emplace_back("tensors.json");
  contents.push_back(json_page(list));
}

std::vector<NamedBytes> TensorFiles::files() const {
  std::vector<NamedBytes> files;
  for (size_t i = 0; i < names.size(); ++i)
    files.push_back({names[i], contents[i].data(), contents[i].size()});
  return files;
}

Json hidden_tensors(const Json& inspected) {
  Json hidden = Json::array();
  for (const Json& step : inspected.at("steps")) {
    const auto op = step.at("op").get<std::string>();
    std::string reason;
    if (op == "chain") {
      reason =
          "a cascade: the tensors between its layers are never whole; a plan of 'pack --observable' has them";
    } else if (op == "npu") {
      reason =
          "a region: the tensors between its operators exist on its device alone; '--driver none' runs the "
          "CPU's steps, which write them";
    } else if (step.at("params").contains("residual")) {
      reason =
          "a residual: the operand of the sum that this convolution computes is added before it is written; "
          "a "
          "plan of 'pack --observable' has it";
    }
    if (reason.empty()) continue;
    Json entry;
    entry["step"] = step.at("index");
    entry["name"] = step.at("name");
    entry["reason"] = reason;
    hidden.push_back(std::move(entry));
  }
  return hidden;
}

}  // namespace qplan::tools
