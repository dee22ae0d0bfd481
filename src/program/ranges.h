// The bytes that a view covers, comparable between views of different buffers.
#pragma once

#include <utility>

#include "program/program.h"

namespace heddle::program {

// A piece of memory: the arena or the once block (of a space), an input, an output. An output that
// may be bound to an input's memory counts as that input.
using Memory = std::pair<BufferKind, int64_t>;

struct ByteRange {
  Memory memory;
  int64_t begin = 0, end = 0;
  bool overlaps(const ByteRange& other) const {
    return memory == other.memory && begin < other.end && other.begin < end;
  }
};

ByteRange range_of(const Program& program, const View& view);

}  // namespace heddle::program
