#include "cache/object_cache.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <utility>

#include "cache/piece_hash.h"

namespace heddle::cache {
namespace {

// Precedes the object, so that that is 64-byte aligned in the mapping. A new layout needs a new
// magic.
struct alignas(64) EntryHeader {
  char magic[8];
  uint64_t key_high, key_low;
  uint64_t bytes;
  uint64_t check_high, check_low;  // hash_by_pieces of the object
  uint64_t zeros[2];
};
static_assert(sizeof(EntryHeader) == 64);
constexpr char kMagic[8] = {'h', 'e', 'd', 'o', 'b', 'j', '0', '2'};
constexpr const char* kObject = ".o";
constexpr const char* kWeights = ".w";
constexpr int64_t kMaxObjectBytes = int64_t{1} << 31;
// Younger temporary files may still be being written, younger locks may be held.
constexpr time_t kWritingSeconds = 3600;
// Eviction stops this far below the bound, so that not every store evicts.
constexpr double kKeepAfterEviction = 0.8;

struct File {
  std::string path;
  int64_t bytes = 0;
  timespec used{};
};

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }
  bool close() { return ::close(std::exchange(fd_, -1)) == 0; }

 private:
  int fd_;
};

bool is_ours(const struct stat& info) {
  return info.st_uid == geteuid() && (info.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

// Creates a directory and its parents.
bool make_directories(const std::string& path) {
  for (size_t slash = path.find('/', 1); slash != std::string::npos;
       slash = path.find('/', slash + 1))
    mkdir(path.substr(0, slash).c_str(), 0700);
  return mkdir(path.c_str(), 0700) == 0 || errno == EEXIST;
}

template <typename Function>
void for_each_name(const std::string& directory, Function&& function) {
  DIR* stream = opendir(directory.c_str());
  if (stream == nullptr) return;
  while (const dirent* entry = readdir(stream))
    if (entry->d_name[0] != '.') function(std::string(entry->d_name));
  closedir(stream);
}

bool is_hex(const std::string& text) {
  return text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

bool is_weights(const File& file) { return file.path.ends_with(kWeights); }
bool is_entry(const File& file) { return file.path.ends_with(kObject) || is_weights(file); }

// Entries, and temporary files and locks left behind by killed processes.
std::vector<File> list_files(const std::string& directory) {
  std::vector<File> files;
  for_each_name(directory, [&](const std::string& sub) {
    if (sub.size() != 2 || !is_hex(sub)) return;
    for_each_name(directory + "/" + sub, [&](const std::string& name) {
      File file{directory + "/" + sub + "/" + name};
      struct stat info;
      if (lstat(file.path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return;
      file.bytes = info.st_size;
      file.used = info.st_mtim;
      files.push_back(std::move(file));
    });
  });
  return files;
}

bool write_all(int fd, const void* data, size_t bytes) {
  const char* at = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t written = write(fd, at, bytes);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    at += written;
    bytes -= static_cast<size_t>(written);
  }
  return true;
}

bool read_all(int fd, void* data, size_t bytes) {
  char* at = static_cast<char*>(data);
  while (bytes > 0) {
    const ssize_t got = read(fd, at, bytes);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    at += got;
    bytes -= static_cast<size_t>(got);
  }
  return true;
}

Hash128 check_of(std::span<const uint8_t> bytes, int threads) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return hash_by_pieces({&text, 1}, threads)[0];
}

enum class Found { hit, absent, damaged };

// The file of an entry; checks that do not read the object.
struct EntryFile {
  explicit EntryFile(const std::string& path)
      : file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW)) {}
  Found open(const Key& key) {
    struct stat info;
    if (file.get() < 0 || fstat(file.get(), &info) != 0) return Found::absent;
    bytes = info.st_size - static_cast<int64_t>(sizeof(header));
    if (!S_ISREG(info.st_mode) || !is_ours(info) || bytes < 0 || bytes > kMaxObjectBytes ||
        !read_all(file.get(), &header, sizeof(header)))
      return Found::damaged;
    const bool good = std::memcmp(header.magic, kMagic, sizeof(kMagic)) == 0 &&
                      header.key_high == key.high && header.key_low == key.low &&
                      header.bytes == static_cast<uint64_t>(bytes) && header.zeros[0] == 0 &&
                      header.zeros[1] == 0;
    return good ? Found::hit : Found::damaged;
  }
  Found check(std::span<const uint8_t> object, int threads) const {
    if (check_of(object, threads) != Hash128{header.check_high, header.check_low})
      return Found::damaged;
    futimens(file.get(), nullptr);  // mark as used; on failure it only ages sooner
    return Found::hit;
  }
  Descriptor file;
  EntryHeader header;
  int64_t bytes = 0;  // of the object
};

Found read_entry(const std::string& path, const Key& key, std::vector<uint8_t>& object) {
  EntryFile entry(path);
  if (const Found found = entry.open(key); found != Found::hit) return found;
  object.resize(static_cast<size_t>(entry.bytes));
  if (!read_all(entry.file.get(), object.data(), object.size())) return Found::damaged;
  return entry.check(object, 1);
}

Found map_entry(const std::string& path, const Key& key, int threads, MappedEntry& mapped) {
  EntryFile entry(path);
  if (const Found found = entry.open(key); found != Found::hit) return found;
  const size_t all = sizeof(EntryHeader) + static_cast<size_t>(entry.bytes);
  void* data = mmap(nullptr, all, PROT_READ, MAP_PRIVATE, entry.file.get(), 0);
  if (data == MAP_FAILED) return Found::absent;
  mapped.owner = {data, [all](const void* at) { munmap(const_cast<void*>(at), all); }};
  mapped.bytes = {static_cast<const uint8_t*>(data) + sizeof(EntryHeader),
                  static_cast<size_t>(entry.bytes)};
  return entry.check(mapped.bytes, threads);
}

}  // namespace

struct ObjectCache::State {
  std::string directory;
  int64_t max_bytes;
  mutable std::mutex mutex;  // protects the following
  ObjectCacheStats counts;

  // Without the file name's extension.
  std::string path_of(const Key& key) const {
    const std::string name = key.hex();
    return directory + "/" + name.substr(0, 2) + "/" + name;
  }
  std::optional<FileLock> lock(const Key& key, std::chrono::milliseconds wait) const {
    const std::string path = path_of(key);
    make_directories(path.substr(0, path.rfind('/')));
    return FileLock::acquire(path + ".lock", wait);
  }
  std::optional<std::vector<uint8_t>> read(const Key& key);
  // Removes a damaged entry.
  bool is_hit(Found found, const std::string& path);
  void count(bool hit);
  Status write(const Key& key, const char* end, std::span<const uint8_t> object);
  void evict();
};

// Called after every store: other processes store too, so only the disk has the total.
void ObjectCache::State::evict() {
  std::vector<File> files = list_files(directory);
  int64_t bytes_on_disk = 0;
  for (const File& file : files) bytes_on_disk += file.bytes;
  if (bytes_on_disk <= max_bytes) return;
  // Two concurrent evictions would remove twice as much.
  const auto alone = FileLock::acquire(directory + "/evict.lock", std::chrono::milliseconds(0));
  if (!alone) return;
  std::sort(files.begin(), files.end(), [](const File& a, const File& b) {
    if (a.used.tv_sec != b.used.tv_sec) return a.used.tv_sec < b.used.tv_sec;
    if (a.used.tv_nsec != b.used.tv_nsec) return a.used.tv_nsec < b.used.tv_nsec;
    return a.path < b.path;
  });
  const auto keep = static_cast<int64_t>(static_cast<double>(max_bytes) * kKeepAfterEviction);
  for (const File& file : files) {
    if (bytes_on_disk <= keep) break;
    if (!is_entry(file) && file.used.tv_sec > time(nullptr) - kWritingSeconds) continue;
    if (unlink(file.path.c_str()) == 0) ++counts.evictions;
    bytes_on_disk -= file.bytes;
  }
}

ObjectCache::ObjectCache(std::unique_ptr<State> state) : state_(std::move(state)) {}
ObjectCache::~ObjectCache() = default;
ObjectCache::ObjectCache(ObjectCache&&) noexcept = default;
ObjectCache& ObjectCache::operator=(ObjectCache&&) noexcept = default;

Key make_key(std::span<const std::string_view> parts) {
  std::string all = "object\n";
  for (std::string_view part : parts) {
    all += fmt::format("{}:", part.size());
    all += part;
  }
  return hash128(all);
}

Key make_key(std::initializer_list<std::string_view> parts) {
  return make_key(std::span(parts.begin(), parts.size()));
}

Key object_key(std::span<const std::string_view> texts, std::string_view target,
               std::string_view build_id) {
  std::vector<std::string_view> parts{build_id, target};
  parts.insert(parts.end(), texts.begin(), texts.end());
  return make_key(parts);
}

std::string default_directory() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  if (cache != nullptr && cache[0] == '/') return std::string(cache) + "/heddle";
  const char* home = std::getenv("HOME");
  if (home != nullptr && home[0] == '/') return std::string(home) + "/.cache/heddle";
  return {};
}

std::string chosen_directory(const std::string& wanted) {
  const char* variable = std::getenv("HEDDLE_CACHE");
  const std::string directory = wanted.empty() && variable ? variable : wanted;
  if (directory == "off") return {};
  return directory.empty() ? default_directory() : directory;
}

Result<ObjectCache> ObjectCache::open(const std::string& directory, int64_t max_bytes) {
  auto state = std::make_unique<State>();
  state->directory = directory.empty() ? default_directory() : directory;
  state->max_bytes = max_bytes;
  if (state->directory.empty())
    return machine_error(
        "no cache folder: neither XDG_CACHE_HOME nor HOME is set; use --cache DIR");
  if (!make_directories(state->directory)) {
    // A name that no system accepts is the user's error.
    if (errno == ENAMETOOLONG)
      return user_error("cache folder: {}; use --cache DIR or --cache off", strerror(errno));
    return machine_error("{}: cannot make the cache folder: {}; use --cache DIR or --cache off",
                         state->directory, strerror(errno));
  }
  struct stat info;
  if (stat(state->directory.c_str(), &info) != 0 || !S_ISDIR(info.st_mode) || !is_ours(info))
    return machine_error(
        "{}: the cache folder is not a folder of this user's that only they can write; use --cache "
        "DIR or --cache off",
        state->directory);
  return ObjectCache(std::move(state));
}

const std::string& ObjectCache::directory() const { return state_->directory; }

bool ObjectCache::State::is_hit(Found found, const std::string& path) {
  if (found == Found::damaged) {
    unlink(path.c_str());
    const std::lock_guard lock(mutex);
    ++counts.damaged;
  }
  return found == Found::hit;
}

std::optional<std::vector<uint8_t>> ObjectCache::State::read(const Key& key) {
  const std::string path = path_of(key) + kObject;
  std::vector<uint8_t> object;
  if (!is_hit(read_entry(path, key, object), path)) return std::nullopt;
  return object;
}

void ObjectCache::State::count(bool hit) {
  const std::lock_guard lock(mutex);
  ++(hit ? counts.hits : counts.misses);
}

std::optional<std::vector<uint8_t>> ObjectCache::find(const Key& key) {
  auto object = state_->read(key);
  state_->count(object.has_value());
  return object;
}

Lookup ObjectCache::find_or_make(const Key& key, std::chrono::milliseconds wait) {
  Lookup result;
  result.object = state_->read(key);
  if (!result.object) {
    result.making = state_->lock(key, wait);
    // The process that was waited for has stored it.
    result.object = state_->read(key);
    if (result.object) result.making.reset();
  }
  state_->count(result.object.has_value());
  return result;
}

std::optional<MappedEntry> ObjectCache::map_weights(const Key& key, int threads) {
  const std::string path = state_->path_of(key) + kWeights;
  MappedEntry mapped;
  const bool hit = state_->is_hit(map_entry(path, key, threads, mapped), path);
  state_->count(hit);
  if (!hit) return std::nullopt;
  return mapped;
}

Status ObjectCache::State::write(const Key& key, const char* end, std::span<const uint8_t> object) {
  const std::string path = path_of(key) + end;
  const std::string folder = path.substr(0, path.rfind('/'));
  static std::atomic<int> counter{0};
  const std::string temporary = fmt::format("{}/{}.{}.tmp", folder, getpid(), ++counter);
  auto failed = [&] {
    const int error = errno;
    unlink(temporary.c_str());
    return machine_error("{}: cannot write to the cache: {}", path, strerror(error));
  };
  const Hash128 check = check_of(object, 1);
  EntryHeader header{{}, key.high, key.low, object.size(), check.high, check.low, {}};
  std::memcpy(header.magic, kMagic, sizeof(kMagic));
  const int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC;
  int fd = ::open(temporary.c_str(), flags, 0600);
  if (fd < 0 && errno == ENOENT) {  // no folder yet, or the cache was cleared
    if (!make_directories(folder)) return failed();
    fd = ::open(temporary.c_str(), flags, 0600);
  }
  Descriptor file(fd);
  if (file.get() < 0 || !write_all(file.get(), &header, sizeof(header)) ||
      !write_all(file.get(), object.data(), object.size()) || !file.close() ||
      rename(temporary.c_str(), path.c_str()) != 0)
    return failed();
  const std::lock_guard lock(mutex);
  ++counts.stores;
  evict();
  return {};
}

Status ObjectCache::store(const Key& key, std::span<const uint8_t> object) {
  return state_->write(key, kObject, object);
}

Status ObjectCache::store_weights(const Key& key, std::span<const uint8_t> weights) {
  if (static_cast<int64_t>(weights.size()) > most_weight_bytes()) return {};
  const auto alone = state_->lock(key, std::chrono::milliseconds(0));
  struct stat info;
  if (!alone || lstat((state_->path_of(key) + kWeights).c_str(), &info) == 0) return {};
  return state_->write(key, kWeights, weights);
}

int64_t ObjectCache::most_weight_bytes() const { return state_->max_bytes / 4; }

ObjectCacheStats ObjectCache::stats() const {
  ObjectCacheStats stats;
  {
    std::lock_guard lock(state_->mutex);
    stats = state_->counts;
  }
  for (const File& file : list_files(state_->directory)) {
    stats.entries += is_entry(file);
    stats.bytes += file.bytes;
    stats.weight_entries += is_weights(file);
    stats.weight_bytes += is_weights(file) ? file.bytes : 0;
  }
  stats.max_bytes = state_->max_bytes;
  return stats;
}

Status ObjectCache::clear() {
  std::lock_guard lock(state_->mutex);
  for (const File& file : list_files(state_->directory))
    if (unlink(file.path.c_str()) != 0 && errno != ENOENT)
      return machine_error("{}: cannot remove: {}", file.path, strerror(errno));
  return {};
}

}  // namespace heddle::cache
