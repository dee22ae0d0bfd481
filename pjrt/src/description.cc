// What is told of the device and its memories.
#include "client.h"
#include "error.h"
#include "functions.h"

namespace heddle::pjrt {
namespace {

void tell(const std::string& text, const char*& data, size_t& size) {
  data = text.c_str();
  size = text.size();
}

}  // namespace

void DeviceDescription_Id(PJRT_DeviceDescription_Id_Args& args) {
  args.id = given(args.device_description, "device_description")->id;
}

void DeviceDescription_ProcessIndex(PJRT_DeviceDescription_ProcessIndex_Args& args) {
  args.process_index = 0;
}

void DeviceDescription_Attributes(PJRT_DeviceDescription_Attributes_Args& args) {
  args.attributes = nullptr;
  args.num_attributes = 0;
}

void DeviceDescription_Kind(PJRT_DeviceDescription_Kind_Args& args) {
  tell(given(args.device_description, "device_description")->kind, args.device_kind,
       args.device_kind_size);
}

void DeviceDescription_DebugString(PJRT_DeviceDescription_DebugString_Args& args) {
  tell(given(args.device_description, "device_description")->debug, args.debug_string,
       args.debug_string_size);
}

void DeviceDescription_ToString(PJRT_DeviceDescription_ToString_Args& args) {
  tell(given(args.device_description, "device_description")->text, args.to_string,
       args.to_string_size);
}

void Device_GetDescription(PJRT_Device_GetDescription_Args& args) {
  args.device_description = &given(args.device, "device")->description;
}

void Device_IsAddressable(PJRT_Device_IsAddressable_Args& args) { args.is_addressable = true; }

void Device_LocalHardwareId(PJRT_Device_LocalHardwareId_Args& args) {
  args.local_hardware_id = given(args.device, "device")->description.id;
}

void Device_AddressableMemories(PJRT_Device_AddressableMemories_Args& args) {
  const PJRT_Client* client = given(args.device, "device")->client;
  args.memories = client->memory_list.data();
  args.num_memories = client->memory_list.size();
}

void Device_DefaultMemory(PJRT_Device_DefaultMemory_Args& args) {
  args.memory = given(args.device, "device")->client->default_memory();
}

void Device_MemoryStats(PJRT_Device_MemoryStats_Args& args) {
  const MemoryCounts& counts = *given(args.device, "device")->client->counts;
  // Callers may leave what is written to them as it was before.
  args = {args.struct_size, args.extension_start, args.device};
  args.bytes_in_use = counts.in_use;
  args.peak_bytes_in_use = counts.peak;
  args.num_allocs = counts.allocations;
  args.largest_alloc_size = counts.largest;
  args.peak_bytes_in_use_is_set = args.num_allocs_is_set = args.largest_alloc_size_is_set = true;
}

void Memory_Id(PJRT_Memory_Id_Args& args) { args.id = given(args.memory, "memory")->id; }

void Memory_Kind(PJRT_Memory_Kind_Args& args) {
  tell(given(args.memory, "memory")->kind, args.kind, args.kind_size);
}

void Memory_Kind_Id(PJRT_Memory_Kind_Id_Args& args) {
  args.kind_id = given(args.memory, "memory")->id;
}

void Memory_DebugString(PJRT_Memory_DebugString_Args& args) {
  tell(given(args.memory, "memory")->text, args.debug_string, args.debug_string_size);
}

void Memory_ToString(PJRT_Memory_ToString_Args& args) {
  tell(given(args.memory, "memory")->text, args.to_string, args.to_string_size);
}

void Memory_AddressableByDevices(PJRT_Memory_AddressableByDevices_Args& args) {
  args.devices = given(args.memory, "memory")->client->devices;
  args.num_devices = 1;
}

}  // namespace heddle::pjrt
