// Reads the bytes of MLIR's bytecode front to back, and never past the end of a section.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string_view>

#include "import/failure.h"

namespace heddle::import {

// A section, or a part of one. Errors (Failure): "SECTION, byte N: …", where N is the offset in the
// file.
class ByteReader {
 public:
  ByteReader() = default;
  // `offset`: position of `bytes` in the file. `section` must outlive the reader.
  ByteReader(std::string_view section, std::string_view bytes, size_t offset)
      : section_(section), bytes_(bytes), offset_(offset) {}

  bool empty() const { return at_ == bytes_.size(); }
  size_t left() const { return bytes_.size() - at_; }
  size_t place() const { return offset_ + at_; }  // in the file
  std::string_view section() const { return section_; }

  uint8_t byte();
  // 1 to 9 bytes: the trailing zeros of the first byte give the number of further bytes.
  uint64_t varint();
  int64_t signed_varint();  // zigzag
  // A varint with a flag in its lowest bit.
  uint64_t flagged(bool* flag);
  // A count of `what`, each of which takes at least one byte of this section.
  size_t count(std::string_view what);
  // An index into a table of `size` entries.
  size_t index(std::string_view what, size_t size);
  // The low `bits` (at most 64) of a number: a byte up to 8 bits, else a signed varint.
  uint64_t number(int bits);
  std::string_view take(size_t size);
  std::string_view blob() { return take(count("bytes")); }
  std::string_view c_string();
  ByteReader part(size_t size);  // the next bytes as a separate reader
  void align(uint64_t alignment);
  void want_end() const;

  template <typename... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) const {
    import::fail("{}, byte {}: {}", section_, place(),
                 fmt::format(format, std::forward<Args>(args)...));
  }

 private:
  std::string_view section_, bytes_;
  size_t offset_ = 0, at_ = 0;
};

}  // namespace heddle::import
