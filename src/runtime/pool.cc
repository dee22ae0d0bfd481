#include "runtime/pool.h"

#include <algorithm>
#include <vector>

#include "base/check.h"

namespace heddle::runtime {
namespace {

constexpr int64_t kGrain = 64;
constexpr uint64_t kBlockPlaces = uint64_t{1} << 40;

int64_t grains(int64_t bytes) { return (bytes + kGrain - 1) / kGrain * kGrain; }

bool is_known(const Pool::Clock& last, const Pool::Clock& known) {
  for (size_t s = 0; s < last.size(); ++s)
    if (last[s] > (s < known.size() ? known[s] : 0)) return false;
  return true;
}

void join(Pool::Clock& clock, const Pool::Clock& other) {
  if (clock.size() < other.size()) clock.resize(other.size());
  for (size_t s = 0; s < other.size(); ++s) clock[s] = std::max(clock[s], other[s]);
}

}  // namespace

Result<char*> Pool::allocate(int64_t bytes, const Clock* known, Clock* behind) {
  if (behind != nullptr) behind->clear();
  if (bytes == 0) return nullptr;
  HEDDLE_CHECK(bytes > 0 && bytes <= INT64_MAX - kGrain, "{} bytes", bytes);
  bytes = grains(bytes);
  Pieces::iterator piece = find(bytes, known);
  if (piece == pieces_.end()) {
    HEDDLE_ASSIGN_OR_RETURN(piece, extend(bytes));
  }
  if (known != nullptr && !is_known(piece->second.last, *known)) *behind = piece->second.last;
  return take(piece, bytes);
}

// The smallest piece that fits and needs no wait; if there is none, the smallest that fits.
Pool::Pieces::iterator Pool::find(int64_t bytes, const Clock* known) {
  const auto fitting = free_.lower_bound({bytes, 0, nullptr});
  if (fitting == free_.end()) return pieces_.end();
  if (known != nullptr)
    for (auto one = fitting; one != free_.end(); ++one)
      if (const auto piece = pieces_.find(std::get<2>(*one)); is_known(piece->second.last, *known))
        return piece;
  return pieces_.find(std::get<2>(*fitting));
}

Result<Pool::Pieces::iterator> Pool::extend(int64_t bytes) {
  int64_t wanted = bytes;
  if (free_bytes_ >= bytes)
    if (const int64_t idle = idle_block_bytes(); idle > 0) {
      trim();
      ++numbers_.defragmented;
      wanted = std::max(bytes, idle);
    }
  // Try the wanted size, then the required one.
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
  return error_of(
      ErrorKind::memory,
      "no memory for {} bytes: the pool has {} in use and {} free, {} in one piece ({})", bytes,
      now.used_bytes, free_bytes_, now.largest_free_bytes, why);
}

Pool::Pieces::iterator Pool::add_block(Block block) {
  char* const at = block.data();
  const int64_t bytes = block.bytes();
  numbers_.held_bytes += bytes;
  numbers_.peak_held_bytes = std::max(numbers_.peak_held_bytes, numbers_.held_bytes);
  free_bytes_ += bytes;
  blocks_.emplace(at, std::move(block));
  const auto piece =
      pieces_.emplace(at, Piece{bytes, false, true, {}, blocks_taken_++ * kBlockPlaces}).first;
  list(piece);
  return piece;
}

// Takes the front of a free piece.
char* Pool::take(Pieces::iterator piece, int64_t bytes) {
  char* const at = piece->first;
  Piece& taken = piece->second;
  unlist(piece);
  if (const int64_t rest = taken.bytes - bytes; rest > 0) {
    list(pieces_.emplace_hint(
        std::next(piece), at + bytes,
        Piece{rest, false, false, taken.last, taken.place + static_cast<uint64_t>(bytes)}));
    taken.bytes = bytes;
  }
  taken.used = true;
  taken.last.clear();
  free_bytes_ -= bytes;
  numbers_.used_bytes += bytes;
  numbers_.peak_used_bytes = std::max(numbers_.peak_used_bytes, numbers_.used_bytes);
  return at;
}

void Pool::release(char* memory, const Clock& last) {
  if (memory == nullptr) return;
  auto piece = pieces_.find(memory);
  HEDDLE_CHECK(piece != pieces_.end() && piece->second.used, "released what was not given");
  piece->second.used = false;
  piece->second.last = last;
  has_clocks_ = has_clocks_ || !last.empty();
  numbers_.used_bytes -= piece->second.bytes;
  free_bytes_ += piece->second.bytes;
  const auto next = std::next(piece);
  if (next != pieces_.end() && !next->second.used && !next->second.first) {
    unlist(next);
    piece->second.bytes += next->second.bytes;
    join(piece->second.last, next->second.last);
    pieces_.erase(next);
  }
  if (!piece->second.first) {
    const auto before = std::prev(piece);
    if (!before->second.used) {
      unlist(before);
      before->second.bytes += piece->second.bytes;
      join(before->second.last, piece->second.last);
      pieces_.erase(piece);
      piece = before;
    }
  }
  list(piece);
}

void Pool::forget_clocks() {
  if (!has_clocks_) return;
  for (auto& [at, piece] : pieces_) piece.last.clear();
  has_clocks_ = false;
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
  // Work that uses blocks must have run before they are returned to the device.
  if (has_clocks_ && device_.hal().wait(device_.hal().device) == 0) forget_clocks();
  for (auto piece = pieces_.begin(); piece != pieces_.end();) {
    const auto block = whole_block(piece);
    if (block == blocks_.end()) {
      ++piece;
      continue;
    }
    unlist(piece);
    free_bytes_ -= piece->second.bytes;
    numbers_.held_bytes -= piece->second.bytes;
    piece = pieces_.erase(piece);
    blocks_.erase(block);
    ++numbers_.trimmed;
  }
}

void Pool::consolidate() {
  if (blocks_.size() < 2 || numbers_.used_bytes > 0) return;
  // First the peak in use; if best fit needed more than that, the bytes held.
  const int64_t wanted = consolidated_ ? numbers_.held_bytes : numbers_.peak_used_bytes;
  consolidated_ = true;
  trim();
  if (auto block = Block::allocate(device_, wanted)) add_block(std::move(*block));
}

PoolNumbers Pool::numbers() const {
  PoolNumbers result = numbers_;
  result.largest_free_bytes = free_.empty() ? 0 : std::get<0>(*free_.rbegin());
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
    if (!about.used && (++unused_count, free_.count({about.bytes, about.place, at}) == 0))
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
