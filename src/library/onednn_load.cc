// Looks up oneDNN's functions.
#include <dlfcn.h>

#include <cstring>
#include <initializer_list>

#include "library/onednn_api.h"

namespace heddle::library::onednn {
namespace {

// dnnl_version_t; its first six fields are the same in both versions.
struct Version {
  int major, minor, patch;
  const char* hash;
  unsigned cpu_runtime, gpu_runtime;
};
constexpr unsigned kSequential = 1, kOpenMp = 2;

// Looks up functions; `missing` keeps the first name that was not found.
struct Symbols {
  void* library;
  const char* missing = nullptr;

  template <typename Function>
  void operator()(const char* name, Function* function) {
    *function = reinterpret_cast<Function>(dlsym(library, name));
    if (*function == nullptr && missing == nullptr) missing = name;
  }
};

void find_common(Symbols& find, Api* api) {
  find("dnnl_engine_create", &api->engine_create);
  find("dnnl_stream_create", &api->stream_create);
  find("dnnl_stream_destroy", &api->stream_destroy);
  find("dnnl_stream_wait", &api->stream_wait);
  find("dnnl_primitive_attr_create", &api->attr_create);
  find("dnnl_primitive_attr_destroy", &api->attr_destroy);
  find("dnnl_primitive_attr_set_scratchpad_mode", &api->attr_set_scratchpad_mode);
  find("dnnl_primitive_desc_destroy", &api->primitive_desc_destroy);
  find("dnnl_primitive_desc_query", &api->primitive_desc_query);
  find("dnnl_primitive_desc_query_md", &api->primitive_desc_query_md);
  find("dnnl_reorder_primitive_desc_create", &api->reorder_primitive_desc_create);
  find("dnnl_primitive_create", &api->primitive_create);
  find("dnnl_primitive_destroy", &api->primitive_destroy);
  find("dnnl_primitive_execute", &api->primitive_execute);
  find("dnnl_memory_create", &api->memory_create);
  find("dnnl_memory_destroy", &api->memory_destroy);
  find("dnnl_memory_desc_get_size", &api->memory_desc_get_size);
  find("dnnl_memory_desc_equal", &api->memory_desc_equal);
  find("dnnl_set_max_cpu_isa", &api->set_max_cpu_isa);
}

void find_of_version(Symbols& find, Api* api) {
  if (api->major == 2) {
    find("dnnl_memory_desc_init_by_strides", &api->memory_desc_init_by_strides);
    find("dnnl_memory_desc_init_by_tag", &api->memory_desc_init_by_tag);
    find("dnnl_matmul_desc_init", &api->matmul_desc_init);
    find("dnnl_dilated_convolution_forward_desc_init", &api->convolution_desc_init);
    find("dnnl_primitive_desc_create", &api->primitive_desc_create);
    return;
  }
  find("dnnl_memory_desc_create_with_strides", &api->memory_desc_create_with_strides);
  find("dnnl_memory_desc_create_with_tag", &api->memory_desc_create_with_tag);
  find("dnnl_memory_desc_destroy", &api->memory_desc_destroy);
  find("dnnl_matmul_primitive_desc_create", &api->matmul_primitive_desc_create);
  find("dnnl_convolution_forward_primitive_desc_create", &api->convolution_primitive_desc_create);
}

// Version 2 writes descriptors into our memory: checks that it does not write past the room for
// one.
bool leaves_room(const Api& api) {
  alignas(16) unsigned char bytes[2 * MemoryDesc::kBytes];
  std::memset(bytes, 0xa5, sizeof(bytes));
  const Dims dims = {2, 3, 4, 5, 6}, strides = {360, 120, 30, 6, 1};
  if (api.memory_desc_init_by_strides(bytes, 5, dims, kF32, strides) != 0) return false;
  for (size_t i = MemoryDesc::kBytes; i < sizeof(bytes); ++i)
    if (bytes[i] != 0xa5) return false;
  return api.memory_desc_get_size(bytes) == 4 * 2 * 3 * 4 * 5 * 6;
}

}  // namespace

Decision load(const std::string& path, Api* api) {
  std::initializer_list<const char*> names = {"libdnnl.so.3", "libdnnl.so.2", "libdnnl.so"};
  void* library = nullptr;
  if (!path.empty()) {
    library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    api->path = path;
  } else {
    for (const char* name : names) {
      library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
      api->path = name;
      if (library != nullptr) break;
    }
  }
  if (library == nullptr) {
    const char* why = dlerror();
    return Decision::no("library-absent", "oneDNN cannot be opened: {}",
                        why == nullptr ? "no file" : why);
  }
  Symbols find{library};
  const Version* (*version)() = nullptr;
  find("dnnl_version", &version);
  if (version == nullptr)
    return Decision::no("library-version", "{} does not say its version", api->path);
  const Version& is = *version();
  api->major = is.major;
  api->version = fmt::format("{}.{}.{}", is.major, is.minor, is.patch);
  api->threading = is.cpu_runtime;
  if (is.major != 2 && is.major != 3)
    return Decision::no("library-version", "{} is oneDNN {}; versions 2 and 3 are known", api->path,
                        api->version);
  find_common(find, api);
  find_of_version(find, api);
  if (find.missing != nullptr)
    return Decision::no("library-version", "{} (oneDNN {}) has no function {}", api->path,
                        api->version, find.missing);
  if (is.major == 2 && !leaves_room(*api))
    return Decision::no("library-version", "{} (oneDNN {}): its descriptors are larger than known",
                        api->path, api->version);
  if (is.cpu_runtime == kOpenMp) {
    // From the OpenMP library that oneDNN is linked to.
    find("omp_set_num_threads", &api->omp_set_num_threads);
    find("omp_get_max_threads", &api->omp_get_max_threads);
    if (find.missing == nullptr) return Decision::yes();
  } else if (is.cpu_runtime == kSequential) {
    return Decision::yes();
  }
  return Decision::no("library-threads",
                      "{} (oneDNN {}) is built for threads of its own (runtime {}) whose number "
                      "cannot be set",
                      api->path, api->version, is.cpu_runtime);
}

}  // namespace heddle::library::onednn
