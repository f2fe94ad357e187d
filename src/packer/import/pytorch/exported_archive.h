// An archive of torch.export.save (.pt2): a zip with the program as JSON, and the weights. Two forms exist:
//   PyTorch 2.6 and 2.7: serialized_exported_program.json, serialized_state_dict.pt, serialized_constants.pt
//   from 2.8 on, in one folder: archive_format ("pt2"), archive_version, models/<model>.json, and for weights
//     and constants data/weights/<model>.pt, or data/weights/<model>_weights_config.json, which says where
//     each tensor is in the files beside it
// A .pt file in the archive is a zip of torch.save: data.pkl and storages. The file is untrusted.
#ifndef QPLAN_SRC_PACKER_IMPORT_PYTORCH_EXPORTED_ARCHIVE_H_
#define QPLAN_SRC_PACKER_IMPORT_PYTORCH_EXPORTED_ARCHIVE_H_

#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "src/packer/import/pytorch/archive.h"
#include "src/packer/import/pytorch/value.h"
#include "src/packer/import/zip_archive.h"
#include "src/packer/ir/json.h"

namespace qplan::pt {

// Whether the zip is such an archive, or another file of the same family that ExportedArchive refuses.
bool is_exported(const importer::ZipArchive& zip);

class ExportedArchive {
 public:
  // Reads the program and the pickles. PackError: QPLAN_MODEL_INVALID for damage, QPLAN_MODEL_UNSUPPORTED for
  // versions that are not known and for archives without one program.
  explicit ExportedArchive(importer::ZipArchive zip);
  ExportedArchive(const ExportedArchive&) = delete;
  ExportedArchive& operator=(const ExportedArchive&) = delete;

  const ir::Json& program() const { return program_; }
  ValueTable& values() { return values_; }
  TensorReader& tensors() { return tensors_; }
  // The tensor of that name: a parameter or persistent buffer, or a constant. Throws PackError if the program
  // has no such tensor.
  Ref weight(const std::string& name) const { return find(weights_, name, "the state dict"); }
  Ref constant(const std::string& name) const { return find(constants_, name, "the constants"); }

 private:
  using Tensors = std::map<std::string, Ref, std::less<>>;
  struct Saved {
    Saved(std::span<const uint8_t> bytes, importer::ZipArchive* outer) : zip(bytes, outer) {}
    importer::ZipArchive zip;
    Ref value;  // of its pickle, which many names may name
  };

  static Ref find(const Tensors& tensors, const std::string& name, const char* where);
  void read_program(const std::string& entry);
  // A file of torch.save with a dict of tensors.
  Tensors read_dict(const std::string& entry);
  // <model>_weights_config.json and the files that it names.
  Tensors read_config(const std::string& config, const std::string& folder);
  Ref read_saved(const std::string& entry);
  std::span<const uint8_t> storage(const std::string& key);

  importer::ZipArchive zip_;
  std::string prefix_;
  ir::Json program_;
  ValueTable values_;
  TensorReader tensors_;
  std::map<std::string, Saved, std::less<>> saved_;  // zips in the zip, by entry
  Tensors weights_, constants_;
};

}  // namespace qplan::pt

#endif  // QPLAN_SRC_PACKER_IMPORT_PYTORCH_EXPORTED_ARCHIVE_H_
