#include "runtime/plugin_device.h"

#include <dlfcn.h>
#include <sys/stat.h>

namespace heddle::runtime {

Result<Device> open_plugin(const std::string& path) {
  // A path with a slash is opened as a file, not searched for by name.
  const std::string file = path.find('/') == std::string::npos ? "./" + path : path;
  // Opening a pipe would wait for a writer.
  struct stat info{};
  if (::stat(file.c_str(), &info) == 0 && !S_ISREG(info.st_mode))
    return user_error("device plugin:{}: is not a regular file", path);
  void* library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return user_error("device plugin: {}", ::dlerror());
  void* symbol = ::dlsym(library, "heddle_device");
  if (symbol == nullptr)
    return user_error("device plugin:{}: it exports no function heddle_device()", path);
  const heddle_hal* hal = reinterpret_cast<const heddle_hal* (*)()>(symbol)();
  if (hal == nullptr) return error_of(ErrorKind::device, "device plugin:{}: no such device", path);
  return Device::make(hal);
}

}  // namespace heddle::runtime
