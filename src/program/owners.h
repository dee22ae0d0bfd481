// Private to the checker: maps from memory to the buffer whose bytes it holds.
#pragma once

#include <cstdint>
#include <iterator>
#include <map>
#include <vector>

#include "program/program.h"

namespace heddle::program {

struct Range {
  int64_t begin = 0, end = 0;
  bool overlaps(const Range& other) const { return begin < other.end && other.begin < end; }
  bool operator==(const Range&) const = default;
};

// One space of memory: disjoint ranges, each with the buffer whose bytes it holds.
class Owners {
 public:
  void write(Range range, BufferId owner) {
    if (range.begin == range.end) return;
    erase(range);
    pieces_[range.begin] = {range.end, owner};
  }

  // From now on the range holds no buffer's bytes.
  void erase(Range range) {
    if (range.begin == range.end) return;
    split(range.begin);
    split(range.end);
    pieces_.erase(pieces_.lower_bound(range.begin), pieces_.lower_bound(range.end));
  }

  // Whether all of `range` holds bytes of `owner` or `other`.
  bool holds(Range range, BufferId owner, BufferId other) const {
    int64_t at = range.begin;
    while (at < range.end) {
      auto piece = pieces_.upper_bound(at);
      if (piece == pieces_.begin()) return false;
      --piece;
      if (piece->second.end <= at) return false;
      if (piece->second.owner != owner && piece->second.owner != other) return false;
      at = piece->second.end;
    }
    return true;
  }

  // The intersection; adjacent pieces of one owner are merged.
  static Owners common(const Owners& a, const Owners& b) {
    Owners result;
    for (auto x = a.pieces_.begin(), y = b.pieces_.begin();
         x != a.pieces_.end() && y != b.pieces_.end();) {
      const int64_t begin = std::max(x->first, y->first);
      const int64_t end = std::min(x->second.end, y->second.end);
      if (begin < end && x->second.owner == y->second.owner)
        result.append({begin, end}, x->second.owner);
      (x->second.end < y->second.end ? x : y)++;
    }
    return result;
  }

  void clear() { pieces_.clear(); }
  bool operator==(const Owners&) const = default;

 private:
  struct Piece {
    int64_t end;
    BufferId owner;
    bool operator==(const Piece&) const = default;
  };
  void append(Range range, BufferId owner) {
    if (!pieces_.empty()) {
      Piece& last = std::prev(pieces_.end())->second;
      if (last.end == range.begin && last.owner == owner) {
        last.end = range.end;
        return;
      }
    }
    pieces_[range.begin] = {range.end, owner};
  }
  void split(int64_t at) {
    auto piece = pieces_.upper_bound(at);
    if (piece == pieces_.begin()) return;
    --piece;
    if (piece->first == at || piece->second.end <= at) return;
    pieces_[at] = piece->second;
    piece->second.end = at;
  }
  std::map<int64_t, Piece> pieces_;  // by begin
};

// All memory that commands can write.
struct Memory {
  Owners arena, once;
  Owners host_arena, host_once;  // if the program has spaces
  std::vector<Owners> external;  // inputs, then outputs

  static Memory common(const Memory& a, const Memory& b) {
    Memory result{Owners::common(a.arena, b.arena),
                  Owners::common(a.once, b.once),
                  Owners::common(a.host_arena, b.host_arena),
                  Owners::common(a.host_once, b.host_once),
                  {}};
    for (size_t i = 0; i < a.external.size(); ++i)
      result.external.push_back(Owners::common(a.external[i], b.external[i]));
    return result;
  }
  bool operator==(const Memory&) const = default;
};

}  // namespace heddle::program
