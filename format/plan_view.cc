#include "format/plan_view.h"

#include <string.h>

#include "format/verify.h"
#include "src/base/checked.h"
#include "src/base/sha256.h"
#include "src/base/text.h"

namespace qplan::format {
namespace {

bool is_little_endian() {
  const uint16_t one = 1;
  uint8_t first = 0;
  memcpy(&first, &one, 1);
  return first == 1;
}

const char* string_at(const flatbuffers::Vector<flatbuffers::Offset<flatbuffers::String>>* strings,
                      uint32_t index) {
  return index < count_of(strings) ? strings->Get(index)->c_str() : "";
}

bool digest_matches(const Header& header, const uint8_t* bytes) {
  Sha256 sha;
  sha.update(bytes + sizeof(Header), static_cast<size_t>(header.file_size) - sizeof(Header));
  uint8_t digest[Sha256::kDigestBytes];
  sha.finish(digest);
  return memcmp(digest, header.digest, sizeof(digest)) == 0;
}

}  // namespace

qplan_status PlanView::open(const void* bytes, size_t size, bool check_digest, Error* error) {
  const Checks checks = {check_digest ? digest_matches : nullptr, &PlanVerifier::npu_step};
  const qplan_status status = open(bytes, size, checks, error);
  return status == QPLAN_OK ? open_copies(error) : status;
}

qplan_status PlanView::open_for_cpu(const void* bytes, size_t size, Error* error) {
  return open(bytes, size, {nullptr, nullptr}, error);
}

qplan_status PlanView::open(const void* bytes, size_t size, const Checks& checks, Error* error) {
  *this = PlanView();
  qplan_status status = open_header(bytes, size, error);
  if (status == QPLAN_OK && checks.digest_matches != nullptr && !checks.digest_matches(header(), bytes_)) {
    status = error->set(QPLAN_PLAN_CORRUPT)
             << "plan: the SHA-256 of the file differs from the header's; copy or pack it again";
  }
  if (status == QPLAN_OK) status = open_tables(checks, error);
  if (status == QPLAN_OK) {
    tag_ = kTag;
  } else {
    *this = PlanView();
  }
  return status;
}

qplan_status PlanView::open_header(const void* bytes, size_t size, Error* error) {
  if (reinterpret_cast<uintptr_t>(bytes) % kFileAlignment != 0) {
    return error->set(QPLAN_MISALIGNED) << "plan: bytes begin at an address that is not a multiple of 64";
  }
  if (size < sizeof(Header)) {
    return error->set(QPLAN_PLAN_CORRUPT)
           << "plan: " << static_cast<uint64_t>(size) << " bytes are fewer than the header's 64";
  }
  bytes_ = static_cast<const uint8_t*>(bytes);
  const Header& header = this->header();
  if (memcmp(header.magic, kMagic, sizeof(kMagic)) != 0) {
    return error->set(QPLAN_PLAN_CORRUPT) << "plan: the file does not begin with 'QPLN': it is not a plan";
  }
  if (!is_little_endian()) {
    return error->set(QPLAN_PLAN_VERSION) << "plan: plans are little-endian and this machine is not";
  }
  if (header.version_major != kVersionMajor) {
    return error->set(QPLAN_PLAN_VERSION) << "plan: format version " << uint32_t{header.version_major} << "."
                                          << uint32_t{header.version_minor} << " is not readable, expected "
                                          << uint32_t{kVersionMajor} << ".x; pack the model again";
  }
  const uint32_t unknown = header.required_features & ~kKnownFeatures;
  for (uint32_t bit = 0; bit < 32; ++bit) {
    if ((unknown >> bit & 1) != 0) {
      return error->set(QPLAN_PLAN_VERSION)
             << "plan: needs feature bit " << bit << ", which this runtime does not know; update the runtime";
    }
  }
  if (header.file_size > size) {
    return error->set(QPLAN_PLAN_CORRUPT)
           << "plan: truncated: " << static_cast<uint64_t>(size) << " bytes of " << header.file_size;
  }
  const uint64_t root_end = sizeof(Header) + uint64_t{header.root_size};
  if (root_end > header.content_size || header.content_size > header.file_size) {
    return error->set(QPLAN_PLAN_CORRUPT)
           << "plan: header: root ends at " << root_end << ", content at " << header.content_size
           << ", file at " << header.file_size << ": expected rising numbers";
  }
  return QPLAN_OK;
}

qplan_status PlanView::open_tables(const Checks& checks, Error* error) {
  const Header& header = this->header();
  plan_ = static_cast<const Plan*>(verified_root(bytes_ + sizeof(Header), header.root_size, kPlanTable));
  if (plan_ == nullptr) {
    return error->set(QPLAN_PLAN_CORRUPT)
           << "plan: the flatbuffer of " << header.root_size << " bytes after the header is damaged";
  }
  if (header.file_size > header.content_size) {
    const uint64_t begin = round_up(header.content_size, kFileAlignment);
    if (begin < header.file_size) {
      names_ =
          static_cast<const Names*>(verified_root(bytes_ + begin, header.file_size - begin, kNamesTable));
    }
    if (names_ == nullptr) {
      return error->set(QPLAN_PLAN_CORRUPT) << "plan: the names between byte " << header.content_size
                                            << " and " << header.file_size << " are damaged";
    }
  }
  PlanVerifier verifier(header, *plan_, names_, checks.npu_step, error);
  if (!verifier.names() || !verifier.banks() || !verifier.tensors() || !verifier.steps() ||
      !verifier.functions()) {
    return error->status();
  }
  main_bank_ = static_cast<uint8_t>(verifier.main_bank());
  const uint32_t leading = verifier.num_leading_tensors();
  num_leading_tensors_ = leading < UINT16_MAX ? static_cast<uint16_t>(leading) : uint16_t{UINT16_MAX};
  for (uint32_t i = 0; i < num_banks(); ++i) {
    if (bank(i).kind() == BankKind_CONSTANT) constant_banks_ = static_cast<uint8_t>(constant_banks_ | 1 << i);
  }
  return QPLAN_OK;
}

const void* PlanView::step_body(uint32_t i, StepBody type) const {
  const auto* steps = TableFields(plan_).vector<flatbuffers::Offset<Step>>(Plan::VT_STEPS);
  const TableFields step(steps->Get(i));
  return step.scalar<uint8_t>(Step::VT_BODY_TYPE) == type ? step.table(Step::VT_BODY) : nullptr;
}

const char* PlanView::tensor_name(uint32_t tensor) const {
  return names_ == nullptr ? "" : string_at(names_->tensors(), tensor);
}

const char* PlanView::step_name(uint32_t step) const {
  return names_ == nullptr ? "" : string_at(names_->steps(), step);
}

const Function* PlanView::find_function(const char* name) const {
  if (name == nullptr) name = kMainFunction;
  for (uint32_t i = 0; i < num_functions(); ++i) {
    if (same_text(function(i).name()->c_str(), name)) return &function(i);
  }
  return nullptr;
}

const void* PlanView::constant_data(uint32_t tensor_index) const {
  const TableFields t(&tensor(tensor_index));
  const auto bank_index = t.scalar<uint32_t>(Tensor::VT_BANK);
  if (!is_constant_bank(bank_index)) return nullptr;
  const uint64_t at = bank(bank_index).file_offset() + t.scalar<uint64_t>(Tensor::VT_OFFSET);
  return bytes_ + static_cast<size_t>(at);  // within the file
}

uint32_t PlanView::device_bank(uint32_t target, MemoryClass memory_class) const {
  const auto is_it = [&](const Bank& bank) {
    return bank.kind() == BankKind_DEVICE && bank.target() == target && bank.memory_class() == memory_class;
  };
  uint32_t i = 0;
  while (i < num_banks() && !is_it(bank(i))) ++i;
  return i;
}

uint32_t PlanView::npu_targets(const Function& function) const {
  uint32_t targets = 0;
  for (uint32_t i = 0; i < function.num_steps(); ++i) {
    const NpuStep* npu = npu_step(function.first_step() + i);
    if (npu != nullptr) targets |= uint32_t{1} << npu->target();
  }
  return targets;
}

uint64_t PlanView::state_bytes(const Function& function, uint64_t pointer_size) const {
  uint64_t bytes = 0;  // at most kMaxFunctionStates times kMaxElements times 8
  for (uint32_t i = 0; i < count_of(function.states()); ++i) {
    bytes += round_up(tensor(function.states()->Get(i)->input()).size(), part_alignment(pointer_size));
  }
  return bytes;
}

MemoryCounts PlanView::counts_without_args(const Function& function) const {
  MemoryCounts counts;
  counts.num_steps = function.num_steps();
  counts.num_tensors = num_tensors();
  counts.num_leading_tensors = num_leading_tensors();
  counts.scratch_in_arena = count_of(function.scratch_sizes()) > 0;
  counts.arena_bytes = bank(main_bank_).size();
  counts.scratch_bytes = function.scratch_per_worker();
  uint32_t targets = 0;
  for (uint32_t i = 0; has_npu_steps() && i < function.num_steps(); ++i) {
    const NpuStep* npu = npu_step(function.first_step() + i);
    if (npu == nullptr) continue;
    ++counts.num_regions;
    targets |= uint32_t{1} << npu->target();
  }
  for (; targets != 0; targets &= targets - 1) ++counts.num_devices;
  return counts;
}

uint64_t PlanView::kept_args_bytes_of(const Function& function) const {
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < function.num_steps(); ++i) {
    const uint32_t index = function.first_step() + i;
    if (npu_step(index) == nullptr) bytes += kKeptStepBytes + kept_args_bytes(step(index).kernel());
  }
  return bytes;
}

}  // namespace qplan::format
