// MLIR's bytecode (format versions 0 to 6) as an operation tree. The container and the builtin
// dialect are read here; custom encodings of other dialects are read by a BytecodeDialect (vhlo.h).
// Format: mlir/docs/BytecodeFormat.md of LLVM.
//
// Everything is bounded: nesting, every count by the bytes of its section, and the whole tree by
// the file's size, although attributes are shared in a file but not in a tree.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "import/byte_reader.h"
#include "import/mlir.h"

namespace heddle::import {

class BytecodeTable;

// The encoding of one attribute or type, and access to the entries that it refers to.
class BytecodeEntry {
 public:
  BytecodeEntry(BytecodeTable* table, ByteReader bytes) : bytes(bytes), table_(*table) {}

  ByteReader bytes;
  // Each reads an index and returns that entry.
  MlirAttr attribute();
  std::optional<MlirAttr> optional_attribute();
  MlirType type();
  std::string string();
  std::string_view resource();  // the bytes of a blob
  // Each reads a count first.
  std::vector<MlirAttr> attributes();
  std::vector<MlirType> types();
  std::vector<int64_t> signed_varints(size_t most);

 private:
  BytecodeTable& table_;
};

// Alternating names and attributes: the dictionaries of builtin and VHLO.
MlirAttr dictionary_attribute(BytecodeEntry& entry);

// How to read a dialect. All functions throw Failure.
struct BytecodeDialect {
  std::string_view name;
  MlirAttr (*attribute)(BytecodeEntry& entry);
  MlirType (*type)(BytecodeEntry& entry);
  // For an operation (without the dialect): the names of its inherent attributes in encoding order,
  // separated by blanks, with `?` after optional ones. Nothing: unknown operation. Null: inherent
  // attributes of this dialect are skipped.
  std::optional<std::string> (*properties)(std::string_view op);
};
const BytecodeDialect& builtin_bytecode();

struct BytecodeFile {
  uint64_t version = 0;  // of the container
  std::string producer;
  MlirModule module;
};
constexpr uint64_t kNewestBytecode = 6;

// Only the head of a file: version and producer.
BytecodeFile parse_bytecode_head(std::string_view bytes);
// Throws Failure: "SECTION, byte N: …", also for inherent attributes of an operation whose dialect
// is not in `dialects`; attributes and types of these dialects become Kind::other. Operations have
// line 0, and their byte offset in the file as column.
BytecodeFile parse_mlir_bytecode(std::string_view bytes,
                                 std::span<const BytecodeDialect* const> dialects);

// Dense values from their raw bytes: all elements, or one. Booleans take a byte or a bit each.
MlirAttr dense_of(const MlirType& type, std::string_view raw, const ByteReader& bytes);
// A tensor's type; `element` must be a scalar. A negative dimension is dynamic.
MlirType tensor_of(std::vector<int64_t> dims, const MlirType& element, const ByteReader& bytes);
// A number from its bits.
MlirAttr integer_of(const MlirType& type, ByteReader& bytes);
MlirAttr floating_of(const MlirType& type, ByteReader& bytes);
constexpr size_t kMostDims = 256;

}  // namespace heddle::import
