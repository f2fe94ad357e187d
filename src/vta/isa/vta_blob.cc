#include "src/vta/isa/vta_blob.h"

#include <string.h>

#include "src/base/checked.h"
#include "src/base/error.h"
#include "src/vta/isa/vta.h"

namespace qplan::vta {
namespace {

constexpr uint32_t kNowhere = 0xffffffffu;

// As the numbers of a reason.
int64_t clamped(uint64_t number) {
  return number > uint64_t{INT64_MAX} ? INT64_MAX : static_cast<int64_t>(number);
}

// Where the first rule that was broken ends up.
class Refusal {
 public:
  explicit Refusal(qplan_npu_reason* why) : why_(why) {}

  // Starts the text; the caller appends with text() <<.
  bool refuse(BlobRule rule, uint32_t place, int64_t limit, int64_t actual,
              qplan_npu_status status = QPLAN_NPU_E_BLOB) {
    status_ = status;
    reason_.code = rule;
    reason_.place = place;
    reason_.limit = limit;
    reason_.actual = actual;
    return false;
  }
  Error& text() { return text_; }
  qplan_npu_status finish() {
    if (status_ == QPLAN_NPU_OK || why_ == nullptr) return status_;
    for (size_t i = 0; i + 1 < sizeof(reason_.text) && text_.text()[i] != '\0'; ++i) {
      reason_.text[i] = text_.text()[i];  // the rest is zero
    }
    *why_ = reason_;
    return status_;
  }

 private:
  qplan_npu_reason* why_;
  qplan_npu_reason reason_ = {};
  qplan_npu_status status_ = QPLAN_NPU_OK;
  Error text_;
};

// The bytes of what the micro-ops [begin, end) reach, for all that name the same ones in a row.
struct UopReach {
  uint32_t begin = 0;
  uint32_t end = 0;  // equal to begin: nothing is known
  uint32_t unwritten = 0;
  bool has_unwritten = false;
  uint32_t dst = 0;  // the largest of each
  uint32_t src = 0;
  uint32_t wgt = 0;
};

class Reader {
 public:
  Reader(const Config& config, Blob* blob, uint32_t* uops, uint8_t* written, Refusal* refusal)
      : config_(config), blob_(*blob), uops_(uops), written_(written), refusal_(*refusal) {}

  bool read(const uint8_t* bytes, uint64_t size) {
    return header(bytes, size) && sections(size) && regions() && labels() && instructions() && tokens();
  }

 private:
  bool header(const uint8_t* bytes, uint64_t size) {
    if (size < sizeof(BlobHeader)) {
      refusal_.text() << "vta blob: " << size << " bytes are less than its header's "
                      << uint64_t{sizeof(BlobHeader)};
      return refusal_.refuse(kBlobTruncated, kNowhere, sizeof(BlobHeader), static_cast<int64_t>(size));
    }
    blob_.bytes = bytes;
    memcpy(&blob_.header, bytes, sizeof(BlobHeader));
    const BlobHeader& h = blob_.header;
    if (h.magic != kBlobMagic) {
      refusal_.text() << "vta blob: magic " << h.magic << ", expected " << kBlobMagic << " ('VTA1')";
      return refusal_.refuse(kBlobMagicWrong, kNowhere, kBlobMagic, h.magic);
    }
    if (h.major != kBlobMajor) {
      refusal_.text() << "vta blob: version " << uint32_t{h.major} << ", this driver reads version "
                      << uint32_t{kBlobMajor} << "; pack the model again";
      return refusal_.refuse(kBlobVersion, kNowhere, kBlobMajor, h.major, QPLAN_NPU_E_VERSION);
    }
    if (h.total_bytes != size) {
      refusal_.text() << "vta blob: " << size << " bytes, its header says " << h.total_bytes;
      return refusal_.refuse(kBlobTruncated, kNowhere, static_cast<int64_t>(h.total_bytes),
                             static_cast<int64_t>(size));
    }
    const uint64_t sum = blob_checksum(bytes, size);
    if (h.checksum != sum) {
      refusal_.text() << "vta blob: the checksum differs from the header's; the bytes were damaged";
      return refusal_.refuse(kBlobChecksum, kNowhere, 0, 0);
    }
    const uint64_t hash = config_hash(config_);
    if (h.config_hash != hash) {
      refusal_.text() << "vta blob: made for another configuration than this device's '" << config_.name
                      << "'; pack for the sizes of this device";
      return refusal_.refuse(kBlobConfig, kNowhere, 0, 0, QPLAN_NPU_E_VERSION);
    }
    return true;
  }

  // Finds the sections; their bytes lie inside the blob afterwards.
  bool sections(uint64_t size) {
    const BlobHeader& h = blob_.header;
    uint64_t at = sizeof(BlobHeader);
    const auto take = [&](uint64_t count, uint64_t element, const uint8_t** section) {
      at = round_up(at, kBlobAlignment);       // at <= size + 15: cannot wrap
      const uint64_t bytes = count * element;  // 32 bits times 48
      if (at > size || bytes > size - at) return false;
      *section = blob_.bytes + at;
      at += bytes;
      return true;
    };
    const uint8_t* text = nullptr;
    if (h.reserved != 0 || h.num_regions > kMaxRegions || h.text_bytes == 0 ||
        !take(h.num_regions, sizeof(BlobRegion), &blob_.regions) ||
        !take(h.num_instructions, kInstructionBytes, &blob_.instructions) ||
        !take(h.num_relocations, sizeof(BlobRelocation), &blob_.relocations) ||
        !take(h.num_labels, sizeof(BlobLabel), &blob_.labels) || !take(h.text_bytes, 1, &text)) {
      refusal_.text() << "vta blob: the sections that its header counts do not fit into " << size << " bytes";
      return refusal_.refuse(kBlobLayout, kNowhere, static_cast<int64_t>(size), static_cast<int64_t>(at));
    }
    data_begin_ = round_up(at, kBlobAlignment);
    blob_.text = reinterpret_cast<const char*>(text);
    if (blob_.text[0] != '\0' || blob_.text[h.text_bytes - 1] != '\0') {
      refusal_.text() << "vta blob: its strings do not begin and end with NUL";
      return refusal_.refuse(kBlobLayout, kNowhere, 0, 0);
    }
    return true;
  }

  bool region_fails(uint32_t index, const char* what, uint64_t limit, uint64_t actual) {
    refusal_.text() << "vta blob: region " << index << ": " << what;
    if (limit != 0 || actual != 0) refusal_.text() << ": " << actual << ", expected " << limit;
    return refusal_.refuse(kBlobRegionRule, index, static_cast<int64_t>(limit), static_cast<int64_t>(actual));
  }

  bool regions() {
    const uint64_t size = blob_.header.total_bytes;
    for (uint32_t i = 0; i < blob_.header.num_regions; ++i) {
      const BlobRegion r = blob_region(blob_, i);
      if (r.kind > static_cast<uint32_t>(RegionKind::kScratch))
        return region_fails(i, "unknown kind", 4, r.kind);
      if ((r.flags & ~uint32_t{kRegionHasData | kRegionInitialised}) != 0)
        return region_fails(i, "unknown flags", 3, r.flags);
      if (r.reserved != 0) return region_fails(i, "the reserved field is not zero", 0, r.reserved);
      if (r.alignment < kBlobAlignment || r.alignment > kMaxRegionAlignment ||
          (r.alignment & (r.alignment - 1)) != 0) {
        return region_fails(i, "alignment is no power of two from 16 to 4096", 4096, r.alignment);
      }
      if (r.bytes == 0 || r.bytes > UINT32_MAX) return region_fails(i, "bytes", UINT32_MAX, r.bytes);
      if (r.name >= blob_.header.text_bytes) {
        return region_fails(i, "name is outside the strings", blob_.header.text_bytes, r.name);
      }
      if ((r.flags & kRegionHasData) == 0) {
        if (r.data_offset != 0 || r.data_bytes != 0)
          return region_fails(i, "data without its flag", 0, r.data_bytes);
        continue;
      }
      if (r.kind > static_cast<uint32_t>(RegionKind::kConstants)) {
        return region_fails(i, "only weights and constants may come with data", 1, r.kind);
      }
      if (r.data_bytes != r.bytes) return region_fails(i, "bytes of data", r.bytes, r.data_bytes);
      if (r.data_offset % kBlobAlignment != 0 || r.data_offset < data_begin_ || r.data_offset > size ||
          r.data_bytes > size - r.data_offset) {
        return region_fails(i, "its data is outside the blob's", size, r.data_offset);
      }
    }
    return true;
  }

  bool labels() {
    for (uint32_t i = 0; i < blob_.header.num_labels; ++i) {
      const BlobLabel label = blob_label(blob_, i);
      const bool ascends = i == 0 || blob_label(blob_, i - 1).instruction < label.instruction;
      if (ascends && label.instruction < blob_.header.num_instructions &&
          label.name < blob_.header.text_bytes)
        continue;
      refusal_.text() << "vta blob: label " << i << ": instruction " << label.instruction << ", name at "
                      << label.name << ": out of order or out of range";
      return refusal_.refuse(kBlobLabelRule, i, blob_.header.num_instructions, label.instruction);
    }
    return true;
  }

  bool instruction_fails(BlobRule rule, const char* what) { return instruction_fails(rule, what, 0, 0); }
  bool instruction_fails(BlobRule rule, const char* what, uint64_t limit, uint64_t actual) {
    refusal_.text() << "vta blob: instruction " << index_ << " (" << opcode_name(now_.opcode);
    if (is_memory(now_)) refusal_.text() << " " << memory_name(now_.memory);
    refusal_.text() << "): " << what;
    if (limit != 0 || actual != 0) refusal_.text() << ": " << actual << ", limit " << limit;
    return refusal_.refuse(rule, index_, static_cast<int64_t>(limit), static_cast<int64_t>(actual));
  }

  bool instructions() {
    const uint32_t count = blob_.header.num_instructions;
    uint32_t relocation = 0;
    memset(written_, 0, config_.uop_elements);
    for (index_ = 0; index_ < count; ++index_) {
      if (!decode(config_, blob_.instructions + uint64_t{index_} * kInstructionBytes, &now_)) {
        return instruction_fails(kBlobInstruction,
                                 "no instruction of this device: unknown opcode, memory or "
                                 "operation, or an undefined bit that is set");
      }
      if ((now_.opcode == Opcode::kFinish) != (index_ + 1 == count)) {
        return instruction_fails(kBlobFinish, "finish is allowed as the last instruction only", count - 1,
                                 index_);
      }
      if (is_memory(now_)) {
        const BlobRelocation* region = nullptr;
        BlobRelocation next = {};
        if (relocation < blob_.header.num_relocations) {
          next = blob_relocation(blob_, relocation);
          if (next.instruction == index_) {
            region = &next;
            ++relocation;
          }
        }
        if (!memory_instruction(region)) return false;
      } else if (now_.opcode != Opcode::kFinish && !loop_instruction()) {
        return false;
      }
    }
    if (count == 0) {
      refusal_.text() << "vta blob: no instructions; the last one is finish";
      return refusal_.refuse(kBlobFinish, 0, 1, 0);
    }
    if (relocation != blob_.header.num_relocations) {
      const BlobRelocation stray = blob_relocation(blob_, relocation);
      refusal_.text() << "vta blob: relocation " << relocation << ": instruction " << stray.instruction
                      << " touches no DRAM, or the list is out of order";
      return refusal_.refuse(kBlobRelocation, relocation, count, stray.instruction);
    }
    return true;
  }

  bool memory_instruction(const BlobRelocation* relocation) {
    if (now_.opcode == Opcode::kStore) {
      if (now_.memory != Memory::kOut)
        return instruction_fails(kBlobMemoryUse, "a store takes from out only");
      if (now_.y_pad_0 != 0 || now_.y_pad_1 != 0 || now_.x_pad_0 != 0 || now_.x_pad_1 != 0) {
        return instruction_fails(kBlobMemoryUse, "a store cannot pad");
      }
    } else if (now_.memory == Memory::kOut) {
      return instruction_fails(kBlobMemoryUse, "out cannot be loaded");
    }
    if (!is_no_op(now_)) {
      const uint64_t elements = memory_elements(config_, now_.memory);
      const uint64_t end = now_.sram_base + sram_extent(now_);
      if (end > elements)
        return instruction_fails(kBlobOnchipRange, "it ends past the memory", elements, end);
    }
    const uint64_t extent = dram_extent(now_);
    if (extent == 0) {
      if (relocation != nullptr)
        return instruction_fails(kBlobRelocation, "a relocation, but no DRAM is touched");
      return uops_loaded(nullptr);
    }
    if (relocation == nullptr)
      return instruction_fails(kBlobRelocation, "no relocation says which region it means");
    if (relocation->region >= blob_.header.num_regions) {
      return instruction_fails(kBlobRelocation, "region", blob_.header.num_regions, relocation->region);
    }
    const BlobRegion region = blob_region(blob_, relocation->region);
    const uint32_t element = element_bytes(now_.memory);
    const RegionKind kind = static_cast<RegionKind>(region.kind);
    if (now_.opcode == Opcode::kStore && kind != RegionKind::kOutput && kind != RegionKind::kScratch) {
      return instruction_fails(kBlobMemoryUse, "a store goes into outputs and scratch only");
    }
    if (region.alignment % element != 0) {
      return instruction_fails(kBlobMemoryUse, "alignment of the region is no multiple of the element",
                               element, region.alignment);
    }
    const uint64_t end = (now_.dram_base + extent) * element;
    if (end > region.bytes) {
      return instruction_fails(kBlobDramRange, "it ends past the region's bytes", region.bytes, end);
    }
    if (now_.memory != Memory::kUop) return true;
    if ((region.flags & kRegionHasData) == 0) {
      return instruction_fails(kBlobMemoryUse, "micro-ops come only from regions that the blob carries");
    }
    return uops_loaded(blob_.bytes + region.data_offset + uint64_t{now_.dram_base} * element);
  }

  // The micro-op memory after a LOAD. from: bytes of its first element; null where it only pads.
  bool uops_loaded(const uint8_t* from) {
    if (now_.memory != Memory::kUop || is_no_op(now_)) return true;
    reach_ = UopReach();
    const uint32_t row = uint32_t{now_.x_pad_0} + now_.x_size + now_.x_pad_1;
    const uint32_t rows = uint32_t{now_.y_pad_0} + now_.y_size + now_.y_pad_1;
    uint32_t at = now_.sram_base;
    for (uint32_t y = 0; y < rows; ++y) {
      for (uint32_t x = 0; x < row; ++x, ++at) {
        const uint32_t in_y = y - now_.y_pad_0, in_x = x - now_.x_pad_0;  // wrap where it pads
        uint32_t word = 0;
        if (in_y < now_.y_size && in_x < now_.x_size) {
          memcpy(&word, from + (uint64_t{in_y} * now_.x_stride + in_x) * kUopBytes, sizeof(word));
        }
        uops_[at] = word;
        written_[at] = 1;
      }
    }
    return true;
  }

  void find_reach() {
    if (reach_.begin == now_.uop_begin && reach_.end == now_.uop_end) return;
    reach_ = UopReach();
    reach_.begin = now_.uop_begin;
    reach_.end = now_.uop_end;
    for (uint32_t u = reach_.begin; u < reach_.end; ++u) {
      if (written_[u] == 0 && !reach_.has_unwritten) {
        reach_.has_unwritten = true;
        reach_.unwritten = u;
      }
      const Uop uop = decode(config_, uops_[u]);
      if (uop.dst > reach_.dst) reach_.dst = uop.dst;
      if (uop.src > reach_.src) reach_.src = uop.src;
      if (uop.wgt > reach_.wgt) reach_.wgt = uop.wgt;
    }
  }

  bool index_fits(const char* what, uint32_t uop, uint32_t out, uint32_t in, uint32_t elements) {
    const uint64_t last =
        uint64_t{uop} + uint64_t{now_.iter_out - 1u} * out + uint64_t{now_.iter_in - 1u} * in;
    return last < elements || instruction_fails(kBlobOnchipRange, what, elements - 1, last);
  }

  bool loop_instruction() {
    if (now_.uop_end > config_.uop_elements) {
      return instruction_fails(kBlobUopRange, "uop_end", config_.uop_elements, now_.uop_end);
    }
    if (iterations(now_) == 0) {
      return instruction_fails(kBlobLoop, "an empty loop; a no-op is a load or store of x_size 0");
    }
    find_reach();
    if (reach_.has_unwritten) {
      return instruction_fails(kBlobUopRange, "a micro-op that no load has written", 0, reach_.unwritten);
    }
    if (!work_fits()) return false;
    const bool is_alu = now_.opcode == Opcode::kAlu;
    if (!index_fits("acc index written", reach_.dst, now_.dst_factor_out, now_.dst_factor_in,
                    config_.acc_elements)) {
      return false;
    }
    if (is_alu) {  // by immediate too: a device may read the source and use the immediate
      return alu_instruction() && index_fits("acc index read", reach_.src, now_.src_factor_out,
                                             now_.src_factor_in, config_.acc_elements);
    }
    return now_.reset || (index_fits("inp index", reach_.src, now_.src_factor_out, now_.src_factor_in,
                                     config_.inp_elements) &&
                          index_fits("wgt index", reach_.wgt, now_.wgt_factor_out, now_.wgt_factor_in,
                                     config_.wgt_elements));
  }

  // Counts the instruction's micro-ops, which are at least one, against what the header declares.
  bool work_fits() {
    const uint64_t declared = blob_.header.estimated_cycles;
    const uint64_t limit = declared == 0 ? kMaxUndeclaredUops : declared;
    const uint64_t uops = iterations(now_);
    if (uops <= limit - uops_executed_) {  // uops_executed_ <= limit: no sum that could wrap
      uops_executed_ += uops;
      return true;
    }
    refusal_.text() << "vta blob: instruction " << index_ << " (" << opcode_name(now_.opcode) << "): " << uops
                    << " micro-ops, after " << uops_executed_ << " before it, exceed the ";
    if (declared == 0) {
      refusal_.text() << limit << " that a blob without an estimate may execute";
    } else {
      refusal_.text() << declared << " cycles that the blob declares; pack the model again";
    }
    return refusal_.refuse(kBlobWork, index_, clamped(limit), clamped(uops));
  }

  bool alu_instruction() {
    if (now_.reset) return instruction_fails(kBlobAluRule, "an alu instruction cannot reset");
    const bool shifts_left = now_.alu_op == AluOp::kShr && now_.use_imm && now_.imm < 0;
    if (!config_.has_multiply && (now_.alu_op == AluOp::kMul || shifts_left)) {
      return instruction_fails(kBlobAluRule, "this device has neither products nor shifts to the left");
    }
    if (now_.alu_op == AluOp::kShr && now_.use_imm && (now_.imm < -31 || now_.imm > 31)) {
      refusal_.text() << "vta blob: instruction " << index_ << " (alu): a shift by " << int32_t{now_.imm}
                      << ", from -31 to 31 is allowed";
      return refusal_.refuse(kBlobAluRule, index_, 31, now_.imm);
    }
    return true;
  }

  bool tokens() {
    struct Stream {
      const Config* config;
      const Blob* blob;
    };
    const Stream stream = {&config_, &blob_};
    const auto at = [](const void* user, uint32_t index, Instruction* instruction) {
      const Stream* s = static_cast<const Stream*>(user);
      // Every instruction was decoded before.
      (void)decode(*s->config, s->blob->instructions + uint64_t{index} * kInstructionBytes, instruction);
    };
    const TokenResult result = check_tokens(at, &stream, blob_.header.num_instructions);
    switch (result.fault) {
      case TokenFault::kNone:
        return finish_waits();
      case TokenFault::kNoSuchQueue:
        refusal_.text() << "vta blob: instruction " << result.instruction << ": module "
                        << module_name(result.module) << " has no such neighbour to exchange a token with";
        break;
      case TokenFault::kDeadlock:
        refusal_.text() << "vta blob: instruction " << result.instruction << ": module "
                        << module_name(result.module) << " waits for ever for a token from queue "
                        << queue_name(result.queue);
        break;
      case TokenFault::kLeftOver:
        refusal_.text() << "vta blob: queue " << queue_name(result.queue) << " ends with " << result.tokens
                        << " tokens that were never taken";
        return refusal_.refuse(kBlobTokens, kNowhere, 0, result.tokens);
    }
    return refusal_.refuse(kBlobTokens, result.instruction, 0, 0);
  }

  // Tokens are balanced: what the last store pushes, compute has taken when it comes to FINISH, its last
  // instruction.
  bool finish_waits() {
    for (index_ = blob_.header.num_instructions; index_-- > 0;) {
      (void)decode(config_, blob_.instructions + uint64_t{index_} * kInstructionBytes, &now_);
      if (now_.opcode != Opcode::kStore) continue;
      return now_.push_prev ||
             instruction_fails(kBlobFinish, "the last store pushes no token, so finish does not wait for it");
    }
    return true;
  }

  const Config& config_;
  Blob& blob_;
  uint32_t* uops_;
  uint8_t* written_;
  Refusal& refusal_;
  uint64_t data_begin_ = 0;
  uint32_t index_ = 0;
  uint64_t uops_executed_ = 0;
  Instruction now_;
  UopReach reach_;
};

}  // namespace

const char* region_kind_name(RegionKind kind) {
  switch (kind) {
    case RegionKind::kWeights:
      return "weights";
    case RegionKind::kConstants:
      return "constants";
    case RegionKind::kInput:
      return "input";
    case RegionKind::kOutput:
      return "output";
    case RegionKind::kScratch:
      return "scratch";
  }
  return "?";
}

// FNV-1a over 64-bit little-endian words, the checksum's own as zero; a last part is filled with zeros. A
// change of any single word changes the sum.
uint64_t blob_checksum(const uint8_t* blob, uint64_t bytes) {
  uint64_t sum = 14695981039346656037u;
  for (uint64_t at = 0; at < bytes; at += 8) {
    uint64_t word = 0;
    memcpy(&word, blob + at, static_cast<size_t>(bytes - at < 8 ? bytes - at : 8));
    if (at == offsetof(BlobHeader, checksum)) word = 0;
    sum = (sum ^ word) * 1099511628211u;
  }
  return sum;
}

BlobRegion blob_region(const Blob& blob, uint32_t index) {
  BlobRegion region;
  memcpy(&region, blob.regions + uint64_t{index} * sizeof(region), sizeof(region));
  return region;
}

BlobRelocation blob_relocation(const Blob& blob, uint32_t index) {
  BlobRelocation relocation;
  memcpy(&relocation, blob.relocations + uint64_t{index} * sizeof(relocation), sizeof(relocation));
  return relocation;
}

BlobLabel blob_label(const Blob& blob, uint32_t index) {
  BlobLabel label;
  memcpy(&label, blob.labels + uint64_t{index} * sizeof(label), sizeof(label));
  return label;
}

const char* blob_node(const Blob& blob, uint32_t instruction) {
  // The last label at or before the instruction.
  uint32_t low = 0, high = blob.header.num_labels;
  while (low < high) {
    const uint32_t middle = low + (high - low) / 2;
    if (blob_label(blob, middle).instruction <= instruction) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low == 0 ? "" : blob.text + blob_label(blob, low - 1).name;
}

const char* blob_region_name(const Blob& blob, uint32_t index) {
  return blob.text + blob_region(blob, index).name;
}

qplan_npu_status read_blob(const void* bytes, uint64_t size, const Config& config, void* scratch,
                           uint64_t scratch_bytes, Blob* blob, qplan_npu_reason* why) {
  Refusal refusal(why);
  if (scratch_bytes < blob_scratch_bytes(config)) {
    refusal.text() << "vta blob: scratch of " << scratch_bytes << " bytes, needed "
                   << blob_scratch_bytes(config);
    refusal.refuse(kBlobScratch, kNowhere, static_cast<int64_t>(blob_scratch_bytes(config)),
                   static_cast<int64_t>(scratch_bytes), QPLAN_NPU_E_ARGUMENT);
    return refusal.finish();
  }
  *blob = Blob();
  auto* uops = static_cast<uint32_t*>(scratch);
  auto* written = reinterpret_cast<uint8_t*>(uops + config.uop_elements);
  Reader reader(config, blob, uops, written, &refusal);
  reader.read(static_cast<const uint8_t*>(bytes), size);
  return refusal.finish();
}

}  // namespace qplan::vta
