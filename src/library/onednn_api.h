// Private to library: the functions of oneDNN's C interface that are used, found at run time. The
// interfaces of versions 2 and 3 differ in memory descriptors (a struct of the caller's; an object)
// and in how a primitive is described; the rest takes the same arguments.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/decision.h"
#include "library/operation.h"

namespace heddle::library::onednn {

using Code = int;  // dnnl_status_t; 0: it worked
inline constexpr Code kOutOfMemory = 1, kInvalid = 2, kUnimplemented = 3, kFailed = 5;
using Object = void*;
using Descriptor = const void*;  // a memory descriptor

// Numbers of the C interface, the same in both versions but where they say so.
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

  // Of OpenMP, where the library was built with it: threads of the calling thread's next regions.
  void (*omp_set_num_threads)(int) = nullptr;
  int (*omp_get_max_threads)() = nullptr;
};

// Opens the library and finds all of that. `path` empty: the usual names. Codes of library.h.
Decision load(const std::string& path, Api* api);

// The calling thread works alone while one of these lives, and as before afterwards.
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

// A memory descriptor of f32: of given strides, or (strides empty) of whatever form the primitive
// likes best. Version 2: a struct whose size is the library's affair, so room is left behind it.
class MemoryDesc {
 public:
  MemoryDesc(const Api& api, const Ints& dims, const Ints& strides);
  ~MemoryDesc();
  MemoryDesc(const MemoryDesc&) = delete;
  Descriptor get() const;  // null: none, or it could not be made
  Code code() const { return code_; }

  static constexpr size_t kBytes = 2048;

 private:
  const Api& api_;
  Code code_ = 0;
  void* object_ = nullptr;  // version 3
  alignas(16) unsigned char bytes_[kBytes];
};

// The arrays of an operation as they lie in memory.
struct Arrays {
  MemoryDesc a, b, bias, c;
  Arrays(const Api& api, const Operation& operation);
  Code code() const;  // the first that is not 0
};

// The description of a primitive, with a scratchpad that the caller provides. `fixed_b`: B in
// whatever form the library likes best. Null and the code: it could not be made.
struct Described {
  Object desc = nullptr;
  Code code = 0;
};
Described describe(const Api& api, Object engine, const Operation& operation, const Arrays& arrays,
                   bool fixed_b);

}  // namespace heddle::library::onednn
