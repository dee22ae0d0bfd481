#include "buffer.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <numeric>

#include "functions.h"

namespace heddle::pjrt {

Storage::Storage(int64_t bytes, std::shared_ptr<MemoryCounts> counts)
    : bytes_(bytes), counts_(std::move(counts)) {
  const size_t room = (static_cast<size_t>(bytes) + kAlignment) / kAlignment * kAlignment;
  data_ = std::aligned_alloc(kAlignment, room);
  if (data_ == nullptr)
    fail(PJRT_Error_Code_RESOURCE_EXHAUSTED,
         "Out of memory: an array of " + std::to_string(bytes) + " bytes");
  counts_->add(bytes_);
}

Storage::~Storage() {
  if (release_) release_();
  if (counts_ == nullptr) return;
  counts_->remove(bytes_);
  std::free(data_);
}

PJRT_Memory* memory_of(PJRT_Memory* memory, PJRT_Device* device) {
  if (memory != nullptr) return memory;
  return given(device, "device")->client->default_memory();
}

void Buffer_Destroy(PJRT_Buffer_Destroy_Args& args) { delete args.buffer; }

void Buffer_ElementType(PJRT_Buffer_ElementType_Args& args) {
  args.type = given(args.buffer, "buffer")->shape.type;
}

void Buffer_Dimensions(PJRT_Buffer_Dimensions_Args& args) {
  args.dims = given(args.buffer, "buffer")->shape.dims.data();
  args.num_dims = args.buffer->shape.dims.size();
}

void Buffer_UnpaddedDimensions(PJRT_Buffer_UnpaddedDimensions_Args& args) {
  args.unpadded_dims = given(args.buffer, "buffer")->shape.dims.data();
  args.num_dims = args.buffer->shape.dims.size();
}

void Buffer_DynamicDimensionIndices(PJRT_Buffer_DynamicDimensionIndices_Args& args) {
  given(args.buffer, "buffer");
  args.dynamic_dim_indices = nullptr;
  args.num_dynamic_dims = 0;
}

void Buffer_GetMemoryLayout(PJRT_Buffer_GetMemoryLayout_Args& args) {
  const size_t rank = given(args.buffer, "buffer")->shape.dims.size();
  // Of every rank that an array has had: the layout lives as long as the process.
  static std::mutex mutex;
  static std::vector<std::unique_ptr<std::vector<int64_t>>> by_rank;
  const std::lock_guard lock(mutex);
  if (by_rank.size() <= rank) by_rank.resize(rank + 1);
  if (by_rank[rank] == nullptr) {
    by_rank[rank] = std::make_unique<std::vector<int64_t>>(rank);
    std::iota(by_rank[rank]->rbegin(), by_rank[rank]->rend(), 0);
  }
  args.layout = {};
  args.layout.struct_size = PJRT_Buffer_MemoryLayout_STRUCT_SIZE;
  args.layout.type = PJRT_Buffer_MemoryLayout_Type_Tiled;
  args.layout.tiled.struct_size = PJRT_Buffer_MemoryLayout_Tiled_STRUCT_SIZE;
  args.layout.tiled.minor_to_major = by_rank[rank]->data();
  args.layout.tiled.minor_to_major_size = rank;
}

void Buffer_OnDeviceSizeInBytes(PJRT_Buffer_OnDeviceSizeInBytes_Args& args) {
  args.on_device_size_in_bytes = static_cast<size_t>(given(args.buffer, "buffer")->shape.bytes);
}

void Buffer_Device(PJRT_Buffer_Device_Args& args) {
  args.device = given(args.buffer, "buffer")->memory->device;
}

void Buffer_Memory(PJRT_Buffer_Memory_Args& args) {
  args.memory = given(args.buffer, "buffer")->memory;
}

void Buffer_Delete(PJRT_Buffer_Delete_Args& args) { given(args.buffer, "buffer")->take(); }

void Buffer_IsDeleted(PJRT_Buffer_IsDeleted_Args& args) {
  args.is_deleted = given(args.buffer, "buffer")->is_deleted();
}

void Buffer_IsOnCpu(PJRT_Buffer_IsOnCpu_Args& args) { args.is_on_cpu = true; }

void Buffer_ReadyEvent(PJRT_Buffer_ReadyEvent_Args& args) {
  const PJRT_Buffer* buffer = given(args.buffer, "buffer");
  if (buffer->is_deleted())
    args.event = make_event(
        failed_moment({PJRT_Error_Code_INVALID_ARGUMENT, "Buffer has been deleted or donated"}));
  else
    args.event = make_event(buffer->ready);
}

void Buffer_UnsafePointer(PJRT_Buffer_UnsafePointer_Args& args) {
  args.buffer_pointer = reinterpret_cast<uintptr_t>(given(args.buffer, "buffer")->wait()->data());
}

void Buffer_OpaqueDeviceMemoryDataPointer(PJRT_Buffer_OpaqueDeviceMemoryDataPointer_Args& args) {
  args.device_memory_ptr = given(args.buffer, "buffer")->wait()->data();
}

void Buffer_IncreaseExternalReferenceCount(PJRT_Buffer_IncreaseExternalReferenceCount_Args& args) {
  given(args.buffer, "buffer")->add_reference();
}

void Buffer_DecreaseExternalReferenceCount(PJRT_Buffer_DecreaseExternalReferenceCount_Args& args) {
  given(args.buffer, "buffer")->drop_reference();
}

}  // namespace heddle::pjrt

using heddle::pjrt::fail;

PJRT_Buffer::PJRT_Buffer(PJRT_Memory* in, heddle::pjrt::ArrayShape of,
                         std::shared_ptr<Storage> storage, std::shared_ptr<Moment> when)
    : memory(in), shape(std::move(of)), ready(std::move(when)), storage_(std::move(storage)) {}

std::shared_ptr<PJRT_Buffer::Storage> PJRT_Buffer::hold() const {
  const std::lock_guard lock(mutex_);
  if (storage_ == nullptr) heddle::pjrt::invalid("Buffer has been deleted or donated");
  return storage_;
}

std::shared_ptr<PJRT_Buffer::Storage> PJRT_Buffer::wait() const {
  std::shared_ptr<Storage> storage = hold();
  heddle::pjrt::wait_for(ready);
  return storage;
}

std::shared_ptr<PJRT_Buffer::Storage> PJRT_Buffer::take(bool* exclusive) {
  const std::lock_guard lock(mutex_);
  if (exclusive != nullptr && storage_ != nullptr) {
    const int64_t waiting = storage_->waiting_runs.load();  // first: it may fall, with the other
    *exclusive = references_ == 0 && storage_.use_count() == 1 + waiting;
  }
  return std::exchange(storage_, nullptr);
}

bool PJRT_Buffer::is_deleted() const {
  const std::lock_guard lock(mutex_);
  return storage_ == nullptr;
}

void PJRT_Buffer::add_reference() {
  const std::lock_guard lock(mutex_);
  if (references_++ == 0) shared_ = storage_;
}

void PJRT_Buffer::drop_reference() {
  std::shared_ptr<Storage> last;  // given back without the lock
  const std::lock_guard lock(mutex_);
  if (references_ == 0)
    fail(PJRT_Error_Code_FAILED_PRECONDITION, "the buffer has no external reference");
  if (--references_ == 0) last = std::move(shared_);
}
