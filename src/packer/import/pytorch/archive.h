// A TorchScript archive (.pt): a zip with data.pkl (the module), constants.pkl (CONSTANTS of the code),
// storages and code/**.py. The file is untrusted.
#ifndef QPLAN_SRC_PACKER_IMPORT_PYTORCH_ARCHIVE_H_
#define QPLAN_SRC_PACKER_IMPORT_PYTORCH_ARCHIVE_H_

#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/packer/import/pytorch/script_parser.h"
#include "src/packer/import/pytorch/tensor_reader.h"
#include "src/packer/import/pytorch/value.h"
#include "src/packer/import/pytorch/zip_archive.h"

namespace qplan::pt {

class Archive {
 public:
  // Reads both pickles. PackError: QPLAN_MODEL_INVALID for damage, QPLAN_MODEL_UNSUPPORTED for a zip that is
  // another kind of PyTorch file.
  explicit Archive(std::span<const uint8_t> bytes);

  ValueTable& values() { return values_; }
  TensorReader& tensors() { return tensors_; }
  Ref module() const { return module_; }      // an Object
  Ref constant(std::string_view name) const;  // "c12"; PackError where there is none
  bool is_frozen() const { return frozen_; }  // the module holds no parameters and no other modules

  // "__torch__.torch.nn.functional.relu6", and method "forward" of class "__torch__.Net"; null where the
  // archive has no code for it. PackError where its file cannot be read.
  const FunctionBody* find_function(std::string_view qualified_name);
  const FunctionBody* find_method(std::string_view class_name, std::string_view method);

 private:
  ScriptFile* find_file(std::string_view qualified_name);

  ZipArchive zip_;
  std::string prefix_;  // "net/"
  ValueTable values_;
  TensorReader tensors_;
  Ref module_;
  std::vector<Ref> constants_;
  bool frozen_ = false;
  size_t num_tokens_ = 0;  // of files_
  std::map<std::string, std::unique_ptr<ScriptFile>, std::less<>> files_;
};

}  // namespace qplan::pt

#endif  // QPLAN_SRC_PACKER_IMPORT_PYTORCH_ARCHIVE_H_
