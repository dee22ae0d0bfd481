#include "import/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "import/failure.h"

namespace heddle::import {
namespace {

class Descriptor {
 public:
  explicit Descriptor(int value) : value_(value) {}
  ~Descriptor() {
    if (value_ >= 0) ::close(value_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return value_; }
  void reset(int value) {
    if (value_ >= 0) ::close(value_);
    value_ = value;
  }

 private:
  int value_;
};

// O_NONBLOCK: opening a pipe without a writer must not block; it has no effect on regular files.
constexpr int kOpenFlags = O_RDONLY | O_CLOEXEC | O_NONBLOCK;

Status check_location(std::string_view location) {
  constexpr size_t kLongest = 4096;
  const auto refused = [&](const char* reason) {
    return user_error(
        "external data location {} {}; it must be a relative path below the model's folder",
        quoted(location), reason);
  };
  if (location.empty()) return refused("is empty");
  if (location.size() > kLongest) return refused("is too long");
  if (location.find('\0') != std::string_view::npos) return refused("has a NUL byte");
  if (location.find('\\') != std::string_view::npos) return refused("has a backslash");
  if (location.front() == '/') return refused("is absolute");
  const std::string_view last = location.substr(location.rfind('/') + 1);
  if (last.empty() || last == ".") return refused("names a folder");
  return {};
}

// The components of a relative path, without empty ones and ".".
std::vector<std::string> components(std::string_view location) {
  std::vector<std::string> parts;
  while (!location.empty()) {
    const size_t slash = location.find('/');
    const std::string_view part = location.substr(0, slash);
    if (!part.empty() && part != ".") parts.emplace_back(part);
    if (slash == std::string_view::npos) break;
    location.remove_prefix(slash + 1);
  }
  return parts;
}

}  // namespace

MappedFile::~MappedFile() {
  if (size_ > 0) ::munmap(const_cast<char*>(data_), size_);
}

Result<std::shared_ptr<const MappedFile>> MappedFile::map(int descriptor,
                                                          const std::string& shown) {
  struct stat status{};
  if (::fstat(descriptor, &status) != 0)
    return user_error("{}: cannot be examined: {}", shown, std::strerror(errno));
  if (!S_ISREG(status.st_mode)) return user_error("{}: not a regular file", shown);
  const auto size = static_cast<size_t>(status.st_size);
  const char* data = nullptr;
  if (size > 0) {
    void* address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
    if (address == MAP_FAILED)
      return machine_error("{}: cannot be mapped: {}", shown, std::strerror(errno));
    data = static_cast<const char*>(address);
  }
  return std::shared_ptr<const MappedFile>(new MappedFile(data, size));
}

Result<std::shared_ptr<const MappedFile>> MappedFile::open(const std::string& path) {
  const Descriptor file(::open(path.c_str(), kOpenFlags));
  if (file.get() < 0) return user_error("{}: cannot be opened: {}", path, std::strerror(errno));
  return map(file.get(), path);
}

Result<std::shared_ptr<const MappedFile>> MappedFile::open_inside(const std::string& directory,
                                                                  std::string_view location) {
  HEDDLE_RETURN_IF_ERROR(check_location(location));
  const std::vector<std::string> parts = components(location);
  const std::string shown = fmt::format("external data {}", quoted(location));
  if (parts.empty()) return user_error("{}: names a folder", shown);
  Descriptor at(::open(directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (at.get() < 0)
    return user_error("{}: folder {}: {}", shown, quoted(directory), std::strerror(errno));
  // Opens one component after the other, none through a link: the file opened is then the one that
  // was checked, even if folders change meanwhile.
  for (size_t i = 0; i < parts.size(); ++i) {
    if (parts[i] == "..") return user_error("{}: '..' is not allowed", shown);
    const bool last = i + 1 == parts.size();
    const int flags =
        last ? kOpenFlags | O_NOFOLLOW : O_PATH | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW;
    const int next = ::openat(at.get(), parts[i].c_str(), flags);
    if (next < 0) {
      const bool link = errno == ELOOP || (errno == ENOTDIR && !last);
      return user_error(
          "{}: {}: {}", shown, quoted(parts[i]),
          link ? "a link, or not a folder; links are not followed" : std::strerror(errno));
    }
    at.reset(next);
  }
  struct stat status{};
  if (::fstat(at.get(), &status) == 0 && S_ISREG(status.st_mode) && status.st_nlink > 1)
    return user_error("{}: has {} hard links, wanted one; copy the file", shown, status.st_nlink);
  return map(at.get(), shown);
}

void MappedFile::forget(std::string_view part) const {
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const uintptr_t first = (reinterpret_cast<uintptr_t>(part.data()) + page - 1) / page * page;
  const uintptr_t last = reinterpret_cast<uintptr_t>(part.data() + part.size()) / page * page;
  if (first < last) ::madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
}

Result<std::shared_ptr<const MappedFile>> ExternalFiles::open(std::string_view location) {
  if (directory_.empty())
    return user_error("external data {}: the model was not read from a folder", quoted(location));
  const auto known = files_.find(location);
  if (known != files_.end()) return known->second;
  HEDDLE_ASSIGN_OR_RETURN(auto file, MappedFile::open_inside(directory_, location));
  files_.emplace(std::string(location), file);
  return file;
}

std::vector<std::string> ExternalFiles::paths() const {
  std::vector<std::string> result;
  for (const auto& [location, file] : files_) result.push_back(directory_ + "/" + location);
  return result;
}

}  // namespace heddle::import
