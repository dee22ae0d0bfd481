// The section of operations: regions, blocks, operations, and the numbering of values.
#include "import/mlir_bytecode.h"

#include <algorithm>
#include <limits>

#include "import/mlir_bytecode_table.h"

namespace heddle::import {
namespace {

constexpr int kDeepest = 200;  // nested regions
constexpr uint64_t kLazyRegions = 2, kUseLists = 3, kShortArguments = 4;
constexpr uint8_t kOperationsSection = 4;
constexpr MlirValue kUndefined = -1;

class OperationReader {
 public:
  explicit OperationReader(BytecodeTable* table) : table_(*table) {}

  MlirModule read() {
    ByteReader bytes = table_.operations();
    scopes_.emplace_back();
    Region region;
    block(bytes, module_.body, region);
    bytes.want_end();
    return std::move(module_);
  }

 private:
  // The range of a region's values in the innermost scope.
  struct Region {
    size_t next = 0, end = 0;
  };

  void define(MlirType type, Region& region, std::vector<MlirValue>& values,
              const ByteReader& bytes) {
    if (module_.values.size() >= std::numeric_limits<MlirValue>::max())
      bytes.fail("too many values");
    const auto value = static_cast<MlirValue>(module_.values.size());
    module_.values.push_back(std::move(type));
    values.push_back(value);
    if (region.next >= region.end) bytes.fail("a region defines more values than it says");
    scopes_.back()[region.next++] = value;
  }

  void region(ByteReader& bytes, MlirRegion& made) {
    if (++depth_ > kDeepest) bytes.fail("regions nested deeper than {} levels", kDeepest);
    const size_t blocks = bytes.count("blocks");
    if (blocks > 0) {
      std::vector<MlirValue>& scope = scopes_.back();
      Region region;
      region.next = scope.size();
      region.end = region.next + bytes.count("values");
      claimed_ += region.end - region.next;
      if (claimed_ > table_.operations().left()) bytes.fail("more values than bytes");
      scope.resize(region.end, kUndefined);
      const size_t begin = region.next;
      for (size_t i = 0; i < blocks; ++i) block(bytes, made.blocks.emplace_back(), region);
      scopes_.back().resize(begin);
    }
    --depth_;
  }

  void block(ByteReader& bytes, MlirBlock& made, Region& region) {
    bool has_arguments = false;
    const uint64_t ops = bytes.flagged(&has_arguments);
    if (ops > bytes.left()) bytes.fail("{} operations, but {} bytes are left", ops, bytes.left());
    if (has_arguments) arguments(bytes, made, region);
    for (uint64_t i = 0; i < ops; ++i) made.ops.push_back(operation(bytes, region));
  }

  void arguments(ByteReader& bytes, MlirBlock& made, Region& region) {
    const size_t count = bytes.count("arguments");
    for (size_t i = 0; i < count; ++i) {
      bool has_location = true;
      MlirType type;
      if (table_.version() >= kShortArguments) {
        const uint64_t index = bytes.flagged(&has_location);
        type = table_.type_at(static_cast<size_t>(index), bytes);
      } else {
        type = table_.type(bytes);
      }
      if (has_location) bytes.varint();
      define(std::move(type), region, made.arguments, bytes);
    }
    if (table_.version() >= kUseLists && bytes.byte() != 0) skip_use_lists(bytes, count);
  }

  // Skips the order of uses of values, which has no meaning for a program.
  static void skip_use_lists(ByteReader& bytes, size_t values) {
    const size_t count = values > 1 ? bytes.count("values") : 1;
    for (size_t i = 0; i < count; ++i) {
      if (values > 1) bytes.varint();
      bool pairs = false;
      const uint64_t indices = bytes.flagged(&pairs);
      if (indices > bytes.left())
        bytes.fail("{} indices, but {} bytes are left", indices, bytes.left());
      for (uint64_t k = 0; k < indices; ++k) bytes.varint();
    }
  }

  MlirOp operation(ByteReader& bytes, Region& region) {
    enum Part : uint8_t {
      kAttributes = 1,
      kResults = 2,
      kOperands = 4,
      kSuccessors = 8,
      kRegions = 16,
      kUses = 32,
      kProperties = 64
    };
    MlirOp op;
    op.column =
        static_cast<int32_t>(std::min<size_t>(bytes.place(), std::numeric_limits<int32_t>::max()));
    const BytecodeOpName& name =
        table_.op_names()[bytes.index("operation's name", table_.op_names().size())];
    op.name = std::string(table_.dialect_name(name.dialect));
    if (!name.name.empty()) op.name += "." + std::string(name.name);
    const uint8_t parts = bytes.byte();
    op.location = table_.location_name(bytes);
    if ((parts & kAttributes) != 0) {
      MlirAttr all = table_.attribute(bytes);
      if (!all.is(MlirAttr::Kind::dictionary)) bytes.fail("attributes are no dictionary");
      op.attrs = std::move(all.fields);
    }
    if ((parts & kProperties) != 0) table_.properties(name, bytes, op.attrs);
    std::vector<MlirType> types;
    if ((parts & kResults) != 0)
      for (size_t n = bytes.count("results"); n > 0; --n) types.push_back(table_.type(bytes));
    if ((parts & kOperands) != 0) operands(bytes, op);
    if ((parts & kSuccessors) != 0) bytes.fail("{}: successor blocks are not supported", op.name);
    if (table_.version() >= kUseLists && (parts & kUses) != 0) skip_use_lists(bytes, types.size());
    bool isolated = false;
    uint64_t regions = 0;
    if ((parts & kRegions) != 0) regions = bytes.flagged(&isolated);
    for (MlirType& type : types) define(std::move(type), region, op.results, bytes);
    if (regions > 0) read_regions(bytes, op, regions, isolated);
    return op;
  }

  void operands(ByteReader& bytes, MlirOp& op) {
    const std::vector<MlirValue>& values = scopes_.back();
    for (size_t n = bytes.count("operands"); n > 0; --n) {
      const MlirValue value = values[bytes.index("value", values.size())];
      if (value == kUndefined) bytes.fail("{}: a value is used before it is defined", op.name);
      op.operands.push_back(value);
    }
  }

  void read_regions(ByteReader& bytes, MlirOp& op, uint64_t count, bool isolated) {
    ByteReader section;
    ByteReader* from = &bytes;
    if (isolated) {
      scopes_.emplace_back();
      if (table_.version() >= kLazyRegions) {
        uint8_t id = 0;
        section = BytecodeTable::section(bytes, &id);
        if (id != kOperationsSection) bytes.fail("wanted a section of operations, got {}", id);
        from = &section;
      }
    }
    if (count > from->left()) bytes.fail("{} regions, but {} bytes are left", count, from->left());
    op.regions.reserve(static_cast<size_t>(std::min<uint64_t>(count, 8)));
    for (uint64_t i = 0; i < count; ++i) region(*from, op.regions.emplace_back());
    if (!isolated) return;
    scopes_.pop_back();
    if (from == &section) section.want_end();
  }

  BytecodeTable& table_;
  MlirModule module_;
  // Values by number, one list for each isolated region (such as a function).
  std::vector<std::vector<MlirValue>> scopes_;
  size_t claimed_ = 0;  // values of all regions
  int depth_ = 0;
};

}  // namespace

BytecodeFile parse_mlir_bytecode(std::string_view bytes,
                                 std::span<const BytecodeDialect* const> dialects) {
  BytecodeTable table(bytes, dialects);
  BytecodeFile file = table.head();
  file.module = unwrap_module(OperationReader(&table).read());
  return file;
}

}  // namespace heddle::import
