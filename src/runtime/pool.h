// Pool: memory of a device given out in pieces, best fit. A miss is answered in this order:
// 1. where enough is free but not in one piece, blocks that are wholly free go back to the device
//    and come again as one (defragment; what is in use never moves);
// 2. the pool takes another block from the device (extend);
// 3. where the device has none, all free blocks go back to it first (trim), then an error says what
//    was asked for, used, free, and the largest free piece.
// Neighbours that are free are merged at once. For one thread at a time.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>

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

  // 64-byte aligned, contents unspecified; null for 0 bytes. Error: no memory (machine).
  Result<char*> allocate(int64_t bytes);
  void release(char* memory);  // what allocate() gave, or null

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
  };
  using Pieces = std::map<char*, Piece>;

  char* take(Pieces::iterator piece, int64_t bytes);
  Pieces::iterator add_block(Block block);
  // The block of which a piece is all; or none.
  std::map<char*, Block>::iterator whole_block(Pieces::iterator piece);
  int64_t idle_block_bytes() const;
  tl::unexpected<Error> no_memory(int64_t bytes, const std::string& why) const;
  Result<Pieces::iterator> extend(int64_t bytes);

  Device device_;
  int64_t limit_bytes_;
  std::map<char*, Block> blocks_;             // by address
  Pieces pieces_;                             // by address
  std::set<std::pair<int64_t, char*>> free_;  // pieces by size
  int64_t free_bytes_ = 0;
  bool consolidated_ = false;
  PoolNumbers numbers_;
};

}  // namespace heddle::runtime
