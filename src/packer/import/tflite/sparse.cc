// Sparse constants of TFLite: the elements that are stored, put where they belong between zeros. The file
// says for each level, from the outermost on, whether all its indices are there or a list of them, and which
// axis of the tensor, or of the blocks that it is cut into, the level goes along.
#include <algorithm>
#include <cstring>

#include "src/packer/import/tflite/model_file.h"

namespace qplan::tfl {
namespace {

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

}  // namespace

std::vector<uint8_t> densified(const tflite::SparsityParameters& sparsity, std::span<const uint8_t> values,
                               const ir::TensorType& type) {
  if (type.dtype.bits < 8 || type.dtype.lanes != 1) throw Unsupported{"a sparse constant of such a type"};
  return Filler(read_levels(sparsity, type.shape), type, values).run();
}

}  // namespace qplan::tfl
