// qplan npu info: what a driver's device can do.
#include <cstdio>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "src/base/listing.h"
#include "tools/error.h"
#include "tools/files.h"
#include "tools/model_options.h"
#include "tools/npu.h"
#include "tools/words.h"

namespace qplan::tools {
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
      ->type_name("N");
  command->add_flag("--json", options->json, "As JSON");
  command->footer(
      "Examples:\n"
      "  qplan npu info\n"
      "  qplan npu info --driver sim,sram=quarter\n"
      "  qplan npu info --driver ./libmy_driver.so --json");
  command->callback([options]() { info(*options); });
}

}  // namespace qplan::tools
