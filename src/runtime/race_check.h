// Vector clocks over streams, and accesses of bytes that no order separates.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace heddle::runtime {

class RaceCheck {
 public:
  using Clock = std::vector<int64_t>;  // by stream: how many of its commands came before

  // The next command of a stream; its clock.
  const Clock& advance(size_t stream);
  const Clock& clock(size_t stream);
  // What follows on the stream comes behind all that `clock` knows.
  void join(size_t stream, const Clock& clock);
  // The host has seen this: whatever is put on a stream from here on comes behind it.
  void observe(const Clock& clock);
  // All streams have run: nothing before can race with what follows.
  void forget();

  // By the command that advance() counted last on the stream. What it races with, in words.
  std::optional<std::string> access(size_t stream, const void* begin, int64_t bytes, bool writes,
                                    const std::string& what);

 private:
  struct Access {
    uintptr_t begin, end;
    size_t stream;
    int64_t number;  // of its stream
    bool writes;
    std::string what;
  };
  void grow(size_t streams);
  std::vector<Clock> clocks_;
  Clock observed_;
  std::vector<Access> accesses_;
};

}  // namespace heddle::runtime
