#include "client.h"

#include <string>

#include "error.h"
#include "functions.h"

namespace heddle::pjrt {
namespace {

PJRT_DeviceDescription describe_device() {
  return {0, "cpu", "HeddleDevice(id=0)", "heddle: the processor of this machine"};
}

std::string text_of(const PJRT_NamedValue& value) {
  switch (value.type) {
    case PJRT_NamedValue_kString:
      return {value.string_value, value.value_size};
    case PJRT_NamedValue_kInt64:
      return std::to_string(value.int64_value);
    case PJRT_NamedValue_kBool:
      return value.bool_value ? "true" : "false";
    case PJRT_NamedValue_kFloat:
      return std::to_string(value.float_value);
    default:
      invalid("option " + std::string(value.name, value.name_size) +
              ": a text or number is wanted");
  }
}

}  // namespace

const std::string& platform_version() {
  static const std::string version = [] {
    const uint32_t number = heddle_version();
    return "heddle " + std::to_string(number / 1000000) + "." +
           std::to_string(number / 1000 % 1000) + "." + std::to_string(number % 1000);
  }();
  return version;
}

void MemoryCounts::add(int64_t bytes) {
  const auto raise = [](std::atomic<int64_t>& most, int64_t value) {
    int64_t known = most.load();
    while (known < value && !most.compare_exchange_weak(known, value)) {
    }
  };
  ++allocations;
  raise(largest, bytes);
  raise(peak, in_use += bytes);
}

void Client_Create(PJRT_Client_Create_Args& args) {
  Options options;
  if (args.num_options > 0) given(args.create_options, "create_options");
  for (size_t i = 0; i < args.num_options; ++i) {
    const PJRT_NamedValue& option = args.create_options[i];
    options.set(std::string(option.name, option.name_size), text_of(option));
  }
  args.client = new PJRT_Client(std::move(options));
}

void Client_Destroy(PJRT_Client_Destroy_Args& args) { delete args.client; }

void Client_PlatformName(PJRT_Client_PlatformName_Args& args) {
  args.platform_name = kPlatform;
  args.platform_name_size = std::char_traits<char>::length(kPlatform);
}

void Client_PlatformVersion(PJRT_Client_PlatformVersion_Args& args) {
  args.platform_version = platform_version().c_str();
  args.platform_version_size = platform_version().size();
}

void Client_ProcessIndex(PJRT_Client_ProcessIndex_Args& args) { args.process_index = 0; }

void Client_Devices(PJRT_Client_Devices_Args& args) {
  args.devices = given(args.client, "client")->devices;
  args.num_devices = 1;
}

void Client_AddressableDevices(PJRT_Client_AddressableDevices_Args& args) {
  args.addressable_devices = given(args.client, "client")->devices;
  args.num_addressable_devices = 1;
}

void Client_LookupDevice(PJRT_Client_LookupDevice_Args& args) {
  if (args.id != 0) invalid("no device has id " + std::to_string(args.id) + "; there is 0");
  args.device = &given(args.client, "client")->device;
}

void Client_LookupAddressableDevice(PJRT_Client_LookupAddressableDevice_Args& args) {
  if (args.local_hardware_id != 0)
    invalid("no device has hardware id " + std::to_string(args.local_hardware_id) + "; there is 0");
  args.addressable_device = &given(args.client, "client")->device;
}

void Client_AddressableMemories(PJRT_Client_AddressableMemories_Args& args) {
  args.addressable_memories = given(args.client, "client")->memory_list.data();
  args.num_addressable_memories = args.client->memory_list.size();
}

void Client_DefaultDeviceAssignment(PJRT_Client_DefaultDeviceAssignment_Args& args) {
  if (args.num_replicas != 1 || args.num_partitions != 1)
    unimplemented("an assignment to several devices: heddle has one");
  if (args.default_assignment_size < 1) invalid("default_assignment_size is 0, wanted 1");
  *given(args.default_assignment, "default_assignment") = 0;
}

void Client_TopologyDescription(PJRT_Client_TopologyDescription_Args& args) {
  args.topology = &given(args.client, "client")->topology;
}

// The device reads the host's memory where it lies.
void Client_DmaMap(PJRT_Client_DmaMap_Args& args) { given(args.client, "client"); }
void Client_DmaUnmap(PJRT_Client_DmaUnmap_Args& args) { given(args.client, "client"); }

// ---- a topology: what programs may be compiled for ----

void TopologyDescription_Create(PJRT_TopologyDescription_Create_Args& args) {
  auto topology = std::make_unique<PJRT_TopologyDescription>();
  topology->description = describe_device();
  args.topology = topology.release();
}

void TopologyDescription_Destroy(PJRT_TopologyDescription_Destroy_Args& args) {
  delete args.topology;
}

void TopologyDescription_PlatformName(PJRT_TopologyDescription_PlatformName_Args& args) {
  args.platform_name = kPlatform;
  args.platform_name_size = std::char_traits<char>::length(kPlatform);
}

void TopologyDescription_PlatformVersion(PJRT_TopologyDescription_PlatformVersion_Args& args) {
  args.platform_version = platform_version().c_str();
  args.platform_version_size = platform_version().size();
}

void TopologyDescription_GetDeviceDescriptions(
    PJRT_TopologyDescription_GetDeviceDescriptions_Args& args) {
  args.descriptions = given(args.topology, "topology")->descriptions;
  args.num_descriptions = 1;
}

void TopologyDescription_Attributes(PJRT_TopologyDescription_Attributes_Args& args) {
  args.attributes = nullptr;
  args.num_attributes = 0;
}

// There is nothing to say of it but the version: what was compiled by another is not to be used.
void TopologyDescription_Serialize(PJRT_TopologyDescription_Serialize_Args& args) {
  given(args.topology, "topology");
  args.serialized_bytes = platform_version().c_str();
  args.serialized_bytes_size = platform_version().size();
  args.serialized_topology = nullptr;
  args.serialized_topology_deleter = [](PJRT_SerializedTopology*) {};
}

void TopologyDescription_Deserialize(PJRT_TopologyDescription_Deserialize_Args& args) {
  given(args.serialized_topology, "serialized_topology");
  const std::string got(args.serialized_topology, args.serialized_topology_size);
  if (got != platform_version()) invalid("no topology of " + platform_version());
  PJRT_TopologyDescription_Create_Args create{};
  TopologyDescription_Create(create);
  args.topology = create.topology;
}

}  // namespace heddle::pjrt

PJRT_Client::PJRT_Client(heddle::pjrt::Options with) : options(std::move(with)) {
  device.client = this;
  device.description = topology.description = heddle::pjrt::describe_device();
  for (size_t i = 0; i < memories.size(); ++i) {
    const std::string kind = kMemoryKinds[i];
    memories[i] = {this, &device, static_cast<int>(i), kind, "HeddleMemory(" + kind + ")"};
    memory_list[i] = &memories[i];
  }
}
