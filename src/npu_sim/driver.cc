// The driver ABI over the simulated devices of all kinds: what opens them, handles, struct sizes, exceptions.
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "qplan/npu_sim.h"
#include "src/ethosu/sim/device.h"
#include "src/npu_sim/handles.h"
#include "src/vta/sim/device.h"
#include "src/vta/sim/options.h"

namespace qplan::sim {
namespace {

constexpr uint32_t kNumDevices = 2;

using Devices = Handles<Device>;

// The kind of a simulated device, by the text that opens one.
struct OpenText {
  Options options;
  const ethosu::Config* ethosu = nullptr;  // device=ethos-u55-128 and its like; null: VTA
};

// False with *error set to one line.
bool read_open_text(std::string_view text, OpenText* opened, std::string* error) {
  std::string rest;
  for (const std::string_view part : split(text, ',')) {
    if (part.substr(0, 7) != "device=") {
      rest += (rest.empty() ? "" : ",") + std::string(part);
      continue;
    }
    const std::string name(part.substr(7));
    opened->ethosu = ethosu::find_config(name.c_str());
    if (opened->ethosu == nullptr && name != "vta") {
      *error =
          "options: '" + std::string(part) + "': known are vta and Arm's configurations, like ethos-u55-128";
      return false;
    }
  }
  if (!parse_options(rest, &opened->options, error)) return false;
  if (opened->ethosu == nullptr || opened->options.trace.empty()) return true;
  *error = "options: 'trace' is VTA's; Ethos-U has none";
  return false;
}

std::shared_ptr<Device> make_device(const qplan_device_hooks* hooks, OpenText opened) {
  if (opened.ethosu == nullptr) return std::make_shared<Device>(hooks, std::move(opened.options));
  return std::make_shared<ethosu::sim::EthosuDevice>(hooks, std::move(opened.options), *opened.ethosu);
}

template <typename Call>
qplan_npu_status on_device(qplan_npu_device handle, Call call) {
  return Devices::on_device(handle, call);
}

qplan_npu_status sim_enumerate(const qplan_device_hooks*, uint32_t* count) {
  if (count == nullptr) return QPLAN_NPU_E_ARGUMENT;
  *count = kNumDevices;
  return QPLAN_NPU_OK;
}

qplan_npu_status sim_open(const qplan_device_hooks* hooks, uint32_t index, const char* text,
                          qplan_npu_device* handle, qplan_npu_reason* why) {
  if (handle == nullptr || (hooks != nullptr && !can_fill(hooks))) return QPLAN_NPU_E_ARGUMENT;
  try {
    OpenText opened;
    std::string error;
    if (!read_open_text(text == nullptr ? "" : text, &opened, &error)) {
      give_reason(why, "sim: " + error);
      return QPLAN_NPU_E_ARGUMENT;
    }
    if (index >= kNumDevices || find_fault(opened.options.faults, FaultPlace::kOpen, 0) != nullptr) {
      give_reason(why, "sim: there is no device " + std::to_string(index), kNumDevices, index);
      return QPLAN_NPU_E_ABSENT;
    }
    *handle = Devices::all().add(make_device(hooks, std::move(opened)));
    return QPLAN_NPU_OK;
  } catch (...) {
    return QPLAN_NPU_E_MEMORY;
  }
}

qplan_npu_status sim_close(qplan_npu_device handle) {
  try {
    const std::shared_ptr<Device> device = Devices::all().remove(handle);
    return device == nullptr ? QPLAN_NPU_E_ARGUMENT : device->close();
  } catch (...) {
    return QPLAN_NPU_E_MEMORY;
  }
}

qplan_npu_status sim_capabilities(qplan_npu_device handle, qplan_npu_capabilities* to) {
  if (!can_fill(to)) return QPLAN_NPU_E_ARGUMENT;
  return on_device(handle, [&](Device& device) { return device.capabilities(to); });
}

qplan_npu_status sim_supported(qplan_npu_device handle, const qplan_npu_op* op, qplan_npu_reason* reasons,
                               uint32_t* num_reasons) {
  qplan_npu_op all;
  if (!copy_in(op, &all) || num_reasons == nullptr) return QPLAN_NPU_E_ARGUMENT;
  try {
    std::shared_ptr<Device> device;
    if (handle != 0 && (device = Devices::all().find(handle)) == nullptr) return QPLAN_NPU_E_ARGUMENT;
    const std::vector<qplan_npu_reason> found =
        device == nullptr ? why_unsupported(vta::kDefaultConfig, all) : device->why_unsupported(all);
    const uint32_t room = reasons == nullptr ? 0 : *num_reasons;
    for (uint32_t i = 0; i < room && i < found.size(); ++i) reasons[i] = found[i];
    *num_reasons = static_cast<uint32_t>(found.size());
    return found.empty() ? QPLAN_NPU_OK : QPLAN_NPU_E_UNSUPPORTED;
  } catch (...) {
    return QPLAN_NPU_E_MEMORY;
  }
}

qplan_npu_status sim_power(qplan_npu_device handle, int on) {
  return on_device(handle, [&](Device& device) { return device.power(on); });
}

qplan_npu_status sim_reset(qplan_npu_device handle) {
  return on_device(handle, [](Device& device) { return device.reset(); });
}

qplan_npu_status sim_requirements(qplan_npu_device handle, const qplan_npu_buffer_request* request,
                                  qplan_npu_layout* layout) {
  qplan_npu_buffer_request all;
  if (!copy_in(request, &all) || !can_fill(layout)) return QPLAN_NPU_E_ARGUMENT;
  return on_device(handle, [&](Device& device) { return device.requirements(all, layout); });
}

qplan_npu_status sim_alloc(qplan_npu_device handle, const qplan_npu_buffer_request* request,
                           qplan_npu_buffer* buffer) {
  qplan_npu_buffer_request all;
  if (!copy_in(request, &all) || buffer == nullptr) return QPLAN_NPU_E_ARGUMENT;
  return on_device(handle, [&](Device& device) { return device.alloc(all, buffer); });
}

qplan_npu_status sim_import(qplan_npu_device handle, const qplan_npu_buffer_request* request, uint32_t kind,
                            uint64_t value, uint64_t offset, qplan_npu_buffer* buffer) {
  qplan_npu_buffer_request all;
  if (!copy_in(request, &all) || buffer == nullptr) return QPLAN_NPU_E_ARGUMENT;
  if (kind != QPLAN_NPU_IMPORT_POINTER) return QPLAN_NPU_E_UNSUPPORTED;
  auto* memory = reinterpret_cast<uint8_t*>(static_cast<uintptr_t>(value));
  if (memory != nullptr) memory += offset;
  return on_device(handle, [&](Device& device) { return device.import_memory(all, memory, buffer); });
}

qplan_npu_status sim_release(qplan_npu_device handle, qplan_npu_buffer buffer) {
  return on_device(handle, [&](Device& device) { return device.release(buffer); });
}

qplan_npu_status sim_layout(qplan_npu_device handle, qplan_npu_buffer buffer, qplan_npu_layout* layout) {
  if (!can_fill(layout)) return QPLAN_NPU_E_ARGUMENT;
  return on_device(handle, [&](Device& device) { return device.layout(buffer, layout); });
}

qplan_npu_status sim_map(qplan_npu_device handle, qplan_npu_buffer buffer, uint32_t access, void** memory) {
  if (memory == nullptr) return QPLAN_NPU_E_ARGUMENT;
  return on_device(handle, [&](Device& device) { return device.map(buffer, access, memory); });
}

qplan_npu_status sim_unmap(qplan_npu_device handle, qplan_npu_buffer buffer, uint32_t access) {
  return on_device(handle, [&](Device& device) { return device.unmap(buffer, access); });
}

qplan_npu_status sim_flush(qplan_npu_device handle, qplan_npu_buffer buffer, uint64_t offset,
                           uint64_t bytes) {
  return on_device(handle, [&](Device& device) { return device.maintain(buffer, offset, bytes, true); });
}

qplan_npu_status sim_invalidate(qplan_npu_device handle, qplan_npu_buffer buffer, uint64_t offset,
                                uint64_t bytes) {
  return on_device(handle, [&](Device& device) { return device.maintain(buffer, offset, bytes, false); });
}

qplan_npu_status sim_load(qplan_npu_device handle, uint32_t format, const void* blob, uint64_t bytes,
                          qplan_npu_program* program, qplan_npu_reason* why) {
  if (program == nullptr || (blob == nullptr && bytes > 0)) return QPLAN_NPU_E_ARGUMENT;
  return on_device(handle, [&](Device& device) -> qplan_npu_status {
    const uint32_t takes = device.blob_format();
    if (format == takes) return device.load(blob, bytes, program, why);
    const auto name = [](uint32_t fourcc) {
      std::string text;
      for (uint32_t b = 0; b < 4; ++b) text += static_cast<char>(fourcc >> (8 * b) & 0xff);
      return text;
    };
    give_reason(why, "sim: takes blobs of format '" + name(takes) + "' only", takes, format);
    return QPLAN_NPU_E_UNSUPPORTED;
  });
}

qplan_npu_status sim_program_info(qplan_npu_device handle, qplan_npu_program program,
                                  qplan_npu_program_info* info) {
  if (!can_fill(info)) return QPLAN_NPU_E_ARGUMENT;
  return on_device(handle, [&](Device& device) { return device.program_info(program, info); });
}

qplan_npu_status sim_region_info(qplan_npu_device handle, qplan_npu_program program, uint32_t slot,
                                 qplan_npu_region_info* info) {
  if (!can_fill(info)) return QPLAN_NPU_E_ARGUMENT;
  return on_device(handle, [&](Device& device) { return device.region_info(program, slot, info); });
}

qplan_npu_status sim_unload(qplan_npu_device handle, qplan_npu_program program) {
  return on_device(handle, [&](Device& device) { return device.unload(program); });
}

qplan_npu_status sim_submit(qplan_npu_device handle, const qplan_npu_submit* submit, qplan_npu_job* job,
                            qplan_npu_reason* why) {
  qplan_npu_submit all;
  if (!copy_in(submit, &all) || job == nullptr || (all.num_binds > 0 && all.binds == nullptr) ||
      (all.num_after > 0 && all.after == nullptr)) {
    return QPLAN_NPU_E_ARGUMENT;
  }
  return on_device(handle, [&](Device& device) { return device.submit(all, job, why); });
}

qplan_npu_status sim_wait(qplan_npu_device handle, qplan_npu_job job, uint64_t timeout_ns,
                          qplan_npu_report* report) {
  if (report != nullptr && !can_fill(report)) return QPLAN_NPU_E_ARGUMENT;
  return on_device(handle, [&](Device& device) { return device.wait(job, timeout_ns, report); });
}

qplan_npu_status sim_cancel(qplan_npu_device handle, qplan_npu_job job) {
  return on_device(handle, [&](Device& device) { return device.cancel(job); });
}

qplan_npu_status sim_disassemble(uint32_t, const void* blob, uint64_t bytes, const char* options,
                                 void (*line)(void* user, const char* text), void* user,
                                 qplan_npu_reason* why) {
  return qplan_npu_sim_disassemble(blob, bytes, options, line, user, why);
}

qplan_npu_status sim_counters(qplan_npu_device handle, const uint32_t* ids, uint64_t* values,
                              uint32_t count) {
  if (count > 0 && (ids == nullptr || values == nullptr)) return QPLAN_NPU_E_ARGUMENT;
  return on_device(handle, [&](Device& device) { return device.counters(ids, values, count); });
}

constexpr qplan_npu_driver kDriver = {sizeof(qplan_npu_driver),
                                      QPLAN_NPU_ABI,
                                      "sim",
                                      sim_enumerate,
                                      sim_open,
                                      sim_close,
                                      sim_capabilities,
                                      sim_supported,
                                      sim_power,
                                      sim_reset,
                                      sim_requirements,
                                      sim_alloc,
                                      sim_import,
                                      sim_release,
                                      sim_layout,
                                      sim_map,
                                      sim_unmap,
                                      sim_flush,
                                      sim_invalidate,
                                      sim_load,
                                      sim_program_info,
                                      sim_region_info,
                                      sim_unload,
                                      sim_submit,
                                      sim_wait,
                                      sim_cancel,
                                      sim_counters,
                                      nullptr,
                                      sim_disassemble};

}  // namespace
}  // namespace qplan::sim

const qplan_npu_driver* qplan_npu_sim_driver(uint32_t abi) {
  return abi >> 16 == QPLAN_NPU_ABI >> 16 ? &qplan::sim::kDriver : nullptr;
}

qplan_npu_status qplan_npu_sim_disassemble(const void* blob, uint64_t bytes, const char* text,
                                           void (*line)(void* user, const char* text), void* user,
                                           qplan_npu_reason* why) {
  using namespace qplan::sim;
  if (line == nullptr || (blob == nullptr && bytes > 0)) return QPLAN_NPU_E_ARGUMENT;
  try {
    OpenText opened;
    std::string error;
    if (!read_open_text(text == nullptr ? "" : text, &opened, &error)) {
      give_reason(why, error);
      return QPLAN_NPU_E_ARGUMENT;
    }
    const auto write = [&](const std::string& of) { line(user, of.c_str()); };
    if (opened.ethosu != nullptr)
      return qplan::ethosu::sim::list_blob(*opened.ethosu, blob, bytes, write, why);
    return list_blob(opened.options, blob, bytes, write, why);
  } catch (...) {
    return QPLAN_NPU_E_MEMORY;
  }
}
