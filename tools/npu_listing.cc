// What is known of devices and of their programs before anything runs: the operator lists of programs, and
// `qplan npu info`, which shows what a driver's device can do.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "qplan/npu_oplist.h"
#include "src/base/listing.h"
#include "tools/command.h"
#include "tools/files.h"
#include "tools/model_options.h"
#include "tools/npu.h"
#include "tools/number_option.h"
#include "tools/tensor.h"

namespace qplan::tools {
namespace {

// An operator list (qplan/npu_oplist.h) for people.
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

// ---- qplan npu info

namespace {

using Json = nlohmann::ordered_json;

struct InfoOptions {
  NpuOptions npu;
  uint32_t index = 0;
  bool json = false;
};

template <size_t N>
std::string field(const char (&text)[N]) {
  return one_line(std::string(text, strnlen(text, N)));
}

template <typename T, size_t N>
std::vector<T> until_zero(const T (&values)[N]) {
  std::vector<T> list;
  for (const T value : values) {
    if (value == 0) break;
    list.push_back(value);
  }
  return list;
}

std::vector<std::string> names_of(uint32_t bits, const std::vector<std::string>& names) {
  std::vector<std::string> set;
  for (uint32_t i = 0; i < names.size(); ++i) {
    if ((bits >> i & 1) != 0) set.push_back(names[i].empty() ? "?" : names[i]);
  }
  return set;
}

Json capabilities_json(const qplan_npu_driver& driver, uint32_t devices, const qplan_npu_capabilities& c) {
  const std::vector<std::string> contracts = {"TFL2", "TFL1", "F32E", "", "", "ACC32"};
  char hash[20];
  std::snprintf(hash, sizeof hash, "%016llx", static_cast<unsigned long long>(c.hash));
  Json json;
  json["driver"] = driver.name;
  json["abi"] = std::to_string(driver.abi >> 16) + "." + std::to_string(driver.abi & 0xffff);
  json["devices"] = devices;
  json["vendor"] = field(c.vendor);
  json["target"] = field(c.target);
  json["hw_revision"] = field(c.hw_revision);
  json["driver_revision"] = field(c.driver_revision);
  json["capabilities_hash"] = hash;
  json["blob_formats"] = Json::array();
  for (const uint32_t format : until_zero(c.blob_formats))
    json["blob_formats"].push_back(four_characters(format));
  json["onchip_bytes"] = until_zero(c.onchip_bytes);
  json["buffer_alignment"] = c.buffer_alignment;
  json["line_alignment"] = c.line_alignment;
  json["channel_pack"] = c.channel_pack;
  json["max_binds"] = c.max_binds;
  json["max_queue"] = c.max_queue;
  json["engines"] = c.num_engines;
  json["memory_kinds"] = names_of(c.memory_kinds, {"coherent", "cached", "device-local"});
  json["address_bits"] = c.address_bits;
  json["max_buffer_bytes"] = c.max_buffer_bytes;
  json["contracts"] = names_of(c.contracts, contracts);
  json["contracts_per_channel"] = names_of(c.contracts_per_channel, contracts);
  json["zero_points"] = Json{{"input", c.input_zero_point != 0}, {"output", c.output_zero_point != 0}};
  json["pad_value"] = c.pad_value != 0;
  json["can"] = names_of(c.flags, {"async", "cancel", "count", "multiply", "import", "soft-reset"});
  json["clock_khz"] = c.clock_khz;
  return json;
}

void info(const InfoOptions& options) {
  const std::string name = driver_name(options.npu);
  if (name == "none")
    throw UsageError("--driver: none has no capabilities, expected sim or a shared library");
  const Driver driver(name);
  uint32_t devices = 0;
  const qplan_npu_status counted = driver.get()->enumerate(nullptr, &devices);
  if (counted < 0)
    throw Failure("driver '" + name + "': cannot count its devices: error " + std::to_string(counted));
  qplan_host_device device{};
  device.struct_size = sizeof device;
  qplan_error error = make_error();
  qplan_platform platform{};
  platform.struct_size = sizeof platform;
  platform.now_ns = qplan_host_now_ns;
  check(qplan_host_device_open(driver.get(), options.index, driver_options(options.npu).c_str(), &platform,
                               &device, &error),
        error, "");
  qplan_npu_capabilities capabilities{};
  capabilities.struct_size = sizeof capabilities;
  const qplan_npu_status status = device.driver->capabilities(device.device, &capabilities);
  qplan_host_device_close(&device);
  if (status < 0)
    throw Failure("driver '" + name + "': cannot state its capabilities: error " + std::to_string(status));
  const Json json = capabilities_json(*driver.get(), devices, capabilities);
  if (options.json) {
    print(json_page(json));
    return;
  }
  std::string text;
  for (const auto& [key, value] : json.items()) {
    std::string line;
    if (value.is_array()) {
      for (const Json& item : value) {
        line += (line.empty() ? "" : ", ") + (item.is_string() ? item.get<std::string>() : json_text(item));
      }
    } else {
      line = value.is_string() ? value.get<std::string>() : json_text(value);
    }
    text += key + std::string(key.size() < 24 ? 24 - key.size() : 1, ' ') + line + "\n";
  }
  print(text);
}

}  // namespace

void add_npu_info_command(CLI::App& npu) {
  auto options = std::make_shared<InfoOptions>();
  CLI::App* command = npu.add_subcommand("info", "Show what a driver's device can do");
  add_driver_options(*command, options->npu);
  command->add_option("--device", options->index, "Which of the driver's devices (default 0)")
      ->type_name("N")
      ->transform(whole_number());
  command->add_flag("--json", options->json, "As JSON");
  command->footer(
      "Examples:\n"
      "  qplan npu info\n"
      "  qplan npu info --driver sim,sram=quarter\n"
      "  qplan npu info --driver ./libmy_driver.so --json");
  command->callback([options]() { info(*options); });
}

}  // namespace qplan::tools
