// Pool: memory of a device given out in pieces, best fit. A miss is answered in this order:
// 1. where enough is free but not in one piece, blocks that are wholly free go back to the device
//    and come again as one (defragment; what is in use never moves);
// 2. the pool takes another block from the device (extend);
// 3. where the device has none, all free blocks go back to it first (trim), then an error says what
//    was asked for, used, free, and the largest free piece.
// Neighbours that are free are merged at once. For one thread at a time.
//
// Where commands run on several streams a piece carries a clock: by stream, the last command that
// may still use it. Who knows these to have run takes it as it is; before the pool grows, others
// take it and wait for them.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "base/error.h"
#include "runtime/device.h"

namespace heddle::runtime {

struct PoolNumbers {
  int64_t used_bytes = 0, peak_used_bytes = 0;  // pieces given out, with alignment
  int64_t held_bytes = 0, peak_held_bytes = 0;  // taken from the device
  int64_t largest_free_bytes = 0;
  int64_t extended = 0, defragmented = 0, trimmed = 0;  // times
};

class Pool {
 public:
  // The device must outlive it. `limit_bytes`: of what it holds; -1: none.
  explicit Pool(const Device& device, int64_t limit_bytes = -1)
      : device_(device), limit_bytes_(limit_bytes) {}

  // By stream: the number of a command; 0: none. Empty: nothing on any stream.
  using Clock = std::vector<int64_t>;

  // 64-byte aligned, contents unspecified; null for 0 bytes. Error: no memory (machine). `known`,
  // for several streams: what has run before the use to come. `behind` is then what must have run,
  // too; empty: nothing.
  Result<char*> allocate(int64_t bytes, const Clock* known = nullptr, Clock* behind = nullptr);
  // What allocate() gave, or null; `last`: the commands that used it last.
  void release(char* memory, const Clock& last = {});
  // All that was asked of the device has run.
  void forget_clocks();

  // Gives blocks that are wholly free back to the device.
  void trim();
  // With nothing in use: one block instead of several, of what was needed at once at most. Where
  // the device has no block of that size nothing is held.
  void consolidate();

  PoolNumbers numbers() const;
  // What is wrong with the pool's own books; empty if nothing. For tests.
  std::string fault() const;

 private:
  struct Piece {
    int64_t bytes = 0;
    bool used = false;
    bool first = false;  // of its block: not merged with what lies in front of it
    Clock last;          // of a free one
    uint64_t place = 0;  // grows with the blocks taken and inside them: decides between equals
  };
  using Pieces = std::map<char*, Piece>;

  void list(Pieces::iterator piece) { free_.insert(entry(piece)); }
  void unlist(Pieces::iterator piece) { free_.erase(entry(piece)); }
  static std::tuple<int64_t, uint64_t, char*> entry(Pieces::iterator piece) {
    return {piece->second.bytes, piece->second.place, piece->first};
  }
  Pieces::iterator find(int64_t bytes, const Clock* known);
  char* take(Pieces::iterator piece, int64_t bytes);
  Pieces::iterator add_block(Block block);
  // The block of which a piece is all; or none.
  std::map<char*, Block>::iterator whole_block(Pieces::iterator piece);
  int64_t idle_block_bytes() const;
  tl::unexpected<Error> no_memory(int64_t bytes, const std::string& why) const;
  Result<Pieces::iterator> extend(int64_t bytes);

  Device device_;
  int64_t limit_bytes_;
  std::map<char*, Block> blocks_;  // by address
  Pieces pieces_;                  // by address
  // Pieces by size and place: what is chosen does not depend on addresses.
  std::set<std::tuple<int64_t, uint64_t, char*>> free_;
  uint64_t blocks_taken_ = 0;
  int64_t free_bytes_ = 0;
  bool consolidated_ = false, has_clocks_ = false;
  PoolNumbers numbers_;
};

}  // namespace heddle::runtime
