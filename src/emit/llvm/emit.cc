#include "emit/llvm/emit.h"

#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <string_view>

#include "emit/llvm/compile.h"

namespace {

template <typename T>
T* copy_out(std::string_view bytes) {  // with a zero at the end
  char* block = static_cast<char*>(std::malloc(bytes.size() + 1));
  if (!block) return nullptr;
  std::memcpy(block, bytes.data(), bytes.size());
  block[bytes.size()] = 0;
  return reinterpret_cast<T*>(block);
}

heddle::Result<std::string> emit_object(int abi, const char* const* kernels, size_t count,
                                        const char* target, const char* dump_directory,
                                        heddle::emit::Effort effort) {
  if (abi != HEDDLE_EMIT_ABI) {
    return heddle::user_error("libheddle-llvm: got ABI {}, wanted {}; rebuild it with heddle", abi,
                              HEDDLE_EMIT_ABI);
  }
  if (effort < heddle::emit::Effort::least || effort > heddle::emit::Effort::full)
    return heddle::user_error("libheddle-llvm: effort: got {}, wanted 0, 1 or 2",
                              static_cast<int>(effort));
  std::vector<std::string_view> texts(kernels, kernels + count);
  HEDDLE_ASSIGN_OR_RETURN(auto compiled, heddle::emit::compile_texts(texts, target, effort));
  if (dump_directory != nullptr)
    HEDDLE_RETURN_IF_ERROR(heddle::emit::dump_texts(texts, target, dump_directory, effort));
  return std::move(compiled.object);
}

}  // namespace

int heddle_emit(int abi, const char* const* kernels, size_t kernel_count, const char* target,
                const char* dump_directory, int effort, uint8_t** object, size_t* object_bytes,
                char** error) {
  heddle::Result<std::string> result;
  try {
    result = emit_object(abi, kernels, kernel_count, target, dump_directory,
                         static_cast<heddle::emit::Effort>(effort));
  } catch (const std::exception& exception) {  // out of memory
    result = heddle::machine_error("libheddle-llvm: {}", exception.what());
  }
  if (result) {
    *object = copy_out<uint8_t>(*result);
    *object_bytes = result->size();
    if (*object) return 0;
    result = heddle::error_of(heddle::ErrorKind::memory, "libheddle-llvm: out of memory");
  }
  *error = copy_out<char>(result.error().message);
  return 1;
}
