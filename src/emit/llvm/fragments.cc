// Matrix instructions on tiles (kernel/mma.h): AMX, which has eight tile registers. Fragments are
// numbered in the order in which a group's tasks use them; all have 16 rows of 64 bytes, configured
// once per phase.
#include <llvm/IR/Constants.h>
#include <llvm/IR/IntrinsicsX86.h>

#include <algorithm>

#include "emit/llvm/kernel_emitter.h"
#include "kernel/mma.h"

namespace heddle::emit {

using llvm::Value;
namespace intrin = llvm::Intrinsic;

namespace {

constexpr int kTiles = 8, kRows = 16, kRowBytes = 64;

struct TileRow {
  std::string_view name;
  unsigned intrinsic;  // takes the tiles d, a, b
};

constexpr TileRow kTable[] = {
    {"tdpbf16ps", intrin::x86_tdpbf16ps},
    {"tdpbusd", intrin::x86_tdpbusd},
};

int64_t registers_before(const kernel::Buffer& buffer) {
  int64_t count = 1;
  for (size_t axis = 0; axis + 1 < buffer.extents.size(); ++axis) count *= buffer.extents[axis];
  return count;
}

}  // namespace

// The number of a fragment's register, a constant; -1 after an error.
int KernelEmitter::tile_number(kernel::BufferId id, const ExprId* indices) {
  const kernel::Buffer& buffer = kernel_.buffer(id);
  const auto [place, is_new] = first_tiles_.try_emplace(id.value, next_tile_);
  if (is_new) next_tile_ += registers_before(buffer);
  const int64_t first = place->second;
  const int64_t bytes = buffer.extents.back() * tensor::type_bytes(buffer.type);
  if (next_tile_ > kTiles || bytes != kRows * kRowBytes) {
    fail("fragment {}: wanted at most {} tiles of {} bytes", buffer.name, kTiles,
         kRows * kRowBytes);
    return -1;
  }
  int64_t element = 0;
  for (size_t axis = 0; axis + 1 < buffer.extents.size(); ++axis) {
    auto* number = llvm::dyn_cast<llvm::ConstantInt>(eval(indices[axis]).v);
    if (!number) {
      fail("fragment {}: an index is no constant", buffer.name);
      return -1;
    }
    element = element * buffer.extents[axis] + number->getSExtValue();
  }
  uses_tiles_ = true;
  return static_cast<int>(first + element);
}

void KernelEmitter::mma(const Stmt& stmt) {
  const kernel::MmaDescriptor& mma = *kernel::find_mma(stmt.name);
  const auto row = std::ranges::find(kTable, mma.name, &TileRow::name);
  if (row == std::end(kTable) || std::ranges::count(isa_.tiles, mma.name) == 0)
    return fail("matrix instruction {} is not one of this CPU", stmt.name);
  std::vector<Value*> tiles;
  size_t at = 0;
  for (kernel::BufferId id : stmt.fragments) {
    const int number = tile_number(id, stmt.indices.data() + at);
    if (number < 0) return;
    at += kernel_.buffer(id).extents.size() - 1;
    tiles.push_back(b_.getInt8(static_cast<uint8_t>(number)));
  }
  if (tiles[0] != tiles[3]) return fail("{} adds to the fragment that it stores", stmt.name);
  tiles.pop_back();
  b_.CreateIntrinsic(row->intrinsic, {}, tiles);
}

void KernelEmitter::move_fragment(const Stmt& stmt) {
  if (isa_.tiles.empty()) return fail("this CPU has no tiles");
  const int number = tile_number(stmt.fragments[0], stmt.source_indices.data());
  if (number < 0) return;
  Value* tile = b_.getInt8(static_cast<uint8_t>(number));
  if (stmt.kind == kernel::StmtKind::fragment_clear) {
    b_.CreateIntrinsic(intrin::x86_tilezero, {}, {tile});
    return;
  }
  if (stmt.count != kRows) return fail("a fragment in {} rows, not {}", stmt.count, kRows);
  const Address memory = address(stmt.buffer, stmt.indices.data());
  const int64_t stride = stmt.stride * tensor::type_bytes(kernel_.buffer(stmt.buffer).type);
  const bool loads = stmt.kind == kernel::StmtKind::fragment_load;
  b_.CreateIntrinsic(loads ? intrin::x86_tileloadd64 : intrin::x86_tilestored64, {},
                     {tile, memory.pointer, b_.getInt64(static_cast<uint64_t>(stride))});
}

// Configures the tiles at the function's start and releases them at its end.
void KernelEmitter::configure_tiles() {
  if (!uses_tiles_) return;
  std::vector<uint8_t> bytes(64);
  bytes[0] = 1;  // the palette
  for (size_t i = 0; i < kTiles; ++i) {
    bytes[16 + 2 * i] = kRowBytes;
    bytes[48 + i] = kRows;
  }
  llvm::Constant* text = llvm::ConstantDataArray::get(b_.getContext(), bytes);
  auto* global = new llvm::GlobalVariable(module_, text->getType(), true,
                                          llvm::GlobalValue::PrivateLinkage, text, "tiles");
  llvm::BasicBlock& entry = function_->getEntryBlock();
  llvm::IRBuilder<> front(&entry, entry.begin());
  front.CreateIntrinsic(intrin::x86_ldtilecfg, {}, {global});
  b_.CreateIntrinsic(intrin::x86_tilerelease, {}, {});
}

}  // namespace heddle::emit
