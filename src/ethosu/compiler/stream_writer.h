// A region's program as bytes: kernels and transfers as words of a command stream, and the blob with the
// stream.
#ifndef QPLAN_SRC_ETHOSU_COMPILER_STREAM_WRITER_H_
#define QPLAN_SRC_ETHOSU_COMPILER_STREAM_WRITER_H_

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "src/ethosu/isa/blob.h"
#include "src/ethosu/isa/cost.h"
#include "src/ethosu/isa/kernel.h"
#include "src/ethosu/isa/stream.h"
#include "src/packer/target/region.h"

namespace qplan::ethosu::compiler {

// The node whose kernels begin at a word.
struct Label {
  uint32_t word = 0;
  std::string name;
};

using Operation = std::variant<Kernel, Transfer>;

class StreamWriter {
 public:
  // operations: gets those that are added, instead of the stream.
  explicit StreamWriter(const Config& config, std::vector<Operation>* operations = nullptr);

  void label(std::string name);
  // SHRAM registers, BLOCKDEP and waits are set here; the block is chosen.
  void add(Kernel kernel);
  // Table transfers wait for all kernels, and are waited for.
  void add(const Transfer& transfer);
  // With OP_STOP.
  std::vector<uint32_t> finish();

  const std::vector<Label>& labels() const { return labels_; }
  uint64_t cycles() const { return time_.cycles(); }
  // The least cycles of all operations if they ran one after the other, which blobs declare.
  uint64_t total_cycles() const { return total_; }
  uint32_t kernels() const { return kernels_; }

 private:
  // A SET that changes nothing is left out.
  void set(Cmd0 code, uint32_t value);
  void set(Cmd1 code, uint64_t value);
  void set_scale(Cmd1 code, const Scale& scale);
  void write(const Command& command);
  void wait_kernels(uint32_t unfinished);
  void wait_transfers(uint32_t unfinished);
  void set_map(const FeatureMap& map, Cmd0 zero_point, Cmd0 region, Cmd1 base);
  void set_window(const Kernel& kernel);
  void set_weights(const Kernel& kernel);
  void set_operands(const Kernel& kernel);
  void set_output(const Kernel& kernel);

  const Config& config_;
  const Memories memories_;
  std::vector<Operation>* added_;
  std::vector<uint32_t> words_;
  std::vector<Label> labels_;
  std::map<uint16_t, uint16_t> values0_;
  std::map<uint16_t, std::pair<uint16_t, uint32_t>> values1_;
  std::optional<Kernel> previous_;  // the kernel before; none: it has ended
  Unfinished unfinished_;
  TimeLine time_;
  uint32_t kernels_ = 0;
  uint64_t total_ = 0;
};

// ---- the blob

struct BlobParts {
  std::vector<BlobRegion> regions;  // data_offset is set here
  std::vector<BlobSlot> slots;
  std::vector<uint8_t> constants;  // of the region of that kind
  std::vector<uint8_t> payload;
  std::vector<Label> labels;
  uint64_t cycles = 0;
};
// Makes the regions say which memories the compiler reckoned with, and the plan's slots those of the regions
// that they are, and not copied to or from.
void state_memories(const Memories& memories, BlobParts* parts, std::vector<target::RegionSlot>* slots);
std::vector<uint8_t> payload_of(const Config& config, std::span<const uint32_t> stream);
std::vector<uint8_t> write_blob(const Config& config, const BlobParts& parts);

}  // namespace qplan::ethosu::compiler

#endif  // QPLAN_SRC_ETHOSU_COMPILER_STREAM_WRITER_H_
