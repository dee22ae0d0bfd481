#include "pass/files.h"

#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>

#include "base/hash.h"
#include "pass/run.h"

namespace heddle::pass {
namespace {

constexpr std::string_view kMark = "// reproducer of a failing pass; run it with this pipeline:";
// Text of several lines as comments.
std::string commented(std::string_view text) {
  std::string out = "// ";
  for (char c : text) {
    out += c;
    if (c == '\n') out += "// ";
  }
  return out;
}

}  // namespace

Status write_text(const std::string& directory, const std::string& file, std::string_view text) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  const std::string path = directory + "/" + file;
  // Renamed at the end: a symbolic link of that name is replaced, and its target is not changed.
  static std::atomic<int> count{0};
  const std::string temporary = fmt::format("{}/.heddle-{}-{}.tmp", directory, ::getpid(), ++count);
  std::ofstream stream(temporary, std::ios::binary);
  stream.write(text.data(), static_cast<std::streamsize>(text.size()));
  stream.close();
  if (stream) std::filesystem::rename(temporary, path, error);
  if (stream && !error) return {};
  std::filesystem::remove(temporary, error);
  return machine_error("{}: cannot be written", path);
}

Result<std::string> write_reproducer(const std::string& directory, std::string_view before,
                                     std::string_view suffix, std::string_view pass,
                                     std::string_view pipeline, std::string_view error) {
  std::string where = directory;
  if (where.empty()) {
    std::error_code ignored;
    where = std::filesystem::temp_directory_path(ignored).string();
  }
  const std::string file =
      fmt::format("heddle_reproducer_{}_{:016x}{}", pass, hash64(before, hash64(pass)), suffix);
  HEDDLE_RETURN_IF_ERROR(write_text(
      where, file, fmt::format("{}\n// {}\n{}\n{}", kMark, pipeline, commented(error), before)));
  return where + "/" + file;
}

std::string reproducer_pipeline(std::string_view text) {
  if (!text.starts_with(kMark)) return {};
  text.remove_prefix(std::min(text.size(), kMark.size() + 1));
  if (!text.starts_with("// ")) return {};
  return std::string(text.substr(3, text.find('\n') - 3));
}

}  // namespace heddle::pass
