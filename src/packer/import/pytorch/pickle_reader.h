// Reads the pickles of TorchScript archives (data.pkl, constants.pkl): protocol 2, the opcodes that PyTorch's
// own pickler writes. Nothing is looked up, imported or called: GLOBAL gives an inert name from a fixed list,
// REDUCE knows what a handful of those names build, and any other name is refused.
#ifndef QPLAN_SRC_PACKER_IMPORT_PYTORCH_PICKLE_READER_H_
#define QPLAN_SRC_PACKER_IMPORT_PYTORCH_PICKLE_READER_H_

#include <cstdint>
#include <span>
#include <string>

#include "src/packer/import/pytorch/value.h"

namespace qplan::pt {

// The value that the pickle makes, in the table. storage_prefix: before the key of a storage in the archive's
// names, "net/constants/". PackError (QPLAN_MODEL_INVALID) with the byte at which something is wrong.
Ref read_pickle(std::span<const uint8_t> bytes, const std::string& storage_prefix, ValueTable& values);

}  // namespace qplan::pt

#endif  // QPLAN_SRC_PACKER_IMPORT_PYTORCH_PICKLE_READER_H_
