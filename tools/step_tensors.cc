#include <algorithm>
#include <cctype>
#include <cstring>
#include <utility>

#include "tools/error.h"
#include "tools/reports.h"
#include "tools/session.h"
#include "tools/tensor.h"
#include "tools/words.h"

namespace qplan::tools {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMaxStem = 80;

bool is_plain(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '.'; }

// "<i4"; "" for what NumPy has no name for.
std::string numpy_dtype(DLDataType dtype) {
  if (dtype.lanes != 1 || dtype.bits % 8 != 0 || dtype.bits == 0) return "";
  const char kind = dtype.code == kDLInt     ? 'i'
                    : dtype.code == kDLUInt  ? 'u'
                    : dtype.code == kDLFloat ? 'f'
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

void TensorFiles::write(const std::string& directory, const PlanFile& plan,
                        const std::vector<NamedFile>& inputs) {
  Json list;
  list["plan"] = plan.path();
  list["tensors"] = index;
  list["hidden"] = hidden_tensors(Json::parse(inspect_text(plan.bytes(), plan.size(), plan.path())));
  names.emplace_back("tensors.json");
  contents.push_back(json_page(list));
  for (const std::string& name : names) check_outputs({{"--dump-tensors", directory + "/" + name}}, inputs);
  std::vector<NamedBytes> files;
  for (size_t i = 0; i < names.size(); ++i)
    files.push_back({names[i], contents[i].data(), contents[i].size()});
  write_files(directory, files);
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
