// Interface of the CPU back end: the only function of libheddle-llvm.so. Text in, object out, so
// that no LLVM type leaves this folder and the library need only be opened to compile.
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// Compiles kernels to one relocatable ELF object. `kernels` holds `kernel_count` kernel texts
// (kernel/text.h), `target` one target text (target/target.h). On success returns 0 and a block
// from malloc in *object (the caller frees it); else returns 1 and a message from malloc in *error.
// Symbols: <kernel name>_p<phase>, by the kernel ABI. Thread-safe. Deterministic: same texts, same
// bytes. `dump_directory` (or NULL) must exist: each kernel is also compiled alone, for inspection,
// as 4-<kernel name>.ll (LLVM's text), .s (assembly) and .o. `effort`, of LLVM: 0 the least, for
// the slowest code; 1 less than 2; 2 all that is useful. `abi` must be HEDDLE_EMIT_ABI.
#define HEDDLE_EMIT_ABI 4
typedef int (*heddle_emit_function)(int abi, const char* const* kernels, size_t kernel_count,
                                    const char* target, const char* dump_directory, int effort,
                                    uint8_t** object, size_t* object_bytes, char** error);
__attribute__((visibility("default"))) int heddle_emit(int abi, const char* const* kernels,
                                                       size_t kernel_count, const char* target,
                                                       const char* dump_directory, int effort,
                                                       uint8_t** object, size_t* object_bytes,
                                                       char** error);

#ifdef __cplusplus
}
#endif
