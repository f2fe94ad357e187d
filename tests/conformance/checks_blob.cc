// load: what is refused, and that nothing that is accepted does harm.
#include <algorithm>
#include <cstring>
#include <random>

#include "tests/conformance/check.h"
#include "tests/conformance/device.h"

namespace qplan::conformance {
namespace {

struct Victim {
  explicit Victim(const Subject& s) : device(s), workload(device.make(Size::kSmall, 11)) {}

  // Refused, with a text that ends.
  void require_refused(const std::vector<uint8_t>& blob, const std::string& what) {
    qplan_npu_program program = 0;
    qplan_npu_reason why = {};
    std::memset(why.text, 'x', sizeof(why.text));
    require_error(device.load(workload.format, blob, &program, &why), "load of " + what);
    require(std::memchr(why.text, 0, sizeof(why.text)) != nullptr,
            "load of " + what + ": the reason's text does not end");
  }

  // Refused, or else run: on buffers as large as its regions say, it must come to an end and keep to its
  // memory. Whether it was refused.
  bool refused_or_harmless(const std::vector<uint8_t>& blob, const std::string& what) {
    const qplan_npu_driver& d = device.driver;
    qplan_npu_program program = 0;
    const qplan_npu_status status = device.load(workload.format, blob, &program);
    if (status < 0) return true;
    auto info = sized<qplan_npu_program_info>();
    require_ok(d.program_info(device.handle, program, &info), "program_info of " + what);
    std::vector<qplan_npu_bind> binds;
    bool is_small = info.num_regions < 1000;
    for (uint32_t slot = 0; is_small && slot < info.num_regions; ++slot) {
      auto region = sized<qplan_npu_region_info>();
      require_ok(d.region_info(device.handle, program, slot, &region), "region_info of " + what);
      if (region.is_bound == 0) continue;
      if (region.bytes > (1u << 20)) is_small = false;  // it may be right to want that much
      if (is_small) binds.push_back({slot, 0, device.alloc(region.usage, region.bytes), 0, region.bytes});
    }
    auto submit = sized<qplan_npu_submit>();
    submit.program = program;
    submit.binds = binds.data();
    submit.num_binds = static_cast<uint32_t>(binds.size());
    qplan_npu_job job = 0;
    if (is_small && d.submit(device.handle, &submit, &job, nullptr) == QPLAN_NPU_OK)
      require(wait_for(device, job) != QPLAN_NPU_PENDING, "a job of " + what + " does not end within 20 s");
    for (const qplan_npu_bind& bind : binds) require_ok(d.release(device.handle, bind.buffer), "release");
    require_ok(d.unload(device.handle, program), "unload of " + what);
    require(device.hooks.damage().empty(), what + ": " + device.hooks.damage());
    return false;
  }

  // Whether the blob has the device's own format. This program does not know its checksums, so a damaged blob
  // may still be a valid one.
  bool is_native() const { return workload.seal == nullptr; }
  void require_known_checksum() const {
    if (is_native())
      throw Skipped("the checksum of a format of the device's own is not known to this program");
  }

  void finish() {
    const Loaded loaded(device, workload);  // the device still works
    loaded.must_run();
    loaded.require_result();
    device.close();
  }

  Device device;
  Workload workload;
};

void blob_truncated(const Subject& s) {
  Victim v(s);
  const std::vector<uint8_t>& blob = v.workload.blob;
  for (size_t length = 0; length < blob.size(); length += length < 1024 ? 1 : 37) {
    const std::vector<uint8_t> shorter(blob.begin(), blob.begin() + static_cast<ptrdiff_t>(length));
    const std::string what = std::to_string(length) + " of " + std::to_string(blob.size()) + " bytes";
    v.is_native() ? (void)v.refused_or_harmless(shorter, what) : v.require_refused(shorter, what);
  }
  std::vector<uint8_t> longer = blob;
  longer.resize(blob.size() + 64);
  const std::string what = "a blob with bytes behind it";
  v.is_native() ? (void)v.refused_or_harmless(longer, what) : v.require_refused(longer, what);
  v.finish();
}

void blob_flipped(const Subject& s) {
  Victim v(s);
  std::mt19937 random(1);
  const size_t bits = v.workload.blob.size() * 8;
  for (size_t i = 0; i < 3000; ++i) {
    const size_t bit = i < v.workload.header_bytes * 8 ? i : random() % bits;
    std::vector<uint8_t> blob = v.workload.blob;
    blob[bit / 8] ^= static_cast<uint8_t>(1u << bit % 8);
    const bool is_refused =
        v.refused_or_harmless(blob, "a blob with bit " + std::to_string(bit) + " flipped");
    require(is_refused || v.is_native(), "load takes a blob with bit " + std::to_string(bit) + " flipped");
  }
  v.finish();
}

void blob_resealed(const Subject& s) {
  Victim v(s);
  v.require_known_checksum();
  std::mt19937 random(2);
  for (int i = 0; i < 4000; ++i) {
    std::vector<uint8_t> blob = v.workload.blob;
    const int changes = 1 + static_cast<int>(random() % 3);
    for (int k = 0; k < changes; ++k) {
      static constexpr uint8_t kExtremes[] = {0, 1, 0x7f, 0x80, 0xff};
      uint8_t& byte = blob[random() % blob.size()];
      byte = random() % 2 == 0 ? static_cast<uint8_t>(byte ^ (1u << random() % 8)) : kExtremes[random() % 5];
    }
    v.workload.seal(&blob);
    (void)v.refused_or_harmless(blob, "a damaged blob whose checksum is right, number " + std::to_string(i));
  }
  v.finish();
}

void blob_version(const Subject& s) {
  Victim v(s);
  v.require_known_checksum();
  std::vector<uint8_t> blob = v.workload.blob;
  ++blob[v.workload.version_offset];
  v.workload.seal(&blob);
  qplan_npu_program program = 0;
  require_status(v.device.load(v.workload.format, blob, &program), QPLAN_NPU_E_VERSION,
                 "load of a blob of the next major");
  v.finish();
}

void blob_hash(const Subject& s) {
  Victim v(s);
  v.require_known_checksum();
  std::vector<uint8_t> blob = v.workload.blob;
  blob[v.workload.hash_offset] ^= 1;
  v.workload.seal(&blob);
  qplan_npu_program program = 0;
  require_status(v.device.load(v.workload.format, blob, &program), QPLAN_NPU_E_VERSION,
                 "load of a blob made for other capabilities");
  v.finish();
}

void blob_random(const Subject& s) {
  Victim v(s);
  std::mt19937 random(3);
  for (int i = 0; i < 500; ++i) {
    std::vector<uint8_t> blob(random() % 2000);
    for (uint8_t& byte : blob) byte = static_cast<uint8_t>(random());
    if (i % 2 == 0) {  // after a header that is right
      const size_t kept = std::min(blob.size(), v.workload.header_bytes);
      std::copy_n(v.workload.blob.begin(), kept, blob.begin());
    }
    v.require_refused(blob, "random bytes");
  }
  require_error(v.device.driver.load(v.device.handle, v.workload.format, nullptr, 0, nullptr, nullptr),
                "load without a place for the handle");
  qplan_npu_program program = 0;
  require_error(v.device.driver.load(v.device.handle, v.workload.format, nullptr, 100, &program, nullptr),
                "load of NULL");
  v.finish();
}

void blob_format(const Subject& s) {
  Victim v(s);
  qplan_npu_program program = 0;
  require_error(v.device.load(QPLAN_NPU_FOURCC('n', 'o', 'n', 'e'), v.workload.blob, &program),
                "load of an unknown format");
  v.finish();
}

void program_info(const Subject& s) {
  Victim v(s);
  const Loaded loaded(v.device, v.workload);
  auto info = sized<qplan_npu_program_info>();
  require_ok(v.device.driver.program_info(v.device.handle, loaded.program, &info), "program_info");
  require(info.capabilities_hash == v.device.capabilities.hash,
          "the program's hash is not that of the device");
  require(info.memory_bytes > 0, "the program takes no memory");
  std::vector<const Slot*> bound(info.num_regions, nullptr);
  for (const Slot& slot : v.workload.slots) {
    require(slot.slot < info.num_regions, "there are fewer regions than slots");
    bound[slot.slot] = &slot;
  }
  for (uint32_t i = 0; i < info.num_regions; ++i) {
    auto region = sized<qplan_npu_region_info>();
    require_ok(v.device.driver.region_info(v.device.handle, loaded.program, i, &region), "region_info");
    require((region.is_bound != 0) == (bound[i] != nullptr),
            "is_bound of region " + std::to_string(i) + " is wrong");
    if (bound[i] == nullptr) continue;
    require(region.usage == bound[i]->usage && region.bytes == bound[i]->bytes,
            "usage or bytes of region " + std::to_string(i) + " are wrong");
    require(region.alignment != 0 && (region.alignment & (region.alignment - 1)) == 0,
            "the alignment of region " + std::to_string(i) + " is no power of two");
  }
  auto region = sized<qplan_npu_region_info>();
  for (const uint32_t slot : {info.num_regions, UINT32_MAX}) {
    require_status(v.device.driver.region_info(v.device.handle, loaded.program, slot, &region),
                   QPLAN_NPU_E_ARGUMENT, "region_info behind the last region");
  }
  v.finish();
}

void program_copies(const Subject& s) {
  Victim v(s);
  std::vector<uint8_t> blob = v.workload.blob;
  qplan_npu_program program = 0;
  require_ok(
      v.device.driver.load(v.device.handle, v.workload.format, blob.data(), blob.size(), &program, nullptr),
      "load");
  std::fill(blob.begin(), blob.end(), uint8_t{0xff});
  const Loaded loaded(v.device, v.workload);
  qplan_npu_submit submit = loaded.request();
  submit.program = program;
  qplan_npu_job job = 0;
  require_ok(v.device.driver.submit(v.device.handle, &submit, &job, nullptr), "submit");
  (void)loaded.must_wait(job);
  loaded.require_result();
  v.finish();
}

}  // namespace

std::vector<Check> blob_checks() {
  return {
      {"blob.truncated",
       "a blob of any other length is refused; of a format of the device's own, or does no harm",
       blob_truncated},
      {"blob.flipped",
       "a blob with one bit flipped is refused; of a format of the device's own, or does no harm",
       blob_flipped},
      {"blob.resealed", "a damaged blob with a right checksum is refused, or keeps to its memory and ends",
       blob_resealed},
      {"blob.version", "a blob of another major is E_VERSION", blob_version},
      {"blob.hash", "a blob made for other capabilities is E_VERSION", blob_hash},
      {"blob.random", "random bytes are refused", blob_random},
      {"blob.format", "a format that capabilities do not name is refused", blob_format},
      {"program.info", "program_info and region_info tell what the blob says", program_info},
      {"program.copies", "after load the caller's bytes may change", program_copies},
  };
}

}  // namespace qplan::conformance
