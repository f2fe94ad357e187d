#include "capi/pack_options.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/packer/error.h"
#include "src/packer/ir/cat.h"
#include "src/packer/ir/limits.h"

namespace qplan {
namespace {

[[noreturn]] void fail(const std::string& text) {
  throw PackError(QPLAN_INVALID_ARGUMENT, "pack options: " + text);
}

std::string text_of(const char* text) { return text != nullptr ? text : ""; }

ir::TensorType read_type(const std::string& what, DLDataType dtype, int32_t ndim, const int64_t* shape) {
  if (ndim < 0 || static_cast<size_t>(ndim) > ir::kMaxRank) {
    fail(cat(what, " has rank ", ndim, ", expected 0 to ", ir::kMaxRank));
  }
  if (ndim > 0 && shape == nullptr) fail(what + " has no shape");
  ir::TensorType type{{dtype.code, dtype.bits, dtype.lanes}, {}};
  if (ndim > 0) type.shape.assign(shape, shape + ndim);
  const std::string error = ir::type_error(type);
  if (!error.empty()) fail(what + ": " + error);
  return type;
}

// The elements in row-major order, whatever the strides.
std::vector<uint8_t> packed_bytes(const std::string& what, const DLTensor& tensor,
                                  const ir::TensorType& type) {
  const auto* data = static_cast<const uint8_t*>(tensor.data) + tensor.byte_offset;
  const auto size = static_cast<size_t>(type.size_bytes());
  if (tensor.strides == nullptr) return {data, data + size};
  if (type.dtype.bits < 8 && type.dtype != ir::kBool)
    fail(what + " has strides, which elements below 8 bits cannot");
  const size_t element = type.dtype == ir::kBool ? 1 : type.dtype.bits / 8;
  std::vector<uint8_t> bytes(size);
  std::vector<int64_t> index(type.shape.size());
  for (size_t at = 0; at < size; at += element) {
    int64_t from = 0;
    for (size_t d = 0; d < index.size(); ++d) from += index[d] * tensor.strides[d];
    std::memcpy(&bytes[at], data + from * static_cast<int64_t>(element), element);
    for (size_t d = index.size(); d-- > 0;) {
      if (++index[d] < type.shape[d]) break;
      index[d] = 0;
    }
  }
  return bytes;
}

ir::ConstantRef read_binding(const std::string& name, const DLTensor* tensor) {
  const std::string what = "binding '" + name + "'";
  if (tensor == nullptr || tensor->data == nullptr) fail(what + " has no data");
  if (tensor->device.device_type != kDLCPU) fail(what + " is not in CPU memory");
  ir::TensorType type = read_type(what, tensor->dtype, tensor->ndim, tensor->shape);
  std::vector<uint8_t> bytes = packed_bytes(what, *tensor, type);
  return std::make_shared<const ir::Constant>(std::move(type), std::move(bytes));
}

void read_import_options(const qplan_pack_options& options, ImportOptions* result) {
  if (options.num_bindings > 0 && options.bindings == nullptr) fail("bindings is NULL");
  for (uint32_t i = 0; i < options.num_bindings; ++i) {
    const qplan_named_tensor& binding = options.bindings[i];
    if (binding.name == nullptr) fail(cat("binding ", i, " has no name"));
    if (!result->bindings.emplace(binding.name, read_binding(binding.name, binding.tensor)).second) {
      fail(cat("'", binding.name, "' is bound twice"));
    }
  }
  if (options.num_input_types > 0 && options.input_types == nullptr) fail("input_types is NULL");
  for (uint32_t i = 0; i < options.num_input_types; ++i) {
    const qplan_named_type& input = options.input_types[i];
    if (input.name == nullptr) fail(cat("input type ", i, " has no name"));
    const std::string what = cat("type of '", input.name, "'");
    const ir::TensorType type = read_type(what, input.dtype, input.ndim, input.shape);
    if (!result->input_types.emplace(input.name, type).second) fail(what + " is given twice");
  }
  if (options.synthesize_constants != 0) result->synthesize_constants = options.synthesize_seed;
}

void read_functions(const qplan_pack_options& options, PackOptions* result) {
  if (options.log != nullptr) {
    result->log = [options](uint32_t level, const std::string& text) {
      if (level <= options.log_level) options.log(options.user, level, text.c_str());
    };
  }
  if (options.dump != nullptr) {
    result->dump = [options](std::string_view text) { options.dump(options.user, text.data(), text.size()); };
  }
  if (options.progress != nullptr) {
    result->progress = [options](const char* stage, uint32_t done, uint32_t total) {
      options.progress(options.user, stage, done, total);
    };
  }
}

}  // namespace

qplan_pack_options whole_options(const qplan_pack_options* options) {
  qplan_pack_options whole = {};
  if (options != nullptr) std::memcpy(&whole, options, std::min<size_t>(options->struct_size, sizeof(whole)));
  return whole;
}

PackOptions read_options(const qplan_pack_options& options) {
  PackOptions result;
  if (options.target != nullptr) result.target = options.target;
  result.strip_names = options.strip_names != 0;
  result.planner_iterations = options.planner_budget;
  result.dump_after = text_of(options.dump_after);
  result.contract = text_of(options.contract);
  result.io = text_of(options.io);
  result.io_layout = text_of(options.io_layout);
  result.keep_float = options.keep_float != 0;
  if (options.num_skip > 0 && options.skip == nullptr) fail("skip is NULL");
  for (uint32_t i = 0; i < options.num_skip; ++i) result.skip.push_back(text_of(options.skip[i]));
  result.why_not = text_of(options.why_not);
  result.canonical_body = options.canonical_body != 0;
  read_import_options(options, &result.import);
  read_functions(options, &result);
  return result;
}

}  // namespace qplan
