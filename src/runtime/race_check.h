// Vector clocks over streams; reports accesses of the same bytes that nothing orders.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace heddle::runtime {

class RaceCheck {
 public:
  using Clock = std::vector<int64_t>;  // by stream: how many of its commands came before

  // Counts a new command of the stream; returns its clock.
  const Clock& advance(size_t stream);
  const Clock& clock(size_t stream);
  // Orders later work on the stream after everything that `clock` counts.
  void join(size_t stream, const Clock& clock);
  // The host has seen this clock: later work on any stream is ordered after it.
  void observe(const Clock& clock);
  // All streams have run: earlier accesses cannot race with later ones.
  void forget();

  // Notes an access by the command that advance() last counted on the stream. Returns a description
  // of a race with it, if there is one.
  std::optional<std::string> access(size_t stream, const void* begin, int64_t bytes, bool writes,
                                    const std::string& what);

 private:
  struct Access {
    uintptr_t begin, end;
    size_t stream;
    int64_t number;  // of the command in its stream
    bool writes;
    std::string what;
  };
  void grow(size_t streams);
  std::vector<Clock> clocks_;
  Clock observed_;
  std::vector<Access> accesses_;
};

}  // namespace heddle::runtime
