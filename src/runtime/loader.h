// Loader of relocatable x86-64 ELF objects: maps the sections that take memory, resolves symbols,
// relocates, and makes code executable and everything else read-only (write-xor-execute). Several
// independent objects may be concatenated; each after the first begins at the next multiple of 64
// bytes after the end of the previous one (its last section, or its section table).
//
// Loaded: .text*, .rodata*, .data.rel.ro* and other allocated read-only sections. Refused: writable
// data (kernels have no state), thread-local and common symbols. Relocations: R_X86_64_64, PC32,
// PLT32, PC64, and 32, 32S where the address fits. External symbols: memcpy, memmove, memset; any
// other is an error that names it.
//
// Damaged objects are user errors: every offset is checked, and memory use is proportional to the
// size of the object.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/error.h"

namespace heddle::runtime {

class Object {
 public:
  static Result<std::unique_ptr<Object>> load(std::span<const uint8_t> bytes);
  ~Object();
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;

  // Address of a global function or datum defined by an object; null if there is none.
  const void* find(std::string_view symbol) const;
  int64_t mapped_bytes() const;

 private:
  Object() = default;
  friend class ObjectBuilder;
  void* memory_ = nullptr;
  size_t bytes_ = 0;
  std::unordered_map<std::string, const void*> symbols_;
  std::vector<std::unique_ptr<Object>> others_;  // concatenated after it
};

}  // namespace heddle::runtime
