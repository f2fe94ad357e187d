// Inputs and outputs of a region's job: between the session's tensors and the device's buffers, and between
// their arrangements.
#include <string.h>

#include "src/base/sha256.h"
#include "src/runtime/npu/client.h"

namespace qplan {

// ---- arrangements

namespace {

// A run of bytes that lie together on both sides.
void copy_run(uint8_t* to, const uint8_t* from, size_t count, uint8_t sign_bias) {
  if (sign_bias == 0) {
    memcpy(to, from, count);
    return;
  }
  const uint64_t mask = uint64_t{sign_bias} * 0x0101010101010101u;
  size_t i = 0;
  for (; i + 8 <= count; i += 8) {
    uint64_t word;
    memcpy(&word, from + i, 8);
    word ^= mask;
    memcpy(to + i, &word, 8);
  }
  for (; i < count; ++i) to[i] = static_cast<uint8_t>(from[i] ^ sign_bias);
}

void copy_strided(uint8_t* to, uint64_t to_stride, const uint8_t* from, uint64_t from_stride, int64_t count,
                  uint8_t sign_bias) {
  // Uses offsets, because a pointer after the last element might point anywhere.
  for (uint64_t i = 0; i < static_cast<uint64_t>(count); ++i) {
    to[i * to_stride] = static_cast<uint8_t>(from[i * from_stride] ^ sign_bias);
  }
}

// Calls row(buffer offset, packed offset) for each row of the inner axes, which is `row_bytes` of the packed
// tensor, beginning with these offsets.
template <typename Row>
void for_each_row(const Arrangement& a, uint32_t outer_rank, uint64_t row_bytes, uint64_t buffer,
                  uint64_t packed, const Row& row) {
  int64_t index[format::kMaxRank] = {};
  for (;;) {
    row(buffer, packed);
    packed += row_bytes;
    uint32_t axis = outer_rank;
    while (axis > 0) {
      --axis;
      buffer += a.strides[axis];
      if (++index[axis] < a.extents[axis]) break;
      buffer -= a.strides[axis] * static_cast<uint64_t>(a.extents[axis]);
      index[axis] = 0;
      if (axis == 0) return;
    }
    if (outer_rank == 0) return;
  }
}

// copy(buffer offset, buffer stride, packed offset, packed stride, count); both strides 1: a run.
template <typename Copy>
void for_each_copy(const Arrangement& a, const Copy& copy) {
  const uint64_t element = a.element_bytes;
  uint32_t outer = a.rank;
  const bool is_together = element == 1 || a.byte_stride == 1;  // the bytes of an element
  const auto copy_row = [&](uint64_t buffer, uint64_t stride, uint64_t packed, int64_t extent) {
    if (is_together && stride == element) {
      return copy(buffer, uint64_t{1}, packed, uint64_t{1}, extent * static_cast<int64_t>(element));
    }
    for (uint64_t b = 0; b < element; ++b)
      copy(buffer + b * a.byte_stride, stride, packed + b, element, extent);
  };
  if (a.block != 0) {
    const int64_t extent = a.extents[--outer];
    uint64_t begin = a.origin;
    for (int64_t first = 0; first < extent; first += a.block, begin += a.block_stride) {
      const int64_t left = extent - first, count = left < a.block ? left : a.block;
      for_each_row(
          a, outer, static_cast<uint64_t>(extent) * element, begin, static_cast<uint64_t>(first) * element,
          [&](uint64_t buffer, uint64_t packed) { copy_row(buffer, a.strides[outer], packed, count); });
    }
    return;
  }
  // The inner axes whose elements lie together are one row.
  uint64_t run = element;
  if (is_together) {
    while (outer > 0 && (a.extents[outer - 1] == 1 || a.strides[outer - 1] == run)) {
      run *= static_cast<uint64_t>(a.extents[--outer]);
    }
  }
  if (run > element || (outer == 0 && is_together)) {
    for_each_row(a, outer, run, a.origin, 0, [&](uint64_t buffer, uint64_t packed) {
      copy(buffer, uint64_t{1}, packed, uint64_t{1}, static_cast<int64_t>(run));
    });
    return;
  }
  int64_t extent = 1;
  uint64_t stride = 0;
  if (outer > 0) {
    extent = a.extents[--outer];
    stride = a.strides[outer];
  }
  for_each_row(a, outer, static_cast<uint64_t>(extent) * element, a.origin, 0,
               [&](uint64_t buffer, uint64_t packed) { copy_row(buffer, stride, packed, extent); });
}

}  // namespace

bool Arrangement::covers_all() const {
  uint64_t expected = element_bytes;
  int64_t blocks = block == 0 ? 1 : extents[rank - 1] / block;  // until they are found between two axes
  if (block != 0 && extents[rank - 1] % block != 0) return false;
  for (uint32_t axis = rank; axis-- > 0;) {
    const bool is_divided = block != 0 && axis + 1 == rank;
    const int64_t extent = is_divided ? int64_t{block} : extents[axis];
    if (extent != 1 && strides[axis] != expected) return false;
    expected *= static_cast<uint64_t>(extent);
    if (blocks == 1 || block_stride != expected) continue;
    expected *= static_cast<uint64_t>(blocks);
    blocks = 1;
  }
  return blocks == 1 && size == expected && origin == 0 && (element_bytes == 1 || byte_stride == 1);
}

Arrangement arrangement_of(const format::NpuBind& bind, const format::Tensor& tensor) {
  Arrangement a;
  a.rank = format::rank_of(tensor);
  a.element_bytes = format::element_bytes(tensor);
  a.size = bind.size();
  uint64_t packed = a.element_bytes;
  for (uint32_t axis = a.rank; axis-- > 0;) {
    a.extents[axis] = tensor.shape()->Get(axis);
    a.strides[axis] = bind.strides() == nullptr ? packed : bind.strides()->Get(axis);
    packed *= static_cast<uint64_t>(a.extents[axis]);
    if (a.extents[axis] == 1) a.strides[axis] = 0;  // nobody takes that step, however long the plan makes it
  }
  if (bind.strides() == nullptr) return a;
  a.origin = bind.origin();
  a.byte_stride = bind.byte_stride();
  a.fill = bind.fill();
  a.sign_bias = bind.flip();
  if (a.rank == 0 || bind.block() >= static_cast<uint64_t>(a.extents[a.rank - 1])) return a;
  a.block = bind.block();
  a.block_stride = bind.block_stride();
  return a;
}

void scatter(uint8_t* buffer, const uint8_t* packed, const Arrangement& a) {
  if (a.is_packed()) {
    memcpy(buffer, packed, static_cast<size_t>(a.size));
    return;
  }
  if (!a.covers_all()) memset(buffer, a.fill, static_cast<size_t>(a.size));
  for_each_copy(a, [&](uint64_t to, uint64_t to_stride, uint64_t from, uint64_t from_stride, int64_t count) {
    if (to_stride == 1 && from_stride == 1) {
      copy_run(buffer + to, packed + from, static_cast<size_t>(count), a.sign_bias);
    } else {
      copy_strided(buffer + to, to_stride, packed + from, from_stride, count, a.sign_bias);
    }
  });
}

void gather(uint8_t* packed, const uint8_t* buffer, const Arrangement& a) {
  if (a.is_packed()) {
    memcpy(packed, buffer, static_cast<size_t>(a.size));
    return;
  }
  for_each_copy(a, [&](uint64_t from, uint64_t from_stride, uint64_t to, uint64_t to_stride, int64_t count) {
    if (to_stride == 1 && from_stride == 1) {
      copy_run(packed + to, buffer + from, static_cast<size_t>(count), a.sign_bias);
    } else {
      copy_strided(packed + to, to_stride, buffer + from, from_stride, count, a.sign_bias);
    }
  });
}

// ---- transfers

namespace {

// One bind of a region, as this run has it.
struct Place {
  const format::NpuBind* bind = nullptr;
  uint32_t tensor = 0;  // of inputs and outputs
  uint8_t* tensor_data = nullptr;
  uint8_t* memory = nullptr;    // of the bind, in the device's bank
  bool is_copied = false;       // between the tensor and the device's bank
  qplan_npu_buffer buffer = 0;  // what the device uses
  uint64_t offset = 0;
};

// The buffer of the device that the caller has bound as the bind's tensor, where the device can use it in the
// place of its bank; else null.
const NpuBuffer* bound_buffer(const Session& session, const NpuRegion& region, const format::NpuBind& bind,
                              uint32_t tensor) {
  if (session.npu->buffers == nullptr) return nullptr;
  const Arrangement arrangement = arrangement_of(bind, session.plan.tensor(tensor));
  const uint8_t* data = static_cast<const uint8_t*>(session.data[tensor]);
  const NpuBuffer* buffer = find_buffer(session, data, arrangement.size);
  // The plan's offsets meet the region's alignment, the driver's address of a buffer need not.
  const bool is_usable = buffer != nullptr && buffer->device == region.device && data == buffer->memory &&
                         buffer->device_address % region.alignment == 0 && arrangement.is_packed();
  return is_usable ? buffer : nullptr;
}

// Whether the bytes of an input's bind are what the job of an earlier region has left there: in the bank, and
// not in a buffer that is bound.
bool is_left_there(const Session& session, const NpuRegion& region, const format::NpuBind& bind) {
  if (bind.use() != format::NpuUse_INPUT || bind.kept() == 0 || bind.kept() > region.step) return false;
  const NpuRegion& maker = *session.steps[region.step - bind.kept()].region;
  if (!maker.keeps_outputs || region.device->banks[bind.memory_class()].is_shadow) return false;
  const uint32_t tensor = step_of(session, region).inputs()->Get(bind.index());
  const format::NpuBind* made = format::kept_bind(step_of(session, maker), tensor);
  return made == nullptr || bound_buffer(session, maker, *made, tensor) == nullptr;
}

// Where the device has memory of its own, a reset may lose what is there. Whoever is called at the end of a
// step may read its outputs.
bool stays(const Session& session, const NpuRegion& region, const format::NpuBind& bind) {
  return bind.kept() == format::kKeptAlone && !region.device->banks[bind.memory_class()].is_shadow &&
         session.platform.step_end == nullptr;
}

Place place_of(const Session& session, const NpuRegion& region, const format::NpuStep& step, uint32_t b) {
  const NpuDevice& device = *region.device;
  Place place;
  place.bind = step.binds()->Get(b);
  const NpuBank& bank = device.banks[place.bind->memory_class()];
  place.memory = bank.memory + place.bind->offset();
  place.buffer = bank.buffer;
  place.offset = place.bind->offset();
  if (place.bind->use() == format::NpuUse_SCRATCH) return place;
  const auto* tensors = place.bind->use() == format::NpuUse_INPUT ? step.inputs() : step.outputs();
  place.tensor = tensors->Get(place.bind->index());
  place.tensor_data = static_cast<uint8_t*>(session.data[place.tensor]);
  // The device's bank as the device sees it, or bytes of the tensor's own.
  place.is_copied = place.tensor_data != place.memory && !is_left_there(session, region, *place.bind);
  if (!place.is_copied) return place;
  const NpuBuffer* buffer = bound_buffer(session, region, *place.bind, place.tensor);
  if (buffer != nullptr) {
    place.is_copied = false;
    place.buffer = buffer->handle;
    place.offset = 0;
  }
  return place;
}

void count_copy(NpuRegion* region, uint64_t bytes) {
  ++region->copies;
  region->copy_bytes += bytes;
}

void fetch_output(Session* session, NpuRegion* region, const Place& place) {
  const format::Tensor& tensor = session->plan.tensor(place.tensor);
  gather(place.tensor_data, place.memory, arrangement_of(*place.bind, tensor));
  count_copy(region, tensor.size());
}

}  // namespace

// Ranges that the device writes are cleaned too: a line that the CPU wrote there before must not be written
// back over what the device writes, and a line that such a range shares with a neighbour must hold the
// neighbour's bytes when it is invalidated afterwards.
qplan_npu_status bring_inputs(Session* session, NpuRegion* region, JobBinds* binds) {
  const format::NpuStep& step = step_of(*session, *region);
  const NpuDevice& device = *region->device;
  for (uint32_t b = 0; b < step.binds()->size(); ++b) {
    const Place place = place_of(*session, *region, step, b);
    if (place.bind->use() == format::NpuUse_INPUT && place.is_copied) {
      const format::Tensor& tensor = session->plan.tensor(place.tensor);
      scatter(place.memory, place.tensor_data, arrangement_of(*place.bind, tensor));
      count_copy(region, tensor.size());
    }
    const uint64_t size = place.bind->size();
    const qplan_npu_status status = device.driver->flush(device.device, place.buffer, place.offset, size);
    if (status < 0) return status;
    binds->bind[binds->count++] = {place.bind->slot(), 0, place.buffer, place.offset, size};
  }
  return QPLAN_NPU_OK;
}

// Ranges are widened to cache lines, in which copies lie too: all are invalidated before any byte is copied.
qplan_npu_status fetch_outputs(Session* session, NpuRegion* region) {
  const format::NpuStep& step = step_of(*session, *region);
  const NpuDevice& device = *region->device;
  for (uint32_t b = 0; b < step.binds()->size(); ++b) {
    if (step.binds()->Get(b)->use() != format::NpuUse_OUTPUT) continue;
    const Place place = place_of(*session, *region, step, b);
    const qplan_npu_status status =
        device.driver->invalidate(device.device, place.buffer, place.offset, place.bind->size());
    if (status < 0) return status;
  }
  for (uint32_t b = 0; b < step.binds()->size(); ++b) {
    if (step.binds()->Get(b)->use() != format::NpuUse_OUTPUT) continue;
    const Place place = place_of(*session, *region, step, b);
    if (place.is_copied && !stays(*session, *region, *place.bind)) fetch_output(session, region, place);
  }
  region->keeps_outputs = true;
  return QPLAN_NPU_OK;
}

void fetch_kept_outputs(Session* session, NpuRegion* region) {
  const format::NpuStep& step = step_of(*session, *region);
  for (uint32_t b = 0; b < step.binds()->size(); ++b) {
    const format::NpuBind& bind = *step.binds()->Get(b);
    if (bind.use() != format::NpuUse_OUTPUT || !stays(*session, *region, bind)) continue;
    fetch_output(session, region, place_of(*session, *region, step, b));
  }
}

// The CPU has invalidated these ranges after the job that wrote them.
void provide_inputs(Session* session, NpuRegion* region) {
  const format::NpuStep& step = step_of(*session, *region);
  for (uint32_t b = 0; b < step.binds()->size(); ++b) {
    const format::NpuBind& bind = *step.binds()->Get(b);
    if (!is_left_there(*session, *region, bind)) continue;
    const NpuRegion& maker = *session->steps[region->step - bind.kept()].region;
    const Place place = place_of(*session, *region, step, b);
    const format::NpuBind* kept = format::kept_bind(step_of(*session, maker), place.tensor);
    if (kept != nullptr && stays(*session, maker, *kept)) fetch_output(session, region, place);
  }
}

bool writes_shared_memory(const Session& session, const NpuRegion& region) {
  const format::NpuStep& step = step_of(session, region);
  for (uint32_t b = 0; b < step.binds()->size(); ++b) {
    const Place place = place_of(session, region, step, b);
    const NpuBank& bank = region.device->banks[place.bind->memory_class()];
    const bool is_of_device = bank.is_shadow && place.buffer == bank.buffer;
    if (place.bind->use() != format::NpuUse_INPUT && !is_of_device) return true;
  }
  return false;
}

uint64_t checksum_of_outputs(const Session& session, const NpuRegion& region) {
  Sha256 sha;
  const auto* outputs = step_of(session, region).outputs();
  for (uint32_t i = 0; i < outputs->size(); ++i) {
    const uint32_t t = outputs->Get(i);
    sha.update(session.data[t], static_cast<size_t>(session.plan.tensor(t).size()));
  }
  uint8_t digest[Sha256::kDigestBytes];
  sha.finish(digest);
  uint64_t checksum;
  memcpy(&checksum, digest, sizeof(checksum));
  return checksum;
}

}  // namespace qplan
