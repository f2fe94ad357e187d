// Versions, struct sizes, handles, capabilities, supported, power.
#include <algorithm>
#include <cstring>
#include <iterator>

#include "qplan/npu_oplist.h"
#include "src/packer/pipeline/pipeline.h"
#include "src/packer/target/external/external.h"
#include "tests/conformance/check.h"
#include "tests/conformance/device.h"

namespace qplan::conformance {
namespace {

// ---- entry: no device is opened

void entry_version(const Subject& s) {
  require(s.driver != nullptr, "the entry function gave nothing for ABI 1");
  require(s.driver->struct_size >= offsetof(qplan_npu_driver, counters) + sizeof(void*),
          "struct_size of the driver is " + std::to_string(s.driver->struct_size));
  require(s.driver->abi >> 16 == QPLAN_NPU_ABI >> 16,
          "the driver's major is " + std::to_string(s.driver->abi >> 16));
  require(s.driver->name != nullptr && s.driver->name[0] != '\0', "the driver has no name");
  require(s.entry(QPLAN_NPU_ABI + 0x00010000) == nullptr, "a caller of another major gets a driver");
  require(s.entry(0) == nullptr, "a caller of major 0 gets a driver");
  const qplan_npu_driver* newer = s.entry(QPLAN_NPU_ABI + 7);
  require(newer != nullptr, "a caller of a later minor gets no driver");
}

void entry_functions(const Subject& s) {
  const qplan_npu_driver& d = *s.driver;
  const bool all = d.enumerate && d.open && d.close && d.capabilities && d.supported && d.reset &&
                   d.requirements && d.alloc && d.import_memory && d.release && d.layout && d.map &&
                   d.unmap && d.flush && d.invalidate && d.load && d.program_info && d.region_info &&
                   d.unload && d.submit && d.wait && d.cancel;
  require(all, "a function that is not optional is NULL");
}

// ---- struct sizes: between canaries, first smaller, then larger than the struct is

template <typename T, typename Call>
void fill_with_size(const char* what, uint32_t size, Call call) {
  constexpr uint8_t kCanary = 0xc3;
  alignas(8) uint8_t bytes[sizeof(T) + 64];
  std::memset(bytes, kCanary, sizeof(bytes));
  std::memcpy(bytes, &size, sizeof(size));
  require_ok(call(reinterpret_cast<T*>(bytes)),
             std::string(what) + " with struct_size " + std::to_string(size));
  uint32_t after = 0;
  std::memcpy(&after, bytes, sizeof(after));
  require(after == size, std::string(what) + " changed struct_size from " + std::to_string(size) + " to " +
                             std::to_string(after));
  for (size_t i = std::min<size_t>(size, sizeof(T)); i < sizeof(bytes); ++i) {
    require(bytes[i] == kCanary, std::string(what) + " with struct_size " + std::to_string(size) +
                                     " wrote byte " + std::to_string(i));
  }
}

void fill_all(const Subject& s, bool smaller) {
  Device device(s);
  const qplan_npu_driver& d = device.driver;
  const Workload workload = device.make(Size::kSmall, 1);
  const Loaded loaded(device, workload);
  const auto request = [] {
    auto r = sized<qplan_npu_buffer_request>();
    r.usage = QPLAN_NPU_USE_INPUT;
    r.min_bytes = 100;
    return r;
  }();
  const auto size = [smaller](size_t all, size_t some) {
    return static_cast<uint32_t>(smaller ? some : all + 32);
  };
  fill_with_size<qplan_npu_capabilities>("capabilities", size(sizeof(qplan_npu_capabilities), 20),
                                         [&](auto* to) { return d.capabilities(device.handle, to); });
  fill_with_size<qplan_npu_layout>("requirements", size(sizeof(qplan_npu_layout), 12),
                                   [&](auto* to) { return d.requirements(device.handle, &request, to); });
  fill_with_size<qplan_npu_layout>("layout", size(sizeof(qplan_npu_layout), 12), [&](auto* to) {
    return d.layout(device.handle, loaded.binds()[0].buffer, to);
  });
  fill_with_size<qplan_npu_program_info>(
      "program_info", size(sizeof(qplan_npu_program_info), 8),
      [&](auto* to) { return d.program_info(device.handle, loaded.program, to); });
  fill_with_size<qplan_npu_region_info>("region_info", size(sizeof(qplan_npu_region_info), 8), [&](auto* to) {
    return d.region_info(device.handle, loaded.program, workload.slots[0].slot, to);
  });
  const qplan_npu_job job = loaded.must_submit();
  fill_with_size<qplan_npu_report>("wait", size(sizeof(qplan_npu_report), 8),
                                   [&](auto* to) { return d.wait(device.handle, job, UINT64_MAX, to); });
}
void struct_smaller(const Subject& s) { fill_all(s, true); }
void struct_larger(const Subject& s) { fill_all(s, false); }

void struct_inputs(const Subject& s) {
  Device device(s);
  const qplan_npu_driver& d = device.driver;
  struct {
    qplan_npu_buffer_request request;
    uint8_t more[64];
  } larger;
  std::memset(&larger, 0xff, sizeof(larger));
  larger.request = sized<qplan_npu_buffer_request>();
  larger.request.usage = QPLAN_NPU_USE_INPUT;
  larger.request.min_bytes = 64;
  larger.request.struct_size = sizeof(larger);
  qplan_npu_buffer buffer = 0;
  require_ok(d.alloc(device.handle, &larger.request, &buffer), "alloc with a request of a later version");
  // A struct of an older version ends before `alignment`; the bytes there must not be read.
  auto shorter = sized<qplan_npu_buffer_request>();
  shorter.struct_size = offsetof(qplan_npu_buffer_request, alignment);
  shorter.usage = QPLAN_NPU_USE_INPUT;
  shorter.alignment = 3;
  shorter.tensor = reinterpret_cast<const DLTensor*>(uintptr_t{8});
  require_ok(d.alloc(device.handle, &shorter, &buffer), "alloc with a request of an earlier version");
  shorter.struct_size = 0;
  require_status(d.alloc(device.handle, &shorter, &buffer), QPLAN_NPU_E_ARGUMENT, "alloc with struct_size 0");
  qplan_npu_submit submit = {};
  qplan_npu_job job = 0;
  require_status(d.submit(device.handle, &submit, &job, nullptr), QPLAN_NPU_E_ARGUMENT,
                 "submit with struct_size 0");
  qplan_npu_capabilities none = {};
  require_status(d.capabilities(device.handle, &none), QPLAN_NPU_E_ARGUMENT,
                 "capabilities with struct_size 0");
}

// ---- devices

void device_open_close(const Subject& s) {
  uint32_t count = 0;
  Hooks hooks;
  require_ok(s.driver->enumerate(hooks.get(), &count), "enumerate");
  require(count >= 1, "enumerate finds no device");
  for (int i = 0; i < 3; ++i) {
    Device device(s);
    device.close();
  }
  qplan_npu_device handle = 0;
  qplan_npu_reason why = {};
  const qplan_npu_status status = s.driver->open(hooks.get(), count, s.options.c_str(), &handle, &why);
  require_error(status, "open of a device beyond those that enumerate counts");
  require(std::memchr(why.text, 0, sizeof(why.text)) != nullptr, "the reason's text does not end");
  require_status(s.driver->open(hooks.get(), 0, s.options.c_str(), nullptr, nullptr), QPLAN_NPU_E_ARGUMENT,
                 "open without a place for the handle");
}

// Every function on a device handle.
void require_unknown(const qplan_npu_driver& d, qplan_npu_device device, const std::string& which) {
  auto request = sized<qplan_npu_buffer_request>();
  request.min_bytes = 64;
  auto layout = sized<qplan_npu_layout>();
  auto capabilities = sized<qplan_npu_capabilities>();
  auto program_info = sized<qplan_npu_program_info>();
  auto region_info = sized<qplan_npu_region_info>();
  auto submit = sized<qplan_npu_submit>();
  auto report = sized<qplan_npu_report>();
  submit.program = 1;
  uint64_t handle = 0;
  void* memory = nullptr;
  alignas(4096) static uint8_t bytes[4096];
  const auto refused = [&](qplan_npu_status status, const char* function) {
    require_status(status, QPLAN_NPU_E_ARGUMENT, std::string(function) + " of " + which);
  };
  refused(d.capabilities(device, &capabilities), "capabilities");
  refused(d.reset(device), "reset");
  refused(d.requirements(device, &request, &layout), "requirements");
  refused(d.alloc(device, &request, &handle), "alloc");
  refused(d.import_memory(device, &request, QPLAN_NPU_IMPORT_POINTER, reinterpret_cast<uintptr_t>(bytes), 0,
                          &handle),
          "import_memory");
  refused(d.release(device, 1), "release");
  refused(d.layout(device, 1, &layout), "layout");
  refused(d.map(device, 1, QPLAN_NPU_READ, &memory), "map");
  refused(d.unmap(device, 1, QPLAN_NPU_READ), "unmap");
  refused(d.flush(device, 1, 0, 0), "flush");
  refused(d.invalidate(device, 1, 0, 0), "invalidate");
  refused(d.program_info(device, 1, &program_info), "program_info");
  refused(d.region_info(device, 1, 0, &region_info), "region_info");
  refused(d.unload(device, 1), "unload");
  refused(d.submit(device, &submit, &handle, nullptr), "submit");
  refused(d.wait(device, 1, 0, &report), "wait");
  refused(d.cancel(device, 1), "cancel");
  if (d.power != nullptr) refused(d.power(device, 1), "power");
  refused(d.close(device), "close");
}

constexpr uint64_t kGarbage[] = {0, 0x7fffffff, 0xdeadbeefdeadbeef, UINT64_MAX};

void handle_device(const Subject& s) {
  for (const uint64_t garbage : kGarbage) require_unknown(*s.driver, garbage, "a device that is none");
  Device device(s);
  const qplan_npu_device closed = device.handle;
  device.close();
  require_unknown(*s.driver, closed, "a closed device");
}

void handle_others(const Subject& s) {
  Device device(s);
  const qplan_npu_driver& d = device.driver;
  auto layout = sized<qplan_npu_layout>();
  auto program_info = sized<qplan_npu_program_info>();
  auto region_info = sized<qplan_npu_region_info>();
  void* memory = nullptr;
  const auto refused = [&](qplan_npu_status status, const char* what) {
    require_status(status, QPLAN_NPU_E_ARGUMENT, std::string(what) + " of an unknown handle");
  };
  for (const uint64_t garbage : kGarbage) {
    refused(d.release(device.handle, garbage), "release");
    refused(d.layout(device.handle, garbage, &layout), "layout");
    refused(d.map(device.handle, garbage, QPLAN_NPU_READ, &memory), "map");
    refused(d.unmap(device.handle, garbage, QPLAN_NPU_READ), "unmap");
    refused(d.flush(device.handle, garbage, 0, 0), "flush");
    refused(d.invalidate(device.handle, garbage, 0, 0), "invalidate");
    refused(d.program_info(device.handle, garbage, &program_info), "program_info");
    refused(d.region_info(device.handle, garbage, 0, &region_info), "region_info");
    refused(d.unload(device.handle, garbage), "unload");
    refused(d.wait(device.handle, garbage, 0, nullptr), "wait");
    refused(d.cancel(device.handle, garbage), "cancel");
    auto submit = sized<qplan_npu_submit>();
    submit.program = garbage;
    qplan_npu_job job = 0;
    refused(d.submit(device.handle, &submit, &job, nullptr), "submit");
  }
  const qplan_npu_buffer buffer = device.alloc(QPLAN_NPU_USE_INPUT, 64);
  require_ok(d.release(device.handle, buffer), "release");
  refused(d.release(device.handle, buffer), "second release");
  refused(d.map(device.handle, buffer, QPLAN_NPU_READ, &memory), "map after release");
  device.close();
}

// ---- capabilities

bool is_power_of_two(uint64_t value) { return value != 0 && (value & (value - 1)) == 0; }

void capabilities_sane(const Subject& s) {
  Device device(s);
  const qplan_npu_capabilities& c = device.capabilities;
  for (const auto& [text, size] : {std::pair{c.vendor, sizeof(c.vendor)},
                                   {c.target, sizeof(c.target)},
                                   {c.hw_revision, sizeof(c.hw_revision)},
                                   {c.driver_revision, sizeof(c.driver_revision)}}) {
    require(std::memchr(text, 0, size) != nullptr, "a text does not end within its field");
  }
  require(c.target[0] != '\0', "target is empty");
  require(c.abi >> 16 == QPLAN_NPU_ABI >> 16, "abi is not that of the driver");
  require(c.hash != 0, "hash is 0");
  require(c.blob_formats[0] != 0, "no blob formats");
  require(is_power_of_two(c.buffer_alignment) && is_power_of_two(c.line_alignment),
          "alignments are not powers of two");
  require(c.channel_pack >= 1 && c.max_binds >= 1 && c.max_queue >= 1 && c.num_engines >= 1,
          "channel_pack, max_binds, max_queue or num_engines is 0");
  require((c.memory_classes &
           ~((1u << QPLAN_NPU_NUM_MEMORY_CLASSES) - 2 - (1u << QPLAN_NPU_MEMORY_CLASS_FLASH))) == 0,
          "memory_classes names ANY, FLASH or a class that this ABI does not know; expected bits of SRAM and "
          "DRAM, which devices write");
  require(c.memory_kinds != 0 && c.max_buffer_bytes > 0, "no kind of memory, or no bytes in it");
  const uint32_t unknown = c.contracts & ~kDrawnContracts;
  require(unknown == 0, "contracts has bits " + std::to_string(unknown) +
                            ", which are no contract of qplan/npu_driver.h; expected QPLAN_NPU_TFL2, _TFL1, "
                            "_F32E, _ACC32");
  require((c.contracts_per_channel & ~c.contracts) == 0, "a contract per channel is not among the contracts");
  auto again = sized<qplan_npu_capabilities>();
  require_ok(device.driver.capabilities(device.handle, &again), "capabilities");
  require(std::memcmp(&again, &c, sizeof(c)) == 0, "a second call tells something else");
}

// ---- supported

void supported_reasons(const Subject& s) {
  Device device(s);
  const qplan_npu_driver& d = device.driver;
  for (const qplan_npu_device handle : {device.handle, qplan_npu_device{0}}) {
    auto op = sized<qplan_npu_op>();
    op.op = 9999;
    op.contract = QPLAN_NPU_TFL2;
    uint32_t needed = 0;
    require_status(d.supported(handle, &op, nullptr, &needed), QPLAN_NPU_E_UNSUPPORTED,
                   "supported of an unknown operator");
    require(needed >= 1, "an operator is refused without a reason");
    op.op = QPLAN_NPU_OP_CONV2D;  // without any tensor
    op.contract = 1u << 20;
    needed = 0;
    require_status(d.supported(handle, &op, nullptr, &needed), QPLAN_NPU_E_UNSUPPORTED,
                   "supported of a convolution without tensors");
    std::vector<qplan_npu_reason> reasons(needed + 1);
    std::memset(reasons.data(), 0xc3, reasons.size() * sizeof(reasons[0]));
    uint32_t room = needed;
    require_status(d.supported(handle, &op, reasons.data(), &room), QPLAN_NPU_E_UNSUPPORTED, "supported");
    require(room == needed, "the number of reasons changes with the room for them");
    const auto* beyond = reinterpret_cast<const uint8_t*>(&reasons[needed]);
    for (size_t i = 0; i < sizeof(qplan_npu_reason); ++i)
      require(beyond[i] == 0xc3, "reasons were written beyond the room for them");
    for (uint32_t i = 0; i < needed; ++i)
      require(std::memchr(reasons[i].text, 0, sizeof(reasons[i].text)) != nullptr,
              "the text of a reason does not end");
    require_status(d.supported(handle, nullptr, nullptr, &room), QPLAN_NPU_E_ARGUMENT,
                   "supported without an operator");
    require_status(d.supported(handle, &op, nullptr, nullptr), QPLAN_NPU_E_ARGUMENT,
                   "supported without a count");
  }
}

// Fails where `supported` refuses all of a hundred operators that the capabilities allow: every check that
// needs a program would be skipped. Operators that it is not asked about, because a tensor is larger than
// max_buffer_bytes, do not count.
void require_takes_some(const Device& device) {
  constexpr uint32_t kEnough = 100;
  uint32_t refusals = 0;
  std::string last;
  const auto ask = [&](const qplan_npu_op& op) {
    std::string refusal = device.refusal(op);
    if (!refusal.empty()) {
      ++refusals;
      last = refusal;
    }
    return refusal;
  };
  const Source source = {device.capabilities, ask};
  for (const Size size : {Size::kSmall, Size::kRandom}) {
    try {
      (void)make_oplist_workload(source, size, 500);
      return;
    } catch (const Skipped&) {  // it takes none of this size
    }
  }
  if (refusals < kEnough) return;
  throw Failed("the capabilities name contracts, but supported takes none of " + std::to_string(refusals) +
               " random operators that they allow; what it said of the last one: " + last);
}

// Where programs are operator lists, whose tensors are packed: there `supported` takes nothing that the
// capabilities exclude, and something of what they name.
void supported_capabilities(const Subject& s) {
  constexpr uint32_t kOperators = 400;
  Device device(s);
  const qplan_npu_capabilities& c = device.capabilities;
  const Source source = {c, nullptr, s.target, 0};
  const bool takes_lists = std::find(std::begin(c.blob_formats), std::end(c.blob_formats),
                                     QPLAN_NPU_BLOB_OPLIST) != std::end(c.blob_formats);
  if (!takes_lists && !has_compiler(source))
    throw Skipped("the device's programs are not made of operator lists");
  bool takes_any = false;
  see_random_operators(kOperators, 500, [&](const qplan_npu_op& op, const std::string& text) {
    if (!device.refusal(op).empty()) return;
    takes_any = true;
    for (const std::string& violation : target::external::capability_violations(c, op))
      require(violation.empty(), "supported takes " + text + ", but " + violation);
  });
  if (!takes_any && (c.contracts & kDrawnContracts) != 0) require_takes_some(device);
  device.close();
}

// ---- the target of the same library, which `qplan pack --target-lib` makes of it

// The packer asks the target's `supported` long before there is a device. What it takes, `load` must take; a
// target with the hash of another device has no driver here.
void require_answers(const Subject& s) {
  constexpr uint32_t kOperators = 100;
  uint64_t config = 0;
  qplan_npu_reason why = {};
  if (s.target->configure != nullptr)
    require_ok(s.target->configure(s.target_options.c_str(), &config, &why), "configure of the target");
  Device device(s);
  auto of_target = sized<qplan_npu_capabilities>();
  require_ok(s.target->capabilities(config, &of_target), "capabilities of the target");
  see_random_operators(kOperators, 500, [&](const qplan_npu_op& op, const std::string& text) {
    uint32_t count = 1;
    const qplan_npu_status status = s.target->supported(config, &op, &why, &count);
    require(status == QPLAN_NPU_OK || status == QPLAN_NPU_E_UNSUPPORTED,
            "supported of the target returned " + status_text(status) + " for " + text +
                ", expected OK or E_UNSUPPORTED; its first argument is what configure gave, not a device of "
                "the driver");
    if (status != QPLAN_NPU_OK || of_target.hash != device.capabilities.hash) return;
    const std::string refusal = device.refusal(op);
    require(refusal.empty(),
            "supported of the target takes " + text + ", that of the driver does not: " + refusal);
  });
  device.close();
}

void target_accepted(const Subject& s) {
  if (s.target == nullptr) throw Skipped("the library has no target");
  const std::string name = s.target->name;
  if (s.target_options.empty() && s.target->configure != nullptr) {
    qplan_npu_reason why = {};
    uint64_t config = 0;
    if (s.target->configure("", &config, &why) != QPLAN_NPU_OK)
      throw Skipped("target '" + name + "' cannot be configured without options: " +
                    std::string(why.text, strnlen(why.text, sizeof(why.text))) +
                    "; --target-options gives it some");
  }
  const target::Library libraries[] = {{s.target, nullptr}};
  const std::string options = s.target_options.empty() ? "" : "," + s.target_options;
  (void)pipeline::parse_targets(name + options + ", cpu", libraries);
  require_answers(s);
}

void power_counts(const Subject& s) {
  Device device(s);
  const qplan_npu_driver& d = device.driver;
  if (d.power == nullptr) throw Skipped("the driver has no power function");
  const Workload workload = device.make(Size::kSmall, 3);
  const Loaded loaded(device, workload);
  require_ok(d.power(device.handle, 1), "power on");
  require_ok(d.power(device.handle, 0), "power off");
  loaded.must_run();  // still on: open left it on
  require_ok(d.power(device.handle, 0), "power off");
  qplan_npu_job job = 0;
  require_status(loaded.submit(&job), QPLAN_NPU_E_OFF, "submit to a device that is off");
  require_ok(d.power(device.handle, 1), "power on");
  loaded.must_run();
  loaded.require_result();
  device.close();
}

}  // namespace

std::vector<Check> entry_checks() {
  return {{"entry.version", "majors must match, later minors are served, the table knows its size",
           entry_version},
          {"entry.functions", "functions that are not optional are there", entry_functions}};
}

std::vector<Check> device_checks() {
  return {
      {"struct.smaller", "of a struct of an earlier version no byte beyond its size is written",
       struct_smaller},
      {"struct.larger", "a struct of a later version keeps its size and what the driver does not know",
       struct_larger},
      {"struct.inputs", "fields beyond struct_size count as zero; no size is an error", struct_inputs},
      {"device.open_close", "devices are counted, opened and closed, again and again", device_open_close},
      {"handle.device", "unknown and closed devices are E_ARGUMENT for every function", handle_device},
      {"handle.others", "unknown buffers, programs and jobs are E_ARGUMENT", handle_others},
      {"capabilities.sane", "capabilities are complete and do not change", capabilities_sane},
      {"supported.reasons", "a refusal has reasons, within the room for them; without a device too",
       supported_reasons},
      {"supported.capabilities",
       "supported takes nothing that the capabilities exclude, and something of the contracts that they name",
       supported_capabilities},
      {"target.accepted", "the packer can use the target of the same library", target_accepted},
      {"power.counted", "power is counted; off refuses jobs with E_OFF, buffers and programs survive",
       power_counts},
  };
}

}  // namespace qplan::conformance
