// Private to library: the functions of oneDNN's C interface that we use, looked up at run time.
// Versions 2 and 3 differ in memory descriptors (a struct of the caller; an opaque object) and in
// how a primitive is described; the other functions take the same arguments.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/decision.h"
#include "library/operation.h"

namespace heddle::library::onednn {

using Code = int;  // dnnl_status_t; 0: success
inline constexpr Code kOutOfMemory = 1, kInvalid = 2, kUnimplemented = 3, kFailed = 5;
using Object = void*;
using Descriptor = const void*;  // a memory descriptor

// Constants of the C interface, equal in both versions unless stated.
inline constexpr int kCpu = 1, kF32 = 3, kForwardInference = 96, kDirect = 1, kAnyFormat = 1;
inline constexpr int kScratchpadOfUser = 1;
inline constexpr unsigned kInOrder = 1;
inline constexpr int kArgumentA = 1, kArgumentC = 17, kArgumentB = 33, kArgumentBias = 41,
                     kArgumentScratchpad = 80;
inline constexpr int kQueryImplementation = 8, kQueryWeights = 131, kQueryScratchpad = 136;
inline constexpr int kMostDims = 12;
using Dims = int64_t[kMostDims];

// dnnl_exec_arg_t.
struct Argument {
  int argument;
  Object memory;
};

struct Api {
  int major = 0;
  std::string version, path;
  unsigned threading = 0;  // DNNL_RUNTIME_*

  Code (*engine_create)(Object*, int kind, size_t index) = nullptr;
  Code (*stream_create)(Object*, Object engine, unsigned flags) = nullptr;
  Code (*stream_destroy)(Object) = nullptr;
  Code (*stream_wait)(Object) = nullptr;
  Code (*attr_create)(Object*) = nullptr;
  Code (*attr_destroy)(Object) = nullptr;
  Code (*attr_set_scratchpad_mode)(Object, int mode) = nullptr;
  Code (*primitive_desc_destroy)(Object) = nullptr;
  Code (*primitive_desc_query)(Object, int what, int index, void* result) = nullptr;
  Descriptor (*primitive_desc_query_md)(Object, int what, int index) = nullptr;
  Code (*reorder_primitive_desc_create)(Object*, Descriptor from, Object from_engine, Descriptor to,
                                        Object to_engine, Object attr) = nullptr;
  Code (*primitive_create)(Object*, Object desc) = nullptr;
  Code (*primitive_destroy)(Object) = nullptr;
  Code (*primitive_execute)(Object, Object stream, int count, const Argument*) = nullptr;
  Code (*memory_create)(Object*, Descriptor, Object engine, void* data) = nullptr;
  Code (*memory_destroy)(Object) = nullptr;
  size_t (*memory_desc_get_size)(Descriptor) = nullptr;
  int (*memory_desc_equal)(Descriptor, Descriptor) = nullptr;
  Code (*set_max_cpu_isa)(int isa) = nullptr;

  // Version 2.
  Code (*memory_desc_init_by_strides)(void*, int rank, const int64_t* dims, int type,
                                      const int64_t* strides) = nullptr;
  Code (*memory_desc_init_by_tag)(void*, int rank, const int64_t* dims, int type,
                                  int tag) = nullptr;
  Code (*matmul_desc_init)(void*, Descriptor a, Descriptor b, Descriptor bias,
                           Descriptor c) = nullptr;
  Code (*convolution_desc_init)(void*, int prop, int algorithm, Descriptor a, Descriptor b,
                                Descriptor bias, Descriptor c, const int64_t* strides,
                                const int64_t* dilations, const int64_t* low,
                                const int64_t* high) = nullptr;
  Code (*primitive_desc_create)(Object*, const void* operation, Object attr, Object engine,
                                Object hint) = nullptr;
  // Version 3.
  Code (*memory_desc_create_with_strides)(void**, int rank, const int64_t* dims, int type,
                                          const int64_t* strides) = nullptr;
  Code (*memory_desc_create_with_tag)(void**, int rank, const int64_t* dims, int type,
                                      int tag) = nullptr;
  Code (*memory_desc_destroy)(void*) = nullptr;
  Code (*matmul_primitive_desc_create)(Object*, Object engine, Descriptor a, Descriptor b,
                                       Descriptor bias, Descriptor c, Object attr) = nullptr;
  Code (*convolution_primitive_desc_create)(Object*, Object engine, int prop, int algorithm,
                                            Descriptor a, Descriptor b, Descriptor bias,
                                            Descriptor c, const int64_t* strides,
                                            const int64_t* dilations, const int64_t* low,
                                            const int64_t* high, Object attr) = nullptr;

  // From OpenMP, if the library uses it: number of threads for the calling thread's later regions.
  void (*omp_set_num_threads)(int) = nullptr;
  int (*omp_get_max_threads)() = nullptr;
};

// Opens the library and looks up all functions. `path` empty: the usual names. Codes of library.h.
Decision load(const std::string& path, Api* api);

// During its lifetime the library uses only the calling thread; then the setting is restored.
class OneThread {
 public:
  explicit OneThread(const Api& api) : api_(api) {
    if (api.omp_set_num_threads == nullptr) return;
    before_ = api.omp_get_max_threads();
    if (before_ != 1) api.omp_set_num_threads(1);
  }
  ~OneThread() {
    if (before_ > 1) api_.omp_set_num_threads(before_);
  }
  OneThread(const OneThread&) = delete;

 private:
  const Api& api_;
  int before_ = 1;
};

// A memory descriptor of f32: with given strides, or (strides empty) in the layout that the
// primitive prefers. In version 2 a struct of the library's size, so spare room follows it.
class MemoryDesc {
 public:
  MemoryDesc(const Api& api, const Ints& dims, const Ints& strides);
  ~MemoryDesc();
  MemoryDesc(const MemoryDesc&) = delete;
  Descriptor get() const;  // null: none, or it could not be created
  Code code() const { return code_; }

  static constexpr size_t kBytes = 2048;

 private:
  const Api& api_;
  Code code_ = 0;
  void* object_ = nullptr;  // version 3
  alignas(16) unsigned char bytes_[kBytes];
};

// Memory descriptors of an operation's arrays.
struct Arrays {
  MemoryDesc a, b, bias, c;
  Arrays(const Api& api, const Operation& operation);
  Code code() const;  // the first nonzero one
};

// The description of a primitive, with a scratchpad provided by the caller. `fixed_b`: B in the
// layout that the library prefers. Null and the code: it could not be created.
struct Described {
  Object desc = nullptr;
  Code code = 0;
};
Described describe(const Api& api, Object engine, const Operation& operation, const Arrays& arrays,
                   bool fixed_b);

}  // namespace heddle::library::onednn
