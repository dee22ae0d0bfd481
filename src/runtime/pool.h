// Pool: best-fit allocator of pieces of device memory. On a miss:
// 1. if enough is free but not in one piece, wholly free blocks are returned to the device and
//    allocated again as one (defragment; used pieces never move);
// 2. the pool takes another block from the device (extend);
// 3. if the device has no memory, all free blocks are returned to it first (trim); if that fails,
//    an error gives the bytes requested, used and free, and the largest free piece.
// Adjacent free pieces are merged at once. For one thread at a time.
//
// If commands run on several streams, a free piece carries a clock: by stream, the last command
// that may still use it. A caller that knows these commands to have run takes the piece as it is;
// otherwise, rather than growing the pool, it takes the piece and waits for them.
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
  int64_t used_bytes = 0, peak_used_bytes = 0;  // in pieces given out, rounded up
  int64_t held_bytes = 0, peak_held_bytes = 0;  // allocated from the device
  int64_t largest_free_bytes = 0;
  int64_t extended = 0, defragmented = 0, trimmed = 0;  // how often
};

class Pool {
 public:
  // The device must outlive it. `limit_bytes`: most that it may hold; -1: no limit.
  explicit Pool(const Device& device, int64_t limit_bytes = -1)
      : device_(device), limit_bytes_(limit_bytes) {}

  // By stream: the number of a command; 0: none. Empty: no command on any stream.
  using Clock = std::vector<int64_t>;

  // 64-byte aligned, contents unspecified; null for 0 bytes. Error: no memory (machine). With
  // several streams, `known` gives the commands that will have run before the new use; `behind`
  // returns the commands that the new use must also wait for; empty: none.
  Result<char*> allocate(int64_t bytes, const Clock* known = nullptr, Clock* behind = nullptr);
  // `memory`: from allocate(), or null; `last`: the last commands that used it.
  void release(char* memory, const Clock& last = {});
  // Called when all work submitted to the device has run.
  void forget_clocks();

  // Returns wholly free blocks to the device.
  void trim();
  // If nothing is in use: replaces several blocks by one, of the peak size in use. If the device
  // has no block of that size, the pool then holds nothing.
  void consolidate();

  PoolNumbers numbers() const;
  // An inconsistency in the pool's own data; empty if there is none. For tests.
  std::string fault() const;

 private:
  struct Piece {
    int64_t bytes = 0;
    bool used = false;
    bool first = false;  // in its block: not merged with the piece before it
    Clock last;          // of a free piece
    uint64_t place = 0;  // grows by block and offset in the block; breaks ties
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
  // The block that the piece fills completely; or none.
  std::map<char*, Block>::iterator whole_block(Pieces::iterator piece);
  int64_t idle_block_bytes() const;
  tl::unexpected<Error> no_memory(int64_t bytes, const std::string& why) const;
  Result<Pieces::iterator> extend(int64_t bytes);

  Device device_;
  int64_t limit_bytes_;
  std::map<char*, Block> blocks_;  // by address
  Pieces pieces_;                  // by address
  // Free pieces by size and place, so that the choice does not depend on addresses.
  std::set<std::tuple<int64_t, uint64_t, char*>> free_;
  uint64_t blocks_taken_ = 0;
  int64_t free_bytes_ = 0;
  bool consolidated_ = false, has_clocks_ = false;
  PoolNumbers numbers_;
};

}  // namespace heddle::runtime
