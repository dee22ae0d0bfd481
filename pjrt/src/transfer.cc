// Buffers from the host's memory, and back.
#include <cstring>

#include "buffer.h"
#include "functions.h"

namespace heddle::pjrt {
namespace {

std::shared_ptr<Storage> allocate(const PJRT_Memory* memory, const ArrayShape& shape) {
  return std::make_shared<Storage>(shape.bytes, memory->client->counts);
}

// Signed integers of less than a byte: numpy's have zeros above their bits, heddle's their sign.
int unused_bits(PJRT_Buffer_Type type) {
  if (type == PJRT_Buffer_Type_S4) return 4;
  return type == PJRT_Buffer_Type_S2 ? 6 : 0;
}
void extend_signs(const ArrayShape& shape, void* data) {
  const int bits = unused_bits(shape.type);
  auto* bytes = static_cast<int8_t*>(data);
  for (int64_t i = 0; bits > 0 && i < shape.bytes; ++i)
    bytes[i] =
        static_cast<int8_t>(static_cast<int8_t>(static_cast<uint8_t>(bytes[i]) << bits) >> bits);
}

// Throws where an element with those strides would lie outside of `bytes` bytes.
void check_inside(const ArrayShape& shape, const std::vector<int64_t>& strides, size_t bytes) {
  if (shape.bytes == 0) return;
  int64_t end = shape.element_bytes;
  for (size_t i = 0; i < strides.size(); ++i) {
    int64_t reach = 0;
    if (strides[i] < 0 || __builtin_mul_overflow(shape.dims[i] - 1, strides[i], &reach) ||
        __builtin_add_overflow(end, reach, &end))
      invalid("host_layout leads out of dst");
  }
  if (static_cast<size_t>(end) > bytes) invalid("host_layout leads out of dst");
}

// A copy that lies in `memory`.
PJRT_Buffer* copy_of(const PJRT_Buffer& buffer, PJRT_Memory* memory) {
  const std::shared_ptr<Storage> from = buffer.wait();
  std::shared_ptr<Storage> to = allocate(memory, buffer.shape);
  if (buffer.shape.bytes > 0)
    std::memcpy(to->data(), from->data(), static_cast<size_t>(buffer.shape.bytes));
  return new PJRT_Buffer(memory, buffer.shape, std::move(to));
}

// Calls `copy` with the buffer's values: now, or when they are there. Gives the event for that.
PJRT_Event* when_ready(const PJRT_Buffer& buffer, std::function<void(const void*)> copy) {
  std::shared_ptr<Storage> storage = buffer.hold();
  if (buffer.ready == nullptr || buffer.ready->is_set()) {
    wait_for(buffer.ready);
    copy(storage->data());
    return make_event(nullptr);
  }
  auto done = std::make_shared<Moment>();
  buffer.ready->then([done, copy = std::move(copy),
                      storage = std::move(storage)](const Moment::Error& error) mutable {
    if (!error) copy(storage->data());
    storage.reset();
    done->set(error);
  });
  return make_event(std::move(done));
}

}  // namespace

void Client_BufferFromHostBuffer(PJRT_Client_BufferFromHostBuffer_Args& args) {
  PJRT_Memory* memory = memory_of(args.memory, args.device);
  ArrayShape shape(args.type, args.dims, args.num_dims);
  if (shape.bytes > 0) given(args.data, "data");
  check_row_major(shape, args.device_layout);
  const std::vector<int64_t> dense = shape.strides();
  std::vector<int64_t> strides = dense;
  if (args.num_byte_strides > 0) {
    if (args.num_byte_strides != shape.dims.size())
      invalid(std::to_string(args.num_byte_strides) + " strides for " + to_string(shape));
    strides.assign(args.byte_strides, args.byte_strides + args.num_byte_strides);
  }
  const bool may_share =
      args.host_buffer_semantics == PJRT_HostBufferSemantics_kImmutableZeroCopy ||
      args.host_buffer_semantics == PJRT_HostBufferSemantics_kMutableZeroCopy;
  if (may_share && strides == dense && shape.bytes > 0 && Storage::is_aligned(args.data) &&
      unused_bits(shape.type) == 0) {
    auto released = std::make_shared<Moment>();
    auto storage =
        std::make_shared<Storage>(const_cast<void*>(args.data), [released] { released->set({}); });
    args.buffer = new PJRT_Buffer(memory, std::move(shape), std::move(storage));
    args.done_with_host_buffer = make_event(std::move(released));
    return;
  }
  std::shared_ptr<Storage> storage = allocate(memory, shape);
  copy_array(shape, args.data, strides, storage->data(), dense);
  extend_signs(shape, storage->data());
  args.buffer = new PJRT_Buffer(memory, std::move(shape), std::move(storage));
  args.done_with_host_buffer = make_event(nullptr);
}

void Client_CreateViewOfDeviceBuffer(PJRT_Client_CreateViewOfDeviceBuffer_Args& args) {
  PJRT_Memory* memory = memory_of(args.memory, args.device);
  ArrayShape shape(args.element_type, args.dims, args.num_dims);
  check_row_major(shape, args.layout);
  void* const data = args.device_buffer_ptr;
  if (shape.bytes > 0) given(data, "device_buffer_ptr");
  auto release = [callback = args.on_delete_callback, argument = args.on_delete_callback_arg,
                  data] {
    if (callback != nullptr) callback(data, argument);
  };
  args.buffer = new PJRT_Buffer(memory, std::move(shape),
                                std::make_shared<Storage>(data, std::move(release)));
}

void Client_CreateUninitializedBuffer(PJRT_Client_CreateUninitializedBuffer_Args& args) {
  PJRT_Memory* memory = memory_of(args.memory, args.device);
  ArrayShape shape(args.shape_element_type, args.shape_dims, args.shape_num_dims);
  check_row_major(shape, args.shape_layout);
  std::shared_ptr<Storage> storage = allocate(memory, shape);
  // Whatever is read of it, nothing of another program's.
  std::memset(storage->data(), 0, static_cast<size_t>(shape.bytes));
  args.buffer = new PJRT_Buffer(memory, std::move(shape), std::move(storage));
}

void Client_CreateErrorBuffer(PJRT_Client_CreateErrorBuffer_Args& args) {
  PJRT_Memory* memory = given(args.memory, "memory");
  ArrayShape shape(args.shape_element_type, args.shape_dims, args.shape_num_dims);
  check_row_major(shape, args.shape_layout);
  std::string message(args.error_message, args.error_message_size);
  args.buffer = new PJRT_Buffer(memory, shape, allocate(memory, ArrayShape(shape.type, nullptr, 0)),
                                failed_moment({args.error_code, std::move(message)}));
}

void Buffer_ToHostBuffer(PJRT_Buffer_ToHostBuffer_Args& args) {
  const PJRT_Buffer& buffer = *given(args.src, "src");
  const ArrayShape& shape = buffer.shape;
  const auto bytes = static_cast<size_t>(shape.bytes);
  const std::vector<int64_t> strides = strides_of(shape, args.host_layout);
  if (args.dst == nullptr) {
    args.dst_size = bytes;
    return;
  }
  if (args.dst_size < bytes)
    invalid("dst_size is " + std::to_string(args.dst_size) + ", " + to_string(shape) + " has " +
            std::to_string(bytes) + " bytes");
  check_inside(shape, strides, args.dst_size);
  args.event = when_ready(buffer, [shape, strides, to = args.dst](const void* from) {
    copy_array(shape, from, shape.strides(), to, strides);
  });
}

void Buffer_CopyRawToHost(PJRT_Buffer_CopyRawToHost_Args& args) {
  const PJRT_Buffer& buffer = *given(args.buffer, "buffer");
  if (args.offset < 0 || args.transfer_size < 0 ||
      args.transfer_size > buffer.shape.bytes - args.offset)
    invalid("bytes " + std::to_string(args.offset) + " to " +
            std::to_string(args.offset + args.transfer_size) + " of " + to_string(buffer.shape));
  if (args.transfer_size > 0) given(args.dst, "dst");
  args.event =
      when_ready(buffer, [to = args.dst, offset = args.offset,
                          bytes = static_cast<size_t>(args.transfer_size)](const void* from) {
        if (bytes > 0) std::memcpy(to, static_cast<const char*>(from) + offset, bytes);
      });
}

void Buffer_CopyToDevice(PJRT_Buffer_CopyToDevice_Args& args) {
  args.dst_buffer = copy_of(*given(args.buffer, "buffer"),
                            given(args.dst_device, "dst_device")->client->default_memory());
}

void Buffer_CopyToMemory(PJRT_Buffer_CopyToMemory_Args& args) {
  args.dst_buffer = copy_of(*given(args.buffer, "buffer"), given(args.dst_memory, "dst_memory"));
}

}  // namespace heddle::pjrt
