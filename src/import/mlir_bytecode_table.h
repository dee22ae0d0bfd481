// The tables of a bytecode file: strings, dialects, names of operations, attributes and types,
// inherent attributes of operations, resources. Entries are decoded once, on demand.
#pragma once

#include <array>
#include <unordered_map>

#include "import/mlir_bytecode.h"

namespace heddle::import {

struct BytecodeOpName {
  size_t dialect = 0;
  std::string_view name;
  bool registered = false;  // its inherent attributes have the dialect's custom encoding
};

class BytecodeTable {
 public:
  // Reads all sections except the operations.
  BytecodeTable(std::string_view file, std::span<const BytecodeDialect* const> dialects);

  const BytecodeFile& head() const { return head_; }
  uint64_t version() const { return head_.version; }
  const ByteReader& operations() const { return operations_; }  // the operations' section
  const std::vector<BytecodeOpName>& op_names() const { return op_names_; }
  std::string_view dialect_name(size_t dialect) const { return dialects_[dialect].name; }
  const BytecodeDialect* dialect(size_t dialect) const { return dialects_[dialect].reader; }

  // Reads an index from `from`. Copies count towards the size limit of the tree.
  MlirAttr attribute(ByteReader& from);
  MlirAttr attribute_at(size_t index, const ByteReader& from);
  MlirType type(ByteReader& from);
  MlirType type_at(size_t index, const ByteReader& from);
  std::string_view string(ByteReader& from) const;
  std::string_view resource(ByteReader& from) const;
  // The name in a location: directly, or that of the first named location inside it.
  std::string location_name(ByteReader& from);
  // The inherent attributes of an operation; reads their index from `from`.
  void properties(const BytecodeOpName& name, ByteReader& from,
                  std::vector<std::pair<std::string, MlirAttr>>& attrs);
  // Reads a section's head and its bytes: of a file, of a dialect, of an operation's regions.
  static ByteReader section(ByteReader& from, uint8_t* id);

 private:
  struct Dialect {
    std::string_view name;
    const BytecodeDialect* reader = nullptr;
  };
  // A decoded attribute or type; `weight`: roughly the number of tree nodes that a copy adds.
  template <typename T>
  struct Entry {
    ByteReader bytes;
    uint32_t dialect = 0;
    bool custom = false, open = false;  // open: being decoded
    uint64_t weight = 0;
    std::shared_ptr<const T> value;
  };

  void read_sections(ByteReader& file);
  void read_strings(ByteReader bytes);
  void read_dialects(ByteReader bytes, std::span<const BytecodeDialect* const> readers);
  void read_op_names(ByteReader& bytes);
  void read_offsets(ByteReader offsets, ByteReader entries);
  template <typename T>
  void read_group(ByteReader& offsets, ByteReader& entries, std::vector<Entry<T>>& table);
  void read_properties(ByteReader bytes);
  void read_resources(ByteReader offsets, ByteReader bytes);
  template <typename T>
  T copy(std::vector<Entry<T>>& table, size_t index, const ByteReader& from, std::string_view what);
  template <typename T>
  std::shared_ptr<const T> decode(Entry<T>& entry);

  BytecodeFile head_;
  std::array<std::optional<ByteReader>, 9> sections_;
  ByteReader operations_;
  std::vector<std::string_view> strings_;
  std::vector<Dialect> dialects_;
  std::vector<BytecodeOpName> op_names_;
  std::vector<Entry<MlirAttr>> attributes_;
  std::vector<Entry<MlirType>> types_;
  std::vector<ByteReader> properties_;
  std::vector<std::string_view> resources_;  // of dialects, in order
  std::unordered_map<size_t, std::string> location_names_;
  uint64_t weight_ = 0, most_weight_ = 0;
  int depth_ = 0;
};

}  // namespace heddle::import
