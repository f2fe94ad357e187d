#include "src/packer/import/tflite/model_file.h"

#include <algorithm>
#include <cstring>

#include "src/packer/ir/cat.h"
#include "src/packer/ir/types.h"

namespace qplan::tfl {
namespace {

// ---- sparse constants: the elements that are stored, put where they belong between zeros. The file says for
// each level, from the outermost on, whether all its indices are there or a list of them, and which axis of
// the tensor, or of the blocks that it is cut into, the level goes along.

int64_t entry(tflite::SparseIndexVector type, const void* values, size_t i) {
  const auto at = [&](const auto* vector) -> int64_t {
    if (vector->values() == nullptr || i >= vector->values()->size())
      invalid("a list of its indices is too short");
    return vector->values()->Get(static_cast<flatbuffers::uoffset_t>(i));
  };
  switch (type) {
    case tflite::SparseIndexVector_Int32Vector:
      return at(static_cast<const tflite::Int32Vector*>(values));
    case tflite::SparseIndexVector_Uint16Vector:
      return at(static_cast<const tflite::Uint16Vector*>(values));
    case tflite::SparseIndexVector_Uint8Vector:
      return at(static_cast<const tflite::Uint8Vector*>(values));
    default:
      invalid("a list of its indices is missing");
  }
}

// One level: an axis of the tensor, or of its blocks.
struct Level {
  const tflite::DimensionMetadata* metadata;
  size_t axis;     // of the tensor
  int64_t extent;  // indices that there may be
  int64_t scale;   // elements of the axis from one index to the next
};

std::vector<Level> read_levels(const tflite::SparsityParameters& sparsity, const ir::Shape& shape) {
  const auto* order = sparsity.traversal_order();
  const auto* metadata = sparsity.dim_metadata();
  const auto* blocks = sparsity.block_map();
  const size_t num_blocks = blocks == nullptr ? 0 : blocks->size(), rank = shape.size();
  if (order == nullptr || metadata == nullptr || order->size() != rank + num_blocks ||
      metadata->size() != order->size()) {
    invalid("its description has not one level for each axis");
  }
  if (num_blocks > rank) invalid("it has more blocks than axes");
  std::vector<int64_t> block_extents(rank, 1);
  std::vector<bool> is_cut(rank);
  for (size_t i = 0; i < order->size(); ++i) {
    const auto at = static_cast<flatbuffers::uoffset_t>(i);
    const int32_t axis = order->Get(at);
    if (axis < 0 || static_cast<size_t>(axis) >= order->size() || metadata->Get(at) == nullptr)
      invalid("its description names an axis that it does not have");
    if (static_cast<size_t>(axis) < rank) continue;
    const int32_t of = blocks->Get(static_cast<flatbuffers::uoffset_t>(static_cast<size_t>(axis) - rank));
    const int64_t extent = metadata->Get(at)->dense_size();
    if (of < 0 || static_cast<size_t>(of) >= rank || extent < 1 || extent > shape[static_cast<size_t>(of)] ||
        shape[static_cast<size_t>(of)] % extent != 0 || is_cut[static_cast<size_t>(of)])
      invalid("its blocks do not divide it");
    is_cut[static_cast<size_t>(of)] = true;
    block_extents[static_cast<size_t>(of)] = extent;
  }
  std::vector<Level> levels;
  std::vector<bool> seen(order->size());
  for (size_t i = 0; i < order->size(); ++i) {
    const auto at = static_cast<flatbuffers::uoffset_t>(i);
    const auto axis = static_cast<size_t>(order->Get(at));
    if (seen[axis]) invalid("its description names an axis twice");
    seen[axis] = true;
    if (axis < rank) {
      levels.push_back({metadata->Get(at), axis, shape[axis] / block_extents[axis], block_extents[axis]});
    } else {
      const auto of = static_cast<size_t>(blocks->Get(static_cast<flatbuffers::uoffset_t>(axis - rank)));
      levels.push_back({metadata->Get(at), of, block_extents[of], 1});
    }
  }
  return levels;
}

class Filler {
 public:
  Filler(std::vector<Level> levels, const ir::TensorType& type, std::span<const uint8_t> values)
      : levels_(std::move(levels)),
        element_bytes_(type.dtype.bits / 8U),
        values_(values),
        strides_(type.shape.size(), 1),
        bytes_(static_cast<size_t>(type.size_bytes())) {
    for (size_t i = type.shape.size(); i-- > 1;) strides_[i - 1] = strides_[i] * type.shape[i];
  }

  std::vector<uint8_t> run() && {
    fill(0, 0, 0);
    if (next_ * element_bytes_ != values_.size()) invalid("it has more elements than its description");
    return std::move(bytes_);
  }

 private:
  // parent: the position among all of the level before that has indices here.
  void fill(size_t level, size_t parent, int64_t offset) {
    if (level == levels_.size()) return store(offset);
    const Level& l = levels_[level];
    const int64_t step = l.scale * strides_[l.axis];
    if (l.metadata->format() == tflite::DimensionType_DENSE) {
      const auto extent = static_cast<size_t>(l.extent);
      for (size_t i = 0; i < extent; ++i)
        fill(level + 1, parent * extent + i, offset + static_cast<int64_t>(i) * step);
      return;
    }
    const auto segment = [&](size_t i) {
      return entry(l.metadata->array_segments_type(), l.metadata->array_segments(), i);
    };
    const int64_t begin = segment(parent), end = segment(parent + 1);
    if (begin < 0 || end < begin || end - begin > l.extent) invalid("a list of its indices is broken");
    int64_t last = -1;
    for (int64_t i = begin; i < end; ++i) {
      const int64_t index =
          entry(l.metadata->array_indices_type(), l.metadata->array_indices(), static_cast<size_t>(i));
      if (index <= last || index >= l.extent) invalid("its indices do not increase, or are out of range");
      last = index;
      fill(level + 1, static_cast<size_t>(i), offset + index * step);
    }
  }

  void store(int64_t offset) {
    const size_t from = next_++ * element_bytes_, to = static_cast<size_t>(offset) * element_bytes_;
    if (from + element_bytes_ > values_.size()) invalid("it has fewer elements than its description");
    std::memcpy(&bytes_[to], &values_[from], element_bytes_);
  }

  std::vector<Level> levels_;
  size_t element_bytes_;
  std::span<const uint8_t> values_;
  std::vector<int64_t> strides_;
  std::vector<uint8_t> bytes_;
  size_t next_ = 0;
};

std::vector<uint8_t> densified(const tflite::SparsityParameters& sparsity, std::span<const uint8_t> values,
                               const ir::TensorType& type) {
  if (type.dtype.bits < 8 || type.dtype.lanes != 1) throw Unsupported{"a sparse constant of such a type"};
  return Filler(read_levels(sparsity, type.shape), type, values).run();
}

// ---- the file

constexpr uint32_t kVersion = 3;
// Enough for networks of some 100,000 operators; bounds the time that verification takes.
constexpr uint32_t kMaxTables = 4'000'000;
constexpr uint32_t kMaxDepth = 16;

std::optional<ir::DType> ir_dtype(tflite::TensorType type) {
  switch (type) {
    case tflite::TensorType_FLOAT32:
      return ir::kFloat32;
    case tflite::TensorType_FLOAT16:
      return ir::DType{kDLFloat, 16, 1};
    case tflite::TensorType_FLOAT64:
      return ir::DType{kDLFloat, 64, 1};
    case tflite::TensorType_INT4:
      return ir::kInt4;
    case tflite::TensorType_INT8:
      return ir::kInt8;
    case tflite::TensorType_UINT8:
      return ir::kUint8;
    case tflite::TensorType_INT16:
      return ir::kInt16;
    case tflite::TensorType_UINT16:
      return ir::DType{kDLUInt, 16, 1};
    case tflite::TensorType_INT32:
      return ir::kInt32;
    case tflite::TensorType_UINT32:
      return ir::DType{kDLUInt, 32, 1};
    case tflite::TensorType_INT64:
      return ir::kInt64;
    case tflite::TensorType_UINT64:
      return ir::DType{kDLUInt, 64, 1};
    case tflite::TensorType_BOOL:
      return ir::kBool;
    default:
      return std::nullopt;
  }
}

// Shape and, where the type is known, the size; throws with a text that begins after the tensor's name.
void read_shape(const tflite::Tensor& tensor, TensorInfo* info) {
  const auto* shape = tensor.shape();
  if (shape != nullptr) {
    if (shape->size() > ir::kMaxRank) {
      invalid("rank " + std::to_string(shape->size()) + " is larger than " + std::to_string(ir::kMaxRank));
    }
    info->shape.assign(shape->begin(), shape->end());
  }
  // Extents that the model leaves open are -1 in the signature, and 1, or -1 too, in the shape.
  const auto* signature = tensor.shape_signature();
  const bool has_signature = signature != nullptr && signature->size() == info->shape.size();
  for (size_t i = 0; i < info->shape.size(); ++i) {
    const bool open = info->shape[i] == -1 ||
                      (has_signature && signature->Get(static_cast<flatbuffers::uoffset_t>(i)) == -1);
    if (!open) continue;
    info->open.resize(info->shape.size());
    info->open[i] = true;
    if (info->shape[i] == -1) info->shape[i] = 1;
  }
  info->has_shape = !info->shape.empty() || tensor.has_rank();
  info->has_open_rank = info->shape.empty() && signature != nullptr && signature->size() > 0;
  info->is_empty = info->dtype && std::ranges::find(info->shape, 0) != info->shape.end();
  if (info->is_empty) return;
  const std::string error = ir::type_error({info->dtype.value_or(ir::kFloat32), info->shape});
  if (!error.empty()) invalid(error);
}

}  // namespace

std::string type_name(tflite::TensorType type) {
  const std::optional<ir::DType> dtype = ir_dtype(type);
  if (dtype) return ir::to_string(*dtype);
  std::string name = tflite::EnumNameTensorType(type);
  if (name.empty()) return "type " + std::to_string(type);
  std::ranges::transform(name, name.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c; });
  return name;
}

bool TensorInfo::may_have(const ir::Shape& found) const {
  if (!has_shape || found == shape) return true;
  if (found.size() != shape.size() || open.empty()) return false;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (!open[i] && found[i] != shape[i]) return false;
  }
  return true;
}

ModelFile::ModelFile(std::span<const uint8_t> bytes)
    : bytes_(bytes), expanded_bytes_(std::make_shared<uint64_t>(0)) {
  // The root offset and the identifier; a verifier that is given less reads nothing.
  if (bytes.size() < 8) {
    invalid("the file has " + std::to_string(bytes.size()) +
            " bytes, which is too short for a .tflite model");
  }
  if (std::memcmp(bytes.data() + 4, "TFL3", 4) != 0) {
    invalid("the file identifier is not \"TFL3\": this is not a .tflite model");
  }
  if (reinterpret_cast<uintptr_t>(bytes.data()) % alignof(uint64_t) != 0) {
    aligned_copy_.resize((bytes.size() + 7) / 8);
    std::memcpy(aligned_copy_.data(), bytes.data(), bytes.size());
    bytes_ = {reinterpret_cast<const uint8_t*>(aligned_copy_.data()), bytes.size()};
  }
  // Offsets of a flatbuffer reach 2 GiB; larger files store their constants after it.
  const size_t flatbuffer_size = std::min<size_t>(bytes_.size(), FLATBUFFERS_MAX_BUFFER_SIZE - 1);
  flatbuffers::Verifier verifier(bytes_.data(), flatbuffer_size, kMaxDepth, kMaxTables);
  if (!tflite::VerifyModelBuffer(verifier)) invalid("the flatbuffer is damaged or truncated");
  model_ = tflite::GetModel(bytes_.data());

  if (model_->version() != kVersion) {
    invalid("schema version " + std::to_string(model_->version()) + ", expected " + std::to_string(kVersion));
  }
  if (num_subgraphs() == 0) invalid("the model has no subgraph");
  auto metadata = std::make_shared<std::map<std::string_view, uint32_t>>();
  if (model_->metadata() != nullptr) {
    for (const tflite::Metadata* entry : *model_->metadata()) {
      // Where two entries have the same name, the first one counts.
      if (entry->name() != nullptr) metadata->emplace(entry->name()->string_view(), entry->buffer());
    }
  }
  metadata_ = std::move(metadata);
  open_subgraph(0);
}

ModelFile::ModelFile(const ModelFile& file, size_t subgraph)
    : bytes_(file.bytes_),
      model_(file.model_),
      metadata_(file.metadata_),
      expanded_bytes_(file.expanded_bytes_) {
  open_subgraph(subgraph);
}

void ModelFile::open_subgraph(size_t index) {
  graph_ = model_->subgraphs()->Get(static_cast<flatbuffers::uoffset_t>(index));
  if (graph_->tensors() != nullptr) tensors_.resize(graph_->tensors()->size());
  const auto copy = [&](const flatbuffers::Vector<int32_t>* indices, std::vector<int32_t>* to) {
    if (indices != nullptr) to->assign(indices->begin(), indices->end());
  };
  copy(graph_->inputs(), &inputs_);
  copy(graph_->outputs(), &outputs_);
}

size_t ModelFile::num_subgraphs() const {
  return model_->subgraphs() == nullptr ? 0 : model_->subgraphs()->size();
}

size_t ModelFile::num_operators() const {
  return graph_->operators() == nullptr ? 0 : graph_->operators()->size();
}

const tflite::Operator& ModelFile::op(size_t index) const {
  return *graph_->operators()->Get(static_cast<flatbuffers::uoffset_t>(index));
}

const TensorInfo& ModelFile::tensor(int32_t index) {
  if (index < 0 || static_cast<size_t>(index) >= tensors_.size()) {
    invalid("tensor index " + std::to_string(index) + " is out of range: there are " +
            std::to_string(tensors_.size()) + " tensors");
  }
  std::unique_ptr<TensorInfo>& slot = tensors_[static_cast<size_t>(index)];
  if (slot) return *slot;

  const tflite::Tensor& tensor = *graph_->tensors()->Get(static_cast<flatbuffers::uoffset_t>(index));
  auto info = std::make_unique<TensorInfo>();
  info->index = index;
  if (tensor.name() != nullptr) info->name = clean_name(tensor.name()->string_view());
  info->file_type = tensor.type();
  info->dtype = ir_dtype(tensor.type());
  info->is_variable = tensor.is_variable();
  info->quantization = tensor.quantization();
  try {
    read_shape(tensor, info.get());
    info->data = buffer(tensor.buffer());
    if (info->is_constant() && info->dtype && tensor.sparsity() != nullptr) {
      const ir::TensorType type = {*info->dtype, info->shape};
      count_expanded(static_cast<uint64_t>(type.size_bytes()));
      info->dense = densified(*tensor.sparsity(), info->data, type);
      info->data = info->dense;
    }
    if (info->is_constant() && info->dtype) {
      const int64_t expected = ir::TensorType{*info->dtype, info->shape}.size_bytes();
      if (static_cast<int64_t>(info->data.size()) != expected) {
        invalid("its buffer has " + std::to_string(info->data.size()) + " bytes, expected " +
                std::to_string(expected) + " for " + type_name(info->file_type) + " " + to_text(info->shape));
      }
      if (*info->dtype == ir::kInt4) {
        count_expanded(2 * info->data.size());
        info->widened =
            ir::widened_4_bits(info->data, ir::TensorType{ir::kInt4, info->shape}.num_elements(), true);
        info->data = info->widened;
        info->dtype = ir::kInt8;
      }
    }
  } catch (const ExpandsTooMuch& error) {
    throw ExpandsTooMuch(cat("tensor ", index, " ", in_quotes(info->name), ": ", error.what()));
  } catch (const std::exception& error) {
    invalid(cat("tensor ", index, " ", in_quotes(info->name), ": ", error.what()));
  }
  slot = std::move(info);
  return *slot;
}

// Tensors may share a buffer, so that a small file could ask for any amount of memory.
void ModelFile::count_expanded(uint64_t bytes) {
  constexpr uint64_t kBytesPerFileByte = 64;  // no real network has so many zeros
  const uint64_t limit = (uint64_t{1} << 20) + size_bytes() * kBytesPerFileByte;
  if (bytes > limit - *expanded_bytes_) {
    throw ExpandsTooMuch(cat("with it, the sparse constants and those of 4 bits take more than ", limit,
                             " bytes, 1 MiB and ", kBytesPerFileByte, " times the file's size"));
  }
  *expanded_bytes_ += bytes;
}

std::span<const uint8_t> ModelFile::metadata(std::string_view name) const {
  const auto found = metadata_->find(name);
  return found == metadata_->end() ? std::span<const uint8_t>() : buffer(found->second);
}

// Buffer 0 stands for "no data" by convention.
std::span<const uint8_t> ModelFile::buffer(uint32_t index) const {
  if (index == 0) return {};
  const auto* buffers = model_->buffers();
  const size_t count = buffers == nullptr ? 0 : buffers->size();
  if (index >= count) {
    invalid("buffer index " + std::to_string(index) + " is out of range: there are " + std::to_string(count) +
            " buffers");
  }
  const tflite::Buffer& entry = *buffers->Get(index);
  if (entry.offset() > 1) {
    if (entry.offset() > bytes_.size() || entry.size() > bytes_.size() - entry.offset()) {
      invalid("buffer " + std::to_string(index) + " at offset " + std::to_string(entry.offset()) + " with " +
              std::to_string(entry.size()) + " bytes ends after the file's " + std::to_string(bytes_.size()));
    }
    return bytes_.subspan(entry.offset(), entry.size());
  }
  if (entry.data() == nullptr) return {};
  return {entry.data()->data(), entry.data()->size()};
}

const tflite::OperatorCode& ModelFile::operator_code(const tflite::Operator& op) const {
  const auto* codes = model_->operator_codes();
  const size_t count = codes == nullptr ? 0 : codes->size();
  if (op.opcode_index() >= count) {
    invalid("operator code index " + std::to_string(op.opcode_index()) + " is out of range: there are " +
            std::to_string(count) + " operator codes");
  }
  return *codes->Get(op.opcode_index());
}

int32_t ModelFile::builtin_code(const tflite::Operator& op) const {
  const tflite::OperatorCode& code = operator_code(op);
  // Files from before the wide field have 0 there; newer ones fill both, the narrow one with 127 for what
  // does not fit.
  return std::max<int32_t>(code.builtin_code(), code.deprecated_builtin_code());
}

std::string_view ModelFile::custom_code(const tflite::Operator& op) const {
  const auto* custom = operator_code(op).custom_code();
  const bool is_custom = builtin_code(op) == tflite::BuiltinOperator_CUSTOM;
  return custom == nullptr || !is_custom ? std::string_view() : custom->string_view();
}

const tflite::SubGraph* ModelFile::subgraph(size_t index) const {
  return index < num_subgraphs() ? model_->subgraphs()->Get(static_cast<flatbuffers::uoffset_t>(index))
                                 : nullptr;
}

std::string ModelFile::operator_name(const tflite::Operator& op) const {
  const int32_t number = builtin_code(op);
  if (number == tflite::BuiltinOperator_CUSTOM) return "custom operator " + in_quotes(custom_code(op));
  if (number >= 0 && number <= tflite::BuiltinOperator_MAX) {
    return tflite::EnumNameBuiltinOperator(static_cast<tflite::BuiltinOperator>(number));
  }
  return "builtin operator " + std::to_string(number);
}

}  // namespace qplan::tfl
