// MLIR's bytecode (format versions 0 to 6) as an operation tree. The container and the builtin
// dialect are read here; what other dialects encode in ways of their own is read by a
// BytecodeDialect (vhlo.h). Format: mlir/docs/BytecodeFormat.md of LLVM.
//
// Everything is bounded: nesting, every count by the bytes of its section, and the tree as a whole
// by the file's size, though attributes of a file are shared and those of a tree are not.
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

// The encoding of one attribute or type, and what it refers to.
class BytecodeEntry {
 public:
  BytecodeEntry(BytecodeTable* table, ByteReader bytes) : bytes(bytes), table_(*table) {}

  ByteReader bytes;
  // By the index that follows.
  MlirAttr attribute();
  std::optional<MlirAttr> optional_attribute();
  MlirType type();
  std::string string();
  std::string_view resource();  // the bytes of a blob
  // With their number in front.
  std::vector<MlirAttr> attributes();
  std::vector<MlirType> types();
  std::vector<int64_t> signed_varints(size_t most);

 private:
  BytecodeTable& table_;
};

// Names and attributes in turn, as builtin's and VHLO's dictionaries have them.
MlirAttr dictionary_attribute(BytecodeEntry& entry);

// How a dialect is read. All throw Failure.
struct BytecodeDialect {
  std::string_view name;
  MlirAttr (*attribute)(BytecodeEntry& entry);
  MlirType (*type)(BytecodeEntry& entry);
  // Of an operation (without the dialect): the names of its inherent attributes in the order in
  // which they are encoded, blanks between them, `?` behind one that may be missing. Nothing: the
  // operation is not known. Null: they do nothing, and are left out.
  std::optional<std::string> (*properties)(std::string_view op);
};
const BytecodeDialect& builtin_bytecode();

struct BytecodeFile {
  uint64_t version = 0;  // of the container
  std::string producer;
  MlirModule module;
};
constexpr uint64_t kNewestBytecode = 6;

// The head of a file only: version and producer.
BytecodeFile parse_bytecode_head(std::string_view bytes);
// Throws Failure: "SECTION, byte N: …", for inherent attributes of an operation whose dialect is
// not in `dialects`, too; attributes and types of such are Kind::other. Operations have line 0, and
// as column their byte in the file.
BytecodeFile parse_mlir_bytecode(std::string_view bytes,
                                 std::span<const BytecodeDialect* const> dialects);

// Dense values from their raw bytes: all elements, or one. Booleans are a byte or a bit each.
MlirAttr dense_of(const MlirType& type, std::string_view raw, const ByteReader& bytes);
// A tensor's type; `element` must be a scalar. A negative dimension is dynamic.
MlirType tensor_of(std::vector<int64_t> dims, const MlirType& element, const ByteReader& bytes);
// A number from its bits.
MlirAttr integer_of(const MlirType& type, ByteReader& bytes);
MlirAttr floating_of(const MlirType& type, ByteReader& bytes);
constexpr size_t kMostDims = 256;

}  // namespace heddle::import
