// A TorchScript archive (.pt): a zip with data.pkl (the module), constants.pkl (CONSTANTS of the code),
// storages and code/**.py; and its pickles and tensors, which exported programs (exported_program.h) have
// too. The file is untrusted.
#ifndef QPLAN_SRC_PACKER_IMPORT_PYTORCH_ARCHIVE_H_
#define QPLAN_SRC_PACKER_IMPORT_PYTORCH_ARCHIVE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/packer/import/pytorch/script_parser.h"
#include "src/packer/import/pytorch/value.h"
#include "src/packer/import/zip_archive.h"

namespace qplan::pt {

// Contents of the tensors of an archive.
std::string to_string(ScalarType type);  // "qint8"
// The dtype of the elements.
ir::DType dtype_of(ScalarType type);

// The scales of a quantised tensor: one, or one per index of `axis`.
struct TensorScales {
  std::vector<float> scales;
  std::vector<int32_t> zero_points;
  std::optional<int64_t> axis;
};

class TensorReader {
 public:
  // The bytes of the storage with this key.
  using Storages = std::function<std::span<const uint8_t>(const std::string& key)>;

  // file_bytes: size of the archive, by which the contents of the tensors are limited.
  TensorReader(Storages storages, uint64_t file_bytes, const ValueTable& values)
      : storages_(std::move(storages)), file_bytes_(file_bytes), values_(values) {}
  TensorReader(importer::ZipArchive& archive, const ValueTable& values)
      : TensorReader([&archive](const std::string& key) { return archive.read(key); }, archive.size_bytes(),
                     values) {}

  ScalarType type(const Tensor& tensor) const;
  // Row-major, packed, whatever the strides. PackError where sizes, strides and offset do not fit the storage
  // or one another, and where the constants of the archive take more than a file of this size may hold.
  ir::ConstantRef read(const Tensor& tensor);
  // Elements as double; the type must be a floating-point or integer one. what: "the bias".
  std::vector<double> read_numbers(const Tensor& tensor, const std::string& what);
  // Reads the scales of a quantised tensor: positive finite float32 numbers, one or as many as the axis has
  // indices.
  TensorScales read_scales(const Tensor& tensor);

 private:
  std::vector<uint8_t> gather(const Tensor& tensor);

  Storages storages_;
  uint64_t file_bytes_;
  const ValueTable& values_;
  uint64_t charged_ = 0;
};

class Archive {
 public:
  // Reads both pickles. PackError: QPLAN_MODEL_INVALID for damage, QPLAN_MODEL_UNSUPPORTED for a zip that is
  // another kind of PyTorch file.
  explicit Archive(importer::ZipArchive zip);

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

  importer::ZipArchive zip_;
  std::string prefix_;  // "net/"
  ValueTable values_;
  TensorReader tensors_;
  Ref module_;
  std::vector<Ref> constants_;
  bool frozen_ = false;
  size_t num_tokens_ = 0;  // of files_
  std::map<std::string, std::unique_ptr<ScriptFile>, std::less<>> files_;
};

// All entries of a zip of PyTorch are in one folder, named after the file that was written: "net/", or "".
std::string prefix_of(const importer::ZipArchive& zip);

// The names that a pickle of an archive may use, and what calling one of them means.

// "torch._utils._rebuild_tensor_v2", "__torch__.Net", "torch.FloatStorage", ...
bool is_known_name(std::string_view name);
// A class of the archive, or one of torch.classes: "__torch__.…".
bool is_class_name(std::string_view name);
// The type of a storage: "torch.FloatStorage".
std::optional<ScalarType> storage_type(std::string_view name);
// The result of the named function for the arguments. PackError where it is no function or the arguments do
// not fit.
Ref build(std::string_view name, const std::vector<Ref>& arguments, ValueTable& values);

// Reads the pickles of TorchScript archives (data.pkl, constants.pkl) and of torch.save: protocol 2, the
// opcodes that PyTorch's own pickler writes. Nothing is looked up, imported or called: GLOBAL gives an inert
// name from a fixed list, REDUCE knows what a handful of those names build, and any other name is refused.

// The value that the pickle makes, in the table. storage_prefix: before the key of a storage in the archive's
// names, "net/constants/". PackError (QPLAN_MODEL_INVALID) with the byte at which something is wrong.
Ref read_pickle(std::span<const uint8_t> bytes, const std::string& storage_prefix, ValueTable& values);

}  // namespace qplan::pt

#endif  // QPLAN_SRC_PACKER_IMPORT_PYTORCH_ARCHIVE_H_
