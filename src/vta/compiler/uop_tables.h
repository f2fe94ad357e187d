// Micro-op tables: written once into DRAM, loaded into the chip's memory when an instruction needs them and
// they are not there.
#ifndef QPLAN_SRC_VTA_COMPILER_UOP_TABLES_H_
#define QPLAN_SRC_VTA_COMPILER_UOP_TABLES_H_

#include <cstdint>
#include <map>
#include <vector>

#include "src/vta/compiler/config.h"

namespace qplan::target::vta {

class UopTables {
 public:
  explicit UopTables(const Config& config) : config_(config) {}

  struct Place {
    uint32_t begin = 0;  // on the chip
    bool must_load = false;
    uint32_t dram = 0;  // element where the table lies in DRAM
  };
  // table: not empty. PackError (QPLAN_MODEL_UNSUPPORTED) where it is larger than the memory.
  Place use(const std::vector<::qplan::vta::Uop>& table);
  std::vector<uint8_t> bytes() const;

 private:
  struct Table {
    uint32_t dram = 0;
    uint32_t begin = 0, size = 0;
    bool is_resident = false;
  };
  const Config& config_;
  std::vector<uint32_t> words_;
  std::map<std::vector<uint32_t>, Table> tables_;  // by content
  uint32_t next_ = 0;                              // the memory is filled round and round
};

}  // namespace qplan::target::vta

#endif  // QPLAN_SRC_VTA_COMPILER_UOP_TABLES_H_
