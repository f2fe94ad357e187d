#include <string.h>

#include "src/base/sha256.h"
#include "src/runtime/npu/client.h"

namespace qplan {
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

// Whether the bytes of an input's bind are what the job of an earlier region has left there.
bool is_left_there(const Session& session, const NpuRegion& region, const format::NpuBind& bind) {
  if (bind.use() != format::NpuUse_INPUT || bind.kept() == 0 || bind.kept() > region.step) return false;
  return session.steps[region.step - bind.kept()].region->keeps_outputs &&
         !region.device->banks[bind.memory_class()].is_shadow;
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
  if (place.is_copied && session.npu->buffers != nullptr) {
    const Arrangement arrangement = arrangement_of(*place.bind, session.plan.tensor(place.tensor));
    const NpuBuffer* buffer = find_buffer(session, place.tensor_data, arrangement.size);
    // The plan's offsets meet the region's alignment, the driver's address of a buffer need not.
    if (buffer != nullptr && buffer->device == &device && place.tensor_data == buffer->memory &&
        buffer->device_address % region.alignment == 0 && arrangement.is_packed()) {
      place.is_copied = false;
      place.buffer = buffer->handle;
      place.offset = 0;
    }
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
