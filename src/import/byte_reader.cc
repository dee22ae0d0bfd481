#include "import/byte_reader.h"

#include <bit>

namespace heddle::import {

uint8_t ByteReader::byte() {
  if (empty()) fail("cut off");
  return static_cast<uint8_t>(bytes_[at_++]);
}

uint64_t ByteReader::varint() {
  const uint8_t first = byte();
  const int more = first == 0 ? 8 : std::countr_zero(first);
  const std::string_view rest = take(static_cast<size_t>(more));
  uint64_t value = 0;
  for (size_t i = rest.size(); i-- > 0;) value = value << 8 | static_cast<uint8_t>(rest[i]);
  if (more == 8) return value;
  return value << (7 - more) | first >> (more + 1);
}

int64_t ByteReader::signed_varint() {
  const uint64_t value = varint();
  return static_cast<int64_t>(value >> 1 ^ (~(value & 1) + 1));
}

uint64_t ByteReader::flagged(bool* flag) {
  const uint64_t value = varint();
  *flag = (value & 1) != 0;
  return value >> 1;
}

size_t ByteReader::count(std::string_view what) {
  const uint64_t value = varint();
  if (value > left()) fail("{} {}, but {} bytes are left", value, what, left());
  return static_cast<size_t>(value);
}

size_t ByteReader::index(std::string_view what, size_t size) {
  const uint64_t value = varint();
  if (value >= size) fail("{} {}, but there are {}", what, value, size);
  return static_cast<size_t>(value);
}

uint64_t ByteReader::number(int bits) {
  if (bits <= 8) return byte();
  const auto value = static_cast<uint64_t>(signed_varint());
  return bits < 64 ? value & ((uint64_t{1} << bits) - 1) : value;
}

std::string_view ByteReader::take(size_t size) {
  if (size > left()) fail("cut off: {} bytes are wanted, {} are left", size, left());
  const std::string_view taken = bytes_.substr(at_, size);
  at_ += size;
  return taken;
}

std::string_view ByteReader::c_string() {
  const size_t end = bytes_.find('\0', at_);
  if (end == std::string_view::npos) fail("a text without its end");
  const std::string_view text = take(end - at_);
  ++at_;
  return text;
}

ByteReader ByteReader::part(size_t size) {
  const size_t begin = place();
  return {section_, take(size), begin};
}

void ByteReader::align(uint64_t alignment) {
  constexpr uint64_t kMost = 1 << 20;
  constexpr uint8_t kPadding = 0xCB;
  if (!std::has_single_bit(alignment) || alignment > kMost)
    fail("alignment {}, wanted a power of two up to {}", alignment, kMost);
  while (place() % alignment != 0)
    if (byte() != kPadding) fail("wanted padding, byte 0xCB");
}

void ByteReader::want_end() const {
  if (!empty()) fail("{} bytes too many", left());
}

}  // namespace heddle::import
