// Private to file.cc: sections of a file, padded to pages and hashed.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/hash.h"

namespace heddle::program {

inline constexpr uint64_t kPage = 4096;
inline constexpr size_t kChunk = size_t{1} << 20;

inline uint64_t page_up(uint64_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

// A section is hashed in chunks, each with the previous hash as seed, so that the writer need not
// hold the whole section.
class SectionHash {
 public:
  void add(std::string_view chunk) { hash_ = hash64(chunk, hash_); }
  uint64_t value() const { return hash_; }

 private:
  uint64_t hash_ = 0;
};

inline uint64_t section_hash(const uint8_t* data, size_t bytes) {
  SectionHash hash;
  for (size_t at = 0; at < bytes; at += kChunk)
    hash.add({reinterpret_cast<const char*>(data) + at, std::min(kChunk, bytes - at)});
  return hash.value();
}

struct Section {
  uint64_t offset = 0, bytes = 0, hash = 0;  // bytes: with the padding
};

// Writes sections one after the other, padding and hashing them.
class SectionWriter {
 public:
  SectionWriter(int fd, uint64_t offset) : fd_(fd), offset_(offset) { buffer_.reserve(kChunk); }

  bool add(const void* data, size_t bytes) {
    const auto* from = static_cast<const char*>(data);
    while (bytes > 0) {
      const size_t part = std::min(bytes, kChunk - buffer_.size());
      buffer_.append(from, part);
      from += part;
      bytes -= part;
      section_.bytes += part;
      if (buffer_.size() == kChunk && !flush()) return false;
    }
    return true;
  }
  bool pad_to(uint64_t bytes) {
    static constexpr char kZeros[kPage] = {};
    while (section_.bytes < bytes)
      if (!add(kZeros, std::min<uint64_t>(kPage, bytes - section_.bytes))) return false;
    return true;
  }
  bool end(Section* section) {
    if (!pad_to(page_up(section_.bytes)) || !flush()) return false;
    section_.offset = offset_ - section_.bytes;
    section_.hash = hash_.value();
    *section = std::exchange(section_, {});
    hash_ = {};
    return true;
  }
  uint64_t offset() const { return offset_; }

 private:
  bool flush() {
    if (buffer_.empty()) return true;
    hash_.add(buffer_);
    const char* data = buffer_.data();
    for (size_t left = buffer_.size(); left > 0;) {
      const ssize_t written = pwrite(fd_, data, left, static_cast<off_t>(offset_));
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) return false;
      data += written;
      left -= static_cast<size_t>(written);
      offset_ += static_cast<uint64_t>(written);
    }
    buffer_.clear();
    return true;
  }
  int fd_;
  uint64_t offset_;
  std::string buffer_;
  Section section_;
  SectionHash hash_;
};

}  // namespace heddle::program
