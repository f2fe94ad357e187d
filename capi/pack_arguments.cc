#include "capi/pack_arguments.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "format/plan_view.h"
#include "src/base/text.h"
#include "src/packer/error.h"
#include "src/packer/ir/cat.h"
#include "src/packer/ir/types.h"

namespace qplan {
namespace {

constexpr char kWhere[] = "pack options: ";

[[noreturn]] void fail(const std::string& text) { throw PackError(QPLAN_INVALID_ARGUMENT, kWhere + text); }

std::vector<std::string> read_names(const char* what, const char* const* names, uint32_t count) {
  if (count > 0 && names == nullptr) fail(cat(what, " is NULL"));
  std::vector<std::string> result;
  for (uint32_t i = 0; i < count; ++i) {
    if (names[i] == nullptr) fail(cat("name ", i, " of ", what, " is NULL"));
    result.emplace_back(names[i]);
  }
  return result;
}

void read_import_options(const qplan_pack_options& options, ImportOptions* result) {
  if (options.num_bindings > 0 && options.bindings == nullptr) fail("bindings is NULL");
  for (uint32_t i = 0; i < options.num_bindings; ++i) {
    const qplan_named_tensor& binding = options.bindings[i];
    if (binding.name == nullptr) fail(cat("binding ", i, " has no name"));
    if (!result->bindings
             .emplace(binding.name, read_tensor(cat(kWhere, "binding '", binding.name, "'"), binding.tensor))
             .second) {
      fail(cat("'", binding.name, "' is bound twice"));
    }
  }
  if (options.num_input_types > 0 && options.input_types == nullptr) fail("input_types is NULL");
  for (uint32_t i = 0; i < options.num_input_types; ++i) {
    const qplan_named_type& input = options.input_types[i];
    if (input.name == nullptr) fail(cat("input type ", i, " has no name"));
    const std::string what = cat("type of '", input.name, "'");
    const ir::TensorType type = read_type(kWhere + what, input.dtype, input.ndim, input.shape);
    if (!result->input_types.emplace(input.name, type).second) fail(what + " is given twice");
  }
  if (options.num_custom_operators > 0 && options.custom_operators == nullptr)
    fail("custom_operators is NULL");
  for (uint32_t i = 0; i < options.num_custom_operators; ++i) {
    const qplan_custom_operator* op = options.custom_operators[i];
    if (op == nullptr || op->struct_size < sizeof(*op) || op->name == nullptr || op->prepare == nullptr)
      fail(cat("custom operator ", i, " is NULL, or lacks its struct_size, name or prepare"));
    result->custom_operators.push_back(op);
  }
  if (options.synthesize_constants != 0) result->synthesize_constants = options.synthesize_seed;
  result->part.begin_at = read_names("begin_at", options.begin_at, options.num_begin_at);
  result->part.end_at = read_names("end_at", options.end_at, options.num_end_at);
}

void read_placement(const qplan_pack_options& options, PackOptions* result) {
  if (options.placement > QPLAN_PLACEMENT_STRICT) {
    fail(cat("placement ", options.placement, " is not one of QPLAN_PLACEMENT_*"));
  }
  result->strict_placement = options.placement == QPLAN_PLACEMENT_STRICT;
  if (options.num_pins > 0 && options.pins == nullptr) fail("pins is NULL");
  for (uint32_t i = 0; i < options.num_pins; ++i) result->pins.push_back(text_of(options.pins[i]));
  result->cost_gate = options.no_cost_gate == 0;
  result->fallback = options.no_fallback == 0;
  if (options.num_target_libs > 0 && options.target_libs == nullptr) fail("target_libs is NULL");
  for (uint32_t i = 0; i < options.num_target_libs; ++i) {
    result->target_libs.push_back(text_of(options.target_libs[i]));
  }
  if (options.target_file == nullptr) return;
  const MappedFile file(options.target_file);
  result->target_file = {options.target_file, {file.bytes().begin(), file.bytes().end()}};
}

void read_tuning(const qplan_pack_options& options, PackOptions* result) {
  if (options.tuning_file == nullptr) return;
  const MappedFile file(options.tuning_file);
  result->tuning = {options.tuning_file,
                    {file.bytes().begin(), file.bytes().end()},
                    options.tuning_threads == 0 ? 1 : options.tuning_threads};
}

void read_fuse(const qplan_pack_options& options, PackOptions* result) {
  switch (options.fuse) {
    case QPLAN_FUSE_AUTO:
      result->fuse = schedule::Fuse::kAuto;
      return;
    case QPLAN_FUSE_OFF:
      result->fuse = schedule::Fuse::kOff;
      return;
    case QPLAN_FUSE_ALL:
      result->fuse = schedule::Fuse::kAll;
      return;
    case QPLAN_FUSE_MEMORY:
      result->fuse = schedule::Fuse::kMemory;
      return;
    default:
      fail(cat("fuse ", options.fuse, ", expected QPLAN_FUSE_AUTO, _OFF, _ALL or _MEMORY"));
  }
}

void read_prefer(const qplan_pack_options& options, PackOptions* result) {
  switch (options.prefer) {
    case QPLAN_PREFER_DEFAULT:
      result->prefer = partition::Prefer::kDefault;
      return;
    case QPLAN_PREFER_NPU:
      result->prefer = partition::Prefer::kNpu;
      return;
    case QPLAN_PREFER_LATENCY:
      result->prefer = partition::Prefer::kLatency;
      return;
    case QPLAN_PREFER_ENERGY:
      result->prefer = partition::Prefer::kEnergy;
      return;
    default:
      fail(cat("prefer ", options.prefer, ", expected QPLAN_PREFER_DEFAULT, _NPU, _LATENCY or _ENERGY"));
  }
}

void read_functions(const qplan_pack_options& options, PackOptions* result) {
  if (options.log != nullptr) {
    result->log = [options](uint32_t level, const std::string& text) {
      if (level <= options.log_level) options.log(options.user, level, printable(text).c_str());
    };
  }
  if (options.dump != nullptr) {
    result->dump = [options](std::string_view text) { options.dump(options.user, text.data(), text.size()); };
  }
  if (options.summary != nullptr) {
    result->summary = [options](const std::string& text) { options.summary(options.user, text.c_str()); };
  }
  if (options.progress != nullptr) {
    result->progress = [options](const char* stage, uint32_t done, uint32_t total) {
      options.progress(options.user, stage, done, total);
    };
  }
  if (options.cancelled != nullptr) {
    result->cancelled = [options] { return options.cancelled(options.user) != 0; };
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
  read_placement(options, &result);
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
  if (options.num_passes > 0 && options.passes == nullptr) fail("passes is NULL");
  for (uint32_t i = 0; i < options.num_passes; ++i) {
    if (options.passes[i] == nullptr) fail(cat("pass ", i, " is NULL"));
    result.user_passes.push_back(read_user_pass(*options.passes[i]));
  }
  read_tuning(options, &result);
  read_fuse(options, &result);
  result.max_ram = options.max_ram;
  if (options.self_checks > format::kMaxSelfChecks)
    fail(cat("self_checks is ", options.self_checks, ", expected at most ", format::kMaxSelfChecks));
  result.self_checks = options.self_checks;
  read_prefer(options, &result);
  read_functions(options, &result);
  return result;
}

namespace {

// DLPack's code for booleans of a byte each; older dlpack.h lack its name.
constexpr uint8_t kDLBoolCode = 6;

[[noreturn]] void refuse(const std::string& text) { throw PackError(QPLAN_INVALID_ARGUMENT, text); }

// The elements in row-major order, whatever the strides.
std::vector<uint8_t> packed_bytes(const std::string& what, const DLTensor& tensor,
                                  const ir::TensorType& type) {
  const auto* data = static_cast<const uint8_t*>(tensor.data) + tensor.byte_offset;
  const auto size = static_cast<size_t>(type.size_bytes());
  if (tensor.strides == nullptr) return {data, data + size};
  if (type.dtype.bits < 8 && type.dtype != ir::kBool)
    refuse(what + " has strides, which elements below 8 bits cannot");
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

}  // namespace

ir::TensorType read_type(const std::string& what, DLDataType dtype, int32_t ndim, const int64_t* shape) {
  if (ndim < 0 || static_cast<size_t>(ndim) > ir::kMaxRank) {
    refuse(cat(what, " has rank ", ndim, ", expected 0 to ", ir::kMaxRank));
  }
  if (ndim > 0 && shape == nullptr) refuse(what + " has no shape");
  ir::TensorType type{{dtype.code, dtype.bits, dtype.lanes}, {}};
  if (dtype.code == kDLBoolCode && dtype.bits == 8) type.dtype = ir::kBool;
  if (ndim > 0) type.shape.assign(shape, shape + ndim);
  const std::string error = ir::type_error(type);
  if (!error.empty()) refuse(what + ": " + error);
  return type;
}

ir::ConstantRef read_tensor(const std::string& what, const DLTensor* tensor) {
  if (tensor == nullptr || tensor->data == nullptr) refuse(what + " has no data");
  if (tensor->device.device_type != kDLCPU) refuse(what + " is not in CPU memory");
  ir::TensorType type = read_type(what, tensor->dtype, tensor->ndim, tensor->shape);
  std::vector<uint8_t> bytes = packed_bytes(what, *tensor, type);
  if (type.dtype == ir::kBool) {
    for (uint8_t& byte : bytes) byte = byte != 0 ? 1 : 0;
  }
  return std::make_shared<const ir::Constant>(std::move(type), std::move(bytes));
}

}  // namespace qplan
