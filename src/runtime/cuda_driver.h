// The CUDA driver's C interface, opened at run time with declarations of our own: building needs no
// CUDA, and on a machine without it opening returns an error with the reason.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"

namespace heddle::runtime {

struct CudaDriver {
  using Code = int;  // CUresult, 0: success
  static constexpr Code kNotReady = 600;
  using Device = int;
  using Address = unsigned long long;
  using Handle = void*;  // context, module, function, stream, event, graph

  Code (*init)(unsigned) = nullptr;
  Code (*driver_version)(int*) = nullptr;
  Code (*error_text)(Code, const char**) = nullptr;
  Code (*device_count)(int*) = nullptr;
  Code (*device)(Device*, int) = nullptr;
  Code (*device_name)(char*, int, Device) = nullptr;
  Code (*device_attribute)(int*, int, Device) = nullptr;
  Code (*device_memory)(size_t*, Device) = nullptr;
  Code (*retain_context)(Handle*, Device) = nullptr;
  Code (*release_context)(Device) = nullptr;
  Code (*set_context)(Handle) = nullptr;
  Code (*current_context)(Handle*) = nullptr;
  Code (*allocate)(Address*, size_t) = nullptr;
  Code (*release)(Address) = nullptr;
  Code (*copy_async)(Address, Address, size_t, Handle) = nullptr;
  Code (*load_module)(Handle*, const void*) = nullptr;
  Code (*unload_module)(Handle) = nullptr;
  Code (*function)(Handle*, Handle, const char*) = nullptr;
  Code (*set_function_attribute)(Handle, int, int) = nullptr;
  Code (*launch)(Handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                 Handle, void**, void**) = nullptr;
  Code (*create_stream)(Handle*, unsigned) = nullptr;
  Code (*destroy_stream)(Handle) = nullptr;
  Code (*create_priority_stream)(Handle*, unsigned, int) = nullptr;
  Code (*stream_priorities)(int* least, int* greatest) = nullptr;  // greatest <= least
  Code (*wait_stream)(Handle) = nullptr;
  Code (*wait_all)() = nullptr;  // for all streams of the context
  Code (*stream_waits)(Handle stream, Handle event, unsigned) = nullptr;
  Code (*call_on)(Handle stream, void (*)(void*), void*) = nullptr;
  Code (*create_event)(Handle*, unsigned) = nullptr;
  Code (*destroy_event)(Handle) = nullptr;
  Code (*record_event)(Handle, Handle) = nullptr;
  Code (*wait_event)(Handle) = nullptr;
  Code (*query_event)(Handle) = nullptr;  // also returns kNotReady
  Code (*elapsed_ms)(float*, Handle, Handle) = nullptr;

  // All or none: null where the driver is older than CUDA 11.4.
  Code (*begin_capture)(Handle stream, int mode) = nullptr;
  Code (*end_capture)(Handle stream, Handle* graph) = nullptr;
  Code (*instantiate)(Handle* executable, Handle graph, unsigned long long flags) = nullptr;
  Code (*launch_graph)(Handle executable, Handle stream) = nullptr;
  Code (*destroy_graph)(Handle graph) = nullptr;
  Code (*destroy_executable)(Handle executable) = nullptr;
  bool has_graphs() const {
    return begin_capture && end_capture && instantiate && launch_graph && destroy_graph &&
           destroy_executable;
  }

  // Opened and initialised once per process. `named`: the library's file; empty:
  // $HEDDLE_CUDA_DRIVER, or libcuda.so.1. Error (machine): why there is none.
  static Result<std::shared_ptr<const CudaDriver>> open(const std::string& named = {});

  std::string text(Code code) const;  // the driver's description of "CUDA_ERROR…"
};

struct CudaDeviceInfo {
  std::string name;
  int major = 0, minor = 0, multiprocessors = 0;
  size_t memory_bytes = 0;
};
// Every device of the driver, by number.
Result<std::vector<CudaDeviceInfo>> cuda_devices(const CudaDriver& driver);

}  // namespace heddle::runtime
