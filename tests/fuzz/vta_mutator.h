// Mutants of VTA blobs that mostly still pass the reader: sections as vectors, instructions by their fields,
// and all offsets, sizes and the checksum made to agree.
#ifndef QPLAN_TESTS_FUZZ_VTA_MUTATOR_H_
#define QPLAN_TESTS_FUZZ_VTA_MUTATOR_H_

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "src/vta/isa/vta_blob.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/support/random.h"

namespace qplan::testing {

class VtaMutator {
 public:
  explicit VtaMutator(unsigned int seed) : random_(seed) {}

  // A mutant of a blob, at most max_size bytes.
  size_t run(uint8_t* data, size_t size, size_t max_size) {
    Parts parts;
    if (random_.chance(0.05) || !parts.read(data, size)) return LLVMFuzzerMutate(data, size, max_size);
    for (int64_t count = random_.integer(1, 3); count > 0; --count) change(&parts);
    const std::vector<uint8_t> bytes = parts.write();
    if (bytes.size() > max_size) return LLVMFuzzerMutate(data, size, max_size);
    std::copy(bytes.begin(), bytes.end(), data);
    return bytes.size();
  }

  // Changes one field of an instruction; also of streams outside a blob.
  void change(vta::Instruction* i) {
    const auto small = [this](auto* field) {
      using T = std::remove_reference_t<decltype(*field)>;
      const int64_t kind = random_.integer(0, 4);
      if (kind == 0) *field = static_cast<T>(random_.integer(0, 4));
      if (kind == 1) *field = static_cast<T>(*field + random_.integer(-2, 2));
      if (kind == 2) *field = static_cast<T>(*field * 2);
      if (kind == 3) *field = static_cast<T>(random_.integer(0, 2047));
      if (kind == 4) *field = static_cast<T>(uint64_t{1} << random_.integer(0, 15));
    };
    switch (random_.integer(0, 22)) {
      case 0:
        i->pop_prev = !i->pop_prev;
        return;
      case 1:
        i->pop_next = !i->pop_next;
        return;
      case 2:
        i->push_prev = !i->push_prev;
        return;
      case 3:
        i->push_next = !i->push_next;
        return;
      case 4:
        i->memory = static_cast<vta::Memory>(random_.integer(0, 5));
        return;
      case 5:
        small(&i->sram_base);
        return;
      case 6:
        small(&i->dram_base);
        return;
      case 7:
        small(&i->y_size);
        return;
      case 8:
        small(&i->x_size);
        return;
      case 9:
        small(&i->x_stride);
        return;
      case 10:
        i->y_pad_0 = static_cast<uint8_t>(random_.integer(0, 15));
        return;
      case 11:
        i->y_pad_1 = static_cast<uint8_t>(random_.integer(0, 15));
        return;
      case 12:
        i->x_pad_0 = static_cast<uint8_t>(random_.integer(0, 15));
        return;
      case 13:
        i->x_pad_1 = static_cast<uint8_t>(random_.integer(0, 15));
        return;
      case 14:
        i->reset = !i->reset;
        return;
      case 15:
        small(random_.chance(0.5) ? &i->uop_begin : &i->uop_end);
        return;
      case 16:
        small(random_.chance(0.5) ? &i->iter_out : &i->iter_in);
        return;
      case 17:
        small(random_.chance(0.5) ? &i->dst_factor_out : &i->dst_factor_in);
        return;
      case 18:
        small(random_.chance(0.5) ? &i->src_factor_out : &i->src_factor_in);
        return;
      case 19:
        small(random_.chance(0.5) ? &i->wgt_factor_out : &i->wgt_factor_in);
        return;
      case 20:
        i->alu_op = static_cast<vta::AluOp>(random_.integer(0, 4));
        return;
      case 21:
        i->use_imm = !i->use_imm;
        return;
      default:
        i->imm = static_cast<int16_t>(random_.integer(-32768, 32767));
    }
  }

 private:
  struct Parts {
    vta::BlobHeader header{};
    std::vector<vta::BlobRegion> regions;
    std::vector<vta::Instruction> stream;
    std::vector<vta::BlobRelocation> relocations;
    std::vector<vta::BlobLabel> labels;
    std::vector<uint8_t> text;
    std::vector<std::vector<uint8_t>> data;  // of each region

    bool read(const uint8_t* bytes, size_t size) {
      if (size < sizeof(header)) return false;
      std::memcpy(&header, bytes, sizeof(header));
      size_t at = sizeof(header);
      std::vector<uint8_t> instructions;
      if (header.num_instructions > 4096 || !take(bytes, size, header.num_regions, &at, &regions) ||
          !take(bytes, size, header.num_instructions * vta::kInstructionBytes, &at, &instructions) ||
          !take(bytes, size, header.num_relocations, &at, &relocations) ||
          !take(bytes, size, header.num_labels, &at, &labels) ||
          !take(bytes, size, header.text_bytes, &at, &text)) {
        return false;
      }
      stream.resize(header.num_instructions);
      for (size_t i = 0; i < stream.size(); ++i) {
        if (!decode(vta::kDefaultConfig, &instructions[i * vta::kInstructionBytes], &stream[i])) return false;
      }
      for (const vta::BlobRegion& region : regions) {
        data.emplace_back();
        if ((region.flags & vta::kRegionHasData) == 0) continue;
        if (region.data_offset > size || region.data_bytes > size - region.data_offset) return false;
        data.back().assign(bytes + region.data_offset, bytes + region.data_offset + region.data_bytes);
      }
      return true;
    }

    std::vector<uint8_t> write() {
      std::vector<uint8_t> instructions(stream.size() * vta::kInstructionBytes);
      uint64_t work = 0;
      for (size_t i = 0; i < stream.size(); ++i) {
        // A field that is too wide for the device is no instruction; the reader is asked about the others.
        if (!encode(vta::kDefaultConfig, stream[i], &instructions[i * vta::kInstructionBytes])) {
          (void)encode(vta::kDefaultConfig, vta::Instruction(), &instructions[i * vta::kInstructionBytes]);
        } else if (!vta::is_memory(stream[i])) {
          work += vta::iterations(stream[i]);
        }
      }
      // The reader bounds the work of a blob by what its header declares.
      header.estimated_cycles = std::max(header.estimated_cycles, work);
      header.num_regions = static_cast<uint32_t>(regions.size());
      header.num_instructions = static_cast<uint32_t>(stream.size());
      header.num_relocations = static_cast<uint32_t>(relocations.size());
      header.num_labels = static_cast<uint32_t>(labels.size());
      header.text_bytes = static_cast<uint32_t>(text.size());
      std::vector<uint8_t> blob(sizeof(header));
      const size_t regions_at = append(&blob, regions);
      append(&blob, instructions);
      append(&blob, relocations);
      append(&blob, labels);
      append(&blob, text);
      for (size_t i = 0; i < regions.size(); ++i) {
        if ((regions[i].flags & vta::kRegionHasData) == 0) continue;
        regions[i].data_bytes = data[i].size();
        regions[i].data_offset = append(&blob, data[i]);
      }
      if (!regions.empty())
        std::memcpy(&blob[regions_at], regions.data(), regions.size() * sizeof(regions[0]));
      header.total_bytes = blob.size();
      std::memcpy(blob.data(), &header, sizeof(header));
      const uint64_t sum = vta::blob_checksum(blob.data(), blob.size());
      std::memcpy(blob.data() + offsetof(vta::BlobHeader, checksum), &sum, sizeof(sum));
      return blob;
    }

   private:
    static size_t aligned(size_t at) {
      return (at + vta::kBlobAlignment - 1) / vta::kBlobAlignment * vta::kBlobAlignment;
    }
    template <typename T>
    static bool take(const uint8_t* bytes, size_t size, uint32_t count, size_t* at, std::vector<T>* to) {
      *at = aligned(*at);
      if (*at > size || count > (1u << 20) || count * sizeof(T) > size - *at) return false;
      to->resize(count);
      if (count > 0) std::memcpy(static_cast<void*>(to->data()), bytes + *at, count * sizeof(T));
      *at += count * sizeof(T);
      return true;
    }
    template <typename T>
    static size_t append(std::vector<uint8_t>* blob, const std::vector<T>& records) {
      blob->resize(aligned(blob->size()));
      const size_t at = blob->size();
      const size_t size = records.size() * sizeof(T);
      blob->resize(at + size);
      if (size > 0) std::memcpy(blob->data() + at, records.data(), size);
      return at;
    }
  };

  size_t below(size_t end) {
    return end == 0 ? 0 : static_cast<size_t>(random_.integer(0, static_cast<int64_t>(end) - 1));
  }

  // Relocations and labels after a change of the stream's length.
  static void shift(Parts* parts, size_t from, int by) {
    for (vta::BlobRelocation& r : parts->relocations) {
      if (r.instruction >= from)
        r.instruction = static_cast<uint32_t>(static_cast<int64_t>(r.instruction) + by);
    }
    for (vta::BlobLabel& l : parts->labels) {
      if (l.instruction >= from)
        l.instruction = static_cast<uint32_t>(static_cast<int64_t>(l.instruction) + by);
    }
  }

  void change(Parts* parts) {
    if (parts->stream.empty() || parts->regions.empty()) return;
    const size_t i = below(parts->stream.size());
    switch (below(10)) {
      case 0: {  // an instruction once more, after itself, with its relocation
        if (parts->stream.size() > 200) return;
        const auto r = std::find_if(parts->relocations.begin(), parts->relocations.end(),
                                    [&](const vta::BlobRelocation& x) { return x.instruction == i; });
        const bool relocated = r != parts->relocations.end();
        vta::BlobRelocation copy = relocated ? *r : vta::BlobRelocation();
        shift(parts, i + 1, 1);
        parts->stream.insert(parts->stream.begin() + static_cast<std::ptrdiff_t>(i), parts->stream[i]);
        if (!relocated) return;
        copy.instruction = static_cast<uint32_t>(i + 1);
        parts->relocations.push_back(copy);
        std::sort(parts->relocations.begin(), parts->relocations.end(),
                  [](const auto& a, const auto& b) { return a.instruction < b.instruction; });
        return;
      }
      case 1:
        if (parts->stream.size() < 2) return;
        std::erase_if(parts->relocations, [&](const vta::BlobRelocation& x) { return x.instruction == i; });
        parts->stream.erase(parts->stream.begin() + static_cast<std::ptrdiff_t>(i));
        shift(parts, i + 1, -1);
        return;
      case 2: {
        vta::BlobRegion& region = parts->regions[below(parts->regions.size())];
        if (random_.chance(0.3)) region.kind = static_cast<uint32_t>(below(6));
        if (random_.chance(0.3)) region.flags = static_cast<uint32_t>(below(4));
        if (random_.chance(0.4)) region.bytes = static_cast<uint64_t>(random_.integer(0, 4096));
        if (random_.chance(0.2)) region.alignment = 16u << below(9);
        return;
      }
      case 3: {
        std::vector<uint8_t>& bytes = parts->data[below(parts->data.size())];
        if (!bytes.empty())
          bytes[below(bytes.size())] = static_cast<uint8_t>(below(random_.chance(0.5) ? 4 : 256));
        return;
      }
      case 4:
        if (parts->relocations.empty()) return;
        parts->relocations[below(parts->relocations.size())].region =
            static_cast<uint32_t>(below(parts->regions.size()));
        return;
      case 5: {  // more of what a region holds
        const size_t r = below(parts->regions.size());
        vta::BlobRegion& region = parts->regions[r];
        region.bytes = std::min<uint64_t>(region.bytes * 2 + 16, 8192);
        if ((region.flags & vta::kRegionHasData) != 0) parts->data[r].resize(region.bytes, 1);
        return;
      }
      default:
        change(&parts->stream[i]);
    }
  }

  Random random_;
};

}  // namespace qplan::testing

#endif  // QPLAN_TESTS_FUZZ_VTA_MUTATOR_H_
