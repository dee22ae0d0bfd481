// A device that only hands out addresses, for code that allocates and releases but never reads or
// writes the memory: rehearsals, tests.
#pragma once

#include <cstdint>
#include <map>

#include "base/check.h"
#include "runtime/device.h"

namespace heddle::runtime {

struct AddressDevice {
  heddle_hal hal{};
  int64_t left_bytes = 0;
  int64_t failures = 0;  // the next `failures` allocations are refused
  std::map<char*, int64_t> given;

  explicit AddressDevice(int64_t bytes = INT64_MAX) : left_bytes(bytes) {
    hal.struct_bytes = sizeof(heddle_hal);
    hal.version = HEDDLE_HAL_VERSION;
    hal.name = "addresses";
    hal.device = this;
    hal.last_error = [](void*) { return "out of memory"; };
    hal.allocate = [](void* self, int64_t bytes, void** memory) {
      auto& device = *static_cast<AddressDevice*>(self);
      if (device.failures > 0) return static_cast<int>(device.failures-- > 0);
      if (bytes > device.left_bytes) return 1;
      device.left_bytes -= bytes;
      *memory = device.next_;
      device.given[device.next_] = bytes;
      device.next_ += bytes;  // blocks touch: the caller must not merge them
      return 0;
    };
    hal.release = [](void* self, void* memory, int64_t bytes) {
      auto& device = *static_cast<AddressDevice*>(self);
      HEDDLE_CHECK(device.given.at(static_cast<char*>(memory)) == bytes);
      device.given.erase(static_cast<char*>(memory));
      device.left_bytes += bytes;
    };
    hal.copy = [](void*, void*, const void*, int64_t) { return 1; };
    hal.load = [](void*, const uint8_t*, size_t, heddle_hal_program**) { return 1; };
    hal.unload = [](void*, heddle_hal_program*) {};
    hal.find = [](void*, heddle_hal_program*, const char*, const void**) { return 1; };
    hal.launch = [](void*, const heddle_hal_launch*) { return 1; };
    hal.wait = [](void*) { return 0; };
    hal.worker_count = [](void*) { return int64_t{1}; };
  }
  AddressDevice(const AddressDevice&) = delete;
  Device device() const { return *Device::make(&hal); }

 private:
  char* next_ = reinterpret_cast<char*>(uintptr_t{1} << 40);
};

}  // namespace heddle::runtime
