#include "runtime/pool.h"

#include <algorithm>
#include <vector>

#include "base/check.h"

namespace heddle::runtime {
namespace {

constexpr int64_t kGrain = 64;

int64_t grains(int64_t bytes) { return (bytes + kGrain - 1) / kGrain * kGrain; }

}  // namespace

Result<char*> Pool::allocate(int64_t bytes) {
  if (bytes == 0) return nullptr;
  HEDDLE_CHECK(bytes > 0 && bytes <= INT64_MAX - kGrain, "{} bytes", bytes);
  bytes = grains(bytes);
  const auto fitting = free_.lower_bound({bytes, nullptr});
  if (fitting != free_.end()) return take(pieces_.find(fitting->second), bytes);
  HEDDLE_ASSIGN_OR_RETURN(const Pieces::iterator piece, extend(bytes));
  return take(piece, bytes);
}

Result<Pool::Pieces::iterator> Pool::extend(int64_t bytes) {
  int64_t wanted = bytes;
  if (free_bytes_ >= bytes)
    if (const int64_t idle = idle_block_bytes(); idle > 0) {
      trim();
      ++numbers_.defragmented;
      wanted = std::max(bytes, idle);
    }
  // What can be had, then what must.
  for (const int64_t size : {wanted, bytes}) {
    if (limit_bytes_ >= 0 && size > limit_bytes_ - numbers_.held_bytes) {
      trim();
      if (size > limit_bytes_ - numbers_.held_bytes) continue;
    }
    auto block = Block::allocate(device_, size);
    if (!block && idle_block_bytes() > 0) {
      trim();
      block = Block::allocate(device_, size);
    }
    if (block) {
      ++numbers_.extended;
      return add_block(std::move(*block));
    }
    if (size == bytes) return no_memory(bytes, block.error().message);
  }
  return no_memory(bytes, "the limit is " + std::to_string(limit_bytes_));
}

tl::unexpected<Error> Pool::no_memory(int64_t bytes, const std::string& why) const {
  const PoolNumbers now = numbers();
  return machine_error(
      "no memory for {} bytes: the pool has {} in use and {} free, {} in one piece ({})", bytes,
      now.used_bytes, free_bytes_, now.largest_free_bytes, why);
}

Pool::Pieces::iterator Pool::add_block(Block block) {
  char* const at = block.data();
  const int64_t bytes = block.bytes();
  numbers_.held_bytes += bytes;
  numbers_.peak_held_bytes = std::max(numbers_.peak_held_bytes, numbers_.held_bytes);
  free_bytes_ += bytes;
  free_.insert({bytes, at});
  blocks_.emplace(at, std::move(block));
  return pieces_.emplace(at, Piece{bytes, false, true}).first;
}

// The front of a free piece.
char* Pool::take(Pieces::iterator piece, int64_t bytes) {
  char* const at = piece->first;
  Piece& taken = piece->second;
  free_.erase({taken.bytes, at});
  if (const int64_t rest = taken.bytes - bytes; rest > 0) {
    pieces_.emplace_hint(std::next(piece), at + bytes, Piece{rest, false, false});
    free_.insert({rest, at + bytes});
    taken.bytes = bytes;
  }
  taken.used = true;
  free_bytes_ -= bytes;
  numbers_.used_bytes += bytes;
  numbers_.peak_used_bytes = std::max(numbers_.peak_used_bytes, numbers_.used_bytes);
  return at;
}

void Pool::release(char* memory) {
  if (memory == nullptr) return;
  auto piece = pieces_.find(memory);
  HEDDLE_CHECK(piece != pieces_.end() && piece->second.used, "released what was not given");
  piece->second.used = false;
  numbers_.used_bytes -= piece->second.bytes;
  free_bytes_ += piece->second.bytes;
  const auto next = std::next(piece);
  if (next != pieces_.end() && !next->second.used && !next->second.first) {
    free_.erase({next->second.bytes, next->first});
    piece->second.bytes += next->second.bytes;
    pieces_.erase(next);
  }
  if (!piece->second.first) {
    const auto before = std::prev(piece);
    if (!before->second.used) {
      free_.erase({before->second.bytes, before->first});
      before->second.bytes += piece->second.bytes;
      pieces_.erase(piece);
      piece = before;
    }
  }
  free_.insert({piece->second.bytes, piece->first});
}

std::map<char*, Block>::iterator Pool::whole_block(Pieces::iterator piece) {
  if (piece->second.used || !piece->second.first) return blocks_.end();
  const auto block = blocks_.find(piece->first);
  return block->second.bytes() == piece->second.bytes ? block : blocks_.end();
}

int64_t Pool::idle_block_bytes() const {
  int64_t bytes = 0;
  for (const auto& [at, block] : blocks_) {
    const Piece& piece = pieces_.at(at);
    if (!piece.used && piece.bytes == block.bytes()) bytes += block.bytes();
  }
  return bytes;
}

void Pool::trim() {
  for (auto piece = pieces_.begin(); piece != pieces_.end();) {
    const auto block = whole_block(piece);
    if (block == blocks_.end()) {
      ++piece;
      continue;
    }
    free_.erase({piece->second.bytes, piece->first});
    free_bytes_ -= piece->second.bytes;
    numbers_.held_bytes -= piece->second.bytes;
    piece = pieces_.erase(piece);
    blocks_.erase(block);
    ++numbers_.trimmed;
  }
}

void Pool::consolidate() {
  if (blocks_.size() < 2 || numbers_.used_bytes > 0) return;
  // What was used at once; where best fit does not manage with it, what was held.
  const int64_t wanted = consolidated_ ? numbers_.held_bytes : numbers_.peak_used_bytes;
  consolidated_ = true;
  trim();
  if (auto block = Block::allocate(device_, wanted)) add_block(std::move(*block));
}

PoolNumbers Pool::numbers() const {
  PoolNumbers result = numbers_;
  result.largest_free_bytes = free_.empty() ? 0 : free_.rbegin()->first;
  return result;
}

std::string Pool::fault() const {
  int64_t used = 0, unused = 0, held = 0;
  size_t unused_count = 0, firsts = 0;
  const std::pair<char* const, Piece>* before = nullptr;
  for (const auto& piece : pieces_) {
    const auto& [at, about] = piece;
    if (about.bytes <= 0 || about.bytes % kGrain != 0) return "a piece has no whole grains";
    if (about.first != (blocks_.count(at) > 0)) return "a piece and its block do not agree";
    if (!about.first && (before == nullptr || before->first + before->second.bytes != at))
      return "pieces of a block do not touch";
    if (!about.first && !about.used && !before->second.used) return "free neighbours are apart";
    firsts += about.first;
    (about.used ? used : unused) += about.bytes;
    if (!about.used && (++unused_count, free_.count({about.bytes, at}) == 0))
      return "a free piece is not listed";
    before = &piece;
  }
  for (const auto& [at, block] : blocks_) held += block.bytes();
  if (firsts != blocks_.size()) return "a block has no pieces";
  if (unused_count != free_.size()) return "the list has pieces that are not free";
  if (used != numbers_.used_bytes || unused != free_bytes_ || held != numbers_.held_bytes ||
      used + unused != held)
    return "the sums do not fit";
  return "";
}

}  // namespace heddle::runtime
