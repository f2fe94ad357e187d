// Programs in formats of the device's own: operator lists that the library's target compiles.
#include <algorithm>
#include <cstring>

#include "qplan/npu_oplist.h"
#include "src/base/listing.h"
#include "src/ethosu/isa/blob.h"
#include "src/packer/target/external/external.h"
#include "tests/conformance/check.h"
#include "tests/conformance/workload.h"

namespace qplan::conformance {
namespace {

std::string format_text(uint32_t format) { return "'" + four_characters(format) + "'"; }

// Calls copy(byte of the packed tensor, byte of the buffer) for each byte of a tensor.
template <typename Copy>
void for_each_byte(const target::Arrangement& arrangement, const ir::TensorType& type, const Copy& copy) {
  const auto bytes = static_cast<size_t>(type.size_bytes());
  const size_t element = type.dtype.bits / 8u;
  for (size_t packed = 0; packed < bytes; ++packed) {
    uint64_t at = arrangement.origin + packed % element * arrangement.byte_stride;
    size_t rest = packed / element;
    for (size_t axis = type.shape.size(); axis-- > 0;) {
      const auto extent = static_cast<size_t>(type.shape[axis]);
      const bool is_divided = arrangement.block != 0 && axis + 1 == type.shape.size();
      const size_t block = is_divided ? arrangement.block : extent;
      at += rest % extent % block * arrangement.strides[axis];
      at += rest % extent / block * arrangement.block_stride;
      rest /= extent;
    }
    copy(packed, static_cast<size_t>(at));
  }
}

}  // namespace

bool has_compiler(const Source& source) {
  if (source.target == nullptr || source.target->compile == nullptr) return false;
  const auto& formats = source.capabilities.blob_formats;
  return source.target->blob_format != 0 &&
         std::ranges::find(formats, source.target->blob_format) != std::end(formats);
}

std::string scratch_of(const Source& source, const Workload& list, uint64_t* bytes) {
  qplan_npu_reason why = {};
  const qplan_npu_status status =
      source.target->scratch(source.config, list.blob.data(), list.blob.size(), bytes, &why);
  if (status == QPLAN_NPU_OK) return "";
  return "scratch returned " + status_text(status) + ": " +
         std::string(why.text, strnlen(why.text, sizeof(why.text)));
}

void ask_arrangements(const Source& source, Workload* list) {
  for (size_t i = 0; i < list->slots.size(); ++i) {
    Slot& slot = list->slots[i];
    if (slot.usage != QPLAN_NPU_USE_INPUT && slot.usage != QPLAN_NPU_USE_OUTPUT) continue;
    const ir::TensorType type = {{slot.dtype.code, slot.dtype.bits}, slot.shape};
    uint32_t alignment = 0;
    target::Arrangement arrangement =
        target::external::ask_layout(*source.target, source.config, type, slot.usage, &alignment);
    arrangement.flip = 0;  // lists have what the device sees
    if (arrangement.is_packed(type)) continue;
    slot.bytes = arrangement.size;
    slot.arrange = [arrangement, type](const std::vector<uint8_t>& packed) {
      std::vector<uint8_t> buffer(static_cast<size_t>(arrangement.size), arrangement.fill);
      for_each_byte(arrangement, type, [&](size_t from, size_t to) { buffer[to] = packed[from]; });
      return buffer;
    };
    if (i != list->output) continue;
    list->unpack = [arrangement, type](const std::vector<uint8_t>& buffer) {
      std::vector<uint8_t> packed(static_cast<size_t>(type.size_bytes()));
      for_each_byte(arrangement, type, [&](size_t to, size_t from) { packed[to] = buffer[from]; });
      return packed;
    };
  }
}

std::string compile_native(const Source& source, const Workload& list, Workload* native) {
  const auto write = [](void* user, const void* bytes, uint64_t count) -> qplan_npu_status {
    auto* to = static_cast<std::vector<uint8_t>*>(user);
    const auto* from = static_cast<const uint8_t*>(bytes);
    to->insert(to->end(), from, from + count);
    return QPLAN_NPU_OK;
  };
  qplan_npu_reason why = {};
  const qplan_npu_status status =
      source.target->compile(source.config, list.blob.data(), list.blob.size(), write, &native->blob, &why);
  if (status == QPLAN_NPU_OK) {
    require(!native->blob.empty(), "compile of " + list.text + " wrote no byte");
    native->format = source.target->blob_format;
    return "";
  }
  const std::string text(why.text, strnlen(why.text, sizeof(why.text)));
  return "compile returned " + status_text(status) + ": " + text;
}

void become_native(Workload native, Workload* workload) {
  workload->format = native.format;
  workload->blob = std::move(native.blob);
  workload->seal = nullptr;
  workload->header_bytes = workload->version_offset = workload->hash_offset = 0;
  workload->text += ", compiled to " + format_text(native.format);
}

Workload make_workload(const Source& source, Size size, uint32_t seed) {
  if (has_compiler(source)) return make_oplist_workload(source, size, seed);
  std::string formats;
  for (const uint32_t format : source.capabilities.blob_formats) {
    if (format == QPLAN_NPU_BLOB_OPLIST) return make_oplist_workload(source, size, seed);
    if (format == QPLAN_NPU_BLOB_VTA) return make_vta_workload(source.capabilities, size, seed);
    if (format == ethosu::kBlobMagic) return make_ethosu_workload(source.capabilities, size, seed);
    if (format != 0) formats += (formats.empty() ? "" : ", ") + format_text(format);
  }
  throw Skipped("the driver takes " + (formats.empty() ? "no format" : formats) +
                ", neither operator lists ('QOP1') nor streams of VTA ('VTA1') or Ethos-U ('ETU1'), and the "
                "library exports no target whose compile writes one of them");
}

}  // namespace qplan::conformance
