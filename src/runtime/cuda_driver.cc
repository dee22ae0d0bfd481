#include "runtime/cuda_driver.h"

#include <dlfcn.h>

#include <cstdlib>

#include <vector>

namespace heddle::runtime {

namespace {

// Attribute numbers from the documentation of the driver's interface.
constexpr int kMultiprocessors = 16, kMajor = 75, kMinor = 76;

struct Symbol {
  const char* name;
  void** place;
};

}  // namespace

Result<std::shared_ptr<const CudaDriver>> CudaDriver::open(const std::string& named) {
  const char* chosen = std::getenv("HEDDLE_CUDA_DRIVER");
  const std::string library = !named.empty() ? named : chosen != nullptr ? chosen : "libcuda.so.1";
  // Never closed: the driver has its own threads.
  void* handle = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr)
    return error_of(ErrorKind::device, "cuda: {} was not found: no NVIDIA driver is installed",
                    library);
  auto driver = std::make_shared<CudaDriver>();
  CudaDriver& d = *driver;
  const Symbol symbols[] = {
      {"cuInit", reinterpret_cast<void**>(&d.init)},
      {"cuDriverGetVersion", reinterpret_cast<void**>(&d.driver_version)},
      {"cuGetErrorString", reinterpret_cast<void**>(&d.error_text)},
      {"cuDeviceGetCount", reinterpret_cast<void**>(&d.device_count)},
      {"cuDeviceGet", reinterpret_cast<void**>(&d.device)},
      {"cuDeviceGetName", reinterpret_cast<void**>(&d.device_name)},
      {"cuDeviceGetAttribute", reinterpret_cast<void**>(&d.device_attribute)},
      {"cuDeviceTotalMem_v2", reinterpret_cast<void**>(&d.device_memory)},
      {"cuDevicePrimaryCtxRetain", reinterpret_cast<void**>(&d.retain_context)},
      {"cuDevicePrimaryCtxRelease_v2", reinterpret_cast<void**>(&d.release_context)},
      {"cuCtxSetCurrent", reinterpret_cast<void**>(&d.set_context)},
      {"cuCtxGetCurrent", reinterpret_cast<void**>(&d.current_context)},
      {"cuMemAlloc_v2", reinterpret_cast<void**>(&d.allocate)},
      {"cuMemFree_v2", reinterpret_cast<void**>(&d.release)},
      {"cuMemcpyAsync", reinterpret_cast<void**>(&d.copy_async)},
      {"cuModuleLoadData", reinterpret_cast<void**>(&d.load_module)},
      {"cuModuleUnload", reinterpret_cast<void**>(&d.unload_module)},
      {"cuModuleGetFunction", reinterpret_cast<void**>(&d.function)},
      {"cuFuncSetAttribute", reinterpret_cast<void**>(&d.set_function_attribute)},
      {"cuLaunchKernel", reinterpret_cast<void**>(&d.launch)},
      {"cuStreamCreate", reinterpret_cast<void**>(&d.create_stream)},
      {"cuStreamDestroy_v2", reinterpret_cast<void**>(&d.destroy_stream)},
      {"cuStreamCreateWithPriority", reinterpret_cast<void**>(&d.create_priority_stream)},
      {"cuCtxGetStreamPriorityRange", reinterpret_cast<void**>(&d.stream_priorities)},
      {"cuStreamSynchronize", reinterpret_cast<void**>(&d.wait_stream)},
      {"cuCtxSynchronize", reinterpret_cast<void**>(&d.wait_all)},
      {"cuStreamWaitEvent", reinterpret_cast<void**>(&d.stream_waits)},
      {"cuLaunchHostFunc", reinterpret_cast<void**>(&d.call_on)},
      {"cuEventCreate", reinterpret_cast<void**>(&d.create_event)},
      {"cuEventDestroy_v2", reinterpret_cast<void**>(&d.destroy_event)},
      {"cuEventRecord", reinterpret_cast<void**>(&d.record_event)},
      {"cuEventSynchronize", reinterpret_cast<void**>(&d.wait_event)},
      {"cuEventQuery", reinterpret_cast<void**>(&d.query_event)},
      {"cuEventElapsedTime", reinterpret_cast<void**>(&d.elapsed_ms)},
  };
  for (const Symbol& symbol : symbols) {
    *symbol.place = ::dlsym(handle, symbol.name);
    if (*symbol.place == nullptr)
      return error_of(ErrorKind::device, "cuda: {} has no {}: update the driver", library,
                      symbol.name);
  }
  const Symbol optional[] = {
      {"cuStreamBeginCapture_v2", reinterpret_cast<void**>(&d.begin_capture)},
      {"cuStreamEndCapture", reinterpret_cast<void**>(&d.end_capture)},
      {"cuGraphInstantiateWithFlags", reinterpret_cast<void**>(&d.instantiate)},
      {"cuGraphLaunch", reinterpret_cast<void**>(&d.launch_graph)},
      {"cuGraphDestroy", reinterpret_cast<void**>(&d.destroy_graph)},
      {"cuGraphExecDestroy", reinterpret_cast<void**>(&d.destroy_executable)},
  };
  for (const Symbol& symbol : optional) *symbol.place = ::dlsym(handle, symbol.name);
  if (Code code = d.init(0))
    return error_of(ErrorKind::device, "cuda: {}: {}", library, d.text(code));
  return driver;
}

std::string CudaDriver::text(Code code) const {
  const char* text = nullptr;
  if (error_text(code, &text) != 0 || text == nullptr) return fmt::format("error {}", code);
  return text;
}

Result<std::vector<CudaDeviceInfo>> cuda_devices(const CudaDriver& driver) {
  int count = 0;
  if (auto code = driver.device_count(&count))
    return error_of(ErrorKind::device, "cuda: {}", driver.text(code));
  std::vector<CudaDeviceInfo> devices;
  for (int i = 0; i < count; ++i) {
    CudaDriver::Device device = 0;
    char name[256] = {};
    CudaDeviceInfo info;
    for (CudaDriver::Code code :
         {driver.device(&device, i), driver.device_name(name, sizeof name - 1, device),
          driver.device_attribute(&info.major, kMajor, device),
          driver.device_attribute(&info.minor, kMinor, device),
          driver.device_attribute(&info.multiprocessors, kMultiprocessors, device),
          driver.device_memory(&info.memory_bytes, device)})
      if (code != 0)
        return error_of(ErrorKind::device, "cuda: device {}: {}", i, driver.text(code));
    info.name = name;
    devices.push_back(std::move(info));
  }
  return devices;
}

}  // namespace heddle::runtime
