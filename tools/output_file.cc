#include "output_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>
#include <utility>

namespace heddle::tools {
namespace {

namespace fs = std::filesystem;

class Descriptor {
 public:
  explicit Descriptor(int value) : value_(value) {}
  ~Descriptor() {
    if (value_ >= 0) ::close(value_);
  }
  Descriptor(const Descriptor&) = delete;
  int get() const { return value_; }
  bool close() { return ::close(std::exchange(value_, -1)) == 0; }

 private:
  int value_;
};

bool write_all(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t wrote = ::write(file, text.data(), text.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return false;
    text.remove_prefix(static_cast<size_t>(wrote));
  }
  return true;
}

// Where a path leads to, also where nothing is there yet.
std::string without_links(const std::string& path) {
  constexpr int kMostLinks = 40;
  fs::path at = path;
  std::error_code error;
  for (int i = 0; i < kMostLinks; ++i) {
    const fs::path next = fs::read_symlink(at, error);
    if (error) break;
    at = next.is_absolute() ? next : at.parent_path() / next;
  }
  return at.string();
}

std::string folder_of(const std::string& path) {
  const std::string folder = fs::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

// A name that nothing else has; short, whatever the file is called.
std::string temporary_in(const std::string& folder) {
  static std::atomic<int> count{0};
  return fmt::format("{}/.heddle-{}-{}.tmp", folder, ::getpid(), ++count);
}

using Identity = std::pair<dev_t, ino_t>;

// Of a regular file or a folder; nothing where there is none.
std::optional<Identity> identity_of(const std::string& path) {
  struct stat info{};
  if (path.empty() || ::stat(path.c_str(), &info) != 0) return std::nullopt;
  if (!S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode)) return std::nullopt;
  return Identity(info.st_dev, info.st_ino);
}

// 0, or what errno says.
int copy_into(int to, const std::string& from) {
  const Descriptor source(::open(from.c_str(), O_RDONLY | O_CLOEXEC));
  char part[1 << 16];
  for (ssize_t got = 0; source.get() >= 0;) {
    got = ::read(source.get(), part, sizeof part);
    if (got == 0) return 0;
    if (got < 0 || !write_all(to, {part, static_cast<size_t>(got)})) break;
  }
  return errno;
}

}  // namespace

OutputFile::~OutputFile() {
  // Left by a writer that did not come to its end.
  if (!work_path_.empty()) ::unlink(work_path_.c_str());
}

Error OutputFile::cannot_write(int code) const {
  const ErrorKind kind =
      code == EISDIR || code == ENAMETOOLONG ? ErrorKind::user : ErrorKind::machine;
  return {kind, fmt::format("{} {}: cannot be written: {}", option_, path, std::strerror(code))};
}

// `code`: of access(), 0 where it may be written.
Status OutputFile::prepare_special(int code) {
  special_ = true;
  target_ = path;
  std::error_code error;
  const fs::path folder = fs::temp_directory_path(error);
  work_path_ = temporary_in(error ? "/tmp" : folder.string());
  if (stream_ >= 0 || code == 0) return {};
  return tl::unexpected<Error>(cannot_write(code));
}

// `mode`: of what is there; 0: nothing is.
Status OutputFile::prepare_regular(unsigned mode) {
  mode_ = mode;
  const fs::path end = without_links(path);
  std::error_code error;
  const fs::path folder = fs::canonical(folder_of(end.string()), error);
  if (error) return tl::unexpected<Error>(cannot_write(error.value()));
  target_ = (folder / end.filename()).string();
  if (mode_ != 0 && ::access(target_.c_str(), W_OK) != 0)
    return tl::unexpected<Error>(cannot_write(errno));
  work_path_ = temporary_in(folder.string());
  // Permissions do not tell everything: whether a file can be made is seen by making one.
  const Descriptor file(
      ::open(work_path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR));
  if (file.get() < 0) return tl::unexpected<Error>(cannot_write(errno));
  ::unlink(work_path_.c_str());
  return {};
}

Status OutputFile::prepare(const std::string& option) {
  option_ = option;
  if (!given()) return {};
  if (is_standard_output()) {
    stream_ = STDOUT_FILENO;
    return prepare_special(0);
  }
  struct stat info{};
  const bool exists = ::stat(path.c_str(), &info) == 0;
  if (!exists && errno != ENOENT) return tl::unexpected<Error>(cannot_write(errno));
  if (path.ends_with('/') || (exists && S_ISDIR(info.st_mode)))
    return tl::unexpected<Error>(cannot_write(EISDIR));
  // /dev/stdout may lead to a regular file, to which other lines go, too.
  struct stat stream{};
  for (const int number : {STDOUT_FILENO, STDERR_FILENO})
    if (exists && stream_ < 0 && ::fstat(number, &stream) == 0 && stream.st_dev == info.st_dev &&
        stream.st_ino == info.st_ino)
      stream_ = number;
  if (stream_ >= 0 || (exists && !S_ISREG(info.st_mode)))
    return prepare_special(::access(path.c_str(), W_OK) == 0 ? 0 : errno);
  return prepare_regular(exists ? info.st_mode & 07777 : 0);
}

int OutputFile::open_special() const {
  if (stream_ < 0) return ::open(target_.c_str(), O_WRONLY | O_CLOEXEC);
  std::fflush(stdout);
  return ::dup(stream_);
}

Status OutputFile::write(std::string_view text) const {
  constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC;
  Descriptor file(special_ ? open_special() : ::open(work_path_.c_str(), kFlags, 0666));
  if (file.get() < 0 || !write_all(file.get(), text) || !file.close()) {
    const int code = errno;
    if (!special_) ::unlink(work_path_.c_str());
    return tl::unexpected<Error>(cannot_write(code));
  }
  return special_ ? Status() : publish({});
}

Status OutputFile::publish(Status written) const {
  if (!written) {
    ::unlink(work_path_.c_str());
    Error error = written.error();
    if (const size_t at = error.message.find(work_path_); at != std::string::npos)
      error.message.replace(at, work_path_.size(), path);
    return tl::unexpected<Error>(std::move(error));
  }
  if (special_) {
    const Descriptor to(open_special());
    const int code = to.get() < 0 ? errno : copy_into(to.get(), work_path_);
    ::unlink(work_path_.c_str());
    if (code == 0) return {};
    return tl::unexpected<Error>(cannot_write(code));
  }
  if (mode_ != 0) ::chmod(work_path_.c_str(), mode_);
  if (std::rename(work_path_.c_str(), target_.c_str()) == 0) return {};
  const int code = errno;
  ::unlink(work_path_.c_str());
  return tl::unexpected<Error>(cannot_write(code));
}

namespace {

Status check_folder(const std::string& option, const std::string& path) {
  fs::path at = fs::absolute(path);
  struct stat info{};
  // The nearest that is there: the others will be made.
  while (::stat(at.c_str(), &info) != 0) {
    if (errno == ENAMETOOLONG)
      return user_error("{} {}: {}", option, path, std::strerror(ENAMETOOLONG));
    if (errno != ENOENT || at == at.root_path())
      return machine_error("{} {}: cannot be made: {}", option, path, std::strerror(errno));
    at = at.parent_path();
  }
  if (!S_ISDIR(info.st_mode))
    return user_error("{} {}: wanted a folder, {} is not one", option, path, at.string());
  // Permissions do not tell everything: whether something can be made is seen by making it.
  const std::string made = temporary_in(at.string());
  if (::mkdir(made.c_str(), S_IRWXU) != 0)
    return machine_error("{} {}: cannot be written: {}", option, path, std::strerror(errno));
  ::rmdir(made.c_str());
  return {};
}

}  // namespace

Status FileUse::check_read(const std::string& what, const std::string& path) const {
  const std::optional<Identity> read = identity_of(path);
  if (!read) return {};
  for (const auto& [option, file] : files_)
    if (file->given() && !file->is_standard_output() && identity_of(file->path) == read)
      return user_error("{} {}: this file is read ({} {}); choose another name", option, file->path,
                        what, path);
  // The files of a dump have names of their own, which may be those of an earlier dump.
  for (const auto& [option, folder] : folders_)
    if (!folder->empty() && identity_of(*folder) == identity_of(folder_of(without_links(path))))
      return user_error("{} {}: a file in this folder is read ({} {}); choose another folder",
                        option, *folder, what, path);
  return {};
}

Status FileUse::prepare() const {
  Status status;
  for (const auto& all : reads_)
    all([&](const std::string& what, const std::string& path) {
      if (status) status = check_read(what, path);
    });
  HEDDLE_RETURN_IF_ERROR(status);
  std::map<std::string, std::string> options;  // by target
  for (const auto& [option, file] : files_) {
    HEDDLE_RETURN_IF_ERROR(file->prepare(option));
    if (file->target().empty() || file->is_special()) continue;
    const auto [other, added] = options.emplace(file->target(), option);
    if (!added)
      return user_error("{} {}: {} writes to the same file; choose another name", option,
                        file->path, other->second);
  }
  for (const auto& [option, folder] : folders_)
    if (!folder->empty()) HEDDLE_RETURN_IF_ERROR(check_folder(option, *folder));
  return {};
}

}  // namespace heddle::tools
