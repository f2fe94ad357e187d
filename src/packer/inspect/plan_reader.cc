#include "src/packer/inspect/plan_reader.h"

#include <cstring>

#include "format/dtype.h"
#include "src/base/sha256.h"
#include "src/packer/error.h"

namespace qplan::inspect {

PlanReader::PlanReader(std::span<const uint8_t> bytes) {
  if (reinterpret_cast<uintptr_t>(bytes.data()) % AlignedBytes::kAlignment != 0) {
    copy_ = AlignedBytes(bytes.size());
    std::memcpy(copy_.data(), bytes.data(), bytes.size());
    bytes = copy_.span();
  }
  Error error;
  if (view_.open(bytes.data(), bytes.size(), true, &error) < 0) throw PackError(error.status(), error.text());
}

std::string kernel_name(uint16_t kernel) {
  switch (kernel) {
#define QPLAN_KERNEL(id, family, descriptor, params, args_bytes) \
  case id:                                                       \
    return #family;
#include "format/kernels.def"
#undef QPLAN_KERNEL
    default:
      return "kernel " + std::to_string(kernel);
  }
}

std::string shape_text(const format::Tensor& tensor) {
  std::string text;
  for (uint32_t i = 0; i < format::rank_of(tensor); ++i) {
    text += (i == 0 ? "" : "x") + std::to_string(tensor.shape()->Get(i));
  }
  return text.empty() ? "scalar" : text;
}

std::string dtype_text(const format::Tensor& tensor) {
  return format::dtype_name(tensor.type_code(), tensor.type_bits());
}

std::string hexadecimal(const uint8_t* bytes, size_t size) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (size_t i = 0; i < size; ++i) {
    text += kDigits[bytes[i] >> 4];
    text += kDigits[bytes[i] & 15];
  }
  return text;
}

std::string content_digest(const format::PlanView& view) {
  // The header's file size and digest cover the names, its other fields do not.
  format::Header header = view.header();
  header.file_size = 0;
  for (uint8_t& byte : header.digest) byte = 0;
  Sha256 sha;
  sha.update(&header, sizeof(header));
  sha.update(view.bytes() + sizeof(header), static_cast<size_t>(header.content_size) - sizeof(header));
  uint8_t digest[Sha256::kDigestBytes];
  sha.finish(digest);
  return hexadecimal(digest, sizeof(digest));
}

}  // namespace qplan::inspect
