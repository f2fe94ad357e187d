// Buffers: requirements, mapping, import, release, and where memory comes from.
#include <cstring>

#include "tests/conformance/check.h"
#include "tests/conformance/device.h"

namespace qplan::conformance {
namespace {

void memory_requirements(const Subject& s) {
  Device device(s);
  const qplan_npu_driver& d = device.driver;
  int64_t shape[] = {1, 5, 7, 3};
  DLTensor tensor = {};
  tensor.device.device_type = kDLCPU;
  tensor.dtype = {kDLInt, 8, 1};
  tensor.ndim = 4;
  tensor.shape = shape;
  auto request = sized<qplan_npu_buffer_request>();
  request.usage = QPLAN_NPU_USE_INPUT;
  request.tensor = &tensor;
  auto wanted = sized<qplan_npu_layout>();
  require_ok(d.requirements(device.handle, &request, &wanted), "requirements");
  require(wanted.alignment != 0 && (wanted.alignment & (wanted.alignment - 1)) == 0,
          "alignment is no power of two");
  require(wanted.alignment >= device.capabilities.buffer_alignment,
          "alignment is below that of the capabilities");
  require(wanted.num_strides == 4, "there is not a stride for each axis");
  int64_t last = 0;
  for (int axis = 0; axis < 4; ++axis) last += (shape[axis] - 1) * wanted.strides[axis];
  require(wanted.strides[3] >= 1 && last >= 5 * 7 * 3 - 1 && static_cast<uint64_t>(last) < wanted.bytes,
          "the strides do not hold the tensor within its bytes");
  require(wanted.device_address == 0, "there is a device address before there is a buffer");
  qplan_npu_buffer buffer = 0;
  require_ok(d.alloc(device.handle, &request, &buffer), "alloc");
  auto got = sized<qplan_npu_layout>();
  require_ok(d.layout(device.handle, buffer, &got), "layout");
  require(got.bytes >= wanted.bytes && std::memcmp(got.strides, wanted.strides, 4 * sizeof(int64_t)) == 0,
          "the buffer is not what requirements said");
  require(got.device_address % wanted.alignment == 0, "the device address is not aligned");
  request.tensor = nullptr;
  request.min_bytes = 1000;
  require_ok(d.requirements(device.handle, &request, &wanted), "requirements of bytes alone");
  require(wanted.bytes >= 1000 && wanted.num_strides == 0, "bytes alone gave fewer bytes, or strides");
  request.alignment = 48;
  require_error(d.requirements(device.handle, &request, &wanted), "requirements with alignment 48");
  request.alignment = 0;
  request.tensor = &tensor;
  tensor.ndim = 9;
  require_error(d.requirements(device.handle, &request, &wanted), "requirements of a tensor of 9 axes");
  tensor.ndim = 4;
  shape[1] = -5;
  require_error(d.requirements(device.handle, &request, &wanted), "requirements of a negative extent");
  shape[1] = int64_t{1} << 62;
  shape[2] = int64_t{1} << 62;
  require_error(d.requirements(device.handle, &request, &wanted), "requirements of 2^124 elements");
  device.close();
}

void memory_too_large(const Subject& s) {
  Device device(s);
  auto request = sized<qplan_npu_buffer_request>();
  request.usage = QPLAN_NPU_USE_INPUT;
  for (const uint64_t bytes : {device.capabilities.max_buffer_bytes + 1, UINT64_MAX - 63, UINT64_MAX}) {
    request.min_bytes = bytes;
    qplan_npu_buffer buffer = 0;
    require_error(device.driver.alloc(device.handle, &request, &buffer),
                  "alloc of " + std::to_string(bytes) + " bytes");
  }
  device.close();
}

void memory_map(const Subject& s) {
  Device device(s);
  const qplan_npu_driver& d = device.driver;
  const qplan_npu_buffer buffer = device.alloc(QPLAN_NPU_USE_INPUT | QPLAN_NPU_USE_OUTPUT, 1000);
  std::vector<uint8_t> bytes(1000);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i * 7 + 1);
  device.write(buffer, bytes);
  require(device.read(buffer, 1000) == bytes, "what was written is not what is read");
  void *first = nullptr, *second = nullptr;
  require_ok(d.map(device.handle, buffer, QPLAN_NPU_READ | QPLAN_NPU_WRITE, &first), "map");
  require_ok(d.unmap(device.handle, buffer, QPLAN_NPU_READ | QPLAN_NPU_WRITE), "unmap");
  require_ok(d.map(device.handle, buffer, QPLAN_NPU_READ, &second), "map");
  require(first == second, "the pointer changes from map to map");
  require_status(d.map(device.handle, buffer, 0, &first), QPLAN_NPU_E_ARGUMENT, "map for no access");
  require_status(d.map(device.handle, buffer, 0x80, &first), QPLAN_NPU_E_ARGUMENT,
                 "map for an unknown access");
  require_status(d.map(device.handle, buffer, QPLAN_NPU_READ, nullptr), QPLAN_NPU_E_ARGUMENT,
                 "map without a place");
  device.close();
}

void memory_ranges(const Subject& s) {
  Device device(s);
  const qplan_npu_driver& d = device.driver;
  const qplan_npu_buffer buffer = device.alloc(QPLAN_NPU_USE_INPUT, 1000);
  auto layout = sized<qplan_npu_layout>();
  require_ok(d.layout(device.handle, buffer, &layout), "layout");
  for (const auto& [name, function] : {std::pair{"flush", d.flush}, {"invalidate", d.invalidate}}) {
    require_ok(function(device.handle, buffer, 0, layout.bytes), std::string(name) + " of the whole buffer");
    require_ok(function(device.handle, buffer, 3, 10), std::string(name) + " of some bytes");
    require_ok(function(device.handle, buffer, layout.bytes, 0), std::string(name) + " of no bytes");
    require_error(function(device.handle, buffer, 0, layout.bytes + 1),
                  std::string(name) + " beyond the end");
    require_error(function(device.handle, buffer, layout.bytes + 1, 0),
                  std::string(name) + " behind the end");
    require_error(function(device.handle, buffer, 8, UINT64_MAX - 4),
                  std::string(name) + " with a sum that wraps");
  }
  device.close();
}

void memory_import(const Subject& s) {
  Device device(s);
  if ((device.capabilities.flags & QPLAN_NPU_CAN_IMPORT) == 0)
    throw Skipped("the device does not import memory");
  const qplan_npu_driver& d = device.driver;
  const Workload workload = device.make(Size::kSmall, 5);
  const Loaded loaded(device, workload);
  std::vector<qplan_npu_bind> binds = loaded.binds();
  std::vector<std::vector<uint8_t>> memories;
  constexpr size_t kRoom = 4096;
  constexpr uint8_t kCanary = 0xc3;
  std::vector<uint8_t*> begins;
  for (size_t i = 0; i < binds.size(); ++i) {
    const Slot& slot = workload.slots[i];
    memories.emplace_back(slot.bytes + 3 * kRoom, kCanary);
    auto at = reinterpret_cast<uintptr_t>(memories.back().data());
    at = (at + kRoom) / kRoom * kRoom;
    begins.push_back(reinterpret_cast<uint8_t*>(at));
    std::copy(slot.content.begin(), slot.content.end(), begins.back());
    auto request = sized<qplan_npu_buffer_request>();
    request.usage = slot.usage;
    request.min_bytes = slot.bytes;
    require_ok(
        d.import_memory(device.handle, &request, QPLAN_NPU_IMPORT_POINTER, at - 64, 64, &binds[i].buffer),
        "import_memory");
    require_ok(d.flush(device.handle, binds[i].buffer, 0, slot.bytes), "flush");
  }
  qplan_npu_submit submit = loaded.request();
  submit.binds = binds.data();
  qplan_npu_job job = 0;
  require_ok(d.submit(device.handle, &submit, &job, nullptr), "submit with imported memory");
  (void)loaded.must_wait(job);
  const size_t out = workload.output;
  require_ok(d.invalidate(device.handle, binds[out].buffer, 0, workload.slots[out].bytes), "invalidate");
  const std::vector<uint8_t> bytes(begins[out], begins[out] + workload.slots[out].bytes);
  const std::vector<uint8_t> result = workload.unpack(bytes);
  require(std::equal(workload.expected.begin(), workload.expected.end(), result.begin()),
          "the result does not stand in the imported memory");
  for (size_t i = 0; i < binds.size(); ++i) {
    require(*(begins[i] - 1) == kCanary, "a byte before imported memory was written");
    require(begins[i][workload.slots[i].bytes] == kCanary, "a byte behind imported memory was written");
    require_ok(d.release(device.handle, binds[i].buffer), "release");
  }
  auto request = sized<qplan_npu_buffer_request>();
  request.min_bytes = 64;
  qplan_npu_buffer buffer = 0;
  require_error(d.import_memory(device.handle, &request, 77, 1, 0, &buffer),
                "import_memory of an unknown kind");
  require_error(d.import_memory(device.handle, &request, QPLAN_NPU_IMPORT_POINTER, 0, 0, &buffer),
                "import_memory of NULL");
  device.close();
}

void memory_hooks(const Subject& s) {
  Device device(s);
  {
    const Workload workload = device.make(Size::kSmall, 6);
    const uint64_t before = device.hooks.num_allocs();
    const Loaded loaded(device, workload);
    require(device.hooks.num_allocs() > before, "buffers and programs do not come from hooks.alloc");
    loaded.must_run();
    require(device.hooks.damage().empty(), device.hooks.damage());
    const size_t live = device.hooks.num_live();
    loaded.release();
    require(device.hooks.num_live() < live, "release and unload gave no memory back");
    const Loaded stays(device, workload);
  }
  device.close();  // what stays goes back here
}

void memory_none_left(const Subject& s) {
  for (uint64_t allowed = 0; allowed < 6; ++allowed) {
    Device device(s);
    const Workload workload = device.make(Size::kSmall, 7);
    device.hooks.fail_from(device.hooks.num_allocs() + allowed);
    qplan_npu_program program = 0;
    qplan_npu_status status = device.load(workload.format, workload.blob, &program);
    auto request = sized<qplan_npu_buffer_request>();
    request.usage = QPLAN_NPU_USE_INPUT;
    request.min_bytes = 256;
    for (int i = 0; i < 8 && status == QPLAN_NPU_OK; ++i) {
      qplan_npu_buffer buffer = 0;
      status = device.driver.alloc(device.handle, &request, &buffer);
    }
    require_status(status, QPLAN_NPU_E_MEMORY, "load or alloc when hooks.alloc gives nothing");
    device.close();
  }
}

// QPLAN_NPU_OK, and then the layout has the class; or the status of alloc.
qplan_npu_status alloc_in(const Device& device, uint32_t memory_class, qplan_npu_buffer* buffer) {
  auto request = sized<qplan_npu_buffer_request>();
  request.usage = QPLAN_NPU_USE_SCRATCH;
  request.min_bytes = 1000;
  request.memory_class = memory_class;
  const qplan_npu_status status = device.driver.alloc(device.handle, &request, buffer);
  if (status != QPLAN_NPU_OK) return status;
  auto layout = sized<qplan_npu_layout>();
  require_ok(device.driver.layout(device.handle, *buffer, &layout), "layout");
  require(layout.memory_class == memory_class, "a buffer asked in class " + std::to_string(memory_class) +
                                                   " has a layout that says class " +
                                                   std::to_string(layout.memory_class));
  return status;
}

void memory_classes(const Subject& s) {
  Device device(s);
  const uint32_t known = device.capabilities.memory_classes;
  if (known == 0) throw Skipped("the device states no classes of memory");
  for (uint32_t c = 1; c < 32; ++c) {
    const std::string asked = "alloc in class " + std::to_string(c);
    qplan_npu_buffer buffer = 0;
    if ((known >> c & 1) == 0) {
      require_error(alloc_in(device, c, &buffer), asked + ", which capabilities do not name,");
      continue;
    }
    require_ok(alloc_in(device, c, &buffer), asked);
    require(device.hooks.num_live(c) > 0,
            asked + ": the memory does not come from hooks.alloc_class of this class");
    require_ok(device.driver.release(device.handle, buffer), "release");
    require(device.hooks.num_live(c) == 0, asked + ": release did not give the memory back");
    device.hooks.take_away(c);
    const qplan_npu_status status = alloc_in(device, c, &buffer);
    require(
        QPLAN_NPU_CLASS(status) == QPLAN_NPU_CLASS_CPU_NOW,
        asked + " without such memory returned " + status_text(status) + ", expected E_ONCHIP or E_MEMORY");
    require_ok(alloc_in(device, QPLAN_NPU_MEMORY_CLASS_ANY, &buffer), "alloc in any class after it");
    require_ok(device.driver.release(device.handle, buffer), "release");
    device.hooks.take_away(QPLAN_NPU_MEMORY_CLASS_ANY);
  }
  device.close();
}

void memory_class_of_programs(const Subject& s) {
  Device device(s);
  const Workload workload = device.make(Size::kSmall, 3);
  const Loaded loaded(device, workload);
  auto program = sized<qplan_npu_program_info>();
  require_ok(device.driver.program_info(device.handle, loaded.program, &program), "program_info");
  require(program.memory_class < QPLAN_NPU_NUM_MEMORY_CLASSES, "a program wants memory of an unknown class");
  for (uint32_t slot = 0; slot < program.num_regions; ++slot) {
    auto region = sized<qplan_npu_region_info>();
    require_ok(device.driver.region_info(device.handle, loaded.program, slot, &region), "region_info");
    const uint32_t most = region.is_bound == 0 ? QPLAN_NPU_MEMORY_CLASS_FLASH : QPLAN_NPU_MEMORY_CLASS_DRAM;
    require(region.memory_class <= most, "slot " + std::to_string(slot) + " wants memory of class " +
                                             std::to_string(region.memory_class) + ", expected at most " +
                                             std::to_string(most));
  }
  loaded.release();
  device.close();
}

void memory_release_busy(const Subject& s) {
  Device device(s);
  const Workload workload = device.make(Size::kLong, 1);
  const Loaded loaded(device, workload);
  const qplan_npu_job job = loaded.must_submit();
  const qplan_npu_status released = device.driver.release(device.handle, loaded.binds()[0].buffer);
  const qplan_npu_status unloaded = device.driver.unload(device.handle, loaded.program);
  const qplan_npu_status poll = device.driver.wait(device.handle, job, 0, nullptr);
  if (poll != QPLAN_NPU_PENDING) throw Skipped("the longest job was over before it could be looked at");
  require_status(released, QPLAN_NPU_E_BUSY, "release of a buffer in use");
  require_status(unloaded, QPLAN_NPU_E_BUSY, "unload of a program in use");
  (void)loaded.must_wait(job);
  loaded.require_result();
  loaded.release();
  device.close();
}

}  // namespace

std::vector<Check> memory_checks() {
  return {
      {"memory.requirements", "requirements tell bytes, strides and alignment, and alloc keeps to them",
       memory_requirements},
      {"memory.too_large", "a buffer beyond max_buffer_bytes is an error", memory_too_large},
      {"memory.map", "map gives one pointer for the life of a buffer, and contents survive", memory_map},
      {"memory.ranges", "flush and invalidate take ranges of the buffer and no others", memory_ranges},
      {"memory.import", "jobs work in imported memory, in place and within it", memory_import},
      {"memory.hooks", "memory comes from hooks.alloc, is kept within, and goes back", memory_hooks},
      {"memory.none_left", "without memory load and alloc are E_MEMORY, and nothing leaks", memory_none_left},
      {"memory.classes", "a buffer is in the class of memory that is asked for, or alloc says that it is not",
       memory_classes},
      {"memory.class_of_programs", "programs want their slots in classes that this ABI knows",
       memory_class_of_programs},
      {"memory.release_busy", "what a job uses is not released or unloaded: E_BUSY", memory_release_busy},
  };
}

}  // namespace qplan::conformance
