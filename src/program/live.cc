#include "program/live.h"

#include <algorithm>

namespace heddle::program {

std::vector<const Buffer*> alive(const Program& program, int64_t first, int64_t end) {
  std::vector<const Buffer*> buffers;
  for (const Buffer& buffer : program.buffers)
    if (buffer.kind == BufferKind::temporary && buffer.space == Space::device &&
        buffer.first_command < end && buffer.last_command >= first)
      buffers.push_back(&buffer);
  return buffers;
}

int64_t covered_bytes(std::vector<const Buffer*> buffers) {
  std::sort(buffers.begin(), buffers.end(),
            [](const Buffer* a, const Buffer* b) { return a->offset_bytes < b->offset_bytes; });
  int64_t total = 0, end = 0;
  for (const Buffer* buffer : buffers) {
    const int64_t begin = std::max(end, buffer->offset_bytes);
    end = std::max(end, buffer->offset_bytes + buffer->bytes);
    total += std::max<int64_t>(0, end - begin);
  }
  return total;
}

}  // namespace heddle::program
