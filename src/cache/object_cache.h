// Object cache: compiled code keyed by content. An entry is one file; a damaged, foreign or missing
// entry is a miss, never an error. Several processes may share a directory.
//
// Layout: <directory>/<first 2 digits>/<32 digits>.o (.w: weights, which are mapped), written to a
// temporary file and renamed: a killed process leaves no partial entry, and the checksum detects
// what a crashing machine did not write. Directories are 0700; files not ours (by owner, or
// writable by others) are not read, because they would be run as code. When the files exceed the
// size bound, the least recently used are removed; whoever has mapped one keeps it. Whoever makes
// an entry meanwhile holds the lock beside it, <name>.lock.
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

// Key of what `texts` (kernels, in order) compile to on a target with a build of the compiler.
// Lengths are part of it, so that no two lists share a key by running together.
using Key = Hash128;
Key object_key(std::span<const std::string_view> texts, std::string_view target,
               std::string_view build_id);
// The same of any parts; everything that can change the object must be among them, the build id of
// the code generator too (build_id.h).
Key make_key(std::span<const std::string_view> parts);
Key make_key(std::initializer_list<std::string_view> parts);

struct ObjectCacheStats {
  int64_t hits = 0, misses = 0, damaged = 0, stores = 0, evictions = 0;  // of this object
  int64_t entries = 0, bytes = 0, max_bytes = 0;                         // on disk, now
  int64_t weight_entries = 0, weight_bytes = 0;                          // of these
};

// What is stored; or else nothing, and the right to make and store it: as long as `making` lives
// all others wait for it. Neither: make it privately.
struct Lookup {
  std::optional<std::vector<uint8_t>> object;
  std::optional<FileLock> making;
};

// The bytes of an entry where its file has them, 64-byte aligned; `owner` keeps them.
struct MappedEntry {
  std::span<const uint8_t> bytes;
  std::shared_ptr<const void> owner;
};

// Thread-safe.
class ObjectCache {
 public:
  static constexpr int64_t kDefaultMaxBytes = int64_t{4} << 30;
  // Longer than this nobody waits for someone else's compilation, who may have been stopped.
  static constexpr std::chrono::milliseconds kMostWait{120'000};

  // Empty: default_directory(). Makes the directory. Error: machine (cannot be made, or belongs to
  // someone else).
  static Result<ObjectCache> open(const std::string& directory = {},
                                  int64_t max_bytes = kDefaultMaxBytes);
  ~ObjectCache();
  ObjectCache(ObjectCache&&) noexcept;
  ObjectCache& operator=(ObjectCache&&) noexcept;

  const std::string& directory() const;
  // A hit counts as a use. A damaged entry is removed.
  std::optional<std::vector<uint8_t>> find(const Key& key);
  // The same where everyone who finds nothing would make it: of threads and processes that ask at
  // once one makes it, and the others have it when it is stored.
  Lookup find_or_make(const Key& key, std::chrono::milliseconds wait = kMostWait);
  // Error: machine. The caller may go on without: the entry is then simply not there.
  Status store(const Key& key, std::span<const uint8_t> object);
  // The same of prepared weights: hundreds of megabytes, read by `threads` for the checksum and
  // then used in place. They have keys of their own.
  std::optional<MappedEntry> map_weights(const Key& key, int threads);
  // Nothing is done where they are stored already or another one is at it, and where they would
  // take more than most_weight_bytes().
  Status store_weights(const Key& key, std::span<const uint8_t> weights);
  // A quarter of the bound, so that one model does not drive out all others.
  int64_t most_weight_bytes() const;
  ObjectCacheStats stats() const;
  // Removes every entry.
  Status clear();

 private:
  struct State;
  explicit ObjectCache(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// $XDG_CACHE_HOME/heddle, else ~/.cache/heddle; empty where neither is known.
std::string default_directory();
// What was asked for: `wanted`, else $HEDDLE_CACHE, else default_directory(); empty for "off".
std::string chosen_directory(const std::string& wanted);

}  // namespace heddle::cache
