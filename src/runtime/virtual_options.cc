// The text of a virtual device's options.
#include <charconv>
#include <map>

#include "runtime/virtual_device.h"

namespace heddle::runtime {

Result<VirtualOptions> parse_virtual(std::string_view text) {
  VirtualOptions options;
  size_t at = std::min(text.find(','), text.size());
  options.name = text.substr(0, at);
  if (options.name.empty()) return user_error("device virtual: wanted virtual:NAME of a target");
  const std::map<std::string_view, int64_t*> keys = {
      {"capacity", &options.capacity_bytes},
      {"streams", &options.streams},
      {"no-memory", &options.faults.no_memory_at},
      {"lost-event", &options.faults.lost_event_at},
      {"lost", &options.faults.lost_at},
      {"slow", &options.faults.slow_stream},
      {"lost-stream", &options.faults.lost_stream},
  };
  while (at < text.size()) {
    const size_t end = std::min(text.find(',', at + 1), text.size());
    const std::string_view part = text.substr(at + 1, end - at - 1);
    at = end;
    const size_t equals = std::min(part.find('='), part.size());
    const std::string_view key = part.substr(0, equals);
    const std::string_view value = part.substr(std::min(equals + 1, part.size()));
    int64_t number = 0;
    const auto [stop, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    if (error != std::errc{} || stop != value.data() + value.size() || number < 0)
      return user_error("device virtual: '{}': wanted KEY=NUMBER", part);
    if (key == "seed") {
      options.seed = static_cast<uint64_t>(number);
    } else if (const auto found = keys.find(key); found != keys.end()) {
      *found->second = number;
    } else {
      return user_error(
          "device virtual: '{}': wanted capacity, streams, seed, no-memory, lost-event, lost, "
          "lost-stream or slow",
          key);
    }
  }
  return options;
}

}  // namespace heddle::runtime
