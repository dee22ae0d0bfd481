// Object cache: compiled code keyed by content. An entry is one file; a damaged, foreign or missing
// entry is a miss, never an error. Several processes may share a directory.
//
// Layout: <directory>/<first 2 digits>/<32 digits>.o (.w: weights, which are mapped), written to a
// temporary file and renamed: a killed process leaves no partial entry, and the checksum detects
// data lost in a crash of the machine. Directories are 0700; files of other owners, or writable by
// others, are not read, because they would be run as code. When the files exceed the size bound,
// the least recently used are removed; existing mappings remain valid. A process that is making an
// entry holds the lock file beside it, <name>.lock.
#pragma once

#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/hash.h"
#include "cache/file_lock.h"

namespace heddle::cache {

// Key of the object that `texts` (kernels, in order) compile to on a target, with a build of the
// compiler. Includes the lengths, so that different lists with equal concatenation have different
// keys.
using Key = Hash128;
Key object_key(std::span<const std::string_view> texts, std::string_view target,
               std::string_view build_id);
// The same for any parts; they must include everything that can change the object, also the build
// id of the code generator (build_id.h).
Key make_key(std::span<const std::string_view> parts);
Key make_key(std::initializer_list<std::string_view> parts);

struct ObjectCacheStats {
  int64_t hits = 0, misses = 0, damaged = 0, stores = 0, evictions = 0;  // by this C++ object
  int64_t entries = 0, bytes = 0, max_bytes = 0;                         // on disk, now
  int64_t weight_entries = 0, weight_bytes = 0;                          // included in these
};

// The stored object; or else no object and the right to make and store it: as long as `making`
// lives all others wait for it. Neither: make it without storing it.
struct Lookup {
  std::optional<std::vector<uint8_t>> object;
  std::optional<FileLock> making;
};

// The bytes of an entry in its mapped file, 64-byte aligned; `owner` keeps the mapping alive.
struct MappedEntry {
  std::span<const uint8_t> bytes;
  std::shared_ptr<const void> owner;
};

// Thread-safe.
class ObjectCache {
 public:
  static constexpr int64_t kDefaultMaxBytes = int64_t{4} << 30;
  // The longest wait for another process's compilation, which may have been stopped.
  static constexpr std::chrono::milliseconds kMostWait{120'000};

  // Empty: default_directory(). Creates the directory. Error: machine (cannot be created, or
  // belongs to someone else).
  static Result<ObjectCache> open(const std::string& directory = {},
                                  int64_t max_bytes = kDefaultMaxBytes);
  ~ObjectCache();
  ObjectCache(ObjectCache&&) noexcept;
  ObjectCache& operator=(ObjectCache&&) noexcept;

  const std::string& directory() const;
  // A hit counts as a use. A damaged entry is removed.
  std::optional<std::vector<uint8_t>> find(const Key& key);
  // The same, if every caller would make a missing entry: of several threads and processes that
  // look for it at the same time, one makes it, and the others get it when it is stored.
  Lookup find_or_make(const Key& key, std::chrono::milliseconds wait = kMostWait);
  // Error: machine. The caller may ignore it: the entry is then missing.
  Status store(const Key& key, std::span<const uint8_t> object);
  // The same for prepared weights: hundreds of megabytes, read by `threads` threads for the
  // checksum and then used in place. Their keys are separate from those of objects.
  std::optional<MappedEntry> map_weights(const Key& key, int threads);
  // Does nothing if they are already stored, another process is storing them, or they would take
  // more than most_weight_bytes().
  Status store_weights(const Key& key, std::span<const uint8_t> weights);
  // A quarter of the bound, so that one model does not evict all others.
  int64_t most_weight_bytes() const;
  ObjectCacheStats stats() const;
  // Removes every entry.
  Status clear();

 private:
  struct State;
  explicit ObjectCache(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// $XDG_CACHE_HOME/heddle, else ~/.cache/heddle; empty if neither is known.
std::string default_directory();
// The requested directory: `wanted`, else $HEDDLE_CACHE, else default_directory(); empty for "off".
std::string chosen_directory(const std::string& wanted);

}  // namespace heddle::cache
