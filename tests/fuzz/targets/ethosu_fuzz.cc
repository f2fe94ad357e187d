// Ethos-U blobs: what the reader takes, the driver of samples/ethosu_driver runs in place, on the simulator
// and in memories of exactly the slots' sizes between guard pages. Inputs and the blob stay as they are.
// Every refusal has a reason.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "qplan/npu_sim.h"
#include "samples/ethosu_driver/ethosu_driver_shim.h"
#include "samples/ethosu_driver/fake_core_driver.h"
#include "src/ethosu/isa/blob.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/guarded_memory.h"
#include "tests/support/random.h"

namespace qplan::ethosu {
namespace {

using qplan::testing::GuardedMemory;
using qplan::testing::Random;

constexpr uint64_t kMostCycles = 1 << 20;
constexpr uint64_t kMostRegionBytes = 1 << 18;
constexpr char kConfig[] = "ethos-u55-128";

const qplan_npu_driver& driver() { return *qplan_ethosu_driver(QPLAN_NPU_ABI); }

qplan_npu_device device() {
  static const qplan_npu_device opened = [] {
    static qplan_device_hooks hooks = {};
    hooks.struct_size = sizeof(hooks);
    hooks.alloc = [](void*, size_t size, size_t alignment) {
      return std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
    };
    hooks.free = [](void*, void* memory) { std::free(memory); };
    qplan_npu_device result = 0;
    FUZZ_CHECK(fake_ethosu_init(kConfig) == 0, "the configuration");
    FUZZ_CHECK(driver().open(&hooks, 0, "", &result, nullptr) == QPLAN_NPU_OK, "open");
    return result;
  }();
  return opened;
}

bool is_small(const Blob& blob) {
  uint64_t bytes = 0;
  for (uint32_t r = 0; r < blob.header.num_regions; ++r) {
    const BlobRegion region = blob_region(blob, r);
    if (region.bytes > kMostRegionBytes - bytes) return false;
    bytes += region.bytes;
  }
  for (uint32_t s = 0; s < blob.header.num_slots; ++s) {
    const uint64_t slot = blob_slot(blob, s).bytes;
    if (slot > kMostRegionBytes - bytes) return false;
    bytes += slot;
  }
  return blob.header.estimated_cycles <= kMostCycles;
}

void run_program(const Blob& blob, qplan_npu_program program) {
  std::vector<GuardedMemory> memories;
  std::vector<qplan_npu_bind> binds;
  memories.reserve(blob.header.num_slots);
  for (uint32_t s = 0; s < blob.header.num_slots; ++s) {
    const BlobSlot slot = blob_slot(blob, s);
    memories.emplace_back(static_cast<size_t>(slot.bytes), 16, s % 2 == 0, static_cast<uint8_t>(s * 59 + 3));
    qplan_npu_buffer_request request = {};
    request.struct_size = sizeof(request);
    request.min_bytes = slot.bytes;
    qplan_npu_bind bind = {s, 0, 0, 0, slot.bytes};
    FUZZ_CHECK(driver().import_memory(device(), &request, QPLAN_NPU_IMPORT_POINTER,
                                      reinterpret_cast<uintptr_t>(memories.back().data()), 0,
                                      &bind.buffer) == QPLAN_NPU_OK,
               "import");
    binds.push_back(bind);
  }
  qplan_npu_submit submit = {};
  submit.struct_size = sizeof(submit);
  submit.program = program;
  submit.binds = binds.data();
  submit.num_binds = static_cast<uint32_t>(binds.size());
  qplan_npu_job job = 0;
  qplan_npu_reason why = {};
  const qplan_npu_status status = driver().submit(device(), &submit, &job, &why);
  FUZZ_CHECK(status == QPLAN_NPU_OK, "what load takes, submit takes: %s", why.text);
  (void)driver().wait(device(), job, UINT64_MAX, nullptr);
  for (uint32_t s = 0; s < blob.header.num_slots; ++s) {
    if (blob_slot(blob, s).usage == QPLAN_NPU_USE_INPUT) {
      const uint8_t* const begin = memories[s].data();
      const auto fill = static_cast<uint8_t>(s * 59 + 3);
      FUZZ_CHECK(std::all_of(begin, begin + memories[s].size(), [&](uint8_t b) { return b == fill; }),
                 "an input was written");
    }
    FUZZ_CHECK(driver().release(device(), binds[s].buffer) == QPLAN_NPU_OK, "release");
  }
}

void run_blob(const uint8_t* data, size_t size) {
  const GuardedMemory bytes(size, 64, true, 0);
  if (size > 0) std::memcpy(bytes.data(), data, size);
  Blob blob;
  qplan_npu_reason why = {};
  const qplan_npu_status status = read_blob(bytes.data(), size, *find_config(kConfig), &blob, &why);
  if (status != QPLAN_NPU_OK) {
    FUZZ_CHECK(status == QPLAN_NPU_E_BLOB || status == QPLAN_NPU_E_VERSION, "status %d", status);
    FUZZ_CHECK(why.code != 0 && why.text[0] != '\0', "refused without a reason");
  }
  uint64_t lines = 0;
  const auto count = [](void* user, const char* text) {
    FUZZ_CHECK(text != nullptr && std::strchr(text, '\n') == nullptr, "a line of the listing");
    ++*static_cast<uint64_t*>(user);
  };
  const qplan_npu_status listed = qplan_npu_sim_disassemble(
      bytes.data(), size, (std::string("device=") + kConfig).c_str(), count, &lines, nullptr);
  FUZZ_CHECK((status == QPLAN_NPU_OK) == (listed == QPLAN_NPU_OK), "read says %d, the listing %d", status,
             listed);
  if (status == QPLAN_NPU_OK && !is_small(blob)) return;
  qplan_npu_program program = 0;
  const qplan_npu_status loaded =
      driver().load_in_place(device(), kBlobMagic, bytes.data(), size, &program, nullptr);
  FUZZ_CHECK(loaded == status, "read says %d, load %d", status, loaded);
  if (loaded != QPLAN_NPU_OK) return;
  run_program(blob, program);
  FUZZ_CHECK(driver().unload(device(), program) == QPLAN_NPU_OK, "unload");
  FUZZ_CHECK(std::equal(data, data + size, bytes.data()), "the blob was written");
}

// Mutants that mostly still pass the reader: words of the stream, fields of tables, the checksum made to
// agree.
size_t mutate(uint8_t* data, size_t size, size_t max_size, unsigned int seed) {
  Random random(seed);
  if (size < sizeof(BlobHeader) || random.chance(0.05)) return LLVMFuzzerMutate(data, size, max_size);
  BlobHeader header;
  std::memcpy(&header, data, sizeof(header));
  const auto pick = [&](uint64_t begin, uint64_t bytes) {
    begin = std::min<uint64_t>(begin, size - 1);
    bytes = std::max<uint64_t>(1, std::min<uint64_t>(bytes, size - begin));
    return begin + static_cast<uint64_t>(random.integer(0, static_cast<int64_t>(bytes) - 1));
  };
  for (int64_t count = random.integer(1, 4); count > 0; --count) {
    const int64_t part = random.integer(0, 9);
    const uint64_t tables =
        uint64_t{header.num_regions} * sizeof(BlobRegion) + uint64_t{header.num_slots} * sizeof(BlobSlot);
    uint64_t at = part == 0   ? pick(0, sizeof(BlobHeader))
                  : part <= 2 ? pick(sizeof(BlobHeader), tables + 16)
                  : part == 3 ? pick(header.payload_offset + header.payload_bytes, size)
                              : pick(header.payload_offset, header.payload_bytes);
    if (part > 3 && at + 4 <= size && random.chance(0.5)) {
      // A small change of a parameter: the upper half of a word.
      at = at / 4 * 4 + 2;
      if (at + 2 > size) continue;
      data[at] = static_cast<uint8_t>(data[at] + random.integer(-2, 2));
      continue;
    }
    data[at] = random.chance(0.5) ? static_cast<uint8_t>(data[at] ^ (1 << random.integer(0, 7)))
                                  : static_cast<uint8_t>(random.integer(0, 255));
  }
  std::memcpy(&header, data, sizeof(header));
  header.magic = kBlobMagic, header.major = kBlobMajor;
  header.config_hash = config_hash(*find_config(kConfig));
  header.total_bytes = size;
  if (random.chance(0.3)) header.estimated_cycles = kMostCycles;
  std::memcpy(data, &header, sizeof(header));
  header.checksum = blob_checksum(data, size);
  std::memcpy(data, &header, sizeof(header));
  return size;
}

}  // namespace
}  // namespace qplan::ethosu

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  qplan::ethosu::run_blob(data, size);
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned int seed) {
  return qplan::ethosu::mutate(data, size, max_size, seed);
}
