// Inputs and outputs of a session as the caller's tensors: view, bind, write, read.
#include <stdint.h>
#include <string.h>

#include "format/container.h"
#include "src/base/error.h"
#include "src/runtime/session.h"

namespace qplan {
namespace {

using format::Tensor;

// Strides in bytes, outermost first; any sign.
struct Strides {
  int64_t bytes[format::kMaxRank] = {};
};

template <uint32_t element_bytes>
void copy_row(uint8_t* to, int64_t to_stride, const uint8_t* from, int64_t from_stride, int64_t count) {
  for (int64_t i = 0; i < count; ++i) memcpy(to + i * to_stride, from + i * from_stride, element_bytes);
}

void copy_row(uint8_t* to, int64_t to_stride, const uint8_t* from, int64_t from_stride, int64_t count,
              uint32_t element_bytes) {
  if (to_stride == element_bytes && from_stride == element_bytes) {
    memmove(to, from, static_cast<size_t>(count) * element_bytes);
    return;
  }
  switch (element_bytes) {
    case 1:
      return copy_row<1>(to, to_stride, from, from_stride, count);
    case 2:
      return copy_row<2>(to, to_stride, from, from_stride, count);
    case 4:
      return copy_row<4>(to, to_stride, from, from_stride, count);
    default:
      return copy_row<8>(to, to_stride, from, from_stride, count);
  }
}

// The strides of a packed row-major tensor.
Strides packed_strides(const int64_t* extents, uint32_t rank, uint32_t element_bytes) {
  Strides strides;
  int64_t stride = element_bytes;
  for (uint32_t axis = rank; axis-- > 0;) {
    strides.bytes[axis] = stride;
    stride *= extents[axis];
  }
  return strides;
}

// Copies between two arrangements of the same elements, which may lie at any address. The two must not
// overlap unless both are packed.
void strided_copy(void* to, const Strides& to_strides, const void* from, const Strides& from_strides,
                  const int64_t* extents, uint32_t rank, uint32_t element_bytes) {
  auto* to_bytes = static_cast<uint8_t*>(to);
  const auto* from_bytes = static_cast<const uint8_t*>(from);
  // The inner axes that both sides hold packed are one row. The stride of an axis of one element means
  // nothing.
  int64_t row = 1;
  while (rank > 0 && (extents[rank - 1] == 1 || (to_strides.bytes[rank - 1] == row * element_bytes &&
                                                 from_strides.bytes[rank - 1] == row * element_bytes))) {
    row *= extents[--rank];
  }
  int64_t to_stride = element_bytes, from_stride = element_bytes;
  if (row == 1 && rank > 0) {
    row = extents[--rank];
    to_stride = to_strides.bytes[rank];
    from_stride = from_strides.bytes[rank];
  }
  int64_t index[format::kMaxRank] = {};
  for (;;) {
    copy_row(to_bytes, to_stride, from_bytes, from_stride, row, element_bytes);
    // The next index of the outer axes, like an odometer.
    uint32_t axis = rank;
    while (axis > 0) {
      --axis;
      to_bytes += to_strides.bytes[axis];
      from_bytes += from_strides.bytes[axis];
      if (++index[axis] < extents[axis]) break;
      to_bytes -= to_strides.bytes[axis] * extents[axis];
      from_bytes -= from_strides.bytes[axis] * extents[axis];
      index[axis] = 0;
      if (axis == 0) return;
    }
    if (rank == 0) return;
  }
}

// One call about one input or output.
class Binding {
 public:
  Binding(Session* session, const char* verb, int direction, uint32_t index)
      : session_(*session), verb_(verb), direction_(direction), index_(index) {}

  uint32_t tensor_index() const { return tensor_index_; }
  const Tensor& tensor() const { return session_.plan.tensor(tensor_index_); }

  // "bind: output 1 'scores': "
  Error& fail(qplan_status status) {
    session_.error.set(status, -1, static_cast<int32_t>(tensor_index_))
        << verb_ << ": " << noun() << " " << index_;
    return session_.error << Named{session_.plan.tensor_name(tensor_index_)} << ": ";
  }

  bool find() {
    Error& error = session_.error;
    if (session_.is_running()) {
      error.set(QPLAN_INVALID_STATE) << verb_ << ": the session is running";
      return false;
    }
    if (direction_ != QPLAN_INPUT && direction_ != QPLAN_OUTPUT) {
      error.set(QPLAN_INVALID_ARGUMENT)
          << verb_ << ": direction " << int32_t{direction_} << ", expected QPLAN_INPUT or QPLAN_OUTPUT";
      return false;
    }
    const auto* tensors = list(direction_);
    if (index_ >= format::count_of(tensors)) {
      error.set(QPLAN_INVALID_ARGUMENT)
          << verb_ << ": " << noun() << " " << index_ << " of " << format::count_of(tensors);
      return false;
    }
    tensor_index_ = tensors->Get(index_);
    return true;
  }

  bool is_bound() const { return session_.data[tensor_index_] != session_.planned_address(tensor_index_); }

  // Device, dtype, shape, data, and that no address overflows: all but what strides mean, and alignment.
  bool check(const DLTensor& given) {
    if (given.device.device_type != kDLCPU) {
      fail(QPLAN_INVALID_ARGUMENT) << "device type " << static_cast<int32_t>(given.device.device_type)
                                   << ", expected memory of the CPU (" << int32_t{kDLCPU} << ")";
      return false;
    }
    const Tensor& t = tensor();
    if (given.dtype.code != t.type_code() || given.dtype.bits != t.type_bits() || given.dtype.lanes != 1) {
      Error& error = fail(QPLAN_DTYPE_MISMATCH);
      put_dtype(error, given.dtype);
      error << ", expected " << format::dtype_name(t.type_code(), t.type_bits());
      return false;
    }
    if (!same_shape(given)) {
      Error& error = fail(QPLAN_SHAPE_MISMATCH);
      if (given.ndim < 0 || given.ndim > 8 || (given.ndim > 0 && given.shape == nullptr)) {
        error << "rank " << int32_t{given.ndim} << (given.shape == nullptr ? " without a shape" : "");
      } else {
        error << "shape " << Bracketed{given.shape, static_cast<uint32_t>(given.ndim)};
      }
      error << ", expected " << Bracketed{format::extents_of(t), format::rank_of(t)};
      return false;
    }
    if (given.data == nullptr) {
      fail(QPLAN_INVALID_ARGUMENT) << "data is NULL";
      return false;
    }
    return check_addresses(given);
  }

  // For bind: the session's address for the tensor becomes the caller's buffer.
  bool check_bindable(const DLTensor& given) {
    const Tensor& t = tensor();
    if (!is_packed(given)) {
      fail(QPLAN_INVALID_ARGUMENT) << "its strides are not those of a packed row-major tensor; copy it with "
                                   << (direction_ == QPLAN_INPUT ? "write" : "read");
      return false;
    }
    const uintptr_t address =
        reinterpret_cast<uintptr_t>(given.data) + static_cast<uintptr_t>(given.byte_offset);
    if ((address & (format::element_bytes(t) - 1)) != 0) {
      fail(QPLAN_MISALIGNED) << "data + byte_offset is not a multiple of " << format::element_bytes(t);
      return false;
    }
    if (address != reinterpret_cast<uintptr_t>(session_.planned_address(tensor_index_)) &&
        overlaps_session(address, t.size())) {
      fail(QPLAN_INVALID_ARGUMENT) << "the buffer overlaps the session's own memory";
      return false;
    }
    return check_disjoint(QPLAN_INPUT, address) && check_disjoint(QPLAN_OUTPUT, address);
  }

  // A tensor that the function lists several times has one buffer: it is bound through its first mention,
  // inputs before outputs.
  bool check_first_mention() {
    for (int direction = QPLAN_INPUT; direction <= direction_; ++direction) {
      const auto* tensors = list(direction);
      const uint32_t count = direction == direction_ ? index_ : format::count_of(tensors);
      for (uint32_t i = 0; i < count; ++i) {
        if (tensors->Get(i) != tensor_index_) continue;
        fail(QPLAN_INVALID_ARGUMENT) << "is the same tensor as " << noun(direction) << " " << i
                                     << "; bind that one";
        return false;
      }
    }
    return true;
  }

  // Whether data + byte_offset, and every element from there, lies within the address space: nothing may be
  // computed from an address before.
  bool check_addresses(const DLTensor& given) {
    const uint64_t data = reinterpret_cast<uintptr_t>(given.data);
    if (given.byte_offset > UINTPTR_MAX - data) {
      fail(QPLAN_INVALID_ARGUMENT) << "byte_offset " << given.byte_offset << " is beyond the address space";
      return false;
    }
    if (!check_strides(given)) return false;
    const Strides strides = strides_of(given);
    uint64_t below = 0, above = format::element_bytes(tensor());  // bytes that are reached from there
    for (uint32_t i = 0; i < format::rank_of(tensor()); ++i) {
      // Below 2^59 each, and there are six: no overflow.
      const int64_t reach = strides.bytes[i] * (tensor().shape()->Get(i) - 1);
      (reach < 0 ? below : above) += static_cast<uint64_t>(reach < 0 ? -reach : reach);
    }
    const uint64_t address = data + given.byte_offset;
    if (below <= address && above <= UINTPTR_MAX - address) return true;
    fail(QPLAN_INVALID_ARGUMENT) << "its elements reach beyond the address space";
    return false;
  }

  Strides strides_of(const DLTensor& given) const {
    const uint32_t element = format::element_bytes(tensor());
    if (given.strides == nullptr) {
      return packed_strides(format::extents_of(tensor()), format::rank_of(tensor()), element);
    }
    Strides strides;
    for (uint32_t i = 0; i < format::rank_of(tensor()); ++i) {
      // An axis of one element is never stepped along; its stride may be anything.
      strides.bytes[i] = tensor().shape()->Get(i) == 1 ? 0 : given.strides[i] * int64_t{element};
    }
    return strides;
  }

  // Whether every offset that the strides lead to can be computed.
  bool check_strides(const DLTensor& given) {
    if (given.strides == nullptr) return true;
    for (uint32_t i = 0; i < format::rank_of(tensor()); ++i) {
      const int64_t stride = given.strides[i], extent = tensor().shape()->Get(i);
      constexpr int64_t kLimit = int64_t{1} << 56;
      if (extent == 1 || (stride > -kLimit / extent && stride < kLimit / extent)) continue;
      fail(QPLAN_INVALID_ARGUMENT) << "stride " << stride << " of axis " << i
                                   << " is beyond the address space";
      return false;
    }
    return true;
  }

  // For read: each element needs a place of its own.
  bool check_no_broadcast(const DLTensor& given) {
    if (given.strides == nullptr) return true;
    for (uint32_t i = 0; i < format::rank_of(tensor()); ++i) {
      if (given.strides[i] != 0 || tensor().shape()->Get(i) == 1) continue;
      fail(QPLAN_INVALID_ARGUMENT) << "stride 0 of axis " << i << " would put several elements in one place";
      return false;
    }
    return true;
  }

 private:
  const flatbuffers::Vector<uint32_t>* list(int direction) const {
    return direction == QPLAN_INPUT ? session_.function->inputs() : session_.function->outputs();
  }
  static const char* noun(int direction) { return direction == QPLAN_INPUT ? "input" : "output"; }
  const char* noun() const { return noun(direction_); }

  bool same_shape(const DLTensor& given) const {
    const uint32_t rank = format::rank_of(tensor());
    if (given.ndim < 0 || static_cast<uint32_t>(given.ndim) != rank) return false;
    if (rank > 0 && given.shape == nullptr) return false;
    for (uint32_t i = 0; i < rank; ++i) {
      if (given.shape[i] != tensor().shape()->Get(i)) return false;
    }
    return true;
  }

  bool is_packed(const DLTensor& given) const {
    if (given.strides == nullptr) return true;
    int64_t stride = 1;
    for (uint32_t i = format::rank_of(tensor()); i-- > 0;) {
      const int64_t extent = tensor().shape()->Get(i);
      if (extent != 1 && given.strides[i] != stride) return false;
      stride *= extent;
    }
    return true;
  }

  static bool overlaps(uintptr_t a, uint64_t a_size, uintptr_t b, uint64_t b_size) {
    return a < b ? b - a < a_size : a - b < b_size;
  }

  bool overlaps_session(uintptr_t address, uint64_t size) const {
    const auto main = reinterpret_cast<uintptr_t>(&session_);
    if (overlaps(address, size, main, session_.main_bytes)) return true;
    for (uint32_t i = 0; i < session_.plan.num_banks(); ++i) {
      if (session_.arenas[i] == nullptr || i == session_.plan.main_bank()) continue;
      const auto arena = reinterpret_cast<uintptr_t>(session_.arenas[i]);
      if (overlaps(address, size, arena, session_.plan.bank(i).size())) return true;
    }
    return false;
  }

  // Inputs may share a buffer; an output shares it with nothing.
  bool check_disjoint(int direction, uintptr_t address) {
    if (direction == QPLAN_INPUT && direction_ == QPLAN_INPUT) return true;
    const auto* tensors = list(direction);
    for (uint32_t i = 0; i < format::count_of(tensors); ++i) {
      const uint32_t other = tensors->Get(i);
      if (other == tensor_index_) continue;
      const auto begin = reinterpret_cast<uintptr_t>(session_.data[other]);
      if (!overlaps(address, tensor().size(), begin, session_.plan.tensor(other).size())) continue;
      fail(QPLAN_INVALID_ARGUMENT) << "the buffer overlaps that of " << noun(direction) << " " << i;
      return false;
    }
    return true;
  }

  static void put_dtype(Error& error, DLDataType dtype) {
    const char* name = dtype.lanes == 1 ? format::dtype_name(dtype.code, dtype.bits) : nullptr;
    if (name != nullptr) {
      error << name;
    } else {
      error << "dtype of code " << uint32_t{dtype.code} << ", " << uint32_t{dtype.bits} << " bits, "
            << uint32_t{dtype.lanes} << " lanes";
    }
  }

  Session& session_;
  const char* verb_;
  int direction_;
  uint32_t index_;
  uint32_t tensor_index_ = 0;
};

uint8_t* address_of(const DLTensor& tensor) {
  return static_cast<uint8_t*>(tensor.data) + static_cast<size_t>(tensor.byte_offset);
}

}  // namespace

qplan_status view_tensor(Session* session, int direction, uint32_t index, DLTensor* view) {
  Binding binding(session, "view", direction, index);
  if (!binding.find()) return session->error;
  if (view == nullptr) return binding.fail(QPLAN_INVALID_ARGUMENT) << "view is NULL";
  const Tensor& tensor = binding.tensor();
  view->data = session->data[binding.tensor_index()];
  view->device.device_type = kDLCPU;
  view->device.device_id = 0;
  view->ndim = static_cast<int>(format::rank_of(tensor));
  view->dtype.code = tensor.type_code();
  view->dtype.bits = tensor.type_bits();
  view->dtype.lanes = 1;
  view->shape = const_cast<int64_t*>(format::extents_of(tensor));  // NOLINT: DLPack has no const
  view->strides = nullptr;
  view->byte_offset = 0;
  return QPLAN_OK;
}

qplan_status bind_tensor(Session* session, int direction, uint32_t index, const DLTensor* tensor) {
  Binding binding(session, "bind", direction, index);
  if (!binding.find() || !binding.check_first_mention()) return session->error;
  if (tensor == nullptr) {
    session->data[binding.tensor_index()] = session->planned_address(binding.tensor_index());
  } else {
    if (!binding.check(*tensor) || !binding.check_bindable(*tensor)) return session->error;
    session->data[binding.tensor_index()] = address_of(*tensor);
  }
  keep_args(session, binding.tensor_index());
  return QPLAN_OK;
}

qplan_status write_input(Session* session, uint32_t index, const DLTensor* tensor) {
  Binding binding(session, "write", QPLAN_INPUT, index);
  if (!binding.find()) return session->error;
  if (tensor == nullptr) return binding.fail(QPLAN_INVALID_ARGUMENT) << "tensor is NULL";
  if (binding.is_bound()) {
    return binding.fail(QPLAN_INVALID_STATE)
           << "is bound to a buffer of the caller's, which is only read; fill that "
              "buffer or unbind it";
  }
  if (!binding.check(*tensor)) return session->error;
  const Tensor& t = binding.tensor();
  const uint32_t rank = format::rank_of(t), element = format::element_bytes(t);
  strided_copy(session->data[binding.tensor_index()], packed_strides(format::extents_of(t), rank, element),
               address_of(*tensor), binding.strides_of(*tensor), format::extents_of(t), rank, element);
  return QPLAN_OK;
}

qplan_status read_output(Session* session, uint32_t index, const DLTensor* tensor) {
  Binding binding(session, "read", QPLAN_OUTPUT, index);
  if (!binding.find()) return session->error;
  if (tensor == nullptr) return binding.fail(QPLAN_INVALID_ARGUMENT) << "tensor is NULL";
  if (!binding.check(*tensor) || !binding.check_no_broadcast(*tensor)) return session->error;
  const Tensor& t = binding.tensor();
  const uint32_t rank = format::rank_of(t), element = format::element_bytes(t);
  strided_copy(address_of(*tensor), binding.strides_of(*tensor), session->data[binding.tensor_index()],
               packed_strides(format::extents_of(t), rank, element), format::extents_of(t), rank, element);
  return QPLAN_OK;
}

}  // namespace qplan
