// The client, its one device and that device's memories.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <string>

#include "options.h"
#include "worker.h"
#include "xla/pjrt/c/pjrt_c_api.h"

namespace heddle::pjrt {

constexpr const char* kPlatform = "heddle";
const std::string& platform_version();

// Of all buffers of a client; they may outlive it.
struct MemoryCounts {
  std::atomic<int64_t> in_use{0}, peak{0}, largest{0}, allocations{0};
  void add(int64_t bytes);
  void remove(int64_t bytes) { in_use -= bytes; }
};

}  // namespace heddle::pjrt

struct PJRT_DeviceDescription {
  int id = 0;
  std::string kind, text, debug;
};

struct PJRT_Memory {
  PJRT_Client* client = nullptr;
  PJRT_Device* device = nullptr;
  int id = 0;
  std::string kind, text;
};

struct PJRT_Device {
  PJRT_Client* client = nullptr;
  PJRT_DeviceDescription description;
};

struct PJRT_TopologyDescription {
  PJRT_DeviceDescription description;
  PJRT_DeviceDescription* descriptions[1] = {&description};
};

struct PJRT_Client {
  explicit PJRT_Client(heddle::pjrt::Options options);
  PJRT_Client(const PJRT_Client&) = delete;
  PJRT_Client& operator=(const PJRT_Client&) = delete;

  // All of them are the host's: a program for a GPU copies its inputs and outputs.
  static constexpr std::array kMemoryKinds = {"device", "pinned_host", "unpinned_host"};

  const heddle::pjrt::Options options;
  const std::shared_ptr<heddle::pjrt::MemoryCounts> counts =
      std::make_shared<heddle::pjrt::MemoryCounts>();
  PJRT_Device device;
  PJRT_Device* devices[1] = {&device};
  std::array<PJRT_Memory, kMemoryKinds.size()> memories;
  std::array<PJRT_Memory*, kMemoryKinds.size()> memory_list{};
  PJRT_TopologyDescription topology;
  heddle::pjrt::Worker worker;

  PJRT_Memory* default_memory() { return &memories[0]; }
};
